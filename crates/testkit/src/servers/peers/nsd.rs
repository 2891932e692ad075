//! Configuration of NSD.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::{KEY_ALGORITHM, KEY_NAME, KEY_SECRET, PeerProgram, PeerSetup};

pub(super) const WORDS: PeerProgram = PeerProgram { program: "nsd", arguments: &["-d", "-c", "nsd.conf"], write };

fn write(directory: &Path, address: SocketAddr, setup: &PeerSetup) -> io::Result<()> {
    let (ip, port, folder) = (address.ip(), address.port(), directory.display());
    let mut text = format!(
        "server:
  ip-address: {ip}@{port}
  username: \"\"
  chroot: \"\"
  database: \"\"
  zonesdir: \"{folder}\"
  pidfile: \"{folder}/nsd.pid\"
  xfrdfile: \"{folder}/xfrd.state\"
  zonelistfile: \"{folder}/zone.list\"
  xfrdir: \"{folder}\"
  server-count: 1
  minimal-responses: yes
  rrl-ratelimit: 0
  rrl-whitelist-ratelimit: 0
remote-control:
  control-enable: no
key:
  name: \"{KEY_NAME}\"
  algorithm: {KEY_ALGORITHM}
  secret: \"{KEY_SECRET}\"
"
    );
    for (name, _) in &setup.files {
        text += &format!("zone:\n  name: {name}\n  zonefile: {name}.zone\n");
    }
    if let Some(primary) = setup.primary {
        let (ip, port) = (primary.ip(), primary.port());
        for name in &setup.copies {
            text += &format!("zone:\n  name: {name}\n  zonefile: {name}.copy\n");
            text += &format!("  request-xfr: {ip}@{port} {KEY_NAME}\n  allow-notify: {ip} {KEY_NAME}\n");
        }
    }
    fs::write(directory.join("nsd.conf"), text)
}
