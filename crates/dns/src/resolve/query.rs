//! One name asked of a resolver: A and AAAA, over UDP, and over TCP where the answer does not fit.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::message::Message;
use domain::base::name::ToName;
use domain::base::{MessageBuilder, Name};
use domain::rdata::{A, Aaaa, Cname};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::{Config, Found};
use crate::provider::data::{self, WireName};

/// What we say that we take over UDP; what passes every network in one piece.
const PAYLOAD: u16 = 1232;

/// More names in a chain are not followed.
const MAX_CHAIN: usize = 16;

/// The addresses of a name. Both families must be answered, and at least one must have an address.
pub(super) async fn addresses(config: &Config, name: &str) -> Result<Found, String> {
    let wire = data::name(name)?;
    let (four, six) = tokio::join!(ask_all(config, &wire, Rtype::A), ask_all(config, &wire, Rtype::AAAA));
    let (four, six) = (four?, six?);
    let addresses: BTreeSet<IpAddr> = four.addresses.iter().chain(&six.addresses).copied().collect();
    if addresses.is_empty() {
        return Err(format!("`{name}` has no addresses"));
    }
    // A family without addresses says nothing about how long the other one lasts.
    let ttls = [&four, &six].into_iter().filter(|found| !found.addresses.is_empty()).map(|found| found.ttl);
    Ok(Found { addresses: addresses.into_iter().collect(), ttl: ttls.min().unwrap_or_default() })
}

async fn ask_all(config: &Config, name: &WireName, kind: Rtype) -> Result<Found, String> {
    let mut failure = "no resolver is known: name one, or see /etc/resolv.conf".to_owned();
    for server in std::iter::repeat_n(&config.servers, config.rounds.max(1)).flatten() {
        match ask(*server, name, kind, config.timeout).await {
            Ok(found) => return Ok(found),
            Err(cause) => failure = format!("{server}: {cause}"),
        }
    }
    Err(failure)
}

async fn ask(server: SocketAddr, name: &WireName, kind: Rtype, patience: Duration) -> Result<Found, String> {
    let question = Question::new(name, kind)?;
    let late = |_| format!("no answer within {} s", patience.as_secs_f32());
    let answer = timeout(patience, question.over_udp(server)).await.map_err(late)??;
    if !answer.header().tc() {
        return question.read(&answer);
    }
    let answer = timeout(patience, question.over_tcp(server)).await.map_err(late)??;
    question.read(&answer)
}

struct Question<'a> {
    name: &'a WireName,
    kind: Rtype,
    id: u16,
    bytes: Vec<u8>,
}

impl<'a> Question<'a> {
    fn new(name: &'a WireName, kind: Rtype) -> Result<Question<'a>, String> {
        let mut random = [0; 2];
        SystemRandom::new().fill(&mut random).map_err(|_| "the system has no random numbers")?;
        let id = u16::from_be_bytes(random);
        let mut builder = MessageBuilder::new_vec();
        builder.header_mut().set_id(id);
        builder.header_mut().set_rd(true);
        let mut builder = builder.question();
        builder.push((name, kind)).map_err(|error| error.to_string())?;
        let mut builder = builder.additional();
        let payload = |opt: &mut domain::base::message_builder::OptBuilder<'_, _>| {
            opt.set_udp_payload_size(PAYLOAD);
            Ok(())
        };
        builder.opt(payload).map_err(|error| error.to_string())?;
        Ok(Question { name, kind, id, bytes: builder.finish() })
    }

    async fn over_udp(&self, server: SocketAddr) -> Result<Message<Vec<u8>>, String> {
        let local: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let failed = |error: std::io::Error| error.to_string();
        let socket = UdpSocket::bind((local, 0)).await.map_err(failed)?;
        socket.connect(server).await.map_err(failed)?;
        socket.send(&self.bytes).await.map_err(failed)?;
        let mut buffer = vec![0; 65535];
        loop {
            let length = socket.recv(&mut buffer).await.map_err(failed)?;
            // Somebody else's packet is not the end of waiting.
            if let Some(answer) = self.matching(buffer[..length].to_vec()) {
                return Ok(answer);
            }
        }
    }

    async fn over_tcp(&self, server: SocketAddr) -> Result<Message<Vec<u8>>, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(server).await.map_err(failed)?;
        let length = u16::try_from(self.bytes.len()).map_err(|error| error.to_string())?;
        stream.write_all(&[&length.to_be_bytes()[..], &self.bytes].concat()).await.map_err(failed)?;
        let length = stream.read_u16().await.map_err(failed)?;
        let mut bytes = vec![0; usize::from(length)];
        stream.read_exact(&mut bytes).await.map_err(failed)?;
        self.matching(bytes).ok_or_else(|| "the answer is to another question".to_owned())
    }

    fn matching(&self, bytes: Vec<u8>) -> Option<Message<Vec<u8>>> {
        let message = Message::from_octets(bytes).ok()?;
        let header = message.header();
        let question = message.sole_question().ok()?;
        let same =
            question.qname().name_eq(self.name) && question.qtype() == self.kind && question.qclass() == Class::IN;
        (header.qr() && header.id() == self.id && same).then_some(message)
    }

    fn read(&self, message: &Message<Vec<u8>>) -> Result<Found, String> {
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
            if record.class() != Class::IN || record.rtype() != self.kind || !record.owner().name_eq(&end) {
                continue;
            }
            let address: Option<IpAddr> = match self.kind {
                Rtype::A => record.to_record::<A>().map_err(damaged)?.map(|record| record.data().addr().into()),
                _ => record.to_record::<Aaaa>().map_err(damaged)?.map(|record| record.data().addr().into()),
            };
            addresses.extend(address);
            ttl = ttl.min(Duration::from_secs(record.ttl().as_secs().into()));
        }
        Ok(Found { addresses: addresses.into_iter().collect(), ttl })
    }

    /// The name at the end of the chain of aliases, and the shortest TTL on the way.
    fn follow(
        &self,
        message: &Message<Vec<u8>>,
        ttl: &mut Duration,
    ) -> Result<WireName, domain::base::wire::ParseError> {
        let mut at = self.name.clone();
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
