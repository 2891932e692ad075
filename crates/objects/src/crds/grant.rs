//! HostnameGrant.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::{Definition, Scope, column, schema_of, wide};

/// Which namespaces may have which hostnames. Of several grants that cover a hostname the one with the most specific entry
/// decides, and of equal entries the oldest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostnameGrantSpec {
    /// The hostnames that the grant is about, precise or with `*.` in front. A wildcard covers names of any depth below it, and
    /// not the name behind `*.`, which has to be listed by itself.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "set"))]
    pub hostnames: Vec<GrantedHostname>,
    /// The namespaces that may have the hostnames: those named and those selected.
    pub namespaces: GrantedNamespaces,
}

/// A hostname in lower case, precise or with `*.` in front.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!self.matches('^([0-9]{1,3}[.]){3}[0-9]{1,3}$')", "message": "a hostname must not be an IP address"},
]))]
pub struct GrantedHostname(#[schemars(length(min = 1, max = 253), regex(pattern = HOSTNAME))] pub String);

/// The namespaces that may have the hostnames of a grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.names) || has(self.selector)", "message": "names or selector must say which namespaces may have the hostnames"},
]))]
pub struct GrantedNamespaces {
    /// Namespaces by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 256), extend("x-kubernetes-list-type" = "set"))]
    pub names: Vec<NamespaceName>,
    /// Namespaces by labels. An empty selector admits every namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// The name of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct NamespaceName(
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))] pub String,
);

/// What the labels of a namespace must be. All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels with the value that each must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub match_labels: BTreeMap<String, LabelValue>,
    /// Further requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<LabelRequirement>,
}

/// The value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LabelValue(#[schemars(length(max = 63))] pub String);

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
    "message": "values must be set for the operators In and NotIn, and left out for Exists and DoesNotExist",
    "fieldPath": ".values",
}]))]
pub struct LabelRequirement {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// How the label is compared.
    pub operator: LabelOperator,
    /// The values that are compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<LabelValue>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum LabelOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// A precise or wildcard hostname, as the Gateway API writes it, with labels that DNS can hold.
const HOSTNAME: &str = r"^(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$";

/// What a cluster is told about HostnameGrants.
pub(super) fn definition() -> Definition {
    Definition {
        kind: "HostnameGrant",
        plural: "hostnamegrants",
        short: "hgrant",
        description: "HostnameGrant says which namespaces may have which hostnames, in DNS records and in certificates.",
        scope: Scope::Cluster,
        spec: schema_of::<HostnameGrantSpec>(),
        columns: vec![
            column("Hostnames", "string", ".spec.hostnames"),
            column("Namespaces", "string", ".spec.namespaces.names"),
            wide("Selector", "string", ".spec.namespaces.selector"),
        ],
    }
}
