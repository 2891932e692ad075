//! Zones for tests: as plain values for our server, as text for the others.

use std::fmt::Write;

use gatepost_dns::embedded::{Data, Name, Record, Soa, Zone, ZoneSet, ZoneSpec, kind};

use super::dice::Dice;

/// A type that nobody knows.
pub(crate) const UNKNOWN: u16 = 65_280;

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A zone of these records, with one name server that has an address.
pub(crate) fn spec(apex: &str, serial: u32, records: Vec<Record>) -> ZoneSpec {
    let soa = Soa::new(name(&format!("ns1.{apex}")), name(&format!("hostmaster.{apex}")), serial);
    let mut all = vec![Record::new(&format!("ns1.{apex}"), 300, Data::A([192, 0, 2, 53].into())).unwrap()];
    all.extend(records);
    ZoneSpec { name: name(apex), soa, servers: vec![name(&format!("ns1.{apex}"))], servers_ttl: 300, records: all }
}

pub(crate) fn a(owner: &str, address: [u8; 4]) -> Record {
    Record::new(owner, 60, Data::A(address.into())).unwrap()
}

pub(crate) fn record(owner: &str, data: Data) -> Record {
    Record::new(owner, 60, data).unwrap()
}

pub(crate) fn set(specs: &[ZoneSpec]) -> ZoneSet {
    let zones = specs.iter().map(|spec| Zone::build(spec).unwrap_or_else(|error| panic!("{error}")));
    ZoneSet::new(zones).unwrap()
}

/// The zone as the text of a zone file.
pub(crate) fn text(spec: &ZoneSpec) -> String {
    let soa = &spec.soa;
    let numbers = format!("{} {} {} {} {}", soa.serial, soa.refresh, soa.retry, soa.expire, soa.minimum);
    let mut text = format!("{} {} IN SOA {} {} {numbers}\n", spec.name, soa.ttl, soa.primary, soa.mailbox);
    for server in &spec.servers {
        writeln!(text, "{} {} IN NS {server}", spec.name, spec.servers_ttl).unwrap();
    }
    for record in &spec.records {
        writeln!(text, "{} {} IN {}", record.name, record.ttl, data(&record.data)).unwrap();
    }
    text
}

fn data(data: &Data) -> String {
    match data {
        Data::A(address) => format!("A {address}"),
        Data::Aaaa(address) => format!("AAAA {address}"),
        Data::Cname(target) => format!("CNAME {target}"),
        Data::Ns(server) => format!("NS {server}"),
        Data::Mx(preference, host) => format!("MX {preference} {host}"),
        other => {
            let wire = other.to_wire();
            let digits: String = wire.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("TYPE{} \\# {} {digits}", other.kind(), wire.len())
        }
    }
}

/// A random zone in which names collide often: wildcards, empty non-terminals, aliases, loops, delegations.
pub(crate) fn random(apex: &str, dice: &mut Dice) -> ZoneSpec {
    let mut records: Vec<Record> = Vec::new();
    for _ in 0..4 + dice.below(20) {
        let owner = below(apex, dice, 4);
        if owner == name(apex) || owner == name(&format!("ns1.{apex}")) || records.iter().any(|one| one.name == owner) {
            continue;
        }
        records.extend(some(apex, &owner, dice));
    }
    let glue = glue(apex, &records);
    records.extend(glue);
    let mut spec = spec(apex, 1 + dice.below(1000) as u32, records);
    (spec.soa.ttl, spec.soa.minimum) = (*dice.pick(&[30, 3600]), *dice.pick(&[5, 60, 7200]));
    spec
}

/// Records of one owner.
fn some(apex: &str, owner: &Name, dice: &mut Dice) -> Vec<Record> {
    let record = |data: Data| Record { name: owner.clone(), ttl: 60, data };
    let address = |dice: &mut Dice| Data::A([198, 51, 100, dice.below(250) as u8].into());
    match dice.below(12) {
        0..=2 => vec![record(Data::Cname(target(apex, dice)))],
        3 | 4 if !owner.is_wildcard() => delegation(apex, owner, dice).into_iter().map(record).collect(),
        5 => vec![record(Data::text("text")), record(address(dice)), record(address(dice))],
        6 => vec![record(Data::Mx(10, target(apex, dice))), record(Data::Other(UNKNOWN, vec![dice.below(255) as u8]))],
        7 => vec![record(Data::Aaaa("2001:db8::7".parse().unwrap()))],
        _ => vec![record(address(dice))],
    }
}

fn delegation(apex: &str, owner: &Name, dice: &mut Dice) -> Vec<Data> {
    let inside = name(&format!("ns.{owner}"));
    let mut data = match dice.below(3) {
        0 => vec![Data::Ns(inside)],
        1 => vec![Data::Ns(name("ns.elsewhere.invalid"))],
        _ => vec![Data::Ns(inside), Data::Ns(name(&format!("ns1.{apex}")))],
    };
    if dice.once_in(3) {
        let digest: Vec<u8> = (0..32).collect();
        data.push(Data::Other(kind::DS, [&[0x12, 0x34, 13, 2][..], &digest].concat()));
    }
    data
}

/// Addresses of the name servers that lie in the zone, unless the name has records already.
fn glue(apex: &str, records: &[Record]) -> Vec<Record> {
    let mut found: Vec<Record> = Vec::new();
    for record in records {
        let Data::Ns(server) = &record.data else { continue };
        let known = records.iter().chain(&found).any(|other| other.name == *server);
        if server.is_within(&name(apex)) && *server != name(&format!("ns1.{apex}")) && !known {
            found.push(Record { name: server.clone(), ttl: 60, data: Data::A([203, 0, 113, 5].into()) });
        }
    }
    found
}

/// A name inside the zone, or one that nobody here serves.
fn target(apex: &str, dice: &mut Dice) -> Name {
    if dice.once_in(6) { name("somewhere.outside.invalid") } else { below(apex, dice, 4) }
}

/// A name of the zone, at most so many labels deep.
pub(crate) fn below(apex: &str, dice: &mut Dice, deep: usize) -> Name {
    let mut text = apex.to_owned();
    for _ in 0..dice.below(deep + 1) {
        let label = *dice.pick(&["a", "b", "c", "a", "b", "*", "ns", "d"]);
        text = format!("{label}.{text}");
    }
    name(&text)
}
