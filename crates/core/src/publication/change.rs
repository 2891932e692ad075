//! The difference between two desired states: names, records and certificates.

use std::collections::{BTreeMap, BTreeSet};

use super::{Certificate, Desired, Record, RecordType};
use crate::model::{Key, ObjectRef, Str};

/// The difference between two desired states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Names that were not published before, sorted.
    pub gained: Vec<Str>,
    /// Names that are no longer published, sorted.
    pub lost: Vec<Str>,
    /// Names whose listeners belong to other Gateways or ListenerSets than before, sorted.
    pub moved: Vec<Moved>,
    /// Record sets that differ, sorted by name and type.
    pub records: Vec<Differs<Record>>,
    /// Certificates that differ, sorted by Secret.
    pub certificates: Vec<Differs<Certificate>>,
}

/// A name whose listeners belong to other objects than before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moved {
    /// The name.
    pub name: Str,
    /// The owners of the listeners that served it.
    pub from: Vec<ObjectRef>,
    /// The owners of the listeners that serve it now.
    pub to: Vec<ObjectRef>,
}

/// Before and after; one of them may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs<T> {
    /// Before.
    pub old: Option<T>,
    /// After.
    pub new: Option<T>,
}

impl Change {
    /// What changes from `old` to `new`.
    pub fn between(old: &Desired, new: &Desired) -> Change {
        let (before, after) = (owners(old), owners(new));
        let gained = after.keys().filter(|name| !before.contains_key(*name)).map(|name| (*name).clone());
        let lost = before.keys().filter(|name| !after.contains_key(*name)).map(|name| (*name).clone());
        let moved = before.iter().filter_map(|(name, from)| {
            let to = after.get(name).filter(|to| *to != from)?;
            let list = |owners: &BTreeSet<ObjectRef>| owners.iter().cloned().collect();
            Some(Moved { name: (*name).clone(), from: list(from), to: list(to) })
        });
        Change {
            gained: gained.collect(),
            lost: lost.collect(),
            moved: moved.collect(),
            records: differences(records(old), records(new), same_record),
            certificates: differences(certificates(old), certificates(new), |a, b| {
                a.dns_names == b.dns_names && a.issuer == b.issuer
            }),
        }
    }

    /// The names of which record sets differ.
    pub fn names_of_records(&self) -> BTreeSet<Str> {
        let sides = self.records.iter().flat_map(|differs| [&differs.old, &differs.new]).flatten();
        sides.map(|record| record.name.clone()).collect()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.gained.is_empty()
            && self.lost.is_empty()
            && self.moved.is_empty()
            && self.records.is_empty()
            && self.certificates.is_empty()
    }
}

/// The owners of the listeners that serve each published name.
fn owners(desired: &Desired) -> BTreeMap<&Str, BTreeSet<ObjectRef>> {
    let mut owners: BTreeMap<&Str, BTreeSet<ObjectRef>> = BTreeMap::new();
    for record in &desired.records {
        owners.entry(&record.name).or_default().extend(record.listeners.iter().map(|l| l.owner.clone()));
    }
    owners
}

type RecordKey<'a> = (&'a Str, RecordType, &'a Option<Str>, &'a Option<Str>);

fn records(desired: &Desired) -> BTreeMap<RecordKey<'_>, &Record> {
    desired.records.iter().map(|r| ((&r.name, r.kind, &r.set_identifier, &r.provider), r)).collect()
}

fn certificates(desired: &Desired) -> BTreeMap<&Key, &Certificate> {
    desired.certificates.iter().map(|c| (&c.secret, c)).collect()
}

/// Whether two record sets give the same answer, regardless of their routes.
fn same_record(a: &Record, b: &Record) -> bool {
    a.targets == b.targets && a.ttl == b.ttl && a.provider_specific == b.provider_specific
}

fn differences<K: Ord, T: Clone>(
    old: BTreeMap<K, &T>,
    new: BTreeMap<K, &T>,
    same: impl Fn(&T, &T) -> bool,
) -> Vec<Differs<T>> {
    let keys: BTreeSet<&K> = old.keys().chain(new.keys()).collect();
    let pairs = keys.into_iter().map(|key| (old.get(key).copied(), new.get(key).copied()));
    let differ = pairs.filter(|(a, b)| !matches!((a, b), (Some(a), Some(b)) if same(a, b)));
    differ.map(|(old, new)| Differs { old: old.cloned(), new: new.cloned() }).collect()
}
