//! Which servers are asked about which name.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use gatepost_core::model::Str;
use gatepost_dns::authority::Finder;
use gatepost_dns::resolve;

/// Servers that are asked.
#[derive(Debug)]
pub enum Servers {
    /// These, about every name.
    Given(Vec<Server>),
    /// Those of the zone of each name, as resolvers find them.
    OfZones(Finder),
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    /// Where it answers.
    pub address: SocketAddr,
    /// How it is shown.
    pub label: String,
}

/// Servers of a name, and those that have no address.
pub(super) type Found = (Vec<Server>, Vec<(String, String)>);

impl Servers {
    /// The servers at these hosts: addresses or names, each with a port.
    pub async fn named(hosts: &[String]) -> Result<Servers, String> {
        let mut servers: BTreeMap<SocketAddr, String> = BTreeMap::new();
        for host in hosts {
            let found = tokio::net::lookup_host(host.as_str()).await;
            let found: Vec<SocketAddr> = found.map_err(|error| format!("{host}: {error}"))?.collect();
            for address in found {
                let label =
                    if *host == address.to_string() { host.clone() } else { format!("{host} ({})", address.ip()) };
                servers.entry(address).or_insert(label);
            }
        }
        let servers = servers.into_iter().map(|(address, label)| Server { address, label });
        Ok(Servers::Given(servers.collect()))
    }

    /// The servers that resolvers find.
    pub fn of_zones(config: resolve::ResolverConfig) -> Servers {
        Servers::OfZones(Finder::new(config))
    }

    /// The servers that are asked about a name.
    pub(super) async fn of(&mut self, name: &Str) -> Result<Found, String> {
        match self {
            Servers::Given(servers) => Ok((servers.clone(), Vec::new())),
            Servers::OfZones(finder) => {
                let found = finder.name_servers(name).await?;
                let server = |(address, name): (SocketAddr, Str)| Server {
                    address,
                    label: format!("{name} ({})", address.ip()),
                };
                let lost = found.lost.into_iter().map(|(name, why)| (name.to_string(), why)).collect();
                Ok((found.servers.into_iter().map(server).collect(), lost))
            }
        }
    }
}
