//! The real external-dns, as `benches/peers/external-dns` builds it: one loop at a time over plain files.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::{KEY_ALGORITHM, KEY_NAME, KEY_SECRET, Scratch, other, output};
use crate::tree;

/// The program, built.
#[derive(Debug)]
pub struct ExternalDns {
    program: PathBuf,
}

impl ExternalDns {
    /// The program. Nothing where it was not built: `scripts/peer external-dns` builds it. Where `CI` is set that is a failure.
    pub fn find() -> io::Result<Option<ExternalDns>> {
        let script = tree::root().join("scripts/peer");
        let program = PathBuf::from(output(Command::new(script).args(["external-dns", "where"]))?.trim());
        if program.is_file() {
            return Ok(Some(ExternalDns { program }));
        }
        match std::env::var_os("CI") {
            Some(_) => Err(other(format!("{} is not there: run `scripts/peer external-dns`", program.display()))),
            None => Ok(None),
        }
    }

    /// One whole loop over objects with these words: what it created, updated and deleted.
    pub fn sync(&self, objects: &str, words: &[&str]) -> io::Result<Value> {
        let folder = Scratch::new("objects")?;
        let file = folder.path().join("objects.yaml");
        std::fs::write(&file, objects)?;
        let mut command = Command::new(&self.program);
        command.arg("sync").arg("-f").arg(&file).args(words);
        serde_json::from_str(&output(&mut command)?).map_err(io::Error::from)
    }
}

/// The words that reach a server of the test bed by updates.
pub fn rfc2136(server: SocketAddr, zone: &str) -> Vec<String> {
    let (host, port) = (server.ip().to_string(), server.port().to_string());
    let words = [
        ("provider", "rfc2136"),
        ("rfc2136-host", &host),
        ("rfc2136-port", &port),
        ("rfc2136-zone", zone),
        ("rfc2136-tsig-keyname", KEY_NAME),
        ("rfc2136-tsig-secret", KEY_SECRET),
        ("rfc2136-tsig-secret-alg", KEY_ALGORITHM),
    ];
    let words = words.map(|(flag, value)| format!("--{flag}={value}"));
    words.into_iter().chain(["--rfc2136-axfr".to_owned()]).collect()
}

/// How many changes a loop made.
pub fn changes(done: &Value) -> usize {
    let count = |key: &str| done[key].as_array().map_or(0, Vec::len);
    ["create", "updateNew", "delete"].into_iter().map(count).sum()
}
