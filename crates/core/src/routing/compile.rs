//! Compiles a topology into the lookup tables of a [`Router`].
//!
//! Rules are indexed by every hostname of their route that intersects the listener's hostname, and sorted by precedence. A
//! route is prepared once, however many listeners it is attached to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attachment::{
    BackendProblem, ClassState, GatewayState, ListenerId, ListenerState, RouteState, Topology, backends,
    routes as route_attachment,
};
use crate::model::*;
use crate::names::Hostname;
use crate::reason::{self, Reason};
use crate::snapshot::Snapshot;

use super::matching::{Score, Test};
use super::{HostIndex, IdleListener, Router, Scheme, ServingListener, WRITTEN_PRECEDENCE};

/// A route that is attached to a serving listener, prepared.
#[derive(Clone, Debug)]
pub(super) struct Attached {
    pub(super) route: Arc<Route>,
    /// Per rule, per item of its matches.
    pub(super) tests: Vec<Vec<Test>>,
    pub(super) problems: Vec<BackendProblem>,
}

/// A route that some listener of the Gateway refuses.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) route: ObjectRef,
    /// Which listener and why; no listener where none was meant.
    pub(super) verdicts: Vec<(Option<ListenerId>, Reason)>,
}

/// One item of the matches of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleMatch {
    pub(super) route: usize,
    pub(super) rule: usize,
    pub(super) item: usize,
}

/// The rules under one hostname, each list in order of precedence.
#[derive(Clone, Debug, Default)]
pub(super) struct HostnameRules {
    calls: Vec<RuleMatch>,
    requests: Vec<RuleMatch>,
    connections: Vec<RuleMatch>,
}

/// The order among rules under one hostname; smaller goes first.
pub(super) type Rank<'a> = (Reverse<Score>, (i64, &'a Key), usize, usize);

impl HostnameRules {
    /// The rules to test for a request, in order. GRPCRoutes serve only gRPC calls, and are tested first.
    pub(super) fn entries(&self, is_call: bool) -> impl Iterator<Item = RuleMatch> {
        let calls = if is_call { &self.calls[..] } else { &[] };
        calls.iter().chain(&self.requests).chain(&self.connections).copied()
    }
}

impl Router {
    pub(super) fn attached(&self, entry: RuleMatch) -> &Attached {
        &self.routes[entry.route]
    }

    pub(super) fn test(&self, entry: RuleMatch) -> &Test {
        &self.routes[entry.route].tests[entry.rule][entry.item]
    }

    pub(super) fn rank(&self, entry: RuleMatch) -> Rank<'_> {
        rank(&self.routes, entry)
    }
}

/// Compiles the routing of a Gateway.
pub(super) fn router(snapshot: &Snapshot, topology: &Topology, gateway: &Key) -> Option<Router> {
    let state = topology.gateways.get(gateway)?;
    let mut tables = Tables { snapshot, topology, routes: Vec::new(), files: BTreeMap::new(), refusals: Vec::new() };
    let mut listeners = Vec::new();
    let mut idle: BTreeMap<u16, Vec<IdleListener>> = BTreeMap::new();
    for id in &state.listeners {
        let listener = topology.listener(*id);
        match (idleness(topology, state, listener), Scheme::of(&listener.spec().protocol)) {
            (None, Some(scheme)) => {
                tables.files.insert(*id, ListenerRules::default());
                listeners.push(served(snapshot, *id, listener, scheme));
            }
            (reason, _) => idle.entry(listener.spec().port).or_default().push(idle_listener(listener, reason)),
        }
    }
    topology.routes.values().for_each(|route| tables.add(gateway, route));
    let refused_by_hostname = tables.refused_by_hostname();
    listeners.iter_mut().for_each(|listener| tables.fill(listener));
    let class = snapshot.classes.get(&state.gateway.class);
    Some(Router {
        gateway: gateway.clone(),
        refused: state.refused,
        claims_written: class.is_some_and(|class| class.features.iter().any(|f| &**f == WRITTEN_PRECEDENCE)),
        listeners_by_hostname: listeners_by_hostname(&listeners),
        listeners,
        idle,
        routes: tables.routes,
        refused_by_hostname,
        refusals: tables.refusals,
    })
}

/// The rules of one listener while they are collected.
#[derive(Default)]
struct ListenerRules {
    named: BTreeMap<Hostname, HostnameRules>,
    raw: Vec<RuleMatch>,
}

struct Tables<'a> {
    snapshot: &'a Snapshot,
    topology: &'a Topology,
    routes: Vec<Attached>,
    /// By serving listener.
    files: BTreeMap<ListenerId, ListenerRules>,
    refusals: Vec<Refused>,
}

impl Tables<'_> {
    fn add(&mut self, gateway: &Key, state: &RouteState) {
        let parents = || (0..state.parents.len()).filter(|parent| state.parents[*parent].gateway() == Some(gateway));
        // A route that an API server would refuse gets no requests (D30).
        if let Some(invalid) = state.route.meta.invalid.as_ref().filter(|_| parents().next().is_some()) {
            self.refusals.push(Refused { route: state.route.object(), verdicts: vec![(None, invalid.reason)] });
            return;
        }
        let attachments = parents().flat_map(|parent| &state.parents[parent].attached);
        let attached: BTreeSet<ListenerId> = attachments.map(|attachment| attachment.listener).collect();
        let serving: Vec<_> = attached.iter().filter(|id| self.files.contains_key(id)).copied().collect();
        if !serving.is_empty() {
            self.routes.push(Attached::new(self.snapshot, state));
            serving.into_iter().for_each(|id| self.file(id, &state.route));
        }
        let refusals = parents().flat_map(|parent| refusals(self.snapshot, self.topology, state, parent));
        let verdicts: Vec<_> = refusals.filter(|(id, _)| !id.is_some_and(|id| attached.contains(&id))).collect();
        if !verdicts.is_empty() {
            self.refusals.push(Refused { route: state.route.object(), verdicts });
        }
    }

    /// Indexes the route that was added last by its hostnames.
    fn file(&mut self, id: ListenerId, route: &Route) {
        let index = self.routes.len() - 1;
        let Some(file) = self.files.get_mut(&id) else { return };
        let tests = self.routes[index].tests.iter().enumerate();
        let items = tests.flat_map(|(rule, items)| (0..items.len()).map(move |item| (rule, item)));
        let entries: Vec<_> = items.map(|(rule, item)| RuleMatch { route: index, rule, item }).collect();
        if !route.kind.has_hostnames() {
            file.raw.extend(entries);
            return;
        }
        for hostname in written(route).filter(|name| self.topology.listener(id).hostname.intersect(name).is_some()) {
            let group = file.named.entry(hostname).or_default();
            group.list(route.kind.traffic()).extend(&entries);
        }
    }

    /// Moves the rules of a listener to it, sorted.
    fn fill(&mut self, listener: &mut ServingListener) {
        let Some(mut file) = self.files.remove(&listener.id) else { return };
        let routes = &self.routes;
        let sort = |list: &mut Vec<RuleMatch>| list.sort_by(|a, b| rank(routes, *a).cmp(&rank(routes, *b)));
        sort(&mut file.raw);
        for group in file.named.values_mut() {
            [&mut group.calls, &mut group.requests, &mut group.connections].into_iter().for_each(sort);
        }
        listener.raw = file.raw;
        listener.named = file.named.into_iter().collect();
    }

    fn refused_by_hostname(&self) -> HostIndex<Vec<usize>> {
        let mut names: BTreeMap<Hostname, Vec<usize>> = BTreeMap::new();
        for (i, refused) in self.refusals.iter().enumerate() {
            let route = self.topology.routes.get(&refused.route).map(|state| &state.route);
            for name in route.into_iter().flat_map(|route| written(route)) {
                names.entry(name).or_default().push(i);
            }
        }
        names.into_iter().collect()
    }
}

impl Attached {
    fn new(snapshot: &Snapshot, state: &RouteState) -> Self {
        let tests = state.route.rules.iter().map(|rule| Test::of(state.route.kind, &rule.matches)).collect();
        let problems = state.backends.iter().cloned().chain(backends::missing_ports(snapshot, state)).collect();
        Attached { route: state.route.clone(), tests, problems }
    }
}

impl HostnameRules {
    fn list(&mut self, traffic: TrafficKind) -> &mut Vec<RuleMatch> {
        match traffic {
            TrafficKind::Calls => &mut self.calls,
            TrafficKind::Requests => &mut self.requests,
            TrafficKind::Connections => &mut self.connections,
        }
    }
}

fn rank(routes: &[Attached], entry: RuleMatch) -> Rank<'_> {
    let attached = &routes[entry.route];
    let score = attached.tests[entry.rule][entry.item].score();
    (Reverse(score), attached.route.meta.seniority(), entry.rule, entry.item)
}

/// The hostnames of a route, each once; `*` where it has none.
fn written(route: &Route) -> impl Iterator<Item = Hostname> {
    let names: BTreeSet<Hostname> = route.hostnames.iter().filter_map(|w| w.name().ok().cloned()).collect();
    let any = (route.hostnames.is_empty() || !route.kind.has_hostnames()).then(Hostname::any);
    any.into_iter().chain(names.into_iter().filter(|_| route.kind.has_hostnames()))
}

/// The listeners that refuse a parentRef. Disjoint hostnames are left out: no request matches both.
fn refusals(
    snapshot: &Snapshot,
    topology: &Topology,
    route: &RouteState,
    parent: usize,
) -> Vec<(Option<ListenerId>, Reason)> {
    let candidates = route_attachment::candidates(snapshot, topology, route, parent);
    if candidates.is_empty() {
        return route.parents[parent].refused.map(|reason| (None, reason)).into_iter().collect();
    }
    let errors = candidates.iter().filter_map(|c| Some((Some(c.listener), *c.verdict.as_ref().err()?)));
    errors.filter(|(_, reason)| *reason != reason::NO_COMMON_HOSTNAME).collect()
}

/// Why a listener takes no requests.
fn idleness(topology: &Topology, gateway: &GatewayState, listener: &ListenerState) -> Option<Reason> {
    let set = topology.sets.get(&listener.owner.object()).and_then(|set| set.refused);
    let conflict = listener.conflict.map(|conflict| conflict.reason);
    let absent = match gateway.class {
        ClassState::Missing => Some(reason::GATEWAY_CLASS_MISSING),
        ClassState::NotOurs => Some(reason::GATEWAY_CLASS_NOT_OURS),
        ClassState::Known(_) | ClassState::NotInInput => None,
    };
    absent.or(gateway.refused).or(listener.refused).or(conflict).or(set)
}

fn idle_listener(listener: &ListenerState, reason: Option<Reason>) -> IdleListener {
    let reason = reason.unwrap_or(reason::PROTOCOL_UNSUPPORTED);
    IdleListener { key: listener.key(), hostname: written_hostname(listener), reason }
}

/// The hostname of a listener as it is written, whatever else is wrong with it.
fn written_hostname(listener: &ListenerState) -> Hostname {
    let written = listener.spec().hostname.as_ref().and_then(|written| written.name().ok().cloned());
    written.unwrap_or_else(Hostname::any)
}

fn served(snapshot: &Snapshot, id: ListenerId, listener: &ListenerState, scheme: Scheme) -> ServingListener {
    let spec = listener.spec();
    ServingListener {
        id,
        key: listener.key(),
        hostname: listener.hostname.clone(),
        port: spec.port,
        scheme,
        has_filters: spec.has_filters,
        is_terminating: spec.terminates_tls(),
        certificate: listener.certificates.first().map(|problem| problem.reason),
        certified: certified(snapshot, listener),
        named: HostIndex::new(),
        raw: Vec::new(),
    }
}

/// The names of a listener's certificates, if it ends TLS and all of them can be read.
fn certified(snapshot: &Snapshot, listener: &ListenerState) -> Option<Vec<Hostname>> {
    let spec = listener.spec();
    let references = spec.tls.as_ref().map(|tls| &tls.certificates).filter(|all| !all.is_empty())?;
    if !spec.terminates_tls() || !listener.certificates.is_empty() {
        return None;
    }
    let own = &listener.owner.meta().key.namespace;
    let mut names = Vec::new();
    for reference in references {
        let key = Key::new(reference.namespace_or(own).clone(), reference.name.clone());
        let Material::Present(certificate) = &snapshot.secrets.get(&key)?.certificate else { return None };
        names.extend(certificate.dns_names.iter().filter_map(|name| Hostname::parse(name).ok()));
    }
    Some(names)
}

fn listeners_by_hostname(listeners: &[ServingListener]) -> BTreeMap<(u16, Scheme), HostIndex<usize>> {
    let mut listeners_by_hostname: BTreeMap<(u16, Scheme), HostIndex<usize>> = BTreeMap::new();
    for (i, listener) in listeners.iter().enumerate() {
        let index = listeners_by_hostname.entry((listener.port, listener.scheme)).or_default();
        // Serving listeners do not conflict, so that no hostname is there twice.
        index.insert(listener.hostname.clone(), i);
    }
    listeners_by_hostname
}
