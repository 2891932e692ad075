//! The dirty sets: what is to be evaluated again, stage by stage, and what came out differently.

use std::collections::BTreeSet;

use super::reverse_indexes::RouteId;
use super::world::Delta;
use crate::model::{Key, ObjectRef, Str};
use crate::names::Hostname;

/// The dirty sets of one application of changes, and its results.
#[derive(Default)]
pub(super) struct Dirty {
    /// Whether any object differs.
    pub(super) is_anything_changed: bool,
    /// Gateways, existing or not, to be evaluated with the ListenerSets that name them.
    pub(super) gateways: BTreeSet<Key>,
    /// ListenerSets that were deleted.
    pub(super) deleted_sets: BTreeSet<ObjectRef>,
    pub(super) policies: bool,
    /// Listener groups whose contexts are to be made again.
    pub(super) contexts: BTreeSet<u32>,
    pub(super) routes: BTreeSet<RouteId>,
    pub(super) names: BTreeSet<Hostname>,
    pub(super) secrets: BTreeSet<Key>,
    /// Policies to be reported on.
    pub(super) reports: BTreeSet<ObjectRef>,
    pub(super) changed_parents: BTreeSet<ObjectRef>,
    pub(super) changed_routes: usize,
    pub(super) changed_names: BTreeSet<Str>,
    pub(super) changed_secrets: BTreeSet<Key>,
    pub(super) changed_reports: BTreeSet<ObjectRef>,
    pub(super) changed_withheld: BTreeSet<ObjectRef>,
    /// Whether kept names, objects that are passed over or diagnostics of a route or Secret differ.
    pub(super) changed_notes: bool,
}

impl Dirty {
    /// What came out differently.
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
