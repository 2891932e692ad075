//! From one end to the other: objects come, change and go, and the zone follows.

use std::time::Duration;

use gatepost_testkit::servers::kube::{ADMIN, Setup};
use gatepost_testkit::{Failed, Trial};

use super::bed::{
    Controller, accept, accept_route, addresses, bind, cluster, route, route_text, trial, until, zone_comes_to,
    zone_stays,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a policy reads well with kubectl, and its status is written only when it changes", policy_is_read),
        trial("records become DNSEndpoint objects for external-dns", dns_endpoints),
        trial("scenario 89: observe mode writes nothing, neither to the zone nor to the API server", observes),
        trial("a controller ends within ten seconds and gives its Lease up", ends),
    ]
}

/// What a person reads of a policy, and that it is written only when it changes.
fn policy_is_read() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    for (name, hostname) in [("web", "www.example.org"), ("api", "api.example.org"), ("any", "*.example.org")] {
        route(&cluster, name, hostname)?;
    }
    cluster.apply(
        "apiVersion: gatepost.dev/v1alpha1\nkind: DNSPolicy\nmetadata: {namespace: infra, name: dns}\n\
         spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, ttl: 42, allowWildcardHosts: false}\n---\n\
         apiVersion: gatepost.dev/v1alpha1\nkind: DNSPolicy\nmetadata: {namespace: infra, name: lost}\n\
         spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: nowhere}}\n",
    )?;
    let ttl = || zone.dump("example.org").unwrap_or_default().iter().any(|l| l.starts_with("www.example.org. 42 in a"));
    until("the policy's TTL", ttl, || format!("{:?}\n{}", zone.dump("example.org"), controller.log()));
    let table = |words: &[&str]| {
        let text = cluster.kubectl(&[&["get", "dnspolicy", "-n", "infra"], words].concat()).unwrap_or_default();
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words[..words.len() - 1].join(" ")
        };
        text.lines().map(row).collect::<Vec<_>>()
    };
    let expected =
        ["NAME TARGET WILDCARDS ACCEPTED ENFORCED SERVED", "dns edge false True True 2", "lost nowhere False 0"];
    until("kubectl shows both", || table(&[]) == expected, || table(&[]).join("\n"));
    let wide = cluster.kubectl(&["get", "dnspolicy", "-n", "infra", "-o", "wide"])?;
    let wide = wide.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "AGE KIND SECTION TTL PENDING SKIPPED REASON MESSAGE",
        "Gateway 42 0 1",
        "TargetNotFound Gateway infra/nowhere does not exist",
    ] {
        assert!(wide.contains(words), "{words}: {wide}");
    }
    let described = cluster.kubectl(&["describe", "dnspolicy", "dns", "-n", "infra"])?;
    let described = described.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Message: 2 of 3 hostnames are served; skipped (wildcard-not-allowed): `*.example.org`",
        "Counts: Pending: 0 Served: 2 Skipped: 1",
        "Hostname: *.example.org Listener: Gateway/infra/edge/http Message: `*.example.org` is a wildcard, and DNSPolicy/infra/dns does not allow wildcards Reason: wildcard-not-allowed State: Skipped",
        "Hostname: www.example.org Listener: Gateway/infra/edge/http State: Served",
    ] {
        assert!(described.contains(words), "{words}: {described}");
    }
    let live = cluster.json(&["dnspolicy", "dns", "-n", "infra"])?;
    assert_eq!(live["status"]["counts"]["served"], 2, "{live}");
    let version = live["metadata"]["resourceVersion"].clone();
    std::thread::sleep(Duration::from_secs(7));
    let later = cluster.json(&["dnspolicy", "dns", "-n", "infra"])?;
    assert_eq!(later["metadata"]["resourceVersion"], version, "a status that is the same is not written again");
    Ok(())
}

const DNS_ENDPOINT_CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: dnsendpoints.externaldns.k8s.io
  annotations: {api-approved.kubernetes.io: 'unapproved, for tests only'}
spec:
  group: externaldns.k8s.io
  names: {kind: DNSEndpoint, listKind: DNSEndpointList, plural: dnsendpoints, singular: dnsendpoint}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

fn dns_endpoints() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    cluster.install_text(DNS_ENDPOINT_CRD)?;
    let controller = Controller::start(&cluster.kubeconfig(ADMIN), &["--provider", "dnsendpoint", "--policy", "sync"]);
    let endpoints = || {
        let list = cluster.json(&["dnsendpoints", "-n", "gatepost"]).unwrap_or_default();
        let all =
            list["items"].as_array().into_iter().flatten().flat_map(|o| o["spec"]["endpoints"].as_array().cloned());
        let words =
            |e: &serde_json::Value| format!("{} {} {}", e["dnsName"], e["recordType"], e["targets"]).replace('"', "");
        let mut found: Vec<String> = all.flatten().map(|e| words(&e)).collect();
        found.sort();
        found
    };
    route(&cluster, "web", "www.example.org")?;
    route(&cluster, "any", "*.example.org")?;
    let log = || controller.log();
    until("both are there", || endpoints() == ["*.example.org A [192.0.2.1]", "www.example.org A [192.0.2.1]"], log);
    accept(&cluster, "edge", &["192.0.2.2"])?;
    until("both change", || endpoints() == ["*.example.org A [192.0.2.2]", "www.example.org A [192.0.2.2]"], log);
    cluster.delete("httproute/web", "shop")?;
    until("one goes", || endpoints() == ["*.example.org A [192.0.2.2]"], log);
    Ok(())
}

fn observes() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "web", "www.example.org")?;
    let before = (zone.dump("example.org")?, ours(&cluster));
    let controller = Controller::on_bind(&cluster, &zone, &[]);
    controller.says("not written");
    controller.is_ready();
    assert!(controller.get("/plan.json").contains("www.example.org"));
    zone_stays(&zone, &[], Duration::from_secs(6));
    assert_eq!((zone.dump("example.org")?, ours(&cluster)), before);
    Ok(())
}

/// Writes that are not the test's own: those of `kubectl` have a field manager or a path of theirs.
fn ours(cluster: &gatepost_testkit::servers::kube::Cluster) -> usize {
    let is_ours =
        |path: &str| path.contains("fieldManager=gatepost") || path.contains("/leases") || path.contains("/events");
    cluster.writes().iter().filter(|(_, user, path)| user == ADMIN && is_ours(path)).count()
}

fn ends() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    cluster.apply(&route_text("web", "www.example.org"))?;
    accept_route(&cluster, "httproute", "web")?;
    zone_comes_to(&zone, &["www.example.org 192.0.2.1"], &[&controller]);
    let holder = || -> Result<String, Failed> {
        let lease = cluster.json(&["lease", "gatepost", "-n", "gatepost"])?;
        Ok(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
    };
    assert!(!holder()?.is_empty());
    assert_eq!(controller.stop(), Some(0), "it ends by itself");
    assert_eq!(holder()?, "");
    assert_eq!(addresses(&zone), ["www.example.org 192.0.2.1"], "records stay");
    Ok(())
}
