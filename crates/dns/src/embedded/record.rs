//! Records as plain values, and their data in wire format.
//!
//! Nothing here knows zones; whether records may stand together is judged when a zone is built.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::error::ZoneError;
use super::name::{Name, NameError};

/// Type codes that the server knows by name.
pub mod kind {
    /// IPv4 address.
    pub const A: u16 = 1;
    /// Name server.
    pub const NS: u16 = 2;
    /// Alias.
    pub const CNAME: u16 = 5;
    /// Start of authority.
    pub const SOA: u16 = 6;
    /// Mail exchange.
    pub const MX: u16 = 15;
    /// Text.
    pub const TXT: u16 = 16;
    /// IPv6 address.
    pub const AAAA: u16 = 28;
    /// Alias of a whole tree; not served.
    pub const DNAME: u16 = 39;
    /// EDNS.
    pub const OPT: u16 = 41;
    /// Delegation signer.
    pub const DS: u16 = 43;
    /// Key exchange, never stored.
    pub const TKEY: u16 = 249;
    /// Transaction signature.
    pub const TSIG: u16 = 250;
    /// Incremental transfer.
    pub const IXFR: u16 = 251;
    /// Full transfer.
    pub const AXFR: u16 = 252;
    /// Any type, as a question.
    pub const ANY: u16 = 255;
}

/// One record: who, how long, what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// The owner.
    pub name: Name,
    /// Seconds for which others may keep it.
    pub ttl: u32,
    /// Type and data.
    pub data: Data,
}

/// The data of a record; types without a variant pass through as bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data {
    /// IPv4 address.
    A(Ipv4Addr),
    /// IPv6 address.
    Aaaa(Ipv6Addr),
    /// Alias.
    Cname(Name),
    /// Name server.
    Ns(Name),
    /// Mail exchange: preference and host.
    Mx(u16, Name),
    /// Text: one or more strings of at most 255 bytes.
    Txt(Vec<Vec<u8>>),
    /// Any other type, its data in wire format.
    Other(u16, Vec<u8>),
}

/// The start of authority of a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Soa {
    /// The primary name server.
    pub primary: Name,
    /// The mailbox of who answers for the zone, as a name.
    pub mailbox: Name,
    /// The version of the zone.
    pub serial: u32,
    /// Seconds between a secondary's looks.
    pub refresh: u32,
    /// Seconds between a secondary's looks after a failure.
    pub retry: u32,
    /// Seconds after which a secondary gives up.
    pub expire: u32,
    /// Seconds for which "there is no such thing" may be kept.
    pub minimum: u32,
    /// Seconds for which this record may be kept.
    pub ttl: u32,
}

impl Record {
    /// A record from its parts; the owner is read as text.
    pub fn new(name: &str, ttl: u32, data: Data) -> Result<Record, NameError> {
        Ok(Record { name: Name::parse(name)?, ttl, data })
    }
}

impl Data {
    /// A text of any length, cut into strings of 255 bytes.
    pub fn text(bytes: impl AsRef<[u8]>) -> Data {
        let bytes = bytes.as_ref();
        let strings: Vec<_> = bytes.chunks(255).map(<[u8]>::to_vec).collect();
        Data::Txt(if strings.is_empty() { vec![Vec::new()] } else { strings })
    }

    /// The type code.
    pub fn kind(&self) -> u16 {
        match self {
            Data::A(_) => kind::A,
            Data::Aaaa(_) => kind::AAAA,
            Data::Cname(_) => kind::CNAME,
            Data::Ns(_) => kind::NS,
            Data::Mx(..) => kind::MX,
            Data::Txt(_) => kind::TXT,
            Data::Other(kind, _) => *kind,
        }
    }

    /// The data in wire format, names uncompressed.
    pub fn to_wire(&self) -> Vec<u8> {
        let mut wire = Vec::new();
        self.write(&mut wire);
        wire
    }

    /// Appends the data in wire format.
    pub(crate) fn write(&self, wire: &mut Vec<u8>) {
        match self {
            Data::A(address) => wire.extend_from_slice(&address.octets()),
            Data::Aaaa(address) => wire.extend_from_slice(&address.octets()),
            Data::Cname(name) | Data::Ns(name) => wire.extend_from_slice(name.as_wire()),
            Data::Mx(preference, host) => {
                wire.extend_from_slice(&preference.to_be_bytes());
                wire.extend_from_slice(host.as_wire());
            }
            Data::Txt(strings) => strings.iter().for_each(|string| write_string(wire, string)),
            Data::Other(_, bytes) => wire.extend_from_slice(bytes),
        }
    }

    /// Reads data in wire format, names uncompressed; `None` where it does not fit its type.
    pub fn from_wire(kind: u16, bytes: &[u8]) -> Option<Data> {
        Some(match kind {
            kind::A => Data::A(<[u8; 4]>::try_from(bytes).ok()?.into()),
            kind::AAAA => Data::Aaaa(<[u8; 16]>::try_from(bytes).ok()?.into()),
            kind::CNAME => Data::Cname(whole_name(bytes)?),
            kind::NS => Data::Ns(whole_name(bytes)?),
            kind::MX => {
                let (preference, host) = bytes.split_first_chunk::<2>()?;
                Data::Mx(u16::from_be_bytes(*preference), whole_name(host)?)
            }
            kind::TXT => Data::Txt(strings(bytes)?),
            _ => Data::Other(kind, bytes.to_vec()),
        })
    }

    /// Why this data cannot be served, if so.
    pub(crate) fn check(&self, name: &Name) -> Result<(), ZoneError> {
        let broken = |cause: &str| ZoneError::Data { name: name.clone(), kind: self.kind(), cause: cause.to_owned() };
        match self {
            Data::Txt(strings) if strings.is_empty() => Err(broken("a text needs at least one string")),
            Data::Txt(strings) if strings.iter().any(|string| string.len() > 255) => {
                Err(broken("a string of a text is at most 255 bytes long"))
            }
            Data::Other(kind, bytes) => other(*kind, bytes).map_err(broken),
            _ => Ok(()),
        }
    }
}

impl Soa {
    /// The usual timers around two names, with the given serial.
    pub fn new(primary: Name, mailbox: Name, serial: u32) -> Soa {
        Soa { primary, mailbox, serial, refresh: 3600, retry: 600, expire: 1_209_600, minimum: 60, ttl: 3600 }
    }

    /// The data in wire format.
    pub(crate) fn to_wire(&self) -> Vec<u8> {
        let mut wire = [self.primary.as_wire(), self.mailbox.as_wire()].concat();
        wire.extend(self.numbers());
        wire
    }

    /// What follows the two names.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u8> {
        let numbers = [self.serial, self.refresh, self.retry, self.expire, self.minimum];
        numbers.into_iter().flat_map(u32::to_be_bytes)
    }
}

/// A string longer than 255 bytes is refused before it comes here.
fn write_string(wire: &mut Vec<u8>, string: &[u8]) {
    let length = string.len().min(255);
    wire.push(length as u8);
    wire.extend_from_slice(&string[..length]);
}

fn whole_name(bytes: &[u8]) -> Option<Name> {
    Name::from_wire(bytes).filter(|(_, length)| *length == bytes.len()).map(|(name, _)| name)
}

fn strings(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let (string, rest) = rest.split_at_checked(usize::from(length))?;
        found.push(string.to_vec());
        bytes = rest;
    }
    (!found.is_empty()).then_some(found)
}

/// Types that have a variant, or that stand in no zone, do not come as bytes.
fn other(code: u16, bytes: &[u8]) -> Result<(), &'static str> {
    match code {
        kind::SOA => Err("the start of authority is given with the zone"),
        kind::A | kind::AAAA | kind::NS | kind::CNAME | kind::MX | kind::TXT => Err("this type is not given as bytes"),
        kind::DNAME => Err("DNAME is not served"),
        0 | kind::OPT | 128..=255 => Err("no record in a zone has this type"),
        _ if bytes.len() > usize::from(u16::MAX) => Err("it is longer than 65535 bytes"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_survives_the_wire() {
        let name = Name::parse("a.example").unwrap();
        let all = [
            Data::A([192, 0, 2, 1].into()),
            Data::Aaaa("2001:db8::1".parse().unwrap()),
            Data::Cname(name.clone()),
            Data::Ns(name.clone()),
            Data::Mx(10, name),
            Data::text("x".repeat(600)),
            Data::text(""),
            Data::Other(257, vec![1, 2, 3]),
        ];
        for data in all {
            assert_eq!(Data::from_wire(data.kind(), &data.to_wire()), Some(data));
        }
    }

    #[test]
    fn broken_data_is_refused() {
        for (kind, bytes) in [
            (kind::A, &b"\x01"[..]),
            (kind::TXT, b""),
            (kind::TXT, b"\x05ab"),
            (kind::NS, b"\x01a\0x"),
            (kind::MX, b"\0"),
        ] {
            assert_eq!(Data::from_wire(kind, bytes), None, "{kind}");
        }
    }
}
