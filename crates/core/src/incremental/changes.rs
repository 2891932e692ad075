//! Which results a changed object makes dirty. An object equal to its previous version makes nothing dirty.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Engine;
use super::dirty::Dirty;
use super::reverse_indexes::{ReverseIndexes, RouteId};
use crate::attachment::{backends, listener_sets};
use crate::model::*;
use crate::names::Hostname;
use crate::snapshot::{Change, Object};

impl Engine {
    /// Applies one change to the snapshot, and marks what depends on it.
    pub(super) fn take(&mut self, change: Change, dirty: &mut Dirty) {
        match change {
            Change::Upsert(Object::Route(route)) => {
                if !self.take_route(route, dirty) {
                    return;
                }
            }
            Change::Upsert(object) => {
                let key = object.object();
                if self.is_known(&object) {
                    return;
                }
                self.unlink(&key, dirty);
                self.world.snapshot.upsert(object);
                self.link(&key, dirty);
            }
            Change::Delete(object) => {
                self.unlink(&object, dirty);
                if !self.world.snapshot.remove(&object) {
                    return;
                }
                self.link(&object, dirty);
            }
            Change::Sight(kind, visibility) => {
                if *self.world.snapshot.visibility(kind) == visibility {
                    return;
                }
                self.world.snapshot.set_visibility(kind, visibility);
                self.mark_everything(dirty);
                self.mark_observed(dirty);
                self.mark_grants(dirty);
            }
        }
        dirty.is_anything_changed = true;
    }

    /// Adds or replaces a route; returns whether it differs from its previous version.
    fn take_route(&mut self, route: Route, dirty: &mut Dirty) -> bool {
        if self.is_known_route(&route) {
            return false;
        }
        let route = Arc::new(route);
        let known = self.world.snapshot.routes.insert(route.object(), route.clone());
        let id = self.indexes.routes.upsert(&route);
        known.iter().for_each(|known| index_route(&mut self.indexes, id, known, false));
        index_route(&mut self.indexes, id, &route, true);
        dirty.routes.insert(id);
        true
    }

    fn is_known(&self, object: &Object) -> bool {
        let snapshot = &self.world.snapshot;
        let key = &object.meta().key;
        match object {
            Object::GatewayClass(o) => snapshot.classes.get(&key.name).is_some_and(|known| **known == *o),
            Object::Gateway(o) => snapshot.gateways.get(key).is_some_and(|known| **known == *o),
            Object::ListenerSet(o) => snapshot.listener_sets.get(&o.object()).is_some_and(|known| **known == *o),
            Object::Route(o) => self.is_known_route(o),
            Object::ReferenceGrant(o) => snapshot.grants.get(key).is_some_and(|known| **known == *o),
            Object::Namespace(o) => snapshot.namespaces.get(&key.name).is_some_and(|known| **known == *o),
            Object::Service(o) => snapshot.services.get(key).is_some_and(|known| **known == *o),
            Object::Secret(o) => snapshot.secrets.get(key).is_some_and(|known| **known == *o),
            Object::ConfigMap(o) => snapshot.config_maps.get(key).is_some_and(|known| **known == *o),
            Object::DnsPolicy(o) => snapshot.dns_policies.get(key).is_some_and(|known| **known == *o),
            Object::TlsPolicy(o) => snapshot.tls_policies.get(key).is_some_and(|known| **known == *o),
            Object::HostnameGrant(o) => snapshot.hostname_grants.get(&key.name).is_some_and(|known| **known == *o),
        }
    }

    fn is_known_route(&self, route: &Route) -> bool {
        self.world.snapshot.routes.get(&route.object()).is_some_and(|known| **known == *route)
    }

    /// Marks the dependents of an object's previous version and removes it from the indexes.
    fn unlink(&mut self, object: &ObjectRef, dirty: &mut Dirty) {
        match object.kind {
            Kind::ListenerSet | Kind::XListenerSet => {
                let Some(set) = self.world.snapshot.listener_sets.get(object).cloned() else { return };
                let gateway = listener_sets::named_gateway(&set);
                let named = tls_objects_of(object.namespace(), &set.listeners);
                named.for_each(|object_named| self.indexes.tls_objects.remove(&object_named, object));
                if let Some(known) = self.indexes.sets.get_mut(&gateway) {
                    known.remove(object);
                }
                dirty.gateways.insert(gateway);
            }
            Kind::Gateway => {
                let gateway = self.world.snapshot.gateways.get(&object.key).cloned();
                let named = gateway.iter().flat_map(|gateway| tls_objects_of_gateway(gateway));
                named.for_each(|object_named| self.indexes.tls_objects.remove(&object_named, object));
            }
            Kind::Route(_) => {
                let Some(route) = self.world.snapshot.routes.get(object).cloned() else { return };
                if let Some(id) = self.indexes.routes.delete(object) {
                    index_route(&mut self.indexes, id, &route, false);
                    dirty.routes.insert(id);
                }
            }
            _ => {}
        }
    }

    /// Marks the dependents of an object's new version, or of its absence, and adds it to the indexes.
    fn link(&mut self, object: &ObjectRef, dirty: &mut Dirty) {
        let key = &object.key;
        match object.kind {
            Kind::GatewayClass => self.mark_class(&key.name, dirty),
            Kind::Gateway => {
                let gateway = self.world.snapshot.gateways.get(key).cloned();
                let named = gateway.iter().flat_map(|gateway| tls_objects_of_gateway(gateway));
                named.for_each(|object_named| self.indexes.tls_objects.add(object_named, object));
                dirty.gateways.insert(key.clone());
            }
            Kind::ListenerSet | Kind::XListenerSet => self.link_set(object, dirty),
            Kind::ReferenceGrant => {
                self.grants.refresh(&self.world.snapshot, &key.namespace);
                self.mark_granted(&key.namespace, dirty);
            }
            Kind::Namespace => {
                self.mark_namespace(&key.name, dirty);
                self.mark_selected(&key.name, dirty);
            }
            Kind::Service => dirty.routes.extend(self.indexes.services.of(key)),
            Kind::Secret | Kind::ConfigMap => {
                let owners: Vec<ObjectRef> = self.indexes.tls_objects.of(key).cloned().collect();
                self.mark_owners(&owners, dirty);
            }
            Kind::DnsPolicy | Kind::TlsPolicy => dirty.policies = true,
            Kind::HostnameGrant => dirty.grants = true,
            Kind::Route(_) => {
                // `take_route` has indexed the route, and `unlink` has marked its dependents.
            }
        }
    }

    fn link_set(&mut self, object: &ObjectRef, dirty: &mut Dirty) {
        if let Some(set) = self.world.snapshot.listener_sets.get(object).cloned() {
            let gateway = listener_sets::named_gateway(&set);
            let named = tls_objects_of(object.namespace(), &set.listeners);
            named.for_each(|object_named| self.indexes.tls_objects.add(object_named, object));
            self.indexes.sets.entry(gateway.clone()).or_default().insert(object.clone());
            dirty.gateways.insert(gateway);
        } else {
            dirty.deleted_sets.insert(object.clone());
        }
    }

    fn mark_class(&self, class: &Str, dirty: &mut Dirty) {
        let of_class = self.world.snapshot.gateways.iter().filter(|(_, gateway)| gateway.class == *class);
        for (key, _) in of_class {
            dirty.gateways.insert(key.clone());
            // The status of the class is part of the contexts.
            let object = ObjectRef { kind: Kind::Gateway, key: key.clone() };
            dirty.contexts.extend(self.group_numbers.number(&object));
        }
    }

    /// Marks everything that refers into a namespace.
    fn mark_granted(&self, namespace: &Str, dirty: &mut Dirty) {
        let owners: Vec<ObjectRef> = self.indexes.tls_objects.in_namespace(namespace).cloned().collect();
        self.mark_owners(&owners, dirty);
        // A reference that stays refused has a diagnostic in the contexts, which names a grant that nearly permits it.
        let gateways = owners.iter().filter_map(|owner| self.gateway_of(owner));
        let gateways = gateways.map(|key| ObjectRef { kind: Kind::Gateway, key });
        let groups = gateways.chain(owners.iter().cloned());
        dirty.contexts.extend(groups.filter_map(|object| self.group_numbers.number(&object)));
        dirty.routes.extend(self.indexes.other_namespaces.of(namespace));
    }

    /// Marks the Gateways of owners whose listeners refer to a changed object.
    fn mark_owners(&self, owners: &[ObjectRef], dirty: &mut Dirty) {
        dirty.gateways.extend(owners.iter().filter_map(|owner| self.gateway_of(owner)));
    }

    /// The Gateway that an owner of listeners is, or that it refers to.
    fn gateway_of(&self, owner: &ObjectRef) -> Option<Key> {
        match owner.kind {
            Kind::Gateway => Some(owner.key.clone()),
            _ => self.world.snapshot.listener_sets.get(owner).map(|set| listener_sets::named_gateway(set)),
        }
    }

    /// Marks everything in a namespace.
    fn mark_namespace(&self, namespace: &Str, dirty: &mut Dirty) {
        for kind in [Kind::ListenerSet, Kind::XListenerSet] {
            let from = ObjectRef::new(kind, namespace.clone(), "");
            let here = self.world.snapshot.listener_sets.range(from..);
            let here = here.take_while(|(object, _)| object.kind == kind && object.namespace() == namespace);
            dirty.gateways.extend(here.map(|(_, set)| listener_sets::named_gateway(set)));
        }
        for kind in RouteKind::ALL.map(Kind::Route) {
            let from = ObjectRef::new(kind, namespace.clone(), "");
            let here = self.world.snapshot.routes.range(from..);
            let here = here.take_while(|(object, _)| object.kind == kind && object.namespace() == namespace);
            dirty.routes.extend(here.filter_map(|(object, _)| self.indexes.routes.id(object)));
        }
    }

    /// Marks the names whose holder depends on which kinds are visible.
    fn mark_observed(&self, dirty: &mut Dirty) {
        let names = self.observed.names().filter_map(|name| Hostname::parse(name).ok());
        dirty.names.extend(names.filter(|name| self.indexes.names.of(name).next().is_some()));
    }

    fn mark_everything(&self, dirty: &mut Dirty) {
        dirty.policies = true;
        dirty.gateways.extend(self.world.snapshot.gateways.keys().cloned());
        dirty.gateways.extend(self.indexes.sets.keys().cloned());
        dirty.contexts.extend(self.group_numbers.numbers());
        dirty.routes.extend(self.indexes.routes.all());
    }
}

/// Adds a route to the indexes of what its spec refers to, or removes it.
fn index_route(indexes: &mut ReverseIndexes, id: RouteId, route: &Route, is_there: bool) {
    let own = &route.meta.key.namespace;
    let parents: BTreeSet<&Str> = route.parents.iter().map(|parent| &parent.target.name).collect();
    parents.into_iter().for_each(|name| indexes.parents.set(name, id, is_there));
    let backends = route.rules.iter().flat_map(backends::backends).map(|(_, backend)| &backend.target);
    let services: BTreeSet<Key> =
        backends.map(|target| Key::new(target.namespace_or(own).clone(), target.name.clone())).collect();
    for service in &services {
        indexes.services.set(service, id, is_there);
        if service.namespace != *own {
            indexes.other_namespaces.set(&service.namespace, id, is_there);
        }
    }
}

/// The Secrets that an owner's listeners refer to.
fn tls_objects_of<'a>(own: &'a Str, listeners: &'a [Listener]) -> impl Iterator<Item = Key> + 'a {
    let references = listeners.iter().filter_map(|listener| listener.tls.as_ref()).flat_map(|tls| &tls.certificates);
    references.map(move |target| Key::new(target.namespace_or(own).clone(), target.name.clone()))
}

/// The Secrets of a Gateway's own listeners, and the ConfigMaps that it sets for all merged listeners.
fn tls_objects_of_gateway(gateway: &Gateway) -> impl Iterator<Item = Key> {
    let own = &gateway.meta.key.namespace;
    let per_port = gateway.frontend.per_port.iter().filter_map(|(_, validation)| validation.as_ref());
    let all = gateway.frontend.default.iter().chain(per_port).flat_map(|validation| &validation.ca_certificates);
    let authorities = all.map(move |target| Key::new(target.namespace_or(own).clone(), target.name.clone()));
    tls_objects_of(own, &gateway.listeners).chain(authorities)
}
