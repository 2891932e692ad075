//! The same decisions as from scratch, made anew only where something has changed.
//!
//! ```text
//! change ─▶ Gateway with its sets ─▶ listener's side ─▶ route ─▶ name, Secret ─▶ policy
//! ```
//!
//! Every entry comes from a leaf function of [`crate::attachment`] and [`crate::publication`], the same that the from-scratch path
//! loops over; here are only the tables, who depends on whom, and what is dirty. A change marks entries; an entry that comes
//! out as before marks nothing further. Nothing is decided here, and nothing may be: a test compares with scratch.

use std::sync::Arc;

use crate::attachment::{Grants, Scope};
use crate::model::Str;
use crate::publication::PublicationSettings;
use crate::snapshot::{Change, Origin};

mod changes;
mod coverage;
mod decisions;
mod dirty;
mod gateways;
mod query;
mod reverse_indexes;
mod routes;
#[cfg(test)]
mod tests;
mod world;

pub use query::{DesiredPatch, NameRecords};
pub use world::{Delta, World};

use coverage::Coverage;
use dirty::Dirty;
use gateways::GroupNumbers;
use reverse_indexes::ReverseIndexes;

/// The world, what depends on what, and the state from which the next application starts.
pub struct Engine {
    scope: Scope,
    world: World,
    grants: Grants,
    indexes: ReverseIndexes,
    group_numbers: GroupNumbers,
    coverage: Coverage,
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
        }
    }

    /// Takes changes in, all of them at once, and says what came of them.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Delta {
        let mut dirty = Dirty::default();
        changes.into_iter().for_each(|change| self.take(change, &mut dirty));
        self.settle_gateways(&mut dirty);
        self.settle_policies(&mut dirty);
        self.settle_contexts(&mut dirty);
        self.settle_routes(&mut dirty);
        self.settle_names(&mut dirty);
        self.settle_secrets(&mut dirty);
        self.settle_reports(&mut dirty);
        self.settle_external(&mut dirty);
        dirty.delta()
    }

    /// The objects and decisions as of the last application.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Replaces the names that exist for other reasons than routes, such as those of challenges, and returns what changed:
    /// a DNS wildcard does not answer at or above them (D13).
    pub fn set_existing_names(&mut self, names: impl IntoIterator<Item = Str>) -> Delta {
        let mut dirty = Dirty::default();
        if self.coverage.set_existing(names) {
            self.settle_names(&mut dirty);
            self.settle_reports(&mut dirty);
        }
        dirty.delta()
    }

    fn settle_external(&mut self, dirty: &mut Dirty) {
        let Some(after) = self.world.externally().filter(|_| dirty.is_anything_changed) else { return };
        let before = self.world.external.replace(after.clone()).unwrap_or_default();
        let differ = crate::publication::change::Change::between(&before, &after);
        let records = differ.records.iter().filter_map(|differs| differs.new.as_ref().or(differs.old.as_ref()));
        dirty.changed_names.extend(records.map(|record| record.name.clone()));
    }
}
