//! One name: its explanation, what is wanted and stored, what waits, and what happened to it lately.

use gatepost_core::explain::RecordWrites;
use gatepost_core::names::{Hostname, host_of};
use gatepost_core::plan::{Content, PlanStep};
use gatepost_core::publication::RecordType;

use super::names::{ExplainedName, Explainer};
use super::{ActivityEntry, PassFacts, WorldCopy};
use crate::view::api::{NameView, RecordSetView};
use crate::view::explain::ExplainView;
use crate::view::steps;

/// Reads a hostname or a URL; what is wrong with it, otherwise.
pub(super) fn hostname(text: &str) -> Result<Hostname, String> {
    let host = match text.split_once("://") {
        Some((_, rest_of_url)) => host_of(rest_of_url.split(['/', '?', '#']).next().unwrap_or_default()),
        None => text.to_ascii_lowercase(),
    };
    Hostname::parse(host.strip_suffix('.').unwrap_or(&host)).map_err(|error| format!("`{text}` {error}"))
}

/// Everything about one name.
pub(super) fn view(world: &WorldCopy, pass: &PassFacts, activity: Vec<ActivityEntry>, hostname: &Hostname) -> NameView {
    view_with(&mut Explainer::new(world), world, pass, activity, hostname)
}

/// The same with what explains several names.
pub(super) fn view_with(
    explainer: &mut Explainer<'_>,
    world: &WorldCopy,
    pass: &PassFacts,
    activity: Vec<ActivityEntry>,
    hostname: &Hostname,
) -> NameView {
    let ExplainedName { explanation, publication, states, health, cause } = explainer.explain(hostname);
    let name = hostname.as_str();
    // Where not everything may be seen, the pass has less than the world.
    let held: Vec<_> = match std::ptr::eq(pass, &*world.pass) {
        true => explainer.held(name).map(steps::held).collect(),
        false => pass.held.iter().filter(|held| &*held.name == name).map(steps::held).collect(),
    };
    let all_steps = pass.steps.iter().zip(&pass.outcomes).enumerate();
    let own_steps = all_steps.filter(|(_, (step, _))| &*step.name == name);
    let is_read = !held.iter().any(steps::HeldView::is_unread) && world.pass.unread.is_empty();
    NameView {
        generation: world.pass.generation,
        as_of: world.pass.ended,
        health: health.as_str(),
        cause,
        zone: world.pass.zone_of(name).map(ToString::to_string),
        record_sets: record_sets(world, &publication.records, name, is_read),
        held,
        steps: own_steps.flat_map(|(i, (step, outcome))| steps::rows_of(i, step, Some(outcome.told()))).collect(),
        activity,
        other_namespaces: Vec::new(),
        explain: ExplainView::of(&explanation, &publication).with_issuing(&states),
    }
}

/// What is wanted of each record set and what is stored, as of the last comparison. A set that the plan neither changes
/// nor holds is stored as it is wanted; of a zone that could not be read nothing is known.
fn record_sets(
    world: &WorldCopy,
    records: &[gatepost_core::publication::Record],
    name: &str,
    is_read: bool,
) -> Vec<RecordSetView> {
    let pass = &world.pass;
    let mut sets: Vec<RecordSetView> = Vec::new();
    for record in records {
        let targets: Vec<String> = record.targets.iter().map(ToString::to_string).collect();
        let owner = record.name.to_string();
        let is_done = pass.writes_of(&record.name) == RecordWrites::Done;
        let stored = (is_read && is_done).then(|| targets.clone());
        sets.push(RecordSetView { name: owner, kind: record.kind.as_str(), wanted: targets, stored });
    }
    let mut set_stored = |kind: RecordType, stored: Vec<String>, wanted: Vec<String>| match sets
        .iter_mut()
        .find(|set| set.kind == kind.as_str() && set.name == name)
    {
        Some(set) => set.stored = Some(stored),
        None if stored.is_empty() && wanted.is_empty() => {}
        None => sets.push(RecordSetView {
            name: name.to_owned(),
            kind: kind.as_str(),
            wanted: Vec::new(),
            stored: Some(stored),
        }),
    };
    let steps = pass.steps.iter().zip(&pass.outcomes).filter(|(step, _)| &*step.name == name);
    for (step, outcome) in steps {
        stored_by(step, outcome.word == "written").into_iter().for_each(|(kind, values)| {
            set_stored(kind, values, Vec::new());
        });
    }
    let texts = |values: &[gatepost_core::model::Str]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
    for held in pass.held.iter().filter(|held| &*held.name == name) {
        if let (Some(kind), true) = (held.kind, held.verb.is_some() || !held.old.is_empty()) {
            set_stored(kind, texts(&held.old), texts(&held.new));
        }
    }
    sets
}

/// The record sets after a step, if it was written, or before it.
fn stored_by(step: &PlanStep, is_written: bool) -> Vec<(RecordType, Vec<String>)> {
    let values =
        |content: Option<&Content>| content.iter().flat_map(|c| c.values.iter().map(ToString::to_string)).collect();
    let changes = step.changes.iter();
    changes
        .map(|change| (change.kind, values(if is_written { change.new.as_ref() } else { change.old.as_ref() })))
        .collect()
}
