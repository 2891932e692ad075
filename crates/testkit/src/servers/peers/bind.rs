//! Configuration of BIND 9.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::{KEY_ALGORITHM, KEY_NAME, KEY_SECRET, PeerProgram, PeerSetup};

pub(super) const WORDS: PeerProgram =
    PeerProgram { program: "named", arguments: &["-g", "-n", "1", "-c", "named.conf"], write };

fn write(directory: &Path, address: SocketAddr, setup: &PeerSetup) -> io::Result<()> {
    let (ip, port) = (address.ip(), address.port());
    let mut text = format!(
        "key \"{KEY_NAME}\" {{ algorithm {KEY_ALGORITHM}; secret \"{KEY_SECRET}\"; }};
options {{ directory \"{}\"; listen-on port {port} {{ {ip}; }}; listen-on-v6 {{ none; }}; pid-file none;
  session-keyfile none; lock-file none; recursion no; dnssec-validation no; notify no; allow-query {{ any; }};
  minimal-responses yes; minimal-any yes; check-names primary ignore; check-names secondary ignore;
  check-integrity no; zero-no-soa-ttl no; tcp-clients 1000; }};
controls {{ }};
",
        directory.display()
    );
    for (name, _) in &setup.files {
        text += &format!("zone \"{name}\" {{ type primary; file \"{name}.zone\"; }};\n");
    }
    if let Some(primary) = setup.primary {
        let (ip, port) = (primary.ip(), primary.port());
        for name in &setup.copies {
            text += &format!(
                "zone \"{name}\" {{ type secondary; file \"{name}.copy\"; masterfile-format text;
  primaries {{ {ip} port {port} key {KEY_NAME}; }}; }};\n"
            );
        }
    }
    fs::write(directory.join("named.conf"), text)
}
