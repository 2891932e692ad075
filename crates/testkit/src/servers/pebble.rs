//! Pebble, a real ACME server: accounts, orders, validation by DNS, renewal information, profiles.
//!
//! `scripts/servers-pebble` builds it. It asks the name server that it is given, and nobody else.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;

use super::{Scratch, free_address, other, output};
use crate::tree;

/// A slowness with which nothing is validated while a test runs. A server waits a random part of it, and fails a name with the
/// first of three looks that fails, so that a few seconds would not do.
pub const NEVER: Option<u32> = Some(10_000_000);

/// How the server behaves.
#[derive(Clone, Debug, Default)]
pub struct PebbleSetup {
    /// The name server it asks.
    pub dns: Option<SocketAddr>,
    /// How many good nonces of a hundred it refuses.
    pub refused_nonces: u32,
    /// How many of a hundred valid authorizations it uses again.
    pub reused_authorizations: u32,
    /// How many seconds it takes at most to validate; none where unset.
    pub slowness: Option<u32>,
    /// The identifier and secret of an external account; then none may be made without.
    pub external: Option<(String, String)>,
    /// Names that it refuses.
    pub blocked: Vec<String>,
}

/// A server that runs. It ends when it is dropped.
#[derive(Debug)]
pub struct Pebble {
    address: SocketAddr,
    root: String,
    process: Mutex<Option<Child>>,
    program: PathBuf,
    setup: PebbleSetup,
    directory: Scratch,
}

/// Whether tests with it are to run: always where `CI` is set, so that it fails there when it is missing.
pub fn is_wanted() -> bool {
    program().is_ok_and(|program| program.is_file()) || std::env::var_os("CI").is_some()
}

/// A test that needs it. Where it was not built it is skipped, under a name that says so, and counted.
pub fn trial(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    if is_wanted() {
        return Trial::test(name, test);
    }
    Trial::test(format!("{name} (skipped: scripts/servers-pebble was not run)"), || Ok(())).with_ignored_flag(true)
}

fn program() -> io::Result<PathBuf> {
    let script = tree::root().join("scripts/servers-pebble");
    Ok(PathBuf::from(output(Command::new(script).arg("where"))?.trim()).join("pebble"))
}

impl Pebble {
    /// Starts it and waits until it answers.
    pub fn start(setup: PebbleSetup) -> io::Result<Pebble> {
        let program = program()?;
        let mut last = other("not tried".to_owned());
        for _ in 0..3 {
            match Pebble::try_start(&program, &setup) {
                Ok(pebble) => return Ok(pebble),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn try_start(program: &Path, setup: &PebbleSetup) -> io::Result<Pebble> {
        let directory = Scratch::new("pebble")?;
        let (address, management) = (free_address()?, free_address()?);
        let root = certify(directory.path()).map_err(|error| other(error.to_string()))?;
        fs::write(directory.path().join("pebble.json"), config(address, management, setup).to_string())?;
        let (program, setup) = (program.to_owned(), setup.clone());
        let pebble = Pebble { address, root, process: Mutex::default(), program, setup, directory };
        pebble.run()?;
        Ok(pebble)
    }

    /// Where its directory is.
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate to trust when talking to it, in PEM. It has nothing to do with those that it issues.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The same as a file.
    pub fn root_file(&self) -> PathBuf {
        self.directory.path().join("root.pem")
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// How many orders it was asked for.
    pub fn orders(&self) -> usize {
        self.log().matches("Added order ").count()
    }

    /// How many certificates it made.
    pub fn certificates(&self) -> usize {
        self.log().matches("Issued certificate serial").count()
    }

    /// Ends it as a crash would. It keeps nothing.
    pub fn kill(&self) {
        if let Some(mut process) = self.process.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Ends it and starts it anew on the same address, without memory.
    pub fn restart(&self) -> io::Result<()> {
        self.kill();
        self.run()
    }

    fn run(&self) -> io::Result<()> {
        let log = fs::File::create(self.directory.path().join("log"))?;
        let mut command = Command::new(&self.program);
        command.args(["-strict", "-config", "pebble.json"]).current_dir(self.directory.path()).stdin(Stdio::null());
        if let Some(dns) = self.setup.dns {
            command.args(["-dnsserver", &dns.to_string()]);
        }
        match self.setup.slowness {
            Some(seconds) => command.env("PEBBLE_VA_SLEEPTIME", seconds.to_string()),
            None => command.env("PEBBLE_VA_NOSLEEP", "1"),
        };
        command.env("PEBBLE_WFE_NONCEREJECT", self.setup.refused_nonces.to_string());
        command.env("PEBBLE_AUTHZREUSE", self.setup.reused_authorizations.to_string());
        let child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        self.wait()
    }

    fn wait(&self) -> io::Result<()> {
        let end = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_err() {
            if Instant::now() > end {
                return Err(other(format!("pebble does not answer:\n{}", self.log())));
            }
            sleep(Duration::from_millis(30));
        }
        Ok(())
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.kill();
    }
}

fn config(address: SocketAddr, management: SocketAddr, setup: &PebbleSetup) -> serde_json::Value {
    let mut pebble = json!({
        "listenAddress": address.to_string(),
        "managementListenAddress": management.to_string(),
        "certificate": "leaf.pem",
        "privateKey": "leaf.key",
        "httpPort": 5002,
        "tlsPort": 5001,
        "externalAccountBindingRequired": setup.external.is_some(),
        "domainBlocklist": setup.blocked,
        "retryAfter": {"authz": 1, "order": 1},
        "keyAlgorithm": "ecdsa",
        "profiles": {
            "default": {"description": "ninety days", "validityPeriod": 7_776_000},
            "shortlived": {"description": "six days", "validityPeriod": 518_400},
        },
    });
    if let Some((id, secret)) = &setup.external {
        pebble["externalAccountMACKeys"] = json!({id.as_str(): secret});
    }
    json!({"pebble": pebble})
}

/// Writes a certificate for the loopback address and who vouches for it; gives back the latter.
fn certify(directory: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut parameters = CertificateParams::new(Vec::<String>::new())?;
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let root = parameters.self_signed(&key)?.pem();
    let issuer = Issuer::from_ca_cert_pem(&root, key)?;
    let key = KeyPair::generate()?;
    let leaf =
        CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?.signed_by(&key, &issuer)?;
    fs::write(directory.join("leaf.pem"), leaf.pem())?;
    fs::write(directory.join("leaf.key"), key.serialize_pem())?;
    fs::write(directory.join("root.pem"), &root)?;
    Ok(root)
}
