//! Certificates from a real ACME server, proven by a real name server; and a server between the two that lies.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gatepost_testkit::{Trial, run};

#[path = "acme/bed.rs"]
mod bed;
#[path = "acme/faults.rs"]
mod faults;
#[path = "acme/issuance.rs"]
mod issuance;
#[path = "acme/proxy.rs"]
mod proxy;

fn main() {
    let trials: Vec<Trial> = issuance::trials().into_iter().chain(faults::trials()).collect();
    run(trials)
}
