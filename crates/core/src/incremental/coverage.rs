//! Which names a wildcard answers for, kept up to date: only the part of the tree that a change can reach is looked at.
//!
//! A name that is made an owner can take others away from a wildcard, but never beyond the next name above it that exists
//! in any case. So the part below that name is decided again from nothing, by [`wildcards::explicit`] as from scratch.
//! Names of challenges exist without being owners (D13): they bound that part in the same way. Nothing here says what a
//! record holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Str;
use crate::names::Hostname;
use crate::publication::NameDecision;
use crate::publication::wildcards::{self, DnsTree};

type Names = BTreeMap<Hostname, NameDecision>;
type Covered = BTreeSet<Hostname>;

/// Where more names are touched at once, everything is decided again: to find out what each can reach would take longer.
const MOST_TOUCHED: usize = 100;

/// Names by their bytes in reverse order, so that those below a name stand together.
struct ReversedNames<N>(BTreeMap<Box<[u8]>, N>);

/// What is known of wildcards.
#[derive(Default)]
pub(super) struct Coverage {
    /// How many names a wildcard may stand for. While there are none, nothing else is kept.
    coverable: usize,
    trees: Option<Trees>,
    /// Names that exist without answering, such as those of challenges.
    existing: ReversedNames<Str>,
    touched: BTreeSet<Hostname>,
    /// Existing names that came or went since the last time.
    touched_existing: BTreeSet<Str>,
}

/// Names that are owners in any case, and names that a wildcard may stand for.
#[derive(Default)]
struct Trees {
    owners: ReversedNames<Hostname>,
    coverable: ReversedNames<Hostname>,
}

/// Everything that exists in any case.
#[derive(Clone, Copy)]
struct Certain<'a> {
    owners: &'a ReversedNames<Hostname>,
    existing: &'a ReversedNames<Str>,
}

impl Coverage {
    /// Notes that a name has another decision.
    pub(super) fn note(&mut self, name: &Hostname, before: Option<&NameDecision>, after: Option<&NameDecision>) {
        let is_coverable = |decision: Option<&NameDecision>| decision.is_some_and(|decision| decision.is_coverable);
        self.coverable += usize::from(is_coverable(after));
        self.coverable -= usize::from(is_coverable(before));
        if self.coverable == 0 {
            self.trees = None;
        }
        self.touched.insert(name.clone());
        let Some(trees) = &mut self.trees else { return };
        trees.remove(name);
        if let Some(after) = after {
            trees.insert(name, after.is_coverable);
        }
    }

    /// Replaces the names that exist without answering; says whether they are others than before.
    pub(super) fn set_existing(&mut self, names: impl IntoIterator<Item = Str>) -> bool {
        let after: BTreeMap<_, Str> = names.into_iter().map(|name| (reversed(&name), name)).collect();
        let before = std::mem::replace(&mut self.existing, ReversedNames(after));
        let after = &self.existing;
        let gone = before.0.iter().filter(|(key, _)| !after.0.contains_key(*key));
        let come = after.0.iter().filter(|(key, _)| !before.0.contains_key(*key));
        self.touched_existing.extend(gone.chain(come).map(|(_, name)| name.clone()));
        !self.touched_existing.is_empty()
    }

    /// Decides again what may differ; gives the names that are covered now and were not, or the other way round.
    pub(super) fn settle(&mut self, names: &Names, covered: &mut Covered) -> Vec<Hostname> {
        let (touched, touched_existing) =
            (std::mem::take(&mut self.touched), std::mem::take(&mut self.touched_existing));
        let mut flipped = Vec::new();
        if self.coverable == 0 {
            flipped.extend(std::mem::take(covered));
            return flipped;
        }
        for name in touched.iter().filter(|name| !names.get(*name).is_some_and(|decision| decision.is_coverable)) {
            flipped.extend(covered.take(name));
        }
        let touched_names = touched.iter().map(Hostname::as_str).chain(touched_existing.iter().map(|name| &**name));
        let touched_names: BTreeSet<&str> = touched_names.collect();
        if self.trees.is_none() {
            let trees = self.trees.insert(Trees::default());
            names.iter().for_each(|(name, decision)| trees.insert(name, decision.is_coverable));
            trees.decide("", &self.existing, names, covered, &mut flipped);
            return flipped;
        }
        let Some(trees) = &self.trees else { return flipped };
        let certain = trees.certain(&self.existing);
        let roots: BTreeSet<&str> = match touched_names.len() > MOST_TOUCHED {
            true => [""].into(),
            false => touched_names.iter().map(|name| certain.root(name, &touched_names)).collect(),
        };
        for root in roots {
            trees.decide(root, &self.existing, names, covered, &mut flipped);
        }
        flipped
    }
}

impl Trees {
    fn insert(&mut self, name: &Hostname, is_coverable: bool) {
        let tree = if is_coverable { &mut self.coverable } else { &mut self.owners };
        tree.0.insert(reversed(name.as_str()), name.clone());
    }

    fn remove(&mut self, name: &Hostname) {
        let key = reversed(name.as_str());
        self.owners.0.remove(&key);
        self.coverable.0.remove(&key);
    }

    fn certain<'a>(&'a self, existing: &'a ReversedNames<Str>) -> Certain<'a> {
        Certain { owners: &self.owners, existing }
    }

    /// Decides about every name at or below `root`; everything where that is empty.
    fn decide(
        &self,
        root: &str,
        existing: &ReversedNames<Str>,
        names: &Names,
        covered: &mut Covered,
        flipped: &mut Vec<Hostname>,
    ) {
        let mut tree = DnsTree::of(self.owners.at_or_below(root).map(Hostname::as_str));
        existing.at_or_below(root).for_each(|name| tree.insert_existing(name));
        let certain = self.certain(existing);
        let above = wildcards::above(root).find(|place| certain.is_at_or_below(place, |_| true));
        let wildcard = above.map(|above| format!("*.{above}"));
        if let (Some(above), Some(wildcard)) = (above, &wildcard) {
            tree.insert_existing(above);
            if self.owners.0.contains_key(&reversed(wildcard)) {
                tree.insert(wildcard);
            }
        }
        let suits = |name: &str, owner: &str| match (names.get(name), names.get(owner)) {
            (Some(wanted), Some(given)) => wanted.is_same_answer(given),
            _ => false,
        };
        let coverable = || self.coverable.at_or_below(root);
        let explicit = wildcards::explicit(&mut tree, coverable().map(Hostname::as_str), suits);
        for name in coverable() {
            let is_covered = !explicit.contains(name.as_str());
            if is_covered == covered.contains(name) {
                continue;
            }
            match is_covered {
                true => _ = covered.insert(name.clone()),
                false => _ = covered.remove(name),
            }
            flipped.push(name.clone());
        }
    }
}

impl Certain<'_> {
    /// The top of what a change of a name can reach. Only names that were not touched with it bound that: two that come
    /// together do not make each other's surroundings exist before.
    fn root<'n>(&self, name: &'n str, touched: &BTreeSet<&str>) -> &'n str {
        let line = std::iter::once(name).chain(wildcards::above(name));
        let free = line.take_while(|place| !self.is_at_or_below(place, |found| !touched.contains(found)));
        let top = free.last().unwrap_or(name);
        // A wildcard answers for its whole neighbourhood.
        match name.strip_prefix("*.") {
            Some(base) if top.len() > base.len() => base,
            _ => top,
        }
    }

    /// Whether any name that counts exists at or below a place.
    fn is_at_or_below(&self, place: &str, counts: impl Fn(&str) -> bool) -> bool {
        self.owners.at_or_below(place).any(|owner| counts(owner.as_str()))
            || self.existing.at_or_below(place).any(|name| counts(name))
    }
}

impl<N> Default for ReversedNames<N> {
    fn default() -> Self {
        ReversedNames(BTreeMap::new())
    }
}

impl<N> ReversedNames<N> {
    /// The names at or below a place; all where that is empty.
    fn at_or_below(&self, place: &str) -> impl Iterator<Item = &N> {
        let exact = reversed(place);
        let front: Box<[u8]> = match place.is_empty() {
            true => Box::default(),
            false => exact.iter().copied().chain([b'.']).collect(),
        };
        let own = self.0.get(&exact).filter(|_| !place.is_empty());
        let below = self.0.range(front.clone()..).take_while(move |(key, _)| key.starts_with(&front));
        own.into_iter().chain(below.map(|(_, name)| name))
    }
}

fn reversed(name: &str) -> Box<[u8]> {
    name.bytes().rev().collect()
}
