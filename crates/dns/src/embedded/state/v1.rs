//! Format 1: JSON; names in presentation format, data in wire format as hexadecimal digits, a digest over all zones.

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::embedded::name::Name;
use crate::embedded::record::{Data, Record, Soa};
use crate::embedded::store::ZoneSet;
use crate::embedded::zone::{Zone, ZoneSpec};

/// What the file says it is.
pub(super) const FORMAT: &str = "gatepost-zones";

#[derive(Serialize, Deserialize)]
struct StateFile {
    format: String,
    version: u64,
    digest: String,
    zones: Vec<StoredZone>,
}

#[derive(Serialize, Deserialize)]
struct StoredZone {
    name: String,
    soa: StoredSoa,
    /// Owner, TTL, type, data.
    records: Vec<(String, u32, u16, String)>,
}

#[derive(Serialize, Deserialize)]
struct StoredSoa {
    primary: String,
    mailbox: String,
    serial: u32,
    refresh: u32,
    retry: u32,
    expire: u32,
    minimum: u32,
    ttl: u32,
}

/// The zones as bytes of a file.
pub(super) fn write(zones: &ZoneSet) -> Result<Vec<u8>, serde_json::Error> {
    let zones: Vec<_> = zones.zones().iter().map(|zone| store(zone)).collect();
    let digest = digest_of(&zones)?;
    serde_json::to_vec(&StateFile { format: FORMAT.into(), version: 1, digest, zones })
}

/// The zones of a file, or what is wrong with it.
pub(super) fn read(bytes: &[u8]) -> Result<ZoneSet, String> {
    let file: StateFile = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if digest_of(&file.zones).map_err(|error| error.to_string())? != file.digest {
        return Err("its digest does not match what it holds".into());
    }
    let zones: Vec<Zone> = file.zones.iter().map(restore).collect::<Result<_, _>>()?;
    ZoneSet::new(zones).map_err(|error| error.to_string())
}

fn digest_of(zones: &[StoredZone]) -> Result<String, serde_json::Error> {
    Ok(hex(digest(&SHA256, &serde_json::to_vec(zones)?).as_ref()))
}

fn store(zone: &Zone) -> StoredZone {
    let line = |record: Record| (record.name.to_string(), record.ttl, record.data.kind(), hex(&record.data.to_wire()));
    let soa = zone.soa();
    let soa = StoredSoa {
        primary: soa.primary.to_string(),
        mailbox: soa.mailbox.to_string(),
        serial: soa.serial,
        refresh: soa.refresh,
        retry: soa.retry,
        expire: soa.expire,
        minimum: soa.minimum,
        ttl: soa.ttl,
    };
    StoredZone { name: zone.name().to_string(), soa, records: zone.records().map(line).collect() }
}

/// The name servers of a zone are among its records here.
fn restore(stored: &StoredZone) -> Result<Zone, String> {
    let name = |text: &str| Name::parse(text).map_err(|error| error.to_string());
    let soa = &stored.soa;
    let soa = Soa {
        primary: name(&soa.primary)?,
        mailbox: name(&soa.mailbox)?,
        serial: soa.serial,
        refresh: soa.refresh,
        retry: soa.retry,
        expire: soa.expire,
        minimum: soa.minimum,
        ttl: soa.ttl,
    };
    let records = stored.records.iter().map(record).collect::<Result<_, _>>()?;
    let spec = ZoneSpec { name: name(&stored.name)?, soa, servers: Vec::new(), servers_ttl: 0, records };
    Zone::build(&spec).map_err(|error| error.to_string())
}

fn record((owner, ttl, kind, data): &(String, u32, u16, String)) -> Result<Record, String> {
    let bytes = unhex(data).ok_or_else(|| format!("`{data}` is not hexadecimal"))?;
    let data = Data::from_wire(*kind, &bytes).ok_or_else(|| format!("{owner} has broken data of type {kind}"))?;
    Record::new(owner, *ttl, data).map_err(|error| error.to_string())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}
