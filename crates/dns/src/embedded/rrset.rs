//! Sets of records, encoded once and copied into every answer.

use super::name::{self, Name};
use super::record::{Soa, kind};

/// The bytes of a record before its data: owner pointer, type, class, TTL, length.
pub(crate) const HEAD: usize = 12;

/// The owner pointer that all sets are stored with: the name in the question.
pub(crate) const QUESTION: u16 = 0xc00c;

/// The largest TTL (RFC 2181, section 8).
const MAX_TTL: u32 = i32::MAX as u32;

/// The records of one name and type, in wire format, each with a pointer to the question as owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rrset<'z> {
    pub(crate) kind: u16,
    pub(crate) count: u16,
    pub(crate) wire: &'z [u8],
    /// Where the data of the first record points to its owner.
    pub(crate) pointers: &'z [usize],
}

impl<'z> Rrset<'z> {
    /// Appends the set with another owner pointer.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>, owner: u16) {
        let start = out.len();
        out.extend_from_slice(self.wire);
        if owner != QUESTION {
            self.point_to(&mut out[start..], owner);
        }
    }

    /// The data of each record; that of a start of authority is compressed.
    pub(crate) fn data(self) -> impl Iterator<Item = &'z [u8]> {
        let mut rest = self.wire;
        std::iter::from_fn(move || {
            let (record, tail) = rest.split_at_checked(length(rest)?)?;
            rest = tail;
            record.get(HEAD..)
        })
    }

    /// The data of the record that begins at this byte of the set.
    pub(crate) fn data_from(&self, byte: usize) -> Option<&'z [u8]> {
        let rest = self.wire.get(byte..)?;
        rest.get(HEAD..length(rest)?)
    }

    /// The TTL of the set.
    pub(crate) fn ttl(&self) -> u32 {
        self.wire.get(6..10).and_then(|ttl| ttl.try_into().ok()).map_or(0, u32::from_be_bytes)
    }

    fn point_to(&self, mut copied: &mut [u8], owner: u16) {
        for at in self.pointers {
            copied[*at..at + 2].copy_from_slice(&owner.to_be_bytes());
        }
        while let Some(length) = length(copied) {
            copied[..2].copy_from_slice(&owner.to_be_bytes());
            copied = &mut copied[length..];
        }
    }
}

/// Encodes one record as it stands in a set.
pub(crate) fn encode(wire: &mut Vec<u8>, kind: u16, ttl: u32, data: &[u8]) {
    wire.extend_from_slice(&QUESTION.to_be_bytes());
    encode_body(wire, kind, ttl, data);
}

/// Encodes what follows the owner of a record.
pub(crate) fn encode_body(wire: &mut Vec<u8>, kind: u16, ttl: u32, data: &[u8]) {
    wire.extend_from_slice(&kind.to_be_bytes());
    wire.extend_from_slice(&1u16.to_be_bytes());
    wire.extend_from_slice(&ttl.min(MAX_TTL).to_be_bytes());
    wire.extend_from_slice(&(data.len() as u16).to_be_bytes());
    wire.extend_from_slice(data);
}

/// A start of authority, encoded, its names cut short where they end in the zone's own.
#[derive(Debug, Clone)]
pub(crate) struct SoaSet {
    wire: Vec<u8>,
    pointers: Vec<usize>,
}

impl SoaSet {
    pub(crate) fn encode(soa: &Soa, apex: &Name, ttl: u32) -> SoaSet {
        let mut data = Vec::new();
        let mut pointers = Vec::new();
        for name in [&soa.primary, &soa.mailbox].map(Name::as_wire) {
            let own = name.len().checked_sub(apex.as_wire().len()).filter(|_| name::is_within(name, apex.as_wire()));
            let Some(own) = own.filter(|_| apex.as_wire().len() > 1) else {
                data.extend(name);
                continue;
            };
            data.extend(&name[..own]);
            pointers.push(HEAD + data.len());
            data.extend(QUESTION.to_be_bytes());
        }
        data.extend(soa.numbers());
        let mut wire = Vec::new();
        encode(&mut wire, kind::SOA, ttl, &data);
        SoaSet { wire, pointers }
    }

    pub(crate) fn set(&self) -> Rrset<'_> {
        Rrset { kind: kind::SOA, count: 1, wire: &self.wire, pointers: &self.pointers }
    }
}

/// The length of the first record in these bytes.
fn length(bytes: &[u8]) -> Option<usize> {
    let data = u16::from_be_bytes([*bytes.get(HEAD - 2)?, *bytes.get(HEAD - 1)?]);
    Some(HEAD + usize::from(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_copied_with_any_owner() {
        let mut wire = Vec::new();
        encode(&mut wire, 16, 60, b"\x01a");
        encode(&mut wire, 16, 60, b"\x02bc");
        let set = Rrset { kind: 16, count: 2, wire: &wire, pointers: &[] };
        assert_eq!(set.ttl(), 60);
        assert_eq!(set.data().collect::<Vec<_>>(), [&b"\x01a"[..], b"\x02bc"]);
        assert_eq!(set.data_from(14), Some(&b"\x02bc"[..]));
        let mut out = b"before".to_vec();
        set.append_to(&mut out, 0xc123);
        let owners: Vec<_> = [6, 20].map(|at| (out[at], out[at + 1])).into();
        assert_eq!(owners, [(0xc1, 0x23), (0xc1, 0x23)]);
        assert_eq!(out.len(), 6 + wire.len());
    }

    #[test]
    fn a_start_of_authority_points_to_its_owner() {
        let name = |text: &str| Name::parse(text).unwrap();
        let soa = SoaSet::encode(&Soa::new(name("ns.a.b"), name("x.y"), 1), &name("a.b"), 60);
        let mut out = Vec::new();
        soa.set().append_to(&mut out, 0xc123);
        assert_eq!(&out[..2], b"\xc1\x23");
        assert_eq!(&out[HEAD..HEAD + 10], b"\x02ns\xc1\x23\x01x\x01y\0");
        assert_eq!(out.len(), HEAD + 10 + 20);
    }
}
