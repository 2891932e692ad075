//! From one end to the other: objects come, change and go, and the zone follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gatepost_testkit::servers::kube::proxy::{Fault, Proxy};
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup};
use gatepost_testkit::{Failed, Trial};

use super::bed::{
    Controller, accept, accept_route, addresses, bind, cluster, route, route_text, trial, until, zone_comes_to,
    zone_stays,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a policy reads well with kubectl, and its status is written only when it changes", policy_is_read),
        trial("what may be excluded is the same in files and in a cluster", exclusions_agree),
        trial("records become DNSEndpoint objects for external-dns", dns_endpoints),
        trial("scenario 47: a DNSEndpoint that a paused leader would delete late is kept", late_endpoint),
        trial("scenario 47: a DNSEndpoint that a paused leader makes late is taken back", late_creation),
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
    let expected = [
        "NAME TARGET WILDCARDS ACCEPTED ENFORCED SERVED HEALTHY",
        "dns edge false True True 2",
        "lost nowhere False 0",
    ];
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
    controller.passes_again(|| ());
    let later = cluster.json(&["dnspolicy", "dns", "-n", "infra"])?;
    assert_eq!(later["metadata"]["resourceVersion"], version, "a status that is the same is not written again");
    Ok(())
}

/// What may be excluded is the same in files and in a cluster.
fn exclusions_agree() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    let long = format!("{}.example.org", vec!["x".repeat(57); 4].join("."));
    let longest = format!("{}{long}.", "y".repeat(253 - long.len() - 1) + ".");
    let entries = [
        "192.0.2.1",
        "2001:db8::/32",
        "A.lb.example.net.",
        "lb.1a",
        "1a",
        "a.b",
        "10.0.0.0/33",
        "10.0.0.0/08",
        "300.1.1.1",
        "::ffff:192.0.2.1",
        "a.1",
        "a.1.",
        "*.example.org",
        " a.b",
        "a..b",
        "-a.b",
        "a_b.c",
        ".",
        "a.b..",
        &longest,
    ];
    let program = gatepost_testkit::program::Program::at(env!("CARGO_BIN_EXE_gatepost"));
    for entry in entries {
        let policy = format!(
            "apiVersion: gatepost.dev/v1alpha1\nkind: DNSPolicy\nmetadata: {{namespace: infra, name: dns}}\n\
             spec: {{targetRef: {{group: gateway.networking.k8s.io, kind: Gateway, name: edge}}, excludeAddresses: ['{entry}']}}\n"
        );
        let said = program.run(&["check", "-f", "-"].map(str::to_owned), &policy)?.output;
        let in_files = !said.contains("spec.excludeAddresses");
        let in_cluster = cluster.feed(&["apply", "--server-side", "--dry-run=server", "-f", "-"], &policy);
        assert_eq!(in_files, in_cluster.is_ok(), "{entry}: {said} {in_cluster:?}");
    }
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
    // What is below `www` is routed by the wildcard, and DNS would not answer it because `www` exists.
    let all_with = |address: &str| {
        ["*.example.org", "*.www.example.org", "www.example.org"].map(|name| format!("{name} A [{address}]"))
    };
    until("all are there", || endpoints() == all_with("192.0.2.1"), log);
    accept(&cluster, "edge", &["192.0.2.2"])?;
    until("all change", || endpoints() == all_with("192.0.2.2"), log);
    cluster.delete("httproute/web", "shop")?;
    until("the wildcard alone is left", || endpoints() == ["*.example.org A [192.0.2.2]"], log);
    Ok(())
}

/// Two DNSEndpoint objects of a leader whose writes can be made to arrive late at the API server.
struct Slow {
    cluster: Cluster,
    _proxy: Proxy,
    first: Controller,
    is_held: Arc<AtomicBool>,
    caught: Arc<AtomicBool>,
}

const SLOW: [&str; 7] = ["--provider", "dnsendpoint", "--policy", "sync", "--lease-duration", "3s", "--identity"];

impl Slow {
    /// `is_meant` says which paths are late, once they are held.
    fn start(is_meant: fn(&str) -> bool) -> Result<Slow, Failed> {
        let cluster = cluster(&Setup::default())?;
        cluster.install_text(DNS_ENDPOINT_CRD)?;
        let proxy = Proxy::start(&cluster)?;
        let (is_held, caught) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (held, tell) = (is_held.clone(), caught.clone());
        proxy.judge(move |path| {
            let is_late = held.load(Ordering::Relaxed) && is_meant(path);
            tell.fetch_or(is_late, Ordering::Relaxed);
            if is_late { Fault::Late(Duration::from_secs(15)) } else { Fault::Pass }
        });
        let first = Controller::start(&proxy.kubeconfig(), &[&SLOW[..], &["first"]].concat());
        for name in ["a", "k"] {
            route(&cluster, name, &format!("{name}.example.org"))?;
        }
        let slow = Slow { cluster, _proxy: proxy, first, is_held, caught };
        until("both are there", || slow.names().lines().count() == 2, || slow.first.log());
        Ok(slow)
    }

    /// Holds writes from here on.
    fn hold(&self) {
        self.is_held.store(true, Ordering::Relaxed);
    }

    /// Pauses the leader while a write of it is on its way.
    fn pause(&self) {
        until("the write is on its way", || self.caught.load(Ordering::Relaxed), || self.first.log());
        self.first.signal("STOP");
    }

    /// The leader after it, whose writes are not late.
    fn next(&self) -> Controller {
        let second = Controller::start(&self.cluster.kubeconfig(ADMIN), &[&SLOW[..], &["second"]].concat());
        second.says("\"message\":\"leading\"");
        second
    }

    fn names(&self) -> String {
        self.cluster.kubectl(&["get", "dnsendpoints", "-n", "gatepost", "-o", "name"]).unwrap_or_default()
    }
}

/// A delete that is on its way when leadership changes arrives late at the API server.
fn late_endpoint() -> Result<(), Failed> {
    let slow = Slow::start(|path| path.contains("/dnsendpoints/"))?;
    let cluster = &slow.cluster;
    slow.hold();
    cluster.delete("httproute/a", "shop")?;
    slow.pause();
    route(cluster, "a", "a.example.org")?;
    let second = slow.next();
    let is_delete = |(verb, _, path): &(String, String, String)| verb == "delete" && path.contains("/dnsendpoints/");
    let before = slow.names();
    assert_eq!(before.lines().count(), 2, "{before}");
    until("the delete has arrived", || cluster.writes().iter().any(is_delete), || second.log());
    let writes = cluster.writes();
    assert_eq!(slow.names(), before, "{writes:?}");
    let is_create = |(verb, ..): &&(String, String, String)| verb == "create";
    let made = writes.iter().filter(is_create).filter(|(_, _, path)| path.contains("/dnsendpoints")).count();
    assert_eq!(made, 2, "none had to be made again: {writes:?}");
    Ok(())
}

/// The API server cannot refuse an object that nobody has made yet: it takes it, and the new leader takes it back.
fn late_creation() -> Result<(), Failed> {
    let slow = Slow::start(|path| path.ends_with("/dnsendpoints"))?;
    let (cluster, before) = (&slow.cluster, slow.names());
    slow.hold();
    route(cluster, "late", "late.example.org")?;
    slow.pause();
    cluster.delete("httproute/late", "shop")?;
    let second = slow.next();
    assert_eq!(slow.names(), before, "it has not arrived yet");
    let count = |wanted: &str| {
        let writes = cluster.writes();
        writes.iter().filter(|(verb, _, path)| verb == wanted && path.contains("/dnsendpoints")).count()
    };
    until("the object has arrived", || count("create") == 3, || second.log());
    until(
        "it is taken back",
        || count("delete") == 1 && slow.names() == before,
        || format!("{} {}", slow.names(), second.log()),
    );
    slow.first.signal("CONT");
    slow.first.says("not leading");
    second.is_ready();
    assert_eq!((slow.names(), count("create"), count("delete")), (before, 3, 1), "who woke up writes nothing any more");
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
    let name = controller.get("/api/v1/names/www.example.org");
    assert!(name.contains("\"health\":\"held\"") && name.contains("\"stored\":[]"), "{name}");
    zone_stays(&zone, &[], &[&controller]);
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
