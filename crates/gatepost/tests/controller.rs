//! `gatepost controller` and the read commands on a real API server, with BIND or the embedded DNS server behind them.
//!
//! Truth is read from the servers: the zone from BIND, objects and the audit log from the API server. The Gateway
//! implementation is played by the test: it writes status, blinks included.
// A test ends where something is not as it must be.
#![allow(clippy::unwrap_used)]

mod controller {
    pub(crate) mod bed;
    pub(crate) mod cert_manager;
    pub(crate) mod ends;
    pub(crate) mod leaders;
    pub(crate) mod ownership;
    pub(crate) mod reading;
    pub(crate) mod sources;
}

fn main() {
    use controller::{cert_manager, ends, leaders, ownership, reading, sources};
    let all = [
        ends::trials(),
        reading::trials(),
        sources::trials(),
        leaders::trials(),
        ownership::trials(),
        cert_manager::trials(),
    ];
    gatepost_testkit::run(all.into_iter().flatten().collect())
}
