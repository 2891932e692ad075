//! DNSPolicy, TLSPolicy and HostnameGrant as a cluster knows them: wire types, and the CustomResourceDefinitions made from them.
//!
//! The types are what a controller writes and what `kubectl explain` shows; their doc comments are the descriptions there.
//! Objects are read elsewhere (`policies`), leniently and with places; a test holds both to the same fields. Nothing here
//! judges an object: the rules are texts for a server.

use serde_json::Value;

mod definition;
mod dns;
mod grant;
mod schema;
mod shared;
mod tls;

pub use dns::{DnsPolicySpec, ExcludedAddress, HeadersRef, HealthCheck, HealthProtocol, ProviderRef, StatusRange};
pub use grant::{
    GrantedHostname, GrantedNamespaces, HostnameGrantSpec, LabelOperator, LabelRequirement, LabelSelector, LabelValue,
    NamespaceName,
};
pub use shared::{
    AddressState, AddressStatus, Condition, ConditionStatus, Counts, HostnameState, HostnameStatus, PolicyStatus, Span,
    TargetRef,
};
pub use tls::{Algorithm, Encoding, IssuerRef, PrivateKey, RotationPolicy, TlsPolicySpec};

/// The definitions of all kinds that are ours, in order of names.
pub fn definitions() -> Vec<Value> {
    [dns::definition(), grant::definition(), tls::definition()].iter().map(definition::Definition::render).collect()
}

/// The definitions as YAML documents.
pub fn yaml() -> Result<String, String> {
    crate::render::yaml(&definitions())
}

#[cfg(test)]
mod tests;
