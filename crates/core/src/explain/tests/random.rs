//! The same statement over worlds in which much more is wrong: ListenerSets, TLS and TCP, policies, grants, annotations, status.
//!
//! The judge knows what the generator writes, and the answers of the router. It shares no code with the explanation.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::request;
use crate::attachment::{ListenerId, ListenerState, RouteState, Scope, Topology};
use crate::explain::{ExplainIndex, NameVerdict};
use crate::lint::LintContext;
use crate::model::*;
use crate::names::Hostname;
use crate::publication::tests::random_world::{COVERED, QUESTIONS, RandomWorld};
use crate::publication::{self, Desired, NameSource};
use crate::routing::{GatewayRequest, Router, RoutingAnswer, RoutingOutcome, Scheme};
use crate::snapshot::{Origin, Snapshot};

struct WorldJudge {
    snapshot: Snapshot,
    topology: Topology,
    desired: Desired,
}

/// Why a name is not right.
type Judgement = Result<(), String>;

impl WorldJudge {
    fn of(world: &RandomWorld) -> Self {
        let snapshot = world.snapshot();
        let topology = Topology::build(&snapshot, &Scope { classes: world.settings.gateway_classes.clone() });
        let desired = publication::build(&snapshot, &topology, &world.settings);
        WorldJudge { snapshot, topology, desired }
    }

    /// Whether the name is in the plan, and at every listener that serves it all requests that routes match are served.
    fn judge(&self, name: &Hostname) -> Judgement {
        let sites = self.sites(name);
        if sites.is_empty() {
            return Err("nothing serves it, or it is not in the plan".to_owned());
        }
        for id in sites.iter().map(|(_, id)| *id) {
            self.certified(self.topology.listener(id), name)?;
        }
        for state in self.topology.routes.values() {
            let (mut asked, mut gets) = (0, 0);
            for id in sites.iter().filter(|(route, _)| *route == state.route.object()).map(|(_, id)| *id) {
                for request in self.requests(id, &state.route, name) {
                    let answer = self.answer(self.gateway(id), &request);
                    self.served(self.gateway(id), &request, &answer)?;
                    asked += 1;
                    gets += usize::from(answer.route == Some(state.route.object()));
                }
            }
            let is_named = state.route.hostnames.iter().any(|written| written.name() == Ok(name));
            if is_named && asked > 0 && gets == 0 {
                return Err(format!("{} loses every request", state.route.object()));
            }
        }
        Ok(())
    }

    fn gateway(&self, id: ListenerId) -> &Key {
        self.topology.listener(id).gateway.as_ref().unwrap()
    }

    /// Routes at the listeners of the Gateways that the name resolves to.
    fn sites(&self, name: &Hostname) -> BTreeSet<(ObjectRef, ListenerId)> {
        let records = self.desired.answer(name.as_str());
        let ids: Vec<(ListenerId, &ListenerState)> = self.topology.listener_ids().collect();
        let gateway_of = |key| ids.iter().find(|(_, l)| l.key() == key).and_then(|(_, l)| l.gateway.clone());
        let gateways: BTreeSet<Key> =
            records.iter().flat_map(|r| r.listeners.iter()).filter_map(|key| gateway_of(key.clone())).collect();
        let is_added = |source| matches!(source, NameSource::Annotation | NameSource::Template);
        let mut sites = BTreeSet::new();
        for (state, id, names) in self.topology.attachments() {
            let (object, listener) = (state.route.object(), self.topology.listener(id));
            let is_here = listener.gateway.as_ref().is_some_and(|gateway| gateways.contains(gateway));
            let is_written = names.iter().any(|n| n.hostname.contains(name)) && listener.spec().protocol.has_hostname();
            let is_annotated = records.iter().any(|r| {
                *r.name == *name.as_str()
                    && is_added(r.source)
                    && r.routes.contains(&object)
                    && r.listeners.contains(&listener.key())
            });
            if is_here && listener.is_serving() && state.route.meta.invalid.is_none() && (is_written || is_annotated) {
                sites.insert((object, id));
            }
        }
        sites
    }

    fn certified(&self, listener: &ListenerState, name: &Hostname) -> Judgement {
        let spec = listener.spec();
        if !spec.terminates_tls() {
            return Ok(());
        }
        let wide = name.as_str().split_once('.').map(|(_, rest)| format!("*.{rest}")).unwrap_or_default();
        let covers = COVERED.contains(&name.as_str()) || COVERED.contains(&&*wide);
        let gateway = &self.topology.gateways[listener.gateway.as_ref().unwrap()].gateway.meta;
        let is_provided = gateway.annotations.iter().any(|(key, _)| key.starts_with("cert-manager.io/"));
        let mut secrets = spec.tls.iter().flat_map(|tls| &tls.certificates).map(|reference| &*reference.name);
        let is_good = |secret| match secret {
            "covers" => covers,
            "elsewhere-altogether" => self.snapshot.origin == Origin::Files || is_provided,
            _ => false,
        };
        if secrets.any(is_good) { Ok(()) } else { Err(format!("no certificate at {}", listener.key())) }
    }

    /// One request per match of a route.
    fn requests(&self, id: ListenerId, route: &Route, name: &Hostname) -> Vec<GatewayRequest> {
        let listener = self.topology.listener(id).spec();
        let host = name.as_str().replace('*', "any");
        let scheme = Scheme::of(&listener.protocol).unwrap();
        let plain = GatewayRequest { scheme, port: listener.port, ..request(&format!("http://{host}/")) };
        let mut all = Vec::new();
        for rule in route.rules.iter() {
            match &rule.matches {
                Matches::Http(items) => all.extend(items.iter().map(|item| GatewayRequest {
                    path: item.path.value.to_string(),
                    method: item.method.as_deref().unwrap_or("GET").to_owned(),
                    headers: item.headers.iter().map(|h| (h.name.to_string(), h.value.to_string())).collect(),
                    ..plain.clone()
                })),
                Matches::Grpc(items) => all.extend(items.iter().map(|item| call(&plain, item))),
                Matches::Everything if route.kind == RouteKind::Grpc => all.push(GatewayRequest {
                    grpc: true,
                    method: "POST".into(),
                    path: "/a.Service/Call".into(),
                    ..plain.clone()
                }),
                Matches::Everything => all.push(plain.clone()),
            }
        }
        all
    }

    fn answer(&self, gateway: &Key, request: &GatewayRequest) -> RoutingAnswer {
        Router::compile(&self.snapshot, &self.topology, gateway).unwrap().route(request)
    }

    /// Follows redirects to their end.
    fn served(&self, gateway: &Key, request: &GatewayRequest, answer: &RoutingAnswer) -> Judgement {
        let (mut gateway, mut answer, mut seen) = (gateway.clone(), answer.clone(), BTreeSet::new());
        let start = |r: &GatewayRequest| (r.scheme, r.host.clone(), r.port, r.path.clone());
        seen.insert(start(request));
        loop {
            self.forwarded(&answer)?;
            let Some(location) = answer.location.clone() else { return Ok(()) };
            let next = super::request(&location);
            if !seen.insert(start(&next)) {
                return Err(format!("redirects to {location} in a circle"));
            }
            if next.host != request.host && !self.is_named(&next.host) {
                return Ok(());
            }
            let there = self.gateways_of(&next.host);
            let is_present = next.host == request.host || there.contains(&gateway) || there.is_empty();
            let there = if is_present { BTreeSet::from([gateway.clone()]) } else { there };
            let answers: Vec<(Key, RoutingAnswer)> =
                there.into_iter().map(|key| (key.clone(), self.answer(&key, &next))).collect();
            answers.iter().try_for_each(|(_, answer)| self.forwarded(answer))?;
            (gateway, answer) = answers.into_iter().next().unwrap();
        }
    }

    /// Whether an answer sends the request somewhere, as far as the input can tell.
    fn forwarded(&self, answer: &RoutingAnswer) -> Judgement {
        let (Some(route), Some(rule)) = (&answer.route, answer.rule) else {
            return Err(format!("{:?}: {:?}", answer.outcome, answer.because));
        };
        let state = &self.topology.routes[route];
        if state.route.meta.invalid.is_some() {
            return Err(format!("an API server would refuse {route}"));
        }
        if answer.outcome == RoutingOutcome::Redirect {
            return Ok(());
        }
        let rule = &state.route.rules[rule];
        let weighted: Vec<&BackendRef> = rule.backends.iter().filter(|backend| backend.weight > 0).collect();
        let is_unknown = rule.filters.iter().any(|filter| matches!(filter, Filter::Extension(_)));
        match weighted.iter().any(|backend| !self.is_usable(state, backend)) {
            true => Err(format!("a backend of {route} cannot be used")),
            false if weighted.is_empty() && !is_unknown => Err(format!("a rule of {route} has no backend")),
            false => Ok(()),
        }
    }

    fn is_usable(&self, state: &RouteState, backend: &BackendRef) -> bool {
        let (own, kind) = (&*state.route.meta.key.namespace, state.route.kind);
        let is_permitted = match backend.target.namespace.as_deref() {
            Some("granted") => own == "shop" && matches!(kind, RouteKind::Http | RouteKind::Grpc | RouteKind::Tls),
            Some(namespace) => namespace == own,
            None => true,
        };
        let services = &self.snapshot.services;
        let key = Key::new(backend.target.namespace_or(&state.route.meta.key.namespace).clone(), "web");
        let is_there = &*backend.target.name == "web" && services.contains_key(&key);
        let is_open = self.snapshot.origin == Origin::Files && services.is_empty();
        &*backend.target.kind != "Service" || is_permitted && (is_open || is_there && backend.port == Some(80))
    }

    fn gateways_of(&self, host: &str) -> BTreeSet<Key> {
        let attached = self.topology.attachments().filter(|(state, _, names)| {
            state.route.kind.has_hostnames() && names.iter().any(|n| n.hostname.matches(host))
        });
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

    /// The first name about which judge and explanation do not agree.
    fn disagreement(&self) -> Option<String> {
        let context = LintContext { snapshot: &self.snapshot, topology: &self.topology };
        let mut index = ExplainIndex::new(context, &self.desired);
        QUESTIONS.iter().find_map(|name| {
            let name = Hostname::parse(name).unwrap();
            let (explanation, publication) = index.explain(&name);
            let verdict = publication.verdict(&explanation);
            let cause = publication.cause(&explanation).map(|d| format!("{:?}: {} {}", d.object, d.reason, d.message));
            let judged = self.judge(&name);
            let is_odd = cause.is_some() == matches!(verdict, NameVerdict::Works | NameVerdict::NotAsked);
            if (verdict == NameVerdict::Works) != judged.is_ok() {
                return Some(format!("{name}: {verdict:?} {cause:?}, judged {judged:?}"));
            }
            is_odd.then(|| format!("{name}: {verdict:?} with the cause {cause:?}"))
        })
    }
}

fn call(plain: &GatewayRequest, item: &GrpcMatch) -> GatewayRequest {
    let path = format!("/{}/{}", item.service.as_deref().unwrap(), item.method.as_deref().unwrap_or("Call"));
    GatewayRequest { grpc: true, method: "POST".into(), path, ..plain.clone() }
}

/// Panics with the smallest part of the world in which judge and explanation do not agree.
fn check(seed: u64) {
    let world = RandomWorld::of(seed);
    if WorldJudge::of(&world).disagreement().is_some() {
        let world = world.reduced(|world| WorldJudge::of(world).disagreement().is_some());
        panic!("{}\n{world:?}seed {seed}", WorldJudge::of(&world).disagreement().unwrap_or_default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn explain_agrees_with_plan_and_route_in_any_world(seed in any::<u64>()) {
        check(seed);
    }
}

/// The worlds are worth something only if every verdict occurs in them.
#[test]
fn random_worlds_have_every_verdict() {
    let mut seen = BTreeSet::new();
    for seed in 0..40 {
        let judge = WorldJudge::of(&RandomWorld::of(seed));
        let context = LintContext { snapshot: &judge.snapshot, topology: &judge.topology };
        let mut index = ExplainIndex::new(context, &judge.desired);
        seen.extend(QUESTIONS.map(|name| {
            let (explanation, publication) = index.explain(&Hostname::parse(name).unwrap());
            publication.verdict(&explanation)
        }));
    }
    let wanted = [
        NameVerdict::Works,
        NameVerdict::RequestsFail,
        NameVerdict::NotPublished,
        NameVerdict::NotAttached,
        NameVerdict::NotAsked,
    ];
    assert_eq!(seen, wanted.into());
}
