//! The handshake between Gateways and ListenerSets.

use std::sync::Arc;

use super::listeners::{Admissions, class_state};
use super::*;

/// Sorts ListenerSets under the Gateways that admit them, in order of precedence: oldest first, then `namespace/name`.
pub(super) fn admissions(snapshot: &Snapshot, scope: &Scope) -> Admissions {
    let mut sets: Vec<_> = snapshot.listener_sets.values().collect();
    sets.sort_by(|a, b| a.meta.seniority().cmp(&b.meta.seniority()).then(a.kind.cmp(&b.kind)));
    let mut result = Admissions::default();
    for set in sets {
        match admission(snapshot, scope, set) {
            Ok(gateway) => result.admitted.entry(gateway).or_default().push(set.clone()),
            Err(refused) => result.refused.push((set.clone(), refused)),
        }
    }
    result
}

/// Whether an admission lets in objects of `namespace` beside an object of `own`.
pub fn admits(snapshot: &Snapshot, admission: &Admission, own: &Str, namespace: &Str) -> bool {
    match admission {
        Admission::All => true,
        Admission::Same => own == namespace,
        Admission::Selector(Some(selector)) => {
            selector.matches_with(|label| snapshot.namespace_label(namespace, label))
        }
        Admission::Selector(None) | Admission::None | Admission::Other(_) => false,
    }
}

/// Settles which sets of a Gateway are accepted; returns how many.
pub(super) fn settle(topology: &mut Topology, members: &[ObjectRef], parent_refused: Option<Reason>) -> usize {
    let listeners = &topology.listeners;
    let mut accepted = 0;
    for member in members {
        let Some(state) = topology.sets.get_mut(member).filter(|state| state.gateway.is_some()) else { continue };
        let valid = |id: &ListenerId| is_valid_entry(&listeners[id.0 as usize]);
        state.refused = match parent_refused {
            Some(_) => Some(reason::GATEWAY_NOT_ACCEPTED),
            None if state.listeners.iter().any(valid) => None,
            None => Some(reason::LISTENER_SET_NO_LISTENERS),
        };
        accepted += usize::from(state.refused.is_none());
    }
    accepted
}

/// Whether an entry keeps its set accepted: it is accepted and refers to nothing that is forbidden.
fn is_valid_entry(listener: &ListenerState) -> bool {
    let forbidden = |p: &CertificateProblem| p.reason == reason::REFERENCE_NOT_PERMITTED;
    listener.is_accepted() && !listener.certificates.iter().any(forbidden)
}

fn admission(snapshot: &Snapshot, scope: &Scope, set: &Arc<ListenerSet>) -> Result<Key, Reason> {
    let parent = &set.parent;
    let own = &set.meta.key.namespace;
    if *parent.group != *GATEWAY_GROUP || &*parent.kind != "Gateway" {
        return Err(reason::LISTENER_SET_PARENT_MISSING);
    }
    let key = Key::new(parent.namespace_or(own).clone(), parent.name.clone());
    let gateway = snapshot.gateways.get(&key).ok_or(reason::LISTENER_SET_PARENT_MISSING)?;
    if matches!(class_state(snapshot, scope, gateway), ClassState::NotOurs | ClassState::Missing) {
        return Err(reason::GATEWAY_CLASS_NOT_OURS);
    }
    if admits(snapshot, &gateway.allowed_listeners, &key.namespace, own) {
        Ok(key)
    } else {
        Err(reason::LISTENER_SET_NOT_ALLOWED)
    }
}
