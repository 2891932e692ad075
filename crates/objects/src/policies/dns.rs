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
    let protocol = rules::word(f, "protocol", &["HTTP", "HTTPS"]).unwrap_or_else(|| "HTTPS".into());
    let default_port = if &*protocol == "HTTP" { 80 } else { 443 };
    let interval = duration(f, "interval").and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(300);
    let threshold = f.number_in("failureThreshold", "a number of failures", 1, 1000);
    HealthCheck {
        port: f.port("port").unwrap_or(default_port),
        path: f.shaped("path", Shape::UrlPath).unwrap_or_else(|| "/".into()),
        interval: interval.max(1),
        failure_threshold: threshold.and_then(|n| u32::try_from(n).ok()).unwrap_or(5),
        headers: f.mapping("additionalHeadersRef", |f| f.required("name", Shape::ObjectName)),
        protocol,
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
