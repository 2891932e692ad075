//! Which names a wildcard answers for, kept up to date: only the part of the tree that a change can reach is looked at.
//!
//! A name that is made an owner can take others away from a wildcard, but never beyond the next name above it that exists
//! in any case. So the part below that name is decided again from nothing, by [`wildcards::explicit`] as from scratch.

use std::collections::{BTreeMap, BTreeSet};

use super::marks::Marks;
use super::named::Named;
use crate::names::Hostname;
use crate::publication::strict::Decision;
use crate::publication::wildcards::{self, Tree};
use crate::table::Table;

type Names = Table<Hostname, Named>;
type Covered = Table<Hostname, ()>;

/// Names read backwards, so that those below a name stand together.
#[derive(Default)]
struct Backwards(BTreeMap<Box<[u8]>, Hostname>);

/// What is known of wildcards.
#[derive(Default)]
pub(super) struct Coverage {
    /// How many names a wildcard may stand for. While there are none, nothing else is kept.
    coverable: usize,
    trees: Option<Trees>,
    touched: Marks<Hostname>,
}

/// Names that are owners in any case, and names that a wildcard may stand for.
#[derive(Default)]
struct Trees {
    owners: Backwards,
    coverable: Backwards,
}

impl Coverage {
    /// Notes that a name has another decision.
    pub(super) fn note(&mut self, name: &Hostname, before: Option<&Decision>, after: Option<&Decision>) {
        let is_coverable = |decision: Option<&Decision>| decision.is_some_and(|decision| decision.is_coverable);
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

    /// Decides again what may differ; gives the names that are covered now and were not, or the other way round.
    pub(super) fn settle(&mut self, names: &Names, covered: &mut Covered) -> Vec<Hostname> {
        let touched = self.touched.take();
        let mut flipped = Vec::new();
        if self.coverable == 0 {
            flipped.extend(covered.keys().cloned());
            *covered = Table::new();
            return flipped;
        }
        for name in touched.iter().filter(|name| !names.get(*name).is_some_and(Named::is_coverable)) {
            flipped.extend(covered.remove(name).map(|()| name.clone()));
        }
        if self.trees.is_none() {
            let trees = self.trees.insert(Trees::default());
            names.iter().for_each(|(name, named)| trees.insert(name, named.is_coverable()));
            trees.decide("", names, covered, &mut flipped);
            return flipped;
        }
        let Some(trees) = &self.trees else { return flipped };
        let roots: BTreeSet<&str> = touched.iter().map(|name| trees.root(name)).collect();
        for root in roots {
            trees.decide(root, names, covered, &mut flipped);
        }
        flipped
    }
}

impl Trees {
    fn insert(&mut self, name: &Hostname, is_coverable: bool) {
        let tree = if is_coverable { &mut self.coverable } else { &mut self.owners };
        tree.0.insert(backwards(name.as_str()), name.clone());
    }

    fn remove(&mut self, name: &Hostname) {
        let key = backwards(name.as_str());
        self.owners.0.remove(&key);
        self.coverable.0.remove(&key);
    }

    /// The top of what a change of a name can reach.
    fn root<'n>(&self, name: &'n Hostname) -> &'n str {
        let name = name.as_str();
        let line = std::iter::once(name).chain(wildcards::above(name));
        let free = line.take_while(|place| !self.owners.at_or_below(place).any(|owner| owner.as_str() != name));
        let top = free.last().unwrap_or(name);
        // A wildcard answers for its whole neighbourhood.
        match name.strip_prefix("*.") {
            Some(base) if top.len() > base.len() => base,
            _ => top,
        }
    }

    /// Decides about every name at or below `root`; everything where that is empty.
    fn decide(&self, root: &str, names: &Names, covered: &mut Covered, flipped: &mut Vec<Hostname>) {
        let mut tree = Tree::of(self.owners.at_or_below(root).map(Hostname::as_str));
        let above = wildcards::above(root).find(|place| self.owners.at_or_below(place).next().is_some());
        let wildcard = above.map(|above| format!("*.{above}"));
        if let (Some(above), Some(wildcard)) = (above, &wildcard) {
            tree.insert_existing(above);
            if self.owners.0.contains_key(&backwards(wildcard)) {
                tree.insert(wildcard);
            }
        }
        let suits = |name: &str, owner: &str| match (names.get_key_value(name), names.get_key_value(owner)) {
            (Some((name, wanted)), Some((owner, given))) => wanted.has_same_answer(name, given, owner),
            _ => false,
        };
        let coverable = || self.coverable.at_or_below(root);
        let explicit = wildcards::explicit(&mut tree, coverable().map(Hostname::as_str), suits);
        for name in coverable() {
            let is_covered = !explicit.contains(name.as_str());
            if is_covered == covered.contains_key(name) {
                continue;
            }
            match is_covered {
                true => _ = covered.insert(name.clone(), ()),
                false => _ = covered.remove(name),
            }
            flipped.push(name.clone());
        }
    }
}

impl Backwards {
    /// The names at or below a place; all where that is empty.
    fn at_or_below(&self, place: &str) -> impl Iterator<Item = &Hostname> {
        let exact = backwards(place);
        let front: Box<[u8]> = match place.is_empty() {
            true => Box::default(),
            false => exact.iter().copied().chain([b'.']).collect(),
        };
        let own = self.0.get(&exact).filter(|_| !place.is_empty());
        let below = self.0.range(front.clone()..).take_while(move |(key, _)| key.starts_with(&front));
        own.into_iter().chain(below.map(|(_, name)| name))
    }
}

fn backwards(name: &str) -> Box<[u8]> {
    name.bytes().rev().collect()
}
