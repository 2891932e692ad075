//! From desired and observed state to steps: what to write, in which order, with which preconditions, and what is held.
//!
//! [`wanted`] assigns desired records to zones, [`ownership`] determines the owner of each record, [`diff`] compares name by
//! name, [`safety`] holds deletes that must not happen, [`steps`] combines records with their markers, [`order`] creates
//! before it deletes. A record that is not provably ours is never in a step, and an object that could not be read never
//! causes one. The planner reads no clock and calls no provider.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{ObjectRef, Str};
use crate::publication::RecordType;
use crate::publication::holders::RecordOrigin;
use crate::reason::{self, Reason};

mod answers;
mod canonical;
mod challenges;
mod cover;
mod diff;
mod digest;
pub mod follow;
pub mod ineffective;
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

pub use intent::{Hold, HoldScope, Intent, OwnedSets, RecordKey, Sight, SightCache, Unseen};
pub use observed::{Observed, RecordKind, RecordSet, ZoneChange, ZoneContent, ZoneState};
pub use settings::{Capabilities, PlanSettings, Policy, Registry, TxtRegistry};
pub use stamp::Instance;

use cover::Cover;

/// The steps to write, in order, and what is held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Steps in the order in which they are to be written.
    pub steps: Vec<PlanStep>,
    /// What is held, and why, sorted.
    pub held: Vec<Held>,
    /// Record sets that are wanted and ours. A caller that collects them for [`Intent::remembered`] can later delete those that
    /// external-dns made.
    pub ours: OwnedSets,
    /// The state of each zone that the plan was made for.
    pub epochs: BTreeMap<Str, Str>,
    /// Identifies the inputs and the steps of the plan.
    pub digest: String,
}

/// One change of one name: all its record sets with their markers, written together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// The zone.
    pub zone: Str,
    /// The name.
    pub name: Str,
    /// What happens to the name.
    pub verb: Verb,
    /// Its record sets; none where only a marker changes.
    pub changes: Vec<SetChange>,
    /// The markers that go with them.
    pub markers: Vec<SetChange>,
    /// Preconditions beside the old side of each change.
    pub guards: Vec<Precondition>,
    /// Why.
    pub because: String,
    /// Routes that ask for it.
    pub routes: Vec<ObjectRef>,
    /// Steps of one zone with the same number go into one transaction: between them a name would not resolve.
    pub group: usize,
    /// Positions of the steps that must have been written before.
    pub after: Vec<usize>,
}

/// What happens to a name or record set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// It is created.
    Create,
    /// It changes.
    Update,
    /// It is deleted.
    Delete,
}

/// The change of one record set. Its old side is its precondition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetChange {
    /// The name.
    pub name: Str,
    /// Type.
    pub kind: RecordType,
    /// Distinguishes it from other record sets of its name and type.
    pub set_identifier: Option<Str>,
    /// The existing content as it was read; `None` if it is created.
    pub old: Option<Content>,
    /// The new content; `None` if it is deleted. Never empty.
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
        /// Distinguishes it from other record sets of its name and type.
        set_identifier: Option<Str>,
    },
    /// The record set holds exactly these values.
    Equals {
        /// The name.
        name: Str,
        /// Type.
        kind: RecordType,
        /// Distinguishes it from other record sets of its name and type.
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

/// A change that is not made, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The zone, where one is known.
    pub zone: Option<Str>,
    /// The name; empty where a whole zone or everything is meant.
    pub name: Str,
    /// Type, where it is about one record set.
    pub kind: Option<RecordType>,
    /// What would have happened to it.
    pub verb: Option<Verb>,
    /// Which row of the catalog.
    pub reason: Reason,
    /// The cause, and what was kept.
    pub message: String,
    /// What is there.
    pub old: Vec<Str>,
    /// What would have been there.
    pub new: Vec<Str>,
    /// The object to look at.
    pub object: Option<ObjectRef>,
    /// The reason behind it, where it follows from another one.
    pub cause: Option<Reason>,
    /// The provider that holds it; unset where there is only one, and in the plan of one.
    pub provider: Option<Str>,
}

/// The plan differs from the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The expected digest.
    pub expected: String,
    /// The digest of this plan.
    pub found: String,
}

/// Computes the plan for an intent.
pub fn decide(intent: &Intent<'_>, observed: &Observed, settings: &PlanSettings) -> Plan {
    decide_within(intent, observed, settings, None)
}

/// The objects that our existing records of these names were made for, by name: as their markers say, and in zones without
/// markers as earlier plans noted.
pub fn origins(
    observed: &Observed,
    settings: &PlanSettings,
    names: &BTreeSet<Str>,
    remembered: &OwnedSets,
) -> BTreeMap<Str, Vec<RecordOrigin>> {
    if names.is_empty() {
        return BTreeMap::new();
    }
    let Some(registry) = settings.txt() else { return ownership::remembered_origins(remembered, names.iter()) };
    let zones = readable(observed, settings);
    let of_zone = |zone: &zone::ZoneIndex<'_>| {
        let inside = names.iter().filter(|name| observed.zone_of(name).is_some_and(|found| found == zone.name));
        ownership::origins(zone, registry, inside)
    };
    zones.iter().flat_map(of_zone).collect()
}

/// The plan for a part of the names, with the totals of the whole if they are known.
fn decide_within(
    intent: &Intent<'_>,
    observed: &Observed,
    settings: &PlanSettings,
    whole: Option<&follow::Whole>,
) -> Plan {
    let mut all_wanted = wanted::sort_out(intent, observed, settings);
    observed.zones().for_each(|(zone, state)| all_wanted.hold_unreadable(zone, state));
    let zones: Vec<zone::ZoneIndex<'_>> = readable(observed, settings);
    let mut plan = Plan { epochs: epochs(&zones), ..Plan::default() };
    if let Some(held) = safety::owner_conflict(&zones, settings) {
        plan.held.push(held);
    } else {
        let context = PlanContext { intent, observed, settings, whole };
        fill(&mut plan, context, &zones, &mut all_wanted);
    }
    drop(zones);
    plan.held.append(&mut all_wanted.held);
    drop(all_wanted);
    plan.held.sort();
    plan.held.dedup();
    plan.digest = digest::of(&plan, intent, observed, settings);
    plan
}

/// The inputs of a plan.
#[derive(Clone, Copy)]
struct PlanContext<'a> {
    intent: &'a Intent<'a>,
    observed: &'a Observed,
    settings: &'a PlanSettings,
    whole: Option<&'a follow::Whole>,
}

/// Compares every zone and adds steps and held changes to the plan.
fn fill(
    plan: &mut Plan,
    question: PlanContext<'_>,
    zones: &[zone::ZoneIndex<'_>],
    all_wanted: &mut wanted::WantedByZone<'_>,
) {
    let PlanContext { intent, observed, settings, whole } = question;
    let covers: Vec<_> = zones.iter().map(|zone| Cover::gather(zone, all_wanted, intent, settings)).collect();
    let challenges = wanted::challenges(intent.challenges, observed, settings);
    let retired = wanted::challenges(intent.retired, observed, settings);
    let protection = safety::Protection::new(intent, all_wanted);
    let context = diff::DiffContext { intent, observed, settings, protection: &protection };
    let covers = zones.iter().zip(covers);
    let chosen: Vec<_> = covers.map(|(zone, cover)| cover.complete(zone, &context)).collect();
    let mut findings = diff::DiffFindings::default();
    let mut drafts: Vec<diff::StepDraft<'_>> = Vec::new();
    for (zone, wanted) in zones.iter().zip(&chosen) {
        drafts.extend(context.zone(zone, wanted, &mut findings));
        drafts.extend(challenges::drafts(zone, &context, &challenges, &retired, &mut findings));
        drafts.extend(challenges::orphans(zone, &context, wanted, &challenges));
    }
    if let Some(whole) = whole {
        findings.owned.clone_from(&whole.owned);
        findings.sources.clone_from(&whole.sources);
        findings.kinds = Some(whole.kinds.clone());
    }
    let drafts = safety::judge(drafts, &context, &chosen, &mut findings);
    let mut built = Vec::with_capacity(drafts.len());
    // A plan may have very many drafts, so each is dropped when its step is built.
    for draft in drafts {
        match steps::build(&draft, settings) {
            Some(step) if settings.was_ineffective(&step) => findings.held.push(step.held_as_ineffective()),
            Some(step) => built.push((step, draft.after.into_iter().collect())),
            None => {}
        }
    }
    plan.steps = order::arrange(built, zones);
    plan.held = findings.held;
    plan.ours = findings.ours;
}

fn readable<'a>(observed: &'a Observed, settings: &'a PlanSettings) -> Vec<zone::ZoneIndex<'a>> {
    let read = observed.zones().filter_map(|(name, state)| match state {
        ZoneState::Read(content) => Some((name, content)),
        ZoneState::Unreadable(_) => None,
    });
    read.map(|(name, content)| zone::ZoneIndex::new(name, content, settings)).collect()
}

fn epochs(zones: &[zone::ZoneIndex<'_>]) -> BTreeMap<Str, Str> {
    zones.iter().map(|zone| (zone.name.clone(), zone.content.epoch.clone())).collect()
}

impl Plan {
    /// Whether a safety rule holds a change.
    pub fn is_braked(&self) -> bool {
        self.held.iter().any(Held::is_brake)
    }

    /// Whether this is the expected plan. A prefix of the digest of at least eight digits is enough.
    pub fn check(&self, expected: &str) -> Result<(), Stale> {
        let stale = || Stale { expected: expected.to_owned(), found: self.digest.clone() };
        if begins(&self.digest, expected) { Ok(()) } else { Err(stale()) }
    }

    /// Names with records that are kept because it is not known whether they ought to be gone.
    pub fn unknown_names(&self) -> BTreeSet<Str> {
        let unknown = self.held.iter().filter(|held| held.reason == reason::SOURCE_UNKNOWN && !held.old.is_empty());
        unknown.map(|held| held.name.clone()).collect()
    }

    /// Changes that are held until they are confirmed.
    pub fn unconfirmed(&self) -> impl Iterator<Item = &Held> {
        self.held.iter().filter(|held| held.is_confirmable())
    }

    /// The digest that confirms exactly the held changes; `None` if none is held. It does not depend on other changes.
    pub fn confirmation(&self) -> Option<String> {
        digest::of_unconfirmed(self.unconfirmed())
    }

    /// Whether a text confirms what is held: the digest of these changes or of the whole plan, or a prefix of one with at
    /// least eight digits.
    pub fn is_confirmed_by(&self, word: &str) -> bool {
        self.confirmation().is_some_and(|held| begins(&held, word) || begins(&self.digest, word))
    }
}

/// Whether a text is a prefix of a digest, of at least eight digits.
fn begins(digest: &str, word: &str) -> bool {
    word.len() >= 8 && digest.starts_with(&word.to_ascii_lowercase())
}

impl PlanStep {
    /// The changes of its record sets and markers.
    pub fn all_changes(&self) -> impl Iterator<Item = &SetChange> {
        self.changes.iter().chain(&self.markers)
    }

    /// Everything that must be true when it is written.
    pub fn preconditions(&self) -> Vec<Precondition> {
        let olds = self.all_changes().map(SetChange::precondition);
        let all: BTreeSet<Precondition> = olds.chain(self.guards.iter().cloned()).collect();
        all.into_iter().collect()
    }
}

impl SetChange {
    /// What happens to the record set.
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

    /// Whether a record set of this type that holds it is an alias record: of addresses, with a name as its value.
    pub fn is_alias_of(&self, kind: RecordType) -> bool {
        let says_so = |(name, value): &(Str, Str)| &**name == "alias" && &**value == "true";
        matches!(kind, RecordType::A | RecordType::Aaaa) && self.properties.iter().any(says_so)
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
            provider: None,
        }
    }

    /// Whether a safety rule holds it, so that a command that should apply the plan fails.
    pub fn is_brake(&self) -> bool {
        self.reason == reason::OWNER_CONFLICT || self.is_confirmable()
    }

    /// Whether confirming the deletes would release it.
    pub fn is_confirmable(&self) -> bool {
        const CONFIRMABLE: [Reason; 6] = [
            reason::TOO_MANY_DELETES,
            reason::SOURCE_EMPTY,
            reason::APEX_GUARDED,
            reason::WILDCARD_GUARDED,
            reason::OWNERSHIP_UNPROVEN,
            reason::ADDRESSES_INWARD,
        ];
        CONFIRMABLE.contains(&self.reason)
    }
}

impl Verb {
    /// The text form in output.
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
