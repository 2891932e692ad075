//! Health checks of a controller: probes of real servers, status and Events of the policy, and what the next leader knows.

use std::net::{IpAddr, Ipv4Addr};

use gatepost_testkit::query_loop::QueryLoop;
use gatepost_testkit::servers::backend::{Backend, BackendAnswer};
use gatepost_testkit::servers::kube::{Cluster, Setup};
use gatepost_testkit::{Failed, Trial};
use serde_json::Value;

use super::bed::{Controller, accept, addresses, bind, cluster, route, trial, until, zone_comes_to};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("an address that fails leaves, the next leader knows it, and without the policy it returns", leaves)]
}

const BAD: BackendAnswer = BackendAnswer::Status(500);

fn backend(last: u8, port: u16) -> Result<Backend, Failed> {
    Ok(Backend::start(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), port, BackendAnswer::Status(200))?)
}

fn policy(port: u16) -> String {
    format!(
        "\
apiVersion: gatepost.dev/v1alpha1
kind: DNSPolicy
metadata: {{namespace: infra, name: dns}}
spec:
  targetRef: {{kind: Gateway, name: edge}}
  allowWildcardHosts: false
  healthCheck: {{protocol: HTTP, port: {port}, interval: 5s, timeout: 2s, failureThreshold: 2}}
"
    )
}

fn status(cluster: &Cluster) -> Value {
    let policy = cluster.json(&["dnspolicy.gatepost.dev", "dns", "-n", "infra"]).unwrap_or_default();
    policy["status"].clone()
}

fn healthy(status: &Value) -> String {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == "SubResourcesHealthy");
    found.and_then(|condition| Some(condition["reason"].as_str()?.to_owned())).unwrap_or_default()
}

fn leaves() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let one = backend(31, 0)?;
    let _two = backend(32, one.address.port())?;
    accept(&cluster, "edge", &["127.0.0.31", "127.0.0.32"])?;
    cluster.apply(&policy(one.address.port()))?;
    route(&cluster, "a", "a.example.org")?;
    let words = ["--policy", "sync", "--lease-duration", "6s", "--allow-inward-targets"];
    let first = Controller::on_bind(&cluster, &zone, &[&words[..], &["--identity", "first"]].concat());
    zone_comes_to(&zone, &["a.example.org 127.0.0.31", "a.example.org 127.0.0.32"], &[&first]);
    let queries = QueryLoop::start(zone.address, &["a.example.org".to_owned()]);
    let told = |reason: &str| healthy(&status(&cluster)) == reason;
    until("all are healthy", || told("AllHealthy"), || format!("{}\n{}", status(&cluster), first.log()));

    one.answer(BAD);
    zone_comes_to(&zone, &["a.example.org 127.0.0.32"], &[&first]);
    assert_eq!(one.answered(&BAD), 2, "after exactly as many failures as the threshold says");
    until("it is told", || told("SomeUnhealthy"), || format!("{}\n{}", status(&cluster), first.log()));
    let entry = &status(&cluster)["addresses"][0];
    assert_eq!((&entry["address"], &entry["state"]), (&"127.0.0.31".into(), &"Unhealthy".into()), "{entry}");
    assert!(entry["published"] == false && entry["since"].is_string(), "{entry}");
    assert!(entry["error"].as_str().is_some_and(|error| error.ends_with("status 500, expected 200-399")), "{entry}");
    let events = || cluster.kubectl(&["get", "events", "-n", "infra", "-o", "yaml"]).unwrap_or_default();
    until("an Event tells it", || events().contains("AddressUnhealthy"), events);

    let second = Controller::on_bind(&cluster, &zone, &[&words[..], &["--identity", "second"]].concat());
    second.says("not leading");
    first.kill();
    route(&cluster, "b", "b.example.org")?;
    let known = ["a.example.org 127.0.0.32", "b.example.org 127.0.0.31", "b.example.org 127.0.0.32"];
    let has_b = || addresses(&zone).iter().any(|line| line.starts_with("b."));
    until("the next leader writes", has_b, || second.log());
    assert_eq!(addresses(&zone), known, "it knows what the one before knew, and publishes what it does not know");

    cluster.kubectl(&["delete", "dnspolicy.gatepost.dev", "dns", "-n", "infra"])?;
    let all = ["a.example.org 127.0.0.31", "a.example.org 127.0.0.32", known[1], known[2]];
    zone_comes_to(&zone, &all, &[&second]);
    assert_eq!(queries.failures(), [] as [&str; 0], "a query was not answered with an address");
    Ok(())
}
