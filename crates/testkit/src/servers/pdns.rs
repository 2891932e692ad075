//! PowerDNS with SQLite as a primary that takes signed updates.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::{KEY_ALGORITHM, KEY_NAME, KEY_SECRET, Primary, output};

/// The schema as the package brings it.
const SCHEMA: &str = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql";

/// Writes zones and configuration; gives back the words of the command line.
pub fn prepare(directory: &Path, address: SocketAddr, primary: &Primary) -> io::Result<Vec<String>> {
    fs::write(directory.join("pdns.conf"), config(directory, address))?;
    let database = directory.join("pdns.db");
    // Without waiting for the disk: nothing here outlives the test.
    let script = format!("pragma journal_mode=wal; pragma synchronous=off;\n{}", fs::read_to_string(SCHEMA)?);
    sqlite(directory, &database, "schema.sql", &script)?;
    for (name, text) in &primary.zones {
        let file = directory.join(format!("{name}.zone"));
        fs::write(&file, text)?;
        let option = format!("--config-dir={}", directory.display());
        output(Command::new("pdnsutil").args([&option, "load-zone", name]).arg(&file))?;
    }
    sqlite(directory, &database, "rights.sql", &rights())?;
    Ok(vec![format!("--config-dir={}", directory.display())])
}

fn sqlite(directory: &Path, database: &Path, file: &str, script: &str) -> io::Result<String> {
    let file = directory.join(file);
    fs::write(&file, script)?;
    output(Command::new("sqlite3").arg(database).arg(format!(".read {}", file.display())))
}

/// The key, and every zone's permission to use it.
fn rights() -> String {
    let mut script = format!(
        "insert into tsigkeys (name, algorithm, secret) values ('{KEY_NAME}', '{KEY_ALGORITHM}', '{KEY_SECRET}');\n"
    );
    let values =
        [("TSIG-ALLOW-DNSUPDATE", KEY_NAME), ("TSIG-ALLOW-AXFR", KEY_NAME), ("SOA-EDIT-DNSUPDATE", "INCREASE")];
    for (kind, content) in values {
        script += &format!(
            "insert into domainmetadata (domain_id, kind, content) select id, '{kind}', '{content}' from domains;\n"
        );
    }
    script
}

fn config(directory: &Path, address: SocketAddr) -> String {
    let directory = directory.display();
    let (ip, port) = (address.ip(), address.port());
    format!(
        "launch=gsqlite3
gsqlite3-database={directory}/pdns.db
gsqlite3-pragma-synchronous=0
local-address={ip}
local-port={port}
socket-dir={directory}
dnsupdate=yes
allow-dnsupdate-from=127.0.0.0/8
setuid=
setgid=
guardian=no
daemon=no
disable-syslog=yes
write-pid=no
receiver-threads=1
distributor-threads=1
query-cache-ttl=0
cache-ttl=0
negquery-cache-ttl=0
zone-cache-refresh-interval=0
"
    )
}
