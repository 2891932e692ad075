//! From plain records to the body of a zone; every rule that records of a zone must keep is checked here.

use std::collections::BTreeSet;
use std::ops::Range;

use super::super::error::ZoneError;
use super::super::name::{self, Name};
use super::super::record::{Data, Record, kind};
use super::super::rrset;
use super::ZoneSpec;
use super::body::{Body, Writer};

/// A set must leave room for a header, a question, EDNS and a signature in one message.
const MAX_SET: usize = 65_535 - 12 - 259 - 11 - 28 - 600;

/// One record: owner, type, where its data stands, TTL.
struct RecordRow<'s> {
    owner: &'s [u8],
    kind: u16,
    data: Range<usize>,
    ttl: u32,
}

/// Builds the body, or says which record does not fit and why.
pub(super) fn body(spec: &ZoneSpec) -> Result<Body, ZoneError> {
    let mut memory = Vec::new();
    let mut lines = lines(spec, &mut memory)?;
    let data = |line: &RecordRow<'_>| &memory[line.data.clone()];
    lines.sort_unstable_by(|a, b| (a.owner, a.kind, data(a)).cmp(&(b.owner, b.kind, data(b))));
    let owners: Vec<&[RecordRow<'_>]> = lines.chunk_by(|a, b| a.owner == b.owner).collect();
    let apex = spec.name.as_wire();
    if !lines.iter().any(|line| line.kind == kind::NS && line.owner == apex) {
        return Err(ZoneError::NoNameServer { zone: spec.name.clone() });
    }
    let mut between = between(apex, &owners).into_iter().peekable();
    let mut writer = Writer::new();
    for owner in owners {
        while let Some(empty) = between.next_if(|empty| *empty < owner[0].owner) {
            begin(&mut writer, spec, empty, 0)?;
        }
        write(&mut writer, spec, owner, &memory)?;
    }
    for empty in between {
        begin(&mut writer, spec, empty, 0)?;
    }
    Ok(writer.finish(&spec.name))
}

/// Every record as a line, its data in one memory.
fn lines<'s>(spec: &'s ZoneSpec, memory: &mut Vec<u8>) -> Result<Vec<RecordRow<'s>>, ZoneError> {
    let mut lines = Vec::with_capacity(spec.servers.len() + spec.records.len());
    let mut add = |owner: &'s Name, kind: u16, ttl: u32, data: &mut dyn FnMut(&mut Vec<u8>)| {
        let start = memory.len();
        data(memory);
        lines.push(RecordRow { owner: owner.as_wire(), kind, data: start..memory.len(), ttl });
    };
    for server in &spec.servers {
        add(&spec.name, kind::NS, spec.servers_ttl, &mut |memory| memory.extend_from_slice(server.as_wire()));
    }
    for record in &spec.records {
        check(spec, record)?;
        add(&record.name, record.data.kind(), record.ttl, &mut |memory| record.data.write(memory));
    }
    Ok(lines)
}

fn check(spec: &ZoneSpec, record: &Record) -> Result<(), ZoneError> {
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

/// The names between owners and the apex that have no records themselves.
fn between<'s>(apex: &[u8], owners: &[&[RecordRow<'s>]]) -> BTreeSet<&'s [u8]> {
    let mut found = BTreeSet::new();
    for owner in owners.iter().map(|lines| lines[0].owner).filter(|owner| owner.len() > apex.len()) {
        let mut above = name::parent(owner);
        while let Some(name) = above.filter(|name| name.len() > apex.len()) {
            let known = owners.binary_search_by(|lines| lines[0].owner.cmp(name)).is_ok() || !found.insert(name);
            above = if known { None } else { name::parent(name) };
        }
    }
    found
}

/// Writes the node of one owner: its sets sorted by type, each record once, one TTL per set.
fn write(writer: &mut Writer, spec: &ZoneSpec, lines: &[RecordRow<'_>], memory: &[u8]) -> Result<(), ZoneError> {
    let owner = lines[0].owner;
    let sets: Vec<(u16, u16, Vec<u8>)> =
        lines.chunk_by(|a, b| a.kind == b.kind).map(|lines| set(lines, memory)).collect();
    if sets.iter().any(|(kind, count, _)| *kind == kind::CNAME && (*count > 1 || sets.len() > 1)) {
        return Err(ZoneError::BesideCname { name: Name::from_lower(owner) });
    }
    if let Some((kind, _, wire)) = sets.iter().find(|(.., wire)| wire.len() > MAX_SET) {
        return Err(ZoneError::TooLarge { name: Name::from_lower(owner), kind: *kind, bytes: wire.len() });
    }
    begin(writer, spec, owner, sets.len() as u16)?;
    for (kind, count, wire) in &sets {
        writer.set(*kind, *count, wire);
    }
    Ok(())
}

fn begin(writer: &mut Writer, spec: &ZoneSpec, owner: &[u8], sets: u16) -> Result<(), ZoneError> {
    writer.node(owner, sets).ok_or_else(|| ZoneError::TooMany { zone: spec.name.clone() })
}

/// Type, number and wire format of the records of one type.
fn set(lines: &[RecordRow<'_>], memory: &[u8]) -> (u16, u16, Vec<u8>) {
    let data = |line: &RecordRow<'_>| &memory[line.data.clone()];
    let ttl = lines.iter().map(|line| line.ttl).min().unwrap_or_default();
    let kind = lines[0].kind;
    let mut wire = Vec::new();
    let mut count: u16 = 0;
    for same in lines.chunk_by(|a, b| data(a) == data(b)) {
        rrset::encode(&mut wire, kind, ttl, data(&same[0]));
        count = count.saturating_add(1);
    }
    (kind, count, wire)
}
