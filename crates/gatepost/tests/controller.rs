//! `gatepost controller` and the read commands on a real API server, with BIND or the embedded DNS server behind them.
//!
//! Truth is read from the servers: the zone from BIND, objects and the audit log from the API server. The Gateway
//! implementation is played by the test: it writes status, blinks included.
// A test ends where something is not as it must be.
#![allow(clippy::unwrap_used)]

mod controller {
    pub(crate) mod admission;
    #[allow(dead_code, reason = "shared with other tests")]
    pub(crate) mod bed;
    pub(crate) mod cert_manager;
    pub(crate) mod chart;
    pub(crate) mod ends;
    pub(crate) mod experiments;
    pub(crate) mod follows;
    pub(crate) mod health;
    pub(crate) mod leaders;
    pub(crate) mod outages;
    pub(crate) mod ownership;
    pub(crate) mod page;
    pub(crate) mod parts;
    pub(crate) mod reading;
    pub(crate) mod scale;
    pub(crate) mod several;
    pub(crate) mod sources;
}

fn main() {
    use controller::{
        admission, cert_manager, chart, ends, experiments, follows, health, leaders, outages, ownership, page, parts,
        reading, scale, several, sources,
    };
    let first = [ends::trials(), follows::trials(), parts::trials(), reading::trials(), sources::trials()];
    let second = [leaders::trials(), outages::trials(), ownership::trials(), scale::trials(), page::trials()];
    let third = [admission::trials(), chart::trials(), cert_manager::trials(), experiments::trials(), health::trials()];
    let fourth = [several::trials()];
    let all = first.into_iter().chain(second).chain(third).chain(fourth);
    gatepost_testkit::run(all.flatten().collect())
}
