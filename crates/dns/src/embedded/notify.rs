//! Tells secondaries that a zone changed (RFC 1996), again and again until they say that they heard.
//!
//! Nothing here decides what changed. A newer change of a zone replaces an announcement still under way.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, MessageBuilder, Name as WireName, Ttl};
use domain::tsig::{self, ClientTransaction};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::metrics::Counters;
use super::name::Name;
use super::server::{now, random};
use super::signing::{Key, time};
use super::zone::Zone;

/// How long each attempt waits for its confirmation, in seconds.
const WAITS: [u64; 6] = [1, 2, 4, 8, 16, 30];

/// Whom to tell, and how to sign.
#[derive(Debug, Clone)]
pub(crate) struct NotifyTarget {
    pub(crate) address: SocketAddr,
    pub(crate) key: Option<Key>,
}

/// Announces changes.
pub(crate) struct Announcer {
    targets: Vec<NotifyTarget>,
    listening: Vec<SocketAddr>,
    counters: Arc<Counters>,
}

impl Announcer {
    pub(crate) fn new(targets: Vec<NotifyTarget>, listening: Vec<SocketAddr>, counters: Arc<Counters>) -> Announcer {
        Announcer { targets, listening, counters }
    }

    /// Announces every change that comes, until no more can come.
    pub(crate) async fn run(self, mut changes: mpsc::UnboundedReceiver<Vec<Arc<Zone>>>) {
        let mut under_way: BTreeMap<(Name, usize), AbortHandle> = BTreeMap::new();
        while let Some(zones) = changes.recv().await {
            under_way.retain(|_, task| !task.is_finished());
            for (zone, (number, target)) in
                zones.iter().flat_map(|zone| self.targets.iter().enumerate().map(move |t| (zone, t)))
            {
                let from = self.source_for(target.address);
                let task = tokio::spawn(announce(zone.clone(), target.clone(), from, self.counters.clone()));
                let earlier = under_way.insert((zone.name().clone(), number), task.abort_handle());
                earlier.inspect(AbortHandle::abort);
            }
        }
    }

    /// Secondaries know us by the address that we answer on.
    fn source_for(&self, target: SocketAddr) -> SocketAddr {
        let own = self.listening.iter().map(SocketAddr::ip);
        let any: IpAddr = if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let fits = |ip: &IpAddr| ip.is_ipv4() == target.is_ipv4() && ip.is_loopback() == target.ip().is_loopback();
        SocketAddr::new(own.filter(fits).find(|ip| !ip.is_unspecified()).unwrap_or(any), 0)
    }
}

/// Tells one secondary of one zone.
async fn announce(zone: Arc<Zone>, target: NotifyTarget, from: SocketAddr, counters: Arc<Counters>) {
    for seconds in WAITS {
        counters.notifies.one();
        let end = Instant::now() + Duration::from_secs(seconds);
        match timeout_at(end, attempt(&zone, &target, from)).await {
            Ok(Ok(())) => return counters.notifies_confirmed.one(),
            Ok(Err(_)) => tokio::time::sleep_until(end).await,
            Err(_) => {}
        }
    }
    counters.notifies_failed.one();
}

/// Sends once and waits for the confirmation.
async fn attempt(zone: &Zone, target: &NotifyTarget, from: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind(from).await?;
    socket.connect(target.address).await?;
    let id = u16::from_be_bytes(random().map_err(io::Error::other)?);
    let (message, transaction) =
        notification(zone, id, target.key.as_ref()).ok_or_else(|| io::Error::other("the zone makes no message"))?;
    socket.send(&message).await?;
    let mut reply = vec![0; 1500];
    loop {
        let length = socket.recv(&mut reply).await?;
        let Ok(message) = Message::from_octets(reply[..length].to_vec()) else { continue };
        if confirms(message, id, transaction.as_ref()) {
            return Ok(());
        }
    }
}

type Signed = ClientTransaction<Arc<tsig::Key>>;

/// The message, and what its signed confirmation is checked with.
fn notification(zone: &Zone, id: u16, key: Option<&Key>) -> Option<(Vec<u8>, Option<Signed>)> {
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    builder.header_mut().set_opcode(Opcode::NOTIFY);
    builder.header_mut().set_aa(true);
    let apex = WireName::from_octets(zone.name().as_wire()).ok()?;
    let mut builder = builder.question();
    builder.push((&apex, Rtype::SOA)).ok()?;
    let mut builder = builder.answer();
    let data = zone.soa().to_wire();
    let data = UnknownRecordData::from_octets(Rtype::SOA, data.as_slice()).ok()?;
    builder.push((apex, Class::IN, Ttl::from_secs(zone.soa().ttl), data)).ok()?;
    let mut builder = builder.additional();
    let signed = key.map(|key| ClientTransaction::request(key.signer(), &mut builder, time(now()))).transpose().ok()?;
    Some((builder.finish(), signed))
}

/// Whether this is the confirmation, signed if the announcement was.
fn confirms(mut message: Message<Vec<u8>>, id: u16, signed: Option<&Signed>) -> bool {
    if signed.is_some_and(|signed| signed.answer(&mut message, time(now())).is_err()) {
        return false;
    }
    let header = message.header();
    header.id() == id && header.qr() && header.opcode() == Opcode::NOTIFY && header.rcode() == Rcode::NOERROR
}
