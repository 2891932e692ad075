//! Why a hostname gets nothing: the reason of the candidate listener that passed the most checks.
//!
//! Only computed for hostnames that matched no listener, so its cost matters little. Nothing here decides whether a
//! hostname is published.

use super::asked_names::AskedName;
use super::input::PublicationInput;
use super::listener_context::ListenerContexts;
use super::verdicts;
use crate::attachment::*;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::lint::LintContext;
use crate::model::*;
use crate::names::Hostname;
use crate::publication::annotations::{Annotations, HostnameSource, RouteAnnotations};
use crate::publication::hostnames::{WantedHostname, annotation_names, spec_names};
use crate::publication::{PublicationSettings, Withheld};
use crate::reason::{self, Reason};
use crate::snapshot::Visibility;

/// Why a hostname gets nothing, and the field to edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) object: ObjectRef,
    pub(super) field: FieldPath,
}

impl Obstacle {
    /// A diagnostic as an obstacle.
    pub(super) fn of(diagnostic: Diagnostic, object: &ObjectRef) -> Self {
        Obstacle {
            reason: diagnostic.reason,
            message: diagnostic.message,
            object: diagnostic.object.unwrap_or_else(|| object.clone()),
            field: diagnostic.field,
        }
    }

    /// The field because of which an API server would refuse an object (D30).
    pub(super) fn of_invalid(invalid: &InvalidField, object: ObjectRef) -> Self {
        Obstacle { reason: invalid.reason, message: invalid.message.clone(), object, field: invalid.field.clone() }
    }

    /// The withheld hostname with this obstacle.
    pub(super) fn withhold(self, route: &ObjectRef, hostname: &str, listener: Option<ListenerKey>) -> Withheld {
        Withheld {
            route: route.clone(),
            hostname: hostname.into(),
            listener,
            reason: self.reason,
            message: self.message,
            object: self.object,
            field: self.field,
        }
    }
}

/// Why a route without any hostname that its `gateway-hostname-source` takes gets nothing.
pub(super) fn nothing_asked(route: &RouteState) -> Withheld {
    let object = route.route.object();
    let message =
        "`gateway-hostname-source` leaves out the listeners' hostnames, and the route has none of its own".to_owned();
    let field = FieldPath::of("metadata.annotations");
    Obstacle { reason: reason::NO_NAME, message, object: object.clone(), field }.withhold(&object, "*", None)
}

/// The hostnames of a route that excludes itself by a label or annotation, those of its `hostname` annotation included.
pub(crate) fn excluded(
    route: &Route,
    annotations: &Annotations<'_>,
    settings: &PublicationSettings,
    (because, field): (&str, &FieldPath),
) -> Vec<Withheld> {
    let object = route.object();
    let mut names = spec_names(route);
    if !settings.ignore_hostname_annotation {
        names.extend(annotation_names(&RouteAnnotations::read(annotations, &object, &mut Vec::new())));
    }
    let mut names: Vec<Str> = names.into_iter().map(|name| name.text).filter(|text| !text.is_empty()).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        names.push("*".into());
    }
    let withhold = |hostname: Str| {
        let (message, object, field) = (because.to_owned(), object.clone(), field.clone());
        Obstacle { reason: reason::NOT_SELECTED, message, object: object.clone(), field }
            .withhold(&object, &hostname, None)
    };
    names.into_iter().map(withhold).collect()
}

/// The hostnames of a route that its `gateway-hostname-source` leaves out.
pub(crate) fn left_out(route: &Route, annotations: &RouteAnnotations, settings: &PublicationSettings) -> Vec<Withheld> {
    let names = match annotations.hostname_source {
        HostnameSource::AnnotationOnly => spec_names(route),
        HostnameSource::DefinedHostsOnly if !settings.ignore_hostname_annotation => annotation_names(annotations),
        HostnameSource::DefinedHostsOnly | HostnameSource::All => return Vec::new(),
    };
    let object = route.object();
    let withhold = |name: WantedHostname| {
        let message = format!("`gateway-hostname-source` leaves `{}` out", name.text);
        let (object, field) = (object.clone(), name.field());
        Obstacle { reason: reason::NOT_SELECTED, message, object: object.clone(), field }
            .withhold(&object, &name.text, None)
    };
    names.into_iter().filter(|name| !name.text.is_empty()).map(withhold).collect()
}

/// Why a hostname that matches no listener gets nothing.
pub(super) fn unanswered(
    base: PublicationInput<'_>,
    contexts: &ListenerContexts,
    route: &RouteState,
    asked: &AskedName<'_>,
) -> Withheld {
    let case = Case { base, contexts, route, asked };
    let (obstacle, listener) = case.first_obstacle();
    obstacle.withhold(&route.route.object(), &asked.shown(), listener)
}

/// One withheld hostname of a route.
struct Case<'c> {
    base: PublicationInput<'c>,
    contexts: &'c ListenerContexts,
    route: &'c RouteState,
    asked: &'c AskedName<'c>,
}

/// A candidate with its rank: whether the hostnames intersect, then the number of checks passed. Ties go to the first.
struct Furthest {
    rank: (bool, usize),
    parent: usize,
    candidate: Option<Candidate>,
}

impl Case<'_> {
    fn first_obstacle(&self) -> (Obstacle, Option<ListenerKey>) {
        if let Some(obstacle) = self.own_fault() {
            return (obstacle, None);
        }
        let mut furthest: Option<Furthest> = None;
        for found in self.candidates() {
            if furthest.as_ref().is_none_or(|known| found.rank > known.rank) {
                furthest = Some(found);
            }
        }
        match furthest {
            Some(Furthest { parent, candidate: Some(candidate), .. }) => self.at_candidate(parent, &candidate),
            Some(Furthest { parent, candidate: None, .. }) => (self.at_parent(parent), None),
            None => (self.on_route(reason::ROUTE_WITHOUT_PARENT, "the route names no parent".to_owned()), None),
        }
    }

    /// What is wrong with the hostname itself, or with the route. Of a route that an API server would refuse it is not known
    /// what it will ask for, so a wrong hostname is then as unknown as its other names (D30).
    fn own_fault(&self) -> Option<Obstacle> {
        let route = &self.route.route;
        let invalid = route.meta.invalid.as_ref();
        let Err(error) = self.asked.name() else {
            return Some(Obstacle::of_invalid(invalid?, route.object()));
        };
        let message = format!("`{}` {error}", self.asked.text());
        let reason = invalid.map_or(reason::INVALID_HOSTNAME, |invalid| invalid.reason);
        Some(Obstacle { field: self.asked.field(), ..self.on_route(reason, message) })
    }

    fn candidates(&self) -> impl Iterator<Item = Furthest> {
        self.route.parents.iter().enumerate().flat_map(move |(parent, state)| {
            let bare = Furthest { rank: (false, self.parent_progress(state)), parent, candidate: None };
            let candidates = self.world().candidates(self.route, parent);
            let bare = candidates.is_empty().then_some(bare);
            let candidates = candidates.into_iter().map(move |candidate| {
                let listener = self.base.topology.listener(candidate.listener);
                let has_name = self.asked.at(&raw_hostname(listener)).is_some();
                Furthest { rank: (has_name, progress(&candidate)), parent, candidate: Some(candidate) }
            });
            bare.into_iter().chain(candidates)
        })
    }

    fn parent_progress(&self, parent: &ParentState) -> usize {
        match parent.target {
            ParentTarget::OtherKind => 0,
            ParentTarget::OutOfScope => 1,
            ParentTarget::Missing => 2,
            ParentTarget::Gateway(_) | ParentTarget::Set(..) => 3,
        }
    }

    /// The obstacle at a parent without a listener for the route.
    fn at_parent(&self, parent: usize) -> Obstacle {
        let object = self.route.route.object();
        let target = &self.route.route.parents[parent].target;
        let key = Key::new(target.namespace_or(object.namespace()).clone(), target.name.clone());
        let kind = Kind::of(&target.group, &target.kind);
        if let Some(kind) = kind.filter(|kind| self.is_hidden(*kind)) {
            return self.hidden(kind, FieldPath::of("spec.parentRefs").index(parent));
        }
        match self.world().parent(self.route, parent) {
            Some(diagnostic) => Obstacle::of(diagnostic, &object),
            None => self.out_of_scope(kind, key),
        }
    }

    /// The obstacle at a Gateway that is out of scope, or whose class does not exist.
    fn out_of_scope(&self, kind: Option<Kind>, key: Key) -> Obstacle {
        let parent = ObjectRef { kind: kind.unwrap_or(Kind::Gateway), key };
        let topology = self.base.topology;
        let set = topology.sets.get(&parent).map(|state| &state.set);
        let gateway = match set {
            Some(set) => Key::new(set.parent.namespace_or(&set.meta.key.namespace).clone(), set.parent.name.clone()),
            None => parent.key.clone(),
        };
        let diagnostics = topology.gateways.get(&gateway).map(|state| self.world().gateway(state)).unwrap_or_default();
        let diagnostics = match set {
            Some(_) if diagnostics.is_empty() => {
                topology.sets.get(&parent).map(|s| self.world().set(s)).unwrap_or_default()
            }
            _ => diagnostics,
        };
        match diagnostics.into_iter().next() {
            Some(diagnostic) => Obstacle::of(diagnostic, &parent),
            None => self.on_route(reason::NOT_SELECTED, format!("{parent} is left out by the settings")),
        }
    }

    fn at_candidate(&self, parent: usize, candidate: &Candidate) -> (Obstacle, Option<ListenerKey>) {
        let listener = self.base.topology.listener(candidate.listener);
        let key = Some(listener.key());
        if let Some((object, because)) = self.contexts.at(candidate.listener).left_out.clone() {
            let message = format!("{object} is left out: {because}");
            return (Obstacle { reason: reason::NOT_SELECTED, message, object, field: FieldPath::root() }, key);
        }
        let object = self.route.route.object();
        let obstacle = match self.world().candidate(self.route, parent, candidate) {
            Some(diagnostic) => Obstacle::of(diagnostic, &object),
            None => self.no_common_hostname(listener),
        };
        (self.doubted(obstacle, parent, candidate), key)
    }

    /// The same obstacle, unless a kind it depends on is not visible or the implementation accepted the route.
    fn doubted(&self, obstacle: Obstacle, parent: usize, candidate: &Candidate) -> Obstacle {
        let listener = self.base.topology.listener(candidate.listener).spec();
        let asks_labels = matches!(listener.allowed_routes.namespaces, Admission::Selector(Some(_)));
        if obstacle.reason == reason::NAMESPACE_NOT_ALLOWED && asks_labels && self.is_hidden(Kind::Namespace) {
            return self.hidden(Kind::Namespace, obstacle.field);
        }
        let context = self.contexts.at(candidate.listener);
        if verdicts::is_contradicted(self.base, context, self.route, parent, candidate) {
            let message = format!("the implementation has accepted the route, and it ought not: {}", obstacle.message);
            return Obstacle { reason: reason::STATUS_DISAGREES, message, ..obstacle };
        }
        obstacle
    }

    fn no_common_hostname(&self, listener: &ListenerState) -> Obstacle {
        let name = crate::lint::listener_name(listener);
        let (host, asked) = (&listener.hostname, self.asked.shown());
        let message = format!("{name} serves `{host}`, which has nothing in common with `{asked}`");
        Obstacle { field: self.asked.field(), ..self.on_route(reason::NO_COMMON_HOSTNAME, message) }
    }

    fn is_hidden(&self, kind: Kind) -> bool {
        *self.base.snapshot.visibility(kind) != Visibility::Complete
    }

    fn hidden(&self, kind: Kind, field: FieldPath) -> Obstacle {
        let message = format!("objects of kind {kind} could not be listed, so it is not known whether this attaches");
        Obstacle { field, ..self.on_route(reason::KIND_NOT_VISIBLE, message) }
    }

    fn on_route(&self, reason: Reason, message: String) -> Obstacle {
        Obstacle { reason, message, object: self.route.route.object(), field: FieldPath::of("spec.parentRefs") }
    }

    fn world(&self) -> LintContext<'_> {
        LintContext { snapshot: self.base.snapshot, topology: self.base.topology }
    }
}

/// The number of checks that a candidate passed; higher than for any parent that was not found.
fn progress(candidate: &Candidate) -> usize {
    const ACCEPTED: usize = 4;
    4 + candidate.verdict.as_ref().err().map_or(ACCEPTED, |reason| routes::progress(*reason))
}

/// A listener's hostname from its spec, even if the listener is refused for another reason.
fn raw_hostname(listener: &ListenerState) -> Hostname {
    let written = listener.spec().hostname.as_ref().and_then(|written| written.name().ok().cloned());
    written.unwrap_or_else(Hostname::any)
}
