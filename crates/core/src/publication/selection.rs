//! Which Gateways, ListenerSets and routes the settings select. The consequences are not decided here.

use crate::diagnostic::{Diagnostic, FieldPath};
use crate::model::{Gateway, Key, Kind, ListenerSet, ObjectRef, Route, Str};
use crate::publication::annotations::{Annotations, annotation_field};
use crate::publication::settings::PublicationSettings;
use crate::publication::{PassedOver, filters};

/// The label of the temporary routes that cert-manager creates for HTTP-01 challenges (D14).
const SOLVER_LABEL: &str = "acme.cert-manager.io/http01-solver";

/// A Gateway or ListenerSet, and whether the settings exclude it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelectedOwner {
    /// The object.
    pub(crate) object: ObjectRef,
    /// The setting that excludes it, if any.
    pub(crate) left_out: Option<String>,
    /// The targets of its annotation, including empty ones.
    pub(super) targets: Vec<Str>,
    /// The key of that annotation.
    pub(super) target_key: Option<Str>,
    /// Problems of its annotations.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl SelectedOwner {
    /// Applies the settings to a Gateway.
    pub(crate) fn gateway(gateway: &Gateway, settings: &PublicationSettings) -> Self {
        let annotations = Annotations::of(&gateway.meta, &settings.annotation_prefixes);
        let refusal = filters::gateway(gateway, &annotations, settings)
            .or_else(|| filters::gateway_name(&gateway.meta.key.name, settings));
        SelectedOwner::new(gateway_object(&gateway.meta.key), &annotations, refusal)
    }

    /// Applies the settings to a ListenerSet.
    pub(crate) fn set(set: &ListenerSet, settings: &PublicationSettings) -> Self {
        let annotations = Annotations::of(&set.meta, &settings.annotation_prefixes);
        let refusal = filters::listener_set(set, &annotations, settings);
        SelectedOwner::new(set.object(), &annotations, refusal)
    }

    /// The exclusion, if there is one.
    pub(crate) fn passed_over(&self) -> Option<PassedOver> {
        let because = self.left_out.clone()?;
        Some(PassedOver { object: self.object.clone(), because })
    }

    fn new(object: ObjectRef, annotations: &Annotations<'_>, left_out: Option<String>) -> Self {
        let mut selected =
            SelectedOwner { object, left_out, targets: Vec::new(), target_key: None, diagnostics: Vec::new() };
        if selected.left_out.is_none() {
            annotations.report(&selected.object, &mut selected.diagnostics);
            annotations.report_without_effect(&selected.object, &mut selected.diagnostics);
            selected.targets = annotations.targets();
            selected.target_key = annotations.entry("target").map(|entry| entry.key.clone());
        }
        selected
    }
}

/// The setting that excludes a route, if any.
pub(super) fn route_refusal(
    settings: &PublicationSettings,
    route: &Route,
    annotations: &Annotations<'_>,
) -> Option<String> {
    solver(route).or_else(|| filters::route(route, annotations, settings))
}

fn solver(route: &Route) -> Option<String> {
    is_solver(route).then(|| format!("the label `{SOLVER_LABEL}` marks it as a temporary route of cert-manager"))
}

/// What a route itself says that excludes it: the solver's label or the `controller` annotation, with the field.
pub(crate) fn own_refusal(route: &Route, annotations: &Annotations<'_>) -> Option<(String, FieldPath)> {
    let labels = FieldPath::of("metadata.labels").key(SOLVER_LABEL);
    let controller = || {
        let entry = annotations.entry("controller")?;
        Some((filters::controller(annotations)?, annotation_field(entry.key)))
    };
    solver(route).map(|because| (because, labels)).or_else(controller)
}

/// Whether cert-manager created the route for an HTTP-01 challenge.
pub(super) fn is_solver(route: &Route) -> bool {
    route.meta.labels.get(SOLVER_LABEL).is_some_and(|value| &**value == "true")
}

/// The reference to a Gateway.
pub(super) fn gateway_object(key: &Key) -> ObjectRef {
    ObjectRef { kind: Kind::Gateway, key: key.clone() }
}
