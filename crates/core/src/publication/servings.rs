//! Where plain names are served: the same few sets of listeners for very many names, so that what follows from a set is put
//! together once. Only of names that no policy is told of, and that no annotation has a say in.

use std::collections::HashMap;
use std::sync::Arc;

use super::addresses::Targets;
use super::listener_context::Outlet;
use super::scratch::Secrets;
use crate::attachment::{ListenerId, ListenerKey};
use crate::few::Few;
use crate::model::{List, ObjectRef, Str};
use crate::publication::{NameSource, Record, RecordType};
use crate::seed::Seed;

/// Sets of listeners, by number.
pub(super) struct Servings<'a> {
    secrets: Secrets<'a>,
    all: Vec<Serving<'a>>,
    /// Those of one listener, by hall and slot.
    alone: Vec<Vec<Option<u32>>>,
    /// Those of several; nothing where they cannot share a name without a word.
    several: HashMap<Box<[u64]>, Option<u32>, Seed>,
    asked: Vec<u64>,
}

/// A set of listeners.
pub(super) struct Serving<'a> {
    /// The Secrets that are to have the name, by number, each with the listener that names it.
    pub(super) secrets: Few<(u32, &'a Outlet)>,
    listeners: List<ListenerKey>,
    /// Types and targets of the records, in order.
    answers: Few<(RecordType, List<Str>)>,
}

impl<'a> Servings<'a> {
    /// No sets yet.
    pub(super) fn new(secrets: Secrets<'a>) -> Self {
        Servings { secrets, all: Vec::new(), alone: Vec::new(), several: HashMap::default(), asked: Vec::new() }
    }

    /// The Secrets of all listeners.
    pub(super) fn secrets(&self) -> &Secrets<'a> {
        &self.secrets
    }

    /// The number of a set, which comes in order of precedence; nothing where it is empty, or where its listeners cannot share
    /// a name.
    pub(super) fn number(&mut self, outlets: &[&'a Arc<Outlet>]) -> Option<u32> {
        match outlets {
            [] => None,
            [outlet] => Some(self.alone(outlet)),
            _ => self.several(outlets),
        }
    }

    /// A set by its number.
    pub(super) fn at(&self, number: u32) -> &Serving<'a> {
        &self.all[number as usize]
    }

    fn alone(&mut self, outlet: &'a Outlet) -> u32 {
        let (hall, slot) = (outlet.id.hall as usize, outlet.id.slot as usize);
        if let Some(Some(number)) = self.alone.get(hall).and_then(|slots| slots.get(slot)) {
            return *number;
        }
        self.alone.resize_with(self.alone.len().max(hall + 1), Vec::new);
        let slots = &mut self.alone[hall];
        slots.resize(slots.len().max(slot + 1), None);
        let number = self.all.len() as u32;
        slots[slot] = Some(number);
        let answers = outlet.usual_targets().map(|targets| answers(targets)).unwrap_or_default();
        let secrets = named(outlet, &self.secrets).collect();
        self.all.push(Serving { secrets, listeners: outlet.seat.alone.clone(), answers });
        number
    }

    fn several(&mut self, outlets: &[&'a Arc<Outlet>]) -> Option<u32> {
        self.asked.clear();
        self.asked.extend(outlets.iter().map(|outlet| number(outlet.id)));
        if let Some(known) = self.several.get(&self.asked[..]) {
            return *known;
        }
        let made = Serving::of(outlets, &self.secrets);
        let number = made.is_some().then_some(self.all.len() as u32);
        self.all.extend(made);
        self.several.insert(self.asked[..].into(), number);
        number
    }
}

impl<'a> Serving<'a> {
    /// Several listeners; nothing where one of them answers with a name and another does not answer with the same.
    fn of(outlets: &[&'a Arc<Outlet>], secrets: &Secrets<'_>) -> Option<Self> {
        let targets: Vec<&Targets> = outlets.iter().filter_map(|outlet| outlet.usual_targets()).map(|t| &**t).collect();
        let (first, others) = targets.split_first()?;
        let mut united = (*first).clone();
        for other in others.iter().filter(|other| *other != first) {
            if first.is_name() || other.is_name() {
                return None;
            }
            united.unite(other);
        }
        let mut listeners: Vec<ListenerKey> = outlets.iter().map(|outlet| outlet.seat.key.clone()).collect();
        listeners.sort_unstable();
        listeners.dedup();
        Some(Serving {
            secrets: outlets.iter().flat_map(|outlet| named(outlet, secrets)).collect(),
            listeners: listeners.into(),
            answers: answers(&united),
        })
    }

    /// Adds the records of a name that these routes want here, in order.
    pub(super) fn publish(&self, name: Str, routes: Few<ObjectRef>, into: &mut Vec<Record>) {
        let Some((last, others)) = self.answers.split_last() else { return };
        into.extend(others.iter().map(|answer| self.record(answer, name.clone(), routes.clone())));
        into.push(self.record(last, name, routes));
    }

    fn record(&self, (kind, targets): &(RecordType, List<Str>), name: Str, routes: Few<ObjectRef>) -> Record {
        Record {
            name,
            kind: *kind,
            targets: targets.clone(),
            ttl: None,
            set_identifier: None,
            provider_specific: Vec::new(),
            routes,
            listeners: self.listeners.clone(),
            source: NameSource::Intersected,
        }
    }
}

/// A listener as a number.
fn number(id: ListenerId) -> u64 {
    u64::from(id.hall) << 32 | u64::from(id.slot)
}

/// The Secrets that a listener wants the name in.
fn named<'a>(outlet: &'a Outlet, secrets: &Secrets<'_>) -> impl Iterator<Item = (u32, &'a Outlet)> {
    let numbers = if outlet.certifies() { secrets.of(outlet) } else { &[] };
    numbers.iter().map(move |number| (*number, outlet))
}

fn answers(targets: &Targets) -> Few<(RecordType, List<Str>)> {
    targets.by_type().map(|(kind, targets)| (kind, targets.clone())).collect()
}
