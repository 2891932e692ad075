//! Servers that stand beside the embedded one: with the same zones, to be compared with, or as its secondaries.
//!
//! None of them takes updates. All answer as briefly as they can, so that their answers are comparable.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};

use super::{KEY_ALGORITHM, KEY_NAME, KEY_SECRET, Scratch, answers, find, free_address, other};

mod bind;
mod knot;
mod nsd;

/// The programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// BIND 9, `named`.
    Bind,
    /// Knot DNS, `knotd`.
    Knot,
    /// NSD, `nsd`.
    Nsd,
}

/// What a peer does.
#[derive(Clone, Debug, Default)]
pub struct PeerSetup {
    /// Zones that it has files of: name without a dot at the end, and the text of the file.
    pub files: Vec<(String, String)>,
    /// Zones that it copies from the primary, with the key of the test bed.
    pub copies: Vec<String>,
    /// The primary.
    pub primary: Option<SocketAddr>,
    /// The core that it runs on, alone; else wherever the system puts it.
    pub core: Option<usize>,
    /// Where it listens; else on a free port.
    pub address: Option<SocketAddr>,
}

/// A peer that runs. It ends when it is dropped, and its directory goes.
#[derive(Debug)]
pub struct Running {
    /// Which program.
    pub peer: Peer,
    /// Where it answers, over UDP and TCP.
    pub address: SocketAddr,
    process: Child,
    directory: Scratch,
}

/// How one program is started and configured.
struct PeerProgram {
    program: &'static str,
    arguments: &'static [&'static str],
    write: fn(&Path, SocketAddr, &PeerSetup) -> io::Result<()>,
}

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 3] = [Peer::Bind, Peer::Knot, Peer::Nsd];

    /// As tests are named.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Bind => "bind",
            Peer::Knot => "knot",
            Peer::Nsd => "nsd",
        }
    }

    /// Whether it is installed.
    pub fn is_installed(self) -> bool {
        find(self.words().program).is_some()
    }

    /// Starts it and waits until it answers: for its own zones with their contents, else with anything.
    pub fn start(self, setup: &PeerSetup) -> io::Result<Running> {
        let mut last = other("not tried".to_owned());
        for _ in 0..3 {
            match self.try_start(setup) {
                Ok(running) => return Ok(running),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn try_start(self, setup: &PeerSetup) -> io::Result<Running> {
        let words = self.words();
        let program = find(words.program).ok_or_else(|| other(format!("{} is not installed", words.program)))?;
        let directory = Scratch::new(self.name())?;
        let address = setup.address.map_or_else(free_address, Ok)?;
        (words.write)(directory.path(), address, setup)?;
        for (name, text) in &setup.files {
            fs::write(directory.path().join(format!("{name}.zone")), text)?;
        }
        let log = File::create(directory.path().join("log"))?;
        let mut command = match setup.core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string()]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(words.arguments).current_dir(directory.path()).stdin(Stdio::null());
        let process = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut running = Running { peer: self, address, process, directory };
        running.wait(setup)?;
        Ok(running)
    }

    fn words(self) -> PeerProgram {
        match self {
            Peer::Bind => bind::WORDS,
            Peer::Knot => knot::WORDS,
            Peer::Nsd => nsd::WORDS,
        }
    }
}

impl Running {
    /// What it wrote to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    fn wait(&mut self, setup: &PeerSetup) -> io::Result<()> {
        let end = Instant::now() + Duration::from_secs(60);
        let zones = || setup.files.iter().map(|(name, _)| name);
        let up = |address: SocketAddr| std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
        while !(up(self.address) && zones().all(|zone| answers(self.address, zone))) {
            let gone = !matches!(self.process.try_wait(), Ok(None));
            if gone || Instant::now() > end {
                return Err(other(format!("{} does not answer:\n{}", self.peer.name(), self.log())));
            }
            sleep(Duration::from_millis(30));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // TERM first, because NSD has children that only it can end.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let end = Instant::now() + Duration::from_secs(3);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < end {
            sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A test that needs programs. Where one is missing it is skipped, under a name that says so, and counted; with `CI` set it
/// fails.
pub fn trial(name: &str, needs: &[Peer], test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    let missing: Vec<_> = needs.iter().filter(|peer| !peer.is_installed()).map(|peer| peer.name()).collect();
    if missing.is_empty() {
        return Trial::test(name, test);
    }
    let missing = missing.join(", ");
    if std::env::var_os("CI").is_some() {
        let why = format!("{missing} is not installed");
        return Trial::test(name, move || Err(why.into()));
    }
    Trial::test(format!("{name} (skipped: no {missing} here)"), || Ok(())).with_ignored_flag(true)
}
