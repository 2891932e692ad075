//! Real servers as child processes: started on free ports of the loopback address, ended with the test.
//!
//! A server that is not installed is a skip with a name, and a failure where `CI` is set. Nothing here judges what a server
//! answers.

use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub mod backend;
pub mod bind;
pub mod cert_manager;
pub mod cloudflare;
pub mod external_dns;
pub mod helm;
pub mod knot;
pub mod kube;
pub mod pdns;
pub mod pebble;
pub mod peers;
mod process;
pub mod relay;
pub mod route53;

/// The programs that tests run as authoritative primaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// BIND 9, `named`.
    Bind,
    /// Knot DNS, `knotd`.
    Knot,
    /// PowerDNS with SQLite, `pdns_server`.
    Pdns,
}

/// What a primary is to serve.
#[derive(Clone, Debug, Default)]
pub struct Primary {
    /// Zones: name without a dot at the end, and the text of the zone file.
    pub zones: Vec<(String, String)>,
    /// Names that nobody may update; BIND only.
    pub refused: Vec<String>,
    /// Zones that take updates and transfers without a key; BIND only.
    pub open: Vec<String>,
    /// A second address that answers over TLS, with certificate and key in PEM; BIND only.
    pub tls: Option<(SocketAddr, String, String)>,
}

/// The TSIG key that every server here knows.
pub const KEY_NAME: &str = "gatepost";
/// Its secret.
pub const KEY_SECRET: &str = "c2VjcmV0IG9mIHRoZSB0ZXN0IGJlZCwgMzIgYnl0ZXM=";
/// Its algorithm.
pub const KEY_ALGORITHM: &str = "hmac-sha256";

/// A server that runs, and its directory. Both go when it is dropped.
#[derive(Debug)]
pub struct DnsServer {
    /// Which program.
    pub kind: Kind,
    /// Where it answers, over UDP and TCP.
    pub address: SocketAddr,
    command: (PathBuf, Vec<String>),
    zones: Vec<String>,
    process: Mutex<Option<Child>>,
    directory: Scratch,
}

/// A directory that goes when it is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Bind, Kind::Knot, Kind::Pdns];

    /// As tests are named.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bind => "bind",
            Kind::Knot => "knot",
            Kind::Pdns => "powerdns",
        }
    }

    /// The program.
    pub fn program(self) -> &'static str {
        match self {
            Kind::Bind => "named",
            Kind::Knot => "knotd",
            Kind::Pdns => "pdns_server",
        }
    }

    /// Whether tests with it are to run: always where `CI` is set, so that a missing server fails there.
    pub fn is_wanted(self) -> bool {
        find(self.program()).is_some() || std::env::var_os("CI").is_some()
    }

    /// Starts it and waits until it answers for every zone.
    pub fn start(self, primary: &Primary) -> io::Result<DnsServer> {
        let program = find(self.program()).ok_or_else(|| other(format!("{} is not installed", self.program())))?;
        let mut last = other("not tried".to_owned());
        for _ in 0..3 {
            match self.try_start(&program, primary) {
                Ok(server) => return Ok(server),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn try_start(self, program: &Path, primary: &Primary) -> io::Result<DnsServer> {
        let directory = Scratch::new(self.name())?;
        let address = free_address()?;
        let words = match self {
            Kind::Bind => bind::prepare(directory.path(), address, primary)?,
            Kind::Knot => knot::prepare(directory.path(), address, primary)?,
            Kind::Pdns => pdns::prepare(directory.path(), address, primary)?,
        };
        let zones = primary.zones.iter().map(|(name, _)| name.clone()).collect();
        let command = (program.to_owned(), words);
        let server = DnsServer { kind: self, address, command, zones, process: Mutex::default(), directory };
        server.run()?;
        Ok(server)
    }
}

impl DnsServer {
    /// Ends it as a crash would: no signal it could catch.
    pub fn kill(&self) {
        if let Some(mut process) = self.process().take() {
            // It may be gone already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts it on its address and files, and waits until it answers.
    pub fn run(&self) -> io::Result<()> {
        self.kill();
        let log = fs::File::create(self.directory.path().join("log"))?;
        let mut command = Command::new(&self.command.0);
        command.args(&self.command.1).current_dir(self.directory.path()).stdin(Stdio::null());
        *self.process() = Some(command.stdout(log.try_clone()?).stderr(log).spawn()?);
        self.wait()
    }

    /// The number of its process, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.process().as_ref().map(Child::id)
    }

    /// Sends a signal by its name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        if let Some(process) = &*self.process() {
            let _ = Command::new("kill").args([&format!("-{name}"), &process.id().to_string()]).status();
        }
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// The whole zone as other tools see it, see [`dump`].
    pub fn dump(&self, zone: &str) -> io::Result<Vec<String>> {
        dump(self.address, zone)
    }

    /// The serial of a zone; each update makes it one more.
    pub fn serial(&self, zone: &str) -> io::Result<u32> {
        let (server, port) = (format!("@{}", self.address.ip()), self.address.port().to_string());
        let text = output(Command::new("dig").args(["-p", &port, &server, "+tcp", "+short", "soa", zone]))?;
        let serial = text.split_whitespace().nth(2).and_then(|word| word.parse().ok());
        serial.ok_or_else(|| other(format!("the SOA of {zone} is {text}")))
    }

    /// Changes the zone behind everybody's back, in the language of `nsupdate`.
    pub fn edit(&self, zone: &str, lines: &[&str]) -> io::Result<()> {
        let key = format!("{KEY_ALGORITHM}:{KEY_NAME}:{KEY_SECRET}");
        let script = self.directory.path().join(format!("edit-{}", next()));
        let server = format!("server {} {}\nzone {zone}\n", self.address.ip(), self.address.port());
        fs::write(&script, format!("{server}{}\nsend\n", lines.join("\n")))?;
        output(Command::new("nsupdate").args(["-v", "-y", &key]).arg(&script)).map(drop)
    }

    fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) -> io::Result<()> {
        let end = Instant::now() + Duration::from_secs(30);
        let mut left = self.zones.clone();
        while let Some(zone) = left.last() {
            if answers(self.address, zone) {
                left.pop();
                continue;
            }
            let gone = self.process().as_mut().is_none_or(|process| !matches!(process.try_wait(), Ok(None)));
            if gone || Instant::now() > end {
                return Err(other(format!("{} does not serve {zone}:\n{}", self.kind.program(), self.log())));
            }
            sleep(Duration::from_millis(30));
        }
        Ok(())
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Scratch {
    /// A new directory with a telling name.
    pub fn new(name: &str) -> io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("gatepost-{name}-{}-{}", std::process::id(), next()));
        fs::create_dir_all(&path)?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program on the path, or where system programs live.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// A loopback address with a port that is free for UDP and TCP, each port once per process.
///
/// The port lies below those that the system gives to clients. So it stays free while its server is away. And `dig` and `named` let
/// others share their UDP ports: `dig` could get the port of the server that it is to ask, and would then read its own
/// question as an answer without records.
pub fn free_address() -> io::Result<SocketAddr> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let ports = u32::from(SERVER_PORTS.end - SERVER_PORTS.start);
    // Processes begin at different ports, so that two of them rarely try the same one at the same time.
    let first = std::process::id().wrapping_mul(97);
    for _ in 0..ports {
        let offset = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % ports;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, SERVER_PORTS.start + offset as u16));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(other(format!("no port of {SERVER_PORTS:?} is free for both UDP and TCP")))
}

/// Where servers get their ports: below 32768, where the ports of clients begin on Linux.
const SERVER_PORTS: std::ops::Range<u16> = 16384..32768;

/// The whole zone of a server that knows the key of the test bed, as other tools see it: one record per line, sorted, without
/// SOA. Names are in lower case, because compression on the wire mixes the cases of equal names.
pub fn dump(address: SocketAddr, zone: &str) -> io::Result<Vec<String>> {
    let key = format!("{KEY_ALGORITHM}:{KEY_NAME}:{KEY_SECRET}");
    let (server, port) = (format!("@{}", address.ip()), address.port().to_string());
    let words = ["-p", &port, &server, "-y", &key, "+noall", "+answer", "+onesoa", "axfr", zone];
    let text = output(Command::new("dig").args(words))?;
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lowered = |line: String| if line.contains(" IN TXT ") { line } else { line.to_ascii_lowercase() };
    let lines = text.lines().map(|line| lowered(words(line)));
    let is_record = |line: &String| !line.is_empty() && !line.starts_with(';') && !line.contains(" in soa ");
    let mut lines: Vec<String> = lines.filter(is_record).collect();
    lines.sort();
    Ok(lines)
}

/// Runs a program to its end; a failure has what it said.
pub(crate) fn output(command: &mut Command) -> io::Result<String> {
    let done = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        return Ok(text);
    }
    Err(other(format!("{command:?}: {}{text}{}", done.status, String::from_utf8_lossy(&done.stderr))))
}

/// Whether the server has a SOA for the zone.
fn answers(address: SocketAddr, zone: &str) -> bool {
    let ask = || -> io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        io::Write::write_all(&mut stream, &question(zone))?;
        let mut answer = [0; 14];
        stream.read_exact(&mut answer)?;
        // Behind the length: response code in the fourth byte, number of answers in the seventh and eighth.
        Ok(answer[5] & 0x0f == 0 && answer[9] == 1)
    };
    ask().unwrap_or(false)
}

/// The question for the SOA of a zone, with its length in front.
fn question(zone: &str) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in zone.split('.').filter(|label| !label.is_empty()) {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, 6, 0, 1]);
    let length = message.len() as u16;
    [&length.to_be_bytes()[..], &message].concat()
}

fn next() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

fn other(message: String) -> io::Error {
    io::Error::other(message)
}
