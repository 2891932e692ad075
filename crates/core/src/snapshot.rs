//! The objects at one moment, and which kinds could be listed.
//!
//! A snapshot holds what a source provided and never evaluates it. "Absent" and "not visible" differ: an object missing
//! from a visible kind is absent, an object missing from a kind that could not be listed is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::*;
use crate::selector::{NAME_LABEL, Selector};

mod change;

pub use change::Change;

/// One object of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Object {
    GatewayClass(GatewayClass),
    Gateway(Gateway),
    ListenerSet(ListenerSet),
    Route(Route),
    ReferenceGrant(ReferenceGrant),
    Namespace(Namespace),
    Service(Service),
    Secret(Secret),
    ConfigMap(ConfigMap),
    DnsPolicy(DnsPolicy),
    TlsPolicy(TlsPolicy),
    HostnameGrant(HostnameGrant),
}

impl Object {
    /// Which object it is.
    pub fn object(&self) -> ObjectRef {
        let kind = match self {
            Object::GatewayClass(_) => Kind::GatewayClass,
            Object::Gateway(_) => Kind::Gateway,
            Object::ListenerSet(set) => set.kind,
            Object::Route(route) => Kind::Route(route.kind),
            Object::ReferenceGrant(_) => Kind::ReferenceGrant,
            Object::Namespace(_) => Kind::Namespace,
            Object::Service(_) => Kind::Service,
            Object::Secret(_) => Kind::Secret,
            Object::ConfigMap(_) => Kind::ConfigMap,
            Object::DnsPolicy(_) => Kind::DnsPolicy,
            Object::TlsPolicy(_) => Kind::TlsPolicy,
            Object::HostnameGrant(_) => Kind::HostnameGrant,
        };
        ObjectRef { kind, key: self.meta().key.clone() }
    }

    /// Its name, age and labels, to be changed.
    pub fn meta_mut(&mut self) -> &mut Meta {
        match self {
            Object::GatewayClass(o) => &mut o.meta,
            Object::Gateway(o) => &mut o.meta,
            Object::ListenerSet(o) => &mut o.meta,
            Object::Route(o) => &mut o.meta,
            Object::ReferenceGrant(o) => &mut o.meta,
            Object::Namespace(o) => &mut o.meta,
            Object::Service(o) => &mut o.meta,
            Object::Secret(o) => &mut o.meta,
            Object::ConfigMap(o) => &mut o.meta,
            Object::DnsPolicy(o) => &mut o.meta,
            Object::TlsPolicy(o) => &mut o.meta,
            Object::HostnameGrant(o) => &mut o.meta,
        }
    }

    /// Its name, age and labels.
    pub fn meta(&self) -> &Meta {
        match self {
            Object::GatewayClass(o) => &o.meta,
            Object::Gateway(o) => &o.meta,
            Object::ListenerSet(o) => &o.meta,
            Object::Route(o) => &o.meta,
            Object::ReferenceGrant(o) => &o.meta,
            Object::Namespace(o) => &o.meta,
            Object::Service(o) => &o.meta,
            Object::Secret(o) => &o.meta,
            Object::ConfigMap(o) => &o.meta,
            Object::DnsPolicy(o) => &o.meta,
            Object::TlsPolicy(o) => &o.meta,
            Object::HostnameGrant(o) => &o.meta,
        }
    }
}

/// The source of the objects; some decisions depend on it (D25, D26).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Files: an absent object may exist without being in the files.
    #[default]
    Files,
    /// A cluster: an absent object does not exist.
    Cluster,
}

/// Whether all objects of a kind could be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// All objects of the kind are included.
    #[default]
    Complete,
    /// They could not be listed; holds the reason.
    NotVisible(Str),
}

/// The objects at one moment, by kind. Cloning copies the maps and shares the objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The source of the objects.
    pub origin: Origin,
    /// GatewayClasses by name.
    pub classes: BTreeMap<Str, Arc<GatewayClass>>,
    /// Gateways.
    pub gateways: BTreeMap<Key, Arc<Gateway>>,
    /// ListenerSets and XListenerSets.
    pub listener_sets: BTreeMap<ObjectRef, Arc<ListenerSet>>,
    /// Routes of all kinds.
    pub routes: BTreeMap<ObjectRef, Arc<Route>>,
    /// Grants.
    pub grants: BTreeMap<Key, Arc<ReferenceGrant>>,
    /// Namespaces by name.
    pub namespaces: BTreeMap<Str, Arc<Namespace>>,
    /// Services.
    pub services: BTreeMap<Key, Arc<Service>>,
    /// Secrets.
    pub secrets: BTreeMap<Key, Arc<Secret>>,
    /// ConfigMaps.
    pub config_maps: BTreeMap<Key, Arc<ConfigMap>>,
    /// DNSPolicies.
    pub dns_policies: BTreeMap<Key, Arc<DnsPolicy>>,
    /// TLSPolicies.
    pub tls_policies: BTreeMap<Key, Arc<TlsPolicy>>,
    /// HostnameGrants by name.
    pub hostname_grants: BTreeMap<Str, Arc<HostnameGrant>>,
    /// Facts about the files that only diagnostics use; empty for a cluster.
    pub file_facts: FileFacts,
    visibility: BTreeMap<Kind, Visibility>,
}

/// What files say besides the objects that the rules read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Objects whose namespace is an assumption: their text states none, or several kustomizations give them different ones.
    pub without_namespace: BTreeSet<ObjectRef>,
    /// Objects that another program completes before they reach a cluster: they have placeholders, or patches change them.
    pub incomplete: BTreeSet<ObjectRef>,
    /// Secrets that a Certificate, ExternalSecret or SealedSecret among the files makes in the cluster.
    pub announced_secrets: BTreeSet<Key>,
}

impl Snapshot {
    /// An empty snapshot of files.
    pub fn new() -> Self {
        Snapshot::default()
    }

    /// A snapshot of all given objects. Later objects replace earlier ones with the same reference.
    pub fn of(objects: impl IntoIterator<Item = Object>) -> Self {
        let mut snapshot = Snapshot::new();
        for object in objects {
            snapshot.upsert(object);
        }
        snapshot
    }

    /// Adds or replaces an object; returns whether it replaced one.
    pub fn upsert(&mut self, object: Object) -> bool {
        match object {
            Object::GatewayClass(o) => self.classes.insert(o.meta.key.name.clone(), Arc::new(o)).is_some(),
            Object::Gateway(o) => self.gateways.insert(o.meta.key.clone(), Arc::new(o)).is_some(),
            Object::ListenerSet(o) => self.listener_sets.insert(o.object(), Arc::new(o)).is_some(),
            Object::Route(o) => self.routes.insert(o.object(), Arc::new(o)).is_some(),
            Object::ReferenceGrant(o) => self.grants.insert(o.meta.key.clone(), Arc::new(o)).is_some(),
            Object::Namespace(o) => self.namespaces.insert(o.meta.key.name.clone(), Arc::new(o)).is_some(),
            Object::Service(o) => self.services.insert(o.meta.key.clone(), Arc::new(o)).is_some(),
            Object::Secret(o) => self.secrets.insert(o.meta.key.clone(), Arc::new(o)).is_some(),
            Object::ConfigMap(o) => self.config_maps.insert(o.meta.key.clone(), Arc::new(o)).is_some(),
            Object::DnsPolicy(o) => self.dns_policies.insert(o.meta.key.clone(), Arc::new(o)).is_some(),
            Object::TlsPolicy(o) => self.tls_policies.insert(o.meta.key.clone(), Arc::new(o)).is_some(),
            Object::HostnameGrant(o) => self.hostname_grants.insert(o.meta.key.name.clone(), Arc::new(o)).is_some(),
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.classes.len()
            + self.gateways.len()
            + self.listener_sets.len()
            + self.routes.len()
            + self.grants.len()
            + self.namespaces.len()
            + self.services.len()
            + self.secrets.len()
            + self.config_maps.len()
            + self.dns_policies.len()
            + self.tls_policies.len()
            + self.hostname_grants.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes an object; returns whether it existed.
    pub fn remove(&mut self, object: &ObjectRef) -> bool {
        let key = &object.key;
        match object.kind {
            Kind::GatewayClass => self.classes.remove(&key.name).is_some(),
            Kind::Gateway => self.gateways.remove(key).is_some(),
            Kind::ListenerSet | Kind::XListenerSet => self.listener_sets.remove(object).is_some(),
            Kind::ReferenceGrant => self.grants.remove(key).is_some(),
            Kind::Namespace => self.namespaces.remove(&key.name).is_some(),
            Kind::Service => self.services.remove(key).is_some(),
            Kind::Secret => self.secrets.remove(key).is_some(),
            Kind::ConfigMap => self.config_maps.remove(key).is_some(),
            Kind::DnsPolicy => self.dns_policies.remove(key).is_some(),
            Kind::TlsPolicy => self.tls_policies.remove(key).is_some(),
            Kind::HostnameGrant => self.hostname_grants.remove(&key.name).is_some(),
            Kind::Route(_) => self.routes.remove(object).is_some(),
        }
    }

    /// The metadata of an object, if it is there.
    pub fn meta(&self, object: &ObjectRef) -> Option<&Meta> {
        let key = &object.key;
        Some(match object.kind {
            Kind::GatewayClass => &self.classes.get(&key.name)?.meta,
            Kind::Gateway => &self.gateways.get(key)?.meta,
            Kind::ListenerSet | Kind::XListenerSet => &self.listener_sets.get(object)?.meta,
            Kind::ReferenceGrant => &self.grants.get(key)?.meta,
            Kind::Namespace => &self.namespaces.get(&key.name)?.meta,
            Kind::Service => &self.services.get(key)?.meta,
            Kind::Secret => &self.secrets.get(key)?.meta,
            Kind::ConfigMap => &self.config_maps.get(key)?.meta,
            Kind::DnsPolicy => &self.dns_policies.get(key)?.meta,
            Kind::TlsPolicy => &self.tls_policies.get(key)?.meta,
            Kind::HostnameGrant => &self.hostname_grants.get(&key.name)?.meta,
            Kind::Route(_) => &self.routes.get(object)?.meta,
        })
    }

    /// The metadata of all objects, in the order of kinds.
    pub fn metas(&self) -> impl Iterator<Item = (ObjectRef, &Meta)> {
        let named = |kind: Kind, meta: &Meta| ObjectRef { kind, key: meta.key.clone() };
        let classes = self.classes.values().map(move |o| (named(Kind::GatewayClass, &o.meta), &o.meta));
        let gateways = self.gateways.values().map(move |o| (named(Kind::Gateway, &o.meta), &o.meta));
        let sets = self.listener_sets.iter().map(|(object, o)| (object.clone(), &o.meta));
        let routes = self.routes.iter().map(|(object, o)| (object.clone(), &o.meta));
        let grants = self.grants.values().map(move |o| (named(Kind::ReferenceGrant, &o.meta), &o.meta));
        let namespaces = self.namespaces.values().map(move |o| (named(Kind::Namespace, &o.meta), &o.meta));
        let services = self.services.values().map(move |o| (named(Kind::Service, &o.meta), &o.meta));
        let secrets = self.secrets.values().map(move |o| (named(Kind::Secret, &o.meta), &o.meta));
        let maps = self.config_maps.values().map(move |o| (named(Kind::ConfigMap, &o.meta), &o.meta));
        let dns = self.dns_policies.values().map(move |o| (named(Kind::DnsPolicy, &o.meta), &o.meta));
        let tls = self.tls_policies.values().map(move |o| (named(Kind::TlsPolicy, &o.meta), &o.meta));
        let owned = self.hostname_grants.values().map(move |o| (named(Kind::HostnameGrant, &o.meta), &o.meta));
        let first = classes.chain(gateways).chain(sets).chain(routes);
        let second = grants.chain(namespaces).chain(services).chain(secrets).chain(maps);
        first.chain(second).chain(dns).chain(tls).chain(owned)
    }

    /// Records whether a kind could be listed.
    pub fn set_visibility(&mut self, kind: Kind, visibility: Visibility) {
        match visibility {
            Visibility::Complete => _ = self.visibility.remove(&kind),
            hidden @ Visibility::NotVisible(_) => _ = self.visibility.insert(kind, hidden),
        }
    }

    /// Whether a kind could be listed.
    pub fn visibility(&self, kind: Kind) -> &Visibility {
        self.visibility.get(&kind).unwrap_or(&Visibility::Complete)
    }

    /// The Services of a namespace.
    pub fn services_in<'a>(&'a self, namespace: &'a Str) -> impl Iterator<Item = &'a Key> {
        in_namespace(&self.services, namespace)
    }

    /// The Secrets of a namespace.
    pub fn secrets_in<'a>(&'a self, namespace: &'a Str) -> impl Iterator<Item = &'a Key> {
        in_namespace(&self.secrets, namespace)
    }

    /// The value of a namespace's label. `kubernetes.io/metadata.name` is set for every namespace, even one that is
    /// absent.
    pub fn namespace_label<'a>(&'a self, namespace: &'a Str, label: &str) -> Option<&'a Str> {
        match label == NAME_LABEL {
            true => Some(namespace),
            false => self.namespaces.get(namespace)?.meta.labels.get(label),
        }
    }

    /// Whether a selector matches the labels of a namespace.
    pub(crate) fn is_namespace_selected(&self, namespace: &Str, selector: &Selector) -> bool {
        selector.matches_with(|label| self.namespace_label(namespace, label))
    }
}

/// The keys of one namespace. A range query: keys are ordered as the text `namespace/name`.
fn in_namespace<'a, T>(objects: &'a BTreeMap<Key, T>, namespace: &'a Str) -> impl Iterator<Item = &'a Key> {
    let from = Key::new(namespace.clone(), "");
    objects.range(from..).map(|(key, _)| key).take_while(move |key| key.namespace == *namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_services_of_one_namespace() {
        let service = |namespace: &str, name: &str| {
            Object::Service(Service { meta: Meta::named(namespace, name), ports: Vec::new() })
        };
        let names = [("a", "x"), ("a-b", "x"), ("a", "b"), ("a.b", "c"), ("ab", "x"), ("", "x")];
        let snapshot = Snapshot::of(names.map(|(namespace, name)| service(namespace, name)));
        let found = |namespace: &str| snapshot.services_in(&namespace.into()).map(Key::to_string).collect::<Vec<_>>();
        assert_eq!(found("a"), ["a/b", "a/x"]);
        assert_eq!(found("a-b"), ["a-b/x"]);
        assert!(found("c").is_empty());
    }
}
