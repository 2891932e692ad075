//! Which Gateways, ListenerSets and routes the settings let in.

use std::collections::BTreeMap;

use super::Context;
use crate::desired::annotations::Annotations;
use crate::desired::{Desired, PassedOver, filters};
use crate::model::{Key, Kind, ObjectRef, Route, Str};
use crate::topology::{ListenerState, Owner};

/// The label of routes that cert-manager makes for a moment (D14).
const SOLVER_LABEL: &str = "acme.cert-manager.io/http01-solver";

/// What the settings leave out, and the targets that Gateways and ListenerSets name.
pub(super) struct Selection {
    passed_over: BTreeMap<ObjectRef, String>,
    targets: BTreeMap<ObjectRef, Told>,
}

/// The targets that an annotation names, and its key.
struct Told {
    targets: Vec<Str>,
    key: Option<Str>,
}

impl Selection {
    /// Asks the filters about every Gateway and ListenerSet.
    pub(super) fn of(context: Context<'_>, desired: &mut Desired) -> Self {
        let mut selection = Selection { passed_over: BTreeMap::new(), targets: BTreeMap::new() };
        let settings = context.settings;
        for gateway in context.snapshot.gateways.values() {
            let annotations = Annotations::of(&gateway.meta, &settings.annotation_prefixes);
            let refusal = filters::gateway(gateway, &annotations, settings)
                .or_else(|| filters::gateway_name(&gateway.meta.key.name, settings));
            selection.add(gateway_object(&gateway.meta.key), &annotations, refusal, desired);
        }
        for set in context.snapshot.listener_sets.values() {
            let annotations = Annotations::of(&set.meta, &settings.annotation_prefixes);
            let refusal = filters::listener_set(set, &annotations, settings);
            selection.add(set.object(), &annotations, refusal, desired);
        }
        selection
    }

    /// Why an object is left out, if it is.
    pub(super) fn refusal(&self, object: &ObjectRef) -> Option<&String> {
        self.passed_over.get(object)
    }

    /// Why a listener is left out, if it is: its Gateway or its ListenerSet is.
    pub(super) fn listener_refusal(&self, listener: &ListenerState) -> Option<(ObjectRef, &String)> {
        let gateway = listener.gateway.as_ref().map(gateway_object);
        let found = |object: ObjectRef| self.refusal(&object).map(|because| (object, because));
        gateway.and_then(found).or_else(|| found(listener.owner.object()))
    }

    /// The targets that a listener's owner names: a ListenerSet's own, else its Gateway's.
    pub(super) fn targets(&self, listener: &ListenerState) -> &[Str] {
        self.targets_of(&self.teller(listener))
    }

    /// Who names them.
    pub(super) fn teller(&self, listener: &ListenerState) -> ObjectRef {
        match (&listener.owner, &listener.gateway) {
            (Owner::Set(set), Some(gateway)) if self.targets_of(&set.object()).is_empty() => gateway_object(gateway),
            (owner, _) => owner.object(),
        }
    }

    /// The annotation in which an object names targets.
    pub(super) fn target_key(&self, object: &ObjectRef) -> Option<&Str> {
        self.targets.get(object)?.key.as_ref()
    }

    fn targets_of(&self, object: &ObjectRef) -> &[Str] {
        self.targets.get(object).map(|told| &told.targets[..]).unwrap_or_default()
    }

    fn add(&mut self, object: ObjectRef, annotations: &Annotations, refusal: Option<String>, desired: &mut Desired) {
        match refusal {
            Some(because) => {
                desired.passed_over.push(PassedOver { object: object.clone(), because: because.clone() });
                self.passed_over.insert(object, because);
            }
            None => {
                annotations.report(&object, &mut desired.diagnostics);
                let key = annotations.entry("target").map(|entry| entry.key.clone());
                self.targets.insert(object, Told { targets: annotations.targets(), key });
            }
        }
    }
}

/// Why a route is left out, if it is.
pub(super) fn route_refusal(context: Context<'_>, route: &Route, annotations: &Annotations) -> Option<String> {
    let is_solver = route.meta.labels.get(SOLVER_LABEL).is_some_and(|value| &**value == "true");
    let solver = is_solver.then(|| "it is a challenge of cert-manager and will be gone soon".to_owned());
    solver.or_else(|| filters::route(route, annotations, context.settings))
}

/// A Gateway by name.
pub(super) fn gateway_object(key: &Key) -> ObjectRef {
    ObjectRef { kind: Kind::Gateway, key: key.clone() }
}
