//! The set of names that a wildcard answers for, updated only in the affected part of the DNS tree.
//!
//! A name that becomes an owner can take other names away from a wildcard, but only below the closest existing name
//! above it. That subtree is decided again by [`wildcards::explicit`], the function of a full build. Names of
//! challenges exist without being owners (D13) and bound the subtree in the same way. Nothing here knows the contents
//! of records.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Str;
use crate::names::Hostname;
use crate::publication::NameDecision;
use crate::publication::wildcards::{self, DnsTree};

type Names = BTreeMap<Hostname, NameDecision>;
type Covered = BTreeSet<Hostname>;

/// With more touched names everything is decided again, which is faster than finding the subtree of each.
const MOST_TOUCHED: usize = 100;

/// Names keyed by their reversed bytes, so that all names below a name are adjacent.
struct ReversedNames<N>(BTreeMap<Box<[u8]>, N>);

/// The state of wildcard coverage.
#[derive(Default)]
pub(super) struct Coverage {
    /// Number of names that a wildcard may answer for. While it is 0, nothing else is kept.
    coverable: usize,
    trees: Option<Trees>,
    /// Names that exist without answering, such as those of challenges.
    existing: ReversedNames<Str>,
    touched: BTreeSet<Hostname>,
    /// Existing names that were added or removed since the last update.
    touched_existing: BTreeSet<Str>,
}

/// Names that always have their own records, and names that a wildcard may answer for.
#[derive(Default)]
struct Trees {
    owners: ReversedNames<Hostname>,
    coverable: ReversedNames<Hostname>,
}

/// All names that exist whatever is decided about coverage.
#[derive(Clone, Copy)]
struct Certain<'a> {
    owners: &'a ReversedNames<Hostname>,
    existing: &'a ReversedNames<Str>,
}

impl Coverage {
    /// Records the changed decision of a name.
    pub(super) fn note(&mut self, name: &Hostname, before: Option<&NameDecision>, after: Option<&NameDecision>) {
        let after = after.filter(|decision| decision.has_records());
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

    /// Replaces the names that exist without answering; returns whether they differ from before.
    pub(super) fn set_existing(&mut self, names: impl IntoIterator<Item = Str>) -> bool {
        let after: BTreeMap<_, Str> = names.into_iter().map(|name| (reversed(&name), name)).collect();
        let before = std::mem::replace(&mut self.existing, ReversedNames(after));
        let after = &self.existing;
        let gone = before.0.iter().filter(|(key, _)| !after.0.contains_key(*key));
        let come = after.0.iter().filter(|(key, _)| !before.0.contains_key(*key));
        self.touched_existing.extend(gone.chain(come).map(|(_, name)| name.clone()));
        !self.touched_existing.is_empty()
    }

    /// Updates `covered`, and returns the names that were added to it or removed from it.
    pub(super) fn update(&mut self, names: &Names, covered: &mut Covered) -> Vec<Hostname> {
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
            let with_records = names.iter().filter(|(_, decision)| decision.has_records());
            with_records.for_each(|(name, decision)| trees.insert(name, decision.is_coverable));
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

    /// Decides every name at or below `root`; all names if it is empty.
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
    /// The root of the subtree that a change of a name can affect. Only names outside `touched` bound it: names that
    /// are added together did not exist for each other before.
    fn root<'n>(&self, name: &'n str, touched: &BTreeSet<&str>) -> &'n str {
        let line = std::iter::once(name).chain(wildcards::above(name));
        let free = line.take_while(|place| !self.is_at_or_below(place, |found| !touched.contains(found)));
        let top = free.last().unwrap_or(name);
        // A wildcard affects every name below its parent.
        match name.strip_prefix("*.") {
            Some(base) if top.len() > base.len() => base,
            _ => top,
        }
    }

    /// Whether a name that satisfies `counts` exists at or below `place`.
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
    /// The names at or below `place`; all names if it is empty.
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

/// A key under which names below a name follow it.
pub(super) fn reversed(name: &str) -> Box<[u8]> {
    name.bytes().rev().collect()
}
