//! Gateways and ListenerSets as external-dns sees them: filtered, with the targets that they add to a record.
//!
//! An object that a filter excludes is treated as absent; only the explanation distinguishes the two.

use std::collections::HashMap;
use std::sync::Arc;

use super::admission;
use super::hosts;
use crate::attachment::ListenerKey;
use crate::model::{Gateway, Key, Kind, Listener, ListenerSet, ObjectRef, Str, condition};
use crate::names::OverlapIndex;
use crate::publication::annotations::Annotations;
use crate::publication::settings::{PublicationSettings, StatusMode};
use crate::publication::targets::{AddressFields, gateway_addresses};
use crate::publication::{Desired, PassedOver, filters};
use crate::reason::{self, Reason};
use crate::snapshot::Snapshot;

/// Every parent that routes may have, by kind and name.
#[derive(Default)]
pub(super) struct Parents<'a> {
    gateways: HashMap<&'a Key, RouteParent<'a>>,
    sets: HashMap<&'a Key, RouteParent<'a>>,
}

/// A Gateway or ListenerSet with its listeners.
pub(super) struct RouteParent<'a> {
    /// Which object it is.
    pub(super) object: ObjectRef,
    /// The name of the Gateway it is or belongs to.
    pub(super) gateway_name: &'a Str,
    /// That Gateway, where it is there.
    pub(super) gateway: Option<&'a Gateway>,
    /// Why no route can use it, if none can.
    pub(super) detached: Option<Detached>,
    /// Its listeners, in order.
    pub(super) listeners: Vec<ParentListener<'a>>,
    /// Which of them has a name; the last one where two have the same.
    pub(super) sections: HashMap<&'a str, usize>,
    /// Their hostnames.
    pub(super) index: OverlapIndex,
    /// Targets of its `target` annotation, or of its Gateway's.
    pub(super) targets: Vec<Str>,
    /// Addresses of the Gateway.
    pub(super) addresses: Vec<Str>,
}

/// A listener.
pub(super) struct ParentListener<'a> {
    /// Its spec.
    pub(super) spec: &'a Listener,
    /// Its hostname in canonical form, empty if unset; `None` if the field is not a valid hostname.
    pub(super) host: Option<Str>,
    /// Why no route can use it, if none can.
    pub(super) detached: Option<Detached>,
}

/// Why a ListenerSet or one of its listeners accepts no routes.
#[derive(Clone, Debug)]
pub(super) struct Detached {
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) object: ObjectRef,
    pub(super) field: &'static str,
}

impl<'a> Parents<'a> {
    /// Reads all Gateways, and ListenerSets where the settings ask for them.
    pub(super) fn of(snapshot: &'a Snapshot, settings: &PublicationSettings, desired: &mut Desired) -> Self {
        let mut parents = Parents::default();
        for gateway in snapshot.gateways.values() {
            parents.add_gateway(gateway, settings, desired);
        }
        if settings.gateway_listener_sets {
            let sets = snapshot.listener_sets.values().filter(|set| set.kind == Kind::ListenerSet);
            sets.for_each(|set| parents.add_set(set, snapshot, settings, desired));
        }
        parents
    }

    /// A parent.
    pub(super) fn find(&self, kind: Kind, key: &Key) -> Option<&RouteParent<'a>> {
        if kind == Kind::Gateway { self.gateways.get(key) } else { self.sets.get(key) }
    }

    fn add_gateway(&mut self, gateway: &'a Arc<Gateway>, settings: &PublicationSettings, desired: &mut Desired) {
        let object = ObjectRef { kind: Kind::Gateway, key: gateway.meta.key.clone() };
        let annotations = Annotations::of(&gateway.meta, &settings.annotation_prefixes);
        if let Some(because) = filters::gateway(gateway, &annotations, settings) {
            return desired.passed_over.push(PassedOver { object, because });
        }
        annotations.report(&object, &mut desired.diagnostics);
        let listeners = gateway.listeners.iter().map(|spec| ParentListener::new(spec, None)).collect();
        let mut parent = RouteParent::new(object, &gateway.meta.key.name, listeners);
        parent.gateway = Some(gateway);
        parent.targets = annotations.targets();
        let addresses = gateway_addresses(gateway, AddressFields::Status, settings);
        parent.addresses = addresses.iter().map(|address| address.value.clone()).collect();
        self.gateways.insert(&gateway.meta.key, parent);
    }

    fn add_set(
        &mut self,
        set: &'a Arc<ListenerSet>,
        snapshot: &'a Snapshot,
        settings: &PublicationSettings,
        desired: &mut Desired,
    ) {
        let annotations = Annotations::of(&set.meta, &settings.annotation_prefixes);
        if let Some(because) = filters::listener_set(set, &annotations, settings) {
            return desired.passed_over.push(PassedOver { object: set.object(), because });
        }
        annotations.report(&set.object(), &mut desired.diagnostics);
        let parent = self.joined(set, annotations.targets(), snapshot, settings.status != StatusMode::Compute);
        self.sets.insert(&set.meta.key, parent);
    }

    /// A ListenerSet with the targets and addresses of its Gateway.
    fn joined(
        &self,
        set: &'a ListenerSet,
        targets: Vec<Str>,
        snapshot: &Snapshot,
        trusts_status: bool,
    ) -> RouteParent<'a> {
        let key = gateway_of(set);
        let lender = self.gateways.get(&key);
        let gateway = lender.and_then(|lender| lender.gateway);
        let detached = detached_set(set, &key, gateway, snapshot, trusts_status);
        let listener = |spec: &'a Listener| {
            let own = detached.is_none() && trusts_status;
            ParentListener::new(
                spec,
                detached.clone().or_else(|| if own { detached_listener(set, spec) } else { None }),
            )
        };
        let listeners = set.listeners.iter().map(listener).collect();
        let mut parent = RouteParent::new(set.object(), &set.parent.name, listeners);
        parent.gateway = gateway;
        parent.detached = detached;
        if let Some(lender) = lender {
            parent.targets = if targets.is_empty() { lender.targets.clone() } else { targets };
            parent.addresses = lender.addresses.clone();
        }
        parent
    }
}

impl<'a> RouteParent<'a> {
    fn new(object: ObjectRef, gateway_name: &'a Str, listeners: Vec<ParentListener<'a>>) -> Self {
        RouteParent {
            object,
            gateway_name,
            gateway: None,
            detached: None,
            sections: listeners.iter().enumerate().map(|(i, listener)| (&*listener.spec.name, i)).collect(),
            index: OverlapIndex::new(listeners.iter().map(|listener| listener.host.clone())),
            listeners,
            targets: Vec::new(),
            addresses: Vec::new(),
        }
    }

    /// The name of one of its listeners.
    pub(super) fn listener_key(&self, listener: usize) -> ListenerKey {
        ListenerKey { owner: self.object.clone(), section: self.listeners[listener].spec.name.clone() }
    }
}

impl<'a> ParentListener<'a> {
    fn new(spec: &'a Listener, detached: Option<Detached>) -> Self {
        let text = spec.hostname.as_ref().map_or("", |hostname| hostname.text());
        ParentListener { spec, host: hosts::canonical(text).map(Str::from), detached }
    }
}

/// The Gateway that a ListenerSet names; kind and group of the reference are ignored.
fn gateway_of(set: &ListenerSet) -> Key {
    let namespace = set.parent.namespace.as_ref().filter(|namespace| !namespace.is_empty());
    Key { namespace: namespace.unwrap_or(&set.meta.key.namespace).clone(), name: set.parent.name.clone() }
}

fn detached_set(
    set: &ListenerSet,
    key: &Key,
    gateway: Option<&Gateway>,
    snapshot: &Snapshot,
    trusts_status: bool,
) -> Option<Detached> {
    let own = |reason, message, field| Some(Detached { reason, message, object: set.object(), field });
    let Some(gateway) = gateway else {
        let message = format!("{} joins Gateway/{key}, which is not there or left out by a filter", set.object());
        return own(reason::LISTENER_SET_PARENT_MISSING, message, "spec.parentRef");
    };
    let namespace = &set.meta.key.namespace;
    if !admission::admits(&gateway.allowed_listeners, &gateway.meta.key.namespace, namespace, snapshot) {
        let message = format!("Gateway/{key} does not admit ListenerSets from namespace `{namespace}`");
        let object = ObjectRef { kind: Kind::Gateway, key: key.clone() };
        let field = "spec.allowedListeners.namespaces";
        return Some(Detached { reason: reason::LISTENER_SET_NOT_ALLOWED, message, object, field });
    }
    if trusts_status && !condition(&set.conditions, "Accepted").is_some_and(|c| c.is_true()) {
        let message = format!("the status of {} does not say that it is accepted", set.object());
        return own(reason::LISTENER_SET_NOT_ATTACHED, message, "status.conditions");
    }
    None
}

fn detached_listener(set: &ListenerSet, listener: &Listener) -> Option<Detached> {
    let status = set.listener_status.iter().find(|status| status.name == listener.name);
    if status.and_then(|status| condition(&status.conditions, "Accepted")).is_some_and(|c| c.is_true()) {
        return None;
    }
    let message = format!("the status of {} does not say that listener `{}` is accepted", set.object(), listener.name);
    Some(Detached { reason: reason::LISTENER_REFUSED, message, object: set.object(), field: "status.listeners" })
}
