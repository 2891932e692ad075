//! The decisions of a full build, updated only where objects changed.
//!
//! ```text
//! change ─▶ Gateway with its sets ─▶ listener context ─▶ route ─▶ name, Secret ─▶ policy
//! ```
//!
//! Every result comes from a leaf function of [`crate::attachment`] and [`crate::publication`]; a full build loops over
//! the same functions. This module holds the maps of results, the reverse indexes and the dirty sets. A change marks
//! results as dirty; a result equal to its previous value marks nothing further. No rule is written here; tests compare
//! every result with a full build.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::attachment::{Grants, Scope};
use crate::health::ObservedHealth;
use crate::model::Str;
use crate::names::Hostname;
use crate::publication::holders::ObservedNames;
use crate::publication::{HostnameGrants, PublicationSettings, WildcardGuards};
use crate::snapshot::{Change, Origin};

mod changes;
mod coverage;
mod decisions;
mod dirty;
mod gateways;
mod grants;
mod hidden;
mod query;
mod reverse_indexes;
mod routes;
#[cfg(test)]
pub(crate) mod tests;
mod world;

pub use query::{DesiredPatch, NameRecords};
pub use world::{Delta, World};

use coverage::Coverage;
use decisions::CnameTargets;
use dirty::Dirty;
use gateways::GroupNumbers;
use hidden::HiddenNames;
use reverse_indexes::ReverseIndexes;

/// The incremental driver: current results, reverse indexes, and state for the next application.
pub struct Engine {
    scope: Scope,
    world: World,
    grants: Grants,
    indexes: ReverseIndexes,
    group_numbers: GroupNumbers,
    coverage: Coverage,
    guards: WildcardGuards,
    hostname_grants: HostnameGrants,
    observed: ObservedNames,
    health: ObservedHealth,
    cname_targets: CnameTargets,
    hidden: HiddenNames,
    /// Names that exist for reasons other than routes.
    existing: BTreeSet<Str>,
}

impl Engine {
    /// An engine without any objects.
    pub fn new(settings: PublicationSettings, scope: Scope, origin: Origin) -> Self {
        let mut world = World { settings: Arc::new(settings), ..World::default() };
        world.snapshot.origin = origin;
        world.external = world.externally();
        Engine {
            scope,
            world,
            grants: Grants::default(),
            indexes: ReverseIndexes::default(),
            group_numbers: GroupNumbers::default(),
            coverage: Coverage::default(),
            guards: WildcardGuards::default(),
            hostname_grants: HostnameGrants::default(),
            observed: ObservedNames::default(),
            health: ObservedHealth::default(),
            cname_targets: CnameTargets::default(),
            hidden: HiddenNames::default(),
            existing: BTreeSet::new(),
        }
    }

    /// Applies all changes together and returns what changed in the results.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Delta {
        let mut dirty = Dirty::default();
        changes.into_iter().for_each(|change| self.take(change, &mut dirty));
        self.update_grants(&mut dirty);
        self.update_gateways(&mut dirty);
        self.update_policies(&mut dirty);
        self.update_contexts(&mut dirty);
        self.update_routes(&mut dirty);
        self.update_names(&mut dirty);
        self.update_secrets(&mut dirty);
        self.update_reports(&mut dirty);
        self.update_external(&mut dirty);
        dirty.delta()
    }

    /// The objects and decisions as of the last application.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Replaces the names that exist for reasons other than routes, such as challenges, and returns what changed. A DNS
    /// wildcard does not answer at or above these names (D13).
    pub fn set_existing_names(&mut self, names: impl IntoIterator<Item = Str>) -> Delta {
        let mut dirty = Dirty::default();
        let names: BTreeSet<Str> = names.into_iter().collect();
        self.existing.symmetric_difference(&names).for_each(|name| self.hidden.touch(name));
        self.existing.clone_from(&names);
        if self.coverage.set_existing(names) {
            self.update_names(&mut dirty);
            self.update_reports(&mut dirty);
        }
        dirty.delta()
    }

    /// Replaces what the existing records were made for, and returns what changed (D27).
    pub fn set_observed(&mut self, observed: ObservedNames) -> Delta {
        let mut dirty = Dirty::default();
        let before = std::mem::replace(&mut self.observed, observed);
        let differ: Vec<Hostname> =
            before.differences(&self.observed).filter_map(|name| Hostname::parse(name).ok()).collect();
        // A wildcard record concerns the names below it.
        if differ.iter().any(Hostname::is_wildcard) {
            dirty.names.extend(self.world.contested.iter().cloned());
        }
        dirty.names.extend(differ.into_iter().filter(|name| self.indexes.names.of(name).next().is_some()));
        self.update_names(&mut dirty);
        self.update_secrets(&mut dirty);
        self.update_reports(&mut dirty);
        dirty.delta()
    }

    /// Replaces what probes found out about addresses, and returns what changed.
    pub fn set_health(&mut self, health: &ObservedHealth) -> Delta {
        let mut dirty = Dirty::default();
        if self.health == *health {
            return dirty.delta();
        }
        let before = std::mem::replace(&mut self.health, health.clone());
        let differ = before.differences(&self.health).filter_map(|name| Hostname::parse(name).ok());
        dirty.names.extend(differ.filter(|name| self.indexes.names.of(name).next().is_some()));
        self.update_names(&mut dirty);
        self.update_secrets(&mut dirty);
        self.update_reports(&mut dirty);
        dirty.delta()
    }

    fn update_external(&mut self, dirty: &mut Dirty) {
        let Some(after) = self.world.externally().filter(|_| dirty.is_anything_changed) else { return };
        let before = self.world.external.replace(after.clone()).unwrap_or_default();
        let (old, new) = (before.records_by_name(), after.records_by_name());
        let names: BTreeSet<&Str> = old.keys().chain(new.keys()).copied().collect();
        let differs = |name: &&Str| old.get(*name) != new.get(*name);
        dirty.changed_names.extend(names.into_iter().filter(differs).cloned());
    }
}
