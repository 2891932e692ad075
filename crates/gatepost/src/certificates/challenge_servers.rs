//! Whether TXT values are answered: every server that may be asked about a zone is, before an issuer is told to look.
//!
//! Those that were named, and those that a resolver finds for the zone. A resolver is asked who the servers are, never for the
//! values: what it remembers is no proof.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use gatepost_core::model::Str;
use gatepost_core::publication::RecordType;
use gatepost_core::publication::providers::PublishingProviders;
use gatepost_dns::{authority, resolve};
use gatepost_tls::Call;
use gatepost_tls::certifier::Answers;
use tokio::sync::Mutex;

use crate::verify::servers::{Server, Servers};

/// Who is asked whether challenges are answered.
#[derive(Debug)]
pub struct ChallengeServers {
    /// Servers that are asked about every name.
    named: Vec<Server>,
    /// Resolvers that know further servers of a zone; none are looked for without.
    resolvers: Option<resolve::ResolverConfig>,
    /// The zones that are published to, where they are known.
    zones: Vec<Str>,
    /// The servers of each provider, where there are several: those of the one that publishes a value are asked.
    of_providers: Option<(PublishingProviders, BTreeMap<Str, Vec<Server>>)>,
    found: Mutex<Option<(Instant, Servers)>>,
    patience: Duration,
}

/// For so long it is remembered which servers a zone has.
const FRESH: Duration = Duration::from_secs(600);

impl ChallengeServers {
    /// These servers, and nobody else.
    pub fn named(servers: Servers, patience: Duration) -> Self {
        let (named, zones) = (given(servers), Vec::new());
        ChallengeServers { named, resolvers: None, zones, of_providers: None, found: Mutex::default(), patience }
    }

    /// The same, and the servers of the provider that publishes a name.
    pub fn of_providers(self, rule: PublishingProviders, servers: BTreeMap<Str, Servers>) -> Self {
        let servers = servers.into_iter().map(|(name, servers)| (name, given(servers))).collect();
        ChallengeServers { of_providers: Some((rule, servers)), ..self }
    }

    /// The same, and the servers that resolvers find for these zones; where no zones are given, for whatever zone a name is in.
    pub fn and_found(self, resolvers: resolve::ResolverConfig, zones: Vec<Str>) -> Self {
        ChallengeServers { resolvers: Some(resolvers), zones, ..self }
    }

    /// The servers to ask about a name.
    async fn servers(&self, owner: &str) -> Result<Vec<Server>, String> {
        let mut servers = self.named.clone();
        if let Some((rule, by_provider)) = &self.of_providers {
            let of_provider = rule.of(owner, None).and_then(|name| by_provider.get(name));
            servers.extend(of_provider.into_iter().flatten().cloned());
        }
        if let Some(resolvers) = &self.resolvers {
            match self.search(owner, resolvers).await {
                Ok(found) => servers.extend(found),
                // A zone that the world does not know is still answered by those that were named.
                Err(why) if servers.is_empty() => return Err(why),
                Err(_) => {}
            }
        }
        servers.sort();
        servers.dedup_by(|a, b| a.address == b.address);
        if servers.is_empty() { Err("no server of the zone is known".to_owned()) } else { Ok(servers) }
    }

    async fn search(&self, owner: &str, resolvers: &resolve::ResolverConfig) -> Result<Vec<Server>, String> {
        let mut found = self.found.lock().await;
        if found.as_ref().is_none_or(|(since, _)| since.elapsed() > FRESH) {
            *found = Some((Instant::now(), Servers::of_zones(resolvers.clone())));
        }
        let Some((_, servers)) = found.as_mut() else { return Ok(Vec::new()) };
        let zone = zone_of(owner, &self.zones);
        let Some(Servers::OfZones(finder)) = Some(servers) else { return Ok(Vec::new()) };
        let known = finder.name_servers(zone.unwrap_or(owner)).await?;
        // Servers of a zone further up know nothing of ours.
        if zone.is_some_and(|zone| *known.zone != *zone) {
            return Ok(Vec::new());
        }
        let server =
            |(address, name): (SocketAddr, Str)| Server { address, label: format!("{name} ({})", address.ip()) };
        Ok(known.servers.into_iter().map(server).collect())
    }

    async fn ask(&self, server: SocketAddr, owner: &str, values: &[Str]) -> Result<(), String> {
        let answer = authority::ask(server, owner, RecordType::Txt, self.patience).await?;
        if !answer.is_authoritative {
            return Err(format!("it does not speak for the zone ({})", answer.code));
        }
        match values.iter().all(|value| answer.values.contains(value)) {
            true => Ok(()),
            false => Err(format!("it does not have the value ({})", answer.code)),
        }
    }
}

impl Answers for ChallengeServers {
    fn answers<'a>(&'a self, owner: &'a str, values: &'a [Str]) -> Call<'a, Result<(), String>> {
        Box::pin(async move {
            for server in self.servers(owner).await? {
                let said = self.ask(server.address, owner, values).await;
                said.map_err(|why| format!("{}: {why}", server.label))?;
            }
            Ok(())
        })
    }
}

fn given(servers: Servers) -> Vec<Server> {
    match servers {
        Servers::Given(named) => named,
        Servers::OfZones(_) => Vec::new(),
    }
}

/// The longest of these zones that a name is in.
fn zone_of<'z>(name: &str, zones: &'z [Str]) -> Option<&'z str> {
    let holds = |zone: &&Str| name == &***zone || name.ends_with(&format!(".{zone}"));
    zones.iter().filter(holds).max_by_key(|zone| zone.len()).map(|zone| &**zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_the_longest_zone_above_it() {
        let zones = ["example.org", "shop.example.org"].map(Str::from);
        let table = [
            ("_acme-challenge.www.example.org", Some("example.org")),
            ("_acme-challenge.shop.example.org", Some("shop.example.org")),
            ("_acme-challenge.workshop.example.org", Some("example.org")),
            ("_acme-challenge.example.net", None),
        ];
        for (name, zone) in table {
            assert_eq!(zone_of(name, &zones), zone, "{name}");
        }
    }
}
