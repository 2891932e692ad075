//! Names that a wildcard is to answer for, and does not: something exists at or below them, so they get records of their
//! own (D13).
//!
//! What exists is everybody's: hand-made records, the records that are wanted, their markers, and challenges. Each
//! name that is given records of its own may take others away from a wildcard, so this goes on until none is missed.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, Tree};
use super::observed::{RecordKind, RecordSet};
use super::ownership::{self, Ownership};
use super::settings::{Policy, Settings};
use super::wanted::{Wanted, Wishes};
use super::zone::Zone;
use super::{Intent, canonical};
use crate::desired::RecordType;
use crate::model::Str;
use crate::names::is_below;

/// What is wanted in a zone, with the names that wildcards miss.
pub(super) fn choose<'a>(
    zone: &Zone<'_>,
    wishes: &mut Wishes<'a>,
    intent: &Intent<'_>,
    settings: &Settings,
) -> Vec<Wanted<'a>> {
    let mut chosen = wishes.choose(zone, settings);
    let mut covered: BTreeMap<Str, Vec<Wanted<'a>>> = BTreeMap::new();
    for wanted in wishes.choose_covered(zone, settings) {
        covered.entry(wanted.name.clone()).or_default().push(wanted);
    }
    covered.extend(unknown(zone, intent, settings));
    covered.retain(|name, _| chosen.binary_search_by(|wanted| wanted.name.cmp(name)).is_err());
    while let Some(missed) = missed(zone, &chosen, &covered, intent, settings) {
        for name in &missed {
            chosen.extend(covered.remove(name).unwrap_or_default());
        }
        chosen.sort_by(|a, b| a.key().cmp(&b.key()));
    }
    chosen
}

/// Names of which it is not known whether they ought to be gone and that a wildcard of ours answers for, as it answers.
/// They are given records of their own only where nothing would answer for them any more.
fn unknown<'a>(zone: &Zone<'_>, intent: &Intent<'_>, settings: &Settings) -> BTreeMap<Str, Vec<Wanted<'a>>> {
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
        let wanted: Vec<_> = sets.iter().filter(is_ours).filter_map(|set| Wanted::like(set, name)).collect();
        if !wanted.is_empty() {
            found.insert(name.clone(), wanted);
        }
    }
    found
}

/// The covered names that no wildcard answers for as it should; nothing where all are answered.
fn missed(
    zone: &Zone<'_>,
    chosen: &[Wanted<'_>],
    covered: &BTreeMap<Str, Vec<Wanted<'_>>>,
    intent: &Intent<'_>,
    settings: &Settings,
) -> Option<BTreeSet<Str>> {
    if covered.is_empty() {
        return None;
    }
    let names = names_to_be(zone, chosen, covered, intent, settings);
    let kind = RecordKind::Made(RecordType::A);
    let tree = Tree::of(names.iter().map(|name| (&**name, &kind)));
    let answers = Answers::of(&tree);
    let is_missed = |name: &str, wanted: &[Wanted<'_>]| match answers.owner(name) {
        Some(owner) => wanted.iter().any(|wanted| !wanted.routes.is_empty()) && !suits(owner, chosen, wanted),
        None => true,
    };
    let missed: BTreeSet<Str> =
        covered.iter().filter(|(name, wanted)| is_missed(name, wanted)).map(|(name, _)| name.clone()).collect();
    (!missed.is_empty()).then_some(missed)
}

/// Whether the owner is a wildcard whose record sets are the very ones that are wanted.
fn suits(owner: &str, chosen: &[Wanted<'_>], wanted: &[Wanted<'_>]) -> bool {
    let from = chosen.partition_point(|set| &*set.name < owner);
    let given = chosen[from..].iter().take_while(|set| &*set.name == owner);
    let essence = |set: &Wanted<'_>| (set.kind, set.content.clone());
    owner.starts_with("*.") && given.map(essence).eq(wanted.iter().map(essence))
}

/// Every name that has record sets once the plan is carried out, and some that may be gone by then.
fn names_to_be(
    zone: &Zone<'_>,
    chosen: &[Wanted<'_>],
    covered: &BTreeMap<Str, Vec<Wanted<'_>>>,
    intent: &Intent<'_>,
    settings: &Settings,
) -> BTreeSet<Str> {
    let is_left = |set: &&RecordSet| {
        let is_marker = settings.txt().is_some_and(|registry| {
            let ours = zone.markers.at(&set.name).filter(|marker| {
                marker.set.key() == set.key() && ownership::is_our_owner(marker.labels.owner(), registry)
            });
            set.made() == Some(RecordType::Txt) && ours.count() == set.values.len()
        });
        let goes = || {
            settings.policy == Policy::Sync && matches!(ownership::of(zone, set, settings, false), Ownership::Ours(_))
        };
        !(is_marker || (covered.contains_key(&set.name) && goes()))
    };
    let mut names: BTreeSet<Str> = zone.content.sets().iter().filter(is_left).map(|set| set.name.clone()).collect();
    let marker = |name: &str, kind: RecordType| {
        settings.txt().map(|registry| Str::from(registry.layout.marker_of(name, kind.as_str())))
    };
    for wanted in chosen {
        names.extend(marker(&wanted.name, wanted.kind));
        names.insert(wanted.name.clone());
    }
    for challenge in intent.challenges {
        let name = canonical::name(&challenge.name);
        names.extend(marker(&name, RecordType::Txt));
        names.insert(name);
    }
    names
}
