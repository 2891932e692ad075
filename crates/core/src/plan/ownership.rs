//! The owner of a record: the markers of a zone, and what they prove.
//!
//! A record is ours when a marker that belongs to it has our owner id. Everything that cannot be proven (another owner, no
//! marker, markers that disagree, a marker copied from another name) is not ours and is never changed.

use std::collections::{BTreeMap, BTreeSet};

use super::labels::{self, Labels};
use super::observed::{RecordSet, ZoneContent};
use super::settings::{PlanSettings, Registry, TxtRegistry};
use super::stamp::{Stamp, Stamped};
use super::text;
use super::zone::ZoneIndex;
use super::{OwnedSets, RecordKey};
use crate::model::{ObjectRef, Str};
use crate::publication::RecordType;
use crate::publication::holders::RecordOrigin;

/// An ownership value, and the TXT record set that contains it.
#[derive(Debug)]
pub(super) struct Marker<'a> {
    /// The TXT record set.
    pub(super) set: &'a RecordSet,
    /// The value as it was read.
    pub(super) value: &'a Str,
    /// Its labels.
    pub(super) labels: Labels,
    /// The record it is about, a wildcard replaced, and its type; none in the oldest layout.
    pub(super) target: (String, Option<&'static str>),
}

/// All ownership values of a zone.
#[derive(Default)]
pub(super) struct Markers<'a> {
    all: Vec<Marker<'a>>,
    by_target: BTreeMap<String, Vec<usize>>,
    by_place: BTreeMap<&'a str, Vec<usize>>,
}

/// The owner of a record set.
#[derive(Clone, Debug)]
pub(super) enum Ownership<'a> {
    /// Ours.
    Ours(Ours<'a>),
    /// A marker names another owner.
    Other(String),
    /// It has no marker.
    Unmanaged,
}

/// How a record set is known to be ours.
#[derive(Clone, Debug, Default)]
pub(super) struct Ours<'a> {
    /// The markers that prove it; none without a registry.
    pub(super) markers: Vec<&'a Marker<'a>>,
    /// Whether deletes are allowed: this instance wrote the marker, or the zone has no other writer.
    pub(super) is_proven: bool,
}

impl Ours<'_> {
    /// The object that the record set was made for: `httproute/shop/web`.
    pub(super) fn resource(&self) -> Option<&str> {
        self.markers.iter().find_map(|marker| marker.labels.resource())
    }

    /// The kind of that object: `httproute`.
    pub(super) fn source(&self) -> Option<&str> {
        self.resource()?.split_once('/').map(|(kind, _)| kind)
    }

    /// That object, where it is of a kind that is read here.
    pub(super) fn object(&self) -> Option<ObjectRef> {
        labels::object_of(self.resource()?)
    }
}

impl<'a> Markers<'a> {
    /// Reads the ownership values of a zone.
    pub(super) fn read(content: &'a ZoneContent, registry: &TxtRegistry) -> Self {
        let mut markers = Markers::default();
        for set in content.sets().iter().filter(|set| set.made() == Some(RecordType::Txt)) {
            let Some(target) = registry.layout.target_of(&set.name) else { continue };
            for value in &set.values {
                let Some(labels) = labels_in(value, registry) else { continue };
                let index = markers.all.len();
                markers.all.push(Marker { set, value, labels, target: target.clone() });
                // Nearly always it is one, and there may be very many.
                markers.by_target.entry(target.0.clone()).or_insert_with(|| Vec::with_capacity(1)).push(index);
                markers.by_place.entry(&set.name).or_insert_with(|| Vec::with_capacity(1)).push(index);
            }
        }
        markers
    }

    /// Every ownership value.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Marker<'a>> {
        self.all.iter()
    }

    /// The ownership values at a name.
    pub(super) fn at(&self, name: &str) -> impl Iterator<Item = &Marker<'a>> {
        self.by_place.get(name).into_iter().flatten().filter_map(|index| self.all.get(*index))
    }

    fn about(&self, name: &str, kind: Option<&'static str>) -> impl Iterator<Item = &Marker<'a>> {
        let found = self.by_target.get(name).into_iter().flatten().filter_map(|index| self.all.get(*index));
        found.filter(move |marker| marker.target.1 == kind)
    }
}

/// The labels of a value, sealed or plain; `None` if it is not a readable ownership value.
fn labels_in(value: &str, registry: &TxtRegistry) -> Option<Labels> {
    let text = String::from_utf8(text::content(value)).ok()?;
    let opened = registry.key.as_ref().and_then(|key| key.open(&text));
    Labels::parse(&opened.unwrap_or(text))
}

/// The owner of a record set. Without a registry it depends on whether its name and type are wanted.
pub(super) fn of<'z>(
    zone: &'z ZoneIndex<'_>,
    set: &RecordSet,
    settings: &PlanSettings,
    is_wanted: bool,
) -> Ownership<'z> {
    match &settings.registry {
        Registry::Txt(registry) => by_markers(zone, set, registry),
        Registry::WholeZone => Ownership::Ours(Ours { markers: Vec::new(), is_proven: true }),
        Registry::Noop if is_wanted => Ownership::Ours(Ours::default()),
        Registry::Noop => Ownership::Unmanaged,
    }
}

/// The owner of a record set according to its markers.
pub(super) fn by_markers<'z>(zone: &'z ZoneIndex<'_>, set: &RecordSet, registry: &TxtRegistry) -> Ownership<'z> {
    let Some(kind) = set.made() else { return Ownership::Unmanaged };
    let markers = belonging(zone, set, kind, registry);
    let owners: BTreeSet<&str> = markers.iter().map(|marker| marker.labels.owner()).collect();
    match owners.iter().copied().collect::<Vec<_>>()[..] {
        [] => Ownership::Unmanaged,
        [owner] if !is_our_owner(owner, registry) => Ownership::Other(owner.to_owned()),
        [_] => {
            let is_proven = markers.iter().any(|marker| is_stamped(marker, &set.name, kind, registry));
            Ownership::Ours(Ours { markers, is_proven })
        }
        _ => Ownership::Other(owners.into_iter().collect::<Vec<_>>().join("` and `")),
    }
}

/// The objects that our existing records of some names were made for, by name. Markers that this program stamped count
/// before others.
pub(super) fn origins<'n>(
    zone: &ZoneIndex<'_>,
    registry: &TxtRegistry,
    names: impl Iterator<Item = &'n Str>,
) -> BTreeMap<Str, Vec<RecordOrigin>> {
    let of_set = |set: &RecordSet| -> Vec<RecordOrigin> {
        let Ownership::Ours(ours) = by_markers(zone, set, registry) else { return Vec::new() };
        let Some(kind) = set.made() else { return Vec::new() };
        let stamped = ours.markers.iter().filter(|marker| stamp_of(marker, &set.name, kind, registry).is_some());
        let stamped: Vec<_> = stamped.filter_map(|marker| origin(marker)).collect();
        match stamped.is_empty() {
            true => ours.markers.iter().filter_map(|marker| origin(marker)).collect(),
            false => stamped,
        }
    };
    let mut origins = BTreeMap::new();
    for name in names {
        let mut found: Vec<RecordOrigin> = zone.at(name).iter().flat_map(of_set).collect();
        found.sort();
        found.dedup();
        if !found.is_empty() {
            origins.insert(name.clone(), found);
        }
    }
    origins
}

fn origin(marker: &Marker<'_>) -> Option<RecordOrigin> {
    let resource = marker.labels.resource()?;
    let (namespace, _) = resource.split_once('/')?.1.split_once('/')?;
    Some(RecordOrigin { namespace: namespace.into(), kind: labels::object_of(resource).map(|object| object.kind) })
}

/// The same from what earlier plans note about their records, for zones without markers.
pub(super) fn remembered_origins<'n>(
    remembered: &OwnedSets,
    names: impl Iterator<Item = &'n Str>,
) -> BTreeMap<Str, Vec<RecordOrigin>> {
    let mut origins: BTreeMap<Str, Vec<RecordOrigin>> = BTreeMap::new();
    for name in names {
        let first = RecordKey { name: name.clone(), kind: RecordType::A, set_identifier: None };
        let of_name = remembered.range(first..).take_while(|(key, _)| key.name == *name);
        for object in of_name.filter_map(|(_, object)| object.as_ref()) {
            let origin = RecordOrigin { namespace: object.namespace().clone(), kind: Some(object.kind) };
            origins.entry(name.clone()).or_default().push(origin);
        }
    }
    origins
}

/// Whether an owner id is ours, or one that is being taken over.
pub(super) fn is_our_owner(owner: &str, registry: &TxtRegistry) -> bool {
    owner == &*registry.owner || registry.migrate_from.as_deref() == Some(owner)
}

/// The markers that belong to a record set: of its type, else of no type, and not stamped for another record.
fn belonging<'z>(
    zone: &'z ZoneIndex<'_>,
    set: &RecordSet,
    kind: RecordType,
    registry: &TxtRegistry,
) -> Vec<&'z Marker<'z>> {
    let lookup = registry.layout.lookup_name(&set.name);
    let fits = |marker: &&'z Marker<'z>| {
        marker.set.set_identifier == set.set_identifier && is_about(zone, marker, set, kind, registry)
    };
    let found = |kind| zone.markers.about(&lookup, kind).filter(fits).collect::<Vec<_>>();
    let typed = found(Some(kind.as_str()));
    if !typed.is_empty() {
        return typed;
    }
    let is_alias = |(name, value): &(Str, Str)| &**name == "alias" && matches!(&**value, "true" | "A");
    if kind == RecordType::A && set.properties.iter().any(is_alias) {
        let old = found(Some(RecordType::Cname.as_str()));
        if !old.is_empty() {
            return old;
        }
    }
    if kind == RecordType::Aaaa { Vec::new() } else { found(None) }
}

/// Whether a marker is about this record set, and not about one that merely shares its marker's name.
fn is_about(
    zone: &ZoneIndex<'_>,
    marker: &Marker<'_>,
    set: &RecordSet,
    kind: RecordType,
    registry: &TxtRegistry,
) -> bool {
    match stamp_of(marker, &set.name, kind, registry) {
        Some(Stamp::Ours | Stamp::OtherInstance(_)) => true,
        Some(Stamp::Elsewhere) => false,
        None => sibling(&set.name, registry).is_none_or(|sibling| !zone.has(&sibling, kind)),
    }
}

/// The other name that would have the same marker: the wildcard of its replacement, or the other way round.
pub(super) fn sibling(name: &str, registry: &TxtRegistry) -> Option<String> {
    let replaced = registry.layout.lookup_name(name);
    if replaced != name { Some(replaced) } else { registry.layout.wildcard_of(name) }
}

fn is_stamped(marker: &Marker<'_>, name: &str, kind: RecordType, registry: &TxtRegistry) -> bool {
    match stamp_of(marker, name, kind, registry) {
        Some(Stamp::Ours) => true,
        Some(Stamp::OtherInstance(_)) => registry.replaces_instance && marker.labels.owner() == &*registry.owner,
        _ => false,
    }
}

/// What the stamp of a marker proves about a record; `None` if external-dns wrote the marker.
pub(super) fn stamp_of<'m>(
    marker: &'m Marker<'_>,
    name: &str,
    kind: RecordType,
    registry: &TxtRegistry,
) -> Option<Stamp<'m>> {
    let owner = marker.labels.owner();
    let set_identifier = marker.set.set_identifier.as_deref();
    let record = Stamped { owner, name, kind: kind.as_str(), set_identifier };
    marker.labels.stamp().map(|stamp| registry.instance.judge(stamp, &record))
}

/// A marker under our owner id that another instance wrote: its fingerprint, and the name of the marker.
pub(super) fn owner_conflict<'z>(zone: &'z ZoneIndex<'_>, registry: &TxtRegistry) -> Option<(&'z str, &'z str)> {
    let ours = zone.markers.iter().filter(|marker| marker.labels.owner() == &*registry.owner);
    ours.filter(|_| !registry.replaces_instance).find_map(|marker| {
        match stamp_of(marker, "", RecordType::A, registry) {
            Some(Stamp::OtherInstance(fingerprint)) => Some((fingerprint, &*marker.set.name)),
            _ => None,
        }
    })
}
