//! Whether the values of a policy are valid.
//!
//! Checks only what the schema cannot; reports the first problem.

use super::exclusions::Exclusion;
use super::*;

/// The first invalid field of a DNSPolicy, and a clause that says what is wrong.
pub(super) fn dns(policy: &DnsPolicy) -> Option<(FieldPath, String)> {
    let field = FieldPath::of("spec.excludeAddresses");
    let excluded = policy.exclude_addresses.iter().enumerate();
    let mut bad = excluded.filter_map(|(i, text)| Some((field.index(i), Exclusion::parse(text).err()?)));
    bad.next().or_else(|| ttl(policy)).or_else(|| policy.health_check.as_ref().and_then(health_check))
}

/// The first invalid field of a TLSPolicy, and a clause that says what is wrong.
pub(super) fn tls(policy: &TlsPolicy) -> Option<(FieldPath, String)> {
    let renews = policy.renew_before.zip(policy.duration).is_some_and(|(before, duration)| before >= duration);
    let nameless = policy.issuer.as_ref().is_some_and(|issuer| issuer.name.is_empty());
    let spec = |field: &str, clause: &str| Some((FieldPath::of("spec").key(field), clause.to_owned()));
    match (renews, nameless) {
        (true, _) => spec("renewBefore", "is not shorter than `duration`"),
        (false, true) => spec("issuerRef", "names no issuer"),
        (false, false) => None,
    }
}

/// TTLs have 31 bits (RFC 2181); 0 would prevent every resolver from caching.
fn ttl(policy: &DnsPolicy) -> Option<(FieldPath, String)> {
    let ttl = policy.ttl.filter(|ttl| *ttl == 0 || *ttl > i32::MAX as u32)?;
    Some((FieldPath::of("spec.ttl"), format!("is {ttl}; a TTL is 1 to {} seconds", i32::MAX)))
}

fn health_check(check: &HealthCheck) -> Option<(FieldPath, String)> {
    let field = |name: &str| FieldPath::of("spec.healthCheck").key(name);
    if !matches!(&*check.protocol, "HTTP" | "HTTPS") {
        return Some((field("protocol"), format!("is `{}`; use HTTP or HTTPS", check.protocol)));
    }
    if check.port == 0 {
        return Some((field("port"), "is not a port".to_owned()));
    }
    if !check.path.starts_with('/') {
        return Some((field("path"), format!("is `{}`; a path begins with `/`", check.path)));
    }
    if check.interval == 0 {
        return Some((field("interval"), "is less than a second".to_owned()));
    }
    (check.failure_threshold == 0).then(|| (field("failureThreshold"), "is 0; one failure is the least".to_owned()))
}
