//! Leaders that change while an order is open.

use std::time::Duration;

use gatepost_testkit::servers::kube::Setup;
use gatepost_testkit::servers::pebble::{self, Pebble};
use gatepost_testkit::{Failed, Trial};

use super::bed::{challenges, cluster, comes_to, leaf, logs, no_challenge_is_left, on_pebble};
use crate::controller::bed::{bind, route, trial, until};

pub(crate) fn trials() -> Vec<Trial> {
    if !pebble::is_wanted() {
        return Vec::new();
    }
    vec![trial("a leader that is paused within an order is taken over from, and writes nothing when it wakes", paused)]
}

fn paused() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let pebble = Pebble::start(pebble::Setup { dns: Some(zone.address), slowness: Some(6), ..Default::default() })?;
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
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(leaf(&cluster).map(|leaf| leaf.serial), Some(made.serial));
    assert!(notes()["metadata"]["annotations"]["gatepost.dev/term"].to_string().contains("second"));
    assert!(challenges(&zone).is_empty(), "{:?}", challenges(&zone));
    assert_eq!((pebble.orders(), pebble.certificates()), (1, 1), "{}", logs(&[&first, &second]));
    Ok(())
}
