//! A short text that identifies a plan by its inputs and its steps.
//!
//! Two plans with the same digest write the same under the same preconditions. Unrelated changes in a zone do not change it,
//! so that a reviewed plan stays valid; serials are therefore left out.

use ring::digest::{Context, SHA256};

use super::observed::{Observed, ZoneState};
use super::settings::{PlanSettings, Registry};
use super::stamp::hex;
use super::{Content, Held, Intent, Plan, PlanStep, SetChange};
use crate::publication::Record;

/// Bytes of the hash that are shown.
const SHOWN: usize = 8;

/// The digest of a plan.
pub(super) fn of(plan: &Plan, intent: &Intent<'_>, observed: &Observed, settings: &PlanSettings) -> String {
    let mut hash = Hash(Context::new(&SHA256));
    hash.settings(settings);
    for (zone, state) in observed.zones() {
        hash.text(zone);
        hash.text(if matches!(state, ZoneState::Read(_)) { "read" } else { "unreadable" });
    }
    for records in [intent.records, intent.covered, intent.challenges, intent.retired] {
        hash.records(records);
    }
    plan.steps.iter().for_each(|step| hash.step(step));
    hash.number(plan.steps.len());
    plan.held.iter().for_each(|held| hash.held(held));
    hex(&hash.0.finish().as_ref()[..SHOWN])
}

/// The digest of a change of a name: what was there, and what its record sets become.
pub(super) fn of_change(step: &PlanStep) -> String {
    let mut hash = Hash(Context::new(&SHA256));
    hash.texts([&*step.zone, &step.name]);
    step.changes.iter().for_each(|change| hash.change(change));
    for marker in &step.markers {
        hash.text(&marker.name);
        hash.content(marker.old.as_ref());
    }
    hex(&hash.0.finish().as_ref()[..SHOWN])
}

/// Identifies the changes that wait for confirmation, independent of the rest of the plan.
pub(super) fn of_unconfirmed<'h>(held: impl Iterator<Item = &'h Held>) -> Option<String> {
    let mut hash = Hash(Context::new(&SHA256));
    hash.text("unconfirmed");
    let count = held.map(|held| hash.held(held)).count();
    (count > 0).then(|| hex(&hash.0.finish().as_ref()[..SHOWN]))
}

/// A hash that is fed with values, each with its length, so that no two lists look the same.
struct Hash(Context);

impl Hash {
    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.update(text.as_bytes());
    }

    fn number(&mut self, number: usize) {
        self.0.update(&(number as u64).to_be_bytes());
    }

    fn texts<T: AsRef<str>>(&mut self, texts: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>) {
        let texts = texts.into_iter();
        self.number(texts.len());
        texts.for_each(|text| self.text(text.as_ref()));
    }

    fn settings(&mut self, settings: &PlanSettings) {
        self.text(settings.policy.as_str());
        match &settings.registry {
            Registry::Txt(registry) => {
                self.texts(["txt", &registry.owner, registry.instance.fingerprint()]);
                self.text(&format!("{:?} {:?}", registry.layout, registry.migrate_from));
                self.text(&format!("{} {}", registry.is_sealing, registry.replaces_instance));
            }
            Registry::Noop => self.text("noop"),
            Registry::WholeZone => self.text("whole zone"),
        }
        self.texts(settings.managed.iter().map(|kind| kind.as_str()).collect::<Vec<_>>());
        self.text(&format!("{:?} {:?}", settings.capabilities, settings.adopt));
        self.text(&format!("{} {}", settings.confirm_deletes, settings.trust_unstamped));
    }

    /// Records in any order.
    fn records(&mut self, records: &[Record]) {
        let line = |record: &Record| {
            let Record { name, kind, targets, ttl, set_identifier, provider_specific, routes, .. } = record;
            format!("{name} {kind} {targets:?} {ttl:?} {set_identifier:?} {provider_specific:?} {routes:?}")
        };
        let mut lines: Vec<String> = records.iter().map(line).collect();
        lines.sort();
        self.texts(lines);
    }

    fn step(&mut self, step: &PlanStep) {
        self.texts([&*step.zone, &step.name, step.verb.as_str()]);
        for changes in [&step.changes, &step.markers] {
            self.number(changes.len());
            changes.iter().for_each(|change| self.change(change));
        }
        self.text(&format!("{:?} {} {:?}", step.guards, step.group, step.after));
    }

    fn change(&mut self, change: &SetChange) {
        self.texts([&*change.name, change.kind.as_str(), change.set_identifier.as_deref().unwrap_or_default()]);
        self.content(change.old.as_ref());
        self.content(change.new.as_ref());
    }

    fn content(&mut self, content: Option<&Content>) {
        let Some(content) = content else { return self.text("none") };
        self.text(&format!("{:?}", content.ttl));
        self.texts(&content.values);
        self.texts(content.properties.iter().flat_map(|(name, value)| [name, value]).collect::<Vec<_>>());
    }

    fn held(&mut self, held: &Held) {
        let kind = held.kind.map_or("", |kind| kind.as_str());
        let verb = held.verb.map_or("", |verb| verb.as_str());
        self.texts([held.zone.as_deref().unwrap_or_default(), &held.name, kind, verb, held.reason.name()]);
        self.texts(&held.old);
        self.texts(&held.new);
    }
}
