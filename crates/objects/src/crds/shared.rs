//! What both policies have: a target, and a status that accounts for every hostname.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a policy is about: a Gateway or ListenerSet in its own namespace, or one listener of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self.group == 'gateway.networking.k8s.io'", "message": "targetRef.group must be gateway.networking.k8s.io", "fieldPath": ".group"},
    {"rule": "self.kind in ['Gateway', 'ListenerSet']", "message": "targetRef.kind must be Gateway or ListenerSet", "fieldPath": ".kind"},
]))]
pub struct TargetRef {
    /// API group of the target.
    #[serde(default = "gateway_group")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// Kind of the target: Gateway or ListenerSet.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of the target.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// One listener of the target. A policy for a listener beats one for the whole object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub section_name: Option<String>,
}

// A text that is no span is refused by the pattern alone; the rule would only add an error of its own.
/// A span of time such as `90s`, `5m` or `1h30m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": format!("!self.matches('{DURATION}') || duration(self) >= duration('1s')"), "message": "must be at least one second"},
]))]
pub struct Span(#[schemars(length(max = 32), regex(pattern = DURATION))] pub String);

/// What became of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyStatus {
    /// `Accepted`, `Enforced`, and `SubResourcesHealthy` where health is checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How many hostnames there are of each state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Every hostname that the policy governs, with what became of it. Hostnames that do not fit are only counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8192), extend("x-kubernetes-list-type" = "atomic"))]
    pub hostnames: Vec<HostnameStatus>,
    /// How many addresses fail the probes of the health check.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub unhealthy_addresses: Option<i32>,
    /// What the health check found out about addresses, those that fail first. Addresses that do not fit are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2048), extend("x-kubernetes-list-type" = "atomic"))]
    pub addresses: Vec<AddressStatus>,
}

/// What a health check found out about one address of a hostname.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddressStatus {
    /// The hostname.
    #[schemars(length(min = 1, max = 253))]
    pub hostname: String,
    /// The address.
    #[schemars(length(min = 1, max = 253))]
    pub address: String,
    /// Whether its probes succeed.
    pub state: AddressState,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Whether it is published for the hostname.
    pub published: bool,
    /// Why probes fail, or why none is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub error: Option<String>,
}

/// Whether probes of an address succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum AddressState {
    Healthy,
    Unhealthy,
    Unknown,
}

/// How many hostnames there are of each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counts {
    /// Hostnames that work.
    #[schemars(range(min = 0))]
    pub served: i32,
    /// Hostnames that are on their way.
    #[schemars(range(min = 0))]
    pub pending: i32,
    /// Hostnames that get nothing.
    #[schemars(range(min = 0))]
    pub skipped: i32,
}

/// What became of one hostname on one listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self.state == 'Served' || has(self.reason)", "message": "a hostname that is not served has a reason"},
]))]
pub struct HostnameStatus {
    /// The hostname that listener and route have in common.
    #[schemars(length(min = 1, max = 253))]
    pub hostname: String,
    /// The listener, as `Kind/namespace/name/section`.
    #[schemars(length(min = 1, max = 640))]
    pub listener: String,
    /// Served, pending or skipped.
    pub state: HostnameState,
    /// Why it is pending or skipped: a name that `gatepost explain` knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9]+(-[a-z0-9]+)*$"))]
    pub reason: Option<String>,
    /// The same in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
}

/// How far a hostname has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum HostnameState {
    Served,
    Pending,
    Skipped,
}

/// One aspect of what became of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which aspect.
    #[schemars(length(min = 1, max = 316), regex(pattern = CONDITION_TYPE))]
    pub r#type: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation of the policy that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// Why, in one word.
    #[schemars(length(min = 1, max = 1024), regex(pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    pub reason: String,
    /// Why, in a sentence.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Whether something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}

/// Labels of lower-case letters, digits and `-`, joined by dots.
pub(super) const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// A duration as the Gateway API writes it.
const DURATION: &str = "^([0-9]{1,5}(h|m|s|ms)){1,4}$";

/// A word, perhaps behind a domain.
const CONDITION_TYPE: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

fn gateway_group() -> String {
    gatepost_core::model::GATEWAY_GROUP.to_owned()
}
