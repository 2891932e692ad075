//! Wildcards under a policy: names that they do not answer for, and how they go (D10, D13).

use gatepost_testkit::servers::Primary;

use super::bed::{Bed, routes};

fn world(allowed: bool, hostnames: &[&str]) -> String {
    let text = format!(
        "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{namespace: infra, name: edge}}
spec:
  gatewayClassName: standard
  addresses: [{{value: 192.0.2.10}}]
  listeners: [{{name: web, port: 80, protocol: HTTP, hostname: \"*.example.org\"}}]
---
apiVersion: gatepost.dev/v1alpha1
kind: DNSPolicy
metadata: {{namespace: infra, name: dns}}
spec:
  targetRef: {{group: gateway.networking.k8s.io, kind: Gateway, name: edge}}
  allowWildcardHosts: {allowed}
"
    );
    text + &routes(hostnames)
}

const NAMES: [&str; 3] = ["www.example.org", "deep.mail.example.org", "hand.example.org"];

/// `mail` and `hand` exist already, by somebody else's records, so that the wildcard answers neither for `hand` nor below `mail`.
#[test]
fn what_a_wildcard_does_not_answer_for_is_published_by_itself() {
    let Some(bed) = Bed::new() else { return };
    let answer = bed.run("apply", &world(true, &NAMES[..2]));
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("*.example.org"), ["192.0.2.10"]);
    assert_eq!(bed.addresses("deep.mail.example.org"), ["192.0.2.10"]);
    assert!(bed.addresses("www.example.org").is_empty(), "the wildcard answers for it");
    let answer = bed.run("verify", &world(true, &NAMES[..2]));
    assert_eq!(answer.exit, 0, "{}", answer.output);
    assert!(answer.output.contains("✓ www.example.org") && answer.output.contains("✓ deep.mail.example.org"));
    let answer = bed.run("verify", &world(true, &NAMES));
    assert_eq!(answer.exit, 1, "hand.example.org is somebody else's: {}", answer.output);
}

/// The name is there in the same transaction or an earlier one, so that it resolves at any moment.
#[test]
fn a_wildcard_goes_only_behind_its_replacements() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &world(true, &NAMES[..1])).exit, 0);
    let precise = world(false, &NAMES[..1]);
    let (exit, plan) = bed.json("apply", &precise);
    assert_eq!(exit, 0);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let rows: Vec<_> =
        plan["steps"].as_array().unwrap().iter().map(|s| text(&s["verb"]) + " " + &text(&s["name"])).collect();
    assert_eq!(rows, ["create www.example.org", "delete *.example.org"]);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.10"]);
    assert!(bed.addresses("*.example.org").is_empty());
    assert_eq!(bed.run("plan --expect-no-changes", &precise).exit, 0);
}

/// The replacement is refused by the server: the wildcard stays.
#[test]
fn a_wildcard_stays_where_its_replacement_cannot_be_written() {
    let primary = Primary { refused: vec!["www.example.org".to_owned()], ..Primary::default() };
    let Some(bed) = Bed::with(primary) else { return };
    assert_eq!(bed.run("apply", &world(true, &NAMES[..1])).exit, 0);
    let answer = bed.run("apply", &world(false, &NAMES[..1]));
    assert_eq!(answer.exit, 4, "{}", answer.output);
    assert_eq!(bed.addresses("*.example.org"), ["192.0.2.10"], "{}", answer.output);
}
