//! The last good zones on disk, so that a restart answers at once.
//!
//! One file, replaced whole: a reader sees the old one or the new one, never half of one. Formats carry a number; every
//! number has a module of its own that is never changed once released.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::ServerError;
use super::store::ZoneSet;

mod v1;

/// The file inside the state directory.
const FILE: &str = "zones.json";

/// Writes the zones to the state directory, which is made if it is not there.
pub fn save(directory: &Path, zones: &ZoneSet) -> Result<(), ServerError> {
    let path = directory.join(FILE);
    let failed = |cause: io::Error| ServerError::State { verb: "write", path: path.clone(), cause };
    let bytes = v1::write(zones).map_err(|cause| failed(io::Error::other(cause)))?;
    replace(directory, &path, &bytes).map_err(failed)
}

/// Reads the zones that were written last; `None` if there were never any.
pub fn load(directory: &Path) -> Result<Option<ZoneSet>, ServerError> {
    let path = directory.join(FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(ServerError::State { verb: "read", path, cause }),
    };
    read(&bytes).map(Some).map_err(|cause| ServerError::Damaged { path, cause })
}

fn read(bytes: &[u8]) -> Result<ZoneSet, String> {
    match version(bytes)? {
        1 => v1::read(bytes),
        other => Err(format!("it has format {other}, and this program knows 1")),
    }
}

/// The number of the format, whatever else the file holds.
fn version(bytes: &[u8]) -> Result<u64, String> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: String,
        version: u64,
    }
    let head: Head = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if head.format == v1::FORMAT { Ok(head.version) } else { Err(format!("it is a file of `{}`", head.format)) }
}

/// Writes beside the file, makes sure that it is on disk, then puts it in its place.
fn replace(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let fresh: PathBuf = path.with_extension("json.new");
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::name::Name;
    use crate::embedded::record::{Data, Record, Soa};
    use crate::embedded::zone::{Zone, ZoneSpec};

    fn zones() -> ZoneSet {
        let name = |text: &str| Name::parse(text).unwrap();
        let records = [
            ("*.example", Data::A([192, 0, 2, 1].into())),
            ("t.example", Data::text("x\u{0}\"y")),
            ("c.example", Data::Other(257, vec![0, 5, 1, 2])),
            ("sub.example", Data::Ns(name("ns.sub.example"))),
            ("ns.sub.example", Data::Aaaa("2001:db8::1".parse().unwrap())),
        ];
        let records = records.map(|(owner, data)| Record::new(owner, 60, data).unwrap()).to_vec();
        let soa = Soa { minimum: 5, ttl: 77, ..Soa::new(name("ns.test"), name("root.test"), 4_000_000_000) };
        let spec = ZoneSpec { name: name("example"), soa, servers: vec![name("ns.test")], servers_ttl: 9, records };
        ZoneSet::new([Zone::build(&spec).unwrap()]).unwrap()
    }

    #[test]
    fn zones_survive_the_disk() {
        let directory = std::env::temp_dir().join(format!("gatepost-state-{}", std::process::id()));
        assert!(load(&directory).unwrap().is_none(), "nothing was ever written");
        save(&directory, &zones()).unwrap();
        let read = load(&directory).unwrap().unwrap();
        assert!(read.zones()[0].same_content(&zones().zones()[0]));
        assert_eq!(read.zones()[0].soa(), zones().zones()[0].soa());
        let text = fs::read(directory.join(FILE)).unwrap();
        fs::write(directory.join(FILE), &text[..text.len() / 2]).unwrap();
        assert!(matches!(load(&directory), Err(ServerError::Damaged { .. })));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn damage_is_found_and_named() {
        let text = String::from_utf8(v1::write(&zones()).unwrap()).unwrap();
        for (from, to) in [("\"version\":1", "\"version\":2"), ("c0000201", "c00002"), ("gatepost", "somebody")] {
            assert!(text.contains(from), "{text}");
            assert!(read(text.replace(from, to).as_bytes()).is_err(), "{from}");
        }
        assert!(read(text.replacen("c0000201", "c0000202", 1).as_bytes()).is_err(), "another value, no other digest");
        for length in 0..text.len() {
            assert!(read(&text.as_bytes()[..length]).is_err());
        }
    }

    #[test]
    fn a_directory_that_cannot_be_is_named() {
        let error = save(Path::new("/dev/null/state"), &zones()).unwrap_err().to_string();
        assert!(error.contains("/dev/null/state/zones.json"), "{error}");
    }
}
