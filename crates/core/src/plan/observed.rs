//! The zones as a provider read them, completely or not at all.
//!
//! A zone is either read to its end or unreadable: a partial read looks like a zone that lost records. Names are canonical,
//! values are kept as they were read.

use std::collections::BTreeMap;
use std::fmt;

use super::canonical;
use crate::model::Str;
use crate::publication::RecordType;

/// All zones that are served, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    zones: BTreeMap<Str, ZoneState>,
}

/// What is known about a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// All of it.
    Read(ZoneContent),
    /// Nothing, and why.
    Unreadable(String),
}

/// A zone, read to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneContent {
    /// Identifies this state of the zone: its serial, or an equivalent of the provider.
    pub epoch: Str,
    /// Its record sets, sorted.
    sets: Vec<RecordSet>,
}

/// The change of a zone from one state to the next. It may concern only some values of a record set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneChange {
    /// The state before.
    pub from: Str,
    /// The state after.
    pub to: Str,
    /// Removed values, by record set.
    pub gone: Vec<RecordSet>,
    /// Added values, by record set; applied after the removals.
    pub come: Vec<RecordSet>,
}

/// One record set as it was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordSet {
    /// The name, lower case, without a dot at the end.
    pub name: Str,
    /// Type.
    pub kind: RecordKind,
    /// Distinguishes record sets of one name and type, if the provider supports it.
    pub set_identifier: Option<Str>,
    /// TTL in seconds, if the provider reports it.
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
    /// A type that is never written: `MX`.
    Other(Str),
}

impl Observed {
    /// Adds a zone; its name may be written in any case and with a dot at the end.
    pub fn insert(&mut self, zone: &str, state: ZoneState) {
        self.zones.insert(canonical::name(zone), state);
    }

    /// The zones by name.
    pub fn zones(&self) -> impl ExactSizeIterator<Item = (&Str, &ZoneState)> {
        self.zones.iter()
    }

    /// The zones, taken apart.
    pub fn into_zones(self) -> impl Iterator<Item = (Str, ZoneState)> {
        self.zones.into_iter()
    }

    /// What is known about one zone.
    pub fn zone(&self, name: &str) -> Option<&ZoneState> {
        self.zones.get(name)
    }

    /// The zone that a name belongs to: the longest one at or above it.
    pub fn zone_of(&self, name: &str) -> Option<&Str> {
        let above = std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, rest)| rest)).chain([""]);
        above.into_iter().find_map(|name| self.zones.get_key_value(name).map(|(zone, _)| zone))
    }
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

    /// The same, taken apart.
    pub fn into_sets(self) -> Vec<RecordSet> {
        self.sets
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

    /// Its key within the zone.
    pub(super) fn key(&self) -> (&str, &RecordKind, Option<&Str>) {
        (&self.name, &self.kind, self.set_identifier.as_ref())
    }

    /// Removes values; returns whether all of them were present.
    pub(super) fn lose(&mut self, values: &[Str]) -> bool {
        let before = self.values.len();
        self.values.retain(|value| !values.contains(value));
        before == self.values.len() + values.len()
    }

    /// Adds values; returns whether none of them was present.
    pub(super) fn gain(&mut self, other: RecordSet) -> bool {
        let is_new = other.values.iter().all(|value| !self.values.contains(value));
        self.ttl = if self.values.is_empty() { other.ttl } else { self.ttl.min(other.ttl) };
        self.values.extend(other.values);
        self.values.sort();
        is_new
    }

    /// Adds the values of a set that was read in pieces.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_the_longest_zone_on_a_label_boundary() {
        let mut observed = Observed::default();
        for zone in ["Example.com.", "sub.example.com"] {
            observed.insert(zone, ZoneState::Unreadable(String::new()));
        }
        let table = [
            ("www.example.com", Some("example.com")),
            ("example.com", Some("example.com")),
            ("*.example.com", Some("example.com")),
            ("a.sub.example.com", Some("sub.example.com")),
            ("badexample.com", None),
            ("com", None),
        ];
        for (name, zone) in table {
            assert_eq!(observed.zone_of(name).map(|zone| &**zone), zone, "{name}");
        }
        observed.insert(".", ZoneState::Unreadable(String::new()));
        assert_eq!(observed.zone_of("badexample.com").map(|zone| &**zone), Some(""));
    }
}
