//! Steps as a provider carries them out: what belongs into one transaction, and which names it touches.

use std::collections::BTreeSet;

use gatepost_core::model::Str;

use gatepost_core::plan::{SetChange, Step};

/// Steps that are written together or not at all.
#[derive(Clone, Debug)]
pub(crate) struct Unit<'a> {
    /// Where the first of them stands in what was given.
    pub(crate) first: usize,
    /// The steps, which follow one another.
    pub(crate) steps: &'a [Step],
}

impl<'a> Unit<'a> {
    /// Every set that changes, markers last within a step.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &'a SetChange> + use<'a> {
        self.steps.iter().flat_map(|step| step.changes.iter().chain(&step.markers))
    }

    /// The names that it changes.
    pub(crate) fn names(&self) -> BTreeSet<&'a Str> {
        self.changes().map(|change| &change.name).collect()
    }

    /// What it is about, for messages: name and type of the first change.
    pub(crate) fn subject(&self) -> String {
        self.changes().next().map(|change| format!("{} {}", change.name, change.kind)).unwrap_or_default()
    }
}

/// Puts steps of one group together, in the order in which they were given.
pub(crate) fn units(steps: &[Step]) -> Vec<Unit<'_>> {
    let mut first = 0;
    let groups = steps.chunk_by(|a, b| a.group == b.group);
    let unit = |steps| {
        let unit = Unit { first, steps };
        first += unit.steps.len();
        unit
    };
    groups.map(unit).collect()
}
