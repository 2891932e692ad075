//! Routes by the hostnames they wrote, in little room.
//!
//! An entry is a number made of a hostname, and the route; what else there is to know stands in the route. Entries of one
//! number stand together however many there are, and a copy shares what it has in common with others. Two hostnames might
//! have one number, so that what is found is who may be meant, and never too few. Nothing is judged here.

use std::cmp::Ordering;
use std::fmt;
use std::iter;

use super::host_index::{LONGEST, is_address, key};
use crate::model::{Key, Kind, ObjectRef};
use crate::names::Hostname;
use crate::roster::OfRoute;
use crate::seed::Seed;
use crate::table::{Sought, Spelling, Spelt, Table};

/// Values that are about routes, by hostname.
#[derive(Clone)]
pub(super) struct Register<V> {
    seed: Seed,
    entries: Table<Entry<V>, ()>,
}

/// A value under one of the hostnames of its route.
#[derive(Clone)]
struct Entry<V> {
    number: u64,
    value: V,
}

/// Where a value stands: by number, and then by route. Nothing is before every route.
struct Place<'a> {
    number: u64,
    route: Option<(Kind, &'a Key)>,
}

impl<V> Register<V> {
    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn number(&self, hostname: &Hostname) -> u64 {
        self.seed.of(key(hostname).as_bytes())
    }
}

impl<V: OfRoute> Register<V> {
    /// The values of all hostnames that match a host, and maybe some others. An address matches only the `*` of an unset field.
    pub(super) fn lookup<'a>(&'a self, host: &str) -> impl Iterator<Item = &'a V> {
        keys(host).flat_map(|key| self.of_number(self.seed.of(key.as_bytes())))
    }

    fn of_number(&self, number: u64) -> impl Iterator<Item = &V> {
        let entries = self.entries.iter_from(&Place { number, route: None }).map(|(entry, ())| entry);
        entries.take_while(move |entry| entry.number == number).map(|entry| &entry.value)
    }
}

impl<V: OfRoute + Clone> Register<V> {
    /// Files what is about a route under one of its hostnames; what was there about the route is replaced.
    pub(super) fn insert(&mut self, hostname: &Hostname, value: V) {
        self.entries.exchange(Entry { number: self.number(hostname), value }, ());
    }

    /// Takes out what is about a route under a hostname.
    pub(super) fn remove(&mut self, hostname: &Hostname, route: &ObjectRef) {
        let place = Place { number: self.number(hostname), route: Some((route.kind, &route.key)) };
        self.entries.remove_entry(&place);
    }
}

/// What the hostnames that match a host are kept under; nothing is left of the `*` of an unset field.
fn keys(host: &str) -> impl Iterator<Item = &str> {
    let name = if is_address(host) { "" } else { host };
    let precise = Some(name).filter(|name| !name.is_empty() && !name.starts_with('.'));
    let from = name.len().saturating_sub(LONGEST + 1).max(1);
    let dots = name.bytes().enumerate().skip(from).filter(|(_, byte)| *byte == b'.');
    let wildcards = dots.filter_map(move |(at, _)| name.get(at..));
    precise.into_iter().chain(wildcards).chain(iter::once(""))
}

impl<V: OfRoute> Entry<V> {
    fn place(&self) -> Place<'_> {
        let route = self.value.of_route();
        Place { number: self.number, route: Some((route.kind.kind(), &route.meta.key)) }
    }
}

impl<V: OfRoute> Sought<Entry<V>> for Place<'_> {
    fn spelt(&self) -> Spelling<'_> {
        Spelling::number(self.number)
    }

    fn compare(&self, known: &Entry<V>) -> Ordering {
        self.number.cmp(&known.number).then_with(|| self.route.cmp(&known.place().route))
    }
}

impl<V: OfRoute> Spelt for Entry<V> {
    fn spelling(&self) -> Spelling<'_> {
        Spelling::number(self.number)
    }
}

impl<V: OfRoute> Ord for Entry<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().compare(other)
    }
}

impl<V: OfRoute> PartialOrd for Entry<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: OfRoute> PartialEq for Entry<V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<V: OfRoute> Eq for Entry<V> {}

impl<V> Default for Register<V> {
    fn default() -> Self {
        Register { seed: Seed::new(), entries: Table::new() }
    }
}

impl<V> fmt::Debug for Register<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Register").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{List, Meta, Route, RouteKind, RouteStatus};

    const NAMES: [&str; 9] =
        ["*", "com", "*.com", "x.com", "*.x.com", "a.x.com", "*.a.x.com", "b.a.x.com", "long-label-of-its-own.a.x.com"];
    const HOSTS: [&str; 9] =
        ["", "192.0.2.1", ".x.com", "a..x.com", "other.org", "x.com", "a.x.com", "b.a.x.com", "c.b.a.x.com"];

    fn name(text: &str) -> Hostname {
        if text == "*" { Hostname::any() } else { Hostname::parse(text).unwrap() }
    }

    fn route(number: u8, generation: i64) -> Arc<Route> {
        let kind = RouteKind::ALL[usize::from(number) % 5];
        let meta = Meta { generation: Some(generation).into(), ..Meta::named("a", format!("r{}", number / 5)) };
        let (parents, rules, status) = (List::new(), List::new(), RouteStatus::default());
        Arc::new(Route { kind, meta, parents, hostnames: Default::default(), rules, status })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn it_finds_what_a_look_at_every_hostname_finds(
            changes in prop::collection::vec((0u8..120, prop::sample::select(&NAMES[..]), 0u8..3), 0..900),
            copied in 0usize..900,
        ) {
            let mut register: Register<Arc<Route>> = Register::default();
            let mut model: BTreeMap<(Hostname, ObjectRef), Arc<Route>> = BTreeMap::new();
            let mut before = (register.clone(), model.clone());
            for (step, (number, text, what)) in changes.into_iter().enumerate() {
                let (hostname, value) = (name(text), route(number, step as i64));
                let object = value.object();
                match what {
                    0 => {
                        register.remove(&hostname, &object);
                        model.remove(&(hostname, object));
                    }
                    _ => {
                        register.insert(&hostname, value.clone());
                        model.insert((hostname, object), value);
                    }
                }
                if step == copied {
                    before = (register.clone(), model.clone());
                }
            }
            for (register, model) in [(register, model), before] {
                prop_assert_eq!(register.is_empty(), model.is_empty());
                for host in HOSTS {
                    let generation = |route: &Arc<Route>| route.meta.generation.get();
                    let found: BTreeSet<Option<i64>> = register.lookup(host).map(generation).collect();
                    let matching = model.iter().filter(|((name, _), _)| name.matches(host));
                    prop_assert_eq!(found, matching.map(|(_, route)| generation(route)).collect::<BTreeSet<_>>(), "{}", host);
                }
            }
        }
    }

    #[test]
    fn a_host_of_many_labels_is_looked_up_by_those_that_a_name_can_have() {
        let mut register: Register<Arc<Route>> = Register::default();
        register.insert(&name("*.x.com"), route(1, 1));
        assert_eq!(register.lookup(&format!("{}x.com", "a.".repeat(100_000))).count(), 1);
        assert!(keys(&"a.".repeat(100_000)).count() < LONGEST);
    }
}
