//! The wishes for one Secret, counted: one more or one less costs the same however many there are, but for the few times that
//! the ranking looks at all names again.
//!
//! It comes to what [`super::decide`] comes to for the same wishes. Names are ranked as they come and go; what only matters
//! beside a wildcard is kept only while there is one.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ranking::{Claimant, Ranking};
use super::{Ask, Made, SecretDecision, Told, chosen_issuer, first_of, issuers_differ, left_out};
use crate::attachment::ListenerKey;
use crate::model::{Key, ObjectRef, Route, TlsPolicy};
use crate::names::Hostname;
use crate::publication::wildcards::above;
use crate::publication::{Certificate, RouteNames, RoutesBehind};
use crate::table::Table;

/// Everything that is wished for one Secret.
#[derive(Default)]
pub(crate) struct Book {
    /// Who has wishes.
    routes: RouteNames,
    names: Table<Hostname, Claimants>,
    /// What matters while there are wildcards among the names.
    shelter: Option<Box<Shelter>>,
    /// Which of the names there is room for, without those that a wildcard stands for.
    ranking: Ranking,
    listeners: BTreeMap<ListenerKey, usize>,
    policies: BTreeMap<(i64, Key), (Arc<TlsPolicy>, usize)>,
    /// Wildcards by the policy that allows them by saying nothing.
    unsaid: BTreeMap<Key, BTreeMap<Hostname, usize>>,
    /// How many wishes somebody has to be told of.
    spoken: usize,
}

/// The wishes of one route for one Secret.
pub(crate) type Wishes<'a> = (&'a Arc<Route>, Vec<Ask<'a>>);

/// A name; those of one parent stand together, its wildcard first.
#[derive(Clone, PartialEq, Eq)]
struct Placed {
    name: Hostname,
    /// Where its parent begins, where it has one.
    parent: Option<u8>,
}

/// Everybody who asks for a name, and how often.
#[derive(Clone)]
enum Claimants {
    One(Arc<Route>, u32),
    Many(Box<Table<Claimant, u32>>),
}

/// What matters while there are wildcards.
#[derive(Default)]
struct Shelter {
    /// What stands behind `*.` in them.
    bases: BTreeSet<Arc<str>>,
    names: BTreeSet<Placed>,
}

impl Book {
    /// Whether nobody wishes anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Replaces the wishes of one route.
    pub(crate) fn replace(
        &mut self,
        limit: usize,
        object: &ObjectRef,
        old: Option<Wishes<'_>>,
        new: Option<Wishes<'_>>,
    ) {
        match (&old, &new) {
            (None, Some(_)) => self.routes.insert(object),
            (Some(_), None) => self.routes.remove(object),
            _ => {}
        }
        // The old ones first, so that nothing of them is kept.
        if let Some((route, wishes)) = old {
            wishes.iter().for_each(|ask| self.take(route, ask));
        }
        if let Some((route, wishes)) = new {
            wishes.iter().for_each(|ask| self.add(route, ask));
        }
        let (names, shelter) = (&self.names, self.shelter.as_deref());
        self.ranking.settle(limit, || {
            let ranked = names.iter().filter(|(name, _)| !is_covered(shelter, name));
            ranked.map(|(name, claimants)| (claimants.first(), name))
        });
    }

    /// What becomes of the Secret. `wishes` tells those of a route for it.
    pub(crate) fn decide<'a>(
        &self,
        limit: usize,
        secret: &Key,
        wishes: impl Fn(&ObjectRef) -> Option<Wishes<'a>>,
    ) -> SecretDecision {
        let names: Vec<&Hostname> = self.ranking.made().iter().collect();
        let mut diagnostics = Vec::new();
        let count = self.ranking.left_out();
        if count > 0 {
            let place = self.routes.keys().find_map(|route| Some(first_of(wishes(&route)?.1.iter())?.place(secret)));
            let names = self.ranking.first_left_out();
            diagnostics.extend(place.map(|place| left_out(place, secret, limit, count, names)));
        }
        let policies = || self.policies.values().map(|(policy, _)| policy);
        diagnostics.extend(issuers_differ(secret, policies()));
        let mut told: Vec<Told> = Vec::new();
        let made = Made::of(&names);
        if self.spoken > 0 {
            for (_, asks) in self.routes.keys().filter_map(|route| wishes(&route)) {
                asks.iter().for_each(|ask| made.speak(secret, ask, &mut diagnostics, &mut told));
            }
        }
        let is_made = |wildcard: &&Hostname| made.has(wildcard);
        let notes = self.unsaid.iter().map(|(policy, wildcards)| {
            (policy.clone(), wildcards.keys().filter(is_made).map(|name| name.text().clone()).collect::<Vec<_>>())
        });
        let (issuer, policy) = chosen_issuer(policies());
        let certificate = Certificate {
            secret: secret.clone(),
            dns_names: names.iter().map(|name| name.text().clone()).collect(),
            listeners: self.listeners.keys().cloned().collect(),
            routes: RoutesBehind::Named(self.routes.clone()),
            issuer,
            policy,
        };
        SecretDecision { certificate, diagnostics, told, notes: notes.filter(|(_, made)| !made.is_empty()).collect() }
    }

    fn add(&mut self, route: &Arc<Route>, ask: &Ask<'_>) {
        ask.wanted().for_each(|name| self.claim(name, route));
        *self.listeners.entry(ask.outlet.seat.key.clone()).or_default() += 1;
        self.spoken += usize::from(ask.is_spoken_of());
        let Some(policy) = ask.policy() else { return };
        let (created, key) = policy.meta.seniority();
        let (known, count) = self.policies.entry((created, key.clone())).or_insert_with(|| (policy.clone(), 0));
        // Other routes may still have it as it was; those are replaced in the same application.
        *known = policy.clone();
        *count += 1;
        for wildcard in ask.unsaid() {
            *self.unsaid.entry(key.clone()).or_default().entry(wildcard.clone()).or_default() += 1;
        }
    }

    fn take(&mut self, route: &Arc<Route>, ask: &Ask<'_>) {
        ask.wanted().for_each(|name| self.release(name, route));
        discount(&mut self.listeners, &ask.outlet.seat.key, |count| count);
        self.spoken -= usize::from(ask.is_spoken_of());
        let Some(policy) = ask.policy() else { return };
        let (created, key) = policy.meta.seniority();
        discount(&mut self.policies, &(created, key.clone()), |(_, count)| count);
        for wildcard in ask.unsaid() {
            let Some(wildcards) = self.unsaid.get_mut(key) else { continue };
            discount(wildcards, wildcard, |count| count);
            if wildcards.is_empty() {
                self.unsaid.remove(key);
            }
        }
    }

    /// One claim more on a name.
    fn claim(&mut self, name: &Hostname, route: &Arc<Route>) {
        let Some(known) = self.names.get_mut(name) else {
            self.names.insert(name.clone(), Claimants::One(route.clone(), 1));
            if let Some(shelter) = &mut self.shelter {
                shelter.names.insert(Placed::of(name));
            }
            if let Some(base) = name.wildcard_base() {
                self.cover(name, base, true);
            }
            return self.rank_in(name, route);
        };
        let before = known.first().clone();
        known.add(route);
        let after = known.first().clone();
        self.rank_again(name, &before, &after);
    }

    /// One claim less on a name.
    fn release(&mut self, name: &Hostname, route: &Arc<Route>) {
        let Some(known) = self.names.get_mut(name) else { return };
        let before = known.first().clone();
        if known.take(route) {
            let after = known.first().clone();
            return self.rank_again(name, &before, &after);
        }
        self.names.remove(name);
        if let Some(shelter) = &mut self.shelter {
            shelter.names.remove(&Placed::of(name));
        }
        self.rank_out(name, &before);
        if let Some(base) = name.wildcard_base() {
            self.cover(name, base, false);
        }
    }

    /// A wildcard is there now, or no longer: the names that it stands for need no room, or do.
    fn cover(&mut self, wildcard: &Hostname, base: &str, is_there: bool) {
        let known = self.shelter.take();
        let mut shelter = known.unwrap_or_else(|| Box::new(Shelter::of(self.names.keys())));
        let below = shelter.below(wildcard, base, &self.names);
        if is_there {
            below.iter().for_each(|(route, name)| self.ranking.remove(&(Claimant::of(route), name.clone())));
            shelter.bases.insert(base.into());
        } else {
            shelter.bases.remove(base);
            below.into_iter().for_each(|(route, name)| self.ranking.insert((Claimant::of(&route), name)));
        }
        self.shelter = Some(shelter).filter(|shelter| !shelter.bases.is_empty());
    }

    fn rank_again(&mut self, name: &Hostname, before: &Arc<Route>, after: &Arc<Route>) {
        if Claimant::of(before) != Claimant::of(after) {
            self.rank_out(name, before);
            self.rank_in(name, after);
        }
    }

    fn rank_in(&mut self, name: &Hostname, route: &Arc<Route>) {
        if !is_covered(self.shelter.as_deref(), name) {
            self.ranking.insert((Claimant::of(route), name.clone()));
        }
    }

    fn rank_out(&mut self, name: &Hostname, route: &Arc<Route>) {
        if !is_covered(self.shelter.as_deref(), name) {
            self.ranking.remove(&(Claimant::of(route), name.clone()));
        }
    }
}

/// Whether a wildcard stands for a name.
fn is_covered(shelter: Option<&Shelter>, name: &Hostname) -> bool {
    let Some(shelter) = shelter else { return false };
    name.is_precise() && above(name.as_str()).next().is_some_and(|parent| shelter.bases.contains(parent))
}

impl Shelter {
    fn of<'a>(names: impl Iterator<Item = &'a Hostname>) -> Self {
        Shelter { bases: BTreeSet::new(), names: names.map(Placed::of).collect() }
    }

    /// The precise names that a wildcard stands for, each with who goes first.
    fn below(
        &self,
        wildcard: &Hostname,
        base: &str,
        names: &Table<Hostname, Claimants>,
    ) -> Vec<(Arc<Route>, Hostname)> {
        let below = self.names.range(Placed::of(wildcard)..).take_while(|place| place.parent() == Some(base));
        let precise = below.filter(|place| place.name.is_precise());
        precise.filter_map(|place| Some((names.get(&place.name)?.first().clone(), place.name.clone()))).collect()
    }
}

impl Claimants {
    fn first(&self) -> &Arc<Route> {
        match self {
            Claimants::One(route, _) => route,
            // There are always several.
            Claimants::Many(all) => &all.keys().next().expect("several claimants").route,
        }
    }

    fn add(&mut self, route: &Arc<Route>) {
        let claimant = Claimant::of(route);
        match self {
            Claimants::One(known, count) if Claimant::of(known) == claimant => {
                *known = route.clone();
                *count += 1;
            }
            Claimants::One(known, count) => {
                let known = (Claimant::of(known), *count);
                *self = Claimants::Many(Box::new([known, (claimant, 1)].into_iter().collect()));
            }
            Claimants::Many(all) => match all.get_mut(&claimant) {
                Some(count) => *count += 1,
                None => _ = all.insert(claimant, 1),
            },
        }
    }

    /// Takes a claim out; says whether any are left.
    fn take(&mut self, route: &Arc<Route>) -> bool {
        match self {
            Claimants::One(_, count) => {
                *count -= 1;
                *count > 0
            }
            Claimants::Many(all) => {
                let claimant = Claimant::of(route);
                match all.get_mut(&claimant) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => _ = all.remove(&claimant),
                }
                if all.len() == 1
                    && let Some((last, count)) = all.pop_first()
                {
                    *self = Claimants::One(last.route, count);
                }
                true
            }
        }
    }
}

/// Counts one less of something; what is not there any more is forgotten.
fn discount<K: Ord, V>(counts: &mut BTreeMap<K, V>, key: &K, count: impl Fn(&mut V) -> &mut usize) {
    let Some(found) = counts.get_mut(key) else { return };
    let left = count(found);
    *left -= 1;
    if *left == 0 {
        counts.remove(key);
    }
}

impl Placed {
    fn of(name: &Hostname) -> Self {
        // A label has 63 letters at most.
        let dot = name.as_str().bytes().position(|byte| byte == b'.');
        Placed { name: name.clone(), parent: dot.and_then(|dot| u8::try_from(dot + 1).ok()) }
    }

    fn parent(&self) -> Option<&str> {
        self.parent.map(|start| &self.name.as_str()[usize::from(start)..])
    }
}

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parent().cmp(&other.parent()).then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
