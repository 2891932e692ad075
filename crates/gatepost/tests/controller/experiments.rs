//! What operators do on bad days, tried on real servers: what was seen stands at each, and stays so.

use std::collections::BTreeSet;

use gatepost_testkit::query_loop::QueryLoop;
use gatepost_testkit::servers::DnsServer;
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup};
use gatepost_testkit::{Failed, Trial};

use super::bed::{
    Controller, ZONE, accept, addresses, bind, cluster, route, store_routes, stored_route, trial, until, zone_comes_to,
    zone_stays,
};
use super::scale::delete_namespace;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("experiment: a zone is set back to what it was, under a live leader", zone_set_back),
        trial("experiment: the Lease is deleted while writing is frozen", lease_deleted),
        trial("experiment: the address of a Gateway with 500 names turns to 127.0.0.1", loopback),
        trial("experiment: a namespace is made anew with the same routes while the leader dies", namespace_made_anew),
    ]
}

fn names(prefix: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("{prefix}{number:03}.{ZONE}")).collect()
}

fn store(cluster: &Cluster, namespace: &str, names: &[String]) -> Result<(), Failed> {
    let name = |hostname: &String| hostname.split('.').next().unwrap_or_default().to_owned();
    store_routes(
        cluster,
        names.iter().map(|hostname| stored_route(namespace, &name(hostname), std::slice::from_ref(hostname))),
    )
}

/// Addresses and markers of the old zone come back, the fencing record of then included. Seen: the leader reads the zone again,
/// puts its fence back, deletes what nobody asks for any more, and makes what is missing; every other name is answered throughout.
fn zone_set_back() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let all = names("n", 0..24);
    store(&cluster, "shop", &all)?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--lease-duration", "4s"]);
    until("all are there", || addresses(&zone).len() == 24, || controller.log());
    let yesterday = zone.dump(ZONE)?;
    for name in ["n000", "n001", "n002"] {
        cluster.delete(&format!("httproute/{name}"), "shop")?;
    }
    route(&cluster, "late", "late.example.org")?;
    let wanted: Vec<String> = names("n", 3..24).iter().chain([&"late.example.org".to_owned()]).cloned().collect();
    let mut lines: Vec<String> = wanted.iter().map(|name| format!("{name} 192.0.2.1")).collect();
    lines.sort();
    let is_wanted = || addresses(&zone) == lines;
    until("the zone has today's names", is_wanted, || controller.log());
    let asking = QueryLoop::start(zone.address, &names("n", 3..24));
    set_to(&zone, &yesterday)?;
    let deletes = || controller.log().matches("\"name\":\"n000.example.org\",\"verb\":\"delete\"").count();
    until(
        "today is back",
        || deletes() == 2 && is_wanted(),
        || format!("{:?}\n{}", addresses(&zone), controller.log()),
    );
    assert!(asking.failures().is_empty(), "{:?}", asking.failures());
    controller.is_ready();
    Ok(())
}

/// Makes a zone what it was, in one update.
fn set_to(zone: &DnsServer, lines: &[String]) -> Result<(), Failed> {
    let key = |line: &String| line.split(' ').take(4).map(str::to_owned).collect::<Vec<_>>();
    let is_apex = |line: &&String| line.starts_with(&format!("{ZONE}. ")) || line.starts_with(&format!("ns.{ZONE}. "));
    let now = zone.dump(ZONE)?;
    let sets: BTreeSet<(String, String)> =
        now.iter().filter(|line| !is_apex(line)).map(key).map(|words| (words[0].clone(), words[3].clone())).collect();
    let deletes = sets.into_iter().map(|(name, kind)| format!("update delete {name} {kind}"));
    let adds = lines.iter().filter(|line| !is_apex(line)).map(|line| format!("update add {line}"));
    let edits: Vec<String> = deletes.chain(adds).collect();
    Ok(zone.edit(ZONE, &edits.iter().map(String::as_str).collect::<Vec<_>>())?)
}

/// Seen: a freeze by file outlives the Lease, which is made anew; one by annotation is a part of the Lease and goes with it.
fn lease_deleted() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let file = cluster.folder().join("freeze");
    let words = ["--policy", "sync", "--lease-duration", "4s", "--freeze-file", file.to_str().unwrap()];
    let controller = Controller::on_bind(&cluster, &zone, &words);
    route(&cluster, "a", "a.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    std::fs::write(&file, "")?;
    controller.says("writing is frozen");
    let lease = || cluster.json(&["lease", "gatepost", "-n", "gatepost"]).ok();
    let anew = || -> Result<(), Failed> {
        let before = lease().map(|lease| lease["metadata"]["uid"].to_string());
        cluster.kubectl(&["delete", "lease", "gatepost", "-n", "gatepost"])?;
        let is_new = || lease().is_some_and(|lease| Some(lease["metadata"]["uid"].to_string()) != before);
        until("the Lease is made anew", is_new, || controller.log());
        Ok(())
    };
    anew()?;
    route(&cluster, "b", "b.example.org")?;
    zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    cluster.kubectl(&["annotate", "lease", "gatepost", "-n", "gatepost", "gatepost.dev/freeze=by hand"])?;
    controller.passes_again(|| ());
    std::fs::remove_file(&file)?;
    until("the annotation is seen", || controller.get("/readyz").contains("by hand"), || controller.log());
    zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    anew()?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&controller]);
    Ok(())
}

/// Seen: names that others can reach wait for a word before they lead whoever asks to itself, and no name changes before.
fn loopback() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let all = names("n", 0..500);
    store(&cluster, "shop", &all)?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    let with = |address: &str| addresses(&zone).iter().filter(|line| line.ends_with(address)).count();
    until("all are there", || with(" 192.0.2.1") == 500, || controller.log());
    accept(&cluster, "edge", &["127.0.0.1"])?;
    let told = || controller.get("/readyz");
    until("it waits for a word", || told().contains("gatepost.dev/confirm-deletes="), || told() + &controller.log());
    controller.passes_again(|| assert_eq!(with(" 192.0.2.1"), 500, "{}", controller.log()));
    accept(&cluster, "edge", &["192.0.2.1"])?;
    until("nothing is held", || !told().contains("gatepost.dev/confirm-deletes="), || told() + &controller.log());
    assert_eq!(with(" 192.0.2.1"), 500);
    Ok(())
}

/// Seen: names of other namespaces are answered throughout, and the names of the new routes are there in the end.
fn namespace_made_anew() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let team = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n";
    cluster.apply(team)?;
    let (theirs, others) = (names("t", 0..20), names("s", 0..60));
    store(&cluster, "team", &theirs)?;
    store(&cluster, "shop", &others)?;
    let start = |identity: &str| {
        let words = ["--policy", "sync", "--lease-duration", "4s", "--identity", identity];
        Controller::on_bind_as(&cluster.kubeconfig(ADMIN), &zone, &words)
    };
    let first = start("first");
    until("all are there", || addresses(&zone).len() == 80, || first.log());
    let second = start("second");
    let asking = QueryLoop::start(zone.address, &others);
    delete_namespace(&cluster, "team")?;
    first.kill();
    cluster.apply(team)?;
    store(&cluster, "team", &theirs)?;
    until(
        "all are there again",
        || addresses(&zone).len() == 80,
        || format!("{:?}\n{}", addresses(&zone), second.log()),
    );
    second.passes_again(|| ());
    assert_eq!(addresses(&zone).len(), 80, "{}", second.log());
    assert!(asking.failures().is_empty(), "{:?}", asking.failures());
    Ok(())
}
