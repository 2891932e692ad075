//! Whose is a name of which records exist: their markers in the zone decide, not the age of Routes (D27). Every run is a new
//! process that remembers nothing, as after a restart or a change of leader.

use super::bed::Bed;

/// A Gateway for all namespaces, with a Route of the victim that came in 2024.
const VICTIM: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge, creationTimestamp: '2024-01-01T00:00:00Z'}
spec:
  gatewayClassName: standard
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
status: {addresses: [{type: IPAddress, value: 192.0.2.10}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: web, creationTimestamp: '2024-02-01T00:00:00Z'}
spec: {parentRefs: [{namespace: infra, name: edge}], hostnames: [www.example.org, api.example.org]}
";

/// The Gateway of the attacker.
const OWN: &str = "\
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: blog, name: own, creationTimestamp: '2023-01-01T00:00:00Z'}
spec:
  gatewayClassName: standard
  listeners: [{name: web, port: 80, protocol: HTTP}]
status: {addresses: [{type: IPAddress, value: 203.0.113.66}]}
";

/// A Route of the attacker that is older than the victim's.
fn older(parent: &str, hostname: &str, annotations: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{namespace: blog, name: grab, creationTimestamp: '2023-02-01T00:00:00Z', annotations: {{{annotations}}}}}
spec: {{parentRefs: [{parent}], hostnames: [{hostname}]}}
"
    )
}

const AT_OWN: &str = "{name: own}";
const AT_EDGE: &str = "{namespace: infra, name: edge}";

/// The zone without its serial, which others' names may raise.
fn records(bed: &Bed) -> Vec<String> {
    bed.zone().into_iter().filter(|line| !line.to_lowercase().contains(" soa ")).collect()
}

#[test]
fn an_older_route_of_another_namespace_changes_nothing_of_a_name_with_records() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", VICTIM).exit, 0);
    let before = records(&bed);
    let target = |value: &str| format!("external-dns.kubernetes.io/target: {value}");
    let attacks = [
        ("at a Gateway of its own", older(AT_OWN, "www.example.org", "")),
        ("a target", older(AT_EDGE, "www.example.org", &target("203.0.113.66"))),
        ("a CNAME", older(AT_EDGE, "www.example.org", &target("evil.example.net"))),
        ("a TTL", older(AT_EDGE, "www.example.org", "external-dns.kubernetes.io/ttl: '1'")),
        ("a second name", older(AT_OWN, "api.example.org", "")),
    ];
    for (what, attack) in attacks {
        // The attacker's objects come first, and then last.
        for objects in [
            format!("{VICTIM}{OWN}{attack}"),
            format!("{}{VICTIM}", format!("{OWN}{attack}---\n").trim_start_matches("---\n")),
        ] {
            let answer = bed.run("apply", &objects);
            assert_eq!(answer.exit, 0, "{what}: {}{}", answer.output, answer.errors);
            assert_eq!(records(&bed), before, "{what}");
            assert!(
                answer.output.contains("held by namespace `shop`, which its records were made for"),
                "{what}: {}",
                answer.output
            );
            assert!(answer.output.contains("HTTPRoute/blog/grab"), "{what}: {}", answer.output);
        }
    }
}

#[test]
fn the_next_oldest_follows_when_the_holder_lets_go() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", VICTIM).exit, 0);
    let grab = older(AT_OWN, "www.example.org", "");
    let let_go = VICTIM.replace("hostnames: [www.example.org, api.example.org]", "hostnames: [api.example.org]");
    let answer = bed.run("apply", &format!("{let_go}{OWN}{grab}"));
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("www.example.org"), ["203.0.113.66"]);
    // The former holder is older in its records no more.
    assert_eq!(bed.run("apply", &format!("{VICTIM}{OWN}{grab}")).exit, 0);
    assert_eq!(bed.addresses("www.example.org"), ["203.0.113.66"]);
    assert_eq!(bed.addresses("api.example.org"), ["192.0.2.10"]);
}
