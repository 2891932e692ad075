//! Names that a wildcard is to answer for, and does not: something exists at or below them, so they get records of their
//! own (D13).
//!
//! What exists is everybody's: hand-made records, the records that are wanted, their markers, and challenges. Each
//! name that is given records of its own may take others away from a wildcard, so this goes on until none is missed.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::Answers;
use super::observed::RecordKind;
use super::settings::Settings;
use super::wanted::{Wanted, Wishes};
use super::zone::Zone;
use super::{Intent, canonical, ownership};
use crate::desired::RecordType;
use crate::model::Str;

/// What is wanted in a zone, with the names that wildcards miss.
pub(super) fn choose<'a>(
    zone: &Zone<'_>,
    wishes: &mut Wishes<'a>,
    intent: &Intent<'_>,
    settings: &Settings,
) -> Vec<Wanted<'a>> {
    let mut chosen = wishes.choose(zone, settings);
    let mut covered: BTreeMap<Str, Vec<Wanted<'a>>> = BTreeMap::new();
    for wanted in wishes.covered.remove(&**zone.name).unwrap_or_default() {
        covered.entry(wanted.name.clone()).or_default().push(wanted);
    }
    covered.values_mut().for_each(|wanted| wanted.sort_by(|a, b| a.key().cmp(&b.key())));
    covered.retain(|name, _| chosen.binary_search_by(|wanted| wanted.name.cmp(name)).is_err());
    while let Some(missed) = missed(zone, &chosen, &covered, intent, settings) {
        for name in &missed {
            chosen.extend(covered.remove(name).unwrap_or_default());
        }
        chosen.sort_by(|a, b| a.key().cmp(&b.key()));
    }
    chosen
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
    let mut answers = Answers::default();
    names.iter().for_each(|name| answers.add(name, &RecordKind::Made(RecordType::A)));
    let is_missed = |name: &str, wanted: &[Wanted<'_>]| answers.owner(name).is_none_or(|owner| !suits(owner, chosen, wanted));
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
    let is_left = |set: &&super::RecordSet| {
        let is_marker = settings.txt().is_some_and(|registry| {
            let ours = zone.markers.at(&set.name).filter(|marker| {
                marker.set.key() == set.key() && ownership::is_our_owner(marker.labels.owner(), registry)
            });
            set.made() == Some(RecordType::Txt) && ours.count() == set.values.len()
        });
        let is_ours = || matches!(ownership::of(zone, set, settings, false), ownership::Ownership::Ours(_));
        !is_marker && !(covered.contains_key(&set.name) && is_ours())
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
