//! Steps as a provider carries them out: what belongs into one transaction, and which names it touches.

use std::collections::BTreeSet;
use std::ops::Range;

use gatepost_core::model::Str;

use gatepost_core::plan::{PlanStep, SetChange};

use super::isolate::Piece;

/// Steps that are written together or not at all.
#[derive(Clone, Debug)]
pub(crate) struct Unit<'a> {
    /// Where the first of them stands in what was given.
    pub(crate) first: usize,
    /// The steps, which follow one another.
    pub(crate) steps: &'a [PlanStep],
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

    /// The same steps in two units.
    pub(crate) fn halves(&self) -> [Unit<'a>; 2] {
        let (first, second) = self.steps.split_at(self.steps.len() / 2);
        [Unit { first: self.first, steps: first }, Unit { first: self.first + first.len(), steps: second }]
    }
}

impl Piece for Unit<'_> {
    fn steps(&self) -> Range<usize> {
        self.first..self.first + self.steps.len()
    }

    /// Name and type of the first change.
    fn subject(&self) -> String {
        self.changes().next().map(|change| format!("{} {}", change.name, change.kind)).unwrap_or_default()
    }
}

/// Puts steps of one group together, in the order in which they were given.
pub(crate) fn units(steps: &[PlanStep]) -> Vec<Unit<'_>> {
    let mut first = 0;
    let groups = steps.chunk_by(|a, b| a.group == b.group);
    let unit = |steps| {
        let unit = Unit { first, steps };
        first += unit.steps.len();
        unit
    };
    groups.map(unit).collect()
}

#[cfg(test)]
mod tests {
    use gatepost_core::plan::Verb;

    use super::*;

    fn step(group: usize) -> PlanStep {
        PlanStep {
            zone: "example.com".into(),
            name: "www.example.com".into(),
            verb: Verb::Create,
            changes: Vec::new(),
            markers: Vec::new(),
            guards: Vec::new(),
            because: String::new(),
            routes: Vec::new(),
            group,
            after: Vec::new(),
        }
    }

    #[test]
    fn steps_of_one_group_are_one_unit() {
        let steps: Vec<PlanStep> = [3, 4, 4, 4, 5].map(step).into();
        let found: Vec<_> = units(&steps).iter().map(|unit| (unit.first, unit.steps.len())).collect();
        assert_eq!(found, [(0, 1), (1, 3), (4, 1)]);
        let [first, second] = units(&steps)[1].halves();
        assert_eq!([(first.first, first.steps.len()), (second.first, second.steps.len())], [(1, 1), (2, 2)]);
    }
}
