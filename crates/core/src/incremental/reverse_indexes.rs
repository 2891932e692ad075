//! Which results depend on which objects: the reverse indexes of the incremental driver.
//!
//! Routes are identified by numbers, so that an index costs a few bytes per entry. Hash maps are only looked up, never
//! iterated. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use crate::attachment::ListenerId;
use crate::model::{Key, ObjectRef, Route, ShortVec, Str};
use crate::names::Hostname;
use crate::publication::RouteClaims;

/// The number of a route while it exists.
pub(super) type RouteId = u32;

/// Every reverse index.
#[derive(Default)]
pub(super) struct ReverseIndexes {
    pub(super) routes: RouteTable,
    /// Routes by the name of a parent, in any namespace.
    pub(super) parents: RoutesBy<Str>,
    /// Routes with a withheld hostname or a parent that refuses them, by the name of a parent. Any listener of the
    /// parent may be the reason, so all its changes concern them.
    pub(super) incomplete: RoutesBy<Str>,
    /// Routes by a Service they refer to.
    pub(super) services: RoutesBy<Key>,
    /// Routes by another namespace that they refer into.
    pub(super) other_namespaces: RoutesBy<Str>,
    /// Routes by a listener that they attach to.
    pub(super) listeners: RoutesBy<ListenerId>,
    /// Routes by a name that they claim.
    pub(super) names: RoutesBy<Hostname>,
    /// ListenerSets by the Gateway that they refer to.
    pub(super) sets: BTreeMap<Key, BTreeSet<ObjectRef>>,
    /// Gateways and ListenerSets by a Secret or ConfigMap that they refer to.
    pub(super) tls_objects: OwnersByTlsObject,
    /// The sources of each policy's status entries.
    pub(super) status_sources: BTreeMap<ObjectRef, BTreeSet<StatusSource>>,
}

/// Gateways and ListenerSets by a Secret or ConfigMap that their listeners refer to.
#[derive(Default)]
pub(super) struct OwnersByTlsObject(BTreeMap<Key, BTreeSet<ObjectRef>>);

impl OwnersByTlsObject {
    /// The owners that refer to one object.
    pub(super) fn of(&self, object: &Key) -> impl Iterator<Item = &ObjectRef> {
        self.0.get(object).into_iter().flatten()
    }

    /// The owners that refer to any object of a namespace.
    pub(super) fn in_namespace(&self, namespace: &Str) -> impl Iterator<Item = &ObjectRef> {
        let from = Key::new(namespace.clone(), "");
        self.0.range(from..).take_while(move |(key, _)| key.namespace == *namespace).flat_map(|(_, owners)| owners)
    }

    pub(super) fn add(&mut self, object: Key, owner: &ObjectRef) {
        self.0.entry(object).or_default().insert(owner.clone());
    }

    pub(super) fn remove(&mut self, object: &Key, owner: &ObjectRef) {
        let Some(owners) = self.0.get_mut(object) else { return };
        owners.remove(owner);
        if owners.is_empty() {
            self.0.remove(object);
        }
    }
}

/// The source of an entry in a policy's status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StatusSource {
    Route(ObjectRef),
    Name(Hostname),
    Secret(Key),
}

/// The routes by number, with their claims of the last evaluation.
#[derive(Default)]
pub(super) struct RouteTable {
    ids: HashMap<ObjectRef, RouteId>,
    entries: Vec<Option<RouteEntry>>,
    free: Vec<RouteId>,
}

struct RouteEntry {
    /// The current version of the route, or its last one if it is deleted.
    route: Arc<Route>,
    claims: Option<Arc<RouteClaims>>,
    is_deleted: bool,
    /// The parents under which the route is in the index of incomplete routes.
    incomplete_parents: ShortVec<Str>,
}

impl RouteTable {
    /// Adds or replaces a route.
    pub(super) fn upsert(&mut self, route: &Arc<Route>) -> RouteId {
        let object = route.object();
        if let Some(id) = self.id(&object) {
            if let Some(entry) = self.entry_mut(id) {
                entry.route = route.clone();
                entry.is_deleted = false;
            }
            return id;
        }
        let entry =
            RouteEntry { route: route.clone(), claims: None, is_deleted: false, incomplete_parents: ShortVec::new() };
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as RouteId
        });
        self.entries[id as usize] = Some(entry);
        self.ids.insert(object, id);
        id
    }

    /// Marks a route as deleted; it keeps its number until [`RouteTable::forget`].
    pub(super) fn delete(&mut self, object: &ObjectRef) -> Option<RouteId> {
        let id = self.id(object)?;
        self.entry_mut(id)?.is_deleted = true;
        Some(id)
    }

    /// Frees the number of a deleted route.
    pub(super) fn forget(&mut self, id: RouteId) {
        if let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::take) {
            self.ids.remove(&entry.route.object());
            self.free.push(id);
        }
    }

    pub(super) fn id(&self, object: &ObjectRef) -> Option<RouteId> {
        self.ids.get(object).copied()
    }

    /// The numbers of all routes.
    pub(super) fn all(&self) -> impl Iterator<Item = RouteId> {
        (0..).zip(&self.entries).filter(|(_, entry)| entry.is_some()).map(|(id, _)| id)
    }

    /// The route of a number, unless it is deleted.
    pub(super) fn route(&self, id: RouteId) -> Option<&Arc<Route>> {
        self.entry(id).filter(|entry| !entry.is_deleted).map(|entry| &entry.route)
    }

    /// The object of a number, deleted or not.
    pub(super) fn object(&self, id: RouteId) -> Option<ObjectRef> {
        self.entry(id).map(|entry| entry.route.object())
    }

    pub(super) fn claims(&self, id: RouteId) -> Option<&Arc<RouteClaims>> {
        self.entry(id)?.claims.as_ref()
    }

    /// The claims of a route.
    pub(super) fn claims_of(&self, object: &ObjectRef) -> Option<&Arc<RouteClaims>> {
        self.claims(self.id(object)?)
    }

    pub(super) fn set_claims(&mut self, id: RouteId, claims: Option<Arc<RouteClaims>>) {
        if let Some(entry) = self.entry_mut(id) {
            entry.claims = claims;
        }
    }

    /// Replaces the parents under which a route is in the index of incomplete routes, and returns the previous ones.
    fn replace_incomplete_parents(&mut self, id: RouteId, parents: ShortVec<Str>) -> ShortVec<Str> {
        let entry = self.entry_mut(id);
        entry.map(|entry| std::mem::replace(&mut entry.incomplete_parents, parents)).unwrap_or_default()
    }

    fn entry(&self, id: RouteId) -> Option<&RouteEntry> {
        self.entries.get(id as usize)?.as_ref()
    }

    fn entry_mut(&mut self, id: RouteId) -> Option<&mut RouteEntry> {
        self.entries.get_mut(id as usize)?.as_mut()
    }
}

impl ReverseIndexes {
    /// Adds a route to the index of incomplete routes under its parents, or removes it.
    pub(super) fn set_incomplete(&mut self, id: RouteId, route: Option<&Route>) {
        let parents: ShortVec<Str> =
            route.iter().flat_map(|route| route.parents.iter()).map(|parent| parent.target.name.clone()).collect();
        let before = self.routes.replace_incomplete_parents(id, parents.clone());
        before.iter().for_each(|parent| self.incomplete.remove(parent, id));
        parents.iter().for_each(|parent| self.incomplete.add(parent, id));
    }
}

/// Routes by a key. Each set is a sorted list: numbers are assigned in ascending order, so most are appended.
pub(super) struct RoutesBy<K>(HashMap<K, ShortVec<RouteId>>);

impl<K> Default for RoutesBy<K> {
    fn default() -> Self {
        RoutesBy(HashMap::new())
    }
}

impl<K: Eq + Hash + Clone> RoutesBy<K> {
    /// The routes of a key, in order.
    pub(super) fn of(&self, key: &K) -> impl Iterator<Item = RouteId> {
        self.0.get(key).into_iter().flatten().copied()
    }

    pub(super) fn add(&mut self, key: &K, id: RouteId) {
        let Some(ids) = self.0.get_mut(key) else {
            self.0.insert(key.clone(), smallvec::smallvec![id]);
            return;
        };
        if let Err(place) = ids.binary_search(&id) {
            ids.insert(place, id);
        }
    }

    pub(super) fn remove(&mut self, key: &K, id: RouteId) {
        let Some(ids) = self.0.get_mut(key) else { return };
        if let Ok(place) = ids.binary_search(&id) {
            ids.remove(place);
        }
        if ids.is_empty() {
            self.0.remove(key);
        }
    }

    /// Adds or removes a route.
    pub(super) fn set(&mut self, key: &K, id: RouteId, is_there: bool) {
        if is_there { self.add(key, id) } else { self.remove(key, id) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn routes_by_a_key_are_a_set_of_pairs(changes in prop::collection::vec((0u8..3, 0u32..300, 0u8..4), 0..900)) {
            let mut index: RoutesBy<u8> = RoutesBy::default();
            let mut model: BTreeSet<(u8, RouteId)> = BTreeSet::new();
            for (key, id, what) in changes {
                if what == 0 { model.remove(&(key, id)) } else { model.insert((key, id)) };
                index.set(&key, id, what != 0);
                prop_assert_eq!(index.0.contains_key(&key), model.iter().any(|(known, _)| *known == key));
            }
            let pairs = [0, 1, 2].iter().flat_map(|key| index.of(key).map(|id| (*key, id)));
            let found: Vec<(u8, RouteId)> = pairs.collect();
            prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        }
    }
}
