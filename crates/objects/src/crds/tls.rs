//! TLSPolicy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::{Definition, Scope, column, outcome, schema_of, wide};
use super::shared::{SUBDOMAIN, Span, TargetRef};

/// How certificates for hostnames of the target are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.duration) || !has(self.renewBefore) || duration(self.renewBefore) < duration(self.duration)",
    "message": "renewBefore must be shorter than duration",
    "fieldPath": ".renewBefore",
}]))]
pub struct TlsPolicySpec {
    /// What the policy is about: a Gateway or ListenerSet in the namespace of the policy.
    pub target_ref: TargetRef,
    /// Whether wildcard certificates are made. Unset means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_wildcard_hosts: Option<bool>,
    /// Who issues, where it is not the issuer of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer_ref: Option<IssuerRef>,
    /// How long certificates are valid. The issuer may choose another lifetime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// How long before its end a certificate is renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_before: Option<Span>,
    /// What private keys are like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<PrivateKey>,
}

/// Who issues certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuerRef {
    /// API group of the issuer.
    #[serde(default = "issuer_group")]
    #[schemars(length(max = 253), regex(pattern = format!("^$|{SUBDOMAIN}")))]
    pub group: String,
    /// Kind of the issuer.
    #[serde(default = "issuer_kind")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"))]
    pub kind: String,
    /// Name of the issuer.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What private keys are like. What is unset is the issuer's choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.size) || has(self.algorithm)", "message": "size needs an algorithm beside it", "fieldPath": ".size"},
    {
        "rule": "!has(self.size) || !has(self.algorithm) || (self.algorithm == 'RSA' && self.size >= 2048 && self.size <= 8192) || (self.algorithm == 'ECDSA' && self.size in [256, 384, 521])",
        "message": "size must be 2048 to 8192 for RSA, 256, 384 or 521 for ECDSA, and unset for Ed25519",
        "fieldPath": ".size",
    },
]))]
pub struct PrivateKey {
    /// The algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// The size in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 256, max = 8192))]
    pub size: Option<i32>,
    /// How the key is written into the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Whether a renewal makes a new key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation_policy: Option<RotationPolicy>,
}

/// An algorithm of private keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Algorithm {
    #[serde(rename = "RSA")]
    Rsa,
    #[serde(rename = "ECDSA")]
    Ecdsa,
    Ed25519,
}

/// How a private key is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Encoding {
    Pkcs1,
    Pkcs8,
}

/// Whether a renewal makes a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum RotationPolicy {
    Never,
    Always,
}

/// What a cluster is told about TLSPolicies.
pub(super) fn definition() -> Definition {
    let mut columns = vec![
        column("Target", "string", ".spec.targetRef.name"),
        column("Issuer", "string", ".spec.issuerRef.name"),
        column("Wildcards", "boolean", ".spec.allowWildcardHosts"),
        wide("Kind", "string", ".spec.targetRef.kind"),
        wide("Section", "string", ".spec.targetRef.sectionName"),
    ];
    columns.extend(outcome());
    Definition {
        kind: "TLSPolicy",
        plural: "tlspolicies",
        short: "gtls",
        description: "TLSPolicy says how certificates are made for the hostnames that routes and listeners of a Gateway have in common.",
        scope: Scope::Policy,
        spec: schema_of::<TlsPolicySpec>(),
        columns,
    }
}

fn issuer_group() -> String {
    "cert-manager.io".to_owned()
}

fn issuer_kind() -> String {
    "Issuer".to_owned()
}
