//! BIND 9 as a primary that takes signed updates.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::{KEY_ALGORITHM, KEY_NAME, KEY_SECRET, Primary};

/// Writes zones and configuration; gives back the words of the command line.
pub fn prepare(directory: &Path, address: SocketAddr, primary: &Primary) -> io::Result<Vec<String>> {
    let (keys, listen) = tls(directory, primary)?;
    let mut config = keys + &head(directory, address, &listen);
    for (name, text) in &primary.zones {
        fs::write(directory.join(format!("{name}.zone")), text)?;
        let rights = rights(primary, name);
        config += &format!("zone \"{name}\" {{ type primary; file \"{name}.zone\"; {rights} }};\n");
    }
    fs::write(directory.join("named.conf"), config)?;
    Ok(["-g", "-n", "1", "-c", "named.conf"].map(str::to_owned).to_vec())
}

/// Writes certificate and key; gives back the block that names them, and the statement that listens with them.
fn tls(directory: &Path, primary: &Primary) -> io::Result<(String, String)> {
    let Some((address, certificate, key)) = &primary.tls else { return Ok(Default::default()) };
    fs::write(directory.join("cert.pem"), certificate)?;
    fs::write(directory.join("key.pem"), key)?;
    let block = "tls bed { cert-file \"cert.pem\"; key-file \"key.pem\"; };\n".to_owned();
    Ok((block, format!("listen-on port {} tls bed {{ {}; }};", address.port(), address.ip())))
}

fn head(directory: &Path, address: SocketAddr, listen: &str) -> String {
    let directory = directory.display();
    let (ip, port) = (address.ip(), address.port());
    format!(
        "key \"{KEY_NAME}\" {{ algorithm {KEY_ALGORITHM}; secret \"{KEY_SECRET}\"; }};
options {{ {listen} directory \"{directory}\"; listen-on port {port} {{ {ip}; }}; listen-on-v6 {{ none; }}; pid-file none;
  session-keyfile none; lock-file none; recursion no; dnssec-validation no; notify no; }};
controls {{ }};
"
    )
}

fn rights(primary: &Primary, zone: &str) -> String {
    if primary.open.iter().any(|open| open == zone) {
        return "allow-update { any; }; allow-transfer { any; };".to_owned();
    }
    let refused: String = primary.refused.iter().map(|name| format!("deny {KEY_NAME} name {name} ANY; ")).collect();
    format!("update-policy {{ {refused}grant {KEY_NAME} zonesub ANY; }}; allow-transfer {{ key {KEY_NAME}; }};")
}
