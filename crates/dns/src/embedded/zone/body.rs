//! The records of a zone in one block of memory: node after node, sorted by name, with an index by name.
//!
//! A node is: three links (wildcard below it, delegation above it, addresses of its name servers), the length of its name,
//! the number of its sets, the name, and each set as type, count, length and wire format. Offsets come from the index or
//! from links, so they are always where a node begins.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::super::name::{self, Name};
use super::super::record::kind;
use super::super::rrset::{self, Rrset};

/// No link.
const NONE: u32 = u32::MAX;

/// The bytes of a node before its name.
const FIXED: usize = 4 + 4 + 4 + 1 + 2;

/// The bytes of a set before its records.
const SET: usize = 2 + 2 + 4;

/// The records of a zone, but for the start of authority.
#[derive(Debug)]
pub(crate) struct Body {
    pub(super) apex: Name,
    memory: Vec<u8>,
    index: HashTable<u32>,
    hasher: RandomState,
    glue: Vec<Vec<Glue>>,
    top: u32,
    pub(super) deepest: usize,
}

/// One name of a zone; without sets it is an empty non-terminal.
#[derive(Clone, Copy)]
pub(crate) struct ZoneNode<'z> {
    body: &'z Body,
    at: u32,
}

/// An address record of a delegation's name server, with its owner in full.
#[derive(Debug)]
pub(crate) struct Glue {
    pub(crate) wire: Vec<u8>,
    /// Whether the server lies below the cut, so that nobody could find it otherwise.
    pub(crate) required: bool,
}

/// Writes nodes, which come sorted by name.
pub(super) struct Writer {
    memory: Vec<u8>,
    nodes: Vec<u32>,
    deepest: usize,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer { memory: Vec::new(), nodes: Vec::new(), deepest: 0 }
    }

    /// Begins a node with so many sets; `None` if the zone is larger than an offset can tell.
    pub(super) fn node(&mut self, name: &[u8], sets: u16) -> Option<()> {
        let at = u32::try_from(self.memory.len()).ok().filter(|at| *at < NONE)?;
        self.nodes.push(at);
        self.deepest = self.deepest.max(name::labels(name));
        self.memory.extend_from_slice(&[0xff; 12]);
        self.memory.push(name.len() as u8);
        self.memory.extend_from_slice(&sets.to_le_bytes());
        self.memory.extend_from_slice(name);
        Some(())
    }

    /// Adds a set to the node.
    pub(super) fn set(&mut self, kind: u16, count: u16, wire: &[u8]) {
        self.memory.extend_from_slice(&kind.to_le_bytes());
        self.memory.extend_from_slice(&count.to_le_bytes());
        self.memory.extend_from_slice(&(wire.len() as u32).to_le_bytes());
        self.memory.extend_from_slice(wire);
    }

    pub(super) fn finish(mut self, apex: &Name) -> Body {
        self.memory.shrink_to_fit();
        let hasher = RandomState::new();
        let index = HashTable::with_capacity(self.nodes.len());
        let mut body = Body {
            apex: apex.clone(),
            memory: self.memory,
            index,
            hasher,
            glue: vec![],
            top: 0,
            deepest: self.deepest,
        };
        let mut index = std::mem::take(&mut body.index);
        for at in &self.nodes {
            index.insert_unique(body.hash(*at), *at, |at| body.hash(*at));
        }
        body.index = index;
        body.top = body.find(apex.as_wire()).map_or(0, |node| node.at);
        body.link_wildcards(&self.nodes);
        body.link_cuts(&self.nodes);
        body
    }
}

impl PartialEq for Body {
    /// Equal records make equal memory.
    fn eq(&self, other: &Body) -> bool {
        self.apex == other.apex && self.memory == other.memory
    }
}

impl Body {
    /// The node of a lower-case name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<ZoneNode<'_>> {
        let same = |at: &u32| self.node(*at).name() == name;
        self.index.find(self.hasher.hash_one(name), same).map(|at| self.node(*at))
    }

    /// The nodes in the order of their names.
    pub(super) fn nodes(&self) -> impl Iterator<Item = ZoneNode<'_>> {
        std::iter::successors(self.first(), |node| node.next())
    }

    /// The first node.
    pub(super) fn first(&self) -> Option<ZoneNode<'_>> {
        (!self.memory.is_empty()).then(|| self.node(0))
    }

    /// The node at an offset.
    pub(super) fn node(&self, at: u32) -> ZoneNode<'_> {
        ZoneNode { body: self, at }
    }

    fn hash(&self, at: u32) -> u64 {
        self.hasher.hash_one(self.node(at).name())
    }

    fn set_link(&mut self, at: u32, link: usize, value: u32) {
        let start = at as usize + 4 * link;
        self.memory[start..start + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Tells each node of the asterisk below it.
    fn link_wildcards(&mut self, nodes: &[u32]) {
        for at in nodes {
            let name = self.node(*at).name();
            let above = name::parent(name).filter(|_| name::is_wildcard(name)).and_then(|above| self.find(above));
            if let Some(above) = above.map(|above| above.at) {
                self.set_link(above, 0, *at);
            }
        }
    }

    /// Tells each node at or below a delegation of the highest one, and each delegation of its servers' addresses.
    fn link_cuts(&mut self, nodes: &[u32]) {
        let is_cut = |at: &&u32| **at != self.top && self.node(**at).set(kind::NS).is_some();
        let cuts: Vec<u32> = nodes.iter().filter(is_cut).copied().collect();
        if cuts.is_empty() {
            return;
        }
        let above: Vec<_> = nodes.iter().map(|at| (*at, self.highest_cut(self.node(*at).name(), &cuts))).collect();
        for (at, cut) in above {
            self.set_link(at, 1, cut.unwrap_or(NONE));
        }
        self.glue = cuts.iter().map(|cut| self.glue_of(self.node(*cut))).collect();
        for (number, cut) in (0..).zip(&cuts) {
            self.set_link(*cut, 2, number);
        }
    }

    /// Cuts are in the order of nodes, so sorted.
    fn highest_cut(&self, name: &[u8], cuts: &[u32]) -> Option<u32> {
        let mut highest = None;
        let mut rest = Some(name);
        while let Some(name) = rest.filter(|name| name.len() > self.apex.as_wire().len()) {
            let here = self.find(name).map(|node| node.at).filter(|at| cuts.binary_search(at).is_ok());
            highest = here.or(highest);
            rest = name::parent(name);
        }
        highest
    }

    fn glue_of(&self, cut: ZoneNode<'_>) -> Vec<Glue> {
        let servers = cut.set(kind::NS).into_iter().flat_map(Rrset::data).filter_map(|server| self.find(server));
        let mut glue: Vec<Glue> = servers.flat_map(|server| addresses(server, cut)).collect();
        glue.sort_by_key(|glue| !glue.required);
        glue
    }
}

impl<'z> ZoneNode<'z> {
    /// The owner.
    pub(crate) fn name(&self) -> &'z [u8] {
        let at = self.at as usize;
        let length = usize::from(self.body.memory[at + 12]);
        &self.body.memory[at + FIXED..at + FIXED + length]
    }

    /// The set of a type, but for the start of authority.
    pub(crate) fn set(&self, kind: u16) -> Option<Rrset<'z>> {
        self.sets().find(|set| set.kind == kind)
    }

    /// All sets, sorted by type.
    pub(crate) fn sets(&self) -> impl Iterator<Item = Rrset<'z>> + use<'z> {
        let memory = &self.body.memory;
        let (mut at, mut left) = (self.sets_start(), self.count());
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let set = set_at(memory, at);
            at += SET + set.wire.len();
            Some(set)
        })
    }

    /// Whether this is the apex of the zone.
    pub(crate) fn is_apex(&self) -> bool {
        self.at == self.body.top
    }

    /// The node that answers for names directly below this one that do not exist.
    pub(crate) fn wildcard(&self) -> Option<ZoneNode<'z>> {
        self.link(0).map(|at| self.body.node(at))
    }

    /// The delegation at or above this node that is nearest to the apex.
    pub(crate) fn cut(&self) -> Option<ZoneNode<'z>> {
        self.link(1).map(|at| self.body.node(at))
    }

    /// The addresses of the delegation's name servers, needed ones first.
    pub(crate) fn glue(&self) -> &'z [Glue] {
        self.link(2).and_then(|number| self.body.glue.get(number as usize)).map_or(&[], Vec::as_slice)
    }

    /// Whether this is the same node of the same zone.
    pub(crate) fn is(&self, other: &ZoneNode<'_>) -> bool {
        self.at == other.at && std::ptr::eq(self.body, other.body)
    }

    /// Where it stands.
    pub(super) fn at(&self) -> u32 {
        self.at
    }

    /// The node after this one.
    pub(super) fn next(&self) -> Option<ZoneNode<'z>> {
        let end = self.sets().fold(self.sets_start(), |end, set| end + SET + set.wire.len());
        (end < self.body.memory.len()).then(|| self.body.node(end as u32))
    }

    fn link(&self, link: usize) -> Option<u32> {
        let start = self.at as usize + 4 * link;
        let value = u32::from_le_bytes(four(&self.body.memory, start));
        (value != NONE).then_some(value)
    }

    fn count(&self) -> u16 {
        let at = self.at as usize + 13;
        u16::from_le_bytes([self.body.memory[at], self.body.memory[at + 1]])
    }

    fn sets_start(&self) -> usize {
        self.at as usize + FIXED + self.name().len()
    }
}

fn set_at(memory: &[u8], at: usize) -> Rrset<'_> {
    let [k0, k1, c0, c1] = four(memory, at);
    let length = u32::from_le_bytes(four(memory, at + 4)) as usize;
    let wire = &memory[at + SET..at + SET + length];
    Rrset { kind: u16::from_le_bytes([k0, k1]), count: u16::from_le_bytes([c0, c1]), wire, pointers: &[] }
}

fn four(memory: &[u8], at: usize) -> [u8; 4] {
    [memory[at], memory[at + 1], memory[at + 2], memory[at + 3]]
}

/// The address records of a delegation's name server, owners in full.
fn addresses<'z>(server: ZoneNode<'z>, cut: ZoneNode<'z>) -> impl Iterator<Item = Glue> + use<'z> {
    let required = name::is_within(server.name(), cut.name());
    let sets = [kind::A, kind::AAAA].into_iter().filter_map(move |kind| server.set(kind));
    sets.flat_map(move |set| {
        set.data().map(move |data| {
            let mut wire = server.name().to_vec();
            rrset::encode_body(&mut wire, set.kind, set.ttl(), data);
            Glue { wire, required }
        })
    })
}
