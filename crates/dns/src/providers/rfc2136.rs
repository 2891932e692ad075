//! Zones on a server that takes dynamic updates (RFC 2136): BIND, Knot, PowerDNS, Windows.
//!
//! A zone is read by a complete transfer, every message of it verified, and followed by the differences that the server
//! keeps. Every change carries its precondition, so that a hand edit between read and write is never overwritten. Record and
//! marker travel in one message, which a server carries out whole or not at all. Several servers are tried in order; every
//! attempt is signed anew.
//!
//! Nothing here decides what to write, and nothing here reads from one server's half of a zone.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gatepost_core::model::Str;
use gatepost_core::publication::RecordType;

use crate::provider::data::{self, WireName};
use crate::provider::{Call, Capabilities, ChangesSince, Provider, ProviderError, ProviderProblem, Result};
use gatepost_core::plan::{self, PlanStep, ZoneContent};

mod answer;
mod batch;
mod connection;
mod key;
mod message;
mod settings;
mod signing;
mod since;
mod tls;
mod transfer;
mod update;

use connection::ServerTransport;
pub use key::KeyConfig;
pub use settings::{KIND, Rfc2136Config};
use signing::Signer;
pub use tls::Authority;
use tls::Tls;

/// The port of DNS.
pub const DEFAULT_PORT: u16 = 53;

/// The TTL of records for which nobody asked for one.
const USUAL_TTL: u32 = 300;

/// The time as it is signed, in seconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The provider.
pub struct Rfc2136 {
    hosts: Vec<String>,
    zones: Vec<ConfiguredZone>,
    min_ttl: u32,
    transport: ServerTransport,
    signer: Signer,
    /// The server that answered last.
    current: AtomicUsize,
}

#[derive(Clone, Debug)]
struct ConfiguredZone {
    text: Str,
    wire: WireName,
}

impl Rfc2136 {
    /// A provider with these settings; nothing is asked of the network yet.
    pub fn new(config: Rfc2136Config) -> Result<Rfc2136> {
        if config.hosts.is_empty() {
            return Err(ProviderError::settings("rfc2136 needs a server: set --rfc2136-host"));
        }
        if config.zones.is_empty() {
            return Err(ProviderError::settings("rfc2136 needs a zone: set --rfc2136-zone"));
        }
        let zones: Result<Vec<_>> = config.zones.iter().map(|zone| ConfiguredZone::parse(zone)).collect();
        let hosts = config.hosts.iter().map(|host| with_port(host, config.port)).collect();
        let signer = Signer::new(config.key.as_ref(), config.insecure, config.clock)?;
        let tls = config.tls.as_ref().map(Tls::new).transpose()?;
        let transport = ServerTransport { patience: config.timeout, tls };
        let (min_ttl, current) = (config.min_ttl, AtomicUsize::new(0));
        Ok(Rfc2136 { hosts, zones: zones?, min_ttl, transport, signer, current })
    }

    fn zone(&self, name: &str) -> Result<&ConfiguredZone> {
        let found = self.zones.iter().find(|zone| zone.text.eq_ignore_ascii_case(name.trim_end_matches('.')));
        let unknown = || ProviderError::settings(format!("`{name}` is not among the zones of --rfc2136-zone"));
        found.ok_or_else(unknown)
    }

    /// The servers, the one that answered last first.
    fn servers(&self) -> impl Iterator<Item = (usize, &str)> {
        let start = self.current.load(Ordering::Relaxed) % self.hosts.len();
        let order = (start..self.hosts.len()).chain(0..start);
        order.map(|at| (at, self.hosts[at].as_str()))
    }

    fn answered(&self, server: usize) {
        self.current.store(server, Ordering::Relaxed);
    }

    async fn read_zone(&self, name: &str) -> Result<ZoneContent> {
        let zone = self.zone(name)?;
        let mut failure = ProviderError::settings("rfc2136 has no server");
        for (at, host) in self.servers() {
            match transfer::read(&self.transport, host, &zone.wire, &self.signer).await {
                Ok(content) => {
                    self.answered(at);
                    return Ok(content);
                }
                Err(error) => failure = more_telling(failure, error.at(host).zone(&zone.text)),
            }
        }
        Err(failure)
    }

    /// Asks the server that answered last; another one may have another history.
    async fn changes(&self, name: &str, epoch: &str) -> Result<ChangesSince> {
        let zone = self.zone(name)?;
        let (Ok(serial), Some((_, host))) = (epoch.parse(), self.servers().next()) else {
            return Ok(ChangesSince::Unknown);
        };
        let asked = since::read(&self.transport, host, &zone.wire, serial, &self.signer).await;
        asked.map_err(|error| error.at(host).zone(&zone.text))
    }
}

impl Provider for Rfc2136 {
    fn capabilities(&self) -> Capabilities {
        let plan = plan::Capabilities {
            is_atomic: true,
            has_aliases: false,
            has_properties: false,
            has_set_identifiers: false,
            min_ttl: self.min_ttl,
        };
        const TYPES: [RecordType; 4] = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
        Capabilities { plan, preconditions: true, types: &TYPES }
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        Box::pin(async { Ok(self.zones.iter().map(|zone| zone.text.clone()).collect()) })
    }

    fn read<'a>(&'a self, zone: &'a str) -> Call<'a, Result<ZoneContent>> {
        Box::pin(self.read_zone(zone))
    }

    fn since<'a>(&'a self, zone: &'a str, epoch: &'a str) -> Call<'a, Result<ChangesSince>> {
        Box::pin(self.changes(zone, epoch))
    }

    fn write<'a>(&'a self, zone: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
        Box::pin(self.write_steps(zone, steps))
    }
}

impl ConfiguredZone {
    fn parse(text: &str) -> Result<ConfiguredZone> {
        let broken = |cause| ProviderError::settings(format!("--rfc2136-zone: {cause}"));
        let wire = data::name(text).map_err(broken)?;
        Ok(ConfiguredZone { text: data::name_text(&wire).to_ascii_lowercase().into(), wire })
    }
}

impl fmt::Debug for Rfc2136 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rfc2136").field("hosts", &self.hosts).field("zones", &self.zones).finish_non_exhaustive()
    }
}

/// Of two failures the one that says more than "not reached"; the later one otherwise.
fn more_telling(first: ProviderError, second: ProviderError) -> ProviderError {
    let is_dumb = |error: &ProviderError| matches!(error.problem, ProviderProblem::Unreachable(_));
    let is_none = matches!(first.problem, ProviderProblem::Settings(_));
    if is_dumb(&second) && !is_dumb(&first) && !is_none { first } else { second }
}

/// The host with a port: `ns1`, `192.0.2.1:5353`, `2001:db8::1`, `[2001:db8::1]:5353`.
pub fn with_port(host: &str, port: u16) -> String {
    let is_bare_v6 = host.parse::<std::net::Ipv6Addr>().is_ok();
    let ends_in_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match host {
        v6 if is_bare_v6 => format!("[{v6}]:{port}"),
        whole if ends_in_port => whole.to_owned(),
        name => format!("{name}:{port}"),
    }
}

fn system_time() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_a_port() {
        let rows = [
            ("ns1.example", "ns1.example:53"),
            ("192.0.2.1", "192.0.2.1:53"),
            ("192.0.2.1:5353", "192.0.2.1:5353"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]", "[2001:db8::1]:53"),
            ("[2001:db8::1]:5353", "[2001:db8::1]:5353"),
        ];
        for (host, expected) in rows {
            assert_eq!(with_port(host, 53), expected);
        }
    }

    #[test]
    fn settings_that_cannot_work_are_refused_with_the_flag_to_set() {
        let refused = |config: Rfc2136Config| Rfc2136::new(config).unwrap_err().to_string();
        let hosts = vec!["192.0.2.1".to_owned()];
        let zones = vec!["example.com.".to_owned()];
        assert!(refused(Rfc2136Config::default()).contains("--rfc2136-host"));
        assert!(refused(Rfc2136Config { hosts: hosts.clone(), ..Rfc2136Config::default() }).contains("--rfc2136-zone"));
        let unsigned = Rfc2136Config { hosts: hosts.clone(), zones: zones.clone(), ..Rfc2136Config::default() };
        assert!(refused(unsigned.clone()).contains("--rfc2136-insecure"));
        let both = Rfc2136Config {
            key: Some(KeyConfig::new("k", "c2VjcmV0", "hmac-sha256")),
            insecure: true,
            ..unsigned.clone()
        };
        assert!(refused(both).contains("--rfc2136-insecure"));
        let odd = Rfc2136Config { zones: vec!["a..b".into()], insecure: true, ..unsigned };
        assert!(refused(odd).contains("--rfc2136-zone"));
    }
}
