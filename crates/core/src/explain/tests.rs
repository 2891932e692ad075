//! `explain` says yes exactly if the name is in the plan and `route` serves what it asks for, on every listener that has it.
//!
//! The judge is made of plain loops over the answers of the router. It shares no code with the explanation.

mod random;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::attachment::{ListenerState, Scope, Topology};
use crate::explain::{Explanation, NameVerdict, Publication};
use crate::lint::LintContext;
use crate::model::*;
use crate::names::Hostname;
use crate::publication::tests::world::{at, gateway, http, https, parent, route};
use crate::publication::{self, Desired, PublicationSettings};
use crate::routing::{GatewayRequest, Router, RoutingAnswer, RoutingOutcome, Scheme};
use crate::snapshot::{Object, Snapshot};

const LISTENER_NAMES: [&str; 4] = ["*", "*.x.test", "a.x.test", "b.x.test"];
const ROUTE_NAMES: [&str; 4] = ["a.x.test", "b.x.test", "c.b.x.test", "*.x.test"];
const NAMES: [&str; 5] = ["a.x.test", "b.x.test", "c.b.x.test", "d.x.test", "*.x.test"];
const PATHS: [&str; 4] = ["/", "/a", "/a/b", "/c"];

#[derive(Clone)]
struct RequestWorld {
    objects: Vec<Object>,
}

/// Listeners and rules in a few lines, so that a counterexample can be read.
impl std::fmt::Debug for RequestWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for object in &self.objects {
            match object {
                Object::Gateway(gateway) => {
                    writeln!(f, "{} at {}", gateway.meta.key, gateway.status.addresses.len())?;
                    for listener in &gateway.listeners {
                        let secrets = listener.tls.iter().flat_map(|tls| &tls.certificates).map(|c| &c.name);
                        let hostname = listener.hostname.as_ref().map(WrittenHostname::text);
                        writeln!(
                            f,
                            "  {} {} {hostname:?} {:?}",
                            listener.name,
                            listener.port,
                            secrets.collect::<Vec<_>>()
                        )?;
                    }
                }
                Object::Route(route) => {
                    let names: Vec<_> = route.hostnames.iter().map(WrittenHostname::text).collect();
                    let parents: Vec<_> = route.parents.iter().map(|p| (&p.target.name, &p.section)).collect();
                    writeln!(f, "{} {names:?} {parents:?} {:?}", route.meta.key, route.meta.created)?;
                    for rule in route.rules.iter() {
                        let Matches::Http(items) = &rule.matches else { continue };
                        let paths: Vec<_> = items.iter().map(|item| &item.path.value).collect();
                        let to = |b: &BackendRef| (b.target.namespace.clone(), b.target.name.clone(), b.port, b.weight);
                        let backends: Vec<_> = rule.backends.iter().map(to).collect();
                        writeln!(f, "  {paths:?} {backends:?} {:?}", rule.filters)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn listener() -> impl Strategy<Value = Listener> {
    let bad = select(vec!["differs", "broken", "elsewhere-altogether", "shut", "none"]);
    let secret = prop_oneof![3 => Just("covers"), 1 => bad];
    (select(LISTENER_NAMES.to_vec()), any::<bool>(), secret).prop_map(|(hostname, is_https, secret)| {
        if !is_https {
            return http("l", hostname);
        }
        let mut listener = https("l", hostname, secret);
        if let Some(tls) = &mut listener.tls {
            match secret {
                "none" => tls.certificates.clear(),
                "shut" => tls.certificates[0].namespace = Some("other".into()),
                _ => {}
            }
        }
        listener
    })
}

fn gateways() -> impl Strategy<Value = Vec<Object>> {
    let addresses = select(vec![&["192.0.2.1"][..], &["192.0.2.2"], &["192.0.2.1", "2001:db8::1"], &[]]);
    let one = (prop::collection::vec(listener(), 1..4), addresses);
    prop::collection::vec(one, 1..3).prop_map(|all| {
        let build = |(g, (mut listeners, addresses)): (usize, (Vec<Listener>, &[&str]))| {
            for (i, listener) in listeners.iter_mut().enumerate() {
                listener.name = format!("l{i}").into();
            }
            Object::Gateway(at(gateway(&format!("infra/g{g}"), listeners), addresses))
        };
        all.into_iter().enumerate().map(build).collect()
    })
}

fn backend() -> impl Strategy<Value = BackendRef> {
    let name = prop_oneof![12 => Just("web"), 1 => Just("gone"), 2 => Just("granted"), 1 => Just("refused")];
    (name, prop_oneof![15 => Just(80), 1 => Just(81)], prop_oneof![8 => Just(1), 1 => Just(0)]).prop_map(
        |(name, port, weight)| {
            let namespace = matches!(name, "granted" | "refused").then(|| Str::from(name));
            let target = Reference { group: "".into(), kind: "Service".into(), namespace, name: "web".into() };
            let target = if name == "gone" { Reference { name: "gone".into(), ..target } } else { target };
            BackendRef { target, port: Some(port), weight, filters: Default::default() }
        },
    )
}

fn rule() -> impl Strategy<Value = Rule> {
    let redirect = (
        prop::option::of(select(vec!["http", "https"])),
        prop::option::weighted(0.4, select(vec!["a.x.test", "b.x.test", "q.test"])),
        prop::option::weighted(0.2, select(vec![80u16, 443, 8443])),
        prop::option::weighted(0.3, select(vec!["/a", "/"])),
    );
    let redirect = redirect.prop_map(|(scheme, hostname, port, path)| {
        Filter::Redirect(Redirect {
            scheme: scheme.map(Str::from),
            hostname: hostname.map(Str::from),
            path: path.map(|path| PathChange::Full(path.into())),
            port,
            status: None,
        })
    });
    let backends = prop_oneof![8 => prop::collection::vec(backend(), 1..3), 1 => Just(Vec::new())];
    let paths = prop_oneof![3 => Just(vec!["/"]), 1 => subsequence(PATHS.to_vec(), 1..3)];
    (paths, prop::option::weighted(0.15, redirect), backends).prop_map(|(paths, redirect, backends)| {
        let item = |path: &str| HttpMatch {
            path: PathMatch { kind: MatchKind::Prefix, value: path.into() },
            ..HttpMatch::default()
        };
        let items: Vec<HttpMatch> = paths.into_iter().map(item).collect();
        Rule {
            matches: Matches::Http(items.into()),
            backends: if redirect.is_some() { Default::default() } else { backends.into() },
            filters: redirect.into_iter().collect(),
            ..Rule::default()
        }
    })
}

/// Hostnames, parents as number of the Gateway and of its listener, rules, age.
type WrittenRoute = (Vec<&'static str>, Vec<(usize, Option<usize>)>, Vec<Rule>, i64);

fn routes() -> impl Strategy<Value = Vec<Object>> {
    let parents = prop::collection::vec((0..2usize, prop::option::weighted(0.5, 0..3usize)), 1..3);
    let one = (subsequence(ROUTE_NAMES.to_vec(), 0..3), parents, prop::collection::vec(rule(), 1..3), 0..3i64);
    prop::collection::vec(one, 0..5).prop_map(|all| {
        let build = |(r, (names, parents, rules, created)): (usize, WrittenRoute)| {
            let mut built = route(&format!("shop/r{r}"), "infra/g0", &names);
            let parent = |(g, section): (usize, Option<usize>)| ParentRef {
                section: section.map(|i| format!("l{i}").into()),
                ..parent("Gateway", &format!("infra/g{g}"))
            };
            built.parents = parents.into_iter().map(parent).collect();
            built.rules = rules.into();
            built.meta.created = Some(created);
            Object::Route(built)
        };
        all.into_iter().enumerate().map(build).collect()
    })
}

/// Services, a grant and Secrets, which are the same in every world.
fn fixed_objects() -> Vec<Object> {
    let service = |namespace: &str| {
        let ports = vec![ServicePort { port: 80, protocol: "TCP".into() }];
        Object::Service(Service { meta: Meta::named(namespace, "web"), ports })
    };
    let grant = ReferenceGrant {
        meta: Meta::named("granted", "shop"),
        from: vec![GrantFrom { group: GATEWAY_GROUP.into(), kind: "HTTPRoute".into(), namespace: "shop".into() }],
        to: vec![GrantTo { group: "".into(), kind: "Service".into(), name: None }],
    };
    let secret = |namespace: &str, name: &str, certificate: Material| {
        Object::Secret(Secret { meta: Meta::named(namespace, name), kind: "kubernetes.io/tls".into(), certificate })
    };
    let holds = |names: &[&str]| {
        let dns_names = names.iter().map(|name| Str::from(*name)).collect();
        Material::Present(Certificate { dns_names, ..Certificate::default() })
    };
    let mut all: Vec<Object> = ["shop", "granted", "refused"].map(service).into();
    all.extend([
        Object::ReferenceGrant(grant),
        secret("infra", "covers", holds(&["*.x.test", "c.b.x.test"])),
        secret("infra", "differs", holds(&["www.other.test"])),
        secret("infra", "broken", Material::Malformed("it is empty".into())),
        secret("other", "shut", holds(&["*.x.test", "c.b.x.test"])),
    ]);
    all
}

fn worlds() -> impl Strategy<Value = RequestWorld> {
    (gateways(), routes()).prop_map(|(gateways, routes)| RequestWorld {
        objects: gateways.into_iter().chain(routes).chain(fixed_objects()).collect(),
    })
}

/// Everything that the judge looks at.
struct Judge {
    snapshot: Snapshot,
    topology: Topology,
    desired: Desired,
}

impl Judge {
    fn of(world: &RequestWorld) -> Self {
        let snapshot = Snapshot::of(world.objects.clone());
        let topology = Topology::build(&snapshot, &Scope::default());
        let desired = publication::build(&snapshot, &topology, &PublicationSettings::default());
        Judge { snapshot, topology, desired }
    }

    fn explained(&self, name: &Hostname) -> (NameVerdict, bool) {
        let context = LintContext { snapshot: &self.snapshot, topology: &self.topology };
        let mut explanation = Explanation::of(context, name);
        let published = Publication::of(context, &self.desired, &mut explanation);
        let verdict = published.verdict(&explanation);
        let is_lost_only =
            verdict == NameVerdict::RequestsFail && published.requests.iter().all(|outcome| !outcome.fails);
        (verdict, is_lost_only && !published.losing.is_empty())
    }

    fn route(&self, gateway: &Key, url: &str) -> RoutingAnswer {
        let router = Router::compile(&self.snapshot, &self.topology, gateway).unwrap();
        router.route(&request(url))
    }

    /// Whether the name is published and everything that routes ask for under it is served.
    fn is_right(&self, name: &Hostname) -> bool {
        let records = self.desired.answer(name.as_str());
        let gateways: BTreeSet<&Key> =
            records.iter().flat_map(|r| r.listeners.iter()).map(|listener| &listener.owner.key).collect();
        let mut is_attached = false;
        for state in self.topology.routes.values() {
            let is_named = state.route.hostnames.iter().any(|written| written.name() == Ok(name));
            let (mut asks, mut gets) = (0, 0);
            for attachment in state.attachments().filter(|a| a.names.iter().any(|n| n.hostname.contains(name))) {
                let listener = self.topology.listener(attachment.listener);
                let gateway = listener.gateway.as_ref().unwrap();
                if !gateways.contains(gateway) || !listener.is_serving() {
                    continue;
                }
                is_attached = true;
                if !self.is_secured(listener, name) {
                    return false;
                }
                for url in urls(listener, &state.route, name) {
                    let answer = self.route(gateway, &url);
                    if !self.is_served(gateway, &url, &answer) {
                        return false;
                    }
                    asks += 1;
                    gets += usize::from(answer.route.as_ref() == Some(&state.route.object()));
                }
            }
            if is_named && asks > 0 && gets == 0 {
                return false;
            }
        }
        is_attached && !records.is_empty()
    }

    /// Whether some certificate of a listener is good for the name, or not known to be bad.
    fn is_secured(&self, listener: &ListenerState, name: &Hostname) -> bool {
        let spec = listener.spec();
        let secret = spec.tls.iter().flat_map(|tls| &tls.certificates).next().map(|reference| &*reference.name);
        let is_covered = ["a.x.test", "b.x.test", "c.b.x.test", "d.x.test", "*.x.test"].contains(&name.as_str());
        match (&spec.protocol, secret) {
            (Protocol::Https, Some("covers")) => is_covered,
            (Protocol::Https, Some("elsewhere-altogether")) => true,
            (Protocol::Https, _) => false,
            _ => true,
        }
    }

    /// Whether a request is forwarded as a whole, or redirected to something that is, or to somebody else.
    fn is_served(&self, gateway: &Key, url: &str, answer: &RoutingAnswer) -> bool {
        let (mut gateway, mut answer, mut seen) = (gateway.clone(), answer.clone(), vec![url.to_owned()]);
        let asked = request(url).host;
        loop {
            match answer.outcome {
                RoutingOutcome::Forward => return answer.unavailable.is_empty(),
                RoutingOutcome::Redirect => {}
                _ => return false,
            }
            let url = answer.location.clone().unwrap();
            if seen.contains(&url) {
                return false;
            }
            let host = request(&url).host;
            if host != asked && !self.is_named(&host) {
                return true;
            }
            let there = self.gateways_of(&host);
            let present = host == asked || there.contains(&gateway) || there.is_empty();
            let there = if present { BTreeSet::from([gateway.clone()]) } else { there };
            let answers: Vec<(Key, RoutingAnswer)> =
                there.into_iter().map(|key| (key.clone(), self.route(&key, &url))).collect();
            let is_good = |a: &RoutingAnswer| match a.outcome {
                RoutingOutcome::Forward => a.unavailable.is_empty(),
                outcome => outcome == RoutingOutcome::Redirect,
            };
            if !answers.iter().all(|(_, answer)| is_good(answer)) {
                return false;
            }
            seen.push(url);
            (gateway, answer) = answers.into_iter().next().unwrap();
        }
    }

    fn gateways_of(&self, host: &str) -> BTreeSet<Key> {
        let attached =
            self.topology.attachments().filter(|(_, _, names)| names.iter().any(|n| n.hostname.matches(host)));
        attached.filter_map(|(_, id, _)| self.topology.listener(id).gateway.clone()).collect()
    }

    /// Whether any listener or route names a host; otherwise it is somebody else's.
    fn is_named(&self, host: &str) -> bool {
        let mut listeners = self.topology.listener_ids().map(|(_, listener)| &listener.hostname);
        let mut routes = self.topology.routes.values().flat_map(|state| &state.route.hostnames);
        let names = |name: &Hostname| !name.is_any() && name.matches(host);
        !self.gateways_of(host).is_empty()
            || listeners.any(names)
            || routes.any(|written| written.name().is_ok_and(names))
    }
}

/// One URL per match of a route at a listener.
fn urls(listener: &ListenerState, route: &Route, name: &Hostname) -> Vec<String> {
    let host = name.as_str().replace('*', "any");
    let scheme = if listener.spec().protocol == Protocol::Https { "https" } else { "http" };
    let items = route.rules.iter().flat_map(|rule| match &rule.matches {
        Matches::Http(items) => items.iter().map(|item| item.path.value.clone()).collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    items.map(|path| format!("{scheme}://{host}{path}")).collect()
}

fn request(url: &str) -> GatewayRequest {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let scheme = Scheme::parse(scheme).unwrap();
    GatewayRequest {
        scheme,
        host: host.to_owned(),
        sni: None,
        port: port.parse().unwrap_or_else(|_| scheme.default_port().unwrap()),
        method: "GET".to_owned(),
        path: format!("/{path}"),
        headers: Vec::new(),
        grpc: false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn explain_says_yes_exactly_if_the_name_is_published_and_served(world in worlds()) {
        let judge = Judge::of(&world);
        for name in NAMES {
            let name = Hostname::parse(name).unwrap();
            let (verdict, _) = judge.explained(&name);
            prop_assert_eq!(verdict == NameVerdict::Works, judge.is_right(&name), "{}: {:?}", name, verdict);
        }
    }
}

/// The worlds are worth something only if both answers occur in them.
#[test]
fn the_random_worlds_have_every_verdict() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    let mut losing = 0;
    for _ in 0..200 {
        let judge = Judge::of(&worlds().new_tree(&mut runner).unwrap().current());
        for (verdict, is_lost) in NAMES.map(|name| judge.explained(&Hostname::parse(name).unwrap())) {
            seen.insert(verdict);
            losing += usize::from(is_lost);
        }
    }
    assert!(losing > 0, "no route loses all its requests in a world where the others work");
    let wanted = [NameVerdict::Works, NameVerdict::RequestsFail, NameVerdict::NotPublished, NameVerdict::NotAsked];
    assert!(wanted.iter().all(|verdict| seen.contains(verdict)), "{seen:?}");
}
