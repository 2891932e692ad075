//! The memory of earlier plans: record sets that are ours, recent deletes, and changes that had no effect. Stored as
//! one file that is replaced as a whole.
//!
//! It only ever makes a later plan more careful. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use gatepost_core::model::{ObjectRef, Str};
use gatepost_core::plan::labels::{object_of, resource_of};
use gatepost_core::plan::{OwnedSets, Plan, PlanStep, RecordKey, RecordKind, SetChange, ineffective};
use gatepost_core::publication::RecordType;
use serde::{Deserialize, Serialize};

use crate::apply::Outcome;
use crate::error::RunError;

/// The file name.
const MEMORY: &str = "memory.json";
/// The value of the `format` field.
const FORMAT: &str = "gatepost memory";
/// Maximum size of the file, in bytes.
const LARGEST: u64 = 256 << 20;
/// Seconds for which deletes and rewrites count as recent.
const RECENT: u64 = 3600;

/// The memory of earlier plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Record sets that earlier plans owned, and the routes that they were made for where no marker tells that.
    pub ours: OwnedSets,
    /// Deleted record sets that have not been created again, by zone, with the time in seconds.
    deleted: BTreeMap<(Str, RecordKey), u64>,
    /// The last change of each name, by zone and name, until it is observed in the zone.
    rewrites: BTreeMap<(String, String), Rewrites>,
}

/// How often the same change of a name was written, and when last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rewrites {
    /// The change, as [`PlanStep::mark`] identifies it.
    mark: String,
    at: u64,
    count: usize,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    format: String,
    version: u64,
    ours: Vec<KeptOwned>,
    #[serde(default)]
    deleted: Vec<KeptDelete>,
    #[serde(default)]
    rewrites: Vec<KeptRewrites>,
}

#[derive(Serialize, Deserialize)]
struct KeptOwned {
    #[serde(flatten)]
    key: KeptKey,
    /// The route that it was made for, as markers name it.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    made_for: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct KeptDelete {
    zone: String,
    at: u64,
    #[serde(flatten)]
    key: KeptKey,
}

#[derive(Serialize, Deserialize)]
struct KeptRewrites {
    zone: String,
    name: String,
    #[serde(flatten)]
    written: Rewrites,
}

#[derive(Serialize, Deserialize)]
struct KeptKey {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

impl Memory {
    /// Number of recently deleted record sets that have not been created again, by zone.
    pub fn recent_deletes(&self) -> BTreeMap<Str, usize> {
        self.deletes_since(now().saturating_sub(RECENT))
    }

    /// Changes that were recently written as often as is sensible; if they are planned again, they have no lasting
    /// effect.
    pub fn ineffective(&self) -> BTreeSet<String> {
        self.ineffective_since(now().saturating_sub(RECENT))
    }

    fn ineffective_since(&self, since: u64) -> BTreeSet<String> {
        let tried = self.rewrites.values().filter(|written| written.at >= since && written.count >= ineffective::TRIES);
        tried.map(|written| written.mark.clone()).collect()
    }

    fn deletes_since(&self, since: u64) -> BTreeMap<Str, usize> {
        let mut zones: BTreeMap<Str, usize> = BTreeMap::new();
        for ((zone, _), _) in self.deleted.iter().filter(|(_, at)| **at >= since) {
            *zones.entry(zone.clone()).or_default() += 1;
        }
        zones
    }

    /// Records the owned and written record sets of a plan; returns whether the memory changed. Owned sets may be very
    /// many, so they are not copied for the comparison.
    pub(super) fn learn(&mut self, plan: &Plan, outcome: &Outcome, now: u64) -> bool {
        let recently = (self.deleted.clone(), self.rewrites.clone());
        let new: Vec<_> = plan.ours.iter().filter(|(key, made_for)| self.ours.get(*key) != Some(*made_for)).collect();
        let mut is_other = !new.is_empty();
        self.ours.extend(new.into_iter().map(|(key, made_for)| (key.clone(), made_for.clone())));
        self.deleted.retain(|_, at| *at >= now.saturating_sub(RECENT));
        for step in outcome.written.iter().filter_map(|i| plan.steps.get(*i)) {
            step.changes.iter().for_each(|change| is_other |= self.learn_change(&step.zone, change, now));
        }
        self.learn_rewrites(plan, outcome, now);
        is_other || recently.0 != self.deleted || recently.1 != self.rewrites
    }

    fn learn_change(&mut self, zone: &Str, change: &SetChange, now: u64) -> bool {
        let (name, set_identifier) = (change.name.clone(), change.set_identifier.clone());
        let key = RecordKey { name, kind: change.kind, set_identifier };
        match change.new {
            Some(_) => self.deleted.remove(&(zone.clone(), key)).is_some(),
            None => {
                let was_ours = self.ours.remove(&key).is_some();
                self.deleted.insert((zone.clone(), key), now).is_none() || was_ours
            }
        }
    }

    fn learn_rewrites(&mut self, plan: &Plan, outcome: &Outcome, now: u64) {
        let held: BTreeSet<&str> = plan.held.iter().map(|held| &*held.name).collect();
        let at_rest: BTreeSet<&str> =
            plan.ours.keys().map(|key| &*key.name).filter(|name| !held.contains(name)).collect();
        let steps: BTreeSet<&str> = plan.steps.iter().map(|step| &*step.name).collect();
        let is_open = |name: &str| steps.contains(name) || !at_rest.contains(name);
        self.rewrites.retain(|(_, name), written| written.at >= now.saturating_sub(RECENT) && is_open(name));
        for step in outcome.written.iter().filter_map(|i| plan.steps.get(*i)) {
            self.learn_rewrite(step, now);
        }
    }

    fn learn_rewrite(&mut self, step: &PlanStep, now: u64) {
        let name = (step.zone.to_string(), step.name.to_string());
        let before = self.rewrites.remove(&name);
        let Some(mark) = step.mark() else { return };
        let count = before.filter(|before| before.mark == mark).map_or(0, |before| before.count) + 1;
        self.rewrites.insert(name, Rewrites { mark, at: now, count });
    }

    pub(super) fn load(directory: &Path) -> Result<Memory, RunError> {
        let path = &directory.join(MEMORY);
        let damaged = |error: String| {
            let advice = "remove the file to begin anew; then nothing is deleted that this instance did not write";
            RunError::Unreadable(anyhow::anyhow!("{} cannot be used ({error}): {advice}", path.display()))
        };
        let size = match fs::metadata(path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Memory::default()),
            Err(error) => return Err(damaged(error.to_string())),
        };
        if size > LARGEST {
            return Err(damaged("it is larger than 256 MiB".to_owned()));
        }
        let bytes = fs::read(path).map_err(|error| damaged(error.to_string()))?;
        Memory::read(&bytes).map_err(damaged)
    }

    fn read(bytes: &[u8]) -> Result<Memory, String> {
        let kept: Kept = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if (kept.format.as_str(), kept.version) != (FORMAT, 1) {
            return Err(format!("it is `{}` version {}, and this program knows version 1", kept.format, kept.version));
        }
        let ours = kept.ours.into_iter().map(KeptOwned::entry).collect::<Result<_, _>>()?;
        let rewrites = kept.rewrites.into_iter().map(|kept| ((kept.zone, kept.name), kept.written)).collect();
        let gone = |kept: KeptDelete| Ok(((Str::from(kept.zone), kept.key.key()?), kept.at));
        let deleted = kept.deleted.into_iter().map(gone).collect::<Result<_, String>>()?;
        Ok(Memory { ours, deleted, rewrites })
    }

    pub(super) fn save(&self, directory: &Path) -> io::Result<()> {
        let ours = self.ours.iter().map(KeptOwned::of).collect();
        let rewrites = self.rewrites.iter().map(|((zone, name), written)| {
            let (zone, name, written) = (zone.clone(), name.clone(), written.clone());
            KeptRewrites { zone, name, written }
        });
        let gone = |((zone, key), at): (&(Str, RecordKey), &u64)| KeptDelete {
            zone: zone.to_string(),
            at: *at,
            key: KeptKey::of(key),
        };
        let (deleted, rewrites) = (self.deleted.iter().map(gone).collect(), rewrites.collect());
        let kept = Kept { format: FORMAT.to_owned(), version: 1, ours, deleted, rewrites };
        let bytes = serde_json::to_vec(&kept).map_err(io::Error::other)?;
        super::replace(directory, MEMORY, &bytes)
    }
}

impl KeptOwned {
    fn of((key, made_for): (&RecordKey, &Option<ObjectRef>)) -> Self {
        KeptOwned { key: KeptKey::of(key), made_for: made_for.as_ref().map(resource_of) }
    }

    fn entry(self) -> Result<(RecordKey, Option<ObjectRef>), String> {
        Ok((self.key.key()?, self.made_for.as_deref().and_then(object_of)))
    }
}

impl KeptKey {
    fn of(key: &RecordKey) -> Self {
        let id = key.set_identifier.as_ref().map(ToString::to_string);
        KeptKey { name: key.name.to_string(), kind: key.kind.as_str().to_owned(), id }
    }

    fn key(self) -> Result<RecordKey, String> {
        let kind: RecordType = match RecordKind::from(self.kind.as_str()) {
            RecordKind::Made(kind) => kind,
            RecordKind::Other(other) => return Err(format!("`{other}` is not a record type that Gatepost writes")),
        };
        Ok(RecordKey { name: self.name.into(), kind, set_identifier: self.id.map(Into::into) })
    }
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use gatepost_core::plan::{Content, Verb};

    fn key(name: &str) -> RecordKey {
        RecordKey { name: name.into(), kind: RecordType::A, set_identifier: None }
    }

    pub(in crate::state) fn deletion(name: &str) -> Plan {
        let old = Some(Content { values: vec!["192.0.2.1".into()], ..Content::default() });
        let change = SetChange { name: name.into(), kind: RecordType::A, set_identifier: None, old, new: None };
        let step = PlanStep {
            zone: "example.com".into(),
            name: name.into(),
            verb: Verb::Delete,
            changes: vec![change],
            markers: Vec::new(),
            guards: Vec::new(),
            because: String::new(),
            routes: Vec::new(),
            group: 0,
            after: Vec::new(),
        };
        Plan { steps: vec![step], ours: [(key("b.example.com"), None)].into(), ..Plan::default() }
    }

    pub(in crate::state) fn written() -> Outcome {
        Outcome { written: [0].into(), ..Outcome::default() }
    }

    #[test]
    fn deletes_count_for_an_hour_and_only_if_they_were_made() {
        let mut memory = Memory { ours: [(key("a.example.com"), None)].into(), ..Memory::default() };
        memory.learn(&deletion("a.example.com"), &written(), 10_000);
        assert_eq!(memory.ours, [(key("b.example.com"), None)].into());
        assert_eq!(memory.deletes_since(10_000), [("example.com".into(), 1)].into());
        memory.learn(&deletion("c.example.com"), &Outcome::default(), 10_000 + RECENT + 1);
        assert!(memory.deleted.is_empty());
    }

    #[test]
    fn what_comes_back_was_not_deleted_for_the_brake() {
        let mut memory = Memory::default();
        let mut made = deletion("a.example.com");
        let change = &mut made.steps[0].changes[0];
        change.new = change.old.take();
        for now in 10_000..10_020 {
            memory.learn(&deletion("a.example.com"), &written(), now);
            assert_eq!(memory.deletes_since(0), [("example.com".into(), 1)].into());
            memory.learn(&made, &written(), now);
            assert!(memory.deletes_since(0).is_empty());
        }
    }

    fn rewrite(old: u32, new: u32) -> Plan {
        let content = |ttl| Some(Content { ttl: Some(ttl), values: vec!["192.0.2.1".into()], ..Content::default() });
        let mut plan = deletion("a.example.com");
        (plan.steps[0].verb, plan.ours) = (Verb::Update, [(key("a.example.com"), None)].into());
        (plan.steps[0].changes[0].old, plan.steps[0].changes[0].new) = (content(old), content(new));
        plan
    }

    #[test]
    fn the_same_change_twice_is_ineffective_for_an_hour() {
        let mut memory = Memory::default();
        memory.learn(&rewrite(300, 60), &written(), 10_000);
        assert!(memory.ineffective_since(0).is_empty());
        memory.learn(&rewrite(300, 60), &written(), 10_001);
        assert_eq!(memory.ineffective_since(0), rewrite(300, 60).steps[0].mark().into_iter().collect());
        assert!(memory.ineffective_since(10_002).is_empty());
        memory.learn(&Plan::default(), &Outcome::default(), 10_002);
        assert_eq!(
            memory.ineffective_since(0).len(),
            1,
            "a plan that does not speak of the name says nothing about it"
        );
    }

    #[test]
    fn a_change_that_came_about_or_was_followed_by_another_is_not_ineffective() {
        let at_rest = Plan { ours: [(key("a.example.com"), None)].into(), ..Plan::default() };
        for between in [at_rest, rewrite(60, 300)] {
            let mut memory = Memory::default();
            for now in [10_000, 10_010] {
                memory.learn(&rewrite(300, 60), &written(), now);
                memory.learn(&between, &written(), now + 1);
            }
            assert!(memory.ineffective_since(0).is_empty(), "{between:?}");
        }
    }
}
