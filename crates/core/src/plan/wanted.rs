//! Wanted record sets by zone: one per name, type and set identifier, in canonical form.
//!
//! Where several objects want the same set, the choice is that of external-dns: the object that the existing record was made
//! for, else the first in its order of preference. What cannot be published is held with its reason and not deleted.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::labels::resource_of;
use super::observed::{Observed, RecordKind, RecordSet, ZoneState};
use super::settings::PlanSettings;
use super::zone::ZoneIndex;
use super::{Content, Held, Intent, Verb, canonical, ownership};
use crate::external_dns::compare_targets;
use crate::model::{ObjectRef, Str};
use crate::publication::{Record, RecordType};
use crate::reason::{self, Reason};

/// A record set that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedSet<'a> {
    /// Canonical name.
    pub(super) name: Str,
    /// Type.
    pub(super) kind: RecordType,
    /// Distinguishes it from other record sets of its name and type.
    pub(super) set_identifier: Option<Str>,
    /// Canonical values, TTL where one is asked for, properties that the provider keeps.
    pub(super) content: Content,
    /// Routes that ask for it.
    pub(super) routes: &'a [ObjectRef],
}

/// Everything wanted, by zone.
#[derive(Default)]
pub(super) struct WantedByZone<'a> {
    /// Sorted by name, type and identifier.
    pub(super) by_zone: BTreeMap<&'a str, Vec<WantedSet<'a>>>,
    /// What a wildcard is to answer for, by zone.
    pub(super) covered: BTreeMap<&'a str, Vec<WantedSet<'a>>>,
    /// Wanted names that cannot be published; their existing records are kept.
    pub(super) stuck: BTreeMap<Str, (Reason, String)>,
    /// Why.
    pub(super) held: Vec<Held>,
}

impl<'a> WantedSet<'a> {
    /// The object that its marker names: `httproute/shop/web`.
    pub(super) fn resource(&self) -> Option<String> {
        self.routes.first().map(resource_of)
    }

    pub(super) fn key(&self) -> (&Str, RecordType, &Option<Str>) {
        (&self.name, self.kind, &self.set_identifier)
    }

    /// The same as a record set that is there, at another name.
    pub(super) fn like(set: &RecordSet, name: &Str) -> Option<Self> {
        let content =
            Content { values: canonical::values(&set.kind, &set.values).into_iter().collect(), ..Content::of(set) };
        let set_identifier = set.set_identifier.clone();
        Some(WantedSet { name: name.clone(), kind: set.made()?, set_identifier, content, routes: &[] })
    }

    fn of(record: &'a Record, settings: &PlanSettings) -> Self {
        let capabilities = &settings.capabilities;
        let kind = RecordKind::from(record.kind);
        let mut properties = if capabilities.has_properties { record.provider_specific.clone() } else { Vec::new() };
        properties.sort();
        WantedSet {
            name: canonical::name(&record.name),
            kind: record.kind,
            set_identifier: record
                .set_identifier
                .clone()
                .filter(|id| capabilities.has_set_identifiers && !id.is_empty()),
            content: Content {
                ttl: record.ttl.map(|ttl| ttl.max(capabilities.min_ttl)),
                values: canonical::values(&kind, record.targets.iter()).into_iter().collect(),
                properties,
            },
            routes: &record.routes,
        }
    }

    fn held(&self, zone: Option<&Str>, reason: Reason, message: String) -> Held {
        let mut held = Held::new(zone, &self.name, reason, message);
        held.kind = Some(self.kind);
        held.verb = Some(Verb::Create);
        held.new = self.content.values.clone();
        held.object = self.routes.first().cloned();
        held
    }

    /// Why it can never be a record set.
    fn flaw(&self) -> Option<(Reason, String)> {
        let name = &self.name;
        let values = &self.content.values;
        if values.is_empty() {
            return Some((
                reason::LAST_ADDRESS,
                format!("`{name}` would have no address left, so it is kept as it is"),
            ));
        }
        let is_alias = self.content.is_alias_of(self.kind);
        let form = if is_alias { RecordType::Cname } else { self.kind };
        if let Some(odd) = values.iter().find(|value| !canonical::is_valid(form, value)) {
            return Some((reason::TARGET_INVALID, format!("`{odd}` cannot be the value of a {} record", self.kind)));
        }
        if form == RecordType::Cname && values.len() > 1 {
            let all = values.join("`, `");
            return Some((reason::SEVERAL_CNAME_TARGETS, format!("`{name}` would be a CNAME for `{all}` at once")));
        }
        None
    }
}

/// Assigns wanted records to the served zones.
pub(super) fn sort_out<'a>(intent: &Intent<'a>, observed: &'a Observed, settings: &PlanSettings) -> WantedByZone<'a> {
    let mut all_wanted = WantedByZone::default();
    for record in intent.records {
        let wanted = WantedSet::of(record, settings);
        if let Some(zone) = all_wanted.admit(&wanted, observed, settings) {
            all_wanted.by_zone.entry(zone).or_default().push(wanted);
        }
    }
    for record in intent.covered.iter().filter(|record| settings.managed.contains(&record.kind)) {
        let wanted = WantedSet::of(record, settings);
        if let Some(zone) = observed.zone_of(&wanted.name).filter(|_| wanted.flaw().is_none()) {
            all_wanted.covered.entry(zone).or_default().push(wanted);
        }
    }
    all_wanted
}

/// Assigns challenges to zones. They do not depend on the managed types.
pub(super) fn challenges<'a>(
    records: &'a [Record],
    observed: &'a Observed,
    settings: &PlanSettings,
) -> BTreeMap<&'a str, BTreeMap<Str, WantedSet<'a>>> {
    let mut zones: BTreeMap<&str, BTreeMap<Str, WantedSet<'_>>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.kind == RecordType::Txt) {
        let mut wanted = WantedSet { set_identifier: None, ..WantedSet::of(record, settings) };
        let Some(zone) = observed.zone_of(&wanted.name) else { continue };
        let names = zones.entry(zone).or_default();
        if let Some(first) = names.get(&wanted.name) {
            let both = first.content.values.iter().chain(&wanted.content.values);
            wanted.content.values = both.cloned().collect::<BTreeSet<_>>().into_iter().collect();
            wanted.content.ttl = first.content.ttl.min(wanted.content.ttl).or(first.content.ttl).or(wanted.content.ttl);
        }
        names.insert(wanted.name.clone(), wanted);
    }
    zones
}

impl<'a> WantedByZone<'a> {
    /// The zone of a record; if it cannot be published, a held entry is added.
    fn admit(&mut self, wanted: &WantedSet<'a>, observed: &'a Observed, settings: &PlanSettings) -> Option<&'a str> {
        let zone = observed.zone_of(&wanted.name);
        let flaw = if !settings.managed.contains(&wanted.kind) {
            let message =
                format!("`{}` would have a {} record, and that type is not managed", wanted.name, wanted.kind);
            Some((reason::TYPE_NOT_MANAGED, message))
        } else if zone.is_none() {
            Some((reason::ZONE_NOT_SERVED, format!("no zone holds `{}`; served: {}", wanted.name, listed(observed))))
        } else {
            wanted.flaw()
        };
        let Some((reason, message)) = flaw else { return zone.map(|zone| &**zone) };
        self.held.push(wanted.held(zone, reason, message.clone()));
        self.stuck.entry(wanted.name.clone()).or_insert((reason, message));
        None
    }

    /// Chooses one record set for each name, type and identifier of a zone.
    pub(super) fn choose(&mut self, zone: &ZoneIndex<'_>, settings: &PlanSettings) -> Vec<WantedSet<'a>> {
        let all = self.by_zone.remove(&**zone.name).unwrap_or_default();
        self.settle(all, zone, settings)
    }

    /// Chooses likewise among what wildcards are to answer for.
    pub(super) fn choose_covered(&mut self, zone: &ZoneIndex<'_>, settings: &PlanSettings) -> Vec<WantedSet<'a>> {
        let all = self.covered.remove(&**zone.name).unwrap_or_default();
        self.settle(all, zone, settings)
    }

    fn settle(
        &mut self,
        mut all: Vec<WantedSet<'a>>,
        zone: &ZoneIndex<'_>,
        settings: &PlanSettings,
    ) -> Vec<WantedSet<'a>> {
        all.sort_by(|a, b| a.key().cmp(&b.key()).then_with(|| by_preference(a, b)));
        let mut chosen: Vec<WantedSet<'a>> = Vec::with_capacity(all.len());
        for candidates in all.chunk_by(|a, b| a.key() == b.key()) {
            chosen.extend(preferred(candidates, zone, settings).cloned());
        }
        self.settle_types(&mut chosen, zone);
        self.keep_inside(&mut chosen, zone);
        chosen
    }

    /// Removes the CNAME of a name that would also have other records.
    fn settle_types(&mut self, chosen: &mut Vec<WantedSet<'a>>, zone: &ZoneIndex<'_>) {
        let others: BTreeSet<Str> =
            chosen.iter().filter(|w| w.kind != RecordType::Cname).map(|w| w.name.clone()).collect();
        chosen.retain(|wanted| {
            let clashes = wanted.kind == RecordType::Cname && others.contains(&wanted.name);
            if clashes {
                let message =
                    format!("`{}` is wanted both as a CNAME and with addresses; the addresses stay", wanted.name);
                self.held.push(wanted.held(Some(zone.name), reason::TYPE_CLASH, message));
            }
            !clashes
        });
    }

    /// Holds names below a delegation: the zone would never answer for them.
    fn keep_inside(&mut self, chosen: &mut Vec<WantedSet<'a>>, zone: &ZoneIndex<'_>) {
        chosen.retain(|wanted| {
            let Some(cut) = zone.cut_above(&wanted.name) else { return true };
            let message =
                format!("zone `{}` hands `{cut}` over, so that `{}` is not answered from it", zone.name, wanted.name);
            self.held.push(wanted.held(Some(zone.name), reason::ZONE_NOT_SERVED, message.clone()));
            self.stuck.entry(wanted.name.clone()).or_insert((reason::ZONE_NOT_SERVED, message));
            false
        });
    }

    /// Everything wanted in a zone that could not be read is held.
    pub(super) fn hold_unreadable(&mut self, zone: &'a Str, state: &ZoneState) {
        let ZoneState::Unreadable(why) = state else { return };
        let count = self.by_zone.remove(&**zone).map_or(0, |wanted| wanted.len());
        let message = format!(
            "zone `{zone}` could not be read ({why}), so nothing in it is changed; records that belong there: {count}"
        );
        self.held.push(Held::new(Some(zone), "", reason::ZONE_UNREADABLE, message));
    }
}

/// The candidate of the object that the existing record was made for, else the first.
fn preferred<'c, 'a>(
    candidates: &'c [WantedSet<'a>],
    zone: &ZoneIndex<'_>,
    settings: &PlanSettings,
) -> Option<&'c WantedSet<'a>> {
    let least = candidates.first()?;
    if candidates.len() == 1 {
        return Some(least);
    }
    let present = zone.set(&least.name, least.kind, least.set_identifier.as_ref());
    let recorded = present.and_then(|set| match ownership::of(zone, set, settings, true) {
        ownership::Ownership::Ours(ours) => ours.markers.iter().find_map(|m| m.labels.resource()).map(str::to_owned),
        _ => None,
    });
    let same = candidates.iter().find(|candidate| recorded.is_some() && candidate.resource() == recorded);
    same.or(Some(least))
}

/// The order in which external-dns prefers records; what it leaves open is decided by TTL, routes and properties.
fn by_preference(a: &WantedSet<'_>, b: &WantedSet<'_>) -> Ordering {
    compare_targets(&a.content.values, &b.content.values)
        .then_with(|| (a.content.ttl, a.routes, &a.content).cmp(&(b.content.ttl, b.routes, &b.content)))
}

/// The zones that are served, or how many where they are many.
fn listed(observed: &Observed) -> String {
    match observed.zones().len() {
        0 => "none".to_owned(),
        1..=5 => format!("`{}`", observed.zones().map(|(name, _)| &**name).collect::<Vec<_>>().join("`, `")),
        many => format!("{many} zones"),
    }
}
