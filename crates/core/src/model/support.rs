//! Grants, namespaces, Services, Secrets and ConfigMaps.

use super::{Meta, Str};

/// A ReferenceGrant: allows objects of one namespace to refer into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceGrant {
    /// Its namespace is the one that may be referred into.
    pub meta: Meta,
    /// Allowed referrers.
    pub from: Vec<GrantFrom>,
    /// Allowed targets.
    pub to: Vec<GrantTo>,
}

/// The objects that may refer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantFrom {
    /// API group.
    pub group: Str,
    /// Kind.
    pub kind: Str,
    /// Namespace.
    pub namespace: Str,
}

/// The objects that may be referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantTo {
    /// API group.
    pub group: Str,
    /// Kind.
    pub kind: Str,
    /// One object; unset means all of this kind.
    pub name: Option<Str>,
}

/// A namespace, whose labels are matched by selectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Name and labels.
    pub meta: Meta,
}

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Name and labels.
    pub meta: Meta,
    /// Its ports.
    pub ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// Number.
    pub port: u16,
    /// `TCP` or `UDP`.
    pub protocol: Str,
}

/// A Secret: its type and certificate. The private key is never part of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Name and labels.
    pub meta: Meta,
    /// `type`.
    pub kind: Str,
    /// The content of `tls.crt` and `tls.key`.
    pub certificate: Material,
}

/// A ConfigMap: its CA certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMap {
    /// Name and labels.
    pub meta: Meta,
    /// The content of `ca.crt`.
    pub ca: Material,
}

/// Certificates as found in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Material {
    /// The entry does not exist.
    Missing,
    /// It cannot be used; holds the reason.
    Malformed(Str),
    /// It can be used; holds the first certificate.
    Present(Certificate),
}

/// The first certificate of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// The DNS names in it.
    pub dns_names: Vec<Str>,
    /// Start of its validity, in seconds since 1970.
    pub not_before: i64,
    /// End of its validity, in seconds since 1970.
    pub not_after: i64,
    /// The issuer's name.
    pub issuer: Str,
}
