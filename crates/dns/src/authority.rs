//! What authoritative servers say about a name, and which servers those are.
//!
//! A server is asked without recursion, so that it says what it has and not what it heard. Nothing here judges whether that is
//! right.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::message::Message;
use domain::base::name::ToName;
use domain::rdata::{A, Aaaa, Cname, Ns, Txt};
use gatepost_core::model::Str;
use gatepost_core::publication::RecordType;

use crate::provider::data::{self, WireName};
use crate::question::PreparedQuery;
use crate::resolve;

/// What a server says about one type of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The code: `NOERROR`, `NXDOMAIN`, `REFUSED`.
    pub code: String,
    /// Whether it speaks for the zone.
    pub is_authoritative: bool,
    /// The values of the type asked for at the name, sorted.
    pub values: Vec<Str>,
    /// The name that it is an alias for, where another type was asked for.
    pub alias: Option<Str>,
}

/// The servers that answer for a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameServers {
    /// The zone, without a dot at the end.
    pub zone: Str,
    /// Their addresses with their names, sorted by address.
    pub servers: BTreeMap<SocketAddr, Str>,
    /// Servers whose addresses could not be found out, and why.
    pub lost: Vec<(Str, String)>,
}

/// More servers of a zone are not asked.
const MOST_SERVERS: usize = 13;

/// Asks a server for one type of a name.
pub async fn ask(server: SocketAddr, name: &str, kind: RecordType, patience: Duration) -> Result<ServerAnswer, String> {
    let wire = data::name(name)?;
    let rtype = rtype_of(kind);
    let message = PreparedQuery::new(&wire, rtype, false)?.ask(server, patience).await?;
    read(&message, &wire, rtype).map_err(|_| "the answer is damaged".to_owned())
}

/// Finds the servers of zones through resolvers, and asks for each name once.
#[derive(Debug)]
pub struct Finder {
    config: resolve::ResolverConfig,
    hosts: BTreeMap<Str, Result<Vec<Str>, String>>,
    zones: BTreeMap<Str, NameServers>,
}

impl Finder {
    /// A finder that knows nothing yet.
    pub fn new(config: resolve::ResolverConfig) -> Finder {
        Finder { config, hosts: BTreeMap::new(), zones: BTreeMap::new() }
    }

    /// The servers of the zone that holds a name.
    pub async fn name_servers(&mut self, name: &str) -> Result<NameServers, String> {
        let (zone, hosts) = self.delegation(name.strip_prefix("*.").unwrap_or(name)).await?;
        if let Some(known) = self.zones.get(&zone) {
            return Ok(known.clone());
        }
        let mut found = NameServers { zone: zone.clone(), servers: BTreeMap::new(), lost: Vec::new() };
        for host in hosts.into_iter().take(MOST_SERVERS) {
            match resolve::addresses(&self.config, &host).await {
                Ok(addresses) => {
                    found.servers.extend(addresses.into_iter().map(|ip| (SocketAddr::new(ip, 53), host.clone())));
                }
                Err(why) => found.lost.push((host, why)),
            }
        }
        self.zones.insert(zone, found.clone());
        Ok(found)
    }

    /// The closest name at or above that has name servers, and these.
    async fn delegation(&mut self, name: &str) -> Result<(Str, Vec<Str>), String> {
        let above = std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, rest)| rest));
        for zone in above {
            let zone = Str::from(zone);
            let hosts = match self.hosts.get(&zone) {
                Some(known) => known.clone()?,
                None => {
                    let asked = hosts(&self.config, &zone).await;
                    self.hosts.insert(zone.clone(), asked.clone());
                    asked?
                }
            };
            if !hosts.is_empty() {
                return Ok((zone, hosts));
            }
        }
        Err(format!("no resolver knows name servers for `{name}` or anything above it"))
    }
}

async fn hosts(config: &resolve::ResolverConfig, zone: &str) -> Result<Vec<Str>, String> {
    let wire = data::name(zone)?;
    let mut failure = "no resolver is known: name one with --resolver".to_owned();
    for server in std::iter::repeat_n(&config.servers, config.rounds.max(1)).flatten() {
        let question = PreparedQuery::new(&wire, Rtype::NS, true)?;
        let message = match question.ask(*server, config.timeout).await {
            Ok(message) => message,
            Err(cause) => {
                failure = format!("{server}: {cause}");
                continue;
            }
        };
        match message.header().rcode() {
            Rcode::NOERROR | Rcode::NXDOMAIN => {
                let read = read(&message, &wire, Rtype::NS).map_err(|_| format!("{server}: the answer is damaged"))?;
                return Ok(read.values);
            }
            other => failure = format!("{server} answers {other}"),
        }
    }
    Err(failure)
}

fn read(
    message: &Message<Vec<u8>>,
    name: &WireName,
    kind: Rtype,
) -> Result<ServerAnswer, domain::base::wire::ParseError> {
    let mut values = Vec::new();
    let mut alias = None;
    for record in message.answer()? {
        let record = record?;
        if record.class() != Class::IN || !record.owner().name_eq(name) {
            continue;
        }
        let text: Option<String> = match record.rtype() {
            Rtype::A => record.to_record::<A>()?.map(|record| record.data().addr().to_string()),
            Rtype::AAAA => record.to_record::<Aaaa>()?.map(|record| record.data().addr().to_string()),
            Rtype::NS => record.to_record::<Ns<_>>()?.map(|record| plain(record.data().nsdname())),
            Rtype::CNAME => record.to_record::<Cname<_>>()?.map(|record| plain(record.data().cname())),
            Rtype::TXT => record.to_record::<Txt<_>>()?.map(|record| joined(record.data())),
            _ => None,
        };
        let text = text.map(Str::from);
        if record.rtype() == kind {
            values.extend(text);
        } else if record.rtype() == Rtype::CNAME {
            alias = text;
        }
    }
    values.sort();
    values.dedup();
    let header = message.header();
    Ok(ServerAnswer { code: header.rcode().to_string(), is_authoritative: header.aa(), values, alias })
}

/// A name in lower case, without a dot at the end.
fn plain(name: impl std::fmt::Display) -> String {
    name.to_string().trim_end_matches('.').to_ascii_lowercase()
}

/// The strings of a TXT record as one text.
fn joined<O: AsRef<[u8]>>(text: &Txt<O>) -> String {
    let bytes: Vec<u8> = text.iter().flatten().copied().collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn rtype_of(kind: RecordType) -> Rtype {
    match kind {
        RecordType::A => Rtype::A,
        RecordType::Aaaa => Rtype::AAAA,
        RecordType::Cname => Rtype::CNAME,
        RecordType::Txt => Rtype::TXT,
    }
}
