//! Diagnostics and status of policies.

use super::world::*;
use crate::model::*;
use crate::objects;
use crate::policy::HostnameState;
use crate::reason;

fn edge() -> Gateway {
    gateway("infra/edge", vec![http("web", "*.example.com")])
}

fn policy() -> DnsPolicy {
    DnsPolicy { allow_wildcards: Some(false), ..dns("infra/dns", "Gateway", "edge") }
}

const DNS: &str = "DNSPolicy/infra/dns";

#[test]
fn every_hostname_is_listed() {
    let web = route("shop/web", "infra/edge", &["a.example.com", "*.example.com"]);
    let found = governed(objects![edge(), web, policy()]);
    let states: Vec<_> = found.policies[0].hostnames.iter().map(|h| (&*h.hostname, h.state)).collect();
    let skipped = HostnameState::Skipped(reason::WILDCARD_NOT_ALLOWED);
    assert_eq!(states, [("*.example.com", skipped), ("a.example.com", HostnameState::Served)]);
    assert_eq!(found.policies[0].hostnames[0].skipped(), Some("wildcard"));
    assert!(condition_of(&found, DNS, "Enforced").starts_with("True Partial 1 of 2 hostnames are served"));
    assert_eq!(condition_of(&found, DNS, "SubResourcesHealthy"), "");
}

#[test]
fn names_that_wait_are_pending() {
    let found = governed(objects![at(edge(), &[]), route("shop/web", "infra/edge", &["a.example.com"]), policy()]);
    assert!(
        condition_of(&found, DNS, "Enforced").starts_with("False Pending"),
        "{}",
        condition_of(&found, DNS, "Enforced")
    );
}

#[test]
fn a_policy_without_routes_is_enforced_and_says_so() {
    let found = governed(objects![edge(), policy()]);
    assert!(condition_of(&found, DNS, "Enforced").starts_with("True Enforced no hostname"));
}

#[test]
fn an_invalid_policy_holds_its_names_and_no_other_takes_its_place() {
    let bad = DnsPolicy { exclude_addresses: vec!["10.0.0.0/99".into()], ..policy() };
    let web = || route("shop/web", "infra/edge", &["a.example.com"]);
    let found = governed(objects![edge(), web(), bad.clone()]);
    assert!(
        condition_of(&found, DNS, "Accepted").starts_with("False Invalid `spec.excludeAddresses[0]` is `10.0.0.0/99`")
    );
    assert_eq!(condition_of(&found, DNS, "Enforced"), "");
    assert_eq!(withheld(&found), ["a.example.com policy-invalid"]);
    assert!(found.withheld[0].holds());
    assert_eq!(told(&found)[0], "DNSPolicy/infra/dns policy-invalid");
    let younger = DnsPolicy { meta: Meta { created: Some(200), ..Meta::named("infra", "young") }, ..policy() };
    let found = governed(objects![edge(), web(), bad, younger]);
    assert!(records(&found).is_empty());
    assert_eq!(withheld(&found), ["a.example.com policy-invalid"]);
    assert_eq!(told(&found), ["DNSPolicy/infra/dns policy-invalid", "DNSPolicy/infra/young policy-conflicted"]);
}

#[test]
fn a_provider_that_does_not_exist_holds_the_names_of_the_policy() {
    let named = |name: &str| DnsPolicy { provider: Some(name.into()), ..policy() };
    let web = || route("shop/web", "infra/edge", &["a.example.com"]);
    let found = plain(objects![edge(), web(), named("bind")]);
    let accepted = condition_of(&found, DNS, "Accepted");
    assert!(accepted.starts_with("False ProviderNotFound `spec.providerRef.name` is `bind`"), "{accepted}");
    assert_eq!((records(&found), withheld(&found)), (vec![], vec!["a.example.com provider-not-found".to_owned()]));
    assert!(found.withheld[0].holds());
    let younger = DnsPolicy { meta: Meta { created: Some(200), ..Meta::named("infra", "young") }, ..policy() };
    assert!(records(&plain(objects![edge(), web(), named("bind"), younger])).is_empty());
    assert_eq!(records(&plain(objects![edge(), web(), named("default")])), ["a.example.com A 192.0.2.1"]);
}

#[test]
fn health_is_unknown_until_a_probe_reports() {
    let check = HealthCheck {
        protocol: "HTTPS".into(),
        port: 443,
        path: "/".into(),
        interval: 60,
        timeout: 5,
        failure_threshold: 3,
        success_threshold: 1,
        expected_statuses: vec![],
        skips_verification: false,
        headers: None,
    };
    let web = || route("shop/web", "infra/edge", &["a.example.com"]);
    let probed = DnsPolicy { health_check: Some(check), ..policy() };
    let found = governed(objects![edge(), web(), probed.clone()]);
    assert!(condition_of(&found, DNS, "SubResourcesHealthy").starts_with("Unknown Unknown 1 of 1"));
    let wild = DnsPolicy { allow_wildcards: Some(true), ..probed };
    let found = governed(objects![edge(), web(), wild]);
    assert!(
        condition_of(&found, DNS, "SubResourcesHealthy").starts_with("Unknown Unknown there is no address to probe")
    );
}

#[test]
fn a_clash_is_told_to_the_policy_that_loses() {
    let other = at(gateway("infra/other", vec![http("web", "*.example.com")]), &["lb.example.net"]);
    let mut web = route("shop/web", "infra/edge", &["a.example.com"]);
    crate::model::push(&mut web.parents, parent("Gateway", "infra/other"));
    let second = DnsPolicy { allow_wildcards: Some(false), ..dns("infra/second", "Gateway", "other") };
    let found = governed(objects![edge(), other, web, policy(), second]);
    assert!(condition_of(&found, DNS, "Enforced").starts_with("True Enforced"));
    let lost = condition_of(&found, "DNSPolicy/infra/second", "Enforced");
    assert!(lost.starts_with("False Failed") && lost.contains("a.example.com"), "{lost}");
}
