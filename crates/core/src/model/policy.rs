//! DNSPolicy and TLSPolicy of gatepost.dev.

use super::{Meta, Reference, Str};

/// What a policy is about: a Gateway or ListenerSet in its own namespace, or one listener of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyTarget {
    /// The object; its namespace is always the policy's.
    pub object: Reference,
    /// One listener.
    pub section: Option<Str>,
}

/// How names are published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsPolicy {
    /// Name and age.
    pub meta: Meta,
    /// What it is about.
    pub target: PolicyTarget,
    /// Whether wildcard names are published; unset means yes.
    pub allow_wildcards: Option<bool>,
    /// TTL of its records in seconds.
    pub ttl: Option<u32>,
    /// Addresses that are not published: IP, CIDR or hostname.
    pub exclude_addresses: Vec<Str>,
    /// Whether addresses are probed.
    pub health_check: Option<HealthCheck>,
    /// Which provider publishes.
    pub provider: Option<Str>,
}

/// How addresses are probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// `HTTP` or `HTTPS`.
    pub protocol: Str,
    /// Port.
    pub port: u16,
    /// Path.
    pub path: Str,
    /// Seconds between probes.
    pub interval: u32,
    /// Failures in a row before an address is dropped.
    pub failure_threshold: u32,
    /// Secret with further request headers.
    pub headers: Option<Str>,
}

/// How certificates are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPolicy {
    /// Name and age.
    pub meta: Meta,
    /// What it is about.
    pub target: PolicyTarget,
    /// Whether wildcard certificates are made; unset means yes.
    pub allow_wildcards: Option<bool>,
    /// Who issues.
    pub issuer: Option<Reference>,
    /// Lifetime in seconds.
    pub duration: Option<u64>,
    /// Seconds before the end at which it is renewed.
    pub renew_before: Option<u64>,
    /// `spec.privateKey`: algorithm, size, rotation, as written.
    pub private_key: Vec<(Str, Str)>,
}
