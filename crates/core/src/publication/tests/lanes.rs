//! Routes that ask alike go by lanes, all others are walked: whichever way a route takes, the same becomes of it.
//!
//! A word that says nothing makes a route one that is walked, so that every world is computed twice.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::world::*;
use crate::model::*;
use crate::publication::annotations::OWN_CONTROLLER;
use crate::publication::domains::DomainFilter;
use crate::publication::settings::PublicationSettings;
use crate::snapshot::Object;

const LISTENER_NAMES: [&str; 7] = ["*", "*.a.test", "*.a.test", "*.b.a.test", "*.test", "*.c.test", "x.a.test"];
const ROUTE_NAMES: [&str; 8] =
    ["x.a.test", "y.a.test", "z.b.a.test", "b.a.test", "x.c.test", "y.c.test", "c.test", "w.d.a.test"];
const NAMESPACES: [&str; 2] = ["shop", "infra"];

fn listener() -> impl Strategy<Value = Listener> {
    let admission = select(vec![Admission::All, Admission::All, Admission::Same]);
    let secret = prop::option::of(select(vec!["s1", "s2"]));
    (select(LISTENER_NAMES.to_vec()), secret, admission).prop_map(|(hostname, secret, admission)| {
        let mut listener = match secret {
            Some(secret) => https("x", hostname, secret),
            None => http("x", hostname),
        };
        listener.allowed_routes.namespaces = admission;
        listener
    })
}

fn gateways() -> impl Strategy<Value = Vec<Gateway>> {
    let addresses = select(vec!["192.0.2.1", "192.0.2.2", "lb1.lb", "lb2.lb"]);
    let gateway = (prop::collection::vec(listener(), 1..12), addresses).prop_map(|(mut listeners, address)| {
        for (place, listener) in listeners.iter_mut().enumerate() {
            listener.name = format!("l{place}").into();
            listener.port = 1000 + u16::try_from(place).unwrap_or_default();
        }
        at(super::world::gateway("infra/x", listeners), &[address])
    });
    prop::collection::vec(gateway, 3).prop_map(|mut gateways| {
        gateways.iter_mut().enumerate().for_each(|(place, gateway)| gateway.meta.key.name = format!("g{place}").into());
        gateways
    })
}

/// The lists of parents that routes have: those with the same parents share one, as readers make them.
fn parents() -> Vec<List<ParentRef>> {
    let named = |names: &[&str]| names.iter().map(|name| parent("Gateway", name)).collect();
    let section = ParentRef { section: Some("l1".into()), ..parent("Gateway", "infra/g0") };
    let near = Reference { namespace: None, ..parent("Gateway", "infra/g0").target };
    let near = ParentRef { target: near, section: None, port: None };
    vec![
        named(&["infra/g0"]),
        named(&["infra/g1"]),
        named(&["infra/g0", "infra/g1"]),
        named(&["infra/g2", "infra/g0"]),
        named(&["infra/none"]),
        [section].into_iter().collect(),
        [near].into_iter().collect(),
    ]
}

fn routes() -> impl Strategy<Value = Vec<Route>> {
    let names = subsequence(ROUTE_NAMES.to_vec(), 1..3);
    let route = (names, select(parents()), select(NAMESPACES.to_vec()), 0..3i64);
    prop::collection::vec(route, 1..24).prop_map(|routes| {
        let named = routes.into_iter().enumerate().map(|(place, (names, parents, namespace, created))| {
            let mut route = super::world::route(&format!("{namespace}/r{place}"), "infra/none", &names);
            (route.parents, route.meta.created) = (parents, Some(created).into());
            route
        });
        named.collect()
    })
}

fn settings() -> impl Strategy<Value = PublicationSettings> {
    let excluded = prop::option::weighted(0.2, Just(vec![Str::from("c.test")]));
    excluded.prop_map(|excluded| PublicationSettings {
        domains: DomainFilter::new(&[], &excluded.unwrap_or_default()),
        ..PublicationSettings::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_word_that_says_nothing_changes_nothing(gateways in gateways(), routes in routes(), settings in settings()) {
        let world = |say: &dyn Fn(Route) -> Route| -> Vec<Object> {
            let routes = routes.iter().cloned().map(say).map(Object::Route);
            gateways.iter().cloned().map(Object::Gateway).chain(routes).collect()
        };
        let plain = world(&|route| route);
        let spoken = world(&|route| annotated(route, "controller", OWN_CONTROLLER));
        prop_assert_eq!(desired(plain, &settings), desired(spoken, &settings));
    }
}
