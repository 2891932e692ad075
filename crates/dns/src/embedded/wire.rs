//! Reads questions off the wire.
//!
//! Nothing here follows a compression pointer, allocates, or does more work than the packet is long.

use super::name::LabelPath;
use super::record::kind;

/// The length of a header.
pub(crate) const HEADER: usize = 12;

/// The class of the Internet.
pub(crate) const IN: u16 = 1;

/// Response codes (RFC 1035, RFC 2136, RFC 6891).
pub(crate) mod rcode {
    pub(crate) const NOERROR: u16 = 0;
    pub(crate) const FORMERR: u16 = 1;
    pub(crate) const SERVFAIL: u16 = 2;
    pub(crate) const NXDOMAIN: u16 = 3;
    pub(crate) const NOTIMP: u16 = 4;
    pub(crate) const REFUSED: u16 = 5;
    pub(crate) const NOTAUTH: u16 = 9;
    pub(crate) const BADVERS: u16 = 16;
}

/// Operation codes.
pub(crate) mod opcode {
    pub(crate) const QUERY: u8 = 0;
    pub(crate) const NOTIFY: u8 = 4;
    pub(crate) const UPDATE: u8 = 5;
}

/// A request, read.
pub(crate) struct DnsRequest<'p> {
    pub(crate) packet: &'p [u8],
    pub(crate) question: RequestQuestion,
    pub(crate) edns: Option<Edns>,
    /// Where the signature begins, if the last record is one.
    pub(crate) tsig: Option<usize>,
    /// The serial that an incremental transfer starts from.
    pub(crate) serial: Option<u32>,
}

/// The one question of a request.
pub(crate) struct RequestQuestion {
    pub(crate) name: LabelPath,
    pub(crate) kind: u16,
    pub(crate) class: u16,
}

/// What a client says about EDNS (RFC 6891).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edns {
    pub(crate) payload: u16,
    pub(crate) version: u8,
    pub(crate) dnssec_ok: bool,
    pub(crate) cookie: Option<Cookie>,
}

/// A cookie as a client sends it (RFC 7873).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) client: [u8; 8],
    /// What the client got from a server before, if it has the length of ours.
    pub(crate) server: Option<[u8; 16]>,
}

/// Why a packet is no request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It gets no answer.
    Silent,
    /// It gets this response code and nothing else.
    Code(u16),
}

impl<'p> DnsRequest<'p> {
    /// Reads a packet.
    pub(crate) fn read(packet: &'p [u8]) -> Result<DnsRequest<'p>, Unreadable> {
        if packet.len() < HEADER || is_response(packet) {
            return Err(Unreadable::Silent);
        }
        if !matches!(opcode_of(packet), opcode::QUERY | opcode::NOTIFY | opcode::UPDATE) {
            return Err(Unreadable::Code(rcode::NOTIMP));
        }
        DnsRequest::read_sections(packet).ok_or(Unreadable::Code(rcode::FORMERR))
    }

    /// The operation asked for.
    pub(crate) fn opcode(&self) -> u8 {
        opcode_of(self.packet)
    }

    /// Where the question ends.
    pub(crate) fn question_end(&self) -> usize {
        HEADER + self.question.name.len() + 4
    }

    fn read_sections(packet: &'p [u8]) -> Option<DnsRequest<'p>> {
        let [questions, answers, authorities, additionals] = [4, 6, 8, 10].map(|at| number(packet, at));
        if questions? != 1 {
            return None;
        }
        let question = RequestQuestion::read(packet.get(HEADER..)?)?;
        let end = HEADER + question.name.len() + 4;
        let mut request = DnsRequest { packet, question, edns: None, tsig: None, serial: None };
        let mut at = end;
        if request.opcode() == opcode::QUERY && answers? != 0 {
            return None;
        }
        for _ in 0..answers? {
            at = Raw::read(packet, at)?.end;
        }
        for _ in 0..authorities? {
            let raw = Raw::read(packet, at)?;
            request.take_authority(&raw)?;
            at = raw.end;
        }
        for left in (0..additionals?).rev() {
            let raw = Raw::read(packet, at)?;
            request.take_additional(&raw, at, left == 0)?;
            at = raw.end;
        }
        (at == packet.len()).then_some(request)
    }

    /// A query has nothing here but the serial of an incremental transfer.
    fn take_authority(&mut self, raw: &Raw) -> Option<()> {
        if self.opcode() != opcode::QUERY {
            return Some(());
        }
        if self.question.kind != kind::IXFR || raw.kind != kind::SOA || self.serial.is_some() {
            return None;
        }
        let numbers = skip_name(self.packet, skip_name(self.packet, raw.data)?)?;
        if numbers + 20 != raw.end {
            return None;
        }
        self.serial =
            Some(u32::from(number(self.packet, numbers)?) << 16 | u32::from(number(self.packet, numbers + 2)?));
        Some(())
    }

    fn take_additional(&mut self, raw: &Raw, start: usize, last: bool) -> Option<()> {
        match raw.kind {
            kind::OPT if self.edns.is_some() || self.packet.get(start) != Some(&0) => None,
            kind::OPT => {
                self.edns = Some(Edns::read(raw, self.packet.get(raw.data..raw.end)?)?);
                Some(())
            }
            kind::TSIG if !last => None,
            kind::TSIG => {
                self.tsig = Some(start);
                Some(())
            }
            _ => Some(()),
        }
    }
}

impl RequestQuestion {
    fn read(bytes: &[u8]) -> Option<RequestQuestion> {
        let name = LabelPath::read(bytes)?;
        let (kind, class) = (number(bytes, name.len())?, number(bytes, name.len() + 2)?);
        Some(RequestQuestion { name, kind, class })
    }
}

impl Edns {
    fn read(raw: &Raw, mut options: &[u8]) -> Option<Edns> {
        let [_, version, flags, _] = raw.ttl;
        let mut edns = Edns { payload: raw.class, version, dnssec_ok: flags & 0x80 != 0, cookie: None };
        while !options.is_empty() {
            let (head, rest) = options.split_first_chunk::<4>()?;
            let (data, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([head[2], head[3]])))?;
            if u16::from_be_bytes([head[0], head[1]]) == COOKIE && edns.cookie.is_none() {
                edns.cookie = Some(Cookie::read(data)?);
            }
            options = rest;
        }
        Some(edns)
    }
}

/// The option code of cookies.
pub(crate) const COOKIE: u16 = 10;

impl Cookie {
    /// Eight bytes of the client, then nothing or 8 to 32 bytes of a server.
    fn read(data: &[u8]) -> Option<Cookie> {
        let (client, server) = data.split_first_chunk::<8>()?;
        let fits = server.is_empty() || (8..=32).contains(&server.len());
        fits.then(|| Cookie { client: *client, server: server.try_into().ok() })
    }
}

/// Whether a packet with a header is an answer.
pub(crate) fn is_response(packet: &[u8]) -> bool {
    packet.get(2).is_some_and(|flags| flags & 0x80 != 0)
}

fn opcode_of(packet: &[u8]) -> u8 {
    packet.get(2).map_or(0, |flags| flags >> 3 & 0x0f)
}

/// A record whose data was not looked at.
struct Raw {
    kind: u16,
    class: u16,
    ttl: [u8; 4],
    data: usize,
    end: usize,
}

impl Raw {
    fn read(packet: &[u8], start: usize) -> Option<Raw> {
        let at = skip_name(packet, start)?;
        let head: &[u8; 10] = packet.get(at..at + 10)?.try_into().ok()?;
        let [k0, k1, c0, c1, t0, t1, t2, t3, l0, l1] = *head;
        let data = at + 10;
        let end = data + usize::from(u16::from_be_bytes([l0, l1]));
        let raw = Raw {
            kind: u16::from_be_bytes([k0, k1]),
            class: u16::from_be_bytes([c0, c1]),
            ttl: [t0, t1, t2, t3],
            data,
            end,
        };
        (end <= packet.len()).then_some(raw)
    }
}

/// Where the bytes after a name begin. A pointer ends a name and is not followed.
fn skip_name(packet: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        match *packet.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            0xc0..=0xff => return packet.get(at + 1).map(|_| at + 2),
            _ => return None,
        }
        if at - start > super::name::MAX_NAME {
            return None;
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query for `a.b` of type A with these counts, flags and bytes behind the question.
    fn packet(flags: u8, counts: [u8; 4], rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 7, flags, 0];
        bytes.extend(counts.iter().flat_map(|count| [0, *count]));
        bytes.extend(b"\x01a\x01b\0\0\x01\0\x01");
        bytes.extend(rest);
        bytes
    }

    const OPT: &[u8] = b"\0\0\x29\x04\xd0\0\0\x80\0\0\0";

    fn refused(bytes: &[u8]) -> Unreadable {
        DnsRequest::read(bytes).map(|_| ()).unwrap_err()
    }

    #[test]
    fn a_plain_query() {
        let bytes = packet(1, [1, 0, 0, 0], b"");
        let request = DnsRequest::read(&bytes).ok().unwrap();
        assert_eq!((request.question.kind, request.question.class, request.question_end()), (1, 1, bytes.len()));
        assert!(request.edns.is_none() && request.tsig.is_none());
    }

    #[test]
    fn edns_and_cookies() {
        let bytes = packet(1, [1, 0, 0, 1], OPT);
        let edns = DnsRequest::read(&bytes).ok().unwrap().edns.unwrap();
        assert_eq!((edns.payload, edns.version, edns.dnssec_ok), (1232, 0, true));
        let cookie = [&OPT[..9], b"\0\x0c\0\x0a\0\x0812345678"].concat();
        let bytes = packet(1, [1, 0, 0, 1], &cookie);
        let edns = DnsRequest::read(&bytes).ok().unwrap().edns.unwrap();
        assert_eq!(edns.cookie, Some(Cookie { client: *b"12345678", server: None }));
        let short = [&OPT[..9], b"\0\x0b\0\x0a\0\x071234567"].concat();
        assert_eq!(refused(&packet(1, [1, 0, 0, 1], &short)), Unreadable::Code(rcode::FORMERR));
    }

    #[test]
    fn what_gets_no_answer() {
        assert_eq!(refused(b"short"), Unreadable::Silent);
        assert_eq!(refused(&packet(0x81, [1, 0, 0, 0], b"")), Unreadable::Silent);
    }

    #[test]
    fn what_is_malformed() {
        let twice = [OPT, OPT].concat();
        let formerr: [Vec<u8>; 8] = [
            packet(1, [0, 0, 0, 0], b""),
            packet(1, [2, 0, 0, 0], b""),
            packet(1, [1, 0, 0, 1], b""),
            packet(1, [1, 0, 0, 0], b"trailing"),
            packet(1, [1, 0, 0, 2], &twice),
            packet(1, [1, 1, 0, 0], OPT),
            packet(1, [1, 255, 255, 255], OPT),
            b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\xc0\x0c\0\x01\0\x01".to_vec(),
        ];
        for bytes in formerr {
            assert_eq!(refused(&bytes), Unreadable::Code(rcode::FORMERR), "{bytes:?}");
        }
        assert_eq!(refused(&packet(0x10, [1, 0, 0, 0], b"")), Unreadable::Code(rcode::NOTIMP));
    }
}
