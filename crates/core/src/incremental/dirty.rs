//! The dirty sets: what must be evaluated again, by stage, and what changed.

use std::collections::BTreeSet;

use super::reverse_indexes::RouteId;
use super::world::Delta;
use crate::model::{Key, ObjectRef, Str};
use crate::names::Hostname;

/// The dirty sets while changes are applied, and the changed results so far.
#[derive(Default)]
pub(super) struct Dirty {
    /// Whether any object changed.
    pub(super) is_anything_changed: bool,
    /// Gateways, existing or not, to evaluate together with the ListenerSets that refer to them.
    pub(super) gateways: BTreeSet<Key>,
    /// ListenerSets that were deleted.
    pub(super) deleted_sets: BTreeSet<ObjectRef>,
    pub(super) policies: bool,
    /// Whether HostnameGrants must be indexed again.
    pub(super) grants: bool,
    /// Listener groups whose contexts must be built again.
    pub(super) contexts: BTreeSet<u32>,
    pub(super) routes: BTreeSet<RouteId>,
    pub(super) names: BTreeSet<Hostname>,
    pub(super) secrets: BTreeSet<Key>,
    /// Policies whose reports must be made again.
    pub(super) reports: BTreeSet<ObjectRef>,
    pub(super) changed_parents: BTreeSet<ObjectRef>,
    pub(super) changed_routes: usize,
    pub(super) changed_names: BTreeSet<Str>,
    pub(super) changed_secrets: BTreeSet<Key>,
    pub(super) changed_reports: BTreeSet<ObjectRef>,
    pub(super) changed_withheld: BTreeSet<ObjectRef>,
    /// Whether kept names, excluded objects or diagnostics of a route or Secret changed.
    pub(super) changed_notes: bool,
}

impl Dirty {
    /// The changed results.
    pub(super) fn delta(self) -> Delta {
        // Policies and the owners of listeners have diagnostics of their own.
        let notes = self.changed_notes || self.policies || !self.changed_parents.is_empty();
        Delta {
            routes: self.changed_routes,
            parents: self.changed_parents.into_iter().collect(),
            names: self.changed_names.into_iter().collect(),
            certificates: self.changed_secrets.into_iter().collect(),
            policies: self.changed_reports.into_iter().collect(),
            withheld: self.changed_withheld.into_iter().collect(),
            notes,
        }
    }
}
