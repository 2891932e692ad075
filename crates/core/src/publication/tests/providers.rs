//! Several providers: what each of them publishes of one name.

use super::world::*;
use crate::model::*;
use crate::objects;
use crate::publication::Desired;
use crate::publication::providers::{ProviderZones, PublishingProviders};
use crate::publication::settings::PublicationSettings;

/// Two views of `example.com`, the public one first; the private one also serves `internal`.
pub(crate) fn two_views() -> PublicationSettings {
    let provider = |name: &str, zones: &[&str]| ProviderZones {
        name: name.into(),
        zones: zones.iter().map(|zone| Str::from(*zone)).collect(),
    };
    let providers = PublishingProviders::new(vec![
        provider("public", &["example.com"]),
        provider("private", &["example.com", "internal"]),
    ]);
    PublicationSettings { providers, ..PublicationSettings::default() }
}

fn naming(name: &str, gateway: &str, provider: &str) -> DnsPolicy {
    DnsPolicy { provider: Some(provider.into()), ..dns(name, "Gateway", gateway) }
}

fn inner() -> Gateway {
    at(gateway("infra/inner", vec![http("web", "*")]), &["10.0.0.1"])
}

fn outer() -> Gateway {
    gateway("infra/outer", vec![http("web", "*")])
}

/// `name targets provider`.
fn shown(desired: &Desired) -> Vec<String> {
    let line = |record: &crate::publication::Record| {
        format!("{} {} {}", record.name, record.targets.join(" "), record.provider.as_deref().unwrap_or("-"))
    };
    desired.records.iter().map(line).collect()
}

fn both(name: &str, hostname: &str) -> Route {
    let mut both = route(name, "infra/outer", &[hostname]);
    push(&mut both.parents, parent("Gateway", "infra/inner"));
    both
}

#[test]
fn a_name_at_two_gateways_goes_to_each_with_the_addresses_of_its_own_gateway() {
    let world = objects![outer(), inner(), naming("infra/inner", "inner", "private"), both("a/web", "www.example.com")];
    let desired = desired(world, &two_views());
    assert_eq!(shown(&desired), ["www.example.com 10.0.0.1 private", "www.example.com 192.0.2.1 public"]);
    let world = objects![outer(), inner(), naming("infra/inner", "inner", "private"), both("a/web", "www.example.com")];
    assert_eq!(
        shown(&plain(world)),
        ["www.example.com 192.0.2.1 -"],
        "one provider: the policy names none that exists"
    );
}

#[test]
fn claims_of_one_provider_are_merged_and_never_clash_with_those_of_another() {
    let alias = at(inner(), &["lb.example.net"]);
    let world = objects![outer(), alias, naming("infra/inner", "inner", "private"), both("a/web", "www.example.com")];
    let apart = desired(world, &two_views());
    assert_eq!(shown(&apart), ["www.example.com 192.0.2.1 public", "www.example.com lb.example.net private"]);
    assert!(withheld(&apart).is_empty(), "a CNAME in one view and addresses in the other");
    let world = objects![outer(), inner(), naming("infra/inner", "inner", "public"), both("a/web", "www.example.com")];
    assert_eq!(shown(&desired(world, &two_views())), ["www.example.com 10.0.0.1 192.0.2.1 public"]);
}

#[test]
fn without_a_policy_the_zone_decides() {
    let world = objects![outer(), route("a/web", "infra/outer", &["www.example.com", "db.internal", "x.test"])];
    let expected = ["db.internal 192.0.2.1 private", "www.example.com 192.0.2.1 public", "x.test 192.0.2.1 public"];
    assert_eq!(shown(&desired(world, &two_views())), expected);
}

#[test]
fn a_wildcard_of_one_provider_answers_for_no_name_of_another() {
    let wild = |name: &str| gateway(name, vec![http("web", "*.example.com")]);
    let policies = || [naming("infra/outer", "outer", "public"), naming("infra/inner", "inner", "private")];
    let [first, second] = policies();
    let world = objects![
        wild("infra/outer"),
        wild("infra/inner"),
        first,
        second,
        route("a/one", "infra/outer", &["a.example.com"]),
        route("a/two", "infra/inner", &["b.example.com"]),
    ];
    let desired = desired(world, &two_views());
    // Both listeners have their wildcard, each in its view; the precise names are needed beside those of two views.
    let of = |provider: &str| -> Vec<String> {
        let here = desired.records.iter().filter(|record| record.provider.as_deref() == Some(provider));
        here.map(|record| record.name.to_string()).collect()
    };
    assert!(of("public").contains(&"a.example.com".to_owned()), "{:?}", shown(&desired));
    assert!(of("private").contains(&"b.example.com".to_owned()), "{:?}", shown(&desired));
    assert!(desired.covered.is_empty(), "{:?}", desired.covered);
}

#[test]
fn an_unknown_provider_publishes_nothing() {
    let world = objects![
        outer(),
        naming("infra/outer", "outer", "elsewhere"),
        route("a/web", "infra/outer", &["www.example.com"])
    ];
    let desired = desired(world, &two_views());
    assert!(desired.records.is_empty());
    assert_eq!(withheld(&desired), ["www.example.com provider-not-found"]);
    let condition = condition_of(&desired, "DNSPolicy/infra/outer", "Accepted");
    assert!(condition.contains("ProviderNotFound") && condition.contains("`public`, `private`"), "{condition}");
}
