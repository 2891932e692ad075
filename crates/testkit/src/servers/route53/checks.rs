//! What the service refuses in a record set, and in a zone that has it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::account::{AwsZone, StoredSet};
use super::answers::AwsAnswer;

/// The types that it knows.
const TYPES: [&str; 17] = [
    "SOA", "A", "TXT", "NS", "CNAME", "MX", "NAPTR", "PTR", "SRV", "SPF", "AAAA", "CAA", "DS", "TLSA", "SSHFP", "SVCB",
    "HTTPS",
];

/// Fields of which a set among several of its name and type has exactly one, by the element that they begin with.
const POLICIES: [&str; 7] =
    ["Weight", "Region", "GeoLocation", "Failover", "MultiValueAnswer", "CidrRoutingConfig", "GeoProximityLocation"];

/// Whether a record set can be one.
pub(super) fn set(zone: &AwsZone, set: &StoredSet) -> Result<(), AwsAnswer> {
    let told = |problem: &str| {
        let message = format!("[{problem}, name='{}.', type='{}']", set.name, set.kind);
        Err(AwsAnswer::error(400, "InvalidChangeBatch", &message))
    };
    let inside = set.name == zone.name || set.name.ends_with(&format!(".{}", zone.name));
    if !inside {
        return told(&format!("RRSet with DNS name {}. is not permitted in zone {}.", set.name, zone.name));
    }
    if !set.name.split('.').all(|label| (1..=63).contains(&label.len())) || set.name.len() > 253 {
        return told("FATAL problem: DomainLabelTooLong");
    }
    if zone.refused.contains(&set.name) {
        return told("this name is not allowed here");
    }
    if !TYPES.contains(&&*set.kind) {
        return Err(AwsAnswer::error(400, "InvalidInput", &format!("Value '{}' of type", set.kind)));
    }
    match (&set.alias, set.ttl, set.values.is_empty()) {
        (Some(_), None, true) | (None, Some(0..=2_147_483_647), false) => {}
        _ => return Err(AwsAnswer::error(400, "InvalidInput", "Invalid request: an alias, or a TTL with values")),
    }
    if set.values.len() > 400 || set.values.iter().collect::<BTreeSet<_>>().len() < set.values.len() {
        return told("too many or duplicate values");
    }
    if let Some(wrong) = set.values.iter().find(|value| !is_value(&set.kind, value)) {
        return told(&format!("Invalid Resource Record: FATAL problem: InvalidRData (Value '{wrong}')"));
    }
    if set.kind == "CNAME" && set.values.len() > 1 {
        return told("a CNAME has one value");
    }
    let policies = POLICIES.iter().filter(|policy| set.fields.keys().any(|path| path.starts_with(**policy))).count();
    if policies != usize::from(!set.set_identifier.is_empty()) {
        return Err(AwsAnswer::error(
            400,
            "InvalidInput",
            &format!("Invalid request: {policies} routing policies with the set identifier '{}'", set.set_identifier),
        ));
    }
    match set.fields.get("HealthCheckId") {
        Some(id) if !id.starts_with("hc-") => {
            Err(AwsAnswer::error(404, "NoSuchHealthCheck", &format!("No health check exists with ID: {id}")))
        }
        _ => Ok(()),
    }
}

/// Why a record set cannot stand in a zone.
pub(super) fn beside(zone: &AwsZone, set: &StoredSet) -> Option<String> {
    let name = &set.name;
    let (kind, top) = (&set.kind, &zone.name);
    let mut others = zone.at(name).filter(|other| other.order() != set.order());
    if kind == "CNAME" && name == top {
        return Some(format!("RRSet of type CNAME with DNS name {name}. is not permitted at apex in zone {top}."));
    }
    if kind == "CNAME" && zone.at(name).any(|other| other.kind != "CNAME") {
        return Some(format!(
            "RRSet of type CNAME with DNS name {name}. is not permitted as it conflicts with other records with the same \
             DNS name in zone {top}."
        ));
    }
    if kind != "CNAME" && zone.at(name).any(|other| other.kind == "CNAME") {
        return Some(format!(
            "RRSet of type {kind} with DNS name {name}. is not permitted because a conflicting RRSet of type  CNAME with \
             the same DNS name already exists in zone {top}."
        ));
    }
    let policy = |set: &StoredSet| {
        set.fields
            .keys()
            .find(|path| *path != "HealthCheckId")
            .map(|path| path.split('/').next().unwrap_or_default().to_owned())
    };
    if others.any(|other| other.kind == *kind && policy(other) != policy(set)) {
        return Some(format!(
            "RRSet with DNS name {name}., type {kind} cannot be created as a non-matching set exists"
        ));
    }
    let (target_zone, target, _) = set.alias.as_ref()?;
    let is_there = zone.at(target).any(|other| other.kind == *kind);
    (*target_zone == zone.id && !is_there).then(|| {
        format!(
            "Tried to create an alias that targets {target}., type {kind} in zone {}, but that target was not found",
            zone.id
        )
    })
}

/// Whether a record set is what makes a zone one.
pub(super) fn is_of_zone(zone: &AwsZone, set: &StoredSet) -> bool {
    set.name == zone.name && matches!(&*set.kind, "SOA" | "NS")
}

fn is_value(kind: &str, value: &str) -> bool {
    match kind {
        "A" => value.parse::<Ipv4Addr>().is_ok(),
        "AAAA" => value.parse::<Ipv6Addr>().is_ok(),
        "TXT" => is_text(value),
        _ => !value.is_empty() && value.len() <= 4000,
    }
}

/// Quoted strings of at most 255 bytes, in characters that can be seen; all others as octal escapes.
fn is_text(value: &str) -> bool {
    let mut rest = value;
    loop {
        let Some(inner) = rest.strip_prefix('"') else { return false };
        let (mut length, mut bytes) = (0, inner.as_bytes());
        loop {
            match bytes {
                [b'"', ..] => break,
                [b'\\', b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', after @ ..] | [b'\\', b'"' | b'\\', after @ ..] => {
                    bytes = after;
                }
                [b' '..=b'[' | b']'..=b'~', after @ ..] => bytes = after,
                _ => return false,
            }
            length += 1;
        }
        rest = &inner[inner.len() - bytes.len() + 1..];
        if length > 255 || value.len() > 4000 {
            return false;
        }
        match rest.strip_prefix(' ') {
            Some(next) => rest = next,
            None => return rest.is_empty(),
        }
    }
}
