//! Identity and metadata of objects: kind, namespace, name, age, labels.

use crate::diagnostic::FieldPath;
use crate::reason::Reason;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::{EXPERIMENTAL_GROUP, GATEWAY_GROUP, Labels, OWN_GROUP, RouteKind, Str};

/// The kinds of objects that the rules read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `GatewayClass`, cluster-scoped.
    GatewayClass,
    /// `Gateway`.
    Gateway,
    /// `ListenerSet` of gateway.networking.k8s.io.
    ListenerSet,
    /// `XListenerSet`, the experimental predecessor of `ListenerSet`.
    XListenerSet,
    /// A route of any kind; their properties are in [`RouteKind`].
    Route(RouteKind),
    /// `ReferenceGrant`.
    ReferenceGrant,
    /// `Namespace`, cluster-scoped.
    Namespace,
    /// `Service`.
    Service,
    /// `Secret`; only its certificate is read.
    Secret,
    /// `ConfigMap`; only its CA certificates are read.
    ConfigMap,
    /// `DNSPolicy` of gatepost.dev.
    DnsPolicy,
    /// `TLSPolicy` of gatepost.dev.
    TlsPolicy,
    /// `HostnameGrant` of gatepost.dev, cluster-scoped.
    HostnameGrant,
}

impl Kind {
    /// The kinds that output lists before routes.
    const BEFORE_ROUTES: [Kind; 4] = [Kind::GatewayClass, Kind::Gateway, Kind::ListenerSet, Kind::XListenerSet];

    /// The kinds that output lists after routes.
    const AFTER_ROUTES: [Kind; 8] = [
        Kind::ReferenceGrant,
        Kind::Namespace,
        Kind::Service,
        Kind::Secret,
        Kind::ConfigMap,
        Kind::DnsPolicy,
        Kind::TlsPolicy,
        Kind::HostnameGrant,
    ];

    /// Every kind, in the order in which output lists them.
    pub const ALL: [Kind; Kind::BEFORE_ROUTES.len() + RouteKind::ALL.len() + Kind::AFTER_ROUTES.len()] = {
        let (before, routes, after) = (Kind::BEFORE_ROUTES, RouteKind::ALL, Kind::AFTER_ROUTES);
        let mut all = [before[0]; _];
        let mut next = 0;
        while next < all.len() {
            all[next] = if next < before.len() {
                before[next]
            } else if next < before.len() + routes.len() {
                Kind::Route(routes[next - before.len()])
            } else {
                after[next - before.len() - routes.len()]
            };
            next += 1;
        }
        all
    };

    /// The kind as Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::GatewayClass => "GatewayClass",
            Kind::Gateway => "Gateway",
            Kind::ListenerSet => "ListenerSet",
            Kind::XListenerSet => "XListenerSet",
            Kind::Route(kind) => kind.as_str(),
            Kind::ReferenceGrant => "ReferenceGrant",
            Kind::Namespace => "Namespace",
            Kind::Service => "Service",
            Kind::Secret => "Secret",
            Kind::ConfigMap => "ConfigMap",
            Kind::DnsPolicy => "DNSPolicy",
            Kind::TlsPolicy => "TLSPolicy",
            Kind::HostnameGrant => "HostnameGrant",
        }
    }

    /// The API group; empty for the core group.
    pub fn group(self) -> &'static str {
        match self {
            Kind::XListenerSet => EXPERIMENTAL_GROUP,
            Kind::Namespace | Kind::Service | Kind::Secret | Kind::ConfigMap => "",
            Kind::DnsPolicy | Kind::TlsPolicy | Kind::HostnameGrant => OWN_GROUP,
            _ => GATEWAY_GROUP,
        }
    }

    /// The resource name in API paths and RBAC: the plural, in lower case.
    pub fn resource(self) -> &'static str {
        match self {
            Kind::GatewayClass => "gatewayclasses",
            Kind::Gateway => "gateways",
            Kind::ListenerSet => "listenersets",
            Kind::XListenerSet => "xlistenersets",
            Kind::Route(kind) => kind.resource(),
            Kind::ReferenceGrant => "referencegrants",
            Kind::Namespace => "namespaces",
            Kind::Service => "services",
            Kind::Secret => "secrets",
            Kind::ConfigMap => "configmaps",
            Kind::DnsPolicy => "dnspolicies",
            Kind::TlsPolicy => "tlspolicies",
            Kind::HostnameGrant => "hostnamegrants",
        }
    }

    /// The kind with this group and name, if the rules read it.
    pub fn of(group: &str, kind: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.as_str() == kind && k.group() == group)
    }

    /// Which kind of route it is, if it is one.
    pub const fn route(self) -> Option<RouteKind> {
        match self {
            Kind::Route(kind) => Some(kind),
            _ => None,
        }
    }

    /// Whether objects of this kind have no namespace.
    pub fn is_cluster_scoped(self) -> bool {
        matches!(self, Kind::GatewayClass | Kind::Namespace | Kind::HostnameGrant)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Namespace and name, ordered as the text `namespace/name`. The namespace is empty for cluster-scoped kinds.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Namespace.
    pub namespace: Str,
    /// Name.
    pub name: Str,
}

impl Key {
    /// Namespace and name.
    pub fn new(namespace: impl Into<Str>, name: impl Into<Str>) -> Self {
        Key { namespace: namespace.into(), name: name.into() }
    }

    /// The bytes of `namespace/name` after the first `skipped` bytes of the namespace.
    fn text_after(&self, skipped: usize) -> impl Iterator<Item = u8> + '_ {
        self.namespace.bytes().skip(skipped).chain([b'/']).chain(self.name.bytes())
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.namespace, &other.namespace) {
            return self.name.cmp(&other.name);
        }
        let (mine, theirs) = (self.namespace.as_bytes(), other.namespace.as_bytes());
        let both = mine.len().min(theirs.len());
        match mine[..both].cmp(&theirs[..both]) {
            Ordering::Equal if mine.len() == theirs.len() => self.name.cmp(&other.name),
            // One namespace is a prefix of the other, so the `/` after the shorter one takes part in the comparison.
            Ordering::Equal => self.text_after(both).cmp(other.text_after(both)),
            decided => decided,
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}", self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A reference to one object: `HTTPRoute/shop/web`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Kind.
    pub kind: Kind,
    /// Namespace and name.
    pub key: Key,
}

impl ObjectRef {
    /// Kind, namespace and name.
    pub fn new(kind: Kind, namespace: impl Into<Str>, name: impl Into<Str>) -> Self {
        ObjectRef { kind, key: Key::new(namespace, name) }
    }

    /// The namespace.
    pub fn namespace(&self) -> &Str {
        &self.key.namespace
    }

    /// The name.
    pub fn name(&self) -> &Str {
        &self.key.name
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.key)
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Metadata that every object has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Namespace and name.
    pub key: Key,
    /// Creation time in seconds since 1970. Objects from files have none, which sorts as newest.
    pub created: Option<i64>,
    /// Generation, if the API server set one.
    pub generation: Option<i64>,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// The first field because of which an API server would refuse the object; only set for objects from files (D30).
    pub invalid: Option<Box<InvalidField>>,
}

/// Why the content of an object is not known: a field that breaks a rule of the API, or something that completes the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// The reason.
    pub reason: Reason,
    /// The field.
    pub field: FieldPath,
    /// What is wrong with it.
    pub message: String,
}

impl Meta {
    /// Metadata with only a namespace and name.
    pub fn named(namespace: impl Into<Str>, name: impl Into<Str>) -> Self {
        let key = Key::new(namespace, name);
        Meta { key, created: None, generation: None, labels: Labels::new(), annotations: Labels::new(), invalid: None }
    }

    /// The order of precedence among objects: oldest first, then `namespace/name`.
    pub fn seniority(&self) -> (i64, &Key) {
        (self.created.unwrap_or(i64::MAX), &self.key)
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&Str> {
        self.annotations.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_their_text() {
        let parts = ["", "a", "a-b", "a.b", "a0", "ab", "b", "a/b"];
        let keys: Vec<Key> = parts.iter().flat_map(|ns| parts.map(|name| Key::new(*ns, name))).collect();
        for (x, y) in keys.iter().flat_map(|x| keys.iter().map(move |y| (x, y))) {
            let text = |key: &Key| format!("{}/{}", key.namespace, key.name);
            assert_eq!(x.cmp(y), text(x).cmp(&text(y)), "{x:?} {y:?}");
        }
    }
}
