//! The merged listeners of every Gateway: which are valid for themselves, and in which order they take precedence.
//!
//! This module never looks at routes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::topology::{certificates, conflicts, sets};

/// Fills in Gateways, ListenerSets and listeners.
pub(super) fn build(topology: &mut Topology, snapshot: &Snapshot, grants: &Grants, scope: &Scope) {
    let mut admissions = sets::admissions(snapshot, scope);
    let judge = Judge { snapshot, grants };
    for (key, gateway) in &snapshot.gateways {
        let class = class_state(snapshot, scope, gateway);
        let members = admissions.admitted.remove(key).unwrap_or_default();
        judge.gateway(topology, gateway, class, members);
    }
    for (set, refused) in admissions.refused {
        judge.refused_set(topology, set, refused);
    }
}

/// What is known of a Gateway's class.
pub(super) fn class_state(snapshot: &Snapshot, scope: &Scope, gateway: &Gateway) -> ClassState {
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

struct Judge<'a> {
    snapshot: &'a Snapshot,
    grants: &'a Grants,
}

impl Judge<'_> {
    fn gateway(
        &self,
        topology: &mut Topology,
        gateway: &Arc<Gateway>,
        class: ClassState,
        members: Vec<Arc<ListenerSet>>,
    ) {
        let key = gateway.meta.key.clone();
        let mut state =
            GatewayState { gateway: gateway.clone(), class, refused: None, listeners: Vec::new(), attached_sets: 0 };
        let in_scope = state.is_in_scope();
        let home = in_scope.then_some(&key);
        let own = self.listeners(topology, Owner::Gateway(gateway.clone()), home);
        state.listeners.extend(&own);
        let mut resources = vec![own.clone()];
        let objects: Vec<_> = members.iter().map(|set| set.object()).collect();
        for set in members {
            let ids = self.listeners(topology, Owner::Set(set.clone()), home);
            state.listeners.extend(&ids);
            resources.push(ids.clone());
            let gateway = in_scope.then(|| key.clone());
            topology.sets.insert(set.object(), SetState { set, gateway, refused: None, listeners: ids });
        }
        conflicts::resolve(&mut topology.listeners, &resources);
        conflicts::find_overlaps(&mut topology.listeners, &state.listeners);
        state.refused = gateway_refusal(topology, &state, &own);
        state.attached_sets = sets::settle(topology, &objects, state.refused);
        topology.gateways.insert(key, state);
    }

    fn refused_set(&self, topology: &mut Topology, set: Arc<ListenerSet>, refused: Reason) {
        let listeners = self.listeners(topology, Owner::Set(set.clone()), None);
        topology.sets.insert(set.object(), SetState { set, gateway: None, refused: Some(refused), listeners });
    }

    fn listeners(&self, topology: &mut Topology, owner: Owner, gateway: Option<&Key>) -> Vec<ListenerId> {
        let count = match &owner {
            Owner::Gateway(gateway) => gateway.listeners.len(),
            Owner::Set(set) => set.listeners.len(),
        };
        let first = topology.listeners.len();
        topology.listeners.extend((0..count).map(|index| self.listener(owner.clone(), index, gateway.cloned())));
        (first..first + count).map(|id| ListenerId(id as u32)).collect()
    }

    fn listener(&self, owner: Owner, index: usize, gateway: Option<Key>) -> ListenerState {
        let mut state = ListenerState {
            owner,
            index,
            gateway,
            hostname: Hostname::any(),
            supported_kinds: Vec::new(),
            unfit_kinds: Vec::new(),
            refused: None,
            conflict: None,
            certificates: Vec::new(),
            overlaps: None,
            attached_routes: 0,
        };
        let spec = state.spec().clone();
        state.refused = own_refusal(&spec);
        if state.refused.is_none() {
            state.hostname = hostname(&spec);
            (state.supported_kinds, state.unfit_kinds) = kinds(&spec);
        }
        state.certificates = certificates::problems(self.snapshot, self.grants, &state);
        if certificates::no_valid_ca(self.snapshot, self.grants, &state) {
            state.refused = state.refused.or(Some(reason::CA_CERTIFICATE_UNUSABLE));
        }
        state
    }
}

/// Why a listener is not valid, whatever the others are.
fn own_refusal(listener: &Listener) -> Option<Reason> {
    let mode = listener.tls.as_ref().map(|tls| &tls.mode);
    match (&listener.protocol, mode) {
        (Protocol::Other(_), _) => Some(reason::PROTOCOL_UNSUPPORTED),
        (Protocol::Https, Some(TlsMode::Passthrough | TlsMode::Other(_))) => Some(reason::TLS_MODE_UNSUPPORTED),
        (Protocol::Tls, None | Some(TlsMode::Other(_))) => Some(reason::TLS_MODE_UNSUPPORTED),
        _ if listener.protocol.has_hostname() && written(listener).is_some_and(|w| w.name.is_err()) => {
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
    named.and_then(|w| w.name.clone().ok()).unwrap_or_else(Hostname::any)
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
fn gateway_refusal(topology: &Topology, state: &GatewayState, own: &[ListenerId]) -> Option<Reason> {
    if state.gateway.parameters.is_some() && *state.controller() == *OWN_CONTROLLER && state.is_in_scope() {
        return Some(reason::INVALID_PARAMETERS);
    }
    let any = own.iter().any(|id| topology.listener(*id).is_accepted());
    (!any && !own.is_empty()).then_some(reason::GATEWAY_NOT_ACCEPTED)
}

/// ListenerSets by the Gateway that admits them, and those that none does.
#[derive(Default)]
pub(super) struct Admissions {
    /// In order of precedence.
    pub(super) admitted: BTreeMap<Key, Vec<Arc<ListenerSet>>>,
    /// With the reason.
    pub(super) refused: Vec<(Arc<ListenerSet>, Reason)>,
}
