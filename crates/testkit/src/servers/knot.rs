//! Knot DNS as a primary that takes signed updates.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::{KEY_ALGORITHM, KEY_NAME, KEY_SECRET, Primary};

/// Writes zones and configuration; gives back the words of the command line.
pub fn prepare(directory: &Path, address: SocketAddr, primary: &Primary) -> io::Result<Vec<String>> {
    for folder in ["db", "run"] {
        fs::create_dir_all(directory.join(folder))?;
    }
    let mut config = head(directory, address);
    for (name, text) in &primary.zones {
        fs::write(directory.join(format!("{name}.zone")), text)?;
        let storage = directory.display();
        config += &format!("  - domain: {name}\n    storage: {storage}\n    file: {name}.zone\n    acl: writer\n");
        config += "    zonefile-load: whole\n    journal-content: changes\n    zonefile-sync: -1\n";
    }
    fs::write(directory.join("knot.conf"), config)?;
    Ok(["-c", "knot.conf"].map(str::to_owned).to_vec())
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
acl:
  - id: writer
    key: {KEY_NAME}
    action: [update, transfer]
zone:
"
    )
}
