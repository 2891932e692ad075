//! A zone ready to be answered from: every name is a node, empty non-terminals included, every set is encoded.
//!
//! A zone never changes. The start of authority stands apart from the other records, so that a new serial costs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;

use super::error::ZoneError;
use super::name::{self, Name};
use super::record::{Data, Record, Soa, kind};
use super::rrset::{HEAD, Rrset};

/// A set must leave room for a header, a question, EDNS and a signature in one message.
const MAX_SET: usize = 65_535 - 12 - 259 - 11 - 28 - 600;

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
    soa_set: Rrset,
    negative: Rrset,
    body: Arc<Body>,
}

#[derive(Debug)]
struct Body {
    apex: Name,
    nodes: Vec<Node>,
    index: HashTable<u32>,
    hasher: RandomState,
    top: u32,
    deepest: usize,
}

/// One name of a zone; without sets it is an empty non-terminal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Node {
    name: Box<[u8]>,
    sets: Vec<Rrset>,
    wildcard: Option<u32>,
    cut: Option<u32>,
    glue: Vec<Glue>,
}

/// A place among the records of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    node: usize,
    set: usize,
    record: usize,
    byte: usize,
}

/// An address record of a delegation's name server, with its owner in full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Glue {
    pub(crate) wire: Box<[u8]>,
    /// Whether the server lies below the cut, so that nobody could find it otherwise.
    pub(crate) required: bool,
}

impl Zone {
    /// Builds a zone, or says which record does not fit and why.
    pub fn build(spec: &ZoneSpec) -> Result<Zone, ZoneError> {
        let sets = encoded(spec)?;
        let mut body = Body::of(&spec.name, sets);
        body.mark_wildcards();
        body.mark_cuts();
        Ok(Zone::with(spec.soa.clone(), Arc::new(body)))
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
        let bodies = || self.body.apex == other.body.apex && self.body.nodes == other.body.nodes;
        soa == self.soa && (Arc::ptr_eq(&self.body, &other.body) || bodies())
    }

    /// Every record but the start of authority, sorted by owner and type.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.sets().flat_map(|(owner, set)| {
            let data = set.data().filter_map(|data| Data::from_wire(set.kind, data));
            data.map(move |data| Record { name: Name::from_lower(owner), ttl: set.ttl(), data })
        })
    }

    /// How many records there are, the start of authority included.
    pub fn count(&self) -> usize {
        1 + self.sets().map(|(_, set)| usize::from(set.count)).sum::<usize>()
    }

    /// Every set but the start of authority, with its owner, sorted.
    pub(crate) fn sets(&self) -> impl Iterator<Item = (&[u8], &Rrset)> {
        self.body.nodes.iter().flat_map(|node| node.sets.iter().map(|set| (&*node.name, set)))
    }

    /// The first record of the zone, the start of authority left out.
    pub(crate) fn first(&self) -> Option<Cursor> {
        self.settle(Cursor { node: 0, set: 0, record: 0, byte: 0 })
    }

    /// The record after this one.
    pub(crate) fn next(&self, cursor: Cursor) -> Option<Cursor> {
        let (_, _, data) = self.at(cursor)?;
        self.settle(Cursor { record: cursor.record + 1, byte: cursor.byte + HEAD + data.len(), ..cursor })
    }

    /// Owner, set and data of a record.
    pub(crate) fn at(&self, cursor: Cursor) -> Option<(&[u8], &Rrset, &[u8])> {
        let node = self.body.nodes.get(cursor.node)?;
        let set = node.sets.get(cursor.set)?;
        Some((&node.name, set, set.data_from(cursor.byte)?))
    }

    /// Moves on to the next set that has a record there.
    fn settle(&self, mut cursor: Cursor) -> Option<Cursor> {
        loop {
            let node = self.body.nodes.get(cursor.node)?;
            match node.sets.get(cursor.set) {
                Some(set) if cursor.record < usize::from(set.count) => return Some(cursor),
                Some(_) => cursor = Cursor { node: cursor.node, set: cursor.set + 1, record: 0, byte: 0 },
                None => cursor = Cursor { node: cursor.node + 1, set: 0, record: 0, byte: 0 },
            }
        }
    }

    /// The start of authority as an answer.
    pub(crate) fn soa_set(&self) -> &Rrset {
        &self.soa_set
    }

    /// The start of authority as it goes with "there is no such thing".
    pub(crate) fn negative(&self) -> &Rrset {
        &self.negative
    }

    /// The most labels that a name of this zone has.
    pub(crate) fn deepest(&self) -> usize {
        self.body.deepest
    }

    /// The node of a lower-case name.
    pub(crate) fn node(&self, name: &[u8]) -> Option<&Node> {
        self.body.find(name).map(|at| self.body.node(at))
    }

    /// The node that answers for names directly below this one that do not exist.
    pub(crate) fn wildcard_below(&self, node: &Node) -> Option<&Node> {
        node.wildcard.map(|at| self.body.node(at))
    }

    /// The delegation at or above this node that is nearest to the apex.
    pub(crate) fn cut_above(&self, node: &Node) -> Option<&Node> {
        node.cut.map(|at| self.body.node(at))
    }

    /// The set of a type at a node of this zone.
    pub(crate) fn set<'z>(&'z self, node: &'z Node, kind: u16) -> Option<&'z Rrset> {
        if kind == kind::SOA && std::ptr::eq(node, self.body.node(self.body.top)) {
            return Some(&self.soa_set);
        }
        node.set(kind)
    }

    fn with(soa: Soa, body: Arc<Body>) -> Zone {
        let soa_set = Rrset::encode_soa(&soa, &body.apex, soa.ttl);
        let negative = Rrset::encode_soa(&soa, &body.apex, soa.ttl.min(soa.minimum));
        Zone { soa, soa_set, negative, body }
    }
}

impl Node {
    /// The owner.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The set of a type, but for the start of authority.
    pub(crate) fn set(&self, kind: u16) -> Option<&Rrset> {
        self.sets.iter().find(|set| set.kind == kind)
    }

    /// One set that stands for all of them (RFC 8482).
    pub(crate) fn any(&self) -> Option<&Rrset> {
        self.sets.first()
    }

    /// The addresses of the delegation's name servers, needed ones first.
    pub(crate) fn glue(&self) -> &[Glue] {
        &self.glue
    }
}

impl Body {
    /// The nodes of these sets, and all names between them and the apex.
    fn of(apex: &Name, sets: BTreeMap<Vec<u8>, Vec<Rrset>>) -> Body {
        let mut between = BTreeSet::new();
        for owner in sets.keys() {
            let mut above = name::parent(owner).filter(|_| owner.len() > apex.as_wire().len());
            while let Some(owner) = above.filter(|owner| !sets.contains_key(*owner)) {
                above = name::parent(owner).filter(|_| owner.len() > apex.as_wire().len());
                if !between.insert(owner.to_vec()) {
                    break;
                }
            }
        }
        let mut sets = sets;
        sets.extend(between.into_iter().map(|owner| (owner, Vec::new())));
        let deepest = sets.keys().map(|owner| name::labels(owner)).max().unwrap_or_default();
        let node =
            |(owner, sets): (Vec<u8>, _)| Node { name: owner.into(), sets, wildcard: None, cut: None, glue: vec![] };
        let nodes = sets.into_iter().map(node).collect();
        Body::indexed(apex, nodes, deepest)
    }

    fn indexed(apex: &Name, nodes: Vec<Node>, deepest: usize) -> Body {
        let hasher = RandomState::new();
        let mut index = HashTable::with_capacity(nodes.len());
        let mut top = 0;
        for (at, node) in (0u32..).zip(&nodes) {
            let rehash = |at: &u32| hasher.hash_one(&*nodes[*at as usize].name);
            index.insert_unique(hasher.hash_one(&*node.name), at, rehash);
            if *node.name == *apex.as_wire() {
                top = at;
            }
        }
        Body { apex: apex.clone(), nodes, index, hasher, top, deepest }
    }

    /// The nodes are never fewer than their index says.
    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        self.index.find(self.hasher.hash_one(name), |at| *self.node(*at).name == *name).copied()
    }

    /// Tells each node of the asterisk below it.
    fn mark_wildcards(&mut self) {
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            let above =
                name::parent(&node.name).filter(|_| name::is_wildcard(&node.name)).and_then(|above| self.find(above));
            if let Some(above) = above {
                self.nodes[above as usize].wildcard = Some(at as u32);
            }
        }
    }

    /// Tells each node at or below a delegation of the highest one, and each delegation of its servers' addresses.
    fn mark_cuts(&mut self) {
        let is_cut = |at: u32, node: &Node| at != self.top && node.set(kind::NS).is_some();
        let cuts: Vec<u32> =
            (0u32..).zip(&self.nodes).filter(|(at, node)| is_cut(*at, node)).map(|(at, _)| at).collect();
        if cuts.is_empty() {
            return;
        }
        let above: Vec<Option<u32>> = self.nodes.iter().map(|node| self.highest_cut(&node.name, &cuts)).collect();
        for (node, cut) in self.nodes.iter_mut().zip(above) {
            node.cut = cut;
        }
        for cut in cuts {
            self.nodes[cut as usize].glue = self.glue(cut);
        }
    }

    /// Cuts are in the order of nodes, so sorted.
    fn highest_cut(&self, name: &[u8], cuts: &[u32]) -> Option<u32> {
        let mut highest = None;
        let mut rest = Some(name);
        while let Some(name) = rest.filter(|name| name.len() > self.apex.as_wire().len()) {
            highest = self.find(name).filter(|at| cuts.binary_search(at).is_ok()).or(highest);
            rest = name::parent(name);
        }
        highest
    }

    fn glue(&self, cut: u32) -> Vec<Glue> {
        let cut = self.node(cut);
        let servers = cut.set(kind::NS).into_iter().flat_map(Rrset::data);
        let mut glue: Vec<Glue> = servers
            .filter_map(|server| self.find(server).map(|at| self.node(at)))
            .flat_map(|server| addresses(server, name::is_within(&server.name, &cut.name)))
            .collect();
        glue.sort_by_key(|glue| !glue.required);
        glue
    }
}

/// The address records of a node, owners in full.
fn addresses(node: &Node, required: bool) -> impl Iterator<Item = Glue> {
    let sets = [kind::A, kind::AAAA].into_iter().filter_map(|kind| node.set(kind));
    sets.flat_map(move |set| {
        set.data().map(move |data| {
            let mut wire = node.name.to_vec();
            wire.extend(set.kind.to_be_bytes());
            wire.extend(1u16.to_be_bytes());
            wire.extend(set.ttl().to_be_bytes());
            wire.extend((data.len() as u16).to_be_bytes());
            wire.extend(data);
            Glue { wire: wire.into(), required }
        })
    })
}

/// Type and data of a record, with its TTL.
type Line = (u16, Vec<u8>, u32);

/// All sets by owner, the start of authority left out, after every rule was checked.
fn encoded(spec: &ZoneSpec) -> Result<BTreeMap<Vec<u8>, Vec<Rrset>>, ZoneError> {
    let mut lines: BTreeMap<Vec<u8>, Vec<Line>> = BTreeMap::new();
    for server in &spec.servers {
        let data = Data::Ns(server.clone()).to_wire();
        lines.entry(spec.name.as_wire().to_vec()).or_default().push((kind::NS, data, spec.servers_ttl));
    }
    for record in &spec.records {
        check_record(spec, record)?;
        let line = (record.data.kind(), record.data.to_wire(), record.ttl);
        lines.entry(record.name.as_wire().to_vec()).or_default().push(line);
    }
    let apex = lines.get(spec.name.as_wire());
    if !apex.is_some_and(|lines| lines.iter().any(|line| line.0 == kind::NS)) {
        return Err(ZoneError::NoNameServer { zone: spec.name.clone() });
    }
    lines.into_iter().map(|(owner, lines)| Ok((owner.clone(), sets(&Name::from_lower(&owner), lines)?))).collect()
}

fn check_record(spec: &ZoneSpec, record: &Record) -> Result<(), ZoneError> {
    let name = &record.name;
    let refuse =
        |cause: &str| Err(ZoneError::Data { name: name.clone(), kind: record.data.kind(), cause: cause.to_owned() });
    if !name.is_within(&spec.name) {
        return Err(ZoneError::Outside { name: name.clone(), zone: spec.name.clone() });
    }
    match record.data {
        Data::Cname(_) if *name == spec.name => refuse("the apex of a zone cannot be an alias"),
        Data::Ns(_) if name.is_wildcard() => refuse("a wildcard cannot be a delegation"),
        _ => record.data.check(name),
    }
}

/// The sets of one owner: sorted, each record once, one TTL per set.
fn sets(owner: &Name, mut lines: Vec<Line>) -> Result<Vec<Rrset>, ZoneError> {
    lines.sort();
    let sets: Vec<Rrset> = lines.chunk_by(|a, b| a.0 == b.0).map(set).collect();
    let alias = sets.iter().find(|set| set.kind == kind::CNAME);
    if alias.is_some_and(|alias| alias.count > 1 || sets.len() > 1) {
        return Err(ZoneError::BesideCname { name: owner.clone() });
    }
    match sets.iter().find(|set| set.wire().len() > MAX_SET) {
        Some(set) => Err(ZoneError::TooLarge { name: owner.clone(), kind: set.kind, bytes: set.wire().len() }),
        None => Ok(sets),
    }
}

fn set(lines: &[Line]) -> Rrset {
    let ttl = lines.iter().map(|line| line.2).min().unwrap_or_default();
    let kind = lines.first().map_or(0, |line| line.0);
    let data = lines.chunk_by(|a, b| a.1 == b.1).filter_map(|same| same.first());
    Rrset::encode(kind, ttl, data.map(|line| &*line.1))
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
