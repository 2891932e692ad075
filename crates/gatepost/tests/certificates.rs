//! Certificates as a user gets them: manifests in, key pairs out, through a DNS server of our own and through BIND.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use gatepost_testkit::Trial;

#[path = "certificates/acme.rs"]
mod acme;
#[path = "certificates/authority.rs"]
mod authority;
#[path = "certificates/bed.rs"]
mod bed;
#[path = "certificates/coverage.rs"]
mod coverage;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "provider/running.rs"]
mod running;

fn main() {
    let trials: Vec<Trial> = authority::trials().into_iter().chain(coverage::trials()).chain(acme::trials()).collect();
    gatepost_testkit::run(trials)
}
