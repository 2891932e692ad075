//! Random questions over random zones: our server says what NSD, Knot and BIND say.

use std::net::{SocketAddr, UdpSocket};

use gatepost_dns::embedded::{DnsServer, ServerConfig, ZoneSpec, kind};
use gatepost_testkit::servers::peers::{Peer, PeerSetup, Running, trial};
use gatepost_testkit::{Failed, Trial};

use super::ask::{Answer, Question, socket};
use super::dice::Dice;
use super::zones::{UNKNOWN, below, random, set, text};

const ZONES: usize = 60;
const QUESTIONS: usize = 12_000;

pub(crate) fn trials() -> Vec<Trial> {
    let one = |peer: Peer| {
        trial(&format!("differential::{QUESTIONS} questions as {}", peer.name()), &[peer], move || compare(peer))
    };
    Peer::ALL.map(one).into()
}

/// Zones that are the same for all servers and in all runs.
fn zones() -> Vec<ZoneSpec> {
    (0..ZONES).map(|number| random(&format!("z{number}.test"), &mut Dice::new(number as u64 + 1))).collect()
}

fn compare(peer: Peer) -> Result<(), Failed> {
    let specs = zones();
    let config =
        ServerConfig { zones: set(&specs), workers: 1, rate_limit: None, ..ServerConfig::new("127.0.0.1:0".parse()?) };
    let ours = DnsServer::start(config)?;
    let files = specs.iter().map(|spec| (spec.name.to_string().trim_end_matches('.').to_owned(), text(spec))).collect();
    let theirs = peer.start(&PeerSetup { files, ..PeerSetup::default() })?;
    let client = socket();
    let mut dice = Dice::new(77);
    let mut wrong = Vec::new();
    for _ in 0..QUESTIONS {
        let question = question(&mut dice);
        let tcp = dice.once_in(40);
        let (ours, theirs) =
            (said(&question, tcp, &client, ours.address()), said(&question, tcp, &client, theirs.address));
        let known = peer == Peer::Bind && only_the_code_of_a_circle(&ours, &theirs);
        if ours != theirs && !known {
            wrong.push(format!("{question}\nours: {ours:?}\n{}: {theirs:?}", peer.name()));
        }
    }
    judge(&wrong, &theirs)
}

fn judge(wrong: &[String], theirs: &Running) -> Result<(), Failed> {
    if wrong.is_empty() {
        return Ok(());
    }
    let shown: Vec<_> = wrong.iter().take(8).cloned().collect();
    Err(format!("{} of {QUESTIONS} differ from {}:\n{}", wrong.len(), theirs.peer.name(), shown.join("\n\n")).into())
}

/// Aliases in a circle are NOERROR in Knot and NSD, and SERVFAIL in BIND, with the same records.
fn only_the_code_of_a_circle(ours: &Answer, theirs: &Answer) -> bool {
    let words = |line: &String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let aliases: Vec<_> = ours.answer.iter().map(words).collect();
    let goes_on = |target: &String| aliases.iter().any(|alias| alias[0] == *target);
    let circle = !aliases.is_empty() && aliases.iter().all(|alias| alias[2] == "cname" && goes_on(&alias[3]));
    circle && (ours.code, theirs.code) == (0, 2) && Answer { code: 0, ..theirs.clone() } == *ours
}

fn said(question: &Question, tcp: bool, client: &UdpSocket, server: SocketAddr) -> Answer {
    if tcp { question.ask_tcp(server) } else { question.ask(client, server) }
}

/// A name at, below or beside what exists, in any case.
fn question(dice: &mut Dice) -> Question {
    let apex = if dice.once_in(100) { "elsewhere.test".into() } else { format!("z{}.test", dice.below(ZONES)) };
    let mut name = below(&apex, dice, 5).as_wire().to_vec();
    for byte in &mut name {
        if byte.is_ascii_lowercase() && dice.once_in(2) {
            *byte = byte.to_ascii_uppercase();
        }
    }
    let kinds =
        [kind::A, kind::A, kind::AAAA, kind::TXT, kind::MX, kind::CNAME, kind::NS, kind::SOA, kind::DS, UNKNOWN, 33];
    let kind = *dice.pick(&kinds);
    let edns = dice.once_in(2).then_some(1232);
    Question { id: dice.next() as u16, name, kind, recursion: dice.once_in(2), edns }
}
