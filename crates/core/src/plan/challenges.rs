//! Short-lived TXT values: challenges of certificate orders, and markers whose record is gone.
//!
//! A TXT record set may contain values of several owners. Only ours are added and removed, the marker lists which ones are
//! ours, and all others are written back as they were read. No hostname depends on them, so neither the policy nor a safety
//! rule holds these edits.

use std::collections::{BTreeMap, BTreeSet};

use ring::digest;

use super::diff::{DiffContext, DiffFindings, Edit, Purpose, StepDraft};
use super::observed::RecordSet;
use super::ownership::{self, Marker, Ours};
use super::settings::{PlanSettings, Policy, Registry, TxtRegistry};
use super::stamp::{Stamp, hex};
use super::wanted::WantedSet;
use super::zone::ZoneIndex;
use super::{Content, Held, Verb, canonical};
use crate::model::Str;
use crate::publication::RecordType;
use crate::reason;

/// The values of challenges by zone and name.
pub(super) type Challenges<'a> = BTreeMap<&'a str, BTreeMap<Str, WantedSet<'a>>>;

/// Whether a TXT record set is a marker or contains challenges, and so is not a record of a hostname.
pub(super) fn is_special(zone: &ZoneIndex<'_>, set: &RecordSet, settings: &PlanSettings) -> bool {
    let Some(registry) = settings.txt() else { return true };
    let is_marker = zone.markers.at(&set.name).any(|marker| marker.set.key() == set.key());
    is_marker || value_marker(zone, &set.name, registry).is_some()
}

/// The edits that challenges need.
pub(super) fn drafts<'a>(
    zone: &'a ZoneIndex<'a>,
    context: &DiffContext<'a>,
    wanted: &'a Challenges<'a>,
    retired: &Challenges<'_>,
    findings: &mut DiffFindings,
) -> Vec<StepDraft<'a>> {
    let none = BTreeMap::new();
    let retired = retired.get(&**zone.name).unwrap_or(&none);
    let wanted = wanted.get(&**zone.name);
    let mut names: BTreeSet<Str> = wanted.into_iter().flat_map(BTreeMap::keys).chain(retired.keys()).cloned().collect();
    names.extend(known_names(zone, context.settings));
    let find = |name: &Str| wanted.and_then(|wanted| wanted.get(name));
    let drafts = names.iter().filter_map(|name| draft(zone, context, name, find(name), retired.get(name), findings));
    drafts.collect()
}

/// The names whose TXT values are ours according to the markers of the zone.
fn known_names(zone: &ZoneIndex<'_>, settings: &PlanSettings) -> Vec<Str> {
    match &settings.registry {
        Registry::Txt(registry) => {
            let marked = zone.markers.iter().filter(|marker| is_value_marker(marker, registry));
            marked.map(|marker| marker.target.0.as_str().into()).collect()
        }
        Registry::WholeZone => {
            let names = zone.names().filter(|name| is_challenge(name) && zone.has(name, RecordType::Txt));
            names.map(Str::from).collect()
        }
        Registry::Noop => Vec::new(),
    }
}

/// Whether a name is one that certificate orders use.
fn is_challenge(name: &str) -> bool {
    name.starts_with("_acme-challenge.")
}

/// Whether a marker lists values of a TXT record set, and this instance wrote it there.
fn is_value_marker(marker: &Marker<'_>, registry: &TxtRegistry) -> bool {
    let name = &marker.target.0;
    marker.target.1 == Some(RecordType::Txt.as_str())
        && marker.labels.values().is_some()
        && ownership::stamp_of(marker, name, RecordType::Txt, registry) == Some(Stamp::Ours)
}

fn value_marker<'z>(zone: &'z ZoneIndex<'_>, name: &str, registry: &TxtRegistry) -> Option<&'z Marker<'z>> {
    let place = registry.layout.marker_of(name, RecordType::Txt.as_str());
    zone.markers.at(&place).find(|marker| is_value_marker(marker, registry))
}

fn draft<'a>(
    zone: &'a ZoneIndex<'a>,
    context: &DiffContext<'a>,
    name: &Str,
    wanted: Option<&'a WantedSet<'a>>,
    retired: Option<&WantedSet<'_>>,
    findings: &mut DiffFindings,
) -> Option<StepDraft<'a>> {
    let found = zone.set(name, RecordType::Txt, None);
    let marker = context.settings.txt().and_then(|registry| value_marker(zone, name, registry));
    let (ours, others) = divide(found, marker, retired, context.settings);
    if let Some(held) = wanted.and_then(|wanted| obstacle(zone, name, wanted)) {
        findings.held.push(held);
        return None;
    }
    let values = wanted.map(|wanted| wanted.content.values.clone()).unwrap_or_default();
    let fingerprints: Vec<String> = values.iter().map(|value| fingerprint(value)).collect();
    let is_marked = context.settings.txt().is_none()
        || marker.map(|marker| marker.labels.values().into_iter().flatten().collect::<Vec<_>>())
            == wanted.map(|_| fingerprints.iter().map(String::as_str).collect());
    let is_same = ours == values.iter().cloned().collect();
    if is_same && is_marked {
        return None;
    }
    let edit = Edit {
        kind: RecordType::Txt,
        set_identifier: None,
        found,
        ours: Ours { markers: marker.into_iter().collect(), is_proven: true },
        new: joined(found, wanted, &values, &others, is_same),
        wanted,
        values: Some(fingerprints),
        because: if wanted.is_some() {
            "a certificate order needs it"
        } else {
            "no certificate order needs it any more"
        }
        .to_owned(),
    };
    let is_removal = edit.new.is_none();
    let (upserts, removals) = if is_removal { (Vec::new(), vec![edit]) } else { (vec![edit], Vec::new()) };
    Some(StepDraft { zone, name: name.clone(), upserts, removals, purpose: Purpose::Upkeep, after: BTreeSet::new() })
}

/// What a TXT record set is to hold: the values of others as they were read, and ours.
fn joined(
    found: Option<&RecordSet>,
    wanted: Option<&WantedSet<'_>>,
    values: &[Str],
    others: &BTreeSet<Str>,
    is_same: bool,
) -> Option<Content> {
    if is_same && let Some(found) = found {
        return Some(Content::of(found));
    }
    let all: BTreeSet<Str> = others.iter().cloned().chain(values.iter().cloned()).collect();
    let ttl = found.and_then(|set| set.ttl).or_else(|| wanted.and_then(|wanted| wanted.content.ttl));
    let properties = found.map(|set| set.properties.clone()).unwrap_or_default();
    (!all.is_empty()).then(|| Content { ttl, values: all.into_iter().collect(), properties })
}

/// Our values of a TXT record set in canonical form, and those of others as they were read.
fn divide(
    found: Option<&RecordSet>,
    marker: Option<&Marker<'_>>,
    retired: Option<&WantedSet<'_>>,
    settings: &PlanSettings,
) -> (BTreeSet<Str>, BTreeSet<Str>) {
    let marked: BTreeSet<&str> = marker.and_then(|marker| marker.labels.values()).into_iter().flatten().collect();
    let (mut ours, mut others) = (BTreeSet::new(), BTreeSet::new());
    let Some(set) = found else { return (ours, others) };
    for value in &set.values {
        let canonical = canonical::value(&set.kind, value);
        let is_retired = retired.is_some_and(|retired| retired.content.values.contains(&canonical));
        let is_whole = matches!(settings.registry, Registry::WholeZone) && is_challenge(&set.name);
        if is_whole || is_retired || marked.contains(fingerprint(&canonical).as_str()) {
            ours.insert(canonical);
        } else {
            others.insert(value.clone());
        }
    }
    (ours, others)
}

/// What keeps the value of a challenge from being published.
fn obstacle(zone: &ZoneIndex<'_>, name: &Str, wanted: &WantedSet<'_>) -> Option<Held> {
    let (reason, message) = if zone.has(name, RecordType::Cname) {
        (reason::TYPE_CLASH, format!("`{name}` is a CNAME, so that no TXT record may stand there"))
    } else {
        let cut = zone.cut_above(name)?;
        (
            reason::ZONE_NOT_SERVED,
            format!("zone `{}` hands `{cut}` over, so that `{name}` is not answered from it", zone.name),
        )
    };
    let verb = Some(Verb::Create);
    let new = wanted.content.values.clone();
    Some(Held { kind: Some(RecordType::Txt), verb, new, ..Held::new(Some(zone.name), name, reason, message) })
}

/// The fingerprint of a value in a marker.
fn fingerprint(value: &str) -> String {
    hex(&digest::digest(&digest::SHA256, value.as_bytes()).as_ref()[..6])
}

/// Markers of this instance whose record is gone, for example after a crash.
pub(super) fn orphans<'a>(
    zone: &'a ZoneIndex<'a>,
    context: &DiffContext<'_>,
    wanted: &[WantedSet<'_>],
    challenges: &Challenges<'_>,
) -> Vec<StepDraft<'a>> {
    let Some(registry) = context.settings.txt().filter(|_| context.settings.policy == Policy::Sync) else {
        return Vec::new();
    };
    let keys: BTreeSet<_> = wanted.iter().map(|wanted| (&*wanted.name, wanted.kind)).collect();
    let challenges = challenges.get(&**zone.name);
    let is_wanted = |name: &str, kind: RecordType| {
        keys.contains(&(name, kind)) || challenges.is_some_and(|names| names.contains_key(name))
    };
    let orphans = zone.markers.iter().filter_map(|marker| orphan(zone, marker, registry));
    let swept = orphans.filter(|(name, kind, _)| !is_wanted(name, *kind));
    swept.map(|(name, kind, marker)| sweep(zone, name, kind, marker)).collect()
}

/// The record that a marker of this instance is about, where there is none.
fn orphan<'a>(
    zone: &ZoneIndex<'_>,
    marker: &'a Marker<'a>,
    registry: &TxtRegistry,
) -> Option<(Str, RecordType, &'a Marker<'a>)> {
    let kinds = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
    let kind = kinds.into_iter().find(|kind| Some(kind.as_str()) == marker.target.1)?;
    let names = [Some(marker.target.0.clone()), registry.layout.wildcard_of(&marker.target.0)];
    let is_about = |name: &String| {
        marker.labels.owner() == &*registry.owner
            && ownership::stamp_of(marker, name, kind, registry) == Some(Stamp::Ours)
    };
    let name = names.into_iter().flatten().find(is_about)?;
    let is_gone = zone.set(&name, kind, marker.set.set_identifier.as_ref()).is_none();
    is_gone.then(|| (name.into(), kind, marker))
}

fn sweep<'a>(zone: &'a ZoneIndex<'a>, name: Str, kind: RecordType, marker: &'a Marker<'a>) -> StepDraft<'a> {
    let edit = Edit {
        kind,
        set_identifier: marker.set.set_identifier.clone(),
        found: None,
        ours: Ours { markers: vec![marker], is_proven: true },
        new: None,
        wanted: None,
        values: None,
        because: "its record is gone".to_owned(),
    };
    let purpose = Purpose::Upkeep;
    StepDraft { zone, name, upserts: Vec::new(), removals: vec![edit], purpose, after: BTreeSet::new() }
}
