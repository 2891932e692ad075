//! The names that a routed wildcard serves and DNS does not answer with it (D35), updated only where names changed.
//!
//! [`wildcards::hidden`] decides what is hidden at each existing name below a routed wildcard. Nothing is kept while no
//! route serves a wildcard. Nothing here knows the contents of records.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::coverage::reversed;
use crate::model::Str;
use crate::names::Hostname;
use crate::publication::domains::DomainFilter;
use crate::publication::wildcards::{self, above};
use crate::publication::{GrantRules, NameDecision};

/// The hidden names, and the wildcard that serves each.
pub(super) type Hidden = BTreeMap<Hostname, Hostname>;

/// The inputs of an update.
#[derive(Clone, Copy)]
pub(super) struct Published<'a> {
    pub(super) names: &'a BTreeMap<Hostname, NameDecision>,
    pub(super) covered: &'a BTreeSet<Hostname>,
    pub(super) domains: &'a DomainFilter,
    /// Names that exist without answering, such as those of challenges.
    pub(super) existing: &'a BTreeSet<Str>,
    pub(super) grants: GrantRules<'a>,
}

/// What hidden names are derived from.
#[derive(Default)]
pub(super) struct HiddenNames {
    /// The bases of published wildcards that routes serve.
    bases: HashSet<Str>,
    /// Names below these bases at or below which something exists, keyed by their reversed bytes.
    nodes: BTreeMap<Box<[u8]>, ExistingName>,
    /// Names that are withheld at a listener, with the number of routes.
    blocked: BTreeMap<Hostname, usize>,
    touched: BTreeSet<Str>,
}

struct ExistingName {
    name: Str,
    /// How many names exist at or below it: owners of records, and others.
    count: usize,
    is_owner: bool,
    is_other: bool,
}

impl Published<'_> {
    fn has_records(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(NameDecision::has_records) && !self.covered.contains(name)
    }

    fn is_routed(&self, name: &str) -> bool {
        self.has_records(name) && self.names.get(name).is_some_and(NameDecision::is_routed)
    }

    /// The published wildcard with a base.
    fn wildcard(&self, base: &str) -> Option<&Hostname> {
        let name = format!("*.{base}");
        let (wildcard, _) = self.names.get_key_value(&*name)?;
        self.has_records(&name).then_some(wildcard)
    }
}

impl HiddenNames {
    /// Notes a name whose records may have changed.
    pub(super) fn touch(&mut self, name: &Str) {
        self.touched.insert(name.clone());
    }

    /// Notes that every routed wildcard may have to be asked again what it serves.
    pub(super) fn touch_wildcards(&mut self, names: &BTreeMap<Hostname, NameDecision>) {
        if self.bases.is_empty() {
            return;
        }
        let is_served = |name: &&Hostname| name.wildcard_base().is_some_and(|base| self.bases.contains(base));
        self.touched.extend(names.keys().filter(is_served).map(|name| name.text().clone()));
    }

    /// Replaces the names that a route has withheld at its listeners.
    pub(super) fn replace_blocked(&mut self, before: &[Hostname], after: &[Hostname]) {
        if before == after {
            return;
        }
        for name in before {
            if let Some(count) = self.blocked.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.blocked.remove(name);
                }
            }
        }
        after.iter().for_each(|name| *self.blocked.entry(name.clone()).or_default() += 1);
        self.touched.extend(before.iter().chain(after).map(|name| name.text().clone()));
    }

    /// Updates `hidden`, and returns the names whose records changed.
    pub(super) fn update(&mut self, published: Published<'_>, hidden: &mut Hidden) -> BTreeSet<Str> {
        let touched = std::mem::take(&mut self.touched);
        let mut changed = BTreeSet::new();
        let is_base_changed = self.update_bases(&touched, published);
        let mut open: BTreeSet<Str> = BTreeSet::new();
        if is_base_changed {
            open.extend(self.nodes.values().map(|node| node.name.clone()));
            self.rebuild(published);
            open.extend(self.nodes.values().map(|node| node.name.clone()));
        } else if !self.bases.is_empty() {
            for name in &touched {
                self.count(name, published, &mut open);
            }
        }
        for wildcard in touched.iter().filter(|name| name.starts_with("*.")) {
            // Its values may differ, and other wildcards may be the closest now.
            changed.extend(hidden.iter().filter(|(_, by)| by.text() == wildcard).map(|(name, _)| name.text().clone()));
            open.extend(self.below(&wildcard[2..]));
        }
        for name in open.iter().chain(touched.iter().filter(|_| !self.bases.is_empty())) {
            self.decide(name.strip_prefix("*.").unwrap_or(name), published, hidden, &mut changed);
        }
        changed
    }

    /// Updates the bases of routed wildcards; returns whether one came or went.
    fn update_bases(&mut self, touched: &BTreeSet<Str>, published: Published<'_>) -> bool {
        let mut is_changed = false;
        for name in touched {
            let Some(base) = name.strip_prefix("*.") else { continue };
            is_changed |= match published.is_routed(name) {
                true => self.bases.insert(base.into()),
                false => self.bases.remove(base),
            };
        }
        is_changed
    }

    /// Whether a name is strictly below the base of a routed wildcard.
    fn is_served(&self, name: &str) -> bool {
        above(name).any(|base| self.bases.contains(base))
    }

    fn rebuild(&mut self, published: Published<'_>) {
        self.nodes.clear();
        let names = published.names.keys().map(Hostname::text).chain(published.existing);
        let served: Vec<&Str> = names.filter(|name| self.is_served(name)).collect();
        served.into_iter().for_each(|name| self.count(name, published, &mut BTreeSet::new()));
    }

    /// Updates whether a name exists, and adds the names at and above it to `open`.
    fn count(&mut self, name: &Str, published: Published<'_>, open: &mut BTreeSet<Str>) {
        if !self.is_served(name) {
            return;
        }
        let (is_owner, is_other) = (published.has_records(name), published.existing.contains(name));
        let known = self.nodes.get(&reversed(name)).map_or((false, false), |node| (node.is_owner, node.is_other));
        let (before, after) =
            (usize::from(known.0) + usize::from(known.1), usize::from(is_owner) + usize::from(is_other));
        if known == (is_owner, is_other) {
            return;
        }
        let places: Vec<&str> =
            std::iter::once(&**name).chain(above(name)).filter(|name| self.is_served(name)).collect();
        for place in places {
            let node = self.nodes.entry(reversed(place)).or_insert_with(|| ExistingName {
                name: place.into(),
                count: 0,
                is_owner: false,
                is_other: false,
            });
            node.count = node.count + after - before;
            if place == &**name {
                (node.is_owner, node.is_other) = (is_owner, is_other);
            }
            open.insert(node.name.clone());
            if node.count == 0 {
                self.nodes.remove(&reversed(place));
            }
        }
    }

    /// The existing names strictly below a base.
    fn below(&self, base: &str) -> Vec<Str> {
        let front: Box<[u8]> = reversed(base).iter().copied().chain([b'.']).collect();
        let below = self.nodes.range(front.clone()..).take_while(|(key, _)| key.starts_with(&front));
        below.map(|(_, node)| node.name.clone()).collect()
    }

    /// Decides again what is hidden at one name.
    fn decide(&self, name: &str, published: Published<'_>, hidden: &mut Hidden, changed: &mut BTreeSet<Str>) {
        let is_free = |name: &Hostname| {
            !published.names.contains_key(name)
                && !self.blocked.contains_key(name)
                && published.domains.admits(name.as_str())
        };
        let exists = self.nodes.contains_key(&reversed(name));
        let found = exists.then(|| wildcards::hidden(name, |base| published.wildcard(base))).flatten();
        let found = found.filter(|(wildcard, _)| published.is_routed(wildcard.as_str()));
        let may_have = |wildcard: &Hostname, name: &Hostname| {
            let decision = published.names.get(wildcard);
            decision.is_some_and(|decision| decision.may_serve_hidden(name, published.grants))
        };
        let served = |place: usize| {
            let found =
                found.as_ref().filter(|(wildcard, names)| is_free(&names[place]) && may_have(wildcard, &names[place]));
            found.map(|(wildcard, _)| *wildcard)
        };
        for (place, name) in [name.to_owned(), format!("*.{name}")].into_iter().enumerate() {
            let (before, after) = (hidden.get(&*name), served(place));
            if before == after {
                continue;
            }
            changed.insert(name.as_str().into());
            match (after.cloned(), &found) {
                (Some(wildcard), Some((_, names))) => _ = hidden.insert(names[place].clone(), wildcard),
                _ => _ = hidden.remove(&*name),
            }
        }
    }
}
