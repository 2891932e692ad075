//! From hostnames with targets to records: split by type, merged within a source, deduplicated across sources.

use std::collections::{BTreeSet, HashMap};

use smallvec::smallvec;

use super::resolve::Host;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::model::{ObjectRef, SharedList, Str};
use crate::publication::annotations::RouteAnnotations;
use crate::publication::targets::{record_type, without_dot};
use crate::publication::{Record, RecordType};
use crate::reason;

/// A hostname that a route gets.
pub(super) struct Endpoint<'a> {
    pub(super) host: Host,
    pub(super) route: &'a ObjectRef,
    pub(super) asked: &'a RouteAnnotations,
}

/// Merges records. Of those that become one, the first determines everything but the targets.
#[derive(Default)]
pub(super) struct Merger {
    records: Vec<Record>,
    places: HashMap<Identity, usize>,
}

/// The merge key of records.
#[derive(PartialEq, Eq, Hash)]
struct Identity {
    name: Str,
    kind: RecordType,
    set_identifier: Option<Str>,
    ttl: Option<u32>,
    /// The first target, of a CNAME.
    target: Option<Str>,
}

impl Merger {
    /// Adds the records of one hostname of one route.
    pub(super) fn add(&mut self, endpoint: Endpoint) {
        for kind in [RecordType::A, RecordType::Aaaa, RecordType::Cname] {
            let targets = endpoint.host.targets.iter().filter(|target| record_type(target) == kind);
            let targets: Vec<Str> = targets.map(trimmed).collect();
            if !targets.is_empty() {
                self.unite(endpoint.record(kind, targets));
            }
        }
    }

    /// Adds records without merging them.
    pub(super) fn absorb(&mut self, records: Vec<Record>) {
        self.records.extend(records);
    }

    /// The records, targets in order.
    pub(super) fn finish(self) -> Vec<Record> {
        let mut records = self.records;
        for record in &mut records {
            record.targets = sorted_once(&record.targets);
        }
        tidy_listeners(&mut records);
        records
    }

    /// The records, each once: of several with the same type, name, set identifier and targets the first is kept.
    pub(super) fn finish_without_duplicates(self) -> Vec<Record> {
        let mut kept: Vec<Record> = Vec::with_capacity(self.records.len());
        let mut places: HashMap<(RecordType, Str, Option<Str>, SharedList<Str>), usize> = HashMap::new();
        for record in self.records {
            let identity = (record.kind, record.name.clone(), record.set_identifier.clone(), record.targets.clone());
            match places.get(&identity) {
                Some(place) => credit(&mut kept[*place], record),
                None => {
                    places.insert(identity, kept.len());
                    kept.push(record);
                }
            }
        }
        tidy_listeners(&mut kept);
        kept
    }

    fn unite(&mut self, record: Record) {
        let identity = Identity::of(&record);
        match self.places.get(&identity) {
            Some(place) => {
                let first = &mut self.records[*place];
                first.targets = with_new(&first.targets, &record.targets);
                credit(first, record);
            }
            None => {
                self.places.insert(identity, self.records.len());
                self.records.push(record);
            }
        }
    }
}

impl Identity {
    fn of(record: &Record) -> Self {
        Identity {
            name: record.name.clone(),
            kind: record.kind,
            set_identifier: record.set_identifier.clone(),
            ttl: record.ttl,
            target: record.targets.first().filter(|_| record.kind == RecordType::Cname).cloned(),
        }
    }
}

impl Endpoint<'_> {
    fn record(&self, kind: RecordType, targets: Vec<Str>) -> Record {
        Record {
            name: trimmed(&self.host.name),
            kind,
            targets: targets.into(),
            ttl: self.asked.ttl,
            set_identifier: self.asked.set_identifier.clone(),
            provider_specific: self.asked.properties.clone(),
            routes: smallvec![self.route.clone()],
            listeners: self.host.listeners.clone(),
            source: self.host.source,
            provider: None,
        }
    }
}

/// Reports names that DNS cannot hold as they are: a CNAME beside something else, or with several targets.
pub(super) fn report_clashes(records: &[Record], diagnostics: &mut Vec<Diagnostic>) {
    let mut names: HashMap<(&Str, &Option<Str>), Vec<&Record>> = HashMap::new();
    let cnames = records.iter().filter(|record| record.kind == RecordType::Cname);
    for record in cnames {
        names.entry((&record.name, &record.set_identifier)).or_default();
    }
    if names.is_empty() {
        return;
    }
    for record in records {
        if let Some(same) = names.get_mut(&(&record.name, &record.set_identifier)) {
            same.push(record);
        }
    }
    let firsts = records.iter().filter_map(|record| names.remove(&(&record.name, &record.set_identifier)));
    diagnostics.extend(firsts.filter_map(|same| clash(&same)));
}

fn clash(same: &[&Record]) -> Option<Diagnostic> {
    let first = same.first()?;
    let route = first.routes.first()?;
    if same.iter().any(|record| record.kind != RecordType::Cname) {
        let message = format!("`{}` would have a CNAME beside addresses; DNS allows only one of the two", first.name);
        return Some(Diagnostic::new(reason::TYPE_CLASH, route, FieldPath::root(), message));
    }
    let targets: Vec<&Str> = same.iter().flat_map(|record| record.targets.iter()).collect();
    if targets.iter().all(|target| *target == targets[0]) {
        return None;
    }
    let message =
        format!("`{}` would be a CNAME for `{}` and for `{}`", first.name, targets[0], targets[targets.len() - 1]);
    Some(Diagnostic::new(reason::SEVERAL_CNAME_TARGETS, route, FieldPath::root(), message))
}

fn tidy_listeners(records: &mut [Record]) {
    for record in records {
        record.listeners = sorted_once(&record.listeners);
    }
}

/// Names another record's routes and listeners on the one that was kept.
fn credit(kept: &mut Record, other: Record) {
    for route in other.routes.into_vec() {
        if !kept.routes.contains(&route) {
            kept.routes.push(route);
        }
    }
    kept.listeners = with_new(&kept.listeners, &other.listeners);
    kept.source = kept.source.min(other.source);
}

/// The items in order, each once.
fn sorted_once<T: Ord + Clone>(items: &SharedList<T>) -> SharedList<T> {
    if items.is_sorted_by(|a, b| a < b) {
        return items.clone();
    }
    items.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// The items, and behind them those of the others that are new.
fn with_new<T: PartialEq + Clone>(items: &SharedList<T>, others: &[T]) -> SharedList<T> {
    let new: Vec<&T> = others.iter().filter(|item| !items.contains(item)).collect();
    if new.is_empty() { items.clone() } else { items.iter().chain(new).cloned().collect() }
}

fn trimmed(name: &Str) -> Str {
    let text = without_dot(name);
    if text.len() == name.len() { name.clone() } else { text.into() }
}
