//! Whether the values of a policy are valid.
//!
//! Checks only what the schema cannot; reports the first problem.

use super::exclusions::Exclusion;
use super::*;
use crate::lint::closest;

/// The first invalid field of a DNSPolicy, and a clause that says what is wrong.
pub(super) fn dns(policy: &DnsPolicy) -> Option<(FieldPath, String)> {
    let field = FieldPath::of("spec.excludeAddresses");
    let excluded = policy.exclude_addresses.iter().enumerate();
    let mut bad = excluded.filter_map(|(i, text)| Some((field.index(i), Exclusion::parse(text).err()?)));
    bad.next().or_else(|| ttl(policy)).or_else(|| policy.health_check.as_ref().and_then(health_check))
}

/// The field of a DNSPolicy that names a provider which does not exist, and a clause that says so.
pub(super) fn provider(policy: &DnsPolicy, providers: &PublishingProviders) -> Option<(FieldPath, String)> {
    let name = policy.provider.as_ref().filter(|name| !providers.has(name))?;
    let near = closest(name, providers.names()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let clause = format!("is `{name}`; {}{near}", providers.stated());
    Some((FieldPath::of("spec.providerRef.name"), clause))
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
    if !matches!(&*check.protocol, "HTTP" | "HTTPS" | "TCP") {
        return Some((field("protocol"), format!("is `{}`; use HTTP, HTTPS or TCP", check.protocol)));
    }
    if check.port == 0 {
        let clause = if &*check.protocol == "TCP" { "is missing; TCP has no usual port" } else { "is not a port" };
        return Some((field("port"), clause.to_owned()));
    }
    if !check.path.starts_with('/') {
        return Some((field("path"), format!("is `{}`; a path begins with `/`", check.path)));
    }
    if check.interval < LEAST_INTERVAL {
        return Some((field("interval"), format!("is {} s; {LEAST_INTERVAL} s is the least", check.interval)));
    }
    if check.timeout == 0 {
        return Some((field("timeout"), "is less than a second".to_owned()));
    }
    if let Some((i, (first, last))) =
        check.expected_statuses.iter().enumerate().find(|(_, (first, last))| !is_status_range(*first, *last))
    {
        let clause = format!("is `{first}-{last}`; write a status such as 204, or a range such as 200-299");
        return Some((field("expectedStatuses").index(i), clause));
    }
    if check.failure_threshold == 0 {
        return Some((field("failureThreshold"), "is 0; one failure is the least".to_owned()));
    }
    (check.success_threshold == 0).then(|| (field("successThreshold"), "is 0; one success is the least".to_owned()))
}

/// Seconds; more frequent probes would be a load of their own.
const LEAST_INTERVAL: u32 = 5;

fn is_status_range(first: u16, last: u16) -> bool {
    (100..=599).contains(&first) && (first..=599).contains(&last)
}
