//! The same decisions as from scratch, made anew only where something has changed.
//!
//! ```text
//! change ─▶ Gateway with its sets ─▶ listener's side ─▶ route ─▶ name, Secret ─▶ policy
//! ```
//!
//! Every entry comes from a leaf function of [`crate::attachment`] and [`crate::publication`], the same that the from-scratch path
//! loops over; here are only the tables, who depends on whom, and what is due. A change marks entries; an entry that comes
//! out as before marks nothing further. Nothing is decided here, and nothing may be: a test compares with scratch.

use std::collections::HashMap;
use std::sync::Arc;

use crate::attachment::{Grants, Scope};
use crate::model::Key;
use crate::publication::PublicationSettings;
use crate::publication::strict::SecretBook;
use crate::snapshot::{Change, Origin};

mod changes;
mod coverage;
mod due;
mod groups;
mod links;
mod marks;
mod named;
mod numbers;
mod outcomes;
mod routes;
#[cfg(test)]
mod tests;
mod world;

pub use world::{Delta, World};

use coverage::Coverage;
use due::Due;
use groups::Halls;
use links::Links;

/// Tables of everything decided, and who depends on whom.
pub struct Engine {
    scope: Scope,
    world: World,
    grants: Grants,
    links: Links,
    halls: Halls,
    coverage: Coverage,
    /// What is wished for each Secret; only asked, never walked.
    books: HashMap<Key, SecretBook>,
}

impl Engine {
    /// An engine that has seen nothing yet.
    pub fn new(settings: PublicationSettings, scope: Scope, origin: Origin) -> Self {
        let mut world = World { settings: Arc::new(settings), ..World::default() };
        world.snapshot.origin = origin;
        world.external = world.externally();
        Engine {
            scope,
            world,
            grants: Grants::default(),
            links: Links::default(),
            halls: Halls::default(),
            coverage: Coverage::default(),
            books: HashMap::new(),
        }
    }

    /// Takes changes in, all of them at once, and says what came of them.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Delta {
        let mut due = Due::default();
        changes.into_iter().for_each(|change| self.take(change, &mut due));
        self.settle_groups(&mut due);
        self.settle_policies(&mut due);
        self.settle_outlets(&mut due);
        self.settle_routes(&mut due);
        self.settle_names(&mut due);
        self.settle_secrets(&mut due);
        self.settle_reports(&mut due);
        self.settle_external(&mut due);
        due.delta()
    }

    /// This moment, for readers.
    pub fn world(&self) -> Arc<World> {
        Arc::new(self.world.clone())
    }

    fn settle_external(&mut self, due: &mut Due) {
        let Some(after) = self.world.externally().filter(|_| due.is_anything_changed) else { return };
        let before = self.world.external.replace(after.clone()).unwrap_or_default();
        let differ = crate::publication::change::Change::between(&before, &after);
        let records = differ.records.iter().filter_map(|differs| differs.new.as_ref().or(differs.old.as_ref()));
        due.changed_names.extend(records.map(|record| record.name.clone()));
    }
}
