//! What a change of an object makes due. An object that is the same as before makes nothing due.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::due::Due;
use super::links::RouteId;
use super::{Engine, Links};
use crate::attachment::{backends, listener_sets};
use crate::model::*;
use crate::snapshot::{Change, Object};

impl Engine {
    /// Takes one change into the snapshot, and marks what depends on it.
    pub(super) fn take(&mut self, change: Change, due: &mut Due) {
        match change {
            Change::Upsert(Object::Route(route)) => {
                if !self.take_route(route, due) {
                    return;
                }
            }
            Change::Upsert(object) => {
                let key = object.object();
                if self.is_known(&object) {
                    return;
                }
                self.leave(&key, due);
                self.world.snapshot.upsert(object);
                self.enter(&key, due);
            }
            Change::Delete(object) => {
                self.leave(&object, due);
                if !self.world.snapshot.remove(&object) {
                    return;
                }
                self.enter(&object, due);
            }
            Change::Sight(kind, visibility) => {
                if *self.world.snapshot.visibility(kind) == visibility {
                    return;
                }
                self.world.snapshot.set_visibility(kind, visibility);
                self.mark_everything(due);
            }
        }
        due.is_anything_changed = true;
    }

    /// Takes a route in, new or changed; says whether it is another than before.
    fn take_route(&mut self, route: Route, due: &mut Due) -> bool {
        if self.is_known_route(&route) {
            return false;
        }
        let route = Arc::new(route);
        let known = self.world.snapshot.routes.insert(route.clone());
        let id = self.links.enter(&route);
        // Mostly it names what it named before.
        if !known.as_ref().is_some_and(|known| known.parents == route.parents && known.rules == route.rules) {
            known.iter().for_each(|known| link_route(&mut self.links, id, known, false));
            link_route(&mut self.links, id, &route, true);
        }
        due.routes.insert(id);
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
        }
    }

    fn is_known_route(&self, route: &Route) -> bool {
        let known = self.links.id(&route.object()).and_then(|id| self.links.route(id));
        known.is_some_and(|known| **known == *route)
    }

    /// Marks and unlinks what an object was, before it goes or is replaced.
    fn leave(&mut self, object: &ObjectRef, due: &mut Due) {
        match object.kind {
            Kind::ListenerSet | Kind::XListenerSet => {
                let Some(set) = self.world.snapshot.listener_sets.get(object).cloned() else { return };
                let gateway = listener_sets::named_gateway(&set);
                let named = materials_of(object.namespace(), &set.listeners);
                named.for_each(|material| self.links.materials.take(&material, object));
                if let Some(known) = self.links.sets.get_mut(&gateway) {
                    known.remove(object);
                }
                due.groups.insert(gateway);
            }
            Kind::Gateway => {
                let gateway = self.world.snapshot.gateways.get(&object.key).cloned();
                let named = gateway.iter().flat_map(|gateway| materials_around(gateway));
                named.for_each(|material| self.links.materials.take(&material, object));
            }
            _ if RouteKind::of(object.kind).is_some() => {
                let Some(route) = self.world.snapshot.routes.get(object).cloned() else { return };
                if let Some(id) = self.links.leave(&route) {
                    link_route(&mut self.links, id, &route, false);
                    due.routes.insert(id);
                }
            }
            _ => {}
        }
    }

    /// Marks and links what an object is now, or that it is gone.
    fn enter(&mut self, object: &ObjectRef, due: &mut Due) {
        let key = &object.key;
        match object.kind {
            Kind::GatewayClass => self.mark_class(&key.name, due),
            Kind::Gateway => {
                let gateway = self.world.snapshot.gateways.get(key).cloned();
                let named = gateway.iter().flat_map(|gateway| materials_around(gateway));
                named.for_each(|material| self.links.materials.add(material, object));
                due.groups.insert(key.clone());
            }
            Kind::ListenerSet | Kind::XListenerSet => self.enter_set(object, due),
            Kind::ReferenceGrant => {
                self.grants.refresh(&self.world.snapshot, &key.namespace);
                self.mark_granted(&key.namespace, due);
            }
            Kind::Namespace => self.mark_namespace(&key.name, due),
            Kind::Service => due.routes.extend(self.links.services.of(key)),
            Kind::Secret | Kind::ConfigMap => {
                let owners: Vec<ObjectRef> = self.links.materials.of(key).cloned().collect();
                self.mark_thorough(&owners, due);
            }
            Kind::DnsPolicy | Kind::TlsPolicy => due.policies = true,
            Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute | Kind::TcpRoute | Kind::UdpRoute => {
                // What is there now was taken in, and whatever it concerns was marked when it left.
            }
        }
    }

    fn enter_set(&mut self, object: &ObjectRef, due: &mut Due) {
        if let Some(set) = self.world.snapshot.listener_sets.get(object).cloned() {
            let gateway = listener_sets::named_gateway(&set);
            let named = materials_of(object.namespace(), &set.listeners);
            named.for_each(|material| self.links.materials.add(material, object));
            self.links.sets.entry(gateway.clone()).or_default().insert(object.clone());
            due.groups.insert(gateway);
        } else {
            due.gone_sets.insert(object.clone());
        }
    }

    fn mark_class(&self, class: &Str, due: &mut Due) {
        let of_class = self.world.snapshot.gateways.iter().filter(|(_, gateway)| gateway.class == *class);
        due.groups.extend(of_class.map(|(key, _)| key.clone()));
    }

    /// Whoever refers into a namespace.
    fn mark_granted(&self, namespace: &Str, due: &mut Due) {
        let owners: Vec<ObjectRef> = self.links.materials.in_namespace(namespace).cloned().collect();
        self.mark_thorough(&owners, due);
        due.routes.extend(self.links.foreign.of(namespace));
    }

    /// Gateways whose listeners, or those of sets around them, refer to something that differs.
    fn mark_thorough(&self, owners: &[ObjectRef], due: &mut Due) {
        for owner in owners {
            let gateway = match owner.kind {
                Kind::Gateway => Some(owner.key.clone()),
                _ => self.world.snapshot.listener_sets.get(owner).map(|set| listener_sets::named_gateway(set)),
            };
            due.groups.extend(gateway.clone());
            due.thorough.extend(gateway);
        }
    }

    /// Whoever lives in a namespace.
    fn mark_namespace(&self, namespace: &Str, due: &mut Due) {
        for kind in [Kind::ListenerSet, Kind::XListenerSet] {
            let from = ObjectRef::new(kind, namespace.clone(), "");
            let here = self.world.snapshot.listener_sets.range(from..);
            let here = here.take_while(|(object, _)| object.kind == kind && object.namespace() == namespace);
            due.groups.extend(here.map(|(_, set)| listener_sets::named_gateway(set)));
        }
        for kind in RouteKind::ALL.map(RouteKind::kind) {
            let from = ObjectRef::new(kind, namespace.clone(), "");
            let here = self.world.snapshot.routes.values_from(&from);
            let here = here.take_while(|o| o.kind.kind() == kind && o.meta.key.namespace == *namespace);
            due.routes.extend(here.filter_map(|route| self.links.id(&route.object())));
        }
    }

    fn mark_everything(&self, due: &mut Due) {
        due.policies = true;
        due.groups.extend(self.world.snapshot.gateways.keys().cloned());
        due.groups.extend(self.links.sets.keys().cloned());
        due.thorough.extend(due.groups.iter().cloned());
        due.halls.extend(self.halls.numbers());
        due.routes.extend(self.links.all());
    }
}

/// Files a route under what its spec names, or takes it out there.
fn link_route(links: &mut Links, id: RouteId, route: &Route, is_there: bool) {
    let own = &route.meta.key.namespace;
    let parents: BTreeSet<&Str> = route.parents.iter().map(|parent| &parent.target.name).collect();
    let backends = route.rules.iter().flat_map(backends::backends).map(|(_, backend)| &backend.target);
    let keys: BTreeSet<Key> =
        backends.map(|target| Key::new(target.namespace_or(own).clone(), target.name.clone())).collect();
    for name in parents {
        if is_there { links.parents.add(name, id) } else { links.parents.take(name, id) }
    }
    for key in &keys {
        if is_there {
            links.services.add(key, id)
        } else {
            links.services.take(key, id)
        }
        if key.namespace == *own {
            continue;
        }
        if is_there { links.foreign.add(&key.namespace, id) } else { links.foreign.take(&key.namespace, id) }
    }
}

/// The Secrets that listeners of an owner name.
fn materials_of<'a>(own: &'a Str, listeners: &'a [Listener]) -> impl Iterator<Item = Key> + 'a {
    let references = listeners.iter().filter_map(|listener| listener.tls.as_ref()).flat_map(|tls| &tls.certificates);
    references.map(move |target| Key::new(target.namespace_or(own).clone(), target.name.clone()))
}

/// The same of a Gateway, with the ConfigMaps that it names for all listeners around it.
fn materials_around(gateway: &Gateway) -> impl Iterator<Item = Key> {
    let own = &gateway.meta.key.namespace;
    let per_port = gateway.frontend.per_port.iter().filter_map(|(_, validation)| validation.as_ref());
    let all = gateway.frontend.default.iter().chain(per_port).flat_map(|validation| &validation.ca_certificates);
    let authorities = all.map(move |target| Key::new(target.namespace_or(own).clone(), target.name.clone()));
    materials_of(own, &gateway.listeners).chain(authorities)
}
