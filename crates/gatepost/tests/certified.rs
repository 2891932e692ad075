//! Certificates of `gatepost controller` in Secrets of a real API server: from our own authority behind the embedded DNS
//! server, and from Pebble, proven through BIND.
//!
//! Truth is read from the servers: Secrets, status and Events from the API server, values from the zone, orders and
//! certificates from Pebble's log. The Gateway implementation is played by the test.
// A test ends where something is not as it must be.
#![allow(clippy::unwrap_used)]

mod certified {
    pub(crate) mod acme;
    pub(crate) mod attacks;
    pub(crate) mod authority;
    pub(crate) mod bed;
    #[allow(dead_code, reason = "shared with other tests")]
    #[path = "../certificates/bed.rs"]
    pub(crate) mod files;
    pub(crate) mod foreign;
    pub(crate) mod leaders;
    #[allow(dead_code, reason = "shared with other tests")]
    #[path = "../../../tls/tests/acme/proxy.rs"]
    pub(crate) mod proxy;
    pub(crate) mod rights;
}
mod controller {
    #[allow(dead_code, reason = "shared with other tests")]
    pub(crate) mod bed;
}

fn main() {
    use certified::{acme, attacks, authority, foreign, leaders, rights};
    let all = [
        authority::trials(),
        foreign::trials(),
        acme::trials(),
        leaders::trials(),
        rights::trials(),
        attacks::trials(),
    ];
    gatepost_testkit::run(all.into_iter().flatten().collect())
}
