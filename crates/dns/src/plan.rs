//! Stand-in for the planner's types until its branch is merged.

use std::collections::BTreeSet;
use std::fmt;

use gatepost_core::desired::RecordType;
use gatepost_core::model::{ObjectRef, Str};

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

impl Step {
    /// Everything that must be true when it is written.
    pub fn preconditions(&self) -> Vec<Precondition> {
        let olds = self.changes.iter().chain(&self.markers).map(SetChange::precondition);
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
/// A zone, read to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneContent {
    /// What tells this state of the zone from others: its serial, or whatever the provider has.
    pub epoch: Str,
    /// Its record sets, sorted.
    sets: Vec<RecordSet>,
}

/// One record set as it was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordSet {
    /// The name, lower case, without a dot at the end.
    pub name: Str,
    /// Type.
    pub kind: RecordKind,
    /// Tells record sets of one name and type apart, where the provider has that.
    pub set_identifier: Option<Str>,
    /// TTL in seconds, where the provider says it.
    pub ttl: Option<u32>,
    /// Values as they were read: TXT with its quotes.
    pub values: Vec<Str>,
    /// Properties that the provider keeps, by name.
    pub properties: Vec<(Str, Str)>,
}

/// The type of a record set: one that is made here, or any other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// A type that is made here.
    Made(RecordType),
    /// A type that is only ever left alone: `MX`.
    Other(Str),
}

impl ZoneContent {
    /// A zone of these record sets, in any order.
    pub fn new(epoch: impl Into<Str>, sets: impl IntoIterator<Item = RecordSet>) -> Self {
        let mut sets: Vec<RecordSet> = sets.into_iter().map(RecordSet::canonical).collect();
        sets.sort();
        sets.dedup_by(|later, first| later.key() == first.key() && first.absorb(later));
        ZoneContent { epoch: epoch.into(), sets }
    }

    /// Its record sets, sorted by name, type and set identifier.
    pub fn sets(&self) -> &[RecordSet] {
        &self.sets
    }
}

impl RecordSet {
    /// A record set without set identifier and properties.
    pub fn new<V: Into<Str>>(name: &str, kind: &str, ttl: Option<u32>, values: impl IntoIterator<Item = V>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        let set_identifier = None;
        RecordSet { name: name.into(), kind: kind.into(), set_identifier, ttl, values, properties: Vec::new() }
            .canonical()
    }

    /// The type, where it is one that is made here.
    pub fn made(&self) -> Option<RecordType> {
        match &self.kind {
            RecordKind::Made(kind) => Some(*kind),
            RecordKind::Other(_) => None,
        }
    }

    /// What tells it from all other record sets of its zone.
    pub fn key(&self) -> (&str, &RecordKind, Option<&Str>) {
        (&self.name, &self.kind, self.set_identifier.as_ref())
    }

    /// Takes the values of a set that was read in pieces.
    fn absorb(&mut self, other: &mut RecordSet) -> bool {
        self.values.append(&mut other.values);
        self.values.sort();
        self.values.dedup();
        true
    }

    fn canonical(mut self) -> Self {
        self.name = canonical::name(&self.name);
        self.set_identifier = self.set_identifier.filter(|id| !id.is_empty());
        self.values.sort();
        self.properties.sort();
        self
    }
}

impl RecordKind {
    /// As written in a zone.
    pub fn as_str(&self) -> &str {
        match self {
            RecordKind::Made(kind) => kind.as_str(),
            RecordKind::Other(kind) => kind,
        }
    }
}

impl From<&str> for RecordKind {
    fn from(text: &str) -> Self {
        let made = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
        let made = made.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(text));
        made.map_or_else(|| RecordKind::Other(text.to_ascii_uppercase().into()), RecordKind::Made)
    }
}

impl From<RecordType> for RecordKind {
    fn from(kind: RecordType) -> Self {
        RecordKind::Made(kind)
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

mod canonical {
    use gatepost_core::model::Str;
    pub(super) fn name(text: &str) -> Str {
        let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        text.strip_prefix("\\052").map_or_else(|| text.as_str().into(), |rest| format!("*{rest}").into())
    }
}
/// What a provider can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether all steps of a zone can be written in one transaction.
    pub is_atomic: bool,
    /// Whether a name may be an alias for another where no CNAME may stand.
    pub has_aliases: bool,
    /// Whether properties of records are kept.
    pub has_properties: bool,
    /// Whether several record sets of one name and type are told apart by identifiers.
    pub has_set_identifiers: bool,
    /// The lowest TTL that is kept as it is written.
    pub min_ttl: u32,
}

impl Default for Capabilities {
    /// What the plainest provider can: single changes, no properties, no identifiers.
    fn default() -> Self {
        Capabilities {
            is_atomic: false,
            has_aliases: false,
            has_properties: false,
            has_set_identifiers: false,
            min_ttl: 0,
        }
    }
}
