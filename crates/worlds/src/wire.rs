//! The shapes of objects as they are written. Only what worlds use is here; nothing is checked.

use serde::{Serialize, Serializer};

pub(crate) const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";
pub(crate) const GROUP: &str = "gateway.networking.k8s.io";
pub(crate) const CONTROLLER: &str = "gateway.example/controller";

/// Pairs that are written as a mapping.
pub(crate) type Pairs = Vec<(&'static str, String)>;

/// Any object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Object<Spec, Status> {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) metadata: Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spec: Option<Spec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Status>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) generation: usize,
    pub(crate) creation_timestamp: String,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "mapping")]
    pub(crate) labels: Pairs,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "mapping")]
    pub(crate) annotations: Pairs,
}

/// A reference to a Gateway or ListenerSet.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ParentRef {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) section_name: Option<String>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireCondition {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) status: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: &'static str,
    pub(crate) observed_generation: usize,
    pub(crate) last_transition_time: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RouteSpec {
    pub(crate) parent_refs: Vec<ParentRef>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hostnames: Vec<String>,
    pub(crate) rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) matches: Vec<Match>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) filters: Vec<WireFilter>,
    pub(crate) backend_refs: Vec<Backend>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Match {
    Path(WirePath),
    Method(Method),
}

#[derive(Serialize)]
pub(crate) struct WirePath {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) value: String,
}

#[derive(Serialize)]
pub(crate) struct Method {
    pub(crate) service: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireFilter {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) request_header_modifier: Headers,
}

#[derive(Serialize)]
pub(crate) struct Headers {
    pub(crate) set: Vec<Header>,
}

#[derive(Serialize)]
pub(crate) struct Header {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

#[derive(Serialize)]
pub(crate) struct Backend {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
}

#[derive(Serialize)]
pub(crate) struct RouteStatus {
    pub(crate) parents: Vec<ParentStatus>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ParentStatus {
    pub(crate) parent_ref: ParentRef,
    pub(crate) controller_name: &'static str,
    pub(crate) conditions: Vec<WireCondition>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HolderSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gateway_class_name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_ref: Option<ParentRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_listeners: Option<Allowed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<WireAddress>,
    pub(crate) listeners: Vec<WireListener>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireListener {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) protocol: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hostname: Option<String>,
    pub(crate) allowed_routes: Allowed,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<Tls>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tls {
    pub(crate) mode: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) certificate_refs: Vec<NameRef>,
}

#[derive(Serialize)]
pub(crate) struct NameRef {
    pub(crate) name: String,
}

/// Which namespaces are let in.
#[derive(Clone, Serialize)]
pub(crate) struct Allowed {
    pub(crate) namespaces: Namespaces,
}

#[derive(Clone, Serialize)]
pub(crate) struct Namespaces {
    pub(crate) from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selector: Option<Selector>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Selector {
    #[serde(serialize_with = "mapping")]
    pub(crate) match_labels: Pairs,
}

#[derive(Clone, Serialize)]
pub(crate) struct WireAddress {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HolderStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<WireAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attached_listener_sets: Option<usize>,
    pub(crate) conditions: Vec<WireCondition>,
    pub(crate) listeners: Vec<ListenerStatus>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListenerStatus {
    pub(crate) name: String,
    pub(crate) supported_kinds: Vec<GroupKind>,
    pub(crate) attached_routes: usize,
    pub(crate) conditions: Vec<WireCondition>,
}

#[derive(Serialize)]
pub(crate) struct GroupKind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClassSpec {
    pub(crate) controller_name: &'static str,
}

#[derive(Serialize)]
pub(crate) struct ServiceSpec {
    #[serde(serialize_with = "mapping")]
    pub(crate) selector: Pairs,
    pub(crate) ports: Vec<Port>,
}

#[derive(Serialize)]
pub(crate) struct Port {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
    pub(crate) protocol: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicySpec {
    pub(crate) target_ref: WireTargetRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allow_wildcard_hosts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) issuer_ref: Option<WireTargetRef>,
}

#[derive(Serialize)]
pub(crate) struct WireTargetRef {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

/// Nothing, for objects without spec or status.
#[derive(Serialize)]
pub(crate) struct Nothing {}

fn mapping<S: Serializer>(pairs: &Pairs, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// One condition, with the word for true or false.
pub(crate) fn condition(
    kind: &'static str,
    holds: bool,
    reason: &'static str,
    at: &str,
    generation: usize,
) -> WireCondition {
    WireCondition {
        kind,
        status: if holds { "True" } else { "False" },
        reason,
        message: "",
        observed_generation: generation,
        last_transition_time: at.to_owned(),
    }
}
