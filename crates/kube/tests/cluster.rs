//! Watches and lists on a real API server.
// A test ends where something is not as it must be.
#![allow(clippy::unwrap_used)]

mod cluster {
    pub(crate) mod faults;
    pub(crate) mod mirrored;
    pub(crate) mod proxied;
    pub(crate) mod versions;
    pub(crate) mod views;
    pub(crate) mod watched;
}

fn main() {
    use cluster::{faults, mirrored, proxied, versions, views};
    let all = [views::trials(), versions::trials(), faults::trials(), proxied::trials(), mirrored::trials()];
    gatepost_testkit::run(all.into_iter().flatten().collect())
}
