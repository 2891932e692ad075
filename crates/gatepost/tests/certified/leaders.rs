//! Leaders that change while an order is open.

use gatepost_testkit::servers::free_address;
use gatepost_testkit::servers::kube::{ADMIN, Setup};
use gatepost_testkit::servers::pebble::{self, Pebble};
use gatepost_testkit::{Failed, Trial};

use super::bed::{WORDS, challenges, cluster, comes_to, leaf, logs, no_challenge_is_left, on_pebble};
use super::files::ask;
use crate::controller::bed::{Controller, bind, route, trial, until};

pub(crate) fn trials() -> Vec<Trial> {
    if !pebble::is_wanted() {
        return Vec::new();
    }
    vec![
        trial("a leader that is paused within an order is taken over from, and writes nothing when it wakes", paused),
        trial("challenges are answered by the embedded DNS server of every replica", everywhere),
    ]
}

fn paused() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let pebble =
        Pebble::start(pebble::PebbleSetup { dns: Some(zone.address), slowness: Some(6), ..Default::default() })?;
    route(&cluster, "www", "www.example.org")?;
    let first = on_pebble(&cluster, &zone, &pebble, &["--identity", "first"]);
    first.says("\"leading\"");
    let second = on_pebble(&cluster, &zone, &pebble, &["--identity", "second"]);
    second.says("not leading");
    until("a value is published", || !challenges(&zone).is_empty(), || logs(&[&first, &second]));
    first.signal("STOP");
    let made = comes_to(&cluster, &["www.example.org"], &[&second]);
    no_challenge_is_left(&zone, &[&second]);
    let notes = || cluster.json(&["secret", "gatepost-certificates", "-n", "gatepost"]).unwrap();
    let before = notes();
    assert!(before["metadata"]["annotations"]["gatepost.dev/term"].to_string().contains("second"), "{before}");
    first.signal("CONT");
    first.says("not leading");
    first.passes_again(|| ());
    assert_eq!(leaf(&cluster).map(|leaf| leaf.serial), Some(made.serial));
    assert!(notes()["metadata"]["annotations"]["gatepost.dev/term"].to_string().contains("second"));
    assert!(challenges(&zone).is_empty(), "{:?}", challenges(&zone));
    assert_eq!((pebble.orders(), pebble.certificates()), (1, 1), "{}", logs(&[&first, &second]));
    Ok(())
}

fn everywhere() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    // This server never comes to look at the values, so the order stays open.
    let pebble = Pebble::start(pebble::PebbleSetup {
        dns: Some(free_address()?),
        slowness: pebble::NEVER,
        ..Default::default()
    })?;
    route(&cluster, "www", "www.example.org")?;
    let root = pebble.root_file().display().to_string();
    let own = ["--provider", "embedded", "--zone", "example.org", "--issuer", "acme", "--acme-ca-file", &root];
    let start = |name: &str| {
        let more = ["--acme-directory", &pebble.directory(), "--identity", name];
        Controller::start(&cluster.kubeconfig(ADMIN), &[&own[..], &WORDS, &more].concat())
    };
    let first = start("first");
    first.says("\"leading\"");
    let second = start("second");
    second.says("not leading");
    let count = |replica: &Controller| ask(replica.dns.unwrap(), "_acme-challenge.www.example.org", 16).map(|(_, n)| n);
    let state = || logs(&[&first, &second]);
    until("both answer", || count(&first) == Some(1) && count(&second) == Some(1), state);
    cluster.delete("httproute/www", "shop")?;
    until("neither answers any more", || count(&first) == Some(0) && count(&second) == Some(0), state);
    Ok(())
}
