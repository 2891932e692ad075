//! Publishing as people run it: the first sync of 10,000 records into BIND, a pass over them with nothing to do, and how soon a
//! changed file is a changed answer of `serve`. The real external-dns does the same beside it, where it was built.
//!
//! Every line has a count or a ratio beside its time; times are of this machine on this day, ratios carry over. Nothing fails for
//! being slow, but it fails where a record is missing or a name was not answered. `--routes N` takes another size.
#![allow(clippy::print_stdout)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gatepost_testkit::servers::external_dns::{self, ExternalDns};
use gatepost_testkit::servers::{DnsServer, KEY_NAME, KEY_SECRET, Kind, Primary, Scratch};

const ZONE: &str = "bench.test";
const ROUTES: usize = 10_000;
/// Routes of the world that `serve` watches, and how often its file changes.
const SERVED: usize = 1_000;
const EDITS: usize = 5;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().collect();
    // `cargo test --all-targets` runs this program too, and means it to be brief.
    if !words.iter().any(|word| word == "--bench") {
        return Ok(());
    }
    let asked = words.iter().position(|word| word == "--routes").and_then(|at| words.get(at + 1)?.parse().ok());
    let routes = asked.unwrap_or(ROUTES);
    let folder = Scratch::new("publish")?;
    publish(folder.path(), routes)?;
    edits(folder.path())
}

/// A Gateway with a status that external-dns trusts, and a route per hostname.
fn world(routes: usize, address: &str) -> String {
    let accepted = r#"{"type":"Accepted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}"#;
    let mut text = format!(
        r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"infra"}}}}
---
{{"apiVersion":"gateway.networking.k8s.io/v1","kind":"Gateway","metadata":{{"namespace":"infra","name":"edge"}},"spec":{{"gatewayClassName":"standard","listeners":[{{"name":"web","port":80,"protocol":"HTTP"}}]}},"status":{{"addresses":[{{"type":"IPAddress","value":"{address}"}}],"conditions":[{accepted}]}}}}
"#
    );
    for n in 0..routes {
        text += &format!(
            r#"---
{{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{{"namespace":"infra","name":"r{n}"}},"spec":{{"parentRefs":[{{"name":"edge"}}],"hostnames":["host-{n}.{ZONE}"]}},"status":{{"parents":[{{"controllerName":"example.net/gateway","parentRef":{{"name":"edge"}},"conditions":[{accepted}]}}]}}}}
"#
        );
    }
    text
}

fn bind() -> Outcome<DnsServer> {
    let head = format!(
        "{ZONE}. 3600 IN SOA ns1.{ZONE}. hostmaster.{ZONE}. 1 3600 600 1209600 60\n{ZONE}. 300 IN NS ns1.{ZONE}.\n"
    );
    let zones = vec![(ZONE.to_owned(), head + &format!("ns1.{ZONE}. 300 IN A 192.0.2.53\n"))];
    Ok(Kind::Bind.start(&Primary { zones, ..Primary::default() })?)
}

/// First sync, a pass with nothing to do, and a change of every record; ours, then external-dns, each into a BIND of its own.
fn publish(folder: &Path, routes: usize) -> Outcome<()> {
    let files =
        [("one.yaml", "192.0.2.1"), ("two.yaml", "192.0.2.2")].map(|(name, address)| (folder.join(name), address));
    for (file, address) in &files {
        fs::write(file, world(routes, address))?;
    }
    let passes = [("first sync", &files[0], routes), ("no change", &files[0], 0), ("new address", &files[1], routes)];
    let ours = bind()?;
    let theirs = bind()?;
    let peer = ExternalDns::find()?;
    println!("{routes} records into BIND, each with its marker");
    println!("{:<12} {:>10} {:>14} {:>14} {:>8}", "pass", "changes", "gatepost ms", "external-dns", "ratio");
    for (title, (file, address), changes) in passes {
        let start = Instant::now();
        apply(&ours, file, changes)?;
        let our_time = start.elapsed();
        complete(&ours, routes, address)?;
        let their_time = match &peer {
            Some(peer) => Some(sync(peer, &theirs, file, changes)?),
            None => None,
        };
        let times = their_time.map_or_else(
            || ("not built".to_owned(), "-".to_owned()),
            |time| (ms(time), format!("{:.2}", time.as_secs_f64() / our_time.as_secs_f64())),
        );
        println!("{title:<12} {changes:>10} {:>14} {:>14} {:>8}", ms(our_time), times.0, times.1);
    }
    Ok(())
}

/// Runs `gatepost apply`; it must make just so many changes.
fn apply(server: &DnsServer, file: &Path, changes: usize) -> Outcome<()> {
    let address = server.address.to_string();
    let words = [
        "--provider",
        "rfc2136",
        "--rfc2136-host",
        &address,
        "--rfc2136-zone",
        ZONE,
        "--rfc2136-tsig-keyname",
        KEY_NAME,
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command.arg("apply").arg("-f").arg(file).args(words).args(["--txt-owner-id", "me", "-o", "json"]);
    let done = command.env("GATEPOST_RFC2136_TSIG_SECRET", KEY_SECRET).stderr(Stdio::inherit()).output()?;
    let said: serde_json::Value = serde_json::from_slice(&done.stdout)?;
    let made = said["steps"].as_array().map_or(0, Vec::len);
    if !done.status.success() || made != changes {
        return Err(format!("gatepost: {}, {made} steps instead of {changes}", done.status).into());
    }
    Ok(())
}

/// Runs external-dns on the same file; it must make just so many changes.
fn sync(peer: &ExternalDns, server: &DnsServer, file: &Path, changes: usize) -> Outcome<Duration> {
    let mut words = external_dns::rfc2136(server.address, ZONE);
    words.push("--txt-owner-id=me".to_owned());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = fs::read_to_string(file)?;
    let start = Instant::now();
    let done = peer.sync(&text, &words)?;
    let time = start.elapsed();
    let made = external_dns::changes(&done);
    if made != changes {
        return Err(format!("external-dns made {made} changes instead of {changes}").into());
    }
    Ok(time)
}

/// Every record is there, with its address and its marker.
fn complete(server: &DnsServer, routes: usize, address: &str) -> Outcome<()> {
    let dump = server.dump(ZONE)?;
    let records = dump.iter().filter(|line| line.ends_with(&format!(" in a {address}"))).count();
    let markers = dump.iter().filter(|line| line.contains("external-dns/owner=me")).count();
    if (records, markers) != (routes, routes) {
        return Err(format!("{records} records and {markers} markers are there instead of {routes}").into());
    }
    Ok(())
}

/// How soon a changed file is a changed answer, and what was answered meanwhile.
fn edits(folder: &Path) -> Outcome<()> {
    let watched = folder.join("watched");
    fs::create_dir(&watched)?;
    let write = |address: &str| fs::write(watched.join("world.yaml"), world(SERVED, address));
    write("192.0.2.1")?;
    let served = Served::start(&watched)?;
    let mut times = Vec::new();
    let mut asked = 0;
    for edit in 2..2 + EDITS {
        let address = format!("192.0.2.{edit}");
        let start = Instant::now();
        write(&address)?;
        asked += served.until(edit as u8)?;
        times.push(start.elapsed());
    }
    times.sort();
    println!(
        "serve: a file of {SERVED} routes changes, {EDITS} times: {} ms at least, {} at most; {asked} questions meanwhile, all answered",
        ms(times[0]),
        ms(times[EDITS - 1])
    );
    Ok(())
}

/// `gatepost serve` on a folder.
struct Served {
    process: Child,
    dns: SocketAddr,
}

impl Served {
    fn start(folder: &Path) -> Outcome<Served> {
        let folder: PathBuf = folder.to_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
        command.arg("serve").arg("-f").arg(folder).args([
            "--zone",
            ZONE,
            "--dns-addr",
            "127.0.0.1:0",
            "--http-addr",
            "127.0.0.1:0",
        ]);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stderr.take().ok_or("no standard error")?).lines();
        let ready =
            lines.find_map(|line| line.ok().filter(|line| line.starts_with("ready "))).ok_or("it never was ready")?;
        std::thread::spawn(move || lines.for_each(drop));
        let dns = ready.split_whitespace().find_map(|word| word.strip_prefix("dns=")).ok_or("no dns=")?.parse()?;
        Ok(Served { process, dns })
    }

    /// Asks until the last byte of the answer is this one; every answer must be one. The number of questions.
    fn until(&self, last: u8) -> Outcome<usize> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(self.dns)?;
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        let end = Instant::now() + Duration::from_secs(60);
        for count in 1.. {
            socket.send(&question(count as u16))?;
            let mut answer = [0; 512];
            let length = socket.recv(&mut answer)?;
            // Response code in the fourth byte, number of answers in the seventh and eighth.
            if answer[3] & 0x0f != 0 || answer[7] != 1 {
                return Err(format!("not answered: {:?}", &answer[..length]).into());
            }
            if answer[length - 1] == last {
                return Ok(count);
            }
            if Instant::now() > end {
                return Err("the answer never changed".into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        unreachable!("the loop has no end but these")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The question for the address of one host.
fn question(id: u16) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in format!("host-{}.{ZONE}", SERVED / 2).split('.') {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    message
}

fn ms(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64() * 1000.0)
}
