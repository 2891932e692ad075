//! One name: its explanation, what is wanted and stored, what waits, and what happened to it lately.

use gatepost_core::explain::RecordWrites;
use gatepost_core::model::Str;
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
    let ExplainedName { explanation, publication, states, providers, health, cause } = explainer.explain(hostname);
    let name = hostname.as_str();
    let zones = world.pass.zones_of(name, &providers);
    // Where not everything may be seen, the pass has less than the world.
    let held: Vec<_> = match std::ptr::eq(pass, &*world.pass) {
        true => explainer.held(name, &providers).map(steps::held).collect(),
        false => pass.held.iter().filter(|held| &*held.name == name).map(steps::held).collect(),
    };
    let all_steps = pass.steps.iter().zip(&pass.outcomes).enumerate();
    let own_steps = all_steps.filter(|(_, (step, _))| &*step.name == name);
    let is_read = |provider: Option<&Str>| {
        let is_unread = |held: &steps::HeldView| held.is_unread_at(provider.map(|provider| &**provider));
        world.pass.is_read_at(provider) && !held.iter().any(is_unread)
    };
    let record_sets = record_sets(world, &publication.records, name, &is_read);
    NameView {
        generation: world.pass.generation,
        as_of: world.pass.ended,
        health: health.as_str(),
        cause,
        zone: zones.iter().map(|zone| &zone.name).max_by_key(|zone| zone.len()).map(ToString::to_string),
        record_sets,
        held,
        steps: own_steps
            .flat_map(|(i, (step, done))| steps::rows_of(i, step, done.provider.as_ref(), Some(done.told())))
            .collect(),
        activity,
        other_namespaces: Vec::new(),
        explain: ExplainView::of(&explanation, &publication).with_issuing(&states),
    }
}

/// What is wanted of each record set and what is stored at the same provider, as of the last comparison. A set that the plan neither changes
/// nor holds is stored as it is wanted; of a zone that could not be read nothing is known.
fn record_sets(
    world: &WorldCopy,
    records: &[gatepost_core::publication::Record],
    name: &str,
    is_read: &dyn Fn(Option<&Str>) -> bool,
) -> Vec<RecordSetView> {
    let pass = &world.pass;
    let mut sets: Vec<RecordSetView> = Vec::new();
    for record in records {
        let targets: Vec<String> = record.targets.iter().map(ToString::to_string).collect();
        let owner = record.name.to_string();
        let provider = record.provider.as_ref();
        let is_done = pass.writes_at(&record.name, provider) == RecordWrites::Done;
        let stored = (is_read(provider) && is_done).then(|| targets.clone());
        let provider = provider.map(ToString::to_string);
        sets.push(RecordSetView { name: owner, kind: record.kind.as_str(), provider, wanted: targets, stored });
    }
    let mut set_stored = |provider: Option<&Str>, kind: RecordType, stored: Vec<String>, is_wanted: bool| {
        let is_same = |set: &&mut RecordSetView| {
            set.kind == kind.as_str() && set.name == name && set.provider.as_deref() == provider.map(|of| &**of)
        };
        match sets.iter_mut().find(is_same) {
            Some(set) => set.stored = Some(stored),
            None if stored.is_empty() && !is_wanted => {}
            None => sets.push(RecordSetView {
                name: name.to_owned(),
                kind: kind.as_str(),
                provider: provider.map(ToString::to_string),
                wanted: Vec::new(),
                stored: Some(stored),
            }),
        }
    };
    let steps = pass.steps.iter().zip(&pass.outcomes).filter(|(step, _)| &*step.name == name);
    for (step, outcome) in steps {
        stored_by(step, outcome.word == "written").into_iter().for_each(|(kind, values)| {
            set_stored(outcome.provider.as_ref(), kind, values, false);
        });
    }
    let texts = |values: &[Str]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
    for held in pass.held.iter().filter(|held| &*held.name == name) {
        if let (Some(kind), true) = (held.kind, held.verb.is_some() || !held.old.is_empty()) {
            set_stored(held.provider.as_ref(), kind, texts(&held.old), !held.new.is_empty());
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
