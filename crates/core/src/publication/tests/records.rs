//! Names, addresses, wildcards and clashes.

use super::world::*;
use crate::attachment::{Scope, Topology};
use crate::model::*;
use crate::objects;
use crate::publication::holders::ObservedNames;
use crate::publication::settings::PublicationSettings;
use crate::publication::{NameSource, PresentState, Record, build_beside};
use crate::snapshot::{Origin, Snapshot};

const WILD: &str = "*.example.com";

fn wild() -> Gateway {
    gateway("infra/edge", vec![http("web", WILD)])
}

fn allowing() -> DnsPolicy {
    dns("infra/dns", "Gateway", "edge")
}

fn forbidding() -> DnsPolicy {
    DnsPolicy { allow_wildcards: Some(false), ..allowing() }
}

#[test]
fn every_intersected_name_gets_all_addresses() {
    let edge = at(wild(), &["192.0.2.2", "192.0.2.1", "2001:DB8::1"]);
    let desired = plain(objects![edge, route("shop/web", "infra/edge", &["a.example.com", "*.com", "x.test"])]);
    assert_eq!(
        records(&desired),
        [
            "*.a.example.com A 192.0.2.1 192.0.2.2",
            "*.a.example.com AAAA 2001:db8::1",
            "*.example.com A 192.0.2.1 192.0.2.2",
            "*.example.com AAAA 2001:db8::1",
            "a.example.com A 192.0.2.1 192.0.2.2",
            "a.example.com AAAA 2001:db8::1",
        ]
    );
    assert_eq!(withheld(&desired), ["x.test no-common-hostname"]);
    assert_eq!(desired.records[0].routes[..], [ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web")]);
    assert_eq!(desired.records[0].listeners[0].to_string(), "Gateway/infra/edge/web");
    let is_hidden = |record: &Record| record.source == NameSource::HiddenFromWildcard;
    assert!(desired.records[..2].iter().all(is_hidden) && !desired.records[2..].iter().any(is_hidden));
}

#[test]
fn under_an_allowing_policy_the_wildcard_of_the_listener_stands_for_the_names() {
    let routes =
        [route("shop/a", "infra/edge", &["a.example.com"]), route("shop/b", "infra/edge", &["x.b.example.com"])];
    let [a, b] = routes;
    let desired = plain(objects![wild(), a, b, allowing()]);
    assert_eq!(records(&desired), ["*.example.com A 192.0.2.1"]);
    assert_eq!(desired.records[0].source, NameSource::ListenerWildcard);
    assert_eq!(desired.records[0].routes.len(), 2);
    assert_eq!(desired.answer("x.b.example.com"), [&desired.records[0]]);
}

#[test]
fn a_wildcard_route_names_the_wildcard_itself() {
    let desired = plain(objects![wild(), route("shop/any", "infra/edge", &[]), allowing()]);
    assert_eq!(records(&desired), ["*.example.com A 192.0.2.1"]);
    assert_eq!(desired.records[0].source, NameSource::Intersected);
}

#[test]
fn names_that_the_wildcard_does_not_answer_for_are_explicit() {
    // The precise listener owns `x.b.example.com`, so that `b.example.com` exists and the wildcard answers for nothing there.
    let edge = gateway("infra/edge", vec![http("web", WILD), http("own", "x.b.example.com")]);
    let hosts = ["x.b.example.com", "y.b.example.com", "b.example.com", "c.example.com"];
    let desired = plain(objects![edge, route("shop/web", "infra/edge", &hosts), allowing()]);
    let address = "A 192.0.2.1";
    let names = ["*.example.com", "b.example.com", "x.b.example.com", "y.b.example.com"];
    assert_eq!(records(&desired), names.map(|name| format!("{name} {address}")));
}

#[test]
fn a_challenge_makes_its_name_explicit() {
    let objects = objects![wild(), route("shop/a", "infra/edge", &["a.example.com", "b.example.com"]), allowing()];
    let snapshot = Snapshot::of(objects);
    let topology = Topology::build(&snapshot, &Scope::default());
    let others = ["_acme-challenge.a.example.com".into()];
    let beside = PresentState { names: &others, observed: &ObservedNames::default(), health: &Default::default() };
    let desired = build_beside(&snapshot, &topology, &PublicationSettings::default(), beside);
    assert_eq!(records(&desired), ["*.example.com A 192.0.2.1", "a.example.com A 192.0.2.1"]);
}

#[test]
fn names_with_another_answer_are_explicit() {
    let other = at(gateway("infra/other", vec![http("web", WILD)]), &["192.0.2.9"]);
    let mut both = route("shop/both", "infra/edge", &["both.example.com"]);
    crate::model::push(&mut both.parents, parent("Gateway", "infra/other"));
    let targeted = annotated(route("shop/t", "infra/edge", &["t.example.com"]), "target", "192.0.2.7");
    let short = annotated(route("shop/ttl", "infra/edge", &["ttl.example.com"]), "ttl", "30");
    let same = route("shop/same", "infra/edge", &["same.example.com"]);
    let desired = plain(objects![wild(), other, both, targeted, short, same, allowing()]);
    assert_eq!(
        records(&desired),
        [
            "*.example.com A 192.0.2.1",
            "both.example.com A 192.0.2.1 192.0.2.9",
            "t.example.com A 192.0.2.7",
            "ttl.example.com A 192.0.2.1",
        ]
    );
}

#[test]
fn a_wildcard_that_no_name_needs_is_not_published() {
    let targeted = annotated(route("shop/t", "infra/edge", &["t.example.com"]), "target", "192.0.2.7");
    assert_eq!(records(&plain(objects![wild(), targeted, allowing()])), ["t.example.com A 192.0.2.7"]);
}

#[test]
fn a_wildcard_that_a_route_wants_is_answered_as_the_route_says() {
    let own = annotated(route("shop/any", "infra/edge", &[WILD]), "target", "192.0.2.7");
    let usual = route("shop/a", "infra/edge", &["a.example.com"]);
    let desired = plain(objects![wild(), own, usual, allowing()]);
    assert_eq!(
        records(&desired),
        ["*.a.example.com A 192.0.2.7", "*.example.com A 192.0.2.7", "a.example.com A 192.0.2.1"]
    );
    assert_eq!(desired.records[1].routes.len(), 1);
}

#[test]
fn two_gateways_with_one_wildcard_share_it_and_keep_their_own_names() {
    let other = at(gateway("infra/other", vec![http("web", WILD)]), &["192.0.2.9"]);
    let policies = [allowing(), dns("infra/second", "Gateway", "other")];
    let [first, second] = policies;
    let a = route("shop/a", "infra/edge", &["a.example.com"]);
    let b = route("shop/b", "infra/other", &["b.example.com"]);
    let desired = plain(objects![wild(), other, a, b, first, second]);
    assert_eq!(
        records(&desired),
        ["*.example.com A 192.0.2.1 192.0.2.9", "a.example.com A 192.0.2.1", "b.example.com A 192.0.2.9"]
    );
}

#[test]
fn a_forbidding_policy_skips_wildcards_and_publishes_names() {
    let desired = plain(objects![wild(), route("shop/web", "infra/edge", &["a.example.com", WILD]), forbidding()]);
    assert_eq!(records(&desired), ["a.example.com A 192.0.2.1"]);
    assert_eq!(withheld(&desired), ["*.example.com wildcard-not-allowed"]);
    assert_eq!(desired.withheld[0].field.to_string(), "spec.hostnames[1]");
}

#[test]
fn a_listener_without_hostname_has_the_names_of_its_routes() {
    let edge = gateway("infra/edge", vec![http("web", "*")]);
    let named = route("shop/web", "infra/edge", &["a.example.com", "*.b.test"]);
    let nameless = route("shop/any", "infra/edge", &[]);
    let desired = plain(objects![edge, named, nameless, allowing()]);
    assert_eq!(records(&desired), ["*.b.test A 192.0.2.1", "a.example.com A 192.0.2.1"]);
    assert_eq!(withheld(&desired), ["* no-name"]);
}

#[test]
fn ttl_comes_from_the_route_then_from_the_policy() {
    let policy = DnsPolicy { ttl: Some(300), ..forbidding() };
    let usual = route("shop/a", "infra/edge", &["a.example.com"]);
    let own = annotated(route("shop/b", "infra/edge", &["b.example.com"]), "ttl", "1m");
    let desired = plain(objects![wild(), usual, own, policy]);
    assert_eq!(desired.records.iter().map(|r| r.ttl).collect::<Vec<_>>(), [Some(300), Some(60)]);
}

#[test]
fn ip_addresses_win_over_hostnames_and_one_hostname_is_enough() {
    let web = || route("shop/web", "infra/edge", &["a.example.com"]);
    let mixed = plain(objects![at(wild(), &["lb.example.net", "192.0.2.1"]), web()]);
    assert_eq!(records(&mixed), ["a.example.com A 192.0.2.1"]);
    assert_eq!(told(&mixed)[0], "Gateway/infra/edge mixed-addresses");
    let several = plain(objects![at(wild(), &["z.example.net", "b.example.net"]), web()]);
    assert_eq!(records(&several), ["a.example.com CNAME z.example.net"]);
    assert_eq!(told(&several)[0], "Gateway/infra/edge several-cname-targets");
}

#[test]
fn addresses_inside_the_cluster_stay_there() {
    let web = || route("shop/web", "infra/edge", &["a.example.com"]);
    let inside = |value: &str| Address { routability: Some("Cluster".into()), ..address(value) };
    let mut edge = wild();
    edge.status.addresses.push(inside("10.0.0.1"));
    let desired = plain(objects![edge.clone(), web()]);
    assert_eq!(records(&desired), ["a.example.com A 192.0.2.1"]);
    assert_eq!(told(&desired)[0], "Gateway/infra/edge cluster-address");
    edge.status.addresses = vec![inside("10.0.0.1")];
    let desired = plain(objects![edge, web()]);
    assert_eq!(withheld(&desired), ["a.example.com gateway-without-address"]);
    assert!(desired.withheld[0].holds());
}

#[test]
fn addresses_on_files_come_from_three_places() {
    let mut edge = at(wild(), &[]);
    let web = || route("shop/web", "infra/edge", &["a.example.com"]);
    let none = plain(objects![edge.clone(), web()]);
    for place in ["status.addresses", "spec.addresses", "--gateway-address infra/edge=VALUE"] {
        assert!(none.withheld[0].message.contains(place), "{}", none.withheld[0].message);
    }
    edge.wished_addresses = vec![address("192.0.2.5")];
    assert_eq!(records(&plain(objects![edge.clone(), web()])), ["a.example.com A 192.0.2.5"]);
    let mut settings = PublicationSettings::default();
    settings.gateway_addresses.insert(key("infra/edge"), vec!["192.0.2.6".into()]);
    assert_eq!(records(&desired(objects![edge.clone(), web()], &settings)), ["a.example.com A 192.0.2.6"]);
    let mut cluster = Snapshot::of(objects![
        edge,
        web(),
        GatewayClass {
            meta: Meta::named("", "any"),
            controller: "x".into(),
            features: vec![],
            conditions: Default::default()
        },
    ]);
    cluster.origin = Origin::Cluster;
    assert_eq!(
        withheld(&of_snapshot(&cluster, &PublicationSettings::default())),
        ["a.example.com gateway-without-address"]
    );
}

#[test]
fn excluded_addresses_are_not_published_whoever_names_them() {
    let policy = DnsPolicy { exclude_addresses: vec!["192.0.2.0/24".into()], ..forbidding() };
    let edge = at(wild(), &["192.0.2.1", "198.51.100.1"]);
    let usual = route("shop/a", "infra/edge", &["a.example.com"]);
    let own = annotated(route("shop/b", "infra/edge", &["b.example.com"]), "target", "192.0.2.66");
    let desired = plain(objects![edge, usual, own, policy]);
    assert_eq!(records(&desired), ["a.example.com A 198.51.100.1"]);
    assert_eq!(withheld(&desired), ["b.example.com address-excluded"]);
    assert!(!desired.withheld[0].holds());
}

#[test]
fn on_a_clash_the_older_policy_keeps_the_name_then_the_older_gateway() {
    let other = || at(gateway("infra/other", vec![http("web", WILD)]), &["lb.example.net"]);
    let both = || {
        let mut both = route("shop/web", "infra/edge", &["a.example.com"]);
        crate::model::push(&mut both.parents, parent("Gateway", "infra/other"));
        both
    };
    let by_name = plain(objects![wild(), other(), both()]);
    assert_eq!(records(&by_name), ["a.example.com A 192.0.2.1"]);
    assert_eq!(withheld(&by_name), ["a.example.com type-clash"]);
    let mut older = other();
    older.meta.created = Some(1);
    assert_eq!(records(&plain(objects![wild(), older, both()])), ["a.example.com CNAME lb.example.net"]);
    let policy = DnsPolicy { allow_wildcards: Some(false), ..dns("infra/z", "Gateway", "other") };
    let governed = plain(objects![wild(), other(), both(), policy]);
    assert_eq!(records(&governed), ["a.example.com CNAME lb.example.net"]);
}

#[test]
fn a_name_has_one_cname_target() {
    let edge = at(wild(), &["lb1.example.net"]);
    let other = at(gateway("infra/other", vec![http("web", WILD)]), &["lb2.example.net"]);
    let mut both = route("shop/web", "infra/edge", &["a.example.com"]);
    crate::model::push(&mut both.parents, parent("Gateway", "infra/other"));
    let desired = plain(objects![edge, other, both]);
    assert_eq!(records(&desired), ["a.example.com CNAME lb1.example.net"]);
    assert_eq!(withheld(&desired), ["a.example.com several-cname-targets"]);
}

#[test]
fn set_identifiers_keep_record_sets_apart() {
    let blue = annotated(route("shop/blue", "infra/edge", &["a.example.com"]), "set-identifier", "blue");
    let green = annotated(route("shop/green", "infra/edge", &["a.example.com"]), "set-identifier", "green");
    let green = annotated(green, "target", "192.0.2.8");
    let desired = plain(objects![wild(), blue, green]);
    assert_eq!(records(&desired), ["a.example.com A 192.0.2.1", "a.example.com A 192.0.2.8"]);
    assert_eq!(desired.records[1].set_identifier.as_deref(), Some("green"));
}
