//! What the service refuses in a record, and in a zone that has it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value};

use super::answers::ApiAnswer;
use super::zones::{HostedZone, StoredRecord};

/// The fields of a record that may be written.
const FIELDS: [&str; 10] =
    ["id", "name", "type", "content", "ttl", "proxied", "comment", "tags", "priority", "settings"];

/// A record with the fields of a body put over it.
pub(super) fn merged(
    zone: &HostedZone,
    mut record: StoredRecord,
    body: &Map<String, Value>,
) -> Result<StoredRecord, ApiAnswer> {
    if let Some(unknown) = body.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(invalid(9000, &format!("unknown field `{unknown}`")));
    }
    let wrong = |key: &str| invalid(9001, &format!("`{key}` has the wrong type"));
    for (key, value) in body {
        let text = || value.as_str().map(str::to_owned).ok_or_else(|| wrong(key));
        match key.as_str() {
            "name" => record.name = full_name(&text()?, zone),
            "type" => record.kind = text()?,
            "content" => record.content = text()?,
            "ttl" => record.ttl = whole(value).ok_or_else(|| wrong(key))?,
            "proxied" => record.is_proxied = value.as_bool().ok_or_else(|| wrong(key))?,
            "comment" if value.is_null() => record.comment.clear(),
            "comment" => record.comment = text()?,
            "tags" => record.tags = tags(value).ok_or_else(|| wrong(key))?,
            // Clients that know only one form of a record send 0 with every type.
            "priority" => record.priority = whole(value).filter(|number| *number > 0),
            _ => {}
        }
    }
    check(zone, &mut record)?;
    Ok(record)
}

/// Whether the zone may hold what it holds.
pub(super) fn conflict(zone: &HostedZone) -> Result<(), ApiAnswer> {
    let mut seen = BTreeSet::new();
    for record in &zone.records {
        if !seen.insert((&record.name, &record.kind, &record.content, record.priority)) {
            return Err(ApiAnswer::error(400, 81058, "An identical record already exists."));
        }
    }
    let aliases: BTreeSet<&str> = names(zone, &["CNAME"]);
    for name in &aliases {
        let beside: Vec<&str> = zone.records.iter().filter(|r| r.name == *name).map(|r| r.kind.as_str()).collect();
        if beside.iter().filter(|kind| **kind == "CNAME").count() > 1 {
            return Err(ApiAnswer::error(400, 81053, "An A, AAAA, or CNAME record with that host already exists."));
        }
        let allowed: &[&str] = if *name == zone.name { &["CNAME", "TXT", "MX", "NS", "CAA"] } else { &["CNAME"] };
        if beside.iter().any(|kind| !allowed.contains(kind)) {
            return Err(ApiAnswer::error(400, 81054, "A CNAME record with that host already exists."));
        }
    }
    Ok(())
}

fn names<'z>(zone: &'z HostedZone, kinds: &[&str]) -> BTreeSet<&'z str> {
    zone.records.iter().filter(|record| kinds.contains(&&*record.kind)).map(|record| record.name.as_str()).collect()
}

fn check(zone: &HostedZone, record: &mut StoredRecord) -> Result<(), ApiAnswer> {
    let inside = record.name == zone.name || record.name.ends_with(&format!(".{}", zone.name));
    let labels_fit = record.name.split('.').all(|label| (1..=63).contains(&label.len()));
    if !inside || !labels_fit || record.name.len() > 253 {
        return Err(invalid(9000, "DNS name is invalid."));
    }
    if zone.refused.contains(&record.name) {
        return Err(invalid(9999, "this name is not allowed here"));
    }
    match record.kind.as_str() {
        "A" if record.content.parse::<Ipv4Addr>().is_err() => {
            return Err(invalid(9005, "Content for A record must be a valid IPv4 address."));
        }
        "AAAA" => {
            let address = record
                .content
                .parse::<Ipv6Addr>()
                .map_err(|_| invalid(9006, "Content for AAAA record must be a valid IPv6 address."))?;
            record.content = address.to_string();
        }
        "CNAME" if record.content.is_empty() || record.content.ends_with('.') || record.content.contains(' ') => {
            return Err(invalid(9007, "Content for CNAME record is invalid."));
        }
        "A" | "CNAME" => {}
        "TXT" => check_text(&record.content)?,
        _ => return Err(invalid(9004, "this type is only made by hand here")),
    }
    if !(record.ttl == 1 || (60..=86_400).contains(&record.ttl)) {
        return Err(invalid(9021, "Invalid TTL. Must be between 60 and 86,400 seconds, or 1 for Automatic."));
    }
    if record.is_proxied && record.kind == "TXT" {
        return Err(invalid(9003, "This record type cannot be proxied."));
    }
    if record.is_proxied {
        record.ttl = 1;
    }
    let length = if zone.plan == "free" { 100 } else { 500 };
    if record.comment.chars().count() > length {
        return Err(invalid(9313, "DNS record comment is too long"));
    }
    if zone.plan == "free" && !record.tags.is_empty() {
        return Err(invalid(9300, "DNS record has more tags than the quota allows: 0"));
    }
    Ok(())
}

/// Quoted strings of at most 255 bytes, as the documents ask for.
fn check_text(content: &str) -> Result<(), ApiAnswer> {
    let refuse = || Err(invalid(9207, "Content for TXT record must consist of quoted character strings."));
    let Some(inner) = content.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else { return refuse() };
    if inner.split("\" \"").any(|string| string.len() > 255 * 4) || content.len() > 4096 { refuse() } else { Ok(()) }
}

fn full_name(name: &str, zone: &HostedZone) -> String {
    if name == "@" { zone.name.clone() } else { name.to_ascii_lowercase() }
}

fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0).map(|n| n as u64))
}

fn tags(value: &Value) -> Option<Vec<String>> {
    let mut tags: Vec<String> =
        value.as_array()?.iter().map(|tag| tag.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    tags.sort();
    Some(tags)
}

fn invalid(code: i64, message: &str) -> ApiAnswer {
    ApiAnswer::chained(400, (1004, "DNS Validation Error"), (code, message))
}
