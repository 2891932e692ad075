//! From a packet to what is sent back: no sockets, no clock, no waiting.
//!
//! The work for one packet is bounded by its length, the depth of the zones and [`MAX_ALIASES`].

use std::net::IpAddr;

use super::cookies::Cookies;
use super::error::ServerError;
use super::lookup::{self, LookupResult};
use super::name::{LabelPath, Name};
use super::prefix::Prefix;
use super::record::kind;
use super::reply::{self, Extra, Reply, Section};
use super::rrset::HEAD;
use super::server::{ServerConfig, random};
use super::signing::{self, Keys, Transaction};
use super::store::{ZoneSet, is_later};
use super::transfer::Transfer;
use super::wire::{DnsRequest, HEADER, IN, Unreadable, opcode, rcode};
use super::zone::Zone;

/// How many aliases are followed in one answer.
const MAX_ALIASES: usize = 16;

/// The smallest and, over UDP without EDNS, the largest reply.
const PLAIN_UDP: usize = 512;

/// How a packet came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// One datagram.
    Udp,
    /// A message on a connection.
    Tcp,
}

/// Where a packet came from, how and when.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The source.
    pub source: IpAddr,
    /// How it came.
    pub transport: Transport,
    /// Seconds since 1970.
    pub now: u64,
}

/// What to do about a packet.
#[derive(Debug)]
pub enum Act {
    /// Nothing is sent.
    Silence,
    /// The written reply is sent.
    Reply(ReplySummary),
    /// A zone is sent in many messages.
    Transfer(Box<Transfer>),
}

/// What the written reply says, for those who count and limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplySummary {
    /// The response code.
    pub code: u16,
    /// Whether the source proved its address, by cookie or signature.
    pub proved: bool,
    /// Whether the reply was cut.
    pub truncated: bool,
}

/// Answers packets from zones.
#[derive(Clone)]
pub struct Responder {
    keys: Keys,
    cookies: Cookies,
    payload: u16,
    may_transfer: Vec<Prefix>,
}

impl Responder {
    /// One who answers as a server with this configuration would.
    pub fn new(config: &ServerConfig) -> Result<Responder, ServerError> {
        Ok(Responder {
            keys: Keys::new(&config.keys),
            cookies: Cookies::new(config.cookie_secret.map_or_else(random, Ok)?),
            payload: config.udp_payload.max(PLAIN_UDP as u16),
            may_transfer: config.may_transfer.clone(),
        })
    }

    /// Answers a packet: writes the reply, or says what else to do.
    pub fn respond(&self, zones: &ZoneSet, packet: &[u8], arrival: Arrival, out: &mut Vec<u8>) -> Act {
        match DnsRequest::read(packet) {
            Err(Unreadable::Silent) => Act::Silence,
            Err(Unreadable::Code(code)) => {
                reply::bare(out, packet, code);
                Act::Reply(ReplySummary { code, proved: false, truncated: false })
            }
            Ok(request) if request.tsig.is_some() => self.respond_signed(zones, &request, arrival, out),
            Ok(request) => self.respond_plain(zones, &request, arrival, out),
        }
    }

    /// Cuts a written reply to its header and question, so that the client asks again over TCP.
    pub(crate) fn cut(&self, packet: &[u8], arrival: Arrival, out: &mut Vec<u8>) {
        if let Ok(request) = DnsRequest::read(packet)
            && out.len() > HEADER
        {
            reply::cut(out, request.question_end(), self.extra(&request, arrival));
        }
    }

    fn respond_plain(&self, zones: &ZoneSet, request: &DnsRequest<'_>, arrival: Arrival, out: &mut Vec<u8>) -> Act {
        if is_transfer(request) {
            let allowed = self.may_transfer.iter().any(|prefix| prefix.contains(arrival.source));
            return self.transfer(zones, request, arrival, out, allowed, None);
        }
        Act::Reply(self.write(zones, request, arrival, out, 0))
    }

    fn respond_signed(&self, zones: &ZoneSet, request: &DnsRequest<'_>, arrival: Arrival, out: &mut Vec<u8>) -> Act {
        let transaction = match self.keys.verify(request.packet, arrival.now) {
            Ok(transaction) => transaction,
            Err(refusal) if refusal.is_empty() => return Act::Silence,
            Err(refusal) => {
                *out = refusal;
                return Act::Reply(ReplySummary { code: rcode::NOTAUTH, proved: false, truncated: false });
            }
        };
        if is_transfer(request) {
            return self.transfer(zones, request, arrival, out, true, Some(transaction));
        }
        let summary = self.write(zones, request, arrival, out, usize::from(transaction.key().compose_len()));
        sealed(summary, out, transaction, arrival.now)
    }

    /// A transfer, the single record that stands for "nothing new" or "come by TCP", or a refusal.
    fn transfer(
        &self,
        zones: &ZoneSet,
        request: &DnsRequest<'_>,
        arrival: Arrival,
        out: &mut Vec<u8>,
        allowed: bool,
        signer: Option<Transaction>,
    ) -> Act {
        let zone = zones.zone(&Name::from_lower(request.question.name.whole()));
        let whole = request.question.kind == kind::AXFR;
        let code = match zone {
            _ if !allowed || request.question.class != IN => rcode::REFUSED,
            _ if whole && arrival.transport == Transport::Udp => rcode::REFUSED,
            None => rcode::NOTAUTH,
            Some(_) => rcode::NOERROR,
        };
        let zone = zone.filter(|_| code == rcode::NOERROR);
        if let Some(zone) = zone
            && arrival.transport == Transport::Tcp
            && (whole || is_behind(request, zone))
        {
            return Transfer::new(zone.clone(), request, signer)
                .map_or(Act::Silence, |one| Act::Transfer(Box::new(one)));
        }
        let mut reply = Reply::begin(out, request, usize::from(u16::MAX));
        if let Some(zone) = zone {
            reply.set_authoritative(true);
            reply.push(Section::Answer, zone.soa_set(), HEADER);
        }
        reply.finish(code, self.extra(request, arrival));
        let summary = ReplySummary { code, proved: signer.is_some(), truncated: false };
        match signer {
            Some(signer) => sealed(summary, out, signer, arrival.now),
            None => Act::Reply(summary),
        }
    }

    /// Writes the reply to anything but a transfer, leaving room for a signature.
    fn write(
        &self,
        zones: &ZoneSet,
        request: &DnsRequest<'_>,
        arrival: Arrival,
        out: &mut Vec<u8>,
        room: usize,
    ) -> ReplySummary {
        let extra = self.extra(request, arrival);
        let largest = self.largest(request, arrival.transport);
        let mut reply = Reply::begin(out, request, largest.saturating_sub(room + extra.map_or(0, |extra| extra.len())));
        let code = match refusal(request) {
            Some(code) => code,
            None => answer(zones, request, &mut reply),
        };
        let truncated = reply.is_truncated();
        reply.finish(code, extra);
        ReplySummary { code, proved: room > 0 || self.is_proved(request, arrival), truncated }
    }

    /// The largest reply that the client takes and that we want to send.
    fn largest(&self, request: &DnsRequest<'_>, transport: Transport) -> usize {
        match (transport, request.edns) {
            (Transport::Tcp, _) => usize::from(u16::MAX),
            (Transport::Udp, None) => PLAIN_UDP,
            (Transport::Udp, Some(edns)) => usize::from(edns.payload.min(self.payload)).max(PLAIN_UDP),
        }
    }

    fn extra(&self, request: &DnsRequest<'_>, arrival: Arrival) -> Option<Extra> {
        let edns = request.edns?;
        let mut extra = Extra::to(&edns, self.payload);
        if let Some(cookie) = edns.cookie {
            extra.cookie = Some((cookie.client, self.cookies.make(cookie.client, arrival.source, arrival.now as u32)));
        }
        Some(extra)
    }

    fn is_proved(&self, request: &DnsRequest<'_>, arrival: Arrival) -> bool {
        let cookie = request.edns.and_then(|edns| edns.cookie);
        cookie.is_some_and(|cookie| self.cookies.proves(&cookie, arrival.source, arrival.now as u32))
    }
}

/// Signs the written reply.
fn sealed(summary: ReplySummary, out: &mut Vec<u8>, signer: Transaction, now: u64) -> Act {
    match signing::sign(out, signer, now) {
        Some(signed) => {
            *out = signed;
            Act::Reply(summary)
        }
        None => Act::Silence,
    }
}

fn is_transfer(request: &DnsRequest<'_>) -> bool {
    request.opcode() == opcode::QUERY && matches!(request.question.kind, kind::AXFR | kind::IXFR)
}

/// Whether an incremental transfer has anything to bring.
fn is_behind(request: &DnsRequest<'_>, zone: &Zone) -> bool {
    request.serial.is_none_or(|serial| is_later(zone.soa().serial, serial))
}

/// Why a readable request gets no look into the zones.
fn refusal(request: &DnsRequest<'_>) -> Option<u16> {
    if request.edns.is_some_and(|edns| edns.version > 0) {
        return Some(rcode::BADVERS);
    }
    if request.opcode() != opcode::QUERY {
        return Some(rcode::REFUSED);
    }
    match request.question.kind {
        kind::OPT | kind::TKEY | kind::TSIG | 253 | 254 => Some(rcode::NOTIMP),
        _ if request.question.class != IN => Some(rcode::REFUSED),
        _ => None,
    }
}

/// Looks the question up, follows aliases through our zones, and writes what is found.
fn answer(zones: &ZoneSet, request: &DnsRequest<'_>, reply: &mut Reply<'_>) -> u16 {
    let (asked, kind) = (&request.question.name, request.question.kind);
    let Some(mut zone) = zones.find(asked, kind) else { return rcode::REFUSED };
    let mut at = HEADER;
    let mut followed: Vec<LabelPath> = Vec::new();
    reply.set_authoritative(true);
    loop {
        let path = followed.last().unwrap_or(asked);
        let alias = match lookup::find(zone, path, kind) {
            LookupResult::Alias(alias) => alias,
            found => return conclude(&found, zone, path, at, reply),
        };
        let record = reply.len();
        reply.push(Section::Answer, alias, at);
        let Some(target) = alias.data().next().and_then(LabelPath::read) else { return rcode::SERVFAIL };
        let known = std::iter::once(asked).chain(&followed).any(|name| name.whole() == target.whole());
        if known || reply.is_truncated() || followed.len() == MAX_ALIASES {
            return rcode::NOERROR;
        }
        let Some(next) = zones.find(&target, kind) else { return rcode::NOERROR };
        (zone, at) = (next, record + HEAD);
        followed.push(target);
    }
}

/// Writes the end of an answer about a name that stands at an offset of the message.
fn conclude(found: &LookupResult<'_>, zone: &Zone, path: &LabelPath, at: usize, reply: &mut Reply<'_>) -> u16 {
    let suffix = |name: &[u8]| at + path.len().saturating_sub(name.len());
    match found {
        LookupResult::Answer(set) | LookupResult::Alias(set) => reply.push(Section::Answer, *set, at),
        LookupResult::NoData | LookupResult::NoName => {
            reply.push(Section::Authority, zone.negative(), suffix(zone.name().as_wire()))
        }
        LookupResult::Elsewhere(cut, servers) => {
            reply.set_authoritative(reply.count(Section::Answer) > 0);
            reply.push(Section::Authority, *servers, suffix(cut.name()));
            reply.push_glue(cut.glue());
        }
    }
    if matches!(found, LookupResult::NoName) { rcode::NXDOMAIN } else { rcode::NOERROR }
}
