//! Many objects at once: those of a whole namespace that goes, and as many as one cluster may hold.

use std::fmt::Write;
use std::time::Duration;

use gatepost_testkit::servers::DnsServer;
use gatepost_testkit::servers::kube::{Cluster, Setup};
use gatepost_testkit::{Failed, Trial};
use serde_json::{Value, json};

use super::bed::{Controller, addresses, bind, cluster, store_routes, stored_route, trial, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scenario 9: a namespace that goes takes its records and no others", namespace_deleted),
        trial("scenario 51: 5,000 routes with 16 hostnames each, and one of 1.4 MiB, fit into 512 MiB", many_and_large),
        trial("scenario 51: the same fit into 512 MiB when all their names are written", many_written),
    ]
}

/// Routes with so many hostnames each, whose first labels begin with the name of the route.
fn routes(
    namespace: &'static str,
    prefix: &'static str,
    count: usize,
    hostnames: usize,
) -> impl Iterator<Item = Value> {
    (0..count).map(move |number| {
        let names: Vec<String> = (0..hostnames).map(|i| format!("{prefix}{number:04}-{i:02}.example.org")).collect();
        stored_route(namespace, &format!("{prefix}{number:04}"), &names)
    })
}

fn namespace_deleted() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    cluster.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")?;
    // Of 680 names 200 go, which is less than a third.
    store_routes(&cluster, routes("team", "t", 200, 1).chain(routes("shop", "s", 30, 16)))?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    let count = |prefix: &str| addresses(&zone).iter().filter(|line| line.starts_with(prefix)).count();
    until("all are published", || (count("t"), count("s")) == (200, 480), || controller.log());
    delete_namespace(&cluster, "team")?;
    until("the records of the namespace are gone", || count("t") == 0, || controller.log());
    assert_eq!(count("s"), 480, "the others stay");
    let told = |name: &str| controller.number(name);
    until("all are counted", || told("gatepost_steps_total{verb=\"delete\"}") > 199.5, || controller.get("/metrics"));
    assert_eq!(controller.log().matches("\"verb\":\"delete\"").count(), 200, "one line for each");
    assert!(told("gatepost_records") as usize == 480 && told("gatepost_held").abs() < 0.5);
    Ok(())
}

/// What the controller of namespaces does, which does not run here: marked, emptied kind by kind, let go.
pub(crate) fn delete_namespace(cluster: &Cluster, name: &str) -> Result<(), Failed> {
    cluster.kubectl(&["delete", "namespace", name, "--wait=false"])?;
    let folder = format!("/apis/gateway.networking.k8s.io/v1/namespaces/{name}/httproutes");
    cluster.kubectl(&["delete", "--raw", &folder])?;
    let mut live = cluster.json(&["namespace", name])?;
    assert_eq!(live["status"]["phase"], "Terminating");
    live["spec"]["finalizers"] = json!([]);
    let path = format!("/api/v1/namespaces/{name}/finalize");
    cluster.feed(&["replace", "--raw", &path, "-f", "-"], &live.to_string())?;
    Ok(())
}

/// A cluster with so many routes, one of them large, and a zone.
fn crowded() -> Result<(Cluster, DnsServer), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let large = large_route();
    assert!(large.to_string().len() > 1_400_000);
    store_routes(&cluster, routes("shop", "m", 5000, 16).chain([large]))?;
    Ok((cluster, zone))
}

/// It writes every name with its marker, reads all of that again, and follows a change.
fn many_written() -> Result<(), Failed> {
    let (cluster, zone) = crowded()?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--interval", "1h"]);
    let written = || controller.number("gatepost_steps_total{verb=\"create\"}") as i64;
    // It may take its time: this is about memory.
    for _ in 0..120 {
        if written() >= 80_001 {
            break;
        }
        std::thread::sleep(Duration::from_secs(5));
    }
    let count = |end: &str| addresses(&zone).iter().filter(|line| line.ends_with(end)).count();
    assert_eq!((written(), count(" 192.0.2.1")), (80_001, 80_001), "{}", controller.get("/readyz"));
    // However long it thinks, it keeps its Lease meanwhile.
    assert!(controller.number("gatepost_step_failures_total").abs() < 0.5);
    store_routes(&cluster, [stored_route("shop", "m0000", &["changed.example.org".to_owned()])])?;
    // Of the sixteen names of the route none is left, and there is another one.
    until("a change is followed", || count(" 192.0.2.1") == 79_986, || controller.log());
    controller.is_ready();
    fits(&controller);
    Ok(())
}

fn fits(controller: &Controller) {
    let peak = controller.peak_memory();
    assert!(peak < 512 * 1024, "it had {peak} KiB");
}

fn many_and_large() -> Result<(), Failed> {
    let (cluster, zone) = crowded()?;
    // It looks and does not write: the plan holds every name at once, which is the most there can be.
    let controller = Controller::on_bind(&cluster, &zone, &[]);
    until("a pass", || controller.number("gatepost_records") > 80_000.5, || controller.get("/readyz"));
    controller.is_ready();
    let plan = controller.get("/plan.json");
    for name in ["m0000-00.example.org", "m4999-15.example.org", "large.example.org"] {
        assert!(plan.contains(name), "{name} is in the plan");
    }
    fits(&controller);
    Ok(())
}

/// As large as the store takes one: rules full of header matches.
fn large_route() -> Value {
    let mut route = stored_route("shop", "large", &["large.example.org".to_owned()]);
    let header = |i: usize| {
        let mut value = "x".repeat(4000);
        let _ = write!(value, "{i:04}");
        json!({"type": "Exact", "name": format!("h{i}"), "value": value})
    };
    let matches: Vec<Value> =
        (0..22).map(|_| json!({"path": {"type": "PathPrefix", "value": "/"}, "headers": (0..16).map(header).collect::<Vec<_>>()})).collect();
    route["spec"]["rules"] = json!([{"matches": matches}]);
    route
}
