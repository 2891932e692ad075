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
        trial("the zone on BIND follows Gateways, sets, routes, namespaces and policies", everything_follows),
        trial("the embedded server follows", embedded_follows),
        trial("records become DNSEndpoint objects for external-dns", dns_endpoints),
        trial("scenario 89: observe mode writes nothing, neither to the zone nor to the API server", observes),
        trial("a controller ends within ten seconds and gives its Lease up", ends),
    ]
}

fn everything_follows() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    route(&cluster, "web", "www.example.org")?;
    zone_comes_to(&zone, &["www.example.org 192.0.2.1"], &[&controller]);
    controller.is_ready();
    // A hostname changes, an address is added.
    route(&cluster, "web", "shop.example.org")?;
    zone_comes_to(&zone, &["shop.example.org 192.0.2.1"], &[&controller]);
    accept(&cluster, "edge", &["192.0.2.1", "2001:db8::1"])?;
    zone_comes_to(&zone, &["shop.example.org 192.0.2.1", "shop.example.org 2001:db8::1"], &[&controller]);
    accept(&cluster, "edge", &["192.0.2.1"])?;
    zone_comes_to(&zone, &["shop.example.org 192.0.2.1"], &[&controller]);
    other_kinds(&cluster, &zone, &controller)?;
    policies(&cluster, &zone, &controller)?;
    // Objects go.
    cluster.delete("grpcroute/api", "shop")?;
    zone_comes_to(&zone, &["shop.example.org 192.0.2.1", "tls.example.org 192.0.2.1"], &[&controller]);
    let told = cluster.json(&["events.events.k8s.io", "-n", "shop"])?.to_string();
    assert!(told.contains("HostnamePublished") && told.contains("shop.example.org is published"), "{told}");
    let described = cluster.kubectl(&["describe", "httproute", "web", "-n", "shop"])?;
    assert!(described.contains("HostnamePublished"), "{described}");
    Ok(())
}

fn other_kinds(
    cluster: &gatepost_testkit::servers::kube::Cluster,
    zone: &gatepost_testkit::servers::Server,
    controller: &Controller,
) -> Result<(), Failed> {
    cluster.apply(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {namespace: shop, name: api}\n\
         spec: {hostnames: [api.example.org], parentRefs: [{namespace: infra, name: edge}]}\n---\n\
         apiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {namespace: shop, name: extra}\n\
         spec:\n  parentRef: {namespace: infra, name: edge}\n  listeners:\n  \
         - {name: tls, port: 443, protocol: TLS, hostname: tls.example.org, tls: {mode: Passthrough}}\n---\n\
         apiVersion: gateway.networking.k8s.io/v1\nkind: TLSRoute\nmetadata: {namespace: shop, name: raw}\n\
         spec:\n  hostnames: [tls.example.org]\n  parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}]\n  \
         rules: [{backendRefs: [{name: x, port: 443}]}]\n",
    )?;
    super::bed::accept_set(cluster, "extra")?;
    accept_route(cluster, "grpcroute", "api")?;
    accept_route(cluster, "tlsroute", "raw")?;
    let all = ["api.example.org 192.0.2.1", "shop.example.org 192.0.2.1", "tls.example.org 192.0.2.1"];
    zone_comes_to(zone, &all, &[controller]);
    Ok(())
}

fn policies(
    cluster: &gatepost_testkit::servers::kube::Cluster,
    zone: &gatepost_testkit::servers::Server,
    controller: &Controller,
) -> Result<(), Failed> {
    cluster.apply(
        "apiVersion: gatepost.dev/v1alpha1\nkind: DNSPolicy\nmetadata: {namespace: infra, name: dns}\n\
         spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, ttl: 42, allowWildcardHosts: false}\n",
    )?;
    let ttl = || {
        zone.dump("example.org").unwrap_or_default().iter().any(|line| line.starts_with("shop.example.org. 42 in a"))
    };
    until("the policy's TTL", ttl, || format!("{:?}\n{}", zone.dump("example.org"), controller.log()));
    let status = || cluster.kubectl(&["get", "dnspolicy", "-n", "infra"]).unwrap_or_default();
    until("kubectl shows the policy", || status().contains("True"), status);
    let live = cluster.json(&["dnspolicy", "dns", "-n", "infra"])?;
    assert_eq!(live["status"]["counts"]["served"], 3, "{live}");
    let version = live["metadata"]["resourceVersion"].clone();
    std::thread::sleep(Duration::from_secs(7));
    let later = cluster.json(&["dnspolicy", "dns", "-n", "infra"])?;
    assert_eq!(later["metadata"]["resourceVersion"], version, "a status that is the same is not written again");
    Ok(())
}

fn embedded_follows() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    let words = ["--provider", "embedded", "--zone", "example.org", "--policy", "sync"];
    let controller = Controller::start(&cluster.kubeconfig(ADMIN), &words);
    let dns = controller.dns.unwrap();
    let asked = |name: &str| {
        let (ip, port) = (format!("@{}", dns.ip()), dns.port().to_string());
        let words = ["+short", "+time=1", "+tries=1", "-p", &port, &ip, name, "A"];
        let output = std::process::Command::new("dig").args(words).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    route(&cluster, "web", "www.example.org")?;
    until("an answer", || asked("www.example.org") == "192.0.2.1", || controller.log());
    route(&cluster, "web", "new.example.org")?;
    until(
        "another",
        || asked("new.example.org") == "192.0.2.1" && asked("www.example.org").is_empty(),
        || controller.log(),
    );
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
