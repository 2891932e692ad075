//! Names that a wildcard should answer but does not, because something exists at or below them (D13).
//!
//! They get records of their own. Records of all owners count as existing: hand-made ones, wanted ones, markers, challenges.
//! A name with records of its own may hide other names from a wildcard, so the search repeats until it finds no more.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, RecordCounts};
use super::diff::DiffContext;
use super::observed::{RecordKind, RecordSet};
use super::ownership::{self, Ownership};
use super::settings::{PlanSettings, Policy};
use super::wanted::{WantedByZone, WantedSet};
use super::zone::ZoneIndex;
use super::{Intent, canonical};
use crate::model::Str;
use crate::names::is_below;
use crate::publication::RecordType;

/// What is wanted in a zone.
pub(super) struct Cover<'a> {
    /// Record sets that are wanted in any case, sorted.
    chosen: Vec<WantedSet<'a>>,
    /// Record sets of names that wildcards are to answer for.
    covered: BTreeMap<Str, Vec<WantedSet<'a>>>,
}

impl<'a> Cover<'a> {
    /// Gathers what is wanted in a zone.
    pub(super) fn gather(
        zone: &ZoneIndex<'_>,
        all_wanted: &mut WantedByZone<'a>,
        intent: &Intent<'_>,
        settings: &PlanSettings,
    ) -> Self {
        let chosen = all_wanted.choose(zone, settings);
        let mut covered: BTreeMap<Str, Vec<WantedSet<'a>>> = BTreeMap::new();
        for wanted in all_wanted.choose_covered(zone, settings) {
            covered.entry(wanted.name.clone()).or_default().push(wanted);
        }
        covered.extend(unknown(zone, intent, settings));
        covered.retain(|name, _| chosen.binary_search_by(|wanted| wanted.name.cmp(name)).is_err());
        Cover { chosen, covered }
    }

    /// The record sets that are wanted, with those of names that no wildcard answers for.
    pub(super) fn complete(mut self, zone: &ZoneIndex<'_>, context: &DiffContext<'_>) -> Vec<WantedSet<'a>> {
        if self.covered.is_empty() {
            return self.chosen;
        }
        let blocked = context.blocked_wildcards(zone, &self.chosen);
        while let Some(missed) = self.missed(zone, context, &blocked) {
            for name in &missed {
                self.chosen.extend(self.covered.remove(name).unwrap_or_default());
            }
            self.chosen.sort_by(|a, b| a.key().cmp(&b.key()));
        }
        self.chosen
    }

    /// The covered names that no wildcard answers for as it should; nothing where all are answered.
    fn missed(
        &self,
        zone: &ZoneIndex<'_>,
        context: &DiffContext<'_>,
        blocked: &BTreeSet<Str>,
    ) -> Option<BTreeSet<Str>> {
        let sets = self.sets_to_be(zone, context, blocked);
        let tree = RecordCounts::of(sets.iter().map(|(name, kind)| (&**name, kind)));
        let answers = Answers::of(&tree);
        let is_missed = |name: &str, wanted: &[WantedSet<'_>]| {
            let is_unknown = wanted.iter().all(|wanted| wanted.routes.is_empty());
            let suits = |owner: &str| !blocked.contains(owner) && suits(owner, &self.chosen, wanted);
            answers.mask(name) == 0 || !(is_unknown || answers.owner(name).is_some_and(suits))
        };
        let missed = self.covered.iter().filter(|(name, wanted)| is_missed(name, wanted));
        let missed: BTreeSet<Str> = missed.map(|(name, _)| name.clone()).collect();
        (!missed.is_empty()).then_some(missed)
    }

    /// Every record set that is there once the plan is carried out, and some that may be gone by then.
    fn sets_to_be(
        &self,
        zone: &ZoneIndex<'_>,
        context: &DiffContext<'_>,
        blocked: &BTreeSet<Str>,
    ) -> BTreeSet<(Str, RecordKind)> {
        let settings = context.settings;
        let left = zone.content.sets().iter().filter(|set| self.is_left(set, zone, settings));
        let mut sets: BTreeSet<_> = left.map(|set| (set.name.clone(), set.kind.clone())).collect();
        let mut add = |name: &Str, kind: RecordType| {
            let marker = settings.txt().map(|registry| registry.layout.marker_of(name, kind.as_str()));
            sets.extend(marker.map(|marker| (marker.into(), RecordType::Txt.into())));
            sets.insert((name.clone(), kind.into()));
        };
        let made = self.chosen.iter().filter(|wanted| !blocked.contains(&wanted.name));
        made.for_each(|wanted| add(&wanted.name, wanted.kind));
        let challenges = context.intent.challenges.iter().map(|challenge| canonical::name(&challenge.name));
        challenges.for_each(|name| add(&name, RecordType::Txt));
        sets
    }

    /// Whether a record set stays: it is neither a marker of ours nor ours at a covered name, or nothing is ever deleted.
    fn is_left(&self, set: &RecordSet, zone: &ZoneIndex<'_>, settings: &PlanSettings) -> bool {
        if settings.policy != Policy::Sync {
            return true;
        }
        let is_marker = settings.txt().is_some_and(|registry| {
            let ours = zone.markers.at(&set.name).filter(|marker| {
                marker.set.key() == set.key() && ownership::is_our_owner(marker.labels.owner(), registry)
            });
            set.made() == Some(RecordType::Txt) && ours.count() == set.values.len()
        });
        let is_ours = || matches!(ownership::of(zone, set, settings, false), Ownership::Ours(_));
        let goes = || self.covered.contains_key(&set.name) && is_ours();
        !is_marker && !goes()
    }
}

/// Names with an unknown verdict that a wildcard of ours answers, with the records of that wildcard.
///
/// They get records of their own only if nothing else would answer them.
fn unknown<'a>(
    zone: &ZoneIndex<'_>,
    intent: &Intent<'_>,
    settings: &PlanSettings,
) -> BTreeMap<Str, Vec<WantedSet<'a>>> {
    let mut found = BTreeMap::new();
    if intent.holds.is_empty() {
        return found;
    }
    let tree = zone.tree();
    let answers = Answers::of(&tree);
    let held = intent.holds.iter().map(|hold| &hold.hostname).filter(|name| is_below(name, zone.name));
    for name in held.filter(|name| !answers.exists(name)) {
        let sets = answers.owner(name).map(|owner| zone.at(owner)).unwrap_or_default();
        let is_ours = |set: &&RecordSet| matches!(ownership::of(zone, set, settings, false), Ownership::Ours(_));
        let wanted: Vec<_> = sets.iter().filter(is_ours).filter_map(|set| WantedSet::like(set, name)).collect();
        if !wanted.is_empty() {
            found.insert(name.clone(), wanted);
        }
    }
    found
}

/// Whether the owner is a wildcard whose record sets are the very ones that are wanted.
fn suits(owner: &str, chosen: &[WantedSet<'_>], wanted: &[WantedSet<'_>]) -> bool {
    let from = chosen.partition_point(|set| &*set.name < owner);
    let given = chosen[from..].iter().take_while(|set| &*set.name == owner);
    let essence = |set: &WantedSet<'_>| (set.kind, set.content.clone());
    owner.starts_with("*.") && given.map(essence).eq(wanted.iter().map(essence))
}
