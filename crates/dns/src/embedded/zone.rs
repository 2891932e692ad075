//! A zone ready to be answered from: every name is a node, empty non-terminals included, every set is encoded.
//!
//! A zone never changes. The start of authority stands apart from the other records, so that a new serial costs nothing.

use std::sync::Arc;

use super::error::ZoneError;
use super::name::Name;
use super::record::{Data, Record, Soa, kind};
use super::rrset::{HEAD, Rrset, SoaSet};

mod body;
mod build;

pub(crate) use body::{Glue, ZoneNode};

/// What a zone is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneSpec {
    /// The apex.
    pub name: Name,
    /// The start of authority.
    pub soa: Soa,
    /// The name servers of the zone; more may stand among the records.
    pub servers: Vec<Name>,
    /// Seconds for which the name servers may be kept.
    pub servers_ttl: u32,
    /// Everything else.
    pub records: Vec<Record>,
}

/// A zone as it is served.
#[derive(Debug, Clone)]
pub struct Zone {
    soa: Soa,
    soa_set: SoaSet,
    negative: SoaSet,
    body: Arc<body::Body>,
}

/// A place among the records of a zone: the node, the set, the byte in the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    node: u32,
    set: usize,
    byte: usize,
}

impl Zone {
    /// Builds a zone, or says which record does not fit and why.
    pub fn build(spec: &ZoneSpec) -> Result<Zone, ZoneError> {
        Ok(Zone::with(spec.soa.clone(), Arc::new(build::body(spec)?)))
    }

    /// The apex.
    pub fn name(&self) -> &Name {
        &self.body.apex
    }

    /// The start of authority.
    pub fn soa(&self) -> &Soa {
        &self.soa
    }

    /// The same records under another serial.
    pub fn with_serial(&self, serial: u32) -> Zone {
        Zone::with(Soa { serial, ..self.soa.clone() }, self.body.clone())
    }

    /// Whether both zones hold the same, whatever their serials.
    pub fn same_content(&self, other: &Zone) -> bool {
        let soa = Soa { serial: self.soa.serial, ..other.soa.clone() };
        soa == self.soa && (Arc::ptr_eq(&self.body, &other.body) || self.body == other.body)
    }

    /// Every record but the start of authority, sorted by owner and type.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.sets().flat_map(|(owner, set)| {
            let data = set.data().filter_map(move |data| Data::from_wire(set.kind, data));
            data.map(move |data| Record { name: Name::from_lower(owner), ttl: set.ttl(), data })
        })
    }

    /// How many records there are, the start of authority included.
    pub fn count(&self) -> usize {
        1 + self.sets().map(|(_, set)| usize::from(set.count)).sum::<usize>()
    }

    /// Every set but the start of authority, with its owner, sorted.
    fn sets(&self) -> impl Iterator<Item = (&[u8], Rrset<'_>)> {
        self.body.nodes().flat_map(|node| node.sets().map(move |set| (node.name(), set)))
    }

    /// The first record of the zone, the start of authority left out.
    pub(crate) fn first(&self) -> Option<Cursor> {
        self.settle(Cursor { node: self.body.first()?.at(), set: 0, byte: 0 })
    }

    /// The record after this one.
    pub(crate) fn next(&self, cursor: Cursor) -> Option<Cursor> {
        let (_, _, data) = self.at(cursor)?;
        self.settle(Cursor { byte: cursor.byte + HEAD + data.len(), ..cursor })
    }

    /// Owner, set and data of a record.
    pub(crate) fn at(&self, cursor: Cursor) -> Option<(&[u8], Rrset<'_>, &[u8])> {
        let node = self.body.node(cursor.node);
        let set = node.sets().nth(cursor.set)?;
        Some((node.name(), set, set.data_from(cursor.byte)?))
    }

    /// Moves on to the next set that has a record there.
    fn settle(&self, mut cursor: Cursor) -> Option<Cursor> {
        loop {
            let node = self.body.node(cursor.node);
            cursor = match node.sets().nth(cursor.set) {
                Some(set) if cursor.byte < set.wire.len() => return Some(cursor),
                Some(_) => Cursor { set: cursor.set + 1, byte: 0, ..cursor },
                None => Cursor { node: node.next()?.at(), set: 0, byte: 0 },
            }
        }
    }

    /// The start of authority as an answer.
    pub(crate) fn soa_set(&self) -> Rrset<'_> {
        self.soa_set.set()
    }

    /// The start of authority as it goes with "there is no such thing".
    pub(crate) fn negative(&self) -> Rrset<'_> {
        self.negative.set()
    }

    /// The most labels that a name of this zone has.
    pub(crate) fn deepest(&self) -> usize {
        self.body.deepest
    }

    /// The node of a lower-case name.
    pub(crate) fn node(&self, name: &[u8]) -> Option<ZoneNode<'_>> {
        self.body.find(name)
    }

    /// The set of a type at a node of this zone.
    pub(crate) fn set<'z>(&'z self, node: ZoneNode<'z>, kind: u16) -> Option<Rrset<'z>> {
        if kind == kind::SOA && node.is_apex() { Some(self.soa_set()) } else { node.set(kind) }
    }

    fn with(soa: Soa, body: Arc<body::Body>) -> Zone {
        let soa_set = SoaSet::encode(&soa, &body.apex, soa.ttl);
        let negative = SoaSet::encode(&soa, &body.apex, soa.ttl.min(soa.minimum));
        Zone { soa, soa_set, negative, body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn spec(records: &[(&str, Data)]) -> ZoneSpec {
        let records = records.iter().map(|(owner, data)| Record::new(owner, 60, data.clone()).unwrap()).collect();
        let soa = Soa::new(name("ns.example"), name("root.example"), 1);
        ZoneSpec { name: name("example"), soa, servers: vec![name("ns.example")], servers_ttl: 60, records }
    }

    fn a(last: u8) -> Data {
        Data::A([192, 0, 2, last].into())
    }

    #[test]
    fn every_name_between_is_a_node() {
        let zone = Zone::build(&spec(&[("a.b.c.example", a(1))])).unwrap();
        for owner in ["example", "c.example", "b.c.example", "a.b.c.example"] {
            assert!(zone.node(name(owner).as_wire()).is_some(), "{owner}");
        }
        assert!(zone.node(name("b.example").as_wire()).is_none());
        assert_eq!((zone.deepest(), zone.count()), (4, 3));
    }

    #[test]
    fn doubles_are_dropped_and_sets_have_one_ttl() {
        let mut given = spec(&[("a.example", a(1)), ("a.example", a(2)), ("a.example", a(1))]);
        given.records[1].ttl = 30;
        let zone = Zone::build(&given).unwrap();
        let found: Vec<_> =
            zone.records().filter(|record| record.name == name("a.example")).map(|r| (r.ttl, r.data)).collect();
        assert_eq!(found, [(30, a(1)), (30, a(2))]);
    }

    #[test]
    fn what_makes_no_zone_is_refused() {
        let refused = |records: &[(&str, Data)]| Zone::build(&spec(records)).map(|_| ()).unwrap_err();
        let cname = Data::Cname(name("x.example"));
        assert!(matches!(refused(&[("a.example", a(1)), ("a.example", cname.clone())]), ZoneError::BesideCname { .. }));
        assert!(matches!(refused(&[("a.test", a(1))]), ZoneError::Outside { .. }));
        assert!(matches!(refused(&[("example", cname)]), ZoneError::Data { .. }));
        assert!(matches!(refused(&[("*.example", Data::Ns(name("x")))]), ZoneError::Data { .. }));
        assert!(matches!(refused(&[("x.example", Data::Other(39, vec![0]))]), ZoneError::Data { .. }));
        let large: Vec<_> = (0..255u8).map(|n| ("l.example", Data::text(vec![n; 255]))).collect();
        assert!(matches!(refused(&large), ZoneError::TooLarge { .. }));
    }

    #[test]
    fn serials_do_not_count_as_content() {
        let zone = Zone::build(&spec(&[("a.example", a(1))])).unwrap();
        assert!(zone.same_content(&zone.with_serial(9)));
        assert!(zone.same_content(&Zone::build(&spec(&[("a.example", a(1))])).unwrap()));
        assert!(!zone.same_content(&Zone::build(&spec(&[("a.example", a(2))])).unwrap()));
    }
}
