//! Which Gateways, ListenerSets and routes the settings let in.

use crate::diagnostic::Diagnostic;
use crate::model::{Gateway, Key, Kind, ListenerSet, ObjectRef, Route, Str};
use crate::publication::annotations::Annotations;
use crate::publication::settings::PublicationSettings;
use crate::publication::{PassedOver, filters};

/// The label of routes that cert-manager makes for a moment (D14).
const SOLVER_LABEL: &str = "acme.cert-manager.io/http01-solver";

/// A Gateway or ListenerSet as the settings see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelectedOwner {
    /// Which.
    pub(crate) object: ObjectRef,
    /// Why it is left out, if it is.
    pub(crate) left_out: Option<String>,
    /// The targets that its annotation names, empty ones too.
    pub(super) targets: Vec<Str>,
    /// The key of that annotation.
    pub(super) target_key: Option<Str>,
    /// What is odd about its annotations.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl SelectedOwner {
    /// A Gateway.
    pub(crate) fn gateway(gateway: &Gateway, settings: &PublicationSettings) -> Self {
        let annotations = Annotations::of(&gateway.meta, &settings.annotation_prefixes);
        let refusal = filters::gateway(gateway, &annotations, settings)
            .or_else(|| filters::gateway_name(&gateway.meta.key.name, settings));
        SelectedOwner::new(gateway_object(&gateway.meta.key), &annotations, refusal)
    }

    /// A ListenerSet.
    pub(crate) fn set(set: &ListenerSet, settings: &PublicationSettings) -> Self {
        let annotations = Annotations::of(&set.meta, &settings.annotation_prefixes);
        let refusal = filters::listener_set(set, &annotations, settings);
        SelectedOwner::new(set.object(), &annotations, refusal)
    }

    /// The object, where it is left out.
    pub(crate) fn passed_over(&self) -> Option<PassedOver> {
        let because = self.left_out.clone()?;
        Some(PassedOver { object: self.object.clone(), because })
    }

    fn new(object: ObjectRef, annotations: &Annotations<'_>, left_out: Option<String>) -> Self {
        let mut selected =
            SelectedOwner { object, left_out, targets: Vec::new(), target_key: None, diagnostics: Vec::new() };
        if selected.left_out.is_none() {
            annotations.report(&selected.object, &mut selected.diagnostics);
            selected.targets = annotations.targets();
            selected.target_key = annotations.entry("target").map(|entry| entry.key.clone());
        }
        selected
    }
}

/// Why a route is left out, if it is.
pub(super) fn route_refusal(
    settings: &PublicationSettings,
    route: &Route,
    annotations: &Annotations<'_>,
) -> Option<String> {
    let solver = is_solver(route).then(|| "it is a challenge of cert-manager and will be gone soon".to_owned());
    solver.or_else(|| filters::route(route, annotations, settings))
}

/// Whether a route is one that cert-manager makes for a moment.
pub(super) fn is_solver(route: &Route) -> bool {
    route.meta.labels.get(SOLVER_LABEL).is_some_and(|value| &**value == "true")
}

/// A Gateway by name.
pub(super) fn gateway_object(key: &Key) -> ObjectRef {
    ObjectRef { kind: Kind::Gateway, key: key.clone() }
}
