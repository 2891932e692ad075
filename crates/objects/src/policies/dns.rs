//! DNSPolicy.

use gatepost_core::model::{DnsPolicy, HealthCheck, Meta, Str};
use gatepost_core::policy::Exclusion;
use gatepost_core::snapshot::Object;

use super::{duration, target};
use crate::fields::{FieldValue, Fields};
use crate::references::nobody;
use crate::rules;
use crate::shapes::Shape;
use crate::tree::Tree;
use gatepost_core::model::PolicyTarget;

/// Reads a DNSPolicy.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    root.require("spec");
    root.ignore(&["status"]);
    let mut policy = DnsPolicy {
        meta,
        target: PolicyTarget { object: nobody(), section: None },
        allow_wildcards: None,
        ttl: None,
        exclude_addresses: Vec::new(),
        health_check: None,
        provider: None,
    };
    root.mapping("spec", |f| spec(f, &mut policy));
    Object::DnsPolicy(policy)
}

fn spec(f: &Fields<'_>, policy: &mut DnsPolicy) {
    policy.target = target(f);
    policy.allow_wildcards = wildcards(f);
    policy.ttl = f.number_in("ttl", "a TTL in seconds", 1, i64::from(i32::MAX)).and_then(|ttl| u32::try_from(ttl).ok());
    policy.exclude_addresses = f.list("excludeAddresses", |node| Some(excluded(node)));
    rules::at_most(f, "excludeAddresses", policy.exclude_addresses.len(), 32);
    policy.health_check = f.mapping("healthCheck", health_check);
    policy.provider = provider(f);
}

/// Unset means yes; a value that cannot be read means no.
pub(super) fn wildcards(f: &Fields<'_>) -> Option<bool> {
    f.has("allowWildcardHosts").then(|| f.flag("allowWildcardHosts").unwrap_or(false))
}

fn excluded(node: FieldValue<'_>) -> Str {
    let text = node.text().unwrap_or_default();
    if let Err(clause) = Exclusion::parse(text) {
        node.invalid(clause);
    }
    text.into()
}

fn health_check(f: &Fields<'_>) -> HealthCheck {
    let protocol = rules::word(f, "protocol", &["HTTP", "HTTPS", "TCP"]).unwrap_or_else(|| "HTTPS".into());
    // TCP has no usual port; the rules of policies say so.
    let usual_port = match &*protocol {
        "HTTP" => 80,
        "TCP" => 0,
        _ => 443,
    };
    let seconds = |key| duration(f, key).map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
    let count = |key, what| f.number_in(key, what, 1, 1000).and_then(|count| u32::try_from(count).ok());
    let expected_statuses = f.list("expectedStatuses", |node| Some(statuses(node)));
    rules::at_most(f, "expectedStatuses", expected_statuses.len(), 16);
    HealthCheck {
        port: f.port("port").unwrap_or(usual_port),
        path: f.shaped("path", Shape::UrlPath).unwrap_or_else(|| "/".into()),
        interval: seconds("interval").unwrap_or(30),
        timeout: seconds("timeout").unwrap_or(5),
        failure_threshold: count("failureThreshold", "a number of failures").unwrap_or(3),
        success_threshold: count("successThreshold", "a number of successes").unwrap_or(1),
        expected_statuses,
        skips_verification: f.flag("insecureSkipVerify").unwrap_or(false),
        headers: f.mapping("additionalHeadersRef", |f| f.required("name", Shape::ObjectName)),
        protocol,
    }
}

/// A status such as `204`, or a range such as `200-299`; what is neither is a range that holds nothing.
fn statuses(node: FieldValue<'_>) -> (u16, u16) {
    let text = node.text().unwrap_or_default();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let status = |text: &str| text.parse().ok().filter(|status| (100..=599).contains(status) && text.len() == 3);
    match (status(first), status(last)) {
        (Some(first), Some(last)) if first <= last => (first, last),
        _ => {
            node.invalid("is neither a status such as `204` nor a range such as `200-299`");
            (0, 0)
        }
    }
}

/// A reference with a name. The name alone, which a cluster refuses, is told and used.
fn provider(f: &Fields<'_>) -> Option<Str> {
    let node = f.node("providerRef")?;
    match node.value() {
        Tree::Text(name) => {
            node.invalid("is a name alone; write `{name: …}`");
            Some((**name).into())
        }
        _ => node.mapping(|f| f.required("name", Shape::ObjectName)),
    }
}
