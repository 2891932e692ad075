//! Attachment: what becomes of each parentRef of each route.
//!
//! The questions are asked in a fixed order and the first "no" is the reason: is the parent there, has it such a listener, does
//! the listener take this kind and this namespace, do the hostnames have something in common.

use std::collections::BTreeMap;

use super::*;

/// Fills in the routes, and how many are attached to each listener.
pub(super) fn build(topology: &mut Topology, snapshot: &Snapshot, grants: &Grants) {
    let mut binder = Binder { snapshot, topology, namespace: Str::default(), admitted: BTreeMap::new() };
    let mut routes = BTreeMap::new();
    for (object, route) in &snapshot.routes {
        let parents: Vec<_> = route.parents.iter().map(|parent| binder.parent(route, parent)).collect();
        let backends = backends::problems(snapshot, grants, route);
        routes.insert(object.clone(), RouteState { route: route.clone(), parents, backends });
    }
    count_attached(&mut topology.listeners, &routes);
    topology.routes = routes;
}

/// The hostnames that a route and a listener's hostname have in common, in the route's order and without repetition.
pub fn intersections(route: &Route, listener: &Hostname) -> Vec<Intersection> {
    if !route.kind.has_hostnames() || route.hostnames.is_empty() {
        return vec![Intersection { hostname: listener.clone(), written: None }];
    }
    let mut common: Vec<Intersection> = Vec::new();
    for (i, written) in route.hostnames.iter().enumerate() {
        let hostname = written.name.as_ref().ok().and_then(|name| listener.intersect(name));
        if let Some(hostname) = hostname.filter(|name| common.iter().all(|c| c.hostname != *name)) {
            common.push(Intersection { hostname, written: Some(i) });
        }
    }
    common
}

struct Binder<'a> {
    snapshot: &'a Snapshot,
    topology: &'a Topology,
    /// The namespace of the last route; routes come ordered by namespace.
    namespace: Str,
    /// Which listeners admit that namespace, as far as asked.
    admitted: BTreeMap<ListenerId, bool>,
}

impl Binder<'_> {
    fn parent(&mut self, route: &Route, parent: &ParentRef) -> ParentState {
        let target = self.target(route, parent);
        let listeners: &[ListenerId] = match &target {
            ParentTarget::Gateway(key) => own_listeners(self.topology, key),
            ParentTarget::Set(set, _) => self.topology.sets.get(set).map_or(&[], |state| &state.listeners),
            _ => return ParentState { target, candidates: Vec::new(), refused: None },
        };
        let relevant = listeners.iter().copied().filter(|id| is_meant(self.topology.listener(*id).spec(), parent));
        let relevant: Vec<_> = relevant.collect();
        let candidates: Vec<_> = relevant.into_iter().map(|id| self.candidate(route, id)).collect();
        let refused = refusal(&candidates);
        ParentState { target, candidates, refused }
    }

    fn target(&self, route: &Route, parent: &ParentRef) -> ParentTarget {
        let target = &parent.target;
        let key = Key::new(target.namespace_or(&route.meta.key.namespace).clone(), target.name.clone());
        match Kind::of(&target.group, &target.kind) {
            Some(Kind::Gateway) => match self.topology.gateways.get(&key) {
                Some(gateway) if gateway.is_in_scope() => ParentTarget::Gateway(key),
                Some(_) => ParentTarget::OutOfScope,
                None => ParentTarget::Missing,
            },
            Some(kind @ (Kind::ListenerSet | Kind::XListenerSet)) => self.set_target(ObjectRef { kind, key }),
            _ => ParentTarget::OtherKind,
        }
    }

    fn set_target(&self, object: ObjectRef) -> ParentTarget {
        match self.topology.sets.get(&object) {
            None => ParentTarget::Missing,
            Some(state) if state.gateway.is_some() => ParentTarget::Set(object, state.gateway.clone()),
            Some(state) if state.refused == Some(reason::LISTENER_SET_NOT_ALLOWED) => ParentTarget::Set(object, None),
            Some(_) => ParentTarget::OutOfScope,
        }
    }

    fn candidate(&mut self, route: &Route, id: ListenerId) -> Candidate {
        let listener = self.topology.listener(id);
        let verdict = if listener.gateway.is_none() {
            Err(reason::LISTENER_SET_NOT_ATTACHED)
        } else if !listener.supported_kinds.contains(&route.kind) {
            Err(if listener.refused.is_some() { reason::LISTENER_REFUSED } else { reason::ROUTE_KIND_NOT_ALLOWED })
        } else if !self.admits(id, &route.meta.key.namespace) {
            Err(reason::NAMESPACE_NOT_ALLOWED)
        } else {
            let common = intersections(route, &listener.hostname);
            if common.is_empty() { Err(reason::NO_COMMON_HOSTNAME) } else { Ok(common) }
        };
        Candidate { listener: id, verdict }
    }

    fn admits(&mut self, id: ListenerId, namespace: &Str) -> bool {
        let (snapshot, topology) = (self.snapshot, self.topology);
        if self.namespace != *namespace {
            self.namespace = namespace.clone();
            self.admitted.clear();
        }
        *self.admitted.entry(id).or_insert_with(|| {
            let listener = topology.listener(id);
            let own = &listener.owner.meta().key.namespace;
            sets::admits(snapshot, &listener.spec().allowed_routes.namespaces, own, namespace)
        })
    }
}

/// A Gateway's own listeners: a route that names the Gateway never sees those of its ListenerSets.
fn own_listeners<'a>(topology: &'a Topology, gateway: &Key) -> &'a [ListenerId] {
    let Some(state) = topology.gateways.get(gateway) else { return &[] };
    &state.listeners[..state.gateway.listeners.len()]
}

fn is_meant(listener: &Listener, parent: &ParentRef) -> bool {
    parent.section.as_ref().is_none_or(|section| *section == listener.name)
        && parent.port.is_none_or(|port| port == listener.port)
}

/// Why a route is not accepted: the gate that let most candidates through speaks.
fn refusal(candidates: &[Candidate]) -> Option<Reason> {
    if candidates.is_empty() {
        return Some(reason::SECTION_NOT_FOUND);
    }
    if candidates.iter().any(|c| c.verdict.is_ok()) {
        return None;
    }
    candidates.iter().filter_map(|c| c.verdict.as_ref().err().copied()).max_by_key(|r| gate(*r))
}

/// How far a candidate came before it was refused.
fn gate(reason: Reason) -> usize {
    const GATES: [Reason; 5] = [
        reason::LISTENER_SET_NOT_ATTACHED,
        reason::LISTENER_REFUSED,
        reason::ROUTE_KIND_NOT_ALLOWED,
        reason::NAMESPACE_NOT_ALLOWED,
        reason::NO_COMMON_HOSTNAME,
    ];
    GATES.iter().position(|g| *g == reason).unwrap_or(0)
}

/// Counts routes, so that one that reaches a listener through two parentRefs counts once.
fn count_attached(listeners: &mut [ListenerState], routes: &BTreeMap<ObjectRef, RouteState>) {
    for route in routes.values() {
        let candidates = route.parents.iter().flat_map(|p| &p.candidates).filter(|c| c.verdict.is_ok());
        let mut attached: Vec<_> = candidates.map(|c| c.listener).collect();
        attached.sort_unstable();
        attached.dedup();
        for id in attached {
            listeners[id.0 as usize].attached_routes += 1;
        }
    }
}
