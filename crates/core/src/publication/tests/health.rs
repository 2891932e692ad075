//! Which addresses of a name are published, by what probes found out.

use super::world::*;
use crate::attachment::{Scope, Topology};
use crate::health::{AddressHealth, HealthState, ObservedHealth};
use crate::model::*;
use crate::objects;
use crate::publication::{Desired, PresentState, PublicationSettings, build_beside};
use crate::snapshot::{Object, Snapshot};

fn check() -> HealthCheck {
    HealthCheck {
        protocol: "HTTP".into(),
        port: 80,
        path: "/".into(),
        interval: 30,
        timeout: 5,
        failure_threshold: 3,
        success_threshold: 1,
        expected_statuses: vec![],
        skips_verification: false,
        headers: None,
    }
}

fn policy() -> DnsPolicy {
    DnsPolicy { allow_wildcards: Some(false), health_check: Some(check()), ..dns("infra/dns", "Gateway", "edge") }
}

fn edge(addresses: &[&str]) -> Gateway {
    at(gateway("infra/edge", vec![http("web", "*.example.com")]), addresses)
}

fn web() -> Route {
    route("shop/web", "infra/edge", &["a.example.com"])
}

/// Health of addresses of `a.example.com` under a policy: since when each is unhealthy.
fn unhealthy(policy: &str, addresses: &[(&str, i64)]) -> ObservedHealth {
    let mut observed = ObservedHealth::default();
    add(&mut observed, "a.example.com", policy, addresses);
    observed
}

fn add(observed: &mut ObservedHealth, name: &str, policy: &str, addresses: &[(&str, i64)]) {
    for (address, since) in addresses {
        let health = AddressHealth { state: HealthState::Unhealthy, since: *since, error: "status 500".into() };
        observed.set(&name.into(), &key(policy), &(*address).into(), health);
    }
}

fn observed(objects: Vec<Object>, health: &ObservedHealth) -> Desired {
    let snapshot = Snapshot::of(objects);
    let topology = Topology::build(&snapshot, &Scope::default());
    let beside = PresentState { names: &[], observed: &Default::default(), health };
    build_beside(&snapshot, &topology, &PublicationSettings::default(), beside)
}

const POLICY: &str = "DNSPolicy/infra/dns";

#[test]
fn an_unhealthy_address_is_left_out_and_the_policy_says_why() {
    let objects = || objects![edge(&["192.0.2.1", "192.0.2.2"]), web(), policy()];
    let found = observed(objects(), &unhealthy("infra/dns", &[("192.0.2.1", 5)]));
    assert_eq!(records(&found), ["a.example.com A 192.0.2.2"]);
    let told: Vec<_> =
        found.policies[0].addresses.iter().map(|a| (&*a.address, a.state, a.publication.reason())).collect();
    let removed = Some(crate::reason::ADDRESS_UNHEALTHY);
    let expected = [("192.0.2.1", HealthState::Unhealthy, removed), ("192.0.2.2", HealthState::Unknown, None)];
    assert_eq!(told, expected);
    assert!(condition_of(&found, POLICY, "SubResourcesHealthy").starts_with("False SomeUnhealthy"));
    assert_eq!(records(&observed(objects(), &Default::default())), ["a.example.com A 192.0.2.1 192.0.2.2"]);
}

#[test]
fn if_all_fail_those_stay_that_failed_last() {
    let objects = || objects![edge(&["192.0.2.1", "192.0.2.2"]), web(), policy()];
    let found = observed(objects(), &unhealthy("infra/dns", &[("192.0.2.1", 5), ("192.0.2.2", 6)]));
    assert_eq!(records(&found), ["a.example.com A 192.0.2.2"]);
    let found = observed(objects(), &unhealthy("infra/dns", &[("192.0.2.1", 5), ("192.0.2.2", 5)]));
    assert_eq!(records(&found), ["a.example.com A 192.0.2.1 192.0.2.2"]);
    assert!(condition_of(&found, POLICY, "SubResourcesHealthy").starts_with("False AllUnhealthy"));
}

#[test]
fn the_last_address_of_each_type_stays() {
    let objects = || objects![edge(&["192.0.2.1", "2001:db8::1", "2001:db8::2"]), web(), policy()];
    let found = observed(objects(), &unhealthy("infra/dns", &[("192.0.2.1", 5), ("2001:db8::2", 5)]));
    assert_eq!(records(&found), ["a.example.com A 192.0.2.1", "a.example.com AAAA 2001:db8::1"]);
}

#[test]
fn only_the_check_of_the_policy_that_governs_counts() {
    let health = unhealthy("infra/dns", &[("192.0.2.1", 5)]);
    let both = ["a.example.com A 192.0.2.1 192.0.2.2"];
    let without = DnsPolicy { health_check: None, ..policy() };
    let found = observed(objects![edge(&["192.0.2.1", "192.0.2.2"]), web(), without], &health);
    assert_eq!(records(&found), both, "a check that was removed");
    assert_eq!(found.policies[0].addresses, []);
    assert_eq!(records(&observed(objects![edge(&["192.0.2.1", "192.0.2.2"]), web()], &health)), both, "no policy");
    let other = DnsPolicy { meta: Meta { created: Some(1), ..Meta::named("infra", "old") }, ..policy() };
    let found = observed(objects![edge(&["192.0.2.1", "192.0.2.2"]), web(), policy(), other], &health);
    assert_eq!(records(&found), both, "an older policy");
}

#[test]
fn an_address_stays_while_another_gateway_has_nothing_against_it() {
    let second = at(gateway("infra/second", vec![http("web", "*.example.com")]), &["192.0.2.1", "192.0.2.3"]);
    let mut both = web();
    crate::model::push(&mut both.parents, parent("Gateway", "infra/second"));
    let health = unhealthy("infra/dns", &[("192.0.2.1", 5), ("192.0.2.2", 5)]);
    let objects = || objects![edge(&["192.0.2.1", "192.0.2.2"]), second.clone(), both.clone(), policy()];
    assert_eq!(records(&observed(objects(), &health)), ["a.example.com A 192.0.2.1 192.0.2.3"]);
    let on_second = DnsPolicy { health_check: Some(check()), ..dns("infra/two", "Gateway", "second") };
    let mut health = health;
    add(&mut health, "a.example.com", "infra/two", &[("192.0.2.1", 6)]);
    let mut objects = objects();
    objects.push(Object::DnsPolicy(DnsPolicy { allow_wildcards: Some(false), ..on_second }));
    assert_eq!(records(&observed(objects, &health)), ["a.example.com A 192.0.2.3"]);
}

#[test]
fn wildcards_are_not_probed_and_a_name_below_one_is_published_for_itself() {
    let allows = || DnsPolicy { allow_wildcards: Some(true), ..policy() };
    let wild = route("shop/wild", "infra/edge", &["*.example.com"]);
    let mut health = ObservedHealth::default();
    add(&mut health, "*.example.com", "infra/dns", &[("192.0.2.1", 5)]);
    let objects = || objects![edge(&["192.0.2.1", "192.0.2.2"]), wild.clone(), web(), allows()];
    let found = observed(objects(), &health);
    assert_eq!(records(&found), ["*.example.com A 192.0.2.1 192.0.2.2"]);
    let told = condition_of(&found, POLICY, "SubResourcesHealthy");
    assert!(told.starts_with("Unknown Unknown there is no address to probe; wildcards"), "{told}");
    // It was probed while it had records of its own, and keeps them until its addresses are those of the wildcard.
    let found = observed(objects(), &unhealthy("infra/dns", &[("192.0.2.1", 5)]));
    let hidden = "*.a.example.com A 192.0.2.1 192.0.2.2";
    assert_eq!(records(&found), [hidden, "*.example.com A 192.0.2.1 192.0.2.2", "a.example.com A 192.0.2.2"]);
}

#[test]
fn a_hostname_address_stays_and_its_health_is_told() {
    let found = observed(
        objects![edge(&["lb.example.net"]), web(), policy()],
        &unhealthy("infra/dns", &[("lb.example.net", 5)]),
    );
    assert_eq!(records(&found), ["a.example.com CNAME lb.example.net"]);
    assert_eq!(found.policies[0].addresses[0].publication.reason(), Some(crate::reason::ALL_ADDRESSES_UNHEALTHY));
}

#[test]
fn routes_of_other_namespaces_share_what_is_left() {
    let other = Route { meta: Meta { created: Some(200), ..Meta::named("other", "web") }, ..web() };
    let health = unhealthy("infra/dns", &[("192.0.2.1", 5)]);
    let found = observed(objects![edge(&["192.0.2.1", "192.0.2.2"]), web(), other, policy()], &health);
    assert_eq!(records(&found), ["a.example.com A 192.0.2.2"]);
    assert_eq!(withheld(&found), [] as [&str; 0], "an address that is left out is no target that does not count");
}
