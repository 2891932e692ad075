//! One name asked of a resolver: A and AAAA, over UDP, and over TCP where the answer does not fit.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use domain::base::Name;
use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::message::Message;
use domain::base::name::ToName;
use domain::rdata::{A, Aaaa, Cname};

use super::{ResolvedName, ResolverConfig};
use crate::provider::data::{self, WireName};
use crate::question::PreparedQuery;

/// More names in a chain are not followed.
const MAX_CHAIN: usize = 16;

/// The addresses of a name. Both families must be answered, and at least one must have an address.
pub(super) async fn addresses(config: &ResolverConfig, name: &str) -> Result<ResolvedName, String> {
    let wire = data::name(name)?;
    let (four, six) = tokio::join!(ask_all(config, &wire, Rtype::A), ask_all(config, &wire, Rtype::AAAA));
    let (four, six) = (four?, six?);
    let addresses: BTreeSet<IpAddr> = four.addresses.iter().chain(&six.addresses).copied().collect();
    if addresses.is_empty() {
        return Err(format!("`{name}` has no addresses"));
    }
    // A family without addresses says nothing about how long the other one lasts.
    let ttls = [&four, &six].into_iter().filter(|found| !found.addresses.is_empty()).map(|found| found.ttl);
    Ok(ResolvedName { addresses: addresses.into_iter().collect(), ttl: ttls.min().unwrap_or_default() })
}

async fn ask_all(config: &ResolverConfig, name: &WireName, kind: Rtype) -> Result<ResolvedName, String> {
    let mut failure = "no resolver is known: name one, or see /etc/resolv.conf".to_owned();
    for server in std::iter::repeat_n(&config.servers, config.rounds.max(1)).flatten() {
        match ask(*server, name, kind, config.timeout).await {
            Ok(found) => return Ok(found),
            Err(cause) => failure = format!("{server}: {cause}"),
        }
    }
    Err(failure)
}

async fn ask(server: SocketAddr, name: &WireName, kind: Rtype, patience: Duration) -> Result<ResolvedName, String> {
    let question = PreparedQuery::new(name, kind, true)?;
    AddressReader(&question).read(&question.ask(server, patience).await?)
}

/// What the answer to a question says.
struct AddressReader<'a>(&'a PreparedQuery<'a>);

impl AddressReader<'_> {
    fn read(&self, message: &Message<Vec<u8>>) -> Result<ResolvedName, String> {
        match message.header().rcode() {
            Rcode::NOERROR => {}
            Rcode::NXDOMAIN => return Err("the name does not exist (NXDOMAIN)".to_owned()),
            other => return Err(format!("the resolver answers {other}")),
        }
        let damaged = |_| "the answer is damaged".to_owned();
        let mut ttl = Duration::MAX;
        let end = self.follow(message, &mut ttl).map_err(damaged)?;
        let mut addresses = BTreeSet::new();
        for record in message.answer().map_err(damaged)? {
            let record = record.map_err(damaged)?;
            if record.class() != Class::IN || record.rtype() != self.0.kind || !record.owner().name_eq(&end) {
                continue;
            }
            let address: Option<IpAddr> = match self.0.kind {
                Rtype::A => record.to_record::<A>().map_err(damaged)?.map(|record| record.data().addr().into()),
                _ => record.to_record::<Aaaa>().map_err(damaged)?.map(|record| record.data().addr().into()),
            };
            addresses.extend(address);
            ttl = ttl.min(Duration::from_secs(record.ttl().as_secs().into()));
        }
        Ok(ResolvedName { addresses: addresses.into_iter().collect(), ttl })
    }

    /// The name at the end of the chain of aliases, and the shortest TTL on the way.
    fn follow(
        &self,
        message: &Message<Vec<u8>>,
        ttl: &mut Duration,
    ) -> Result<WireName, domain::base::wire::ParseError> {
        let mut at = self.0.name.clone();
        for _ in 0..MAX_CHAIN {
            let mut next = None;
            for record in message.answer()?.limit_to::<Cname<_>>() {
                let record = record?;
                if record.owner().name_eq(&at) {
                    *ttl = (*ttl).min(Duration::from_secs(record.ttl().as_secs().into()));
                    next = Some(Name::from_octets(record.data().cname().to_vec().into_octets()));
                }
            }
            match next {
                Some(Ok(name)) => at = name,
                _ => return Ok(at),
            }
        }
        Ok(at)
    }
}
