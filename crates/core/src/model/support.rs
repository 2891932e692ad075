//! The objects around the tree: grants, namespaces, Services, Secrets, ConfigMaps.

use super::{Meta, Str};

/// Lets objects of one namespace refer into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceGrant {
    /// Its namespace is the one that is opened.
    pub meta: Meta,
    /// Who may refer; any one is enough.
    pub from: Vec<GrantFrom>,
    /// What may be referred to; any one is enough.
    pub to: Vec<GrantTo>,
}

/// Who may refer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantFrom {
    /// API group.
    pub group: Str,
    /// Kind.
    pub kind: Str,
    /// Namespace.
    pub namespace: Str,
}

/// What may be referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantTo {
    /// API group.
    pub group: Str,
    /// Kind.
    pub kind: Str,
    /// One object only.
    pub name: Option<Str>,
}

/// A namespace: its labels decide who is let in.
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
    /// Ports it offers.
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

/// A Secret: its type and certificate. The key never passes the border.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Name and labels.
    pub meta: Meta,
    /// `type`.
    pub kind: Str,
    /// What `tls.crt` and `tls.key` hold.
    pub certificate: Material,
}

/// A ConfigMap: its CA certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMap {
    /// Name and labels.
    pub meta: Meta,
    /// What `ca.crt` holds.
    pub ca: Material,
}

/// Certificates as they were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Material {
    /// The entry is not there.
    Missing,
    /// It is there and cannot be used; says why.
    Malformed(Str),
    /// It is there.
    Present(Certificate),
}

/// What is known of the first certificate in a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// DNS names it is good for.
    pub dns_names: Vec<Str>,
    /// When it begins, in seconds since 1970.
    pub not_before: i64,
    /// When it ends, in seconds since 1970.
    pub not_after: i64,
    /// Who signed it.
    pub issuer: Str,
}
