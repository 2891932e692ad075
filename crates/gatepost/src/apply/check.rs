//! Whether a step took effect, according to a new read of its zone.
//!
//! Values are compared as written and read. In doubt a step counts as changed, which leaves it to the next plan.
//! Nothing is written here.

use gatepost_core::model::Str;
use gatepost_core::plan::{PlanStep, Precondition, RecordSet, SetChange, ZoneContent};
use gatepost_core::publication::RecordType;

/// The state of a step in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Everything that it writes exists.
    Done,
    /// All its preconditions still hold.
    Open,
    /// Neither.
    Changed,
}

/// The state of a step in a zone.
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

/// A value without the differences that servers make in names.
fn plain(value: &str) -> String {
    if value.starts_with('"') { value.to_owned() } else { value.trim_end_matches('.').to_ascii_lowercase() }
}
