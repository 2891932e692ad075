//! Packets that mean harm: malformed, forged, amplifying, endless.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use gatepost_dns::embedded::{Data, DnsServer, ServerConfig, kind};
use gatepost_testkit::{Failed, Trial, tree};

use super::ask::{Question, exchange_tcp, receive, socket};
use super::dice::Dice;
use super::zones::{a, name, record, set, spec};

#[path = "../../../../fuzz/src/query.rs"]
mod query;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("attack::no packet breaks a law", every_seed),
        Trial::test("attack::no packet stops the server", malformed_packets),
        Trial::test("attack::an answer gets no answer", answers_get_no_answer),
        Trial::test("attack::a flood does not amplify", no_amplification),
        Trial::test("attack::a flood of small answers does not amplify", no_small_amplification),
        Trial::test("attack::a cookie opens the way", cookies),
        Trial::test("attack::2000 idle connections disturb nobody", idle_connections),
        Trial::test("attack::slow connections end", slow_connections),
        Trial::test("attack::a set of 4000 records is answered whole", huge_sets),
    ]
}

fn server(config: impl FnOnce(&mut ServerConfig)) -> DnsServer {
    let mut records = vec![
        a("www.attack.test", [192, 0, 2, 1]),
        a("big.attack.test", [192, 0, 2, 2]),
        record("loop.attack.test", Data::Cname(name("loop2.attack.test"))),
        record("loop2.attack.test", Data::Cname(name("loop.attack.test"))),
    ];
    records.extend((1..=10).map(|n| a("ten.attack.test", [192, 0, 2, n])));
    records.extend((0..4).map(|n| record("big.attack.test", Data::text(vec![b'a' + n; 250]))));
    records.extend((0..40).map(|n| record("huge.attack.test", Data::text(vec![b'0' + n; 250]))));
    let mut settings = ServerConfig::new("127.0.0.1:0".parse().unwrap());
    settings.zones = set(&[spec("attack.test", 1, records)]);
    config(&mut settings);
    DnsServer::start(settings).unwrap()
}

fn is_alive(server: SocketAddr) {
    let said = Question::of("www.attack.test", 1).ask(&socket(), server);
    assert_eq!(said.answer, ["www.attack.test. 60 a 192.0.2.1"]);
}

/// The seeds of the fuzz target, and each of them cut, flipped and doubled.
fn every_seed() -> Result<(), Failed> {
    let seeds = tree::files(&tree::root().join("fuzz/seeds/query"));
    assert!(seeds.len() >= 10, "{seeds:?}");
    let mut dice = Dice::new(5);
    for seed in seeds {
        let bytes = std::fs::read(&seed)?;
        query::query(&bytes);
        for variant in variants(&bytes, &mut dice) {
            query::query(&variant);
        }
    }
    Ok(())
}

fn variants(bytes: &[u8], dice: &mut Dice) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (0..bytes.len()).map(|end| bytes[..end].to_vec()).collect();
    all.push([bytes, bytes].concat());
    for _ in 0..200 {
        let mut one = bytes.to_vec();
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(one.len());
            if let Some(byte) = one.get_mut(at) {
                *byte = dice.next() as u8;
            }
        }
        all.push(one);
    }
    all
}

fn malformed_packets() -> Result<(), Failed> {
    let server = server(|config| config.workers = 1);
    let client = socket();
    let mut dice = Dice::new(9);
    let mut packets: Vec<Vec<u8>> =
        (0..300).map(|_| (0..dice.below(600)).map(|_| dice.next() as u8).collect()).collect();
    for seed in tree::files(&tree::root().join("fuzz/seeds/query")) {
        packets.extend(variants(&std::fs::read(&seed)?, &mut dice));
    }
    for packet in &packets {
        client.send_to(packet, server.address())?;
        if packet.len() % 7 == 0 {
            // A connection per packet, closed without reading.
            let mut stream = TcpStream::connect(server.address())?;
            let _ = super::ask::send_tcp(&mut stream, packet);
        }
    }
    is_alive(server.address());
    let metrics = server.metrics();
    assert_eq!(metrics.faults, 0);
    assert!(metrics.formerr > 100 && metrics.ignored > 10, "{metrics:?}");
    Ok(())
}

fn answers_get_no_answer() -> Result<(), Failed> {
    let (one, two) = (server(|config| config.workers = 1), server(|config| config.workers = 1));
    let client = socket();
    client.set_read_timeout(Some(Duration::from_millis(300)))?;
    let mut packet = Question::of("www.attack.test", 1).packet();
    client.send_to(&packet, one.address())?;
    let answer = receive(&client, 4711).expect("an answer");
    packet[2] |= 0x80;
    for forged in [answer.as_slice(), &packet, &packet[..12], &packet[..5]] {
        client.send_to(forged, two.address())?;
        assert!(receive(&client, 4711).is_none(), "answered {forged:?}");
        assert!(exchange_tcp(two.address(), forged).is_none(), "answered {forged:?} over TCP");
    }
    assert_eq!(two.metrics().udp_bytes_out, 0);
    Ok(())
}

/// A flood of the questions with the largest answers, from one source that never proved who it is.
fn no_amplification() -> Result<(), Failed> {
    let server = server(|config| config.workers = 1);
    let client = socket();
    client.set_read_timeout(Some(Duration::from_secs(2)))?;
    let questions = [("big.attack.test", kind::TXT), ("big.attack.test", kind::ANY), ("huge.attack.test", kind::TXT)];
    let mut truncated = 0;
    for round in 0..1500 {
        let (name, kind) = questions[round % 3];
        let edns = if round % 2 == 0 { Some(4096) } else { None };
        let question = Question { edns, id: round as u16, ..Question::of(name, kind) };
        client.send_to(&question.packet(), server.address())?;
        let reply = receive(&client, round as u16).expect("large answers are cut, not dropped");
        assert!(reply.len() <= 1232);
        truncated += usize::from(reply[2] & 2 != 0);
    }
    let metrics = server.metrics();
    let ratio = metrics.udp_bytes_out as f64 / metrics.udp_bytes_in as f64;
    assert!(ratio < 3.0, "amplifies {ratio:.2} times: {metrics:?}");
    assert!(truncated > 900 && metrics.limited_truncated > 100, "{truncated} {metrics:?}");
    let whole = Question::of("big.attack.test", kind::TXT).ask_tcp(server.address());
    assert_eq!(whole.answer.len(), 4, "TCP has it all");
    Ok(())
}

/// "No such name" and its SOA is four times as large as a short question, ten addresses eight times.
fn no_small_amplification() -> Result<(), Failed> {
    for (name, kind) in [("x.attack.test", kind::A), ("ten.attack.test", kind::A)] {
        let server = server(|config| config.workers = 1);
        let client = socket();
        client.set_read_timeout(Some(Duration::from_secs(2)))?;
        for round in 0..1500 {
            let question = Question { edns: None, id: round, ..Question::of(name, kind) };
            client.send_to(&question.packet(), server.address())?;
            receive(&client, round).expect("answers to loopback are cut, not dropped");
        }
        let metrics = server.metrics();
        let ratio = metrics.udp_bytes_out as f64 / metrics.udp_bytes_in as f64;
        assert!(ratio < 3.0, "{name} amplifies {ratio:.2} times: {metrics:?}");
    }
    Ok(())
}

/// Who shows the server's cookie is not limited.
fn cookies() -> Result<(), Failed> {
    let server = server(|config| config.workers = 1);
    let client = socket();
    let ask = |cookie: &[u8], id: u16| {
        let mut packet = Question { id, ..Question::of("big.attack.test", kind::TXT) }.packet();
        let end = packet.len() - 2;
        packet.truncate(end);
        packet.extend(((cookie.len() + 4) as u16).to_be_bytes());
        packet.extend([0, 10]);
        packet.extend((cookie.len() as u16).to_be_bytes());
        packet.extend(cookie);
        client.send_to(&packet, server.address()).unwrap();
        receive(&client, id).expect("an answer")
    };
    let first = ask(b"client!!", 1);
    let cookie = first[first.len() - 24..].to_vec();
    assert_eq!(&cookie[..8], b"client!!");
    for id in 2..200 {
        assert_eq!(ask(&cookie, id)[2] & 2, 0, "cut in spite of its cookie");
    }
    let forged = [b"client!!", &[1; 16][..]].concat();
    let cut = (200..400).filter(|id| ask(&forged, *id)[2] & 2 != 0).count();
    assert!(cut > 100, "{cut} of 200 with a forged cookie were cut");
    Ok(())
}

fn idle_connections() -> Result<(), Failed> {
    let me = std::process::id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &me, "--nofile=8192:"]).status()?;
    assert!(raised.success(), "2000 connections need more file descriptors");
    let server = server(|config| config.tcp.idle = Duration::from_secs(60));
    let mut idle = Vec::new();
    for _ in 0..2000 {
        idle.push(TcpStream::connect(server.address())?);
    }
    let client = socket();
    for id in 0..1000 {
        let said = Question { id, ..Question::of("www.attack.test", 1) }.ask(&client, server.address());
        assert_eq!(said.answer.len(), 1);
    }
    assert_eq!(Question::of("www.attack.test", 1).ask_tcp(server.address()).answer.len(), 1, "TCP is open to others");
    let metrics = server.metrics();
    assert!(metrics.tcp_evicted >= 1500, "{metrics:?}");
    Ok(())
}

fn slow_connections() -> Result<(), Failed> {
    let server = server(|config| config.tcp.idle = Duration::from_millis(200));
    let mut slow = TcpStream::connect(server.address())?;
    slow.set_read_timeout(Some(Duration::from_secs(5)))?;
    let start = Instant::now();
    // A byte now and then does not keep a connection open.
    let packet = Question::of("www.attack.test", 1).packet();
    let framed = [&(packet.len() as u16).to_be_bytes()[..], &packet].concat();
    for byte in framed {
        let written = std::io::Write::write_all(&mut slow, &[byte]);
        // A fixed time: the slowness of the client is what is tried.
        std::thread::sleep(Duration::from_millis(50));
        if written.is_err() || start.elapsed() > Duration::from_secs(60) {
            break;
        }
    }
    assert!(std::io::Read::read(&mut slow, &mut [0; 1]).map_or(true, |length| length == 0));
    assert_eq!(server.metrics().tcp_timeouts, 1);
    Ok(())
}

fn huge_sets() -> Result<(), Failed> {
    let count = 4000_u32;
    let records = (0..count).map(|n| a("many.attack.test", [10, 0, (n >> 8) as u8, n as u8])).collect();
    let zones = set(&[spec("attack.test", 1, records)]);
    let server =
        DnsServer::start(ServerConfig { zones, workers: 1, ..ServerConfig::new("127.0.0.1:0".parse().unwrap()) })?;
    for _ in 0..20 {
        let said = Question::of("many.attack.test", 1).ask_tcp(server.address());
        assert_eq!(said.answer.len(), count as usize);
    }
    Ok(())
}
