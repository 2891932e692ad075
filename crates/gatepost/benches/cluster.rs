//! The controller on a real API server and BIND: how soon a changed route is a changed answer, and how much memory it takes.
//!
//! ```text
//! cargo bench -p gatepost --bench cluster                       10, 10,000 and 50,000 routes, into docs/performance/cluster.md
//! cargo bench -p gatepost --bench cluster -- --routes 10,10000  these
//! cargo bench -p gatepost --bench cluster -- --binary OLD --binary NEW   processor time per changed route, of each program
//! ```
//!
//! With `--binary`, at 500 and 50,000 routes unless `--routes` says otherwise: `--changes` (40) routes get another hostname, one
//! after the other, and the processor time of the controller's process between the first and the last is divided by them. Every
//! program has the same cluster and a zone of its own. Nothing else runs meanwhile: whole comparisons are an hour apart.
//!
//! Routes go straight into the store of the API server, and from there the way of every change. A change is timed from the
//! moment it is sent to the store to the first answer of BIND that shows it; about a fifth of a second of that is the time for
//! which changes are gathered. Every line has a count or a ratio beside its time; nothing fails for being slow, but it fails
//! where a record is missing.
#![allow(clippy::print_stdout)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gatepost_testkit::servers::kube::{self, ADMIN, Cluster, Setup};
use gatepost_testkit::servers::{DnsServer, KEY_NAME, KEY_SECRET, Kind, Primary};
use serde_json::{Value, json};

const ZONE: &str = "bench.test";
const SIZES: [usize; 3] = [10, 10_000, 50_000];
const CHANGES: usize = 7;
/// With `--binary`.
const COMPARED_SIZES: [usize; 2] = [500, 50_000];
const COMPARED_CHANGES: usize = 40;
/// The time after an answer in which the passes behind a change end; a pass that wrote is followed by another after a second.
const AFTER_CHANGE: Duration = Duration::from_secs(3);
/// Clock ticks of `/proc/PID/stat` in a second, which Linux has fixed.
const TICKS: f64 = 100.0;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().collect();
    // `cargo test --all-targets` runs this program too, and means it to be brief.
    if !words.iter().any(|word| word == "--bench") {
        return Ok(());
    }
    if !kube::is_wanted() || !Kind::Bind.is_wanted() {
        println!("skipped: run scripts/servers, and install BIND");
        return Ok(());
    }
    let asked = values(&words, "--routes").first().copied();
    let asked = asked.map(|list| list.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()).transpose()?;
    let programs = values(&words, "--binary");
    if !programs.is_empty() {
        let changes = values(&words, "--changes").first().map_or(Ok(COMPARED_CHANGES), |text| text.parse())?;
        return compare(&programs, &asked.unwrap_or(COMPARED_SIZES.to_vec()), changes);
    }
    println!(
        "{:>7} {:>12} {:>11} {:>11} {:>7} {:>10} {:>10} {:>10}",
        "routes", "first sync s", "change ms", "at most ms", "ratio", "peak MiB", "steady MiB", "KiB/route"
    );
    let (mut least, mut page) = (None, PAGE.to_owned());
    let sizes = asked.unwrap_or(SIZES.to_vec());
    for routes in sizes.iter().copied() {
        let row = measure(routes)?;
        let [change, most] = [0, row.changes.len() - 1].map(|at| row.changes[at].as_secs_f64() * 1000.0);
        let ratio = change / *least.get_or_insert(change);
        let [peak, steady] = [row.peak, row.steady].map(|kib| kib as f64 / 1024.0);
        let (first, each) = (row.first.as_secs_f64(), row.steady as f64 / routes as f64);
        println!(
            "{routes:>7} {first:>12.1} {change:>11.0} {most:>11.0} {ratio:>7.2} {peak:>10.0} {steady:>10.0} {each:>10.1}"
        );
        page += &format!(
            "| {routes} | {first:.1} s | {change:.0} ms | {most:.0} ms | {ratio:.2} × | {peak:.0} MiB | {steady:.0} MiB |\n"
        );
    }
    println!("change: the least of {CHANGES}; ratio: to the first size; memory: resident, of the controller alone");
    if sizes == SIZES {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        fs::write(root.join("docs/performance/cluster.md"), page)?;
    }
    Ok(())
}

/// The words behind each occurrence of a flag.
fn values<'w>(words: &'w [String], flag: &str) -> Vec<&'w str> {
    words.windows(2).filter(|pair| pair[0] == flag).map(|pair| pair[1].as_str()).collect()
}

/// Measures the processor time per changed route of each program, at each size.
fn compare(programs: &[&str], sizes: &[usize], changes: usize) -> Outcome<()> {
    println!("{:>7} {:>7} {:>14} {:>14} {:>7}  program", "routes", "changes", "ms per change", "ms/s at rest", "ratio");
    for routes in sizes.iter().copied() {
        let cluster = cluster()?;
        cluster.store(
            "gateway.networking.k8s.io",
            "httproutes",
            (0..routes).map(|n| route(n, &format!("host-{n}"))),
        )?;
        let mut first = None;
        for (number, program) in programs.iter().enumerate() {
            let (change, rest) = processor_time(&cluster, number, program, routes, changes)?;
            let ratio = change / *first.get_or_insert(change);
            println!("{routes:>7} {changes:>7} {change:>14.1} {rest:>14.2} {ratio:>7.2}  {program}");
        }
    }
    println!("processor time of the controller's process, user and system; that at rest, for as long, is taken off");
    Ok(())
}

/// Milliseconds of processor time per changed route, and per second at rest.
fn processor_time(
    cluster: &Cluster,
    number: usize,
    program: &str,
    routes: usize,
    changes: usize,
) -> Outcome<(f64, f64)> {
    let (zone, lease) = (bind()?, format!("program-{number}"));
    let controller = Controller::of(program, cluster, &zone, &["--interval", "1h", "--lease", &lease])?;
    controller.until_steps(routes)?;
    std::thread::sleep(2 * AFTER_CHANGE);
    let (start, before) = (Instant::now(), controller.processor_time()?);
    std::thread::sleep(5 * AFTER_CHANGE);
    let rest = (controller.processor_time()? - before) / start.elapsed().as_secs_f64();
    let (start, before) = (Instant::now(), controller.processor_time()?);
    for change in 0..changes {
        let (route_number, label) = (change * routes / changes, format!("changed-{number}-{change}"));
        cluster.store("gateway.networking.k8s.io", "httproutes", [route(route_number, &label)])?;
        until_answered(zone.address, &label)?;
        std::thread::sleep(AFTER_CHANGE);
    }
    let spent = controller.processor_time()? - before - rest * start.elapsed().as_secs_f64();
    Ok((spent / changes as f64, rest))
}

const PAGE: &str = "\
# In a cluster

Written by `make bench`; do not edit. Ratios carry over to other machines, times do not.

`gatepost controller` on a real API server, publishing through BIND. A change is the hostname of one route: from the moment it is in the
store of the API server to the first answer of BIND that shows it, a fifth of a second included for which changes are gathered. The
least and the most of seven changes, and how the least compares with that of the first line. Memory is what the controller's process
occupies: at most, and at rest.

| routes | until all is published | a change | at most | | memory at most | at rest |
| --- | --- | --- | --- | --- | --- | --- |
";

struct Row {
    first: Duration,
    /// Sorted.
    changes: Vec<Duration>,
    /// KiB.
    peak: u64,
    steady: u64,
}

fn measure(routes: usize) -> Outcome<Row> {
    let (cluster, zone) = (cluster()?, bind()?);
    cluster.store("gateway.networking.k8s.io", "httproutes", (0..routes).map(|n| route(n, &format!("host-{n}"))))?;
    let start = Instant::now();
    let controller = Controller::start(&cluster, &zone)?;
    controller.until_steps(routes)?;
    let first = start.elapsed();
    let found = zone.dump(ZONE)?.iter().filter(|line| line.ends_with(" in a 192.0.2.1")).count();
    if found != routes {
        return Err(format!("{found} records are there instead of {routes}").into());
    }
    let mut changes = Vec::new();
    for change in 0..CHANGES {
        // The passes behind the last change are over.
        std::thread::sleep(Duration::from_secs(4));
        let label = format!("changed-{change}");
        let start = Instant::now();
        cluster.store("gateway.networking.k8s.io", "httproutes", [route(routes / 2, &label)])?;
        until_answered(zone.address, &label)?;
        changes.push(start.elapsed());
    }
    changes.sort();
    std::thread::sleep(Duration::from_secs(4));
    Ok(Row { first, changes, peak: controller.memory("VmHWM:")?, steady: controller.memory("VmRSS:")? })
}

fn accepted() -> Value {
    json!([{
        "type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }])
}

/// A route that its implementation has accepted.
fn route(number: usize, label: &str) -> Value {
    let parent = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "infra", "name": "edge"});
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"namespace": "infra", "name": format!("r{number}")},
        "spec": {
            "hostnames": [format!("{label}.{ZONE}")], "parentRefs": [parent],
            "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "backendRefs": [{"name": "web", "port": 80, "group": "", "kind": "Service", "weight": 1}]}],
        },
        "status": {"parents": [{"parentRef": parent, "controllerName": "example.net/gateway", "conditions": accepted()}]},
    })
}

/// A cluster with a Gateway that its implementation runs.
fn cluster() -> Outcome<Cluster> {
    let cluster = Cluster::start(&Setup::default())?;
    cluster.install_text(&gatepost_objects::crds::yaml()?)?;
    cluster.apply(
        "{apiVersion: v1, kind: Namespace, metadata: {name: gatepost}}\n---\n\
         {apiVersion: v1, kind: Namespace, metadata: {name: infra}}\n---\n\
         {apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: standard}, spec: {controllerName: example.net/gateway}}\n---\n\
         {apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: infra, name: edge}, spec: {gatewayClassName: standard, listeners: [{name: web, port: 80, protocol: HTTP}]}}\n",
    )?;
    let class = json!({"status": {"conditions": accepted()}}).to_string();
    cluster.kubectl(&["patch", "gatewayclass/standard", "--subresource=status", "--type=merge", "-p", &class])?;
    let status = json!({"conditions": accepted(), "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}]});
    cluster.set_status("gateway/edge", "infra", &status)?;
    Ok(cluster)
}

fn bind() -> Outcome<DnsServer> {
    let text = "$TTL 300\n@ SOA ns hostmaster 1 3600 600 86400 30\n@ NS ns\nns A 192.0.2.53\n";
    let primary = Primary { zones: vec![(ZONE.to_owned(), text.to_owned())], ..Primary::default() };
    Ok(Kind::Bind.start(&primary)?)
}

/// `gatepost controller` on both.
struct Controller {
    process: Child,
    http: SocketAddr,
}

impl Controller {
    fn start(cluster: &Cluster, zone: &DnsServer) -> Outcome<Controller> {
        Controller::of(env!("CARGO_BIN_EXE_gatepost"), cluster, zone, &[])
    }

    /// The same of any program, with more words.
    fn of(program: &str, cluster: &Cluster, zone: &DnsServer, more: &[&str]) -> Outcome<Controller> {
        let mut command = Command::new(program);
        let (host, port) = (zone.address.ip().to_string(), zone.address.port().to_string());
        let words = [
            ["--http-addr", "127.0.0.1:0"],
            ["--log-level", "warn"],
            ["--policy", "sync"],
            ["--provider", "rfc2136"],
            ["--rfc2136-host", &host],
            ["--rfc2136-port", &port],
            ["--rfc2136-zone", ZONE],
            ["--rfc2136-tsig-keyname", KEY_NAME],
            ["--rfc2136-tsig-secret", KEY_SECRET],
        ];
        command
            .arg("controller")
            .args(words.as_flattened())
            .args(more)
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig(ADMIN));
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stderr.take().ok_or("no standard error")?).lines();
        let ready = lines.find_map(|line| line.ok().filter(|line| line.starts_with("ready "))).ok_or("it ended")?;
        std::thread::spawn(move || lines.for_each(drop));
        let http = ready.split_whitespace().find_map(|word| word.strip_prefix("http=")).ok_or("no http=")?.parse()?;
        Ok(Controller { process, http })
    }

    /// Waits until so many steps were written.
    fn until_steps(&self, steps: usize) -> Outcome<()> {
        let end = Instant::now() + Duration::from_secs(600);
        let line = format!("gatepost_steps_total{{verb=\"create\"}} {steps}\n");
        while !self.metrics()?.contains(&line) {
            if Instant::now() > end {
                return Err(format!("not all was written: {}", self.metrics()?).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn metrics(&self) -> Outcome<String> {
        let mut stream = TcpStream::connect(self.http)?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Milliseconds of processor time that its process has used, in user and system mode.
    fn processor_time(&self) -> Outcome<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The name of the program, in parentheses, may hold anything; user and system time are 12th and 13th behind it.
        let fields = stat.rsplit_once(')').ok_or("no name")?.1.split_whitespace();
        let ticks = fields.skip(11).take(2).map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        Ok(ticks.iter().sum::<u64>() as f64 * 1000.0 / TICKS)
    }

    /// KiB of memory, as the system counts them.
    fn memory(&self, key: &str) -> Outcome<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
        Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Asks BIND for a name until it has an address.
fn until_answered(server: SocketAddr, label: &str) -> Outcome<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        socket.send(&question(label))?;
        let mut answer = [0; 512];
        socket.recv(&mut answer)?;
        // Response code in the fourth byte, number of answers in the seventh and eighth.
        if answer[3] & 0x0f == 0 && answer[7] == 1 {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("{label} was never answered").into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The question for the address of a name.
fn question(label: &str) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for part in format!("{label}.{ZONE}").split('.') {
        message.push(part.len() as u8);
        message.extend(part.as_bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    message
}
