//! What is to be decided again, and what came out differently.

use std::collections::BTreeSet;

use super::links::RouteId;
use super::marks::Marks;
use super::world::Delta;
use crate::model::{Key, ObjectRef, Str};
use crate::names::Hostname;

/// The dirty sets of one application, stage by stage, and what they came to.
#[derive(Default)]
pub(super) struct Due {
    /// Whether any object differs.
    pub(super) is_anything_changed: bool,
    /// Gateways, there or not, to be judged with the ListenerSets that name them.
    pub(super) groups: BTreeSet<Key>,
    /// Those among them whose listeners refer to something that differs, so that all are judged again.
    pub(super) thorough: BTreeSet<Key>,
    /// ListenerSets that are gone.
    pub(super) gone_sets: BTreeSet<ObjectRef>,
    /// Whether policies are to be judged.
    pub(super) policies: bool,
    /// Whether they were.
    pub(super) are_policies_judged: bool,
    /// Halls whose outlets are to be made.
    pub(super) halls: BTreeSet<u32>,
    /// Routes to be bound, and to be walked in any case.
    pub(super) routes: Marks<RouteId>,
    /// Names to be decided about.
    pub(super) names: Marks<Hostname>,
    /// Secrets to be decided about.
    pub(super) secrets: BTreeSet<Key>,
    /// Policies to be reported on.
    pub(super) reports: BTreeSet<ObjectRef>,
    pub(super) changed_parents: BTreeSet<ObjectRef>,
    pub(super) changed_routes: usize,
    pub(super) changed_names: Marks<Str>,
    pub(super) changed_secrets: BTreeSet<Key>,
    pub(super) changed_reports: BTreeSet<ObjectRef>,
    pub(super) changed_withheld: BTreeSet<ObjectRef>,
    /// Whether kept names, objects that are passed over or diagnostics of a route or Secret differ.
    pub(super) changed_notes: bool,
}

impl Due {
    /// What came out differently.
    pub(super) fn delta(mut self) -> Delta {
        // Policies and the owners of listeners have diagnostics of their own.
        let notes = self.changed_notes || self.are_policies_judged || !self.changed_parents.is_empty();
        Delta {
            routes: self.changed_routes,
            parents: self.changed_parents.into_iter().collect(),
            names: self.changed_names.take(),
            certificates: self.changed_secrets.into_iter().collect(),
            policies: self.changed_reports.into_iter().collect(),
            withheld: self.changed_withheld.into_iter().collect(),
            notes,
        }
    }
}
