//! From desired and observed to steps: what to write, in which order, under which preconditions, and what is held back.
//!
//! One pass over values: [`wanted`] sorts desired records into zones, [`ownership`] tells whose each record is, [`diff`] compares
//! name by name, [`safety`] holds what must not be deleted, [`steps`] puts record and marker together, [`order`] makes
//! before it breaks. What is not provably ours never appears in a step; what could not be seen never causes one. Nothing
//! here reads a clock or talks to a provider.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{ObjectRef, Str};
use crate::publication::RecordType;
use crate::reason::{self, Reason};

mod answers;
mod canonical;
mod challenges;
mod cover;
mod diff;
mod digest;
pub mod follow;
pub mod in_vain;
pub mod intent;
pub mod labels;
pub mod layout;
pub mod observed;
mod order;
mod ownership;
mod safety;
pub mod seal;
pub mod settings;
pub mod stamp;
mod steps;
#[cfg(test)]
mod tests;
pub mod text;
mod wanted;
mod zone;

pub use intent::{Hold, Intent, RecordKey, Sight, SightCache, Unseen};
pub use observed::{Observed, RecordKind, RecordSet, ZoneChange, ZoneContent, ZoneState};
pub use settings::{Capabilities, Policy, Registry, Settings, TxtRegistry};
pub use stamp::Instance;

use cover::Cover;

/// What to write, in order, and what is held back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Steps in the order in which they are to be written.
    pub steps: Vec<Step>,
    /// What is not done, and why, sorted.
    pub held: Vec<Held>,
    /// Record sets that are wanted and ours. Who adds them up and gives them back as [`Intent::remembered`] can later delete
    /// those that external-dns made.
    pub ours: BTreeSet<RecordKey>,
    /// The state of each zone that the plan was made for.
    pub epochs: BTreeMap<Str, Str>,
    /// Stands for what the plan was made from and what it does; another plan has another one.
    pub digest: String,
}

/// One change of one name: all its record sets with their markers, written together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The zone.
    pub zone: Str,
    /// The name.
    pub name: Str,
    /// What becomes of the name.
    pub verb: Verb,
    /// Its record sets; none where only a marker changes.
    pub changes: Vec<SetChange>,
    /// The markers that go with them.
    pub markers: Vec<SetChange>,
    /// What must hold beside the old side of each change.
    pub guards: Vec<Precondition>,
    /// Why.
    pub because: String,
    /// Routes that ask for it.
    pub routes: Vec<ObjectRef>,
    /// Steps of one zone with the same number belong into one transaction: between them a name would not resolve.
    pub group: usize,
    /// Positions of the steps that must have been written before.
    pub after: Vec<usize>,
}

/// What becomes of a name or record set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// It comes into being.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
}

/// The change of one record set. Its old side is its precondition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetChange {
    /// The name.
    pub name: Str,
    /// Type.
    pub kind: RecordType,
    /// Tells it from others of its name and type.
    pub set_identifier: Option<Str>,
    /// What is there, as it was read; nothing where it is made.
    pub old: Option<Content>,
    /// What is to be there; nothing where it goes. Never empty.
    pub new: Option<Content>,
}

/// What a record set holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Content {
    /// TTL in seconds; where unset the provider's usual one.
    pub ttl: Option<u32>,
    /// Values, sorted.
    pub values: Vec<Str>,
    /// Properties for the provider.
    pub properties: Vec<(Str, Str)>,
}

/// What must be true of a zone when a step is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precondition {
    /// There is no such record set.
    Absent {
        /// The name.
        name: Str,
        /// Type.
        kind: RecordType,
        /// Tells it from others of its name and type.
        set_identifier: Option<Str>,
    },
    /// The record set holds exactly these values.
    Equals {
        /// The name.
        name: Str,
        /// Type.
        kind: RecordType,
        /// Tells it from others of its name and type.
        set_identifier: Option<Str>,
        /// The values as they were read.
        values: Vec<Str>,
    },
    /// The name has no record sets at all.
    Unused {
        /// The name.
        name: Str,
    },
}

/// Something that is not done, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The zone, where one is known.
    pub zone: Option<Str>,
    /// The name; empty where a whole zone or everything is meant.
    pub name: Str,
    /// Type, where it is about one record set.
    pub kind: Option<RecordType>,
    /// What would have become of it.
    pub verb: Option<Verb>,
    /// Which row of the catalog.
    pub reason: Reason,
    /// What is so, and what was kept.
    pub message: String,
    /// What is there.
    pub old: Vec<Str>,
    /// What would have been there.
    pub new: Vec<Str>,
    /// The object to look at.
    pub object: Option<ObjectRef>,
    /// The reason behind it, where it follows from another one.
    pub cause: Option<Reason>,
}

/// A plan is not the one that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The digest that was asked for.
    pub expected: String,
    /// The digest of this plan.
    pub found: String,
}

/// Decides what to write.
pub fn decide(intent: &Intent<'_>, observed: &Observed, settings: &Settings) -> Plan {
    decide_within(intent, observed, settings, None)
}

/// The same about a part, where it is known how much there is in all.
fn decide_within(intent: &Intent<'_>, observed: &Observed, settings: &Settings, whole: Option<&follow::Whole>) -> Plan {
    let mut wishes = wanted::sort_out(intent, observed, settings);
    observed.zones().for_each(|(zone, state)| wishes.hold_unreadable(zone, state));
    let zones: Vec<zone::Zone<'_>> = readable(observed, settings);
    let mut plan = Plan { epochs: epochs(&zones), ..Plan::default() };
    if let Some(held) = safety::twin(&zones, settings) {
        plan.held.push(held);
    } else {
        let table = Question { intent, observed, settings, whole };
        fill(&mut plan, table, &zones, &mut wishes);
    }
    drop(zones);
    plan.held.append(&mut wishes.held);
    drop(wishes);
    plan.held.sort();
    plan.held.dedup();
    plan.digest = digest::of(&plan, intent, observed, settings);
    plan
}

/// What a plan is made from.
#[derive(Clone, Copy)]
struct Question<'a> {
    intent: &'a Intent<'a>,
    observed: &'a Observed,
    settings: &'a Settings,
    whole: Option<&'a follow::Whole>,
}

/// Compares every zone, and puts into the plan what may be done and what is held.
fn fill(plan: &mut Plan, question: Question<'_>, zones: &[zone::Zone<'_>], wishes: &mut wanted::Wishes<'_>) {
    let Question { intent, observed, settings, whole } = question;
    let covers: Vec<_> = zones.iter().map(|zone| Cover::gather(zone, wishes, intent, settings)).collect();
    let challenges = wanted::challenges(intent.challenges, observed, settings);
    let retired = wanted::challenges(intent.retired, observed, settings);
    let protection = safety::Protection::new(intent, wishes);
    let table = diff::Table { intent, observed, settings, protection: &protection };
    let covers = zones.iter().zip(covers);
    let chosen: Vec<_> = covers.map(|(zone, cover)| cover.complete(zone, &table)).collect();
    let mut book = diff::Book::default();
    let mut drafts: Vec<diff::Draft<'_>> = Vec::new();
    for (zone, wanted) in zones.iter().zip(&chosen) {
        drafts.extend(table.zone(zone, wanted, &mut book));
        drafts.extend(challenges::drafts(zone, &table, &challenges, &retired, &mut book));
        drafts.extend(challenges::orphans(zone, &table, wanted, &challenges));
    }
    if let Some(whole) = whole {
        book.owned.clone_from(&whole.owned);
        book.sources.clone_from(&whole.sources);
        book.kinds = Some(whole.kinds.clone());
    }
    let drafts = safety::judge(drafts, &table, &chosen, &mut book);
    let mut built = Vec::with_capacity(drafts.len());
    // There may be very many, so each draft is let go when its step is there.
    for draft in drafts {
        match steps::build(&draft, settings) {
            Some(step) if settings.was_in_vain(&step) => book.held.push(step.in_vain()),
            Some(step) => built.push((step, draft.after.into_iter().collect())),
            None => {}
        }
    }
    plan.steps = order::arrange(built, zones);
    plan.held = book.held;
    plan.ours = book.ours;
}

fn readable<'a>(observed: &'a Observed, settings: &'a Settings) -> Vec<zone::Zone<'a>> {
    let read = observed.zones().filter_map(|(name, state)| match state {
        ZoneState::Read(content) => Some((name, content)),
        ZoneState::Unreadable(_) => None,
    });
    read.map(|(name, content)| zone::Zone::new(name, content, settings)).collect()
}

fn epochs(zones: &[zone::Zone<'_>]) -> BTreeMap<Str, Str> {
    zones.iter().map(|zone| (zone.name.clone(), zone.content.epoch.clone())).collect()
}

impl Plan {
    /// Whether a safety brake holds something that would otherwise be done.
    pub fn is_braked(&self) -> bool {
        self.held.iter().any(Held::is_brake)
    }

    /// Whether this is the plan that was asked for; any text that begins its digest will do, from eight digits on.
    pub fn check(&self, expected: &str) -> Result<(), Stale> {
        let stale = || Stale { expected: expected.to_owned(), found: self.digest.clone() };
        if begins(&self.digest, expected) { Ok(()) } else { Err(stale()) }
    }

    /// Changes that are held until somebody confirms them.
    pub fn unconfirmed(&self) -> impl Iterator<Item = &Held> {
        self.held.iter().filter(|held| held.is_confirmable())
    }

    /// The word by which exactly these changes are confirmed; nothing where none is held. What else changes, changes nothing
    /// about it.
    pub fn confirmation(&self) -> Option<String> {
        digest::of_unconfirmed(self.unconfirmed())
    }

    /// Whether a word confirms what is held: that of these changes, or the digest of the whole plan; any text that begins one
    /// will do, from eight digits on.
    pub fn is_confirmed_by(&self, word: &str) -> bool {
        self.confirmation().is_some_and(|held| begins(&held, word) || begins(&self.digest, word))
    }

    /// The first thing that stands in the way of a name.
    pub fn obstacle(&self, name: &str) -> Option<&Held> {
        self.held.iter().find(|held| &*held.name == name)
    }
}

/// Whether a word stands for a digest: its beginning, from eight digits on.
fn begins(digest: &str, word: &str) -> bool {
    word.len() >= 8 && digest.starts_with(&word.to_ascii_lowercase())
}

impl Step {
    /// The changes of its record sets and markers.
    pub fn all_changes(&self) -> impl Iterator<Item = &SetChange> {
        self.changes.iter().chain(&self.markers)
    }

    /// The changes in the order for a provider that writes them one by one: whoever stops in between leaves no record without
    /// its marker, and no CNAME beside something.
    pub fn one_by_one(&self) -> Vec<&SetChange> {
        let (makes, goes) = (|change: &&SetChange| change.new.is_some(), |change: &&SetChange| change.new.is_none());
        let markers_first = self.markers.iter().filter(makes).chain(self.changes.iter().filter(goes));
        let markers_last = self.changes.iter().filter(makes).chain(self.markers.iter().filter(goes));
        markers_first.chain(markers_last).collect()
    }

    /// Everything that must be true when it is written.
    pub fn preconditions(&self) -> Vec<Precondition> {
        let olds = self.all_changes().map(SetChange::precondition);
        let all: BTreeSet<Precondition> = olds.chain(self.guards.iter().cloned()).collect();
        all.into_iter().collect()
    }
}

impl SetChange {
    /// What becomes of the record set.
    pub fn verb(&self) -> Verb {
        match (&self.old, &self.new) {
            (None, _) => Verb::Create,
            (Some(_), Some(_)) => Verb::Update,
            (Some(_), None) => Verb::Delete,
        }
    }

    /// What must be true of the record set before.
    pub fn precondition(&self) -> Precondition {
        let (name, kind, set_identifier) = (self.name.clone(), self.kind, self.set_identifier.clone());
        match &self.old {
            None => Precondition::Absent { name, kind, set_identifier },
            Some(old) => Precondition::Equals { name, kind, set_identifier, values: old.values.clone() },
        }
    }
}

impl Content {
    /// What a record set holds, as it was read.
    pub fn of(set: &RecordSet) -> Self {
        Content { ttl: set.ttl, values: set.values.clone(), properties: set.properties.clone() }
    }
}

impl Held {
    /// Something about a name.
    fn new(zone: Option<&Str>, name: &str, reason: Reason, message: String) -> Self {
        Held {
            zone: zone.cloned(),
            name: name.into(),
            kind: None,
            verb: None,
            reason,
            message,
            old: Vec::new(),
            new: Vec::new(),
            object: None,
            cause: None,
        }
    }

    /// Whether a safety brake holds it, so that a command that was to act has refused.
    pub fn is_brake(&self) -> bool {
        self.reason == reason::OWNER_TWIN || self.is_confirmable()
    }

    /// Whether confirming the deletes would release it.
    pub fn is_confirmable(&self) -> bool {
        const CONFIRMABLE: [Reason; 5] = [
            reason::TOO_MANY_DELETES,
            reason::SOURCE_EMPTY,
            reason::APEX_GUARDED,
            reason::WILDCARD_GUARDED,
            reason::OWNERSHIP_UNPROVEN,
        ];
        CONFIRMABLE.contains(&self.reason)
    }
}

impl Verb {
    /// As shown to people and machines.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Delete => "delete",
        }
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
