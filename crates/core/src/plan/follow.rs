//! The plan of a few names, from zones that were read before: its cost follows what has changed, not the zone.
//!
//! A follower keeps zones by name. For the names that are asked for it gathers whatever the planner looks at on their
//! behalf — the names above them, their markers, what those markers are about — and has [`super::decide`] compare that part
//! as if it were everything, with the brakes told how much there is in all. Where wildcards come into play the part
//! would have to be the whole; then it says so and gives no plan.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::at_and_above;
use super::observed::{Observed, RecordSet, ZoneContent, ZoneState};
use super::settings::Settings;
use super::{Hold, Intent, Plan, RecordKey, Step, Unseen, canonical, diff, safety, zone};
use crate::desired::{Record, RecordType};
use crate::model::Str;

/// Zones as they were read, kept so that a few names are found among many.
#[derive(Clone, Debug)]
pub struct Follower {
    settings: Settings,
    zones: BTreeMap<Str, Followed>,
    /// Whether another instance uses our owner id.
    has_twin: bool,
}

#[derive(Clone, Debug)]
struct Followed {
    epoch: Str,
    /// Why it could not be read, if so.
    unreadable: Option<String>,
    nodes: BTreeMap<Str, Vec<RecordSet>>,
    /// The names of markers, by the name that they are about with a wildcard replaced.
    markers: BTreeMap<String, BTreeSet<Str>>,
    wildcards: usize,
    owned: usize,
    sources: BTreeMap<String, usize>,
}

/// What is asked about a few names.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The names that may differ.
    pub names: &'a [Str],
    /// The records that ought to exist at a name.
    pub records: &'a dyn Fn(&str) -> Vec<Record>,
    /// The kinds of routes that ask for any records at all, in lower case; none where nothing does.
    pub kinds: &'a BTreeSet<String>,
    /// Hostnames of which it is not known whether they ought to be gone.
    pub holds: &'a [Hold],
    /// What could not be seen at all.
    pub unseen: &'a [Unseen],
    /// Record sets that earlier plans called ours.
    pub remembered: &'a BTreeSet<RecordKey>,
}

/// How much there is in all, where only a part is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct Whole {
    pub(super) owned: BTreeMap<Str, usize>,
    pub(super) sources: BTreeMap<String, usize>,
    pub(super) kinds: BTreeSet<String>,
}

impl Follower {
    /// Keeps what was read.
    pub fn new(observed: &Observed, settings: &Settings) -> Self {
        let zones = super::readable(observed, settings);
        let has_twin = safety::twin(&zones, settings).is_some();
        let mut follower = Follower { settings: settings.clone(), zones: BTreeMap::new(), has_twin };
        for (name, state) in observed.zones() {
            follower.zones.insert(name.clone(), Followed::of(name, state, settings));
        }
        follower
    }

    /// The plan of a few names, with the steps that [`super::decide`] would have for them. Its digest and what it calls
    /// ours are those of the part. Nothing where only the whole zone can tell.
    pub fn plan(&self, part: &Part<'_>) -> Option<Plan> {
        if self.has_twin || (!part.holds.is_empty() && self.zones.values().any(|zone| zone.wildcards > 0)) {
            return None;
        }
        let names: BTreeSet<Str> = part.names.iter().map(|name| canonical::name(name)).collect();
        let around = self.around(&names);
        if names.iter().chain(&around).any(|name| self.meets_wildcard(name, part)) {
            return None;
        }
        let observed = self.observed(&around);
        let records: Vec<Record> = around.iter().flat_map(|name| (part.records)(name)).collect();
        let intent = Intent {
            records: &records,
            covered: &[],
            challenges: &[],
            retired: &[],
            holds: part.holds,
            unseen: part.unseen,
            remembered: part.remembered,
        };
        let mut whole = Whole { kinds: part.kinds.clone(), ..Whole::default() };
        for (name, zone) in self.zones.iter().filter(|(_, zone)| zone.unreadable.is_none()) {
            whole.owned.insert(name.clone(), zone.owned);
            for (source, count) in &zone.sources {
                *whole.sources.entry(source.clone()).or_default() += count;
            }
        }
        Some(super::decide_within(&intent, &observed, &self.settings, Some(&whole)))
    }

    /// Notes that a step was written.
    pub fn carry_out(&mut self, step: &Step) {
        let names: BTreeSet<Str> = step.all_changes().map(|change| change.name.clone()).collect();
        let around = self.around(&names);
        let before = self.observed(&around);
        let Some(zone) = self.zones.get_mut(&step.zone) else { return };
        step.all_changes().for_each(|change| zone.change(change, &self.settings));
        let after = self.observed(&around);
        let count = |observed: &Observed| totals(&step.zone, observed, &self.settings);
        let ((owned, sources), (now, sources_now)) = (count(&before), count(&after));
        let Some(zone) = self.zones.get_mut(&step.zone) else { return };
        zone.owned = (zone.owned + now).saturating_sub(owned);
        for (source, count) in sources_now {
            *zone.sources.entry(source).or_default() += count;
        }
        for (source, count) in sources {
            let left = zone.sources.entry(source).or_default();
            *left = left.saturating_sub(count);
        }
        zone.sources.retain(|_, count| *count > 0);
    }

    /// How many record sets are ours, by zone and by source.
    #[cfg(test)]
    pub(super) fn counts(&self) -> Vec<(&Str, usize, &BTreeMap<String, usize>)> {
        self.zones.iter().map(|(name, zone)| (name, zone.owned, &zone.sources)).collect()
    }

    /// Every name that the planner looks at for these: those above, markers, and what markers are about.
    fn around(&self, names: &BTreeSet<Str>) -> BTreeSet<Str> {
        let mut around: BTreeSet<Str> = BTreeSet::new();
        let mut due: Vec<Str> = names.iter().cloned().collect();
        while let Some(name) = due.pop() {
            if !around.insert(name.clone()) {
                continue;
            }
            let Some((apex, zone)) = self.zone_of(&name) else { continue };
            let above = at_and_above(&name).skip(1).take_while(|above| above.len() >= apex.len());
            due.extend(above.filter(|above| zone.nodes.contains_key(*above)).map(Str::from));
            due.extend(zone.companions(&name, &self.settings, names.contains(&name)));
        }
        around
    }

    /// Whether a wildcard answers around a name, or it is one.
    fn meets_wildcard(&self, name: &str, part: &Part<'_>) -> bool {
        if name.starts_with("*.") {
            return true;
        }
        let Some((apex, zone)) = self.zone_of(name) else { return false };
        let above = at_and_above(name).skip(1).take_while(|above| above.len() >= apex.len());
        above
            .map(|above| format!("*.{above}"))
            .any(|wildcard| zone.nodes.contains_key(wildcard.as_str()) || !(part.records)(&wildcard).is_empty())
    }

    fn zone_of(&self, name: &str) -> Option<(&Str, &Followed)> {
        at_and_above(name).chain([""]).find_map(|above| self.zones.get_key_value(above))
    }

    /// The zones with nothing but these names.
    fn observed(&self, names: &BTreeSet<Str>) -> Observed {
        let mut observed = Observed::default();
        for (name, zone) in &self.zones {
            let state = match &zone.unreadable {
                Some(why) => ZoneState::Unreadable(why.clone()),
                None => {
                    let sets = names.iter().filter_map(|name| zone.nodes.get(name)).flatten().cloned();
                    ZoneState::Read(ZoneContent::new(zone.epoch.clone(), sets))
                }
            };
            observed.insert(name, state);
        }
        observed
    }
}

impl Followed {
    fn of(name: &Str, state: &ZoneState, settings: &Settings) -> Self {
        let mut followed = Followed {
            epoch: Str::default(),
            unreadable: None,
            nodes: BTreeMap::new(),
            markers: BTreeMap::new(),
            wildcards: 0,
            owned: 0,
            sources: BTreeMap::new(),
        };
        match state {
            ZoneState::Unreadable(why) => followed.unreadable = Some(why.clone()),
            ZoneState::Read(content) => {
                followed.epoch = content.epoch.clone();
                content.sets().iter().for_each(|set| followed.add(set.clone(), settings));
                let mut only = Observed::default();
                only.insert(name, state.clone());
                (followed.owned, followed.sources) = totals(name, &only, settings);
            }
        }
        followed
    }

    fn add(&mut self, set: RecordSet, settings: &Settings) {
        if let (Some(RecordType::Txt), Some(registry)) = (set.made(), settings.txt())
            && let Some((target, _)) = registry.layout.target_of(&set.name)
        {
            self.markers.entry(target).or_default().insert(set.name.clone());
        }
        let name = set.name.clone();
        let is_new = !self.nodes.contains_key(&name);
        self.wildcards += usize::from(is_new && name.starts_with("*."));
        self.nodes.entry(name).or_default().push(set);
    }

    /// Carries out the change of one record set.
    fn change(&mut self, change: &super::SetChange, settings: &Settings) {
        if let Some(sets) = self.nodes.get_mut(&change.name) {
            sets.retain(|set| set.made() != Some(change.kind) || set.set_identifier != change.set_identifier);
            if sets.is_empty() {
                self.nodes.remove(&change.name);
                self.wildcards -= usize::from(change.name.starts_with("*."));
            }
        }
        if let Some(new) = &change.new {
            let mut set = RecordSet::new(&change.name, change.kind.as_str(), new.ttl, new.values.iter().cloned());
            set.set_identifier = change.set_identifier.clone();
            set.properties = new.properties.clone();
            self.add(set, settings);
        }
    }

    /// The names of a name's markers, and those that the markers at it are about. `is_asked` adds where markers would be.
    fn companions(&self, name: &str, settings: &Settings, is_asked: bool) -> Vec<Str> {
        let Some(registry) = settings.txt() else { return Vec::new() };
        let lookup = registry.layout.lookup_name(name);
        let mut found: Vec<Str> = self.markers.get(&lookup).into_iter().flatten().cloned().collect();
        if is_asked {
            let kinds = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
            found.extend(kinds.map(|kind| registry.layout.marker_of(name, kind.as_str()).into()));
        }
        let has_markers = self.nodes.get(name).is_some_and(|s| s.iter().any(|s| s.made() == Some(RecordType::Txt)));
        if let Some((target, _)) = registry.layout.target_of(name).filter(|_| has_markers) {
            let wildcard = registry.layout.wildcard_of(&target).map(Str::from);
            found.extend(wildcard.filter(|wildcard| self.nodes.contains_key(wildcard)));
            found.extend(Some(Str::from(target)).filter(|target| self.nodes.contains_key(target)));
        }
        found
    }
}

/// How many record sets are ours in a zone, and for which kinds of objects they were made.
fn totals(name: &Str, observed: &Observed, settings: &Settings) -> (usize, BTreeMap<String, usize>) {
    let zones = super::readable(observed, settings);
    let Some(zone) = zones.iter().find(|zone: &&zone::Zone<'_>| *zone.name == *name) else { return Default::default() };
    let mut book = diff::Book::default();
    diff::count(zone, settings, &mut book);
    (book.owned.remove(name).unwrap_or_default(), book.sources)
}
