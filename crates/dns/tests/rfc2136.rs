//! The RFC 2136 provider against real servers: BIND, Knot and PowerDNS, each started once, each test in a zone of its own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, OnceLock};

use gatepost_testkit::servers::{DnsServer, Kind, Primary};
use gatepost_testkit::{Failed, Trial};

#[path = "rfc2136/bed.rs"]
mod bed;
#[path = "rfc2136/faults.rs"]
mod faults;
#[path = "rfc2136/keys.rs"]
mod keys;
#[path = "rfc2136/proxy.rs"]
mod proxy;
#[path = "rfc2136/reads.rs"]
mod reads;
#[path = "rfc2136/relays.rs"]
mod relays;
#[path = "rfc2136/resolves.rs"]
mod resolves;
#[path = "rfc2136/since.rs"]
mod since;
#[path = "rfc2136/writes.rs"]
mod writes;

use bed::{Bed, Scenario};

fn main() {
    let all = [reads::ALL, since::ALL, writes::ALL, keys::ALL, faults::ALL, relays::ALL, resolves::ALL].concat();
    let trials = Kind::ALL.into_iter().flat_map(|kind| trials(kind, &all)).collect();
    gatepost_testkit::run(trials)
}

fn trials(kind: Kind, all: &[Scenario]) -> Vec<Trial> {
    let fitting: Vec<Scenario> = all.iter().copied().filter(|scenario| (scenario.fits)(kind)).collect();
    let shared = Arc::new(Shared { server: OnceLock::new(), kind, zones: fitting.clone() });
    let trial = |scenario: Scenario| {
        let shared = shared.clone();
        let name = format!("{}::{}", kind.name(), scenario.name);
        Trial::test(name, move || shared.run(scenario)).with_ignored_flag(!kind.is_wanted())
    };
    fitting.into_iter().map(trial).collect()
}

/// One server for all tests with a zone of their own.
struct Shared {
    server: OnceLock<Result<DnsServer, String>>,
    kind: Kind,
    zones: Vec<Scenario>,
}

impl Shared {
    fn run(&self, scenario: Scenario) -> Result<(), Failed> {
        let own;
        let server = if scenario.own_server {
            own = self.kind.start(&primary(&[scenario])).map_err(|error| error.to_string())?;
            &own
        } else {
            let started = || self.kind.start(&primary(&self.zones)).map_err(|error| error.to_string());
            self.server.get_or_init(started).as_ref().map_err(String::clone)?
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on((scenario.run)(Bed::new(server, scenario)));
        Ok(())
    }
}

fn primary(scenarios: &[Scenario]) -> Primary {
    let shared = scenarios.iter().filter(|scenario| scenarios.len() == 1 || !scenario.own_server);
    let zones = shared.map(|scenario| (scenario.zone(), bed::zone_text(scenario))).collect();
    let refused = scenarios.iter().map(|scenario| format!("refused.{}", scenario.zone())).collect();
    let open = scenarios.iter().filter(|scenario| scenario.open).map(Scenario::zone).collect();
    Primary { zones, refused, open, tls: None }
}
