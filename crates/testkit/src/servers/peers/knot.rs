//! Configuration of Knot DNS.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::{KEY_ALGORITHM, KEY_NAME, KEY_SECRET, PeerProgram, PeerSetup};

pub(super) const WORDS: PeerProgram = PeerProgram { program: "knotd", arguments: &["-c", "knot.conf"], write };

fn write(directory: &Path, address: SocketAddr, setup: &PeerSetup) -> io::Result<()> {
    for folder in ["db", "run"] {
        fs::create_dir_all(directory.join(folder))?;
    }
    let mut text = head(directory, address);
    if let Some(primary) = setup.primary {
        text += &remote(primary);
    }
    text += "zone:\n";
    let storage = directory.display();
    for (name, _) in &setup.files {
        text += &format!("  - domain: {name}\n    storage: {storage}\n    file: {name}.zone\n");
    }
    for name in &setup.copies {
        text += &format!("  - domain: {name}\n    storage: {storage}\n    file: {name}.copy\n");
        text += "    master: primary\n    acl: primary\n";
    }
    fs::write(directory.join("knot.conf"), text)
}

fn head(directory: &Path, address: SocketAddr) -> String {
    let directory = directory.display();
    let (ip, port) = (address.ip(), address.port());
    format!(
        "server:
    listen: {ip}@{port}
    rundir: {directory}/run
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: {directory}/db
    journal-db-max-size: 100M
log:
  - target: stderr
    any: info
key:
  - id: {KEY_NAME}
    algorithm: {KEY_ALGORITHM}
    secret: {KEY_SECRET}
"
    )
}

fn remote(primary: SocketAddr) -> String {
    let (ip, port) = (primary.ip(), primary.port());
    format!(
        "remote:
  - id: primary
    address: {ip}@{port}
    key: {KEY_NAME}
acl:
  - id: primary
    key: {KEY_NAME}
    action: notify
"
    )
}
