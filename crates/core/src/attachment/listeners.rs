//! The merged listeners of every Gateway: which are valid by themselves, and their order of precedence.
//!
//! This module never looks at routes.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::attachment::{certificates, conflicts, listener_sets};

/// The merged listeners of a Gateway and its ListenerSets, or those of one refused set, by slot. A listener keeps its
/// slot while it exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GatewayListeners {
    slots: Vec<Option<Arc<ListenerState>>>,
}

impl GatewayListeners {
    /// The listener in a slot.
    pub(crate) fn listener(&self, slot: u32) -> Option<&ListenerState> {
        self.slots.get(slot as usize)?.as_deref()
    }

    /// Every slot.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Option<&ListenerState>> {
        self.slots.iter().map(Option::as_deref)
    }

    /// Puts listeners into their slots. A listener equal to its state in `before` keeps that allocation.
    fn of(listeners: Vec<Arc<ListenerState>>, before: Option<&GatewayListeners>) -> Self {
        let width = listeners.iter().map(|listener| listener.id.slot as usize + 1).max().unwrap_or_default();
        let mut slots: Vec<Option<Arc<ListenerState>>> = vec![None; width];
        for listener in listeners {
            let slot = listener.id.slot as usize;
            let known = before.and_then(|before| before.slots.get(slot)?.as_ref());
            slots[slot] = Some(known.filter(|known| **known == listener).cloned().unwrap_or(listener));
        }
        GatewayListeners { slots }
    }
}

/// Assigns slots: the previous one of a listener with the same owner and name, else a free one.
struct SlotAssignment {
    group: u32,
    /// Previous slots by owner and name; the first one is at the end of the list.
    known: HashMap<(ObjectRef, Str), Vec<u32>>,
    free: Vec<u32>,
    next: u32,
}

impl SlotAssignment {
    fn new(group: u32, before: Option<&GatewayListeners>) -> Self {
        let mut slots = SlotAssignment { group, known: HashMap::new(), free: Vec::new(), next: 0 };
        let Some(before) = before else { return slots };
        slots.next = before.slots.len() as u32;
        for (slot, listener) in (0..slots.next).zip(&before.slots).rev() {
            match listener {
                Some(listener) => {
                    let key = (listener.owner.object(), listener.spec().name.clone());
                    slots.known.entry(key).or_default().push(slot);
                }
                None => slots.free.push(slot),
            }
        }
        slots
    }

    fn assign(&mut self, owner: &Owner, name: &Str) -> ListenerId {
        let known = match self.known.is_empty() {
            true => None,
            false => self.known.get_mut(&(owner.object(), name.clone())).and_then(Vec::pop),
        };
        let slot = known.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        ListenerId { group: self.group, slot }
    }
}

/// A Gateway with its ListenerSets, evaluated together.
pub(crate) struct EvaluatedGateway {
    pub(crate) gateway: GatewayState,
    /// The sets it allows, in order of precedence.
    pub(crate) sets: Vec<SetState>,
    pub(crate) listeners: GatewayListeners,
}

/// Evaluates all Gateways, ListenerSets and listeners.
pub(super) fn build(topology: &mut Topology, snapshot: &Snapshot, grants: &Grants, scope: &Scope) {
    let evaluation = ListenerEvaluation { snapshot, grants, scope };
    let mut admissions = listener_sets::admissions(snapshot, scope);
    for (key, gateway) in &snapshot.gateways {
        let members = admissions.admitted.remove(key).unwrap_or_default();
        let evaluated = evaluation.gateway(topology.groups.len() as u32, None, gateway, members);
        topology.groups.push(evaluated.listeners);
        topology.gateways.insert(key.clone(), Arc::new(evaluated.gateway));
        let sets = evaluated.sets.into_iter();
        topology.sets.extend(sets.map(|state| (state.set.object(), Arc::new(state))));
    }
    for (set, refused) in admissions.refused {
        let (state, listeners) = evaluation.refused_set(topology.groups.len() as u32, None, set, refused);
        topology.groups.push(listeners);
        topology.sets.insert(state.set.object(), Arc::new(state));
    }
}

/// What is known about a Gateway's class.
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

/// The route kinds that a listener supports.
pub fn kinds_carried(listener: &Listener) -> &'static [RouteKind] {
    let is_terminated = listener.tls.as_ref().is_some_and(|tls| tls.mode == TlsMode::Terminate);
    kinds_of_protocol(&listener.protocol, is_terminated)
}

/// The route kinds that a protocol supports, by whether the listener terminates TLS.
pub(crate) fn kinds_of_protocol(protocol: &Protocol, is_terminated: bool) -> &'static [RouteKind] {
    match (protocol, is_terminated) {
        (Protocol::Http | Protocol::Https, _) => &[RouteKind::Http, RouteKind::Grpc],
        (Protocol::Tls, true) => &[RouteKind::Tls, RouteKind::Tcp],
        (Protocol::Tls, false) => &[RouteKind::Tls],
        (Protocol::Tcp, _) => &[RouteKind::Tcp],
        (Protocol::Udp, _) => &[RouteKind::Udp],
        (Protocol::Other(_), _) => &[],
    }
}

/// Evaluates Gateways and ListenerSets.
#[derive(Clone, Copy)]
pub(crate) struct ListenerEvaluation<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) grants: &'a Grants,
    pub(crate) scope: &'a Scope,
}

impl ListenerEvaluation<'_> {
    /// Evaluates a Gateway with the ListenerSets that it allows, given in order of precedence. Listeners keep their
    /// slots of `before`.
    pub(crate) fn gateway(
        &self,
        group: u32,
        before: Option<&GatewayListeners>,
        gateway: &Arc<Gateway>,
        members: Vec<Arc<ListenerSet>>,
    ) -> EvaluatedGateway {
        let mut state = GatewayState {
            gateway: gateway.clone(),
            class: class_state(self.snapshot, self.scope, gateway),
            refused: None,
            listeners: Vec::new(),
            attached_sets: 0,
            listener_index: ListenerIndex::default(),
        };
        let parent = state.is_in_scope().then_some(&gateway.meta.key);
        let mut slots = SlotAssignment::new(group, before);
        let mut listeners = self.listeners(&mut slots, &Owner::Gateway(gateway.clone()), parent);
        let mut resources = Vec::from_iter(std::iter::once(0..listeners.len()));
        for set in &members {
            let first = listeners.len();
            listeners.extend(self.listeners(&mut slots, &Owner::Set(set.clone()), parent));
            resources.push(first..listeners.len());
        }
        conflicts::resolve(&mut listeners, &resources);
        let own = &listeners[resources[0].clone()];
        state.refused = gateway_refusal(&state, own);
        state.listener_index = ListenerIndex::of(own);
        state.listeners = listeners.iter().map(|listener| listener.id).collect();
        let joined = members.into_iter().zip(&resources[1..]).map(|(set, range)| {
            let own = &listeners[range.clone()];
            let refused = parent.and(listener_sets::refusal(&set, own, state.refused));
            set_state(set, parent.cloned(), refused, own)
        });
        let sets: Vec<SetState> = joined.collect();
        state.attached_sets = sets.iter().filter(|set| set.gateway.is_some() && set.refused.is_none()).count();
        EvaluatedGateway { gateway: state, sets, listeners: GatewayListeners::of(listeners, before) }
    }

    /// Evaluates a ListenerSet that no Gateway allows.
    pub(crate) fn refused_set(
        &self,
        group: u32,
        before: Option<&GatewayListeners>,
        set: Arc<ListenerSet>,
        refused: Reason,
    ) -> (SetState, GatewayListeners) {
        let mut slots = SlotAssignment::new(group, before);
        let listeners = self.listeners(&mut slots, &Owner::Set(set.clone()), None);
        (set_state(set, None, Some(refused), &listeners), GatewayListeners::of(listeners, before))
    }

    fn listeners(&self, slots: &mut SlotAssignment, owner: &Owner, gateway: Option<&Key>) -> Vec<Arc<ListenerState>> {
        let specs = owner.listeners().iter().enumerate();
        let listeners = specs.map(|(index, spec)| {
            let id = slots.assign(owner, &spec.name);
            Arc::new(self.listener(id, owner, index, gateway.cloned()))
        });
        listeners.collect()
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
    SetState { set, gateway, refused, listeners: ids, listener_index: ListenerIndex::of(listeners) }
}

/// Why a listener is invalid regardless of other listeners, if so.
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

/// The hostname of a listener; `*` for protocols without hostnames.
fn hostname(listener: &Listener) -> Hostname {
    let named = written(listener).filter(|_| listener.protocol.has_hostname());
    named.and_then(|w| w.name().ok().cloned()).unwrap_or_else(Hostname::any)
}

/// The kinds that a listener accepts, and requested ones that it cannot support.
fn kinds(listener: &Listener) -> (Vec<RouteKind>, Vec<(Str, Str)>) {
    let carried = kinds_carried(listener);
    if listener.allowed_routes.kinds.is_empty() {
        return (carried.to_vec(), Vec::new());
    }
    let mut supported = Vec::new();
    let mut unfit = Vec::new();
    for (group, kind) in &listener.allowed_routes.kinds {
        let found = Kind::of(group, kind).and_then(Kind::route).filter(|k| carried.contains(k));
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
    if state.gateway.meta.invalid.is_some() {
        return Some(reason::INVALID_FIELD);
    }
    if state.gateway.parameters.is_some() && *state.controller() == *OWN_CONTROLLER && state.is_in_scope() {
        return Some(reason::INVALID_PARAMETERS);
    }
    let any = own.iter().any(|listener| listener.is_accepted());
    (!any && !own.is_empty()).then_some(reason::GATEWAY_NOT_ACCEPTED)
}
