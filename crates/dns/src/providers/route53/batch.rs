//! One batch of exact changes, made from steps and what was read.
//!
//! The service judges changes in their order: so what goes comes first, and aliases go before, and come after, what they may
//! lead to. A change is a delete of what was read and a create of what is to be, never an overwrite. What must stay as it was read is
//! deleted and created as it is, which fails if it is not.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gatepost_core::plan::{Content, Precondition, RecordSet, SetChange};

use super::records::WireKey;
use super::wire::{WireChange, WireSet};
use crate::provider::look::{self, Reading};
use crate::provider::{ProviderProblem, Unit};

/// Characters of all values of one batch.
const MOST_CHARACTERS: usize = 32_000;

/// A zone as it was read, by key.
pub(super) type ZoneSets = BTreeMap<WireKey, WireSet>;

/// What a batch makes of each set that it touches: what is there, and what is to be there.
#[derive(Default)]
pub(super) struct WireBatch(BTreeMap<WireKey, (Option<WireSet>, Option<WireSet>)>);

/// A zone with the changes of a batch, and of the unit that is added to it.
struct ZoneView<'a> {
    present: &'a ZoneSets,
    batch: &'a WireBatch,
    unit: &'a WireBatch,
}

/// Steps in the parts that are sent one after the other: none is too large, unless it is so by itself.
pub(super) fn parts<'u, 'a>(units: &'u [Unit<'a>], most_records: usize) -> Vec<&'u [Unit<'a>]> {
    let (mut parts, mut rest) = (Vec::new(), units);
    while let Some(first) = rest.first() {
        let (mut length, mut total) = (1, weight(first));
        for unit in &rest[1..] {
            let more = weight(unit);
            total = (total.0 + more.0, total.1 + more.1);
            if !fits(total, most_records) {
                break;
            }
            length += 1;
        }
        let (part, after) = rest.split_at(length);
        parts.push(part);
        rest = after;
    }
    parts
}

impl WireBatch {
    /// Adds a unit, or says why it cannot be sent: something is not as it was planned for, or the service would never take it.
    pub(super) fn add(
        &mut self,
        unit: &Unit<'_>,
        present: &ZoneSets,
        most_records: usize,
    ) -> std::result::Result<(), ProviderProblem> {
        let size = weight(unit);
        if !fits(size, most_records) {
            let message = format!(
                "it takes {} records with {} characters in one batch, which has at most {most_records} with {MOST_CHARACTERS}",
                size.0, size.1
            );
            return Err(ProviderProblem::Unwritable(message));
        }
        let mut own = WireBatch::default();
        for condition in unit.steps.iter().flat_map(|step| step.preconditions()) {
            let view = ZoneView { present, batch: self, unit: &own };
            if let Some(broken) = look::broken(&condition, &view) {
                return Err(ProviderProblem::Stale(broken));
            }
            let guarded = view.guarded(&condition);
            own.0.extend(guarded.map(|set| (set.key(), (Some(set.clone()), Some(set)))));
        }
        for change in unit.changes() {
            let (old, new) = ZoneView { present, batch: self, unit: &own }.sides(change)?;
            let key = (
                change.name.to_string(),
                change.kind.as_str().to_owned(),
                change.set_identifier.as_ref().map(|id| id.to_string()),
            );
            own.0.entry(key).or_insert((old, None)).1 = new;
        }
        for (key, (old, new)) in own.0 {
            self.0.entry(key).or_insert((old, None)).1 = new;
        }
        Ok(())
    }

    /// The changes in their order.
    pub(super) fn changes(&self) -> Vec<WireChange> {
        let (mut goes, mut comes) = (Vec::new(), Vec::new());
        for (old, new) in self.0.values() {
            goes.extend(old.iter().map(|set| WireChange { is_delete: true, set: set.clone() }));
            comes.extend(new.iter().map(|set| WireChange { is_delete: false, set: set.clone() }));
        }
        goes.sort_by_key(|change| change.set.alias.is_none());
        comes.sort_by_key(|change| change.set.alias.is_some());
        goes.extend(comes);
        goes
    }

    /// What a zone is after the batch.
    pub(super) fn carry_out(self, present: &mut ZoneSets) {
        for (key, (_, new)) in self.0 {
            match new {
                Some(set) => present.insert(key, set),
                None => present.remove(&key),
            };
        }
    }
}

impl ZoneView<'_> {
    /// A record set as it would be by now.
    fn get(&self, key: &WireKey) -> Option<&WireSet> {
        let changed = self.unit.0.get(key).or_else(|| self.batch.0.get(key));
        changed.map_or_else(|| self.present.get(key), |(_, new)| new.as_ref())
    }

    /// What a precondition says to be unchanged, where the batch does not touch it by itself.
    fn guarded(&self, condition: &Precondition) -> Option<WireSet> {
        let Precondition::Equals { name, kind, set_identifier, .. } = condition else { return None };
        let id = set_identifier.as_ref().map(|id| id.to_string());
        let key = (name.to_string(), kind.as_str().to_owned(), id);
        let is_touched = self.unit.0.contains_key(&key) || self.batch.0.contains_key(&key);
        self.present.get(&key).filter(|_| !is_touched).cloned()
    }

    /// What a change deletes, as it was read, and what it creates.
    fn sides(&self, change: &SetChange) -> std::result::Result<(Option<WireSet>, Option<WireSet>), ProviderProblem> {
        let id = change.set_identifier.as_ref().map(|id| id.to_string());
        let found = self.get(&(change.name.to_string(), change.kind.as_str().to_owned(), id));
        let stale = |what: &str| ProviderProblem::Stale(format!("{} {} {what}", change.name, change.kind));
        let old = match (&change.old, found) {
            (None, None) => None,
            (None, Some(_)) => return Err(stale("exists and was absent")),
            (Some(_), None) => return Err(stale("is gone")),
            (Some(old), Some(found)) if is_same(old, found) => Some(found.clone()),
            (Some(_), Some(_)) => return Err(stale("has another TTL, other values or other properties")),
        };
        let new = change.new.as_ref().map(|content| WireSet::new(change, content));
        if let Some(flaw) = new.as_ref().and_then(flaw) {
            return Err(ProviderProblem::Unwritable(flaw));
        }
        Ok((old, new))
    }
}

impl Reading for ZoneView<'_> {
    fn values(&self, name: &str, kind: &str, set_identifier: Option<&str>) -> Option<Vec<Cow<'_, str>>> {
        let key = (name.to_owned(), kind.to_owned(), set_identifier.map(str::to_owned));
        Some(self.get(&key)?.to_record_set().values.iter().map(|value| value.to_string().into()).collect())
    }

    fn is_used(&self, name: &str) -> bool {
        let first = (name.to_owned(), String::new(), None);
        let is_there = |key: &WireKey| key.0 == name && self.get(key).is_some();
        let all = [self.unit.0.range(first.clone()..).next(), self.batch.0.range(first.clone()..).next()];
        self.present.range(first..).take_while(|(key, _)| key.0 == name).any(|(key, _)| is_there(key))
            || all.into_iter().flatten().any(|(key, _)| is_there(key))
    }
}

/// Whether a record set is what was planned for.
fn is_same(old: &Content, found: &WireSet) -> bool {
    let RecordSet { ttl, values, properties, .. } = found.to_record_set();
    *old == Content { ttl, values, properties }
}

/// What the service would never take, with the annotation that is at fault.
fn flaw(set: &WireSet) -> Option<String> {
    let number = |name: &str| set.fields.get(name).map(|text| (text, text.parse::<i64>().ok()));
    let policies = ["aws/weight", "aws/region", "aws/failover", "aws/multi-value-answer"];
    let groups = ["aws/geolocation-", "aws/geoproximity-", "aws/cidr-"];
    let has = |prefix: &&&str| set.fields.keys().any(|name| name.starts_with(**prefix));
    let count = policies.iter().chain(&groups).filter(has).count();
    match number("aws/weight") {
        Some((text, None | Some(..0 | 256..))) => {
            return Some(format!("the annotation aws-weight `{text}` must be a number from 0 to 255"));
        }
        _ if set.set_identifier.is_some() && count != 1 => {
            let all = "aws-weight, aws-region, aws-failover, aws-multi-value-answer, aws-geolocation-… and aws-geoproximity-…";
            return Some(format!("a set identifier needs exactly one of the annotations {all}; it has {count}"));
        }
        _ => {}
    }
    match set.fields.get("aws/failover").map(String::as_str) {
        None | Some("PRIMARY" | "SECONDARY") => None,
        Some(text) => Some(format!("the annotation aws-failover `{text}` must be PRIMARY or SECONDARY")),
    }
}

/// Records and characters that a unit takes at most; what only must not change is deleted and created, too.
fn weight(unit: &Unit<'_>) -> (usize, usize) {
    let of = |values: &[gatepost_core::model::Str]| {
        (values.len().max(1), values.iter().map(|value| value.chars().count()).sum::<usize>())
    };
    let sides = unit.changes().flat_map(|change| [&change.old, &change.new]).flatten().map(|side| of(&side.values));
    let guards = unit.steps.iter().flat_map(|step| &step.guards).filter_map(|guard| match guard {
        Precondition::Equals { values, .. } => Some(of(values)),
        _ => None,
    });
    let guards = guards.map(|(records, characters)| (2 * records, 2 * characters));
    sides.chain(guards).fold((0, 0), |total, one| (total.0 + one.0, total.1 + one.1))
}

fn fits(size: (usize, usize), most_records: usize) -> bool {
    size.0 <= most_records && size.1 <= MOST_CHARACTERS
}
