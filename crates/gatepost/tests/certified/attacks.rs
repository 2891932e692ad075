//! Attacks of a tenant with every right in its namespace and none elsewhere, one after the other, on a controller with a real API
//! server, BIND and Pebble: after each the records and Secrets of others are byte for byte as before, and an Event on an object
//! of the attacker says why.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use gatepost_testkit::servers::DnsServer;
use gatepost_testkit::servers::kube::{Cluster, Setup};
use gatepost_testkit::servers::pebble::{self, Pebble, PebbleSetup};
use gatepost_testkit::{Failed, Trial};
use gatepost_tls::chain::Chain;
use serde_json::{Value, json};

use super::bed::{comes_to, on_pebble, text};
use crate::controller::bed::{self, Controller, accept, bind, route, trial, until, zone_comes_to};

pub(crate) fn trials() -> Vec<Trial> {
    if !pebble::is_wanted() {
        return Vec::new();
    }
    vec![trial("attacks from a namespace of its own change no record and no Secret of others", attacked)]
}

const GROUP: &str = "gateway.networking.k8s.io";
const NAMES: [&str; 4] = ["api.example.org", "deep.team.example.org", "example.org", "www.example.org"];
/// The apex has a marker only with a prefix that ends with a dot.
const PREFIX: [&str; 4] = ["--interval", "1s", "--txt-prefix", "%{record_type}-own."];
const EVIL: &str = "203.0.113.66";
/// Older and younger than everything of the victim.
const OLD: &str = "2020-01-01T00:00:00Z";
const YOUNG: &str = "2099-01-01T00:00:00Z";

const PLATFORM: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: evil}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: test
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - name: https
    port: 443
    protocol: HTTPS
    hostname: '*.example.org'
    allowedRoutes: {namespaces: {from: All}}
    tls: {certificateRefs: [{name: edge-tls}]}
";

/// An object of the attacker, by the plural of its kind.
type Stored = (&'static str, Value);

fn conditions(names: &[&str]) -> Value {
    let condition = |name: &&str| json!({"type": name, "status": "True", "reason": name, "message": "", "observedGeneration": 1, "lastTransitionTime": OLD});
    names.iter().map(condition).collect()
}

/// A Gateway of the attacker with an address, as its implementation accepts it.
fn gateway(name: &str, kind: &str, address: &str) -> Stored {
    let all = conditions(&["Accepted", "Programmed", "ResolvedRefs"]);
    let listener = |name: &str| json!({"name": name, "attachedRoutes": 1, "supportedKinds": [], "conditions": all});
    let gateway = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gateway",
        "metadata": {"namespace": "evil", "name": name, "creationTimestamp": OLD},
        "spec": {"gatewayClassName": "test", "listeners": [
            {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}},
            {"name": "https", "port": 443, "protocol": "HTTPS", "allowedRoutes": {"namespaces": {"from": "All"}},
             "tls": {"mode": "Terminate", "certificateRefs": [{"group": "", "kind": "Secret", "name": format!("{name}-tls")}]}},
        ]},
        "status": {
            "conditions": conditions(&["Accepted", "Programmed"]),
            "addresses": [{"type": kind, "value": address}], "listeners": [listener("http"), listener("https")],
        },
    });
    ("gateways", gateway)
}

/// A Route of the attacker, accepted by the implementation; `parent` is `KIND/NAMESPACE/NAME`.
fn asks(plural: &'static str, created: &str, parent: &str, hostname: &str, annotations: &[(&str, &str)]) -> Stored {
    let kind = if plural == "grpcroutes" { "GRPCRoute" } else { "HTTPRoute" };
    let parts: Vec<&str> = parent.split('/').collect();
    let parent = json!({"group": GROUP, "kind": parts[0], "namespace": parts[1], "name": parts[2]});
    let annotations: BTreeMap<String, &str> =
        annotations.iter().map(|(name, value)| (format!("external-dns.kubernetes.io/{name}"), *value)).collect();
    let mut route = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": {"namespace": "evil", "creationTimestamp": created, "annotations": annotations},
        "spec": {"parentRefs": [parent]},
        "status": {"parents": [{
            "parentRef": parent, "controllerName": "test.example/implementation",
            "conditions": conditions(&["Accepted", "ResolvedRefs"]),
        }]},
    });
    if !hostname.is_empty() {
        route["spec"]["hostnames"] = json!([hostname]);
    }
    (plural, route)
}

/// A ListenerSet of the attacker at the platform's Gateway.
fn set(name: &str, hostname: &str) -> Stored {
    let all = conditions(&["Accepted", "Programmed", "ResolvedRefs"]);
    let set = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ListenerSet",
        "metadata": {"namespace": "evil", "name": name, "creationTimestamp": OLD},
        "spec": {"parentRef": {"group": GROUP, "kind": "Gateway", "namespace": "infra", "name": "edge"}, "listeners": [
            {"name": "grab", "port": 443, "protocol": "HTTPS", "hostname": hostname,
             "allowedRoutes": {"namespaces": {"from": "Same"}},
             "tls": {"mode": "Terminate", "certificateRefs": [{"group": "", "kind": "Secret", "name": "set-tls"}]}},
        ]},
        "status": {"conditions": conditions(&["Accepted", "Programmed"]), "listeners": [
            {"name": "grab", "attachedRoutes": 1, "supportedKinds": [], "conditions": all},
        ]},
    });
    ("listenersets", set)
}

fn policy(kind: &str, plural: &'static str, spec: &Value) -> Stored {
    let mut spec = spec.clone();
    spec["targetRef"] = json!({"group": GROUP, "kind": "Gateway", "name": "own"});
    let metadata = json!({"namespace": "evil", "name": "own", "creationTimestamp": OLD});
    (plural, json!({"apiVersion": "gatepost.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}))
}

const OWN: &str = "Gateway/evil/own";
const EDGE: &str = "Gateway/infra/edge";
const WWW: &str = "www.example.org";

/// Every attack: what it is, its objects, and what one of them is told. The last object asks for the name.
fn attacks() -> Vec<(&'static str, Vec<Stored>, &'static str)> {
    let http = |created, parent, hostname, annotations: &[(&str, &str)]| {
        asks("httproutes", created, parent, hostname, annotations)
    };
    let shared = |name, value| vec![http(OLD, EDGE, WWW, &[(name, value)])];
    let own = |hostname| vec![http(OLD, OWN, hostname, &[])];
    let annotated = |value| vec![http(OLD, OWN, "evil.example.org", &[("hostname", value)])];
    let held = "(hostname-held)";
    vec![
        ("a younger Route at a Gateway of its own", vec![http(YOUNG, OWN, WWW, &[])], held),
        ("an older Route at a Gateway of its own", own(WWW), held),
        ("a second name of the victim", own("api.example.org"), held),
        ("a deep name of the victim", own("deep.team.example.org"), held),
        ("the apex that the victim has", own("example.org"), held),
        ("a Gateway that is a CNAME", vec![http(OLD, "Gateway/evil/cname", WWW, &[])], held),
        ("a target", shared("target", EVIL), held),
        ("a target that is a CNAME", shared("target", "evil.example.net"), held),
        ("a target that points inwards", shared("target", "127.0.0.1"), "(target-not-permitted)"),
        ("a target that is a metadata service", shared("target", "169.254.169.254"), "(target-not-permitted)"),
        ("a mapped metadata service", shared("target", "::ffff:169.254.169.254"), "(target-not-permitted)"),
        ("a TTL", shared("ttl", "1"), held),
        ("a set identifier", shared("set-identifier", "evil"), held),
        ("properties of providers", shared("aws-weight", "255"), held),
        ("an alias", shared("alias", "true"), held),
        ("a GRPCRoute", vec![asks("grpcroutes", OLD, OWN, WWW, &[])], held),
        ("a hostname in an annotation", annotated(WWW), held),
        ("upper case and a trailing dot in an annotation", annotated("WWW.Example.org."), held),
        ("a Unicode look-alike in an annotation", annotated("www.exаmple.org"), "(invalid-hostname)"),
        ("a hostname with a trailing dot, past the API server", own("www.example.org."), "(invalid-hostname)"),
        (
            "a ListenerSet for the name at the platform's Gateway",
            vec![set("set", WWW), http(OLD, "ListenerSet/evil/set", WWW, &[])],
            held,
        ),
        (
            "a ListenerSet that conflicts with the platform's listener",
            vec![set("clash", "*.example.org"), http(OLD, "ListenerSet/evil/clash", WWW, &[])],
            "(status-disagrees)",
        ),
        (
            "a DNSPolicy of its own",
            vec![policy("DNSPolicy", "dnspolicies", &json!({"ttl": 1})), http(OLD, OWN, WWW, &[])],
            held,
        ),
        (
            "a TLSPolicy of its own",
            vec![policy("TLSPolicy", "tlspolicies", &json!({"allowWildcardHosts": true})), http(OLD, OWN, WWW, &[])],
            held,
        ),
        (
            "a wildcard above the names, and a certificate for it",
            own("*.example.org"),
            "a certificate for `*.example.org` would be valid for names directly below it that another namespace holds",
        ),
        (
            "the name of a marker as a CNAME",
            vec![http(OLD, EDGE, "a-own.www.example.org", &[("target", "evil.example.net")])],
            "",
        ),
        ("a name below", own("evil.www.example.org"), ""),
        ("a name above, below the apex", own("team.example.org"), ""),
    ]
}

/// The records and Secrets of others: the zone without its serial, our fence, challenges, and names of the attacker's own.
fn state(cluster: &Cluster, zone: &DnsServer) -> (Vec<String>, BTreeMap<String, u64>) {
    let mut records = zone.dump(bed::ZONE).unwrap_or_default();
    let is_own = |line: &String| {
        let name = line.trim_start_matches("a-own.").trim_start_matches("cname-own.");
        name.starts_with("evil.") || name.starts_with("team.") || name.starts_with('*')
    };
    let is_passing =
        |line: &String| line.contains(" soa ") || line.starts_with("_gatepost-") || line.contains("_acme-challenge");
    records.retain(|line| !is_own(line) && !is_passing(line));
    records.sort();
    let (own, of_others): (Vec<Value>, _) =
        secrets(cluster).into_iter().partition(|secret| secret["metadata"]["namespace"] == "evil");
    for secret in own {
        let chain = text(&secret, "tls.crt").and_then(|chain| Chain::read(&chain).ok());
        let names: Vec<String> =
            chain.into_iter().flat_map(|chain| chain.leaf.names).map(|name| name.to_string()).collect();
        let is_own = |name: &String| name.starts_with("evil.") || name == "team.example.org";
        assert!(names.iter().all(is_own), "a Secret of the attacker has {names:?}");
    }
    let digest = |secret: &Value| {
        let mut hasher = DefaultHasher::new();
        secret["data"].to_string().hash(&mut hasher);
        (format!("{}/{}", secret["metadata"]["namespace"], secret["metadata"]["name"]), hasher.finish())
    };
    (records, of_others.iter().map(digest).collect())
}

/// The Secrets of all but the controller.
fn secrets(cluster: &Cluster) -> Vec<Value> {
    let all = cluster.json(&["secrets", "-A"]).unwrap_or_default();
    let all = all["items"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|secret| secret["metadata"]["namespace"] != "gatepost").collect()
}

/// What Events say to the attacker about objects.
fn told(cluster: &Cluster, names: &[String]) -> String {
    let events = cluster.json(&["events.events.k8s.io", "-n", "evil"]).unwrap_or_default();
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let of_names = events.iter().filter(|event| names.iter().any(|name| event["regarding"]["name"] == **name));
    of_names.map(|event| format!("{}\n", event["note"])).collect()
}

fn store(cluster: &Cluster, (plural, object): Stored) -> Result<(), Failed> {
    let group = if plural.ends_with("policies") { "gatepost.dev" } else { GROUP };
    Ok(cluster.store(group, plural, [object])?)
}

fn attacked() -> Result<(), Failed> {
    let (cluster, zone) = (bed::cluster(&Setup::default())?, bind()?);
    let pebble = Pebble::start(PebbleSetup { dns: Some(zone.address), ..PebbleSetup::default() })?;
    cluster.apply(PLATFORM)?;
    accept(&cluster, "edge", &["192.0.2.1"])?;
    for (number, name) in NAMES.iter().enumerate() {
        route(&cluster, &format!("web{number}"), name)?;
    }
    let begin = |name: &str| on_pebble(&cluster, &zone, &pebble, &[&PREFIX[..], &["--identity", name]].concat());
    let mut controller = begin("first");
    let records = NAMES.map(|name| format!("{name} 192.0.2.1"));
    zone_comes_to(&zone, &records.each_ref().map(String::as_str), &[&controller]);
    comes_to(&cluster, &["api.example.org", "deep.team.example.org", WWW], &[&controller]);
    let own = [gateway("own", "IPAddress", EVIL), gateway("cname", "Hostname", "evil.example.net")];
    own.into_iter().try_for_each(|gateway| store(&cluster, gateway))?;
    refused_route(&cluster, &zone, &controller)?;
    granted(&cluster, &zone, &controller)?;
    let before = state(&cluster, &zone);
    let attacks = attacks();
    let count = attacks.len();
    assert!(count >= 25);
    for (number, (what, mut objects, reason)) in attacks.into_iter().enumerate() {
        match number {
            // A restart in between, and a leader that is taken over from.
            8 => {
                controller.stop();
                controller = begin("second");
            }
            16 => {
                let next = begin("third");
                next.says("not leading");
                controller.kill();
                controller = next;
            }
            _ => {}
        }
        let name = format!("attack{number}");
        let last = objects.last_mut().ok_or("no objects")?;
        last.1["metadata"]["name"] = name.as_str().into();
        let plural = last.0;
        let sets = objects.iter().filter(|(plural, _)| *plural == "listenersets");
        let sets = sets.filter_map(|(_, set)| set["metadata"]["name"].as_str().map(str::to_owned));
        let gateway = reason.starts_with("a certificate").then(|| "own".to_owned());
        let names: Vec<String> = sets.chain(gateway).chain([name.clone()]).collect();
        for object in objects {
            store(&cluster, object)?;
        }
        match reason {
            "" => controller.passes_again(|| ()),
            _ => until(
                &format!("{what}: {name} is told of {reason}"),
                || told(&cluster, &names).contains(reason),
                || format!("{}\n{}", told(&cluster, &names), controller.log()),
            ),
        }
        if let Some(kind) = ["DNSPolicy", "TLSPolicy"].into_iter().find(|kind| what.contains(kind)) {
            status_says(&cluster, kind, &controller);
        }
        // An Event is written after the pass that it tells of.
        assert_eq!(state(&cluster, &zone), before, "{what}: {}", controller.log());
        let told = told(&cluster, &names);
        assert!(!told.contains("web") && !told.contains("192.0.2.1"), "{what}: {told}");
        cluster.delete(&format!("{plural}/{name}"), "evil")?;
    }
    Ok(())
}

/// A policy of the attacker says in its status what became of the hostname, and nothing of others but their namespace.
fn status_says(cluster: &Cluster, kind: &str, controller: &Controller) {
    let status =
        || cluster.json(&[kind, "own", "-n", "evil"]).map(|policy| policy["status"].to_string()).unwrap_or_default();
    let state = || status() + &controller.log();
    until("the policy has the reason in its status", || status().contains("\"hostname-held\""), state);
    assert!(!status().contains("web") && !status().contains("192.0.2.1"), "{}", status());
}

/// A Route of the victim without a certificate.
fn of_victim(name: &str, hostname: &str) -> Stored {
    let (plural, mut route) = asks("httproutes", "2024-01-01T00:00:00Z", EDGE, hostname, &[]);
    (route["metadata"]["name"], route["metadata"]["namespace"]) = (name.into(), "shop".into());
    for path in ["/spec/parentRefs/0", "/status/parents/0/parentRef"] {
        route.pointer_mut(path).into_iter().for_each(|parent| parent["sectionName"] = "http".into());
    }
    (plural, route)
}

/// The addresses of a name.
fn addresses(zone: &DnsServer, name: &str) -> Vec<String> {
    let all = bed::addresses(zone).into_iter();
    all.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned)).collect()
}

/// A Route without hostnames that is refused holds no name of others: what the victim gives up goes.
fn refused_route(cluster: &Cluster, zone: &DnsServer, controller: &Controller) -> Result<(), Failed> {
    let mut refused = asks("httproutes", OLD, EDGE, "", &[]);
    refused.1["metadata"]["name"] = "refused".into();
    refused.1["status"]["parents"][0]["conditions"][0]["status"] = "False".into();
    store(cluster, refused)?;
    store(cluster, of_victim("gone", "gone.example.org"))?;
    until("the name is there", || !addresses(zone, "gone.example.org").is_empty(), || controller.log());
    cluster.delete("httproute/gone", "shop")?;
    until("the name goes", || addresses(zone, "gone.example.org").is_empty(), || controller.log());
    Ok(())
}

/// With a HostnameGrant a name stays with its namespace, also while that deletes its Route and creates it again.
fn granted(cluster: &Cluster, zone: &DnsServer, controller: &Controller) -> Result<(), Failed> {
    const NAME: &str = "granted.example.org";
    cluster.apply(
        "apiVersion: gatepost.dev/v1alpha1\nkind: HostnameGrant\nmetadata: {name: shop}\n\
         spec: {hostnames: [granted.example.org], namespaces: {selector: {matchLabels: {team: shop}}}}\n",
    )?;
    let mut waits = asks("httproutes", OLD, OWN, NAME, &[]);
    waits.1["metadata"]["name"] = "waits".into();
    store(cluster, waits)?;
    let words = "HostnameGrant/shop decides about `granted.example.org` and does not admit namespace `evil`";
    let said = || told(cluster, &["waits".to_owned()]);
    until("it is told of the grant", || said().contains(words), || said() + &controller.log());
    assert!(!said().contains("`shop`"), "{}", said());
    for _ in 0..2 {
        store(cluster, of_victim("granted", NAME))?;
        let is_there = || addresses(zone, NAME) == ["192.0.2.1"];
        until("the name is there", is_there, || format!("{:?}{}", addresses(zone, NAME), controller.log()));
        cluster.delete("httproute/granted", "shop")?;
        until("the name goes", || addresses(zone, NAME).is_empty(), || controller.log());
        controller.passes_again(|| assert!(addresses(zone, NAME).is_empty()));
    }
    Ok(())
}
