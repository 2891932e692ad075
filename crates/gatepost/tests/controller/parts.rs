//! A pass that compares only what changed: cheap, and as careful as one that compares everything.
//!
//! The provider is to be read whole once in an hour here, which no test waits for. How it is read is counted on the way to
//! the name server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use gatepost_testkit::servers::DnsServer;
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup};
use gatepost_testkit::servers::relay::{Direction, Fate, Relay, is_update};
use gatepost_testkit::{Failed, Trial};

use super::bed::{
    Controller, ZONE, addresses, bind, cluster, route, store_routes, stored_route, trial, until, zone_comes_to,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a change is written without reading the zone again, and hand edits are seen all the same", by_itself),
        trial("a name server that tells no changes is read whole", told_nothing),
        trial("brakes see the whole zone where only what changed is compared", braked),
        trial("a twin that appears between whole reads stops every write", twin_appears),
    ]
}

/// Types of questions: all of a zone, and what changed in it.
const AXFR: u16 = 252;
const IXFR: u16 = 251;

/// How often each was asked.
#[derive(Default)]
struct Counts {
    whole: AtomicUsize,
    changes: AtomicUsize,
    /// Whether questions for changes are cut off.
    is_deaf: AtomicBool,
}

impl Counts {
    fn whole(&self) -> usize {
        self.whole.load(Ordering::Relaxed)
    }

    fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }

    fn judge(&self, way: Direction, message: &[u8]) -> Fate {
        match (way, question(message)) {
            (Direction::There, Some(AXFR)) => _ = self.whole.fetch_add(1, Ordering::Relaxed),
            (Direction::There, Some(IXFR)) => {
                self.changes.fetch_add(1, Ordering::Relaxed);
                if self.is_deaf.load(Ordering::Relaxed) {
                    return Fate::Cut(0);
                }
            }
            _ => {}
        }
        Fate::Pass
    }
}

/// The type that a message asks for.
fn question(message: &[u8]) -> Option<u16> {
    let mut at = 12;
    while *message.get(at).filter(|_| !is_update(message))? != 0 {
        at += 1 + usize::from(message[at]);
    }
    Some(u16::from_be_bytes([*message.get(at + 1)?, *message.get(at + 2)?]))
}

/// A controller behind a relay that counts; it reads the zone whole once in an hour, and when it has to.
fn counted(cluster: &Cluster, zone: &DnsServer) -> Result<(Controller, Arc<Counts>, Relay), Failed> {
    let counts = Arc::new(Counts::default());
    let judge = counts.clone();
    let relay = Relay::start(zone.address, move |way, message| judge.judge(way, message))?;
    let words = ["--policy", "sync", "--interval", "1h"];
    Ok((Controller::at(&cluster.kubeconfig(ADMIN), relay.address, ZONE, &words), counts, relay))
}

/// Waits until no pass follows another.
fn rests(controller: &Controller) {
    let passes = || controller.number("gatepost_passes_total");
    let is_quiet = || {
        let before = passes();
        // A fixed time: that nothing follows has no event. A pass that wrote is followed by another after one second.
        std::thread::sleep(Duration::from_secs(3));
        (passes() - before).abs() < 0.5
    };
    until("it rests", is_quiet, || controller.log());
}

fn at(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|label| format!("{label}.example.org 192.0.2.1")).collect()
}

fn comes_to(zone: &DnsServer, labels: &[&str], controller: &Controller) {
    let expected = at(labels);
    zone_comes_to(zone, &expected.iter().map(String::as_str).collect::<Vec<_>>(), &[controller]);
}

fn by_itself() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    for name in ["a", "b", "c"] {
        route(&cluster, name, &format!("{name}.example.org"))?;
    }
    let (controller, counts, _relay) = counted(&cluster, &zone)?;
    comes_to(&zone, &["a", "b", "c"], &controller);
    rests(&controller);
    let (whole, changes) = (counts.whole(), counts.changes());
    route(&cluster, "d", "d.example.org")?;
    comes_to(&zone, &["a", "b", "c", "d"], &controller);
    cluster.delete("httproute/a", "shop")?;
    comes_to(&zone, &["b", "c", "d"], &controller);
    // Somebody changes a record of ours and takes a marker away, and makes a name of their own.
    zone.edit(ZONE, &["update delete b.example.org A", "update add b.example.org 300 A 203.0.113.9"])?;
    zone.edit(ZONE, &["update delete a-c.example.org TXT", "update add hand.example.org 60 A 203.0.113.1"])?;
    route(&cluster, "e", "e.example.org")?;
    route(&cluster, "hand", "hand.example.org")?;
    let expected = [at(&["b", "c", "d", "e"]), vec!["hand.example.org 203.0.113.1".to_owned()]].concat();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    zone_comes_to(&zone, &expected, &[&controller]);
    // What was theirs or became nobody's stays, though the routes go.
    cluster.delete("httproute/hand", "shop")?;
    cluster.delete("httproute/c", "shop")?;
    route(&cluster, "f", "f.example.org")?;
    let expected = [at(&["b", "c", "d", "e", "f"]), vec!["hand.example.org 203.0.113.1".to_owned()]].concat();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    zone_comes_to(&zone, &expected, &[&controller]);
    rests(&controller);
    assert_eq!(addresses(&zone), expected, "{}", controller.log());
    assert_eq!(counts.whole(), whole, "the zone was not read again: {}", controller.log());
    assert!(counts.changes() > changes);
    Ok(())
}

fn told_nothing() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let (controller, counts, _relay) = counted(&cluster, &zone)?;
    counts.is_deaf.store(true, Ordering::Relaxed);
    let mut labels = Vec::new();
    for name in ["a", "b", "c"] {
        route(&cluster, name, &format!("{name}.example.org"))?;
        labels.push(name);
        comes_to(&zone, &labels, &controller);
    }
    assert!(counts.whole() >= 3, "{}", counts.whole());
    controller.is_ready();
    Ok(())
}

fn braked() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let stored = |i: usize| stored_route("shop", &format!("r{i:02}"), &[format!("r{i:02}.example.org")]);
    store_routes(&cluster, (0..30).map(stored))?;
    let (controller, counts, _relay) = counted(&cluster, &zone)?;
    until("all are there", || addresses(&zone).len() == 30, || controller.log());
    rests(&controller);
    let whole = counts.whole();
    // Nine may go, which is less than a third; one more by itself would be one too many.
    for i in 0..9 {
        cluster.delete(&format!("httproute/r{i:02}"), "shop")?;
    }
    until("nine are gone", || addresses(&zone).len() == 21, || controller.log());
    cluster.delete("httproute/r09", "shop")?;
    until("it is held", || controller.number("gatepost_unconfirmed_deletes") > 0.5, || controller.log());
    route(&cluster, "x", "x.example.org")?;
    until("another name is written", || addresses(&zone).len() == 22, || controller.log());
    assert!(addresses(&zone).contains(&"r09.example.org 192.0.2.1".to_owned()));
    assert_eq!(counts.whole(), whole, "all of this without reading the zone again: {}", controller.log());
    Ok(())
}

fn twin_appears() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "a", "a.example.org")?;
    let (controller, _counts, _relay) = counted(&cluster, &zone)?;
    comes_to(&zone, &["a"], &controller);
    rests(&controller);
    // What another cluster with our owner id would write.
    let text = "heritage=external-dns,external-dns/owner=default,external-dns/gatepost=01234567.0123456789abcdef";
    let marker = format!("update add a-z.example.org 60 TXT \"{text}\"");
    zone.edit(ZONE, &["update add z.example.org 60 A 192.0.2.1", &marker])?;
    route(&cluster, "b", "b.example.org")?;
    controller.says("owner-twin");
    // A pass that has seen another route writes nothing either.
    route(&cluster, "c", "c.example.org")?;
    until("c is seen", || controller.get("/plan.json").contains("c.example.org"), || controller.log());
    assert_eq!(addresses(&zone), ["a.example.org 192.0.2.1", "z.example.org 192.0.2.1"], "{}", controller.log());
    Ok(())
}
