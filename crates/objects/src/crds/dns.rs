//! DNSPolicy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::{Definition, Scope, column, outcome, schema_of, wide};
use super::shared::{Span, TargetRef};

/// How hostnames of the target are published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DnsPolicySpec {
    /// What the policy is about: a Gateway or ListenerSet in the namespace of the policy.
    pub target_ref: TargetRef,
    /// Whether wildcard hostnames are published. Unset means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_wildcard_hosts: Option<bool>,
    /// How long resolvers may keep the records, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub ttl: Option<i32>,
    /// Addresses of the Gateway that are not published: IP addresses, ranges such as 10.0.0.0/8, or hostnames.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub exclude_addresses: Vec<ExcludedAddress>,
    /// Whether and how addresses are probed. An address that fails is taken out of a hostname's records, never the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// The provider that publishes: `default`, which the flags of the command line describe, or one of `providers` in the
    /// settings. Unset means the first whose zones contain the name. A policy that names another is not accepted, and nothing
    /// under it is created, changed or deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<ProviderRef>,
}

/// An IP address, a range of them, or a hostname.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "isIP(self) || isCIDR(self) || (self.matches('^([A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?\\\\.)*[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?\\\\.?$') && !self.matches('(^|\\\\.)[0-9]+\\\\.?$'))",
    "message": "must be an IP address, a range such as 10.0.0.0/8, or a hostname",
}]))]
pub struct ExcludedAddress(#[schemars(length(min = 1, max = 254))] pub String);

/// How addresses are probed: each address of each precise hostname for itself. Wildcards are not probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!(has(self.protocol) && self.protocol == 'TCP') || has(self.port)", "message": "TCP has no usual port: set port", "fieldPath": ".port"},
    {"rule": "!has(self.interval) || !self.interval.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.interval) >= duration('5s')", "message": "must be at least five seconds", "fieldPath": ".interval"},
]))]
pub struct HealthCheck {
    /// What is spoken to the address. The hostname is sent along as Host and SNI. With TCP, a connection is enough.
    #[serde(default)]
    pub protocol: HealthProtocol,
    /// The port. Unset means 443 for HTTPS and 80 for HTTP; TCP needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The path that is asked for. Redirects are not followed.
    #[serde(default = "root")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = URL_PATH))]
    pub path: String,
    /// The time between two probes, at least five seconds.
    #[serde(default = "thirty_seconds")]
    pub interval: Span,
    /// The time for a whole probe, from the connection to the end of the answer.
    #[serde(default = "five_seconds")]
    pub timeout: Span,
    /// How many failures in a row take an address out of the records of a hostname.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 1000))]
    pub failure_threshold: i32,
    /// How many successes in a row bring it back.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub success_threshold: i32,
    /// Which statuses of an answer count as success: `204`, or `200-299`. Unset means 200-399.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub expected_statuses: Vec<StatusRange>,
    /// Whether the certificate is taken that the address shows, whatever it is. Otherwise it must be valid for the hostname.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_verify: bool,
    /// A Secret in the namespace of the policy whose entries are sent along as headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_headers_ref: Option<HeadersRef>,
}

/// What is spoken to an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum HealthProtocol {
    Http,
    #[default]
    Https,
    Tcp,
}

/// A status of HTTP, or a range of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!self.contains('-') || self.size() != 7 || int(self.substring(0, 3)) <= int(self.substring(4))", "message": "the first status is greater than the last"},
]))]
pub struct StatusRange(
    #[schemars(length(min = 3, max = 7), regex(pattern = "^[1-5][0-9]{2}(-[1-5][0-9]{2})?$"))] pub String,
);

/// A Secret with headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeadersRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A DNS provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderRef {
    /// Name of the provider.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Characters of a URL path.
const URL_PATH: &str = r"^([-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})+$";

/// What a cluster is told about DNSPolicies.
pub(super) fn definition() -> Definition {
    let mut columns = vec![
        column("Target", "string", ".spec.targetRef.name"),
        column("Wildcards", "boolean", ".spec.allowWildcardHosts"),
        wide("Kind", "string", ".spec.targetRef.kind"),
        wide("Section", "string", ".spec.targetRef.sectionName"),
        wide("TTL", "integer", ".spec.ttl"),
    ];
    columns.extend(outcome());
    columns.push(column("Healthy", "string", ".status.conditions[?(@.type==\"SubResourcesHealthy\")].status"));
    columns.push(wide("Unhealthy", "integer", ".status.unhealthyAddresses"));
    Definition {
        kind: "DNSPolicy",
        plural: "dnspolicies",
        short: "gdns",
        description: "DNSPolicy says how the hostnames that routes and listeners of a Gateway have in common are published.",
        scope: Scope::Policy,
        spec: schema_of::<DnsPolicySpec>(),
        columns,
    }
}

fn root() -> String {
    "/".to_owned()
}

fn thirty_seconds() -> Span {
    Span("30s".to_owned())
}

fn five_seconds() -> Span {
    Span("5s".to_owned())
}

fn three() -> i32 {
    3
}

fn one() -> i32 {
    1
}
