//! The plan of a few names, from zones that were read before: its cost follows what has changed, not the zone.
//!
//! A partial planner keeps zones by name. For the names that are asked for it gathers whatever the planner looks at on their
//! behalf — the names above them, their markers, what those markers are about — and has [`super::decide`] compare that part
//! as if it were everything, with the brakes told how much there is in all. Where wildcards come into play the part
//! would have to be the whole; then it says so and gives no plan. What happens to a zone meanwhile is taken in change by
//! change; one that does not fit what is kept is refused, and the zone has to be read anew.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::at_and_above;
use super::observed::{Observed, RecordSet, ZoneChange, ZoneContent, ZoneState};
use super::settings::PlanSettings;
use super::{Hold, Intent, OwnedSets, Plan, Unseen, canonical, diff, safety, zone};
use crate::model::Str;
use crate::publication::holders::RecordOrigin;
use crate::publication::{Record, RecordType};

/// Zones as they were read, kept so that a few names are found among many.
#[derive(Clone, Debug)]
pub struct PartialPlanner {
    settings: PlanSettings,
    zones: BTreeMap<Str, CachedZone>,
    /// Whether another instance uses our owner id.
    has_owner_conflict: bool,
}

#[derive(Clone, Debug)]
struct CachedZone {
    epoch: Str,
    /// Why it could not be read, if so.
    unreadable: Option<String>,
    nodes: Nodes,
    /// The names of markers, by the name that they are about with a wildcard replaced.
    markers: BTreeMap<String, Vec<Str>>,
    wildcards: usize,
    owned: usize,
    sources: BTreeMap<String, usize>,
}

/// Record sets by name.
type Nodes = BTreeMap<Str, Vec<RecordSet>>;

/// How many record sets are ours, and of those how many were made for each kind of object.
type Totals = (usize, BTreeMap<String, usize>);

/// What is asked about a few names.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The names that may differ.
    pub names: &'a [Str],
    /// The records that ought to exist at a name.
    pub records: &'a dyn Fn(&str) -> Vec<Record>,
    /// TXT values that open certificate orders need; their names are among those that may differ.
    pub challenges: &'a [Record],
    /// TXT values of orders that are done; their names are among those that may differ.
    pub retired: &'a [Record],
    /// The kinds of routes that ask for any records at all, in lower case; none where nothing does.
    pub kinds: &'a BTreeSet<String>,
    /// Hostnames of which it is not known whether they ought to be gone.
    pub holds: &'a [Hold],
    /// What could not be seen at all.
    pub unseen: &'a [Unseen],
    /// Record sets that earlier plans called ours.
    pub remembered: &'a OwnedSets,
}

/// How much there is in all, where only a part is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct Whole {
    pub(super) owned: BTreeMap<Str, usize>,
    pub(super) sources: BTreeMap<String, usize>,
    pub(super) kinds: BTreeSet<String>,
}

impl PartialPlanner {
    /// Keeps what was read.
    pub fn new(observed: Observed, settings: &PlanSettings) -> Self {
        let zones = super::readable(&observed, settings);
        let has_owner_conflict = safety::owner_conflict(&zones, settings).is_some();
        let counts = zones.iter().map(|zone| (zone.name.clone(), totals(zone, settings)));
        let mut counts: BTreeMap<Str, Totals> = counts.collect();
        drop(zones);
        let mut planner = PartialPlanner { settings: settings.clone(), zones: BTreeMap::new(), has_owner_conflict };
        for (name, state) in observed.into_zones() {
            let counts = counts.remove(&name).unwrap_or_default();
            planner.zones.insert(name, CachedZone::of(state, counts, settings));
        }
        planner
    }

    /// Goes by other brakes from here on: what was deleted lately, what was written in vain.
    pub fn go_by(&mut self, settings: &PlanSettings) {
        self.settings = settings.clone();
    }

    /// The zones, with the state in which each is known; none for one that could not be read.
    pub fn epochs(&self) -> impl Iterator<Item = (&Str, Option<&Str>)> {
        self.zones.iter().map(|(name, zone)| (name, zone.unreadable.is_none().then_some(&zone.epoch)))
    }

    /// Everything that is kept, as if it had just been read. It is given away, because there may be very much of it.
    pub fn into_everything(self) -> Observed {
        let mut observed = Observed::default();
        for (name, zone) in self.zones {
            observed.insert(&name, zone.into_state());
        }
        observed
    }

    /// Takes in what happened to a zone, one change after the other, and says which names are concerned. Nothing where it
    /// does not fit: then what is kept is of no use any more.
    pub fn advance(&mut self, zone: &str, changes: Vec<ZoneChange>) -> Option<BTreeSet<Str>> {
        let sets = changes.iter().flat_map(|change| change.gone.iter().chain(&change.come));
        let names: BTreeSet<Str> = sets.map(|set| set.name.clone()).collect();
        let (around, before) = (self.around(&names), self.saved(zone, &names)?);
        let kept = self.zones.get_mut(zone)?;
        for change in changes {
            kept.advance(change, &self.settings)?;
        }
        self.recount(zone, around, &before);
        Some(names)
    }

    /// The plan of a few names, with the steps that [`super::decide`] would have for them. Its digest and what it calls
    /// ours are those of the part. Nothing where only the whole zone can tell.
    pub fn plan(&self, part: &Part<'_>) -> Option<Plan> {
        if self.has_owner_conflict || (!part.holds.is_empty() && self.zones.values().any(|zone| zone.wildcards > 0)) {
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
            challenges: part.challenges,
            retired: part.retired,
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

    /// The objects that our records of these names were made for.
    pub fn origins(&self, names: &BTreeSet<Str>, remembered: &OwnedSets) -> BTreeMap<Str, Vec<RecordOrigin>> {
        super::origins(&self.observed(&self.around(names)), &self.settings, names, remembered)
    }

    /// The record sets of names before they change.
    fn saved(&self, zone: &str, names: &BTreeSet<Str>) -> Option<Nodes> {
        let nodes = &self.zones.get(zone)?.nodes;
        Some(names.iter().map(|name| (name.clone(), nodes.get(name).cloned().unwrap_or_default())).collect())
    }

    /// Counts again what is ours, where names changed; `around` are those that mattered to them before.
    fn recount(&mut self, zone: &str, mut around: BTreeSet<Str>, before: &Nodes) {
        around.extend(self.around(&before.keys().cloned().collect()));
        let Some((name, kept)) = self.zones.get_key_value(zone) else { return };
        let sets = |name: &Str| kept.nodes.get(name).into_iter().flatten();
        let old = around.iter().flat_map(|name| {
            before.get(name).map_or_else(|| sets(name).collect(), |old| old.iter().collect::<Vec<_>>())
        });
        let ((lost, _), (gained, has_owner_conflict)) = (
            counted(name, kept.state(old), &self.settings),
            counted(name, kept.state(around.iter().flat_map(sets)), &self.settings),
        );
        self.has_owner_conflict |= has_owner_conflict;
        if let Some(kept) = self.zones.get_mut(zone) {
            kept.count(lost, gained);
        }
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

    fn zone_of(&self, name: &str) -> Option<(&Str, &CachedZone)> {
        at_and_above(name).chain([""]).find_map(|above| self.zones.get_key_value(above))
    }

    /// The zones with nothing but these names.
    fn observed(&self, names: &BTreeSet<Str>) -> Observed {
        let mut observed = Observed::default();
        for (name, zone) in &self.zones {
            observed.insert(name, zone.state(names.iter().filter_map(|name| zone.nodes.get(name)).flatten()));
        }
        observed
    }
}

impl CachedZone {
    fn of(state: ZoneState, (owned, sources): Totals, settings: &PlanSettings) -> Self {
        let mut cached = CachedZone {
            epoch: Str::default(),
            unreadable: None,
            nodes: BTreeMap::new(),
            markers: BTreeMap::new(),
            wildcards: 0,
            owned,
            sources,
        };
        match state {
            ZoneState::Unreadable(why) => cached.unreadable = Some(why),
            ZoneState::Read(content) => {
                cached.epoch = content.epoch.clone();
                content.into_sets().into_iter().for_each(|set| cached.add(set, settings));
            }
        }
        cached
    }

    /// The zone with these record sets.
    fn state<'s>(&self, sets: impl Iterator<Item = &'s RecordSet>) -> ZoneState {
        match &self.unreadable {
            Some(why) => ZoneState::Unreadable(why.clone()),
            None => ZoneState::Read(ZoneContent::new(self.epoch.clone(), sets.cloned())),
        }
    }

    /// The zone with all its record sets.
    fn into_state(self) -> ZoneState {
        match self.unreadable {
            Some(why) => ZoneState::Unreadable(why),
            None => ZoneState::Read(ZoneContent::new(self.epoch, self.nodes.into_values().flatten())),
        }
    }

    /// Takes in one change; nothing where it is not a change of what is kept.
    fn advance(&mut self, change: ZoneChange, settings: &PlanSettings) -> Option<()> {
        if change.from != self.epoch || self.unreadable.is_some() {
            return None;
        }
        for set in &change.gone {
            let sets = self.nodes.get_mut(&set.name)?;
            let at = sets.iter().position(|found| found.key() == set.key())?;
            sets[at].lose(&set.values).then_some(())?;
            sets.retain(|set| !set.values.is_empty());
            self.drop_empty(&set.name);
        }
        for set in change.come {
            let sets = self.nodes.get_mut(&set.name);
            match sets.and_then(|sets| sets.iter_mut().find(|found| found.key() == set.key())) {
                Some(found) => found.gain(set).then_some(())?,
                None => self.add(set, settings),
            }
        }
        self.epoch = change.to;
        Some(())
    }

    /// Forgets a name without record sets.
    fn drop_empty(&mut self, name: &Str) {
        if self.nodes.get(name).is_some_and(Vec::is_empty) {
            self.nodes.remove(name);
            self.wildcards -= usize::from(name.starts_with("*."));
        }
    }

    fn count(&mut self, lost: Totals, gained: Totals) {
        self.owned = (self.owned + gained.0).saturating_sub(lost.0);
        for (source, count) in gained.1 {
            *self.sources.entry(source).or_default() += count;
        }
        for (source, count) in lost.1 {
            let left = self.sources.entry(source).or_default();
            *left = left.saturating_sub(count);
        }
        self.sources.retain(|_, count| *count > 0);
    }

    fn add(&mut self, set: RecordSet, settings: &PlanSettings) {
        if let (Some(RecordType::Txt), Some(registry)) = (set.made(), settings.txt())
            && let Some((target, _)) = registry.layout.target_of(&set.name)
        {
            let known = self.markers.entry(target).or_insert_with(|| Vec::with_capacity(1));
            if !known.contains(&set.name) {
                known.push(set.name.clone());
            }
        }
        let name = set.name.clone();
        let is_new = !self.nodes.contains_key(&name);
        self.wildcards += usize::from(is_new && name.starts_with("*."));
        // Nearly all names have one, and there are many names.
        self.nodes.entry(name).or_insert_with(|| Vec::with_capacity(1)).push(set);
    }

    /// The names of a name's markers, and those that the markers at it are about. `is_asked` adds where markers would be.
    fn companions(&self, name: &str, settings: &PlanSettings, is_asked: bool) -> Vec<Str> {
        let Some(registry) = settings.txt() else { return Vec::new() };
        let lookup = registry.layout.lookup_name(name);
        let mut found: Vec<Str> = self.markers.get(&lookup).into_iter().flatten().cloned().collect();
        if is_asked {
            let kinds = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
            found.extend(kinds.map(|kind| registry.layout.marker_of(name, kind.as_str()).into()));
        }
        let has_markers = self.nodes.get(name).is_some_and(|s| s.iter().any(|s| s.made() == Some(RecordType::Txt)));
        // A marker that is asked about may just have gone.
        if let Some((target, _)) = registry.layout.target_of(name).filter(|_| has_markers || is_asked) {
            let wildcard = registry.layout.wildcard_of(&target).map(Str::from);
            found.extend(wildcard.filter(|wildcard| self.nodes.contains_key(wildcard)));
            found.extend(Some(Str::from(target)).filter(|target| self.nodes.contains_key(target)));
        }
        found
    }
}

/// How many record sets are ours in a zone, and for which kinds of objects they were made.
fn totals(zone: &zone::ZoneIndex<'_>, settings: &PlanSettings) -> Totals {
    let mut findings = diff::DiffFindings::default();
    diff::count(zone, settings, &mut findings);
    (findings.owned.remove(zone.name).unwrap_or_default(), findings.sources)
}

/// The same of a part of a zone; and whether another instance uses our owner id there.
fn counted(name: &Str, state: ZoneState, settings: &PlanSettings) -> (Totals, bool) {
    let mut observed = Observed::default();
    observed.insert(name, state);
    let zones = super::readable(&observed, settings);
    let counts = zones.first().map(|zone| totals(zone, settings)).unwrap_or_default();
    (counts, safety::owner_conflict(&zones, settings).is_some())
}
