//! What became of a step, as a fresh reading of its zone shows it.
//!
//! Values are compared as they were written and read. What is in doubt counts as changed, and is then left to the next plan.

use gatepost_core::model::Str;
use gatepost_core::plan::{PlanStep, Precondition, RecordSet, SetChange, ZoneContent};
use gatepost_core::publication::RecordType;

/// How a zone stands to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Everything that it writes is there.
    Done,
    /// Everything that it relies on is still so.
    Open,
    /// Neither.
    Changed,
}

/// How a zone stands to a step.
pub(super) fn state(step: &PlanStep, content: &ZoneContent) -> State {
    if step.all_changes().all(|change| is_done(change, content)) {
        State::Done
    } else if step.preconditions().iter().all(|condition| holds(condition, content)) {
        State::Open
    } else {
        State::Changed
    }
}

fn is_done(change: &SetChange, content: &ZoneContent) -> bool {
    let found = set(content, &change.name, change.kind, change.set_identifier.as_ref());
    match (&change.new, found) {
        (None, None) => true,
        (Some(new), Some(found)) => same(&new.values, &found.values),
        _ => false,
    }
}

fn holds(condition: &Precondition, content: &ZoneContent) -> bool {
    match condition {
        Precondition::Absent { name, kind, set_identifier } => {
            set(content, name, *kind, set_identifier.as_ref()).is_none()
        }
        Precondition::Equals { name, kind, set_identifier, values } => {
            set(content, name, *kind, set_identifier.as_ref()).is_some_and(|found| same(values, &found.values))
        }
        Precondition::Unused { name } => at(content, name).is_empty(),
    }
}

fn at<'c>(content: &'c ZoneContent, name: &str) -> &'c [RecordSet] {
    let sets = content.sets();
    let from = sets.partition_point(|set| &*set.name < name);
    let to = sets.partition_point(|set| &*set.name <= name);
    &sets[from..to]
}

fn set<'c>(content: &'c ZoneContent, name: &str, kind: RecordType, id: Option<&Str>) -> Option<&'c RecordSet> {
    at(content, name).iter().find(|set| set.made() == Some(kind) && set.set_identifier.as_ref() == id)
}

fn same(a: &[Str], b: &[Str]) -> bool {
    let sorted = |values: &[Str]| {
        let mut values: Vec<String> = values.iter().map(|value| plain(value)).collect();
        values.sort();
        values
    };
    sorted(a) == sorted(b)
}

/// A value without what servers change about names.
fn plain(value: &str) -> String {
    if value.starts_with('"') { value.to_owned() } else { value.trim_end_matches('.').to_ascii_lowercase() }
}
