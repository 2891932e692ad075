//! Who depends on what: the reverse indexes of the engine.
//!
//! Routes are numbers here, so that an index costs a few bytes per entry; what a route is called and which names it has claims
//! on stands in the route and is not written down again. Nothing is decided, and hash maps are only asked, never walked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use super::numbers::Numbers;
use crate::attachment::ListenerId;
use crate::model::{Key, Kind, ObjectRef, Route, Str};
use crate::names::Hostname;
use crate::publication::strict::{Contribution, names_of};

/// A route, for as long as it is there.
pub(super) type RouteId = u32;

/// Every reverse index.
#[derive(Default)]
pub(super) struct Links {
    seed: RandomState,
    /// Routes by who they are.
    ids: Numbers,
    entries: Vec<Option<Entry>>,
    free: Vec<RouteId>,
    /// Routes by the name of a parent, in whatever namespace.
    pub(super) parents: Relation<Str>,
    /// The same, of routes that have a hostname withheld or a parent that refuses them: what stands in their way may be
    /// any listener of the parent.
    pub(super) unsettled: Relation<Str>,
    /// Routes by a Service they name.
    pub(super) services: Relation<Key>,
    /// Routes by another namespace that they refer to.
    pub(super) foreign: Relation<Str>,
    /// Routes by a listener that they attach to.
    pub(super) listeners: Relation<ListenerId>,
    /// Routes by a name that only they have claims on.
    sole: Numbers,
    /// Routes by a name that several have claims on, or had.
    several: Relation<Hostname>,
    /// ListenerSets by the Gateway that they name.
    pub(super) sets: BTreeMap<Key, BTreeSet<ObjectRef>>,
    /// Gateways and ListenerSets by a Secret or ConfigMap that they name.
    pub(super) materials: Materials,
    /// Whoever tells a policy something.
    pub(super) tellers: BTreeMap<ObjectRef, BTreeSet<Teller>>,
}

/// Who names a Secret or ConfigMap.
#[derive(Default)]
pub(super) struct Materials(BTreeMap<Key, BTreeSet<ObjectRef>>);

impl Materials {
    /// The owners of listeners that name one.
    pub(super) fn of(&self, material: &Key) -> impl Iterator<Item = &ObjectRef> {
        self.0.get(material).into_iter().flatten()
    }

    /// The owners of listeners that name any of a namespace.
    pub(super) fn in_namespace(&self, namespace: &Str) -> impl Iterator<Item = &ObjectRef> {
        let from = Key::new(namespace.clone(), "");
        self.0.range(from..).take_while(move |(key, _)| key.namespace == *namespace).flat_map(|(_, owners)| owners)
    }

    pub(super) fn add(&mut self, material: Key, owner: &ObjectRef) {
        self.0.entry(material).or_default().insert(owner.clone());
    }

    pub(super) fn take(&mut self, material: &Key, owner: &ObjectRef) {
        let Some(owners) = self.0.get_mut(material) else { return };
        owners.remove(owner);
        if owners.is_empty() {
            self.0.remove(material);
        }
    }
}

struct Entry {
    /// The route as it is, or was when it went.
    route: Arc<Route>,
    /// What it brought in when it was settled last.
    contribution: Option<Arc<Contribution>>,
    /// Whether it is there.
    is_there: bool,
    /// Whether it is filed as unsettled, under the parents that it had when it was settled last.
    is_unsettled: bool,
}

/// Who tells a policy what became of hostnames.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Teller {
    Route(ObjectRef),
    Name(Hostname),
    Secret(Key),
}

impl Links {
    /// Notes that a route is there, and what it says; gives its number.
    pub(super) fn enter(&mut self, route: &Arc<Route>) -> RouteId {
        let (kind, key) = (route.kind.kind(), &route.meta.key);
        if let Some(id) = self.find(kind, key) {
            if let Some(entry) = self.entry_mut(id) {
                entry.route = route.clone();
                entry.is_there = true;
            }
            return id;
        }
        let entry = Some(Entry { route: route.clone(), contribution: None, is_there: true, is_unsettled: false });
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as RouteId
            }
        };
        self.ids.insert(self.seed.hash_one((kind, key)), id);
        id
    }

    /// Notes that a route is gone, or about to be replaced; gives its number, where it has one.
    pub(super) fn leave(&mut self, route: &Route) -> Option<RouteId> {
        let id = self.find(route.kind.kind(), &route.meta.key)?;
        self.entry_mut(id)?.is_there = false;
        Some(id)
    }

    /// Gives a route's number back.
    pub(super) fn forget(&mut self, id: RouteId) {
        if let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::take) {
            self.ids.remove(self.seed.hash_one((entry.route.kind.kind(), &entry.route.meta.key)), id);
            self.free.push(id);
        }
    }

    /// The number of a route that is there, or is to be dropped.
    pub(super) fn id(&self, object: &ObjectRef) -> Option<RouteId> {
        self.find(object.kind, &object.key)
    }

    /// The numbers of all routes.
    pub(super) fn all(&self) -> impl Iterator<Item = RouteId> {
        (0..).zip(&self.entries).filter(|(_, entry)| entry.is_some()).map(|(id, _)| id)
    }

    fn find(&self, kind: Kind, key: &Key) -> Option<RouteId> {
        let is_it = |route: &Route| route.kind.kind() == kind && route.meta.key == *key;
        let mut found = self.ids.of(self.seed.hash_one((kind, key)));
        found.find(|id| self.entry(*id).is_some_and(|entry| is_it(&entry.route)))
    }

    fn entry(&self, id: RouteId) -> Option<&Entry> {
        self.entries.get(id as usize)?.as_ref()
    }

    fn entry_mut(&mut self, id: RouteId) -> Option<&mut Entry> {
        self.entries.get_mut(id as usize)?.as_mut()
    }

    /// The route of a number, where it is there, without a search for it.
    pub(super) fn route(&self, id: RouteId) -> Option<&Arc<Route>> {
        self.entry(id).filter(|entry| entry.is_there).map(|entry| &entry.route)
    }

    /// Which route a number stands for, there or gone.
    pub(super) fn object(&self, id: RouteId) -> Option<ObjectRef> {
        self.entry(id).map(|entry| entry.route.object())
    }

    /// What a route brings in.
    pub(super) fn contribution(&self, id: RouteId) -> Option<&Arc<Contribution>> {
        self.entry(id)?.contribution.as_ref()
    }

    /// Files a route as unsettled, or no longer. What it brings in is noted behind that.
    pub(super) fn set_unsettled(&mut self, id: RouteId, route: Option<&Route>) {
        let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) else { return };
        let was_unsettled = std::mem::replace(&mut entry.is_unsettled, route.is_some());
        let before = entry.contribution.as_ref().filter(|_| was_unsettled);
        for parent in before.iter().flat_map(|before| &before.route.parents) {
            self.unsettled.take(&parent.target.name, id);
        }
        for parent in route.iter().flat_map(|route| &route.parents) {
            self.unsettled.add(&parent.target.name, id);
        }
    }

    /// Notes what a route brings in.
    pub(super) fn set_contribution(&mut self, id: RouteId, contribution: Option<Arc<Contribution>>) {
        if let Some(entry) = self.entry_mut(id) {
            entry.contribution = contribution;
        }
    }

    /// The routes that have claims on a name; there may be others among them.
    pub(super) fn claimants(&self, name: &Hostname) -> impl Iterator<Item = RouteId> {
        let sole = self.sole.of(self.seed.hash_one(name));
        self.several.of(name).chain(sole)
    }

    /// Files a route under a name that it has claims on. What it brings in is noted behind that.
    pub(super) fn claim(&mut self, name: &Hostname, id: RouteId) {
        if self.several.has(name) {
            return self.several.add(name, id);
        }
        let hash = self.seed.hash_one(name);
        let has_claim = |other: &RouteId| self.contribution(*other).is_some_and(|other| has_claim(other, name));
        let found = self.sole.of(hash).find(has_claim);
        match found {
            None => self.sole.insert(hash, id),
            Some(other) => {
                self.sole.remove(hash, other);
                self.several.add(name, other);
                self.several.add(name, id);
            }
        }
    }

    /// Files a route no longer under a name.
    pub(super) fn release(&mut self, name: &Hostname, id: RouteId) {
        match self.several.has(name) {
            true => self.several.take(name, id),
            false => self.sole.remove(self.seed.hash_one(name), id),
        }
    }
}

fn has_claim(contribution: &Contribution, name: &Hostname) -> bool {
    names_of(contribution).any(|claimed| claimed == name)
}

/// Routes by something.
pub(super) struct Relation<K>(HashMap<K, Ids>);

impl<K> Default for Relation<K> {
    fn default() -> Self {
        Relation(HashMap::new())
    }
}

impl<K: Eq + Hash + Clone> Relation<K> {
    /// The routes of a key.
    pub(super) fn of(&self, key: &K) -> impl Iterator<Item = RouteId> {
        self.0.get(key).into_iter().flat_map(Ids::iter)
    }

    /// Whether a key has any.
    fn has(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn add(&mut self, key: &K, id: RouteId) {
        match self.0.get_mut(key) {
            Some(ids) => ids.insert(id),
            None => _ = self.0.insert(key.clone(), Ids::Few(vec![id])),
        }
    }

    pub(super) fn take(&mut self, key: &K, id: RouteId) {
        if let Some(ids) = self.0.get_mut(key) {
            ids.remove(id);
            if ids.is_empty() {
                self.0.remove(key);
            }
        }
    }
}

/// A set of routes: a sorted list while it is short.
enum Ids {
    Few(Vec<RouteId>),
    /// A bit for each of 64 numbers, those without any left out.
    Many(BTreeMap<u32, u64>),
}

/// From so many on a list is no longer quick to change.
const LONG: usize = 64;

impl Ids {
    fn iter(&self) -> Box<dyn Iterator<Item = RouteId> + '_> {
        match self {
            Ids::Few(ids) => Box::new(ids.iter().copied()),
            Ids::Many(words) => Box::new(words.iter().flat_map(|(word, bits)| {
                (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
            })),
        }
    }

    fn insert(&mut self, id: RouteId) {
        match self {
            Ids::Few(ids) if ids.len() >= LONG => {
                let mut many = BTreeMap::new();
                ids.iter().chain([&id]).for_each(|id| *many.entry(id / 64).or_default() |= 1 << (id % 64));
                *self = Ids::Many(many);
            }
            Ids::Few(ids) => {
                if let Err(place) = ids.binary_search(&id) {
                    ids.insert(place, id);
                }
            }
            Ids::Many(words) => *words.entry(id / 64).or_default() |= 1 << (id % 64),
        }
    }

    fn remove(&mut self, id: RouteId) {
        match self {
            Ids::Few(ids) => {
                if let Ok(place) = ids.binary_search(&id) {
                    ids.remove(place);
                }
            }
            Ids::Many(words) => {
                let Some(bits) = words.get_mut(&(id / 64)) else { return };
                *bits &= !(1 << (id % 64));
                if *bits == 0 {
                    words.remove(&(id / 64));
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Ids::Few(ids) => ids.is_empty(),
            Ids::Many(words) => words.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn a_relation_is_a_set_of_pairs(changes in prop::collection::vec((0u8..3, 0u32..300, 0u8..4), 0..900)) {
            let mut relation: Relation<u8> = Relation::default();
            let mut model: BTreeSet<(u8, RouteId)> = BTreeSet::new();
            for (key, id, what) in changes {
                match what {
                    0 => {
                        model.remove(&(key, id));
                        relation.take(&key, id);
                    }
                    _ => {
                        model.insert((key, id));
                        relation.add(&key, id);
                    }
                }
                prop_assert_eq!(relation.has(&key), model.iter().any(|(known, _)| *known == key));
            }
            let pairs = [0, 1, 2].iter().flat_map(|key| relation.of(key).map(|id| (*key, id)));
            let found: Vec<(u8, RouteId)> = pairs.collect();
            prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        }
    }
}
