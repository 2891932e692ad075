//! `plan` and `apply` with a provider as JSON: what is written, what became of it, and what is held.
//!
//! One row per record set, because that is what other programs look for; rows of one step share its number, and the first of
//! them has the markers of ownership that are written with it.

use gatepost_core::model::Str;
use gatepost_core::plan::{Content, Held, PlanStep, SetChange};
use schemars::JsonSchema;
use serde::Serialize;

use crate::apply::Outcome;

/// One record set of a step.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    verb: &'static str,
    name: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    old: Option<Vec<String>>,
    new: Option<Vec<String>>,
    because: String,
    zone: String,
    /// The provider, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    step: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_identifier: Option<String>,
    routes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    markers: Vec<MarkerView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct MarkerView {
    name: String,
    old: Option<Vec<String>>,
    new: Option<Vec<String>>,
}

/// Something that is not done.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct HeldView {
    reason: &'static str,
    code: &'static str,
    message: String,
    help: &'static str,
    is_brake: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    /// The provider, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    name: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verb: Option<&'static str>,
    old: Vec<String>,
    new: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
}

/// What became of a step: `written`, `failed` or `skipped`.
pub fn outcome_of(i: usize, outcome: &Outcome) -> &'static str {
    if outcome.written.contains(&i) {
        "written"
    } else if outcome.failed.contains_key(&i) {
        "failed"
    } else {
        "skipped"
    }
}

/// The rows of a step: what is to be told, and what became of it where it was tried.
pub(super) fn rows(i: usize, step: &PlanStep, outcome: Option<&Outcome>) -> Vec<StepView> {
    let told = |outcome: &Outcome| (outcome_of(i, outcome), outcome.failed.get(&i).map(ToString::to_string));
    rows_of(i, step, None, outcome.map(told))
}

/// The same with its provider, and what became of the step in a word, and why it failed.
pub fn rows_of(
    i: usize,
    step: &PlanStep,
    provider: Option<&Str>,
    outcome: Option<(&'static str, Option<String>)>,
) -> Vec<StepView> {
    let row = |change: Option<&SetChange>| StepView {
        verb: change.map_or(step.verb, SetChange::verb).as_str(),
        name: step.name.to_string(),
        kind: change.map(|change| change.kind.as_str()),
        old: change.and_then(|change| values(change.old.as_ref())),
        new: change.and_then(|change| values(change.new.as_ref())),
        because: step.because.clone(),
        zone: step.zone.to_string(),
        provider: provider.map(ToString::to_string),
        step: i,
        ttl: change.and_then(|change| change.new.as_ref()).and_then(|content| content.ttl),
        set_identifier: change.and_then(|change| change.set_identifier.as_ref()).map(ToString::to_string),
        routes: step.routes.iter().map(ToString::to_string).collect(),
        markers: Vec::new(),
        outcome: outcome.as_ref().map(|(word, _)| *word),
        error: outcome.as_ref().and_then(|(_, error)| error.clone()),
    };
    let mut rows: Vec<StepView> = step.changes.iter().map(|change| row(Some(change))).collect();
    if rows.is_empty() {
        rows.push(row(None));
    }
    if let Some(first) = rows.first_mut() {
        first.markers = step.markers.iter().map(marker).collect();
    }
    rows
}

fn marker(change: &SetChange) -> MarkerView {
    let name = change.name.to_string();
    MarkerView { name, old: values(change.old.as_ref()), new: values(change.new.as_ref()) }
}

fn values(content: Option<&Content>) -> Option<Vec<String>> {
    content.map(|content| content.values.iter().map(ToString::to_string).collect())
}

impl HeldView {
    /// Whether it is held because a zone of a provider could not be read; none where there is only one.
    pub fn is_unread_at(&self, provider: Option<&str>) -> bool {
        self.reason == gatepost_core::reason::ZONE_UNREADABLE.name() && self.provider.as_deref() == provider
    }
}

/// The row of what is held.
pub fn held(held: &Held) -> HeldView {
    let row = held.reason.row();
    let texts = |values: &[gatepost_core::model::Str]| values.iter().map(ToString::to_string).collect();
    HeldView {
        reason: row.name,
        code: row.code,
        message: held.message.clone(),
        help: row.help,
        is_brake: held.is_brake(),
        zone: held.zone.as_ref().map(ToString::to_string),
        provider: held.provider.as_ref().map(ToString::to_string),
        name: held.name.to_string(),
        kind: held.kind.map(|kind| kind.as_str()),
        verb: held.verb.map(|verb| verb.as_str()),
        old: texts(&held.old),
        new: texts(&held.new),
        object: held.object.as_ref().map(ToString::to_string),
        cause: held.cause.map(|cause| cause.name()),
    }
}
