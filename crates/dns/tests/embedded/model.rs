//! Lookup against a naive model: RFC 1034, section 4.3.2, and RFC 4592, by looking at every record every time.

use std::net::Ipv4Addr;

use domain::base::message::RecordSection;
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, Rtype};
use gatepost_dns::embedded::{Act, Arrival, Data, Name, Record, Responder, ServerConfig, Transport, ZoneSpec, kind};
use gatepost_testkit::{Failed, Trial};
use proptest::test_runner::{Config as Cases, TestCaseError, TestRunner};

use super::ask::Question;
use super::dice::Dice;
use super::zones::{self, UNKNOWN, below, random};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("model::lookup is as the standards say", lookup),
        Trial::test("model::zones in zones", zones_in_zones),
        Trial::test("model::any is one set", any_is_one_set),
    ]
}

/// What an answer says: code, AA, and the records of a section as owner, type, TTL and data.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: u8,
    authoritative: bool,
    answer: Vec<Line>,
    authority: Vec<Line>,
}

type Line = (String, u16, u32, Vec<u8>);

fn lookup() -> Result<(), Failed> {
    let mut runner = TestRunner::new(Cases { cases: 400, failure_persistence: None, ..Cases::default() });
    let seeds = (proptest::num::u64::ANY, proptest::num::u64::ANY);
    let judged = runner.run(&seeds, |(zone, questions)| {
        let specs = [random("z.test", &mut Dice::new(zone)), random("y.test", &mut Dice::new(!zone))];
        let answers = Answers::of(&specs);
        let mut dice = Dice::new(questions);
        for _ in 0..50 {
            let apex = *dice.pick(&["z.test", "z.test", "y.test", "other.test"]);
            let name = below(apex, &mut dice, 5);
            let kind = *dice.pick(&[1, 1, 28, 16, 15, 5, 2, 6, kind::DS, UNKNOWN, 33]);
            same(&format!("{name} TYPE{kind}"), answers.say(&name, kind), model(&specs, &name, kind))?;
        }
        Ok(())
    });
    judged.map_err(|error| error.to_string().into())
}

fn same(what: &str, ours: Said, model: Said) -> Result<(), TestCaseError> {
    if ours == model {
        return Ok(());
    }
    Err(TestCaseError::fail(format!("{what}\nours:  {ours:?}\nmodel: {model:?}")))
}

/// A zone below another one: the nearest answers, but for what only the parent knows.
fn zones_in_zones() -> Result<(), Failed> {
    let parent = zones::spec(
        "test",
        1,
        vec![
            zones::record("sub.test", Data::Ns(zones::name("ns.sub.test"))),
            zones::record("sub.test", Data::Other(kind::DS, vec![1, 2, 3, 4])),
            zones::a("ns.sub.test", [1, 1, 1, 1]),
            zones::record("to.test", Data::Cname(zones::name("www.sub.test"))),
        ],
    );
    let child = zones::spec("sub.test", 1, vec![zones::a("www.sub.test", [2, 2, 2, 2])]);
    let answers = Answers::of(&[parent, child]);
    let owners = |name: &str, kind: u16| {
        let said = answers.say(&zones::name(name), kind);
        let lines = said.answer.iter().chain(&said.authority).map(|line| (line.0.clone(), line.1)).collect::<Vec<_>>();
        (said.code, said.authoritative, lines)
    };
    let line = |owner: &str, kind: u16| (owner.to_owned(), kind);
    assert_eq!(owners("www.sub.test", 1), (0, true, vec![line("www.sub.test.", 1)]));
    assert_eq!(owners("sub.test", kind::DS), (0, true, vec![line("sub.test.", kind::DS)]));
    assert_eq!(owners("x.sub.test", 1), (3, true, vec![line("sub.test.", 6)]));
    assert_eq!(owners("to.test", 1), (0, true, vec![line("to.test.", 5), line("www.sub.test.", 1)]));
    assert_eq!(owners("test", kind::DS), (0, true, vec![line("test.", 6)]));
    Ok(())
}

fn any_is_one_set() -> Result<(), Failed> {
    let records = vec![zones::a("x.test", [1, 1, 1, 1]), zones::record("x.test", Data::text("x".repeat(900)))];
    let answers = Answers::of(&[zones::spec("test", 1, records)]);
    let said = answers.say(&zones::name("x.test"), kind::ANY);
    assert_eq!((said.code, said.answer.len(), said.answer[0].1), (0, 1, kind::A));
    assert_eq!(answers.say(&zones::name("test"), kind::ANY).answer.len(), 1);
    assert_eq!(answers.say(&zones::name("no.test"), kind::ANY).code, 3);
    Ok(())
}

/// Our answers, without sockets.
struct Answers {
    responder: Responder,
    zones: gatepost_dns::embedded::ZoneSet,
}

impl Answers {
    fn of(specs: &[ZoneSpec]) -> Answers {
        let responder = Responder::new(&ServerConfig::new("127.0.0.1:0".parse().unwrap())).unwrap();
        Answers { responder, zones: zones::set(specs) }
    }

    fn say(&self, name: &Name, kind: u16) -> Said {
        let question = Question { name: name.as_wire().to_vec(), ..Question::of(".", kind) };
        let arrival = Arrival { source: Ipv4Addr::LOCALHOST.into(), transport: Transport::Tcp, now: 0 };
        let mut reply = Vec::new();
        let act = self.responder.respond(&self.zones, &question.packet(), arrival, &mut reply);
        assert!(matches!(act, Act::Reply(_)), "{act:?}");
        let message = Message::from_octets(&*reply).unwrap();
        Said {
            code: message.header().rcode().to_int(),
            authoritative: message.header().aa(),
            answer: lines(message.answer().unwrap()),
            authority: lines(message.authority().unwrap()),
        }
    }
}

/// The data of a start of authority is compressed, and so left out.
fn lines(section: RecordSection<'_, &[u8]>) -> Vec<Line> {
    let line = |record: domain::base::ParsedRecord<'_, &[u8]>| {
        let record = record.to_record::<UnknownRecordData<&[u8]>>().unwrap().unwrap();
        let data = if record.rtype() == Rtype::SOA { vec![] } else { record.data().data().to_vec() };
        (format!("{}.", record.owner()).to_lowercase(), record.rtype().to_int(), record.ttl().as_secs(), data)
    };
    let mut lines: Vec<_> = section.map(|record| line(record.unwrap())).collect();
    lines.sort();
    lines
}

/// The model: zones as lists of records.
fn model(specs: &[ZoneSpec], asked: &Name, kind: u16) -> Said {
    let mut said = Said { code: 0, authoritative: true, answer: vec![], authority: vec![] };
    let mut name = asked.clone();
    let mut seen = vec![name.clone()];
    loop {
        let Some(zone) = specs.iter().find(|spec| name.is_within(&spec.name)) else {
            if said.answer.is_empty() {
                (said.code, said.authoritative) = (5, false);
            }
            break;
        };
        let all = records(zone);
        if let Some(cut) = cut(zone, &all, &name, kind) {
            said.authority = of(&all, &cut, &cut, kind::NS);
            said.authoritative = !said.answer.is_empty();
            break;
        }
        let Some(node) = node(zone, &all, &name) else {
            said.authority = vec![negative(zone)];
            said.code = 3;
            break;
        };
        let found = of(&all, &node, &name, kind);
        let alias = of(&all, &node, &name, kind::CNAME);
        said.answer.extend(if found.is_empty() { alias.clone() } else { found.clone() });
        if !found.is_empty() {
            break;
        }
        if alias.is_empty() {
            said.authority = vec![negative(zone)];
            break;
        }
        let target = all.iter().find(|record| record.name == node).map(|record| record.data.clone());
        let Some(Data::Cname(target)) = target else { unreachable!() };
        if seen.contains(&target) {
            break;
        }
        seen.push(target.clone());
        name = target;
    }
    said.answer.sort();
    said
}

/// The records of a zone, its name servers and start of authority among them.
fn records(zone: &ZoneSpec) -> Vec<Record> {
    let servers = zone.servers.iter().map(|server| Data::Ns(server.clone()));
    let apex = servers.map(|data| Record { name: zone.name.clone(), ttl: zone.servers_ttl, data });
    let soa = Record { name: zone.name.clone(), ttl: zone.soa.ttl, data: Data::Other(kind::SOA, vec![]) };
    apex.chain([soa]).chain(zone.records.clone()).collect()
}

/// The highest delegation at or above a name; the parent itself answers for DS at a delegation.
fn cut(zone: &ZoneSpec, all: &[Record], name: &Name, kind: u16) -> Option<Name> {
    let mut above = Some(name.clone());
    let mut found = None;
    while let Some(one) = above.filter(|one| *one != zone.name) {
        if all.iter().any(|record| record.name == one && record.data.kind() == kind::NS) {
            found = Some(one.clone());
        }
        above = one.parent();
    }
    found.filter(|cut| !(kind == kind::DS && cut == name))
}

/// The name itself if it exists, else the wildcard that stands for it.
fn node(zone: &ZoneSpec, all: &[Record], name: &Name) -> Option<Name> {
    let exists = |name: &Name| all.iter().any(|record| record.name.is_within(name));
    if exists(name) {
        return Some(name.clone());
    }
    let mut encloser = name.parent()?;
    while !exists(&encloser) && encloser != zone.name {
        encloser = encloser.parent()?;
    }
    let wildcard = Name::parse(&format!("*.{encloser}")).ok()?;
    exists(&wildcard).then_some(wildcard)
}

/// The records of a type at a node, as if the owner were another name. A set has one TTL.
fn of(all: &[Record], node: &Name, owner: &Name, kind: u16) -> Vec<Line> {
    let set = || all.iter().filter(|record| record.name == *node && record.data.kind() == kind);
    let ttl = set().map(|record| record.ttl).min().unwrap_or_default();
    let mut lines: Vec<Line> = set().map(|record| (owner.to_string(), kind, ttl, record.data.to_wire())).collect();
    lines.sort();
    lines.dedup();
    lines
}

fn negative(zone: &ZoneSpec) -> Line {
    (zone.name.to_string(), kind::SOA, zone.soa.ttl.min(zone.soa.minimum), vec![])
}
