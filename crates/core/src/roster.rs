//! What is known of routes, ordered by who they are. What a route is called stands in the value and is not kept beside it, so
//! that an entry is no larger than its value.
//!
//! A copy shares what it has in common with others, as a [`Table`] does. Nothing is judged here.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use crate::model::{Key, Kind, ObjectRef, Route};
use crate::table::{Sought, Spelling, Spelt, Table};

/// Values that are each about one route, by that route.
pub struct Roster<V>(Table<Held<V>, ()>);

/// A value that is about a route.
pub trait OfRoute {
    /// The route.
    fn of_route(&self) -> &Route;
}

impl OfRoute for Arc<Route> {
    fn of_route(&self) -> &Route {
        self
    }
}

/// A value that is found by its route.
#[derive(Clone)]
struct Held<V>(V);

impl<V: OfRoute> Held<V> {
    fn called(&self) -> (Kind, &Key) {
        let route = self.0.of_route();
        (route.kind.kind(), &route.meta.key)
    }
}

impl<V: OfRoute> Sought<Held<V>> for ObjectRef {
    fn spelt(&self) -> Spelling<'_> {
        self.spelling()
    }

    fn compare(&self, known: &Held<V>) -> Ordering {
        (self.kind, &self.key).cmp(&known.called())
    }
}

impl<V> Roster<V> {
    /// An empty roster.
    pub const fn new() -> Self {
        Roster(Table::new())
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All values, by route.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.keys().map(|held| &held.0)
    }
}

impl<V: OfRoute> Roster<V> {
    /// The value of a route.
    pub fn get(&self, route: &ObjectRef) -> Option<&V> {
        self.0.get_key_value(route).map(|(held, ())| &held.0)
    }

    /// Whether there is a value of a route.
    pub fn contains_key(&self, route: &ObjectRef) -> bool {
        self.get(route).is_some()
    }

    /// All routes, in order.
    pub fn keys(&self) -> impl Iterator<Item = ObjectRef> {
        self.values().map(|value| value.of_route().object())
    }

    /// All values with their routes, by route.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectRef, &V)> {
        self.values().map(|value| (value.of_route().object(), value))
    }

    /// The values of all routes from one on, whether that is there or not.
    pub fn values_from(&self, route: &ObjectRef) -> impl Iterator<Item = &V> {
        self.0.iter_from(route).map(|(held, ())| &held.0)
    }
}

impl<V: OfRoute + Clone> Roster<V> {
    /// Sets the value of the route that it is about; gives back the one it replaces.
    pub fn insert(&mut self, value: V) -> Option<V> {
        self.0.exchange(Held(value), ()).map(|(held, ())| held.0)
    }

    /// Takes the value of a route out.
    pub fn remove(&mut self, route: &ObjectRef) -> Option<V> {
        self.0.remove_entry(route).map(|(held, ())| held.0)
    }

    /// Other values about the same routes, which are made in order.
    pub fn mapped<W: OfRoute + Clone>(&self, mut make: impl FnMut(&V) -> W) -> Roster<W> {
        Roster(Table::of_sorted(self.values().map(|value| (Held(make(value)), ())).collect()))
    }
}

impl<V: OfRoute> Spelt for Held<V> {
    fn spelling(&self) -> Spelling<'_> {
        let (kind, key) = self.called();
        Spelling::object(kind, key)
    }
}

impl<V: OfRoute> Ord for Held<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.called().cmp(&other.called())
    }
}

impl<V: OfRoute> PartialOrd for Held<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: OfRoute> PartialEq for Held<V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<V: OfRoute> Eq for Held<V> {}

impl<V> Clone for Roster<V> {
    fn clone(&self) -> Self {
        Roster(self.0.clone())
    }
}

impl<V> Default for Roster<V> {
    fn default() -> Self {
        Roster::new()
    }
}

impl<V: PartialEq> PartialEq for Roster<V> {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_one_with(&other.0) || (self.len() == other.len() && self.values().eq(other.values()))
    }
}

impl<V: OfRoute + fmt::Debug> fmt::Debug for Roster<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V: OfRoute> Index<&ObjectRef> for Roster<V> {
    type Output = V;

    /// The value of a route that is known to be there.
    fn index(&self, route: &ObjectRef) -> &V {
        self.get(route).expect("a value of this route")
    }
}

impl<V: OfRoute + Clone> FromIterator<V> for Roster<V> {
    /// Later values replace earlier ones of the same route.
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        let mut roster = Roster::new();
        values.into_iter().for_each(|value| _ = roster.insert(value));
        roster
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{List, Meta, RouteKind, RouteStatus};

    fn route(number: u8, generation: i64) -> Arc<Route> {
        let kind = RouteKind::ALL[usize::from(number) % 5];
        let namespace = ["a", "a-b", "ab"][usize::from(number) % 3];
        let meta = Meta { generation: Some(generation).into(), ..Meta::named(namespace, format!("r{}", number % 50)) };
        let (parents, rules, status) = (List::new(), List::new(), RouteStatus::default());
        Arc::new(Route { kind, meta, parents, hostnames: Default::default(), rules, status })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn it_is_an_ordered_map_by_route(changes in prop::collection::vec((any::<u8>(), 0u8..4), 0..900)) {
            let mut roster: Roster<Arc<Route>> = Roster::new();
            let mut model: BTreeMap<ObjectRef, Arc<Route>> = BTreeMap::new();
            for (generation, (number, what)) in (0..).zip(changes) {
                let value = route(number, generation);
                let object = value.object();
                match what {
                    0 => prop_assert_eq!(roster.remove(&object), model.remove(&object)),
                    _ => prop_assert_eq!(roster.insert(value.clone()), model.insert(object.clone(), value)),
                }
                prop_assert_eq!(roster.get(&object), model.get(&object));
                prop_assert_eq!(roster.contains_key(&object), model.contains_key(&object));
            }
            prop_assert_eq!(roster.len(), model.len());
            prop_assert!(roster.values().eq(model.values()));
            prop_assert!(roster.keys().eq(model.keys().cloned()));
            let from = route(7, 0).object();
            prop_assert!(roster.values_from(&from).eq(model.range(from.clone()..).map(|(_, value)| value)));
            let same = roster.mapped(|value| Arc::new((**value).clone()));
            prop_assert!(same == roster && same.keys().eq(model.keys().cloned()));
        }
    }

    #[test]
    fn a_value_that_was_replaced_is_not_kept() {
        let mut roster: Roster<Arc<Route>> = (0..250).map(|number| route(number, 0)).collect();
        let first: Vec<Arc<Route>> = roster.values().cloned().collect();
        for value in &first {
            let meta = Meta { generation: Some(1).into(), ..value.meta.clone() };
            roster.insert(Arc::new(Route { meta, ..(**value).clone() }));
        }
        assert!(roster.values().all(|value| value.meta.generation.get() == Some(1)));
        assert!(first.iter().all(|value| Arc::strong_count(value) == 1));
    }
}
