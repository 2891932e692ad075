//! BIND, Knot and NSD copy our zones with a signature, and follow every change within seconds.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use gatepost_dns::embedded::{Data, DnsServer, Key, Record, Secondary, ServerConfig, TsigAlgorithm, ZoneSpec};
use gatepost_testkit::servers::peers::{Peer, PeerSetup, Running, trial};
use gatepost_testkit::servers::{KEY_NAME, KEY_SECRET, free_address};
use gatepost_testkit::{Failed, Trial};

use super::ask::{Answer, Question, socket};
use super::zones::{a, name, record, set, spec};

/// The zone's own refresh is an hour, so that only an announcement can be this fast.
const SOON: Duration = Duration::from_secs(40);

pub(crate) fn trials() -> Vec<Trial> {
    let one = |peer: Peer| trial(&format!("secondaries::{} follows", peer.name()), &[peer], move || follow(peer));
    Peer::ALL.map(one).into()
}

pub(crate) fn key() -> Key {
    Key::new(KEY_NAME, TsigAlgorithm::Sha256, KEY_SECRET).unwrap()
}

/// A zone large enough for several messages.
fn zone(serial: u32, last: u8) -> ZoneSpec {
    let mut records: Vec<Record> =
        (0..3000u32).map(|n| a(&format!("h{n}.copy.test"), [10, 0, (n >> 8) as u8, n as u8])).collect();
    records.extend([
        a("www.copy.test", [192, 0, 2, last]),
        record("*.wild.copy.test", Data::text("wild")),
        record("alias.copy.test", Data::Cname(name("www.copy.test"))),
        record("mail.copy.test", Data::Mx(10, name("www.copy.test"))),
        record("sub.copy.test", Data::Ns(name("ns.sub.copy.test"))),
        a("ns.sub.copy.test", [192, 0, 2, 99]),
        record("odd.copy.test", Data::Other(65_280, vec![1, 2, 3])),
        record("long.copy.test", Data::text("x".repeat(20_000))),
    ]);
    spec("copy.test", serial, records)
}

fn follow(peer: Peer) -> Result<(), Failed> {
    let theirs = free_address()?;
    let secondaries = vec![Secondary { address: theirs, key: Some(key().name().clone()) }];
    let config = ServerConfig {
        zones: set(&[zone(1, 1)]),
        keys: vec![key()],
        secondaries,
        ..ServerConfig::new("127.0.0.1:0".parse()?)
    };
    let ours = DnsServer::start(config)?;
    let setup = PeerSetup {
        copies: vec!["copy.test".into()],
        primary: Some(ours.address()),
        address: Some(theirs),
        ..PeerSetup::default()
    };
    let copy = peer.start(&setup)?;
    for last in 1..=3 {
        if last > 1 {
            let swapped = ours.swap(set(&[zone(1, last)]));
            assert_eq!(swapped.changed, [(name("copy.test"), u32::from(last))]);
        }
        wait_for(&copy, last)?;
        soon_same_everywhere(ours.address(), &copy)?;
    }
    let metrics = ours.metrics();
    assert!(metrics.transfers >= 3 && metrics.transfers_failed == 0, "{metrics:?}");
    assert!(metrics.notifies_confirmed >= 2, "{metrics:?}");
    Ok(())
}

fn wait_for(copy: &Running, last: u8) -> Result<(), Failed> {
    let end = Instant::now() + SOON;
    let wanted = format!("www.copy.test. 60 a 192.0.2.{last}");
    while Question::of("www.copy.test", 1).ask(&socket(), copy.address).answer != [wanted.as_str()] {
        if Instant::now() > end {
            return Err(format!("{} did not get {wanted}:\n{}", copy.peer.name(), copy.log()).into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A server that takes a zone in by new processes lets the old ones answer a moment longer.
fn soon_same_everywhere(ours: SocketAddr, copy: &Running) -> Result<(), Failed> {
    let end = Instant::now() + SOON;
    loop {
        match same_everywhere(ours, copy) {
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(50)),
            outcome => return outcome,
        }
    }
}

fn same_everywhere(ours: SocketAddr, copy: &Running) -> Result<(), Failed> {
    let questions = [
        ("copy.test", 6),
        ("copy.test", 2),
        ("h2999.copy.test", 1),
        ("x.wild.copy.test", 16),
        ("alias.copy.test", 1),
        ("mail.copy.test", 15),
        ("x.sub.copy.test", 1),
        ("odd.copy.test", 65_280),
        ("long.copy.test", 16),
        ("nothing.copy.test", 1),
    ];
    for (owner, kind) in questions {
        let said = |server: SocketAddr| -> Answer { Question::of(owner, kind).ask_tcp(server) };
        let (ours, theirs) = (said(ours), said(copy.address));
        if ours != theirs {
            return Err(format!("{owner} TYPE{kind}: ours {ours:?}\n{}: {theirs:?}", copy.peer.name()).into());
        }
    }
    Ok(())
}
