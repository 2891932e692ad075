//! Queries per second of the embedded server beside NSD and Knot, with dnsperf, and the reload of a large zone.
//!
//! All servers run at once, each with one worker on the first core, and are asked in turn from the second core: only ratios
//! mean anything. `GATEPOST_BENCH_SECONDS` and `GATEPOST_BENCH_ROUNDS` make it longer. This program is a test bed, so it prints.
#![allow(clippy::print_stdout)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gatepost_dns::embedded::{Data, DnsServer, Name, RateLimit, Record, ServerConfig, Soa, Zone, ZoneSet, ZoneSpec};
use gatepost_testkit::servers::peers::{Peer, PeerSetup, Running};
use gatepost_testkit::servers::{Scratch, find};

const APEX: &str = "bench.test";
const HOSTS: usize = 10_000;
const RELOADED: usize = 100_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().collect();
    if words.iter().any(|word| word == "--serve") {
        return serve();
    }
    // `cargo test --all-targets` runs this program too, and means it to be brief.
    if !words.iter().any(|word| word == "--bench") {
        return Ok(());
    }
    reload()?;
    queries()
}

/// One A record per host, some aliases, a wildcard.
fn records(hosts: usize, last: u8) -> Vec<(String, Data)> {
    let name = |text: &str| Name::parse(text).expect("a name");
    let address = |n: usize| Data::A([10, (n >> 16) as u8, (n >> 8) as u8, n as u8].into());
    let mut all: Vec<_> = (0..hosts).map(|n| (format!("host{n}.{APEX}"), address(n))).collect();
    all.extend((0..hosts / 10).map(|n| (format!("alias{n}.{APEX}"), Data::Cname(name(&format!("host{n}.{APEX}"))))));
    all.push((format!("*.wild.{APEX}"), Data::A([192, 0, 2, 7].into())));
    all.push((format!("ns1.{APEX}"), Data::A([192, 0, 2, last].into())));
    all
}

fn spec(hosts: usize, last: u8) -> ZoneSpec {
    let name = |text: String| Name::parse(&text).expect("a name");
    let records = records(hosts, last).into_iter().map(|(owner, data)| Record { name: name(owner), ttl: 300, data });
    let soa = Soa::new(name(format!("ns1.{APEX}")), name(format!("hostmaster.{APEX}")), 1);
    let servers = vec![name(format!("ns1.{APEX}"))];
    ZoneSpec { name: name(APEX.into()), soa, servers, servers_ttl: 300, records: records.collect() }
}

fn zones(hosts: usize, last: u8) -> ZoneSet {
    ZoneSet::new([Zone::build(&spec(hosts, last)).expect("a zone")]).expect("zones")
}

fn text() -> String {
    let mut text = format!("{APEX}. 3600 IN SOA ns1.{APEX}. hostmaster.{APEX}. 1 3600 600 1209600 60\n");
    writeln!(text, "{APEX}. 300 IN NS ns1.{APEX}.").expect("a string takes text");
    for (owner, data) in records(HOSTS, 53) {
        let data = match data {
            Data::A(address) => format!("A {address}"),
            Data::Cname(target) => format!("CNAME {target}"),
            other => unreachable!("{other:?}"),
        };
        writeln!(text, "{owner}. 300 IN {data}").expect("a string takes text");
    }
    text
}

/// Hosts, aliases and wildcards; a tenth of the names are not there, a twentieth has another type.
fn questions() -> String {
    let mut text = String::new();
    for n in 0..20_000usize {
        let host = n.wrapping_mul(7919) % HOSTS;
        let line = match n % 20 {
            0 | 1 => format!("missing{host}.{APEX} A"),
            2 => format!("host{host}.{APEX} TXT"),
            3 => format!("x{host}.wild.{APEX} A"),
            4 => format!("alias{}.{APEX} A", host / 10),
            _ => format!("host{host}.{APEX} A"),
        };
        writeln!(text, "{line}").expect("a string takes text");
    }
    text
}

/// The embedded server as a process of its own: says its address, and ends with its standard input.
fn serve() -> Outcome<()> {
    let rate_limit = Some(RateLimit::default());
    let server = DnsServer::start(ServerConfig {
        workers: 1,
        rate_limit,
        zones: zones(HOSTS, 53),
        ..ServerConfig::new("127.0.0.1:0".parse()?)
    })?;
    println!("{}", server.address());
    std::io::stdout().flush()?;
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

struct Ours(Child);

impl Ours {
    fn start() -> Outcome<(Ours, SocketAddr)> {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(std::env::current_exe()?).arg("--serve");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        Ok((Ours(child), line.trim().parse()?))
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server under test.
struct Contender {
    name: &'static str,
    address: SocketAddr,
    process: u32,
    per_second: Vec<f64>,
    micros: Vec<f64>,
}

fn queries() -> Outcome<()> {
    let missing: Vec<_> =
        ["dnsperf", "taskset", "nsd", "knotd"].into_iter().filter(|one| find(one).is_none()).collect();
    if !missing.is_empty() {
        println!("queries: skipped, {missing:?} not installed");
        return Ok(());
    }
    let scratch = Scratch::new("bench")?;
    let file = scratch.path().join("questions");
    std::fs::write(&file, questions())?;
    let (ours, address) = Ours::start()?;
    let peers = [Peer::Nsd, Peer::Knot].map(|peer| {
        peer.start(&PeerSetup { files: vec![(APEX.into(), text())], core: Some(0), ..PeerSetup::default() })
    });
    let peers: Vec<Running> = peers.into_iter().collect::<Result<_, _>>()?;
    let new = |name, address, process| Contender { name, address, process, per_second: vec![], micros: vec![] };
    let mut all = vec![new("embedded", address, ours.0.id())];
    all.extend(peers.iter().map(|peer| new(peer.peer.name(), peer.address, peer.id())));
    for _ in 0..number("GATEPOST_BENCH_ROUNDS", 5) {
        for contender in &mut all {
            contender.round(&file, number("GATEPOST_BENCH_SECONDS", 2))?;
        }
    }
    report(&all);
    Ok(())
}

impl Contender {
    fn round(&mut self, file: &Path, seconds: usize) -> Outcome<()> {
        let before = processor_time(self.process);
        let mut command = Command::new("taskset");
        command.args(["-c", "1", "dnsperf", "-s", "127.0.0.1", "-c", "8", "-q", "300"]);
        command.args(["-p", &self.address.port().to_string(), "-l", &seconds.to_string(), "-d"]).arg(file);
        let output = String::from_utf8(command.output()?.stdout)?;
        let number = |label: &str| -> Option<f64> {
            let line = output.lines().find(|line| line.trim_start().starts_with(label))?;
            line.split_once(':')?.1.split_whitespace().next()?.parse().ok()
        };
        let rate = number("Queries per second").ok_or_else(|| format!("dnsperf said\n{output}"))?;
        let lost = number("Queries lost").unwrap_or_default();
        if lost > 1000.0 {
            println!("{}: {lost} queries lost", self.name);
        }
        let spent = processor_time(self.process) - before;
        self.per_second.push(rate);
        self.micros.push(spent * 1e6 / number("Queries completed").unwrap_or(1.0).max(1.0));
        Ok(())
    }
}

fn report(all: &[Contender]) {
    let base = all.iter().find(|one| one.name == "nsd").map(|one| (median(&one.per_second), median(&one.micros)));
    let (rate, micros) = base.unwrap_or((1.0, 1.0));
    println!("{:<10} {:>12} {:>10} {:>16} {:>12}", "server", "queries/s", "of NSD", "CPU us/query", "CPU of NSD");
    for one in all {
        let (own, own_micros) = (median(&one.per_second), median(&one.micros));
        println!("{:<10} {own:>12.0} {:>10.2} {own_micros:>16.2} {:>12.2}", one.name, own / rate, own_micros / micros);
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Seconds of processor time of a process and all that it started; a tick is a hundredth of a second.
fn processor_time(process: u32) -> f64 {
    let all: Vec<[u64; 3]> =
        std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|e| stat(&e.path())).collect();
    let mut family = vec![u64::from(process)];
    let mut ticks = 0;
    while let Some(one) = family.pop() {
        ticks += all.iter().filter(|[id, ..]| *id == one).map(|[_, _, ticks]| ticks).sum::<u64>();
        family.extend(all.iter().filter(|[_, parent, _]| *parent == one).map(|[id, ..]| id));
    }
    ticks as f64 / 100.0
}

/// Number, parent and ticks of a process.
fn stat(folder: &Path) -> Option<[u64; 3]> {
    let text = std::fs::read_to_string(folder.join("stat")).ok()?;
    let (id, rest) = text.split_once(' ')?;
    let fields: Vec<&str> = rest.rsplit(") ").next()?.split(' ').collect();
    let field = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    Some([id.parse().ok()?, field(1)?, field(11)? + field(12)?])
}

/// From plain records to the first answer out of the new zone, while the old one is being served.
fn reload() -> Outcome<()> {
    let server = DnsServer::start(ServerConfig {
        workers: 1,
        zones: zones(RELOADED, 1),
        ..ServerConfig::new("127.0.0.1:0".parse()?)
    })?;
    let mut times = Vec::new();
    for last in 2..7 {
        let spec = spec(RELOADED, last);
        let start = Instant::now();
        server.swap(ZoneSet::new([Zone::build(&spec)?])?);
        while ask(server.address())? != last {}
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("reload of {} records to the changed answer: {:.0} ms", server.zones().zones()[0].count(), median(&times));
    Ok(())
}

/// The last byte of the name server's address.
fn ask(server: SocketAddr) -> Outcome<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut packet = b"\0\x01\0\0\0\x01\0\0\0\0\0\0".to_vec();
    packet.extend(Name::parse(&format!("ns1.{APEX}"))?.as_wire());
    packet.extend([0, 1, 0, 1]);
    socket.send_to(&packet, server)?;
    let mut reply = [0; 512];
    let length = socket.recv(&mut reply)?;
    Ok(reply[length - 1])
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
