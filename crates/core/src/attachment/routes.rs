//! Attachment: what becomes of each parentRef of each route.
//!
//! The questions are asked in a fixed order and the first "no" is the reason: is the parent there, has it such a listener, does
//! the listener take this kind and this namespace, do the hostnames have something in common.

use super::*;
use crate::names::Suffixes;
use crate::recent::Recent;
use crate::snapshot::Labelled;

/// Fills in the routes, and how many are attached to each listener.
pub(super) fn build(topology: &mut Topology, snapshot: &Snapshot, grants: &Grants) {
    let mut memo = Memo::default();
    let mut tally = Tally::of(topology);
    let judged = snapshot.routes.mapped(|route| {
        let state = bind(snapshot, topology, grants, route, &mut memo);
        tally.add(&state);
        Arc::new(state)
    });
    topology.routes = judged;
    topology.attached = tally.counts();
}

/// What becomes of a route.
pub(crate) fn bind(
    snapshot: &Snapshot,
    topology: &Topology,
    grants: &Grants,
    route: &Arc<Route>,
    memo: &mut Memo,
) -> RouteState {
    let state = bind_parents(snapshot, topology, route, memo);
    RouteState { backends: backends::problems(snapshot, grants, route, &mut memo.backends).into(), ..state }
}

/// The same without a look at its backends.
pub(crate) fn bind_parents(
    snapshot: &Snapshot,
    topology: &Topology,
    route: &Arc<Route>,
    memo: &mut Memo,
) -> RouteState {
    let aims = memo.aims.answer(&route.parents, &route.meta.key.namespace, || aims(topology, route));
    let mut binder = Binder { snapshot, topology, route, memo: &mut memo.listeners };
    let parents = route.parents.iter().zip(aims).map(|(parent, aim)| binder.parent(parent, aim)).collect();
    RouteState { route: route.clone(), parents, backends: Rare::new() }
}

/// The listeners behind a parentRef of a route, where its target is there and in scope.
pub(crate) fn doors_of<'a>(topology: &'a Topology, route: &Route, parent: &ParentRef) -> Option<&'a Doors> {
    match target(topology, &route.meta.key.namespace, &parent.target) {
        ParentTarget::Gateway(key) => topology.gateways.get(&key).map(|state| &state.doors),
        ParentTarget::Set(set, _) => topology.sets.get(&set).map(|state| &state.doors),
        ParentTarget::Missing | ParentTarget::OutOfScope | ParentTarget::OtherKind => None,
    }
}

/// Every listener that a parentRef could mean, with the verdict on each.
pub fn candidates(snapshot: &Snapshot, topology: &Topology, route: &RouteState, parent: usize) -> Vec<Candidate> {
    let mut memo = ListenerMemo::default();
    let mut binder = Binder { snapshot, topology, route: &route.route, memo: &mut memo };
    let meant = meant(topology, route, parent);
    meant.map(|listener| Candidate { listener, verdict: binder.verdict(listener) }).collect()
}

/// Every listener that a parentRef could mean, in the order of the parent.
pub fn meant<'a>(
    topology: &'a Topology,
    route: &'a RouteState,
    parent: usize,
) -> impl Iterator<Item = ListenerId> + use<'a> {
    let both = route.route.parents.get(parent).zip(route.parents.get(parent));
    both.into_iter().flat_map(|(asked, state)| {
        let all = match &*state.target {
            ParentTarget::Gateway(key) => topology.gateways.get(key).map(|state| state.doors.all()),
            ParentTarget::Set(set, _) => topology.sets.get(set).map(|state| state.doors.all()),
            ParentTarget::Missing | ParentTarget::OutOfScope | ParentTarget::OtherKind => None,
        };
        let all = all.unwrap_or_default();
        all.iter().copied().filter(|id| is_meant(topology.listener(*id).spec(), asked))
    })
}

/// The listeners that a route attaches to, each once, in the order of their ids.
pub(crate) fn attached(route: &RouteState) -> Few<ListenerId> {
    let attached: Few<ListenerId> = route.attachments().map(|attachment| attachment.listener).collect();
    match attached {
        Few::Many(ids) => {
            let mut ids = ids.into_vec();
            ids.sort_unstable();
            ids.dedup();
            ids.into()
        }
        few => few,
    }
}

/// The hostnames that a route and a listener's hostname have in common, in the route's order and without repetition.
pub fn intersections(route: &Route, listener: &Hostname) -> Few<Intersection> {
    if !route.kind.has_hostnames() || route.hostnames.is_empty() {
        return Few::One(Intersection { hostname: listener.clone(), written: None });
    }
    let mut common: Few<Intersection> = Few::None;
    for (i, written) in route.hostnames.iter().enumerate() {
        let hostname = written.name().ok().and_then(|name| listener.intersect(name));
        if let Some(hostname) = hostname.filter(|name| common.iter().all(|c| c.hostname != *name)) {
            common.push(Intersection { hostname, written: Some(i as u32) });
        }
    }
    common
}

/// What was asked for the routes before, and is likely to be asked again: routes come ordered by namespace, and many name
/// the same parents and backends.
#[derive(Default)]
pub(crate) struct Memo {
    aims: Recent<ParentRef, Vec<Aim>>,
    listeners: ListenerMemo,
    backends: backends::Memo,
}

/// What was asked about listeners.
#[derive(Default)]
struct ListenerMemo {
    /// The namespace of the last route.
    namespace: Labelled,
    /// Listeners to look at, for as long as it takes.
    promising: Vec<u32>,
    suffixes: Suffixes,
}

/// What a parentRef points to, found.
struct Aim {
    target: Arc<ParentTarget>,
    behind: Option<Behind>,
}

/// Whose listeners a parentRef means: a route that names a Gateway never sees those of its ListenerSets.
enum Behind {
    Gateway(Arc<GatewayState>),
    Set(Arc<SetState>),
}

impl Behind {
    fn of(topology: &Topology, target: &ParentTarget) -> Option<Self> {
        match target {
            ParentTarget::Gateway(key) => topology.gateways.get(key).cloned().map(Behind::Gateway),
            ParentTarget::Set(set, _) => topology.sets.get(set).cloned().map(Behind::Set),
            ParentTarget::Missing | ParentTarget::OutOfScope | ParentTarget::OtherKind => None,
        }
    }

    fn doors(&self) -> &Doors {
        match self {
            Behind::Gateway(state) => &state.doors,
            Behind::Set(state) => &state.doors,
        }
    }
}

/// What the parentRefs of a route point to, and whether that depends on its namespace.
fn aims(topology: &Topology, route: &Route) -> (Vec<Aim>, bool) {
    let own = &route.meta.key.namespace;
    let aim = |parent: &ParentRef| {
        let target = Arc::new(target(topology, own, &parent.target));
        Aim { behind: Behind::of(topology, &target), target }
    };
    let is_relative = route.parents.iter().any(|parent| parent.target.namespace.is_none());
    (route.parents.iter().map(aim).collect(), is_relative)
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

struct Binder<'a, 'm> {
    snapshot: &'a Snapshot,
    topology: &'a Topology,
    route: &'a Route,
    memo: &'m mut ListenerMemo,
}

impl Binder<'_, '_> {
    fn parent(&mut self, parent: &ParentRef, aim: &Aim) -> ParentState {
        let target = aim.target.clone();
        let Some(doors) = aim.behind.as_ref().map(Behind::doors) else {
            return ParentState { target, attached: Few::None, refused: None };
        };
        let mut promising = std::mem::take(&mut self.memo.promising);
        doors.promising(self.route, parent.section.as_ref(), &mut self.memo.suffixes, &mut promising);
        let mut attached = Few::None;
        for door in &promising {
            let listener = doors.id(*door);
            if self.is_meant(listener, parent)
                && let Ok(names) = self.verdict(listener)
            {
                attached.push(Attachment { listener, names });
            }
        }
        self.memo.promising = promising;
        let refused = if attached.is_empty() { Some(self.refusal(doors, parent)) } else { None };
        ParentState { target, attached, refused }
    }

    fn is_meant(&self, listener: ListenerId, parent: &ParentRef) -> bool {
        (parent.section.is_none() && parent.port.is_none()) || is_meant(self.topology.listener(listener).spec(), parent)
    }

    /// Why a route that attaches to nothing is not accepted: the gate that let most candidates through speaks.
    fn refusal(&mut self, doors: &Doors, parent: &ParentRef) -> Reason {
        let meant = doors.all().iter().filter(|id| is_meant(self.topology.listener(**id).spec(), parent));
        let meant: Vec<ListenerId> = meant.copied().collect();
        let refused = meant.into_iter().filter_map(|id| self.verdict(id).err());
        refused.max_by_key(|reason| gate(*reason)).unwrap_or(reason::SECTION_NOT_FOUND)
    }

    fn verdict(&mut self, id: ListenerId) -> Result<Few<Intersection>, Reason> {
        let listener = self.topology.listener(id);
        if listener.gateway.is_none() {
            return Err(reason::LISTENER_SET_NOT_ATTACHED);
        }
        if !listener.supported_kinds.contains(&self.route.kind) {
            let refused = listener.refused.map(|_| reason::LISTENER_REFUSED);
            return Err(refused.unwrap_or(reason::ROUTE_KIND_NOT_ALLOWED));
        }
        if !self.admits(listener) {
            return Err(reason::NAMESPACE_NOT_ALLOWED);
        }
        let common = intersections(self.route, &listener.hostname);
        if common.is_empty() { Err(reason::NO_COMMON_HOSTNAME) } else { Ok(common) }
    }

    fn admits(&mut self, listener: &ListenerState) -> bool {
        let (snapshot, known) = (self.snapshot, &mut self.memo.namespace);
        let (own, namespace) = (&listener.owner.meta().key.namespace, &self.route.meta.key.namespace);
        listener_sets::admits(&listener.spec().allowed_routes.namespaces, own, namespace, |selector| {
            if !known.is(namespace) {
                *known = snapshot.labelled(namespace);
            }
            known.is_chosen_by(selector)
        })
    }
}

/// Whether a parentRef that leads to a listener's owner also means the listener.
pub(crate) fn is_meant(listener: &Listener, parent: &ParentRef) -> bool {
    parent.section.as_ref().is_none_or(|section| *section == listener.name)
        && parent.port.is_none_or(|port| port == listener.port)
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
struct Tally {
    /// By hall and slot: how many routes, and the number of the last one.
    halls: Vec<Vec<(u32, u32)>>,
    routes: u32,
}

impl Tally {
    fn of(topology: &Topology) -> Self {
        Tally { halls: topology.halls.iter().map(|hall| vec![(0, 0); hall.width()]).collect(), routes: 0 }
    }

    fn add(&mut self, route: &RouteState) {
        self.routes += 1;
        for ListenerId { hall, slot } in route.attachments().map(|attachment| attachment.listener) {
            let (count, last) = &mut self.halls[hall as usize][slot as usize];
            *count += u32::from(*last != self.routes);
            *last = self.routes;
        }
    }

    fn counts(self) -> Table<ListenerId, u32> {
        let listed = self.halls.into_iter().enumerate().flat_map(|(hall, slots)| {
            let numbered = slots.into_iter().enumerate().filter(|(_, (count, _))| *count > 0);
            numbered.map(move |(slot, (count, _))| (ListenerId { hall: hall as u32, slot: slot as u32 }, count))
        });
        listed.collect()
    }
}
