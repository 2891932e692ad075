//! Which Gateway each ListenerSet attaches to, and in which order.
//!
//! This module never looks at routes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::listeners::class_state;
use super::*;
use crate::selector::Selector;

/// ListenerSets by the Gateway that allows them, and those that no Gateway allows.
#[derive(Default)]
pub(super) struct Admissions {
    /// In order of precedence.
    pub(super) admitted: BTreeMap<Key, Vec<Arc<ListenerSet>>>,
    /// With the reason.
    pub(super) refused: Vec<(Arc<ListenerSet>, Reason)>,
}

/// Groups ListenerSets by the Gateway that allows them, in order of precedence: oldest first, then `namespace/name`.
pub(super) fn admissions(snapshot: &Snapshot, scope: &Scope) -> Admissions {
    let mut sets: Vec<_> = snapshot.listener_sets.values().collect();
    sets.sort_by_cached_key(|set| precedence(set));
    let mut result = Admissions::default();
    for set in sets {
        match admission(snapshot, scope, set) {
            Ok(gateway) => result.admitted.entry(gateway).or_default().push(set.clone()),
            Err(refused) => result.refused.push((set.clone(), refused)),
        }
    }
    result
}

/// The sort key of ListenerSets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SetPrecedence {
    created: i64,
    key: Key,
    kind: Kind,
}

/// The sort key of a ListenerSet: oldest first, then `namespace/name`.
pub(crate) fn precedence(set: &ListenerSet) -> SetPrecedence {
    let (created, key) = set.meta.seniority();
    SetPrecedence { created, key: key.clone(), kind: set.kind }
}

/// Whether `allowedRoutes` or `allowedListeners` of an object in `own` admits objects of `namespace`. Labels of the
/// namespace are only read for a selector.
pub(crate) fn admits(
    admission: &Admission,
    own: &Str,
    namespace: &Str,
    is_chosen: impl FnOnce(&Selector) -> bool,
) -> bool {
    match admission {
        Admission::All => true,
        Admission::Same => namespace == own,
        Admission::Selector(Some(selector)) => is_chosen(selector),
        Admission::Selector(None) | Admission::None | Admission::Other(_) => false,
    }
}

/// Why a set that its Gateway allows is not accepted, if so.
pub(super) fn refusal(
    set: &ListenerSet,
    listeners: &[Arc<ListenerState>],
    gateway_refused: Option<Reason>,
) -> Option<Reason> {
    match gateway_refused {
        _ if set.meta.invalid.is_some() => Some(reason::INVALID_FIELD),
        Some(_) => Some(reason::GATEWAY_NOT_ACCEPTED),
        None if listeners.iter().any(|listener| is_valid_entry(listener)) => None,
        None => Some(reason::LISTENER_SET_NO_LISTENERS),
    }
}

/// Whether an entry is accepted and has no reference that lacks a grant; a set needs one such entry.
fn is_valid_entry(listener: &ListenerState) -> bool {
    let forbidden = |p: &CertificateProblem| p.reason == reason::REFERENCE_NOT_PERMITTED;
    listener.is_accepted() && !listener.certificates.iter().any(forbidden)
}

/// The Gateway that a set refers to, whether or not it exists.
pub(crate) fn named_gateway(set: &ListenerSet) -> Key {
    Key::new(set.parent.namespace_or(&set.meta.key.namespace).clone(), set.parent.name.clone())
}

/// The Gateway that allows a set, or why none does.
pub(crate) fn admission(snapshot: &Snapshot, scope: &Scope, set: &ListenerSet) -> Result<Key, Reason> {
    let parent = &set.parent;
    let own = &set.meta.key.namespace;
    if *parent.group != *GATEWAY_GROUP || &*parent.kind != "Gateway" {
        return Err(reason::LISTENER_SET_PARENT_MISSING);
    }
    let key = named_gateway(set);
    let gateway = snapshot.gateways.get(&key).ok_or(reason::LISTENER_SET_PARENT_MISSING)?;
    if matches!(class_state(snapshot, scope, gateway), ClassState::NotOurs | ClassState::Missing) {
        return Err(reason::GATEWAY_CLASS_NOT_OURS);
    }
    let is_chosen = |selector: &Selector| snapshot.is_namespace_selected(own, selector);
    if admits(&gateway.allowed_listeners, &key.namespace, own, is_chosen) {
        Ok(key)
    } else {
        Err(reason::LISTENER_SET_NOT_ALLOWED)
    }
}
