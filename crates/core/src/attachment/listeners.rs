//! The merged listeners of every Gateway: which are valid for themselves, and in which order they take precedence.
//!
//! This module never looks at routes.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::attachment::{certificates, conflicts, listener_sets};

/// The listeners that are judged together: those of a Gateway and its ListenerSets, or those of one refused set. A
/// listener keeps its slot as long as it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hall {
    slots: Vec<Option<Arc<ListenerState>>>,
    /// Whether slots come in order of precedence, as they do at first.
    is_in_order: bool,
}

impl Hall {
    /// The listener in a slot.
    pub(crate) fn listener(&self, slot: u32) -> Option<&ListenerState> {
        self.shared(slot).map(|listener| &**listener)
    }

    /// The same, shared with halls of other moments where it is as it was.
    pub(crate) fn shared(&self, slot: u32) -> Option<&Arc<ListenerState>> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Whether a slot is as it is in another hall, by a glance.
    pub(crate) fn is_same_slot(&self, other: &Hall, slot: u32) -> bool {
        match (self.shared(slot), other.shared(slot)) {
            (Some(own), Some(theirs)) => Arc::ptr_eq(own, theirs),
            (own, theirs) => own.is_none() && theirs.is_none(),
        }
    }

    /// Every slot.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Option<&ListenerState>> {
        self.slots.iter().map(Option::as_deref)
    }

    /// How many slots there are.
    pub(crate) fn width(&self) -> usize {
        self.slots.len()
    }

    /// Whether slots come in order of precedence.
    pub(crate) fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    /// The hall of listeners that come in order of precedence.
    fn of(listeners: Vec<Arc<ListenerState>>, before: Option<&Hall>) -> Self {
        let is_in_order = listeners.is_sorted_by_key(|listener| listener.id.slot);
        let width = listeners.iter().map(|listener| listener.id.slot as usize + 1).max().unwrap_or_default();
        let mut slots: Vec<Option<Arc<ListenerState>>> = vec![None; width];
        for listener in listeners {
            let slot = listener.id.slot;
            let is_same = |known: &&Arc<ListenerState>| Arc::ptr_eq(known, &listener) || **known == listener;
            let known = before.and_then(|before| before.shared(slot)).filter(is_same).cloned();
            slots[slot as usize] = Some(known.unwrap_or(listener));
        }
        Hall { slots, is_in_order }
    }
}

/// What was known of a Gateway, of which everything is taken over that can only be as it was.
#[derive(Clone, Copy)]
pub(crate) struct Before<'a> {
    /// Its listeners.
    pub(crate) hall: &'a Hall,
    /// Those of the Gateway and of the sets that it admitted, in order of precedence.
    pub(crate) order: &'a [ListenerId],
    /// The Gateway itself, where its own listeners are to be taken over.
    pub(crate) gateway: Option<&'a GatewayState>,
    /// Tells of a set how it was judged, where its listeners are to be taken over.
    pub(crate) set: &'a dyn Fn(&Arc<ListenerSet>) -> Option<Arc<SetState>>,
}

impl Before<'_> {
    /// Listeners as they were; what others do to them is judged again.
    fn listeners(&self, ids: &[ListenerId]) -> impl Iterator<Item = Arc<ListenerState>> {
        ids.iter().filter_map(|id| self.hall.shared(id.slot)).cloned()
    }
}

/// Gives out slots: those that listeners of the same owner and name had before, else free ones.
struct Slots {
    hall: u32,
    /// By owner and name, the last one first.
    known: HashMap<(ObjectRef, Str), Vec<u32>>,
    free: Vec<u32>,
    next: u32,
}

impl Slots {
    /// Those of the listeners before, without those that are taken over.
    fn of<'a>(hall: u32, before: Option<&Hall>, kept: impl Iterator<Item = &'a ListenerId>) -> Self {
        let mut slots = Slots { hall, known: HashMap::new(), free: Vec::new(), next: 0 };
        let Some(before) = before else { return slots };
        slots.next = before.slots.len() as u32;
        let mut is_kept = vec![false; before.slots.len()];
        kept.for_each(|id| is_kept[id.slot as usize] = true);
        for (slot, listener) in before.slots.iter().enumerate().rev() {
            match listener {
                Some(_) if is_kept[slot] => {}
                Some(listener) => {
                    let key = (listener.owner.object(), listener.spec().name.clone());
                    slots.known.entry(key).or_default().push(slot as u32);
                }
                None => slots.free.push(slot as u32),
            }
        }
        slots
    }

    fn give(&mut self, owner: &Owner, name: &Str) -> ListenerId {
        let known = match self.known.is_empty() {
            true => None,
            false => self.known.get_mut(&(owner.object(), name.clone())).and_then(Vec::pop),
        };
        let slot = known.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        ListenerId { hall: self.hall, slot }
    }
}

/// A Gateway with its ListenerSets, judged together.
pub(crate) struct Judged {
    pub(crate) gateway: GatewayState,
    /// Those that it admits, in order of precedence.
    pub(crate) sets: Vec<Arc<SetState>>,
    pub(crate) hall: Hall,
}

/// Fills in Gateways, ListenerSets and listeners.
pub(super) fn build(topology: &mut Topology, snapshot: &Snapshot, grants: &Grants, scope: &Scope) {
    let judge = Judge { snapshot, grants, scope };
    let mut admissions = listener_sets::admissions(snapshot, scope);
    let mut halls = Vec::new();
    let mut sets = Vec::new();
    let mut gateways = Vec::new();
    for (key, gateway) in &snapshot.gateways {
        let members = admissions.admitted.remove(key).unwrap_or_default();
        let judged = judge.gateway(halls.len() as u32, None, gateway, members);
        halls.push(Arc::new(judged.hall));
        sets.extend(judged.sets);
        gateways.push((key.clone(), Arc::new(judged.gateway)));
    }
    for (set, refused) in admissions.refused {
        let (state, hall) = judge.refused_set(halls.len() as u32, None, set, refused);
        halls.push(Arc::new(hall));
        sets.push(Arc::new(state));
    }
    topology.halls = Arc::new(halls);
    topology.gateways = gateways.into_iter().collect();
    topology.sets = sets.into_iter().map(|state| (state.set.object(), state)).collect();
}

/// What is known of a Gateway's class.
pub(crate) fn class_state(snapshot: &Snapshot, scope: &Scope, gateway: &Gateway) -> ClassState {
    if !scope.classes.is_empty() && !scope.classes.contains(&gateway.class) {
        return ClassState::NotOurs;
    }
    match (snapshot.classes.get(&gateway.class), snapshot.origin) {
        (Some(class), _) => ClassState::Known(class.controller.clone()),
        (None, crate::snapshot::Origin::Files) => ClassState::NotInInput,
        (None, crate::snapshot::Origin::Cluster) => ClassState::Missing,
    }
}

/// The kinds of routes that a protocol carries. The one table that knows.
pub fn kinds_carried(listener: &Listener) -> &'static [RouteKind] {
    match (&listener.protocol, listener.tls.as_ref().map(|tls| &tls.mode)) {
        (Protocol::Http | Protocol::Https, _) => &[RouteKind::Http, RouteKind::Grpc],
        (Protocol::Tls, Some(TlsMode::Terminate)) => &[RouteKind::Tls, RouteKind::Tcp],
        (Protocol::Tls, _) => &[RouteKind::Tls],
        (Protocol::Tcp, _) => &[RouteKind::Tcp],
        (Protocol::Udp, _) => &[RouteKind::Udp],
        (Protocol::Other(_), _) => &[],
    }
}

/// Judges Gateways and ListenerSets.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) grants: &'a Grants,
    pub(crate) scope: &'a Scope,
}

impl Judge<'_> {
    /// A Gateway with the sets that it admits, which come in order of precedence.
    pub(crate) fn gateway(
        &self,
        hall: u32,
        before: Option<Before<'_>>,
        gateway: &Arc<Gateway>,
        members: Vec<Arc<ListenerSet>>,
    ) -> Judged {
        let key = &gateway.meta.key;
        let class = class_state(self.snapshot, self.scope, gateway);
        let mut state = GatewayState {
            gateway: gateway.clone(),
            class,
            refused: None,
            listeners: Vec::new(),
            attached_sets: 0,
            doors: Doors::default(),
        };
        let home = state.is_in_scope().then_some(key);
        let kept: Vec<Option<Arc<SetState>>> =
            members.iter().map(|set| before.and_then(|before| (before.set)(set))).collect();
        let own = before.and_then(|before| Some((before, before.gateway?)));
        let ids = own.iter().flat_map(|(_, known)| known.doors.all());
        let ids = ids.chain(kept.iter().flatten().flat_map(|known| &known.listeners));
        let mut slots = Slots::of(hall, before.map(|before| before.hall), ids);
        let mut listeners = Vec::new();
        match own {
            Some((before, known)) => listeners.extend(before.listeners(known.doors.all())),
            None => self.listeners(&mut listeners, &mut slots, Owner::Gateway(gateway.clone()), home),
        }
        let mut resources = Vec::from_iter(std::iter::once(0..listeners.len()));
        for (set, known) in members.iter().zip(&kept) {
            let first = listeners.len();
            match before.zip(known.as_ref()) {
                Some((before, known)) => listeners.extend(before.listeners(&known.listeners)),
                None => self.listeners(&mut listeners, &mut slots, Owner::Set(set.clone()), home),
            }
            resources.push(first..listeners.len());
        }
        let known = before.map(|before| conflicts::Known { hall: before.hall, order: before.order });
        conflicts::resolve(&mut listeners, &resources, known);
        let own = &listeners[resources[0].clone()];
        state.refused = gateway_refusal(&state, own);
        state.doors = Doors::of(own);
        state.listeners = listeners.iter().map(|listener| listener.id).collect();
        let joined = members.into_iter().zip(kept).zip(&resources[1..]).map(|((set, known), range)| {
            let own = &listeners[range.clone()];
            let refused = home.and(listener_sets::refusal(own, state.refused));
            let known = known.filter(|known| known.refused == refused && known.gateway.as_ref() == home);
            known.unwrap_or_else(|| Arc::new(set_state(set, home.cloned(), refused, own)))
        });
        let sets: Vec<Arc<SetState>> = joined.collect();
        state.attached_sets = sets.iter().filter(|set| set.gateway.is_some() && set.refused.is_none()).count();
        Judged { gateway: state, sets, hall: Hall::of(listeners, before.map(|before| before.hall)) }
    }

    /// A ListenerSet that no Gateway admits.
    pub(crate) fn refused_set(
        &self,
        hall: u32,
        before: Option<&Hall>,
        set: Arc<ListenerSet>,
        refused: Reason,
    ) -> (SetState, Hall) {
        let mut listeners = Vec::new();
        let mut slots = Slots::of(hall, before, std::iter::empty());
        self.listeners(&mut listeners, &mut slots, Owner::Set(set.clone()), None);
        (set_state(set, None, Some(refused), &listeners), Hall::of(listeners, before))
    }

    fn listeners(&self, into: &mut Vec<Arc<ListenerState>>, slots: &mut Slots, owner: Owner, gateway: Option<&Key>) {
        for (index, spec) in owner.listeners().iter().enumerate() {
            let id = slots.give(&owner, &spec.name);
            into.push(Arc::new(self.listener(id, &owner, index, gateway.cloned())));
        }
    }

    fn listener(&self, id: ListenerId, owner: &Owner, index: usize, gateway: Option<Key>) -> ListenerState {
        let spec = &owner.listeners()[index];
        let refused = own_refusal(spec);
        let (hostname, (supported_kinds, unfit_kinds)) = match refused {
            None => (hostname(spec), kinds(spec)),
            Some(_) => (Hostname::any(), Default::default()),
        };
        let mut state = ListenerState {
            id,
            owner: owner.clone(),
            index,
            gateway,
            hostname,
            supported_kinds,
            unfit_kinds,
            refused,
            conflict: None,
            certificates: Vec::new(),
            overlaps: None,
        };
        let (problems, has_no_ca) = certificates::problems(self.snapshot, self.grants, &state);
        state.certificates = problems;
        if has_no_ca {
            state.refused = state.refused.or(Some(reason::CA_CERTIFICATE_UNUSABLE));
        }
        state
    }
}

fn set_state(
    set: Arc<ListenerSet>,
    gateway: Option<Key>,
    refused: Option<Reason>,
    listeners: &[Arc<ListenerState>],
) -> SetState {
    let ids = listeners.iter().map(|listener| listener.id).collect();
    SetState { set, gateway, refused, listeners: ids, doors: Doors::of(listeners) }
}

/// Why a listener is not valid, whatever the others are.
fn own_refusal(listener: &Listener) -> Option<Reason> {
    let mode = listener.tls.as_ref().map(|tls| &tls.mode);
    match (&listener.protocol, mode) {
        (Protocol::Other(_), _) => Some(reason::PROTOCOL_UNSUPPORTED),
        (Protocol::Https, Some(TlsMode::Passthrough | TlsMode::Other(_))) => Some(reason::TLS_MODE_UNSUPPORTED),
        (Protocol::Tls, None | Some(TlsMode::Other(_))) => Some(reason::TLS_MODE_UNSUPPORTED),
        _ if listener.protocol.has_hostname() && written(listener).is_some_and(|w| w.name().is_err()) => {
            Some(reason::INVALID_HOSTNAME)
        }
        _ => None,
    }
}

fn written(listener: &Listener) -> Option<&WrittenHostname> {
    listener.hostname.as_ref()
}

/// The hostname a listener goes by; protocols without names have `*`.
fn hostname(listener: &Listener) -> Hostname {
    let named = written(listener).filter(|_| listener.protocol.has_hostname());
    named.and_then(|w| w.name().ok().cloned()).unwrap_or_else(Hostname::any)
}

/// The kinds a listener takes, and those it asks for in vain.
fn kinds(listener: &Listener) -> (Vec<RouteKind>, Vec<(Str, Str)>) {
    let carried = kinds_carried(listener);
    if listener.allowed_routes.kinds.is_empty() {
        return (carried.to_vec(), Vec::new());
    }
    let mut supported = Vec::new();
    let mut unfit = Vec::new();
    for (group, kind) in &listener.allowed_routes.kinds {
        let found = Kind::of(group, kind).and_then(RouteKind::of).filter(|k| carried.contains(k));
        match found {
            Some(kind) if !supported.contains(&kind) => supported.push(kind),
            Some(_) => {}
            None => unfit.push((group.clone(), kind.clone())),
        }
    }
    (supported, unfit)
}

/// Why a Gateway is not accepted.
fn gateway_refusal(state: &GatewayState, own: &[Arc<ListenerState>]) -> Option<Reason> {
    if state.gateway.parameters.is_some() && *state.controller() == *OWN_CONTROLLER && state.is_in_scope() {
        return Some(reason::INVALID_PARAMETERS);
    }
    let any = own.iter().any(|listener| listener.is_accepted());
    (!any && !own.is_empty()).then_some(reason::GATEWAY_NOT_ACCEPTED)
}
