//! Whose is a name that Routes of several namespaces claim.

use std::collections::BTreeMap;

use super::world::*;
use crate::attachment::{Scope, Topology};
use crate::model::*;
use crate::objects;
use crate::publication::holders::{ObservedNames, RecordOrigin};
use crate::publication::{Desired, PresentState, PublicationSettings, build_beside};
use crate::snapshot::{Object, Snapshot, Visibility};

const NAME: &str = "www.example.org";

fn aged(mut route: Route, created: i64) -> Route {
    route.meta.created = Some(created);
    route
}

fn made_for(name: &str, namespace: &str) -> ObservedNames {
    let origin = RecordOrigin { namespace: namespace.into(), kind: Some(Kind::Route(RouteKind::Http)) };
    ObservedNames::new(BTreeMap::from([(name.into(), vec![origin])]), false)
}

fn beside(objects: Vec<Object>, observed: &ObservedNames) -> Desired {
    let snapshot = Snapshot::of(objects);
    of(&snapshot, observed)
}

fn of(snapshot: &Snapshot, observed: &ObservedNames) -> Desired {
    let topology = Topology::build(snapshot, &Scope::default());
    build_beside(
        snapshot,
        &topology,
        &PublicationSettings::default(),
        PresentState { names: &[], observed, health: &Default::default() },
    )
}

/// The Gateway of the platform, with the Route of the victim; a Gateway of the attacker.
fn platform() -> Vec<Object> {
    let edge = gateway("infra/edge", vec![http("http", "*"), https("web", "*.example.org", "edge-tls")]);
    let own =
        at(gateway("evil/own", vec![http("http", "*"), https("web", "*.example.org", "own-tls")]), &["203.0.113.66"]);
    objects![edge, own, aged(route("shop/web", "infra/edge", &[NAME]), 100)]
}

fn with(more: Vec<Object>) -> Vec<Object> {
    platform().into_iter().chain(more).collect()
}

#[test]
fn the_oldest_route_holds_a_name_without_records() {
    let younger = with(objects![aged(route("evil/web", "evil/own", &[NAME]), 200)]);
    let desired = beside(younger, &ObservedNames::default());
    assert_eq!(records(&desired), ["www.example.org A 192.0.2.1"]);
    assert_eq!(withheld(&desired), ["www.example.org hostname-held", "www.example.org hostname-held"]);
    assert!(desired.withheld.iter().all(|withheld| withheld.object.to_string() == "HTTPRoute/evil/web"));
    assert_eq!(certificates(&desired), ["infra/edge-tls www.example.org"]);
    let older = with(objects![aged(route("evil/web", "evil/own", &[NAME]), 50)]);
    assert_eq!(records(&beside(older, &ObservedNames::default())), ["www.example.org A 203.0.113.66"]);
}

#[test]
fn the_namespace_that_records_were_made_for_keeps_the_name() {
    let older = || with(objects![aged(route("evil/web", "evil/own", &[NAME]), 50)]);
    let desired = beside(older(), &made_for(NAME, "shop"));
    assert_eq!(records(&desired), ["www.example.org A 192.0.2.1"]);
    assert_eq!(certificates(&desired), ["infra/edge-tls www.example.org"]);
    assert!(desired.withheld[0].message.contains("held by namespace `shop`, which its records were made for"));
    assert!(!desired.withheld[0].message.contains("shop/web"), "only the namespace of the holder is named");
    // The claims of the holder are gone: the next oldest follows, whatever the records were made for.
    let mut left = Snapshot::of(older());
    left.remove(&ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web"));
    assert_eq!(records(&of(&left, &made_for(NAME, "shop"))), ["www.example.org A 203.0.113.66"]);
    // Unless it may only not have been seen.
    left.set_visibility(Kind::Route(RouteKind::Http), Visibility::NotVisible("forbidden".into()));
    assert!(records(&of(&left, &made_for(NAME, "shop"))).is_empty());
}

#[test]
fn routes_at_the_gateway_of_the_holder_share_the_records_as_they_are() {
    let mut other = annotated(aged(route("evil/web", "infra/edge", &[NAME]), 50), "target", "203.0.113.66");
    other = annotated(annotated(other, "ttl", "1"), "set-identifier", "mine");
    let desired = beside(with(objects![other]), &made_for(NAME, "shop"));
    assert_eq!(records(&desired), ["www.example.org A 192.0.2.1"]);
    let record = &desired.records[0];
    assert_eq!((record.ttl, &record.set_identifier), (None, &None));
    let routes: Vec<_> = record.routes.iter().map(ToString::to_string).collect();
    assert_eq!(routes, ["HTTPRoute/shop/web", "HTTPRoute/evil/web"], "the marker names the first");
    let message = &desired.withheld[0].message;
    assert!(message.contains("what this Route says of targets and TTL and set identifier does not count"), "{message}");
}

#[test]
fn a_claim_that_is_not_decided_defends_records_and_wins_none() {
    let mut pending = aged(route("shop/web", "infra/edge", &[NAME]), 100);
    let condition = Condition::new("Accepted", false, "Pending", "wait");
    let status = ParentStatus {
        parent: pending.parents[0].clone(),
        controller: "example.test/controller".into(),
        conditions: vec![condition].into(),
    };
    pending.status = vec![status].into();
    let mut edge = gateway("infra/edge", vec![http("http", "*"), https("web", "*.example.org", "edge-tls")]);
    edge.status.conditions = vec![Condition::new("Accepted", true, "Accepted", "")].into();
    let world = || with(objects![edge.clone(), pending.clone(), aged(route("evil/web", "evil/own", &[NAME]), 200)]);
    assert!(records(&beside(world(), &made_for(NAME, "shop"))).is_empty(), "held as it is");
    assert_eq!(records(&beside(world(), &ObservedNames::default())), ["www.example.org A 203.0.113.66"]);
}

#[test]
fn a_wildcard_certificate_needs_every_name_below_it() {
    let allowing = TlsPolicy { allow_wildcards: Some(true), ..tls("evil/tls", "Gateway", "own") };
    let attack = || objects![aged(route("evil/any", "evil/own", &["*.example.org"]), 50), allowing.clone()];
    let desired = beside(with(attack()), &made_for(NAME, "shop"));
    assert_eq!(certificates(&desired), ["infra/edge-tls www.example.org"]);
    assert!(told(&desired).contains(&"Gateway/evil/own hostname-held".to_owned()), "{:?}", told(&desired));
    let mut alone = Snapshot::of(with(attack()));
    alone.remove(&ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web"));
    assert_eq!(certificates(&of(&alone, &ObservedNames::default())), ["evil/own-tls *.example.org"]);
}

#[test]
fn a_listener_set_of_another_namespace_gets_no_certificate_for_a_held_name() {
    let set = listener_set("evil/more", "infra/edge", vec![https("web", NAME, "set-tls")]);
    let mut grab = aged(route("evil/web", "infra/edge", &[NAME]), 50);
    grab.parents = Default::default();
    crate::model::push(&mut grab.parents, parent("ListenerSet", "evil/more"));
    let desired = beside(with(objects![set, grab]), &made_for(NAME, "shop"));
    assert_eq!(certificates(&desired), ["infra/edge-tls www.example.org"]);
    assert_eq!(records(&desired), ["www.example.org A 192.0.2.1"]);
    assert!(told(&desired).contains(&"ListenerSet/evil/more hostname-held".to_owned()), "{:?}", told(&desired));
}
