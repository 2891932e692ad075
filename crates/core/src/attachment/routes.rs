//! Attachment of routes: the result of each parentRef.
//!
//! The checks have a fixed order, and the first that fails is the reason: the parent exists, it has a matching
//! listener, the listener allows this kind and this namespace, the hostnames intersect. Nothing here looks at status,
//! policies or addresses.

use super::*;
use crate::selector::Selector;

/// Evaluates all routes, and counts the routes attached to each listener.
pub(super) fn build(topology: &mut Topology, snapshot: &Snapshot, grants: &Grants) {
    let attach = |(object, route): (&ObjectRef, &Arc<Route>)| {
        (object.clone(), Arc::new(attach_route(snapshot, topology, grants, route)))
    };
    topology.routes = snapshot.routes.iter().map(attach).collect();
    for listener in topology.routes.values().flat_map(|route| counted_listeners(route)) {
        *topology.attached.entry(listener).or_default() += 1;
    }
}

/// The result of each parentRef of a route.
pub(crate) fn attach_route(
    snapshot: &Snapshot,
    topology: &Topology,
    grants: &Grants,
    route: &Arc<Route>,
) -> RouteState {
    let parents = route.parents.iter().map(|parent| attach_parent(snapshot, topology, route, parent)).collect();
    RouteState { route: route.clone(), parents, backends: backends::problems(snapshot, grants, route) }
}

/// The properties of a listener that decide whether a route attaches; no other property does.
///
/// `incremental` compares two of these to find out whether routes must be evaluated again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttachmentRules<'a> {
    name: &'a Str,
    port: u16,
    is_part_of_gateway: bool,
    is_refused: bool,
    kinds: &'a [RouteKind],
    owner_namespace: &'a Str,
    allowed_namespaces: &'a Admission,
    hostname: &'a Hostname,
}

impl<'a> AttachmentRules<'a> {
    /// The rules of a listener.
    pub(crate) fn of(listener: &'a ListenerState) -> Self {
        let spec = listener.spec();
        AttachmentRules {
            name: &spec.name,
            port: spec.port,
            is_part_of_gateway: listener.gateway.is_some(),
            is_refused: listener.refused.is_some(),
            kinds: &listener.supported_kinds,
            owner_namespace: &listener.owner.meta().key.namespace,
            allowed_namespaces: &spec.allowed_routes.namespaces,
            hostname: &listener.hostname,
        }
    }

    /// Whether a parentRef to the listener's owner also refers to the listener.
    pub(crate) fn is_referred_to(&self, parent: &ParentRef) -> bool {
        parent.section.as_ref().is_none_or(|section| section == self.name)
            && parent.port.is_none_or(|port| port == self.port)
    }

    /// The intersected hostnames of a route that refers to the listener, or why it does not attach.
    pub(crate) fn attach(&self, snapshot: &Snapshot, route: &Route) -> Result<ShortVec<Intersection>, Reason> {
        if !self.is_part_of_gateway {
            return Err(reason::LISTENER_SET_NOT_ATTACHED);
        }
        if !self.kinds.contains(&route.kind) {
            return Err(if self.is_refused { reason::LISTENER_REFUSED } else { reason::ROUTE_KIND_NOT_ALLOWED });
        }
        let namespace = &route.meta.key.namespace;
        let is_selected = |selector: &Selector| snapshot.is_namespace_selected(namespace, selector);
        if !listener_sets::admits(self.allowed_namespaces, self.owner_namespace, namespace, is_selected) {
            return Err(reason::NAMESPACE_NOT_ALLOWED);
        }
        let common = intersections(route, self.hostname);
        if common.is_empty() { Err(reason::NO_COMMON_HOSTNAME) } else { Ok(common) }
    }

    /// Whether the hostnames of a route and the listener intersect.
    pub(crate) fn may_intersect(&self, route: &Route) -> bool {
        let mut names = route.hostnames.iter().filter_map(|written| written.name().ok());
        !route.kind.has_hostnames() || route.hostnames.is_empty() || names.any(|name| name.overlaps(self.hostname))
    }
}

/// The position of a reason in the order of checks: how many checks a candidate passed before it.
pub(crate) fn progress(reason: Reason) -> usize {
    const CHECKS: [Reason; 5] = [
        reason::LISTENER_SET_NOT_ATTACHED,
        reason::LISTENER_REFUSED,
        reason::ROUTE_KIND_NOT_ALLOWED,
        reason::NAMESPACE_NOT_ALLOWED,
        reason::NO_COMMON_HOSTNAME,
    ];
    CHECKS.iter().position(|check| *check == reason).unwrap_or(0)
}

/// Every listener that a parentRef could refer to, with the verdict on each.
pub fn candidates(snapshot: &Snapshot, topology: &Topology, route: &RouteState, parent: usize) -> Vec<Candidate> {
    let verdict = |id| AttachmentRules::of(topology.listener(id)).attach(snapshot, &route.route);
    let referred = referred_listeners(topology, route, parent);
    referred.map(|listener| Candidate { listener, verdict: verdict(listener) }).collect()
}

/// Every listener that a parentRef could refer to, in the order of the parent.
pub fn referred_listeners<'a>(
    topology: &'a Topology,
    route: &'a RouteState,
    parent: usize,
) -> impl Iterator<Item = ListenerId> + use<'a> {
    let both = route.route.parents.get(parent).zip(route.parents.get(parent));
    both.into_iter().flat_map(|(reference, state)| {
        let all = listeners_behind(topology, &state.target).map(ListenerIndex::all).unwrap_or_default();
        all.iter().copied().filter(|id| AttachmentRules::of(topology.listener(*id)).is_referred_to(reference))
    })
}

/// The listeners that a route attaches to, each once, in the order of their ids.
pub(crate) fn attached_listeners(route: &RouteState) -> ShortVec<ListenerId> {
    let mut attached: ShortVec<ListenerId> = route.attachments().map(|attachment| attachment.listener).collect();
    attached.sort_unstable();
    attached.dedup();
    attached
}

/// The listeners whose `attachedRoutes` count a route: those it attaches to, unless an API server would refuse it.
pub(crate) fn counted_listeners(route: &RouteState) -> ShortVec<ListenerId> {
    if route.route.meta.invalid.is_some() { ShortVec::new() } else { attached_listeners(route) }
}

/// The hostnames that a route and a listener's hostname have in common, in the route's order and without repetition.
pub fn intersections(route: &Route, listener: &Hostname) -> ShortVec<Intersection> {
    if !route.kind.has_hostnames() || route.hostnames.is_empty() {
        return smallvec![Intersection { hostname: listener.clone(), written: None }];
    }
    let mut common: ShortVec<Intersection> = ShortVec::new();
    for (i, written) in route.hostnames.iter().enumerate() {
        let hostname = written.name().ok().and_then(|name| listener.intersect(name));
        if let Some(hostname) = hostname.filter(|name| common.iter().all(|c| c.hostname != *name)) {
            common.push(Intersection { hostname, written: Some(i as u32) });
        }
    }
    common
}

/// The result of one parentRef.
fn attach_parent(snapshot: &Snapshot, topology: &Topology, route: &Route, parent: &ParentRef) -> ParentState {
    let target = target(topology, &route.meta.key.namespace, &parent.target);
    let Some(index) = listeners_behind(topology, &target) else {
        return ParentState { target, attached: ShortVec::new(), refused: None };
    };
    let attach = |id: ListenerId| {
        let rules = AttachmentRules::of(topology.listener(id));
        rules.is_referred_to(parent).then(|| rules.attach(snapshot, route))
    };
    let attachment = |listener| Some(Attachment { listener, names: attach(listener)?.ok()? });
    let attached: ShortVec<Attachment> = index.candidates(route, parent).into_iter().filter_map(attachment).collect();
    // The reason comes from the listener that passed the most checks.
    let refusal = || index.all().iter().filter_map(|id| attach(*id)?.err()).max_by_key(|reason| progress(*reason));
    let refused = attached.is_empty().then(|| refusal().unwrap_or(reason::SECTION_NOT_FOUND));
    ParentState { target, attached, refused }
}

/// The listeners of the object that a parentRef refers to. A Gateway's ListenerSets are not included.
fn listeners_behind<'a>(topology: &'a Topology, target: &ParentTarget) -> Option<&'a ListenerIndex> {
    match target {
        ParentTarget::Gateway(key) => topology.gateways.get(key).map(|state| &state.listener_index),
        ParentTarget::Set(set, _) => topology.sets.get(set).map(|state| &state.listener_index),
        ParentTarget::Missing | ParentTarget::OutOfScope | ParentTarget::OtherKind => None,
    }
}

fn target(topology: &Topology, own: &Str, target: &Reference) -> ParentTarget {
    let key = Key::new(target.namespace_or(own).clone(), target.name.clone());
    match Kind::of(&target.group, &target.kind) {
        Some(Kind::Gateway) => match topology.gateways.get(&key) {
            Some(gateway) if gateway.is_in_scope() => ParentTarget::Gateway(key),
            Some(_) => ParentTarget::OutOfScope,
            None => ParentTarget::Missing,
        },
        Some(kind @ (Kind::ListenerSet | Kind::XListenerSet)) => set_target(topology, ObjectRef { kind, key }),
        _ => ParentTarget::OtherKind,
    }
}

fn set_target(topology: &Topology, object: ObjectRef) -> ParentTarget {
    match topology.sets.get(&object) {
        None => ParentTarget::Missing,
        Some(state) if state.gateway.is_some() => ParentTarget::Set(object, state.gateway.clone()),
        Some(state) if state.refused == Some(reason::LISTENER_SET_NOT_ALLOWED) => ParentTarget::Set(object, None),
        Some(_) => ParentTarget::OutOfScope,
    }
}
