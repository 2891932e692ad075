//! DNSPolicy, TLSPolicy and HostnameGrant of gatepost.dev.

use super::{Kind, Meta, ObjectRef, Reference, Str, WrittenHostname};
use crate::selector::Selector;

/// The target of a policy: a Gateway or ListenerSet in the policy's namespace, or one listener of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyTarget {
    /// The object; its namespace is always the policy's.
    pub object: Reference,
    /// The name of one listener; unset means all.
    pub section: Option<Str>,
}

/// A DNSPolicy: how hostnames are published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsPolicy {
    /// Name and age.
    pub meta: Meta,
    /// The Gateway, ListenerSet or listener that it applies to.
    pub target: PolicyTarget,
    /// Whether wildcard names are published; unset means yes.
    pub allow_wildcards: Option<bool>,
    /// TTL of its records in seconds.
    pub ttl: Option<u32>,
    /// Addresses that are not published: IP, CIDR or hostname.
    pub exclude_addresses: Vec<Str>,
    /// Whether addresses are probed.
    pub health_check: Option<HealthCheck>,
    /// The provider that publishes.
    pub provider: Option<Str>,
}

/// How addresses are probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// `HTTP`, `HTTPS` or `TCP`.
    pub protocol: Str,
    /// Port.
    pub port: u16,
    /// Path.
    pub path: Str,
    /// Seconds between probes.
    pub interval: u32,
    /// Seconds for a whole probe.
    pub timeout: u32,
    /// Consecutive failures before an address is removed.
    pub failure_threshold: u32,
    /// Consecutive successes before it returns.
    pub success_threshold: u32,
    /// Status codes that count as success, from the first to the last of each range; empty means 200 to 399.
    pub expected_statuses: Vec<(u16, u16)>,
    /// Whether any certificate is taken.
    pub skips_verification: bool,
    /// Secret with further request headers.
    pub headers: Option<Str>,
}

/// A TLSPolicy: how certificates are issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPolicy {
    /// Name and age.
    pub meta: Meta,
    /// The Gateway, ListenerSet or listener that it applies to.
    pub target: PolicyTarget,
    /// Whether wildcard certificates are issued; unset means yes.
    pub allow_wildcards: Option<bool>,
    /// The issuer; unset means the one of the settings.
    pub issuer: Option<Reference>,
    /// Lifetime in seconds.
    pub duration: Option<u64>,
    /// Seconds before expiry at which the certificate is renewed.
    pub renew_before: Option<u64>,
    /// `spec.privateKey`: algorithm, size and rotation, unparsed.
    pub private_key: Vec<(Str, Str)>,
}

/// A HostnameGrant: which namespaces may have which hostnames (D28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostnameGrant {
    /// Name and age.
    pub meta: Meta,
    /// The hostnames that it is about, precise or wildcard.
    pub hostnames: Vec<WrittenHostname>,
    /// The namespaces that may have them.
    pub namespaces: GrantedNamespaces,
}

/// The namespaces of a HostnameGrant: those named and those selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantedNamespaces {
    /// By name.
    pub names: Vec<Str>,
    /// By labels of the Namespace.
    pub selector: Option<Selector>,
}

impl HostnameGrant {
    /// Which object it is.
    pub fn object(&self) -> ObjectRef {
        ObjectRef { kind: Kind::HostnameGrant, key: self.meta.key.clone() }
    }
}
