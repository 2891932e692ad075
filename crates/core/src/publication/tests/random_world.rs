//! Worlds at random in which much is wrong, for properties of what is published and explained.
//!
//! Several Gateways and ListenerSets that share ports, certificates that are missing or cover something else, backends that
//! are missing or get no requests, redirects, wildcards, policies, grants, annotations, status, and objects that an API server
//! would refuse. A seed gives the same world every time.

use super::world::*;
use crate::diagnostic::FieldPath;
use crate::incremental::tests::making::Chance;
use crate::model::*;
use crate::publication::domains::DomainFilter;
use crate::publication::settings::{GA_PREFIX, PublicationSettings, Publish, StatusMode};
use crate::publication::template::Template;
use crate::reason;
use crate::selector::Selector;
use crate::snapshot::{Object, Origin, Snapshot};

/// Hostnames of listeners and routes.
const HOSTS: [&str; 10] = [
    "x.test",
    "*.x.test",
    "a.x.test",
    "b.x.test",
    "c.b.x.test",
    "*.b.x.test",
    "*.c.b.x.test",
    "a.y.test",
    "*.y.test",
    "*.test",
];
/// Names that only annotations have; no listener but those without a hostname serves the last one.
const ADDED: [&str; 4] = ["n.x.test", "a.x.test", "n.y.test", "outside.example"];
/// Names to ask for: those of [`HOSTS`] and [`ADDED`], and some that only wildcards have.
pub(crate) const QUESTIONS: [&str; 17] = [
    "x.test",
    "*.x.test",
    "a.x.test",
    "b.x.test",
    "c.b.x.test",
    "*.b.x.test",
    "*.c.b.x.test",
    "a.y.test",
    "*.y.test",
    "*.test",
    "n.x.test",
    "n.y.test",
    "outside.example",
    "q.x.test",
    "q.b.x.test",
    "q.c.b.x.test",
    "web.shop.t.test",
];
const PATHS: [&str; 4] = ["/", "/a", "/a/b", "/c"];

/// Objects and settings at random.
#[derive(Clone)]
pub(crate) struct RandomWorld {
    pub(crate) objects: Vec<Object>,
    pub(crate) settings: PublicationSettings,
    pub(crate) origin: Origin,
}

/// One object per line.
impl std::fmt::Debug for RandomWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let usual = format!("{:?}", PublicationSettings::default());
        let settings = format!("{:?}", self.settings);
        writeln!(f, "{:?} {}", self.origin, if settings == usual { "with the usual settings" } else { &settings })?;
        self.objects.iter().try_for_each(|object| writeln!(f, "{object:?}"))
    }
}

impl RandomWorld {
    /// The world of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let chance = &mut Chance(seed);
        let mut objects = vec![class(chance, "edge", 30), class(chance, "doubtful", 2)];
        let gateways = 1 + chance.below(3);
        objects.extend((0..gateways).map(|i| Object::Gateway(a_gateway(chance, i))));
        let sets = chance.below(3);
        objects.extend((0..sets).map(|i| Object::ListenerSet(a_set(chance, i, gateways))));
        let count = 1 + chance.below(6);
        objects.extend((0..count).map(|i| Object::Route(a_route(chance, i, gateways, sets))));
        objects.extend(policies(chance, gateways));
        objects.extend(hostname_grants(chance));
        objects.extend(namespaces(chance));
        objects.extend(support(chance));
        let origin = if chance.one_in(5) { Origin::Cluster } else { Origin::Files };
        RandomWorld { objects, settings: settings(chance), origin }
    }

    /// The objects as a source would show them.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::of(self.objects.clone());
        snapshot.origin = self.origin;
        snapshot
    }

    /// The smallest part of the world of which something still holds.
    pub(crate) fn reduced(mut self, holds: impl Fn(&RandomWorld) -> bool) -> Self {
        loop {
            let smaller = self.parts().into_iter().find(|part| holds(part));
            match smaller {
                Some(smaller) => self = smaller,
                None => return self,
            }
        }
    }

    /// The world without one object, or without one part of an object.
    fn parts(&self) -> Vec<RandomWorld> {
        let mut all = Vec::new();
        for i in 0..self.objects.len() {
            let mut part = self.clone();
            part.objects.remove(i);
            all.push(part);
            all.extend(parts_of(&self.objects[i]).into_iter().map(|object| {
                let mut part = self.clone();
                part.objects[i] = object;
                part
            }));
        }
        let usual = PublicationSettings::default();
        all.push(RandomWorld { settings: usual, ..self.clone() });
        all.retain(|part| part.size() < self.size());
        all
    }

    fn size(&self) -> usize {
        format!("{self:?}").len()
    }
}

/// An object without one of its parts.
fn parts_of(object: &Object) -> Vec<Object> {
    let mut all = Vec::new();
    let mut bare = object.clone();
    (bare.meta_mut().annotations, bare.meta_mut().labels) = Default::default();
    bare.meta_mut().invalid = None;
    all.push(bare);
    match object {
        Object::Gateway(gateway) => {
            for i in 0..gateway.listeners.len() {
                let mut part = gateway.clone();
                part.listeners.remove(i);
                all.push(Object::Gateway(part));
            }
            let mut part = gateway.clone();
            (part.status.conditions, part.status.listeners) = Default::default();
            all.push(Object::Gateway(part));
        }
        Object::ListenerSet(set) => {
            for i in 0..set.listeners.len() {
                let mut part = set.clone();
                part.listeners.remove(i);
                all.push(Object::ListenerSet(part));
            }
        }
        Object::Route(route) => {
            for i in 0..route.hostnames.len() {
                let mut part = route.clone();
                part.hostnames.remove(i);
                all.push(Object::Route(part));
            }
            for i in 0..route.parents.len() {
                let mut part = route.clone();
                part.parents = without(&part.parents, i);
                all.push(Object::Route(part));
            }
            for i in 0..route.rules.len() {
                let mut part = route.clone();
                part.rules = without(&part.rules, i);
                // An API server gives a route without rules one of its own.
                all.extend((route.rules.len() > 1).then_some(Object::Route(part)));
                for j in 0..route.rules[i].backends.len() {
                    let mut part = route.clone();
                    items(&mut part.rules)[i].backends = without(&route.rules[i].backends, j);
                    all.push(Object::Route(part));
                }
            }
            all.push(Object::Route(Route { status: Default::default(), ..route.clone() }));
        }
        _ => {}
    }
    all
}

fn without<T: Clone>(list: &[T], index: usize) -> SharedList<T> {
    list.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, item)| item.clone()).collect()
}

fn some<T>(count: usize, mut make: impl FnMut() -> T) -> Vec<T> {
    (0..count).map(|_| make()).collect()
}

fn class(chance: &mut Chance, name: &str, refused: usize) -> Object {
    let said = Condition::new("Accepted", false, "InvalidParameters", "no");
    let conditions = if chance.one_in(refused) { vec![said] } else { Vec::new() };
    Object::GatewayClass(GatewayClass {
        meta: Meta::named("", name),
        controller: "example.test/controller".into(),
        features: Vec::new(),
        conditions: conditions.into(),
    })
}

fn spoil(chance: &mut Chance, meta: &mut Meta, rarely: usize) {
    meta.created = Some(chance.below(3) as i64);
    meta.generation = chance.one_in(3).then_some(2);
    if chance.one_in(rarely) {
        let field = FieldPath::of("spec.field");
        let message = "is not valid".to_owned();
        meta.invalid = Some(Box::new(InvalidField { reason: reason::INVALID_FIELD, field, message }));
    }
}

fn annotate(meta: &mut Meta, name: &str, value: &str) {
    meta.annotations.insert(format!("{GA_PREFIX}{name}").into(), value.into());
}

fn conditions(chance: &mut Chance) -> Conditions {
    let mut accepted = Condition::new("Accepted", !chance.one_in(3), "Why", "because");
    accepted.observed_generation = chance.one_in(2).then(|| 1 + chance.below(2) as i64);
    let conflicted = chance.one_in(5).then(|| Condition::new("Conflicted", true, "HostnameConflict", "because"));
    [accepted].into_iter().chain(conflicted).collect::<Vec<_>>().into()
}

fn admission(chance: &mut Chance) -> Admission {
    match chance.below(12) {
        0 => Admission::Same,
        1 => Admission::Selector(Selector::parse("team=red").ok()),
        2 => Admission::None,
        _ => Admission::All,
    }
}

fn a_gateway(chance: &mut Chance, index: usize) -> Gateway {
    const ADDRESSES: [&[&str]; 8] = [
        &["192.0.2.1"],
        &["192.0.2.1"],
        &["192.0.2.2"],
        &["192.0.2.1", "2001:db8::1"],
        &["lb.example.net"],
        &["192.0.2.1", "lb.example.net"],
        &["a.x.test"],
        &[],
    ];
    let namespace = if index == 2 { "shop" } else { "infra" };
    let listeners = listeners(chance);
    let addresses: &[&str] = chance.pick::<&[&str]>(&ADDRESSES);
    let mut made = at(gateway(&format!("{namespace}/g{index}"), listeners), addresses);
    spoil(chance, &mut made.meta, 40);
    made.class = (*chance.pick(&["edge", "edge", "edge", "edge", "doubtful", "elsewhere"])).into();
    made.allowed_listeners = admission(chance);
    if chance.one_in(12) {
        made.status.conditions = conditions(chance);
    }
    if chance.one_in(12) {
        let name = Str::from(*chance.pick(&["l0", "l1"]));
        made.status.listeners = vec![ListenerStatus { name, conditions: conditions(chance) }];
    }
    if chance.one_in(20) {
        annotate(&mut made.meta, "target", "192.0.2.7");
    }
    if chance.one_in(20) {
        made.meta.annotations.insert("cert-manager.io/issuer".into(), "ca".into());
    }
    if chance.one_in(12)
        && let Some(address) = made.status.addresses.first_mut()
    {
        match chance.below(2) {
            0 => address.kind = "NamedAddress".into(),
            _ => address.routability = Some("Cluster".into()),
        }
    }
    made
}

fn a_set(chance: &mut Chance, index: usize, gateways: usize) -> ListenerSet {
    let parent = match chance.one_in(12) {
        true => "infra/none".to_owned(),
        false => gateway_name(chance.below(gateways)),
    };
    let namespace = *chance.pick(&["shop", "media"]);
    let mut made = listener_set(&format!("{namespace}/s{index}"), &parent, listeners(chance));
    spoil(chance, &mut made.meta, 30);
    if chance.one_in(15) {
        made.conditions = conditions(chance);
    }
    made
}

fn gateway_name(index: usize) -> String {
    format!("{}/g{index}", if index == 2 { "shop" } else { "infra" })
}

fn listeners(chance: &mut Chance) -> Vec<Listener> {
    let count = 1 + chance.below(4);
    (0..count).map(|i| Listener { name: format!("l{i}").into(), ..a_listener(chance) }).collect()
}

fn a_listener(chance: &mut Chance) -> Listener {
    const SECRETS: [&str; 9] =
        ["covers", "covers", "covers", "covers", "differs", "broken", "elsewhere-altogether", "shut", "none"];
    let host = if chance.one_in(5) { "*" } else { *chance.pick(&HOSTS) };
    let (protocol, port) = chance
        .pick(&[
            (Protocol::Http, 80),
            (Protocol::Http, 80),
            (Protocol::Http, 80),
            (Protocol::Http, 8080),
            (Protocol::Https, 443),
            (Protocol::Https, 443),
            (Protocol::Https, 443),
            (Protocol::Tls, 443),
            (Protocol::Tls, 8443),
            (Protocol::Tcp, 9000),
            (Protocol::Udp, 9000),
        ])
        .clone();
    let mut made = https("l", host, chance.pick::<&str>(&SECRETS));
    (made.port, made.protocol) = (port, protocol);
    if let Some(tls) = &mut made.tls {
        match &*tls.certificates[0].name {
            "none" => tls.certificates.clear(),
            "shut" => tls.certificates[0].namespace = Some("other".into()),
            _ => {}
        }
        if made.protocol == Protocol::Tls && chance.one_in(2) {
            (tls.mode, tls.certificates) = (TlsMode::Passthrough, Vec::new());
        }
    }
    if !matches!(made.protocol, Protocol::Https | Protocol::Tls) {
        made.tls = None;
    }
    made.allowed_routes.namespaces = admission(chance);
    if chance.one_in(15) {
        made.allowed_routes.kinds = vec![(GATEWAY_GROUP.into(), "GRPCRoute".into())];
    }
    made
}

fn a_route(chance: &mut Chance, index: usize, gateways: usize, sets: usize) -> Route {
    const KINDS: [RouteKind; 12] = [
        RouteKind::Http,
        RouteKind::Http,
        RouteKind::Http,
        RouteKind::Http,
        RouteKind::Http,
        RouteKind::Http,
        RouteKind::Grpc,
        RouteKind::Grpc,
        RouteKind::Tls,
        RouteKind::Tls,
        RouteKind::Tcp,
        RouteKind::Udp,
    ];
    let kind = *chance.pick(&KINDS);
    let namespace = *chance.pick(&["shop", "shop", "shop", "media"]);
    let mut made = route(&format!("{namespace}/r{index}"), "infra/g0", &[]);
    made.kind = kind;
    spoil(chance, &mut made.meta, 8);
    if kind.has_hostnames() {
        let count = chance.below(4);
        let hosts = some(count, || if chance.one_in(25) { "-bad" } else { *chance.pick(&HOSTS) });
        made.hostnames = hosts.into_iter().map(WrittenHostname::new).collect();
    }
    let count = 1 + chance.below(2);
    made.parents = some(count, || a_parent(chance, gateways, sets)).into();
    let count = 1 + chance.below(2);
    made.rules = some(count, || a_rule(chance, kind)).into();
    if chance.one_in(3) {
        annotate_route(chance, &mut made.meta);
    }
    if chance.one_in(12) {
        let parent = made.parents[0].clone();
        let said: SharedList<Condition> = conditions(chance).iter().cloned().collect();
        let controller = "example.test/controller".into();
        made.status.push(ParentStatus { parent, controller, conditions: said });
    }
    made
}

fn annotate_route(chance: &mut Chance, meta: &mut Meta) {
    match chance.below(9) {
        0..3 => {
            let names = match chance.one_in(3) {
                true => format!("{},{}", chance.pick(&ADDED), chance.pick(&ADDED)),
                false => chance.pick(&ADDED).to_string(),
            };
            annotate(meta, "hostname", &names);
            if chance.one_in(4) {
                let source = *chance.pick(&["annotation-only", "defined-hosts-only"]);
                annotate(meta, "gateway-hostname-source", source);
            }
        }
        3 => annotate(meta, "target", chance.pick::<&str>(&["192.0.2.9", "lb3.example.net", "127.0.0.1", "a.x.test"])),
        4 => annotate(meta, "ttl", "60"),
        5 => annotate(meta, "controller", "somebody"),
        6 => _ = meta.labels.insert("acme.cert-manager.io/http01-solver".into(), "true".into()),
        7 => annotate(meta, "gateway-hostname-source", "annotation-only"),
        _ => annotate(meta, "set-identifier", "blue"),
    }
}

fn a_parent(chance: &mut Chance, gateways: usize, sets: usize) -> ParentRef {
    let namespace = *chance.pick(&["shop", "media"]);
    let mut made = match chance.below(8) {
        0 => parent("Gateway", "infra/none"),
        1 | 2 if sets > 0 => parent("ListenerSet", &format!("{namespace}/s{}", chance.below(sets))),
        _ => parent("Gateway", &gateway_name(chance.below(gateways))),
    };
    made.section = chance.one_in(3).then(|| (*chance.pick(&["l0", "l1", "l2"])).into());
    made.port = chance.one_in(12).then_some(443);
    made
}

fn a_rule(chance: &mut Chance, kind: RouteKind) -> Rule {
    let count = usize::from(!chance.one_in(10)) + usize::from(chance.one_in(4));
    let backends = some(count, || a_backend(chance));
    let mut made = Rule { backends: backends.into(), ..Rule::default() };
    match kind {
        RouteKind::Http => {
            let count = 1 + usize::from(chance.one_in(4));
            made.matches = Matches::Http(some(count, || a_match(chance)).into());
            if chance.one_in(6) {
                (made.filters, made.backends) = (vec![a_redirect(chance)].into(), Default::default());
            } else if chance.one_in(20) {
                let target = Reference {
                    group: "example.test".into(),
                    kind: "Throttle".into(),
                    namespace: None,
                    name: "slow".into(),
                };
                made.filters = vec![Filter::Extension(target)].into();
            }
        }
        RouteKind::Grpc if chance.one_in(2) => {
            let one = GrpcMatch {
                kind: MatchKind::Exact,
                service: Some("shop.Cart".into()),
                method: chance.one_in(2).then(|| "Add".into()),
                headers: Default::default(),
            };
            made.matches = Matches::Grpc(vec![one].into());
        }
        _ => {}
    }
    made
}

fn a_match(chance: &mut Chance) -> HttpMatch {
    let path = if chance.one_in(2) { "/" } else { *chance.pick(&PATHS) };
    let kind = if chance.one_in(5) { MatchKind::Exact } else { MatchKind::Prefix };
    let header = || ValueMatch { kind: MatchKind::Exact, name: "x-a".into(), value: "1".into() };
    HttpMatch {
        path: PathMatch { kind, value: path.into() },
        headers: chance.one_in(8).then(header).into_iter().collect(),
        query: Default::default(),
        method: chance.one_in(10).then(|| "POST".into()),
    }
}

fn a_redirect(chance: &mut Chance) -> Filter {
    let hostname = chance.one_in(2).then(|| *chance.pick(&["a.x.test", "b.x.test", "a.y.test", "www.example.com"]));
    let scheme = chance.one_in(2).then(|| *chance.pick(&["http", "https"]));
    let path = chance.one_in(3).then(|| PathChange::Full((*chance.pick(&["/", "/a"])).into()));
    Filter::Redirect(Redirect {
        scheme: scheme.map(Str::from),
        hostname: hostname.map(Str::from),
        path,
        port: chance.one_in(5).then(|| *chance.pick(&[80, 443, 8080, 8443])),
        status: None,
    })
}

fn a_backend(chance: &mut Chance) -> BackendRef {
    let (name, namespace) = match chance.below(16) {
        0 => ("gone", None),
        1 => ("web", Some("granted")),
        2 => ("web", Some("refused")),
        _ => ("web", None),
    };
    let foreign = chance.one_in(25);
    let target = Reference {
        group: if foreign { "multicluster.x-k8s.io".into() } else { "".into() },
        kind: if foreign { "ServiceImport".into() } else { "Service".into() },
        namespace: namespace.map(Str::from),
        name: name.into(),
    };
    let (port, weight) = (if chance.one_in(15) { 81 } else { 80 }, u32::from(!chance.one_in(8)));
    BackendRef { target, port: Some(port), weight, filters: Default::default() }
}

fn policies(chance: &mut Chance, gateways: usize) -> Vec<Object> {
    let mut all = Vec::new();
    for i in 0..chance.below(3) {
        let index = chance.below(gateways);
        let namespace = if index == 2 { "shop" } else { "infra" };
        let mut made = dns(&format!("{namespace}/p{i}"), "Gateway", &format!("g{index}"));
        spoil(chance, &mut made.meta, 20);
        made.target.section = chance.one_in(3).then(|| (*chance.pick(&["l0", "l1"])).into());
        made.allow_wildcards = *chance.pick(&[None, Some(true), Some(false)]);
        made.ttl = *chance.pick(&[None, Some(60)]);
        match chance.below(8) {
            0 => made.exclude_addresses = vec!["192.0.2.1".into()],
            1 => made.exclude_addresses = vec!["10.0.0.0/99".into()],
            2 => made.provider = Some("another".into()),
            _ => {}
        }
        all.push(Object::DnsPolicy(made));
    }
    for i in 0..chance.below(3) {
        let index = chance.below(gateways);
        let namespace = if index == 2 { "shop" } else { "infra" };
        let mut made = tls(&format!("{namespace}/p{i}"), "Gateway", &format!("g{index}"));
        spoil(chance, &mut made.meta, 20);
        made.allow_wildcards = *chance.pick(&[None, Some(true), Some(false)]);
        all.push(Object::TlsPolicy(made));
    }
    all
}

fn hostname_grants(chance: &mut Chance) -> Vec<Object> {
    let count = if chance.one_in(5) { 1 + chance.below(2) } else { 0 };
    let one = |i| {
        let mut made = grant(&format!("h{i}"), &[*chance.pick(&HOSTS)], &[*chance.pick(&["shop", "media"])]);
        spoil(chance, &mut made.meta, 15);
        Object::HostnameGrant(made)
    };
    (0..count).map(one).collect()
}

fn namespaces(chance: &mut Chance) -> Vec<Object> {
    let mut all = Vec::new();
    for name in ["infra", "shop", "media"] {
        if !chance.one_in(6) {
            all.push(Object::Namespace(namespace(name, if chance.one_in(2) { "red" } else { "blue" })));
        }
    }
    all
}

/// Services, Secrets and a ReferenceGrant; rarely no Service at all, as in files of a platform team.
fn support(chance: &mut Chance) -> Vec<Object> {
    let service = |namespace: &str| {
        let ports = vec![ServicePort { port: 80, protocol: "TCP".into() }];
        Object::Service(Service { meta: Meta::named(namespace, "web"), ports })
    };
    let from = |kind: &str| GrantFrom { group: GATEWAY_GROUP.into(), kind: kind.into(), namespace: "shop".into() };
    let reference = ReferenceGrant {
        meta: Meta::named("granted", "shop"),
        from: ["HTTPRoute", "GRPCRoute", "TLSRoute"].map(from).into(),
        to: vec![GrantTo { group: "".into(), kind: "Service".into(), name: None }],
    };
    let mut all = vec![Object::ReferenceGrant(reference)];
    if !chance.one_in(10) {
        all.extend(["shop", "media", "granted", "refused"].map(service));
    }
    let secret = |namespace: &str, name: &str, certificate: Material| {
        Object::Secret(Secret { meta: Meta::named(namespace, name), kind: "kubernetes.io/tls".into(), certificate })
    };
    let holds = |names: &[&str]| {
        let dns_names = names.iter().map(|name| Str::from(*name)).collect();
        Material::Present(Certificate { dns_names, ..Certificate::default() })
    };
    for namespace in ["infra", "shop", "media"] {
        all.push(secret(namespace, "covers", holds(&COVERED)));
        all.push(secret(namespace, "differs", holds(&["www.other.test"])));
        all.push(secret(namespace, "broken", Material::Malformed("it is empty".into())));
    }
    all.push(secret("other", "shut", holds(&COVERED)));
    all
}

/// The names of the Secret `covers`.
pub(crate) const COVERED: [&str; 5] = ["x.test", "*.x.test", "*.b.x.test", "*.y.test", "*.test"];

fn settings(chance: &mut Chance) -> PublicationSettings {
    let usual = PublicationSettings::default();
    match chance.below(20) {
        0 | 12 => PublicationSettings { publish: Publish::Governed, ..usual },
        1 => PublicationSettings { require_grants: true, ..usual },
        2 => PublicationSettings { domains: DomainFilter::new(&["x.test"], &[]), ..usual },
        3 => PublicationSettings { domains: DomainFilter::new(&[], &["b.x.test"]), ..usual },
        4 => PublicationSettings { gateway_name: Some("g0".into()), ..usual },
        5 => PublicationSettings { namespace: Some("shop".into()), ..usual },
        6 => PublicationSettings { sources: [RouteKind::Http].into(), ..usual },
        7 => PublicationSettings { gateway_classes: vec!["edge".into()], ..usual },
        8 => PublicationSettings { ignore_hostname_annotation: true, ..usual },
        9 => PublicationSettings {
            fqdn_template: Template::parse(&["{{.Name}}.{{.Namespace}}.t.test"]).unwrap(),
            ..usual
        },
        10 => PublicationSettings { status: StatusMode::Trust, ..usual },
        11 => PublicationSettings { status: StatusMode::Compute, ..usual },
        _ => usual,
    }
}
