//! From the edits of a name to one step: its record sets, their markers, and the preconditions.
//!
//! A record and its marker are always in the same step. A marker is removed by the value that was read; other values of its
//! record set are written back as they were.

use std::collections::{BTreeMap, BTreeSet};

use super::diff::{Edit, StepDraft};
use super::labels::Labels;
use super::observed::RecordSet;
use super::ownership::{self, Marker, Ownership};
use super::settings::{PlanSettings, TxtRegistry};
use super::stamp::Stamped;
use super::{Content, PlanStep, Precondition, SetChange, Verb, text};
use crate::model::Str;
use crate::publication::RecordType;

/// The TXT record sets that a step changes, by name and identifier.
type MarkerSets<'a> = BTreeMap<(Str, Option<Str>), MarkerSet<'a>>;

/// A TXT record set with markers in it.
struct MarkerSet<'a> {
    old: Option<&'a RecordSet>,
    new: Content,
}

/// The step of a draft; `None` if nothing changes. Vectors have no spare capacity, because there may be very many steps.
pub(super) fn build(draft: &StepDraft<'_>, settings: &PlanSettings) -> Option<PlanStep> {
    let edits = || draft.upserts.iter().chain(&draft.removals);
    let changes = exactly(edits().filter_map(|edit| change(draft, edit)));
    let mut places = MarkerSets::new();
    let mut guards = guards(draft);
    if let Some(registry) = settings.txt() {
        for edit in edits() {
            guards.extend(mark(draft, edit, registry, &mut places));
        }
    }
    let markers = exactly(places.into_iter().filter_map(|(key, place)| place.change(key)));
    guards.shrink_to_fit();
    let mut because: Vec<&str> = edits().map(|edit| edit.because.as_str()).collect();
    because.dedup();
    let routes = edits().filter_map(|edit| edit.wanted).flat_map(|wanted| wanted.routes.iter().cloned());
    let routes: BTreeSet<_> = routes.collect();
    (!changes.is_empty() || !markers.is_empty()).then(|| PlanStep {
        zone: draft.zone.name.clone(),
        name: draft.name.clone(),
        verb: verb(draft),
        changes,
        markers,
        guards,
        because: because.join("; "),
        routes: routes.into_iter().collect(),
        group: 0,
        after: Vec::new(),
    })
}

/// Collects items without spare capacity.
fn exactly<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = items.collect();
    all.shrink_to_fit();
    all
}

fn verb(draft: &StepDraft<'_>) -> Verb {
    let is_new = draft.upserts.iter().all(|edit| edit.found.is_none());
    match (draft.upserts.is_empty(), draft.removals.is_empty()) {
        (true, _) => Verb::Delete,
        (false, true) if is_new => Verb::Create,
        _ => Verb::Update,
    }
}

fn change(draft: &StepDraft<'_>, edit: &Edit<'_>) -> Option<SetChange> {
    let old = edit.found.map(Content::of);
    let change = SetChange {
        name: draft.name.clone(),
        kind: edit.kind,
        set_identifier: edit.set_identifier.clone(),
        new: edit.new.clone(),
        old,
    };
    (change.old != change.new).then_some(change)
}

/// Preconditions beside the old sides: no other type exists beside a CNAME.
fn guards(draft: &StepDraft<'_>) -> Vec<Precondition> {
    let mut guards = Vec::new();
    let name = &draft.name;
    for edit in draft.upserts.iter().filter(|edit| edit.found.is_none()) {
        if edit.kind != RecordType::Cname && !draft.zone.has(name, RecordType::Cname) {
            guards.push(Precondition::Absent { name: name.clone(), kind: RecordType::Cname, set_identifier: None });
        } else if edit.kind == RecordType::Cname && draft.zone.at(name).is_empty() {
            guards.push(Precondition::Unused { name: name.clone() });
        }
    }
    for edit in draft.upserts.iter().filter(|edit| edit.found.map(Content::of) == edit.new) {
        guards.extend(edit.found.map(|set| equals(set, edit.kind)));
    }
    guards
}

fn equals(set: &RecordSet, kind: RecordType) -> Precondition {
    let (name, set_identifier) = (set.name.clone(), set.set_identifier.clone());
    Precondition::Equals { name, kind, set_identifier, values: set.values.clone() }
}

/// Writes or removes the markers of an edit. A marker that stays as it is becomes a precondition.
fn mark<'a>(
    draft: &'a StepDraft<'a>,
    edit: &'a Edit<'a>,
    registry: &TxtRegistry,
    places: &mut MarkerSets<'a>,
) -> Option<Precondition> {
    if edit.wanted.is_some() {
        return write(draft, edit, registry, places);
    }
    for marker in &edit.ours.markers {
        if marker.target.1.is_some() || !is_needed(draft, marker, registry) {
            MarkerSet::of(places, marker.set).new.values.retain(|value| value != marker.value);
        }
    }
    None
}

/// Whether an untyped marker is what makes another record set of the name ours.
fn is_needed(draft: &StepDraft<'_>, marker: &Marker<'_>, registry: &TxtRegistry) -> bool {
    let is_edited = |set: &RecordSet| {
        let mut edits = draft.upserts.iter().chain(&draft.removals);
        edits.any(|edit| edit.found.is_some_and(|found| found.key() == set.key()))
    };
    let others = draft.zone.at(&draft.name).iter().filter(|set| !is_edited(set));
    others.into_iter().any(|set| match ownership::by_markers(draft.zone, set, registry) {
        Ownership::Ours(ours) => ours.markers.iter().any(|other| other.set.key() == marker.set.key()),
        _ => false,
    })
}

fn write<'a>(
    draft: &'a StepDraft<'a>,
    edit: &'a Edit<'a>,
    registry: &TxtRegistry,
    places: &mut MarkerSets<'a>,
) -> Option<Precondition> {
    let name: Str = registry.layout.marker_of(&draft.name, edit.kind.as_str()).into();
    let set = draft.zone.set(&name, RecordType::Txt, edit.set_identifier.as_ref());
    let is_here = |marker: &&&Marker<'_>| set.is_some_and(|set| marker.set.key() == set.key());
    let known = edit.ours.markers.iter().find(is_here).copied();
    let present = known.or_else(|| draft.zone.markers.at(&name).find(|marker| is_here(&marker)));
    let read = present.or_else(|| edit.ours.markers.first().copied()).map(|marker| &marker.labels);
    let labels = labels(draft, edit, registry, read);
    let is_routed_otherwise = set.is_some_and(|set| is_routed_otherwise(set, edit));
    if let (Some(present), Some(set)) = (present, set)
        && present.labels == labels
        && !is_routed_otherwise
    {
        return Some(equals(set, RecordType::Txt));
    }
    let plain = labels.to_text();
    let text = match &registry.key {
        Some(key) if registry.is_sealing => key.seal(&name, &plain)?,
        _ => plain,
    };
    let value = Str::from(text::quoted(text.as_bytes()));
    let content = edit.new.as_ref()?;
    let place = match set {
        Some(set) => MarkerSet::of(places, set),
        None => places.entry((name, edit.set_identifier.clone())).or_insert_with(|| MarkerSet {
            old: None,
            new: Content { ttl: content.ttl, values: Vec::with_capacity(1), properties: content.properties.clone() },
        }),
    };
    if is_routed_otherwise {
        place.new.properties = content.properties.clone();
    }
    place.new.values.retain(|value| present.is_none_or(|present| value != present.value));
    place.new.values.push(value);
    place.new.values.sort();
    None
}

/// Whether the marker of one set among several of a name has a property that its record is not to have: providers refuse
/// sets of one name and type that are routed by different policies, and markers of several sets share a name as well.
fn is_routed_otherwise(marker: &RecordSet, edit: &Edit<'_>) -> bool {
    let Some(new) = edit.new.as_ref().filter(|_| edit.set_identifier.is_some()) else { return false };
    !marker.properties.iter().all(|property| new.properties.contains(property))
}

/// The new labels of a marker: those that were read, with our owner id, stamp and the current object.
fn labels(draft: &StepDraft<'_>, edit: &Edit<'_>, registry: &TxtRegistry, read: Option<&Labels>) -> Labels {
    let mut labels = read.cloned().unwrap_or_default();
    labels.set_owner(&registry.owner);
    if let Some(resource) = edit.wanted.and_then(|wanted| wanted.resource()) {
        labels.set_resource(&resource);
    }
    if let Some(values) = &edit.values {
        labels.set_values(values);
    }
    let (kind, set_identifier) = (edit.kind.as_str(), edit.set_identifier.as_deref());
    let record = Stamped { owner: &registry.owner, name: &draft.name, kind, set_identifier };
    labels.set_stamp(&registry.instance.stamp(&record));
    labels
}

impl<'a> MarkerSet<'a> {
    fn of<'p>(places: &'p mut MarkerSets<'a>, set: &'a RecordSet) -> &'p mut MarkerSet<'a> {
        let key = (set.name.clone(), set.set_identifier.clone());
        places.entry(key).or_insert_with(|| MarkerSet { old: Some(set), new: Content::of(set) })
    }

    fn change(self, (name, set_identifier): (Str, Option<Str>)) -> Option<SetChange> {
        let old = self.old.map(Content::of);
        let new = (!self.new.values.is_empty()).then_some(self.new);
        (old != new).then_some(SetChange { name, kind: RecordType::Txt, set_identifier, old, new })
    }
}
