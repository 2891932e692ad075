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
    targets: BTreeMap<ObjectRef, Vec<Str>>,
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
        let own = |object: &ObjectRef| self.targets.get(object).map(|targets| &targets[..]).unwrap_or_default();
        match (&listener.owner, &listener.gateway) {
            (Owner::Set(set), Some(gateway)) if own(&set.object()).is_empty() => own(&gateway_object(gateway)),
            (owner, _) => own(&owner.object()),
        }
    }

    fn add(&mut self, object: ObjectRef, annotations: &Annotations, refusal: Option<String>, desired: &mut Desired) {
        match refusal {
            Some(because) => {
                desired.passed_over.push(PassedOver { object: object.clone(), because: because.clone() });
                self.passed_over.insert(object, because);
            }
            None => {
                annotations.report(&object, &mut desired.diagnostics);
                self.targets.insert(object, annotations.targets());
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
