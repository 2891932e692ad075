//! Who depends on what: the reverse indexes of the engine.
//!
//! Routes are numbers here, so that an index costs a few bytes per entry. Nothing is decided, and hash maps are only asked,
//! never walked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use crate::desired::strict::Contribution;
use crate::model::{Key, ObjectRef, Route, Str};
use crate::names::Hostname;
use crate::topology::ListenerId;

/// A route, for as long as it is there.
pub(super) type RouteId = u32;

/// Every reverse index.
#[derive(Default)]
pub(super) struct Links {
    ids: HashMap<ObjectRef, RouteId>,
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
    /// Routes by a name that they have claims on.
    pub(super) names: Relation<Hostname>,
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
    object: ObjectRef,
    /// The route as it is linked.
    route: Option<Arc<Route>>,
    contribution: Option<Arc<Contribution>>,
    /// The route under whose parents it is filed as unsettled.
    unsettled: Option<Arc<Route>>,
}

/// Who tells a policy what became of hostnames.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Teller {
    Route(ObjectRef),
    Name(Hostname),
    Secret(Key),
}

impl Links {
    /// The number of a route; a new one where it has none.
    pub(super) fn id(&mut self, object: &ObjectRef) -> RouteId {
        if let Some(id) = self.ids.get(object) {
            return *id;
        }
        let entry = Some(Entry { object: object.clone(), route: None, contribution: None, unsettled: None });
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
        self.ids.insert(object.clone(), id);
        id
    }

    /// Gives a route's number back.
    pub(super) fn forget(&mut self, object: &ObjectRef) {
        if let Some(id) = self.ids.remove(object) {
            self.entries[id as usize] = None;
            self.free.push(id);
        }
    }

    /// The route of a number.
    pub(super) fn object(&self, id: RouteId) -> Option<&ObjectRef> {
        self.entries.get(id as usize)?.as_ref().map(|entry| &entry.object)
    }

    /// The route of a number with what it says, without a search for it.
    pub(super) fn route(&self, id: RouteId) -> Option<(&ObjectRef, &Arc<Route>)> {
        let entry = self.entries.get(id as usize)?.as_ref()?;
        Some((&entry.object, entry.route.as_ref()?))
    }

    /// Notes what a route says, or that it is gone.
    pub(super) fn set_route(&mut self, id: RouteId, route: Option<&Arc<Route>>) {
        if let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) {
            entry.route = route.cloned();
        }
    }

    /// What a route brings in.
    pub(super) fn contribution(&self, id: RouteId) -> Option<&Arc<Contribution>> {
        self.entries.get(id as usize)?.as_ref()?.contribution.as_ref()
    }

    /// Files a route as unsettled, or no longer.
    pub(super) fn set_unsettled(&mut self, id: RouteId, route: Option<&Arc<Route>>) {
        let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) else { return };
        let before = std::mem::replace(&mut entry.unsettled, route.cloned());
        for parent in before.iter().flat_map(|route| &route.parents) {
            self.unsettled.take(&parent.target.name, id);
        }
        for parent in route.iter().flat_map(|route| &route.parents) {
            self.unsettled.add(&parent.target.name, id);
        }
    }

    /// Notes what a route brings in.
    pub(super) fn set_contribution(&mut self, id: RouteId, contribution: Option<Arc<Contribution>>) {
        if let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) {
            entry.contribution = contribution;
        }
    }
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
    Many(BTreeSet<RouteId>),
}

/// From so many on a list is no longer quick to change.
const LONG: usize = 64;

impl Ids {
    fn iter(&self) -> Box<dyn Iterator<Item = RouteId> + '_> {
        match self {
            Ids::Few(ids) => Box::new(ids.iter().copied()),
            Ids::Many(ids) => Box::new(ids.iter().copied()),
        }
    }

    fn insert(&mut self, id: RouteId) {
        match self {
            Ids::Few(ids) if ids.len() >= LONG => {
                let mut many: BTreeSet<RouteId> = ids.drain(..).collect();
                many.insert(id);
                *self = Ids::Many(many);
            }
            Ids::Few(ids) => {
                if let Err(place) = ids.binary_search(&id) {
                    ids.insert(place, id);
                }
            }
            Ids::Many(ids) => _ = ids.insert(id),
        }
    }

    fn remove(&mut self, id: RouteId) {
        match self {
            Ids::Few(ids) => {
                if let Ok(place) = ids.binary_search(&id) {
                    ids.remove(place);
                }
            }
            Ids::Many(ids) => _ = ids.remove(&id),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Ids::Few(ids) => ids.is_empty(),
            Ids::Many(ids) => ids.is_empty(),
        }
    }
}
