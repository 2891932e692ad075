//! Whether an attached (route, listener) pair is accepted, by our own computation and by observed status.
//!
//! Nothing here looks at policies or addresses.

use super::input::PublicationInput;
use super::listener_context::ListenerContext;
use super::obstacles::Obstacle;
use super::selection::gateway_object;
use crate::attachment::status_trust::{Observed, Trust, Verdict, decide};
use crate::attachment::*;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::lint::LintContext;
use crate::model::*;
use crate::publication::settings::StatusMode;
use crate::reason::{self, Reason};

/// The verdict on a (route, listener) pair.
pub(super) struct PairVerdict {
    /// Why it gets no records; `None` if it does.
    pub(super) obstacle: Option<Obstacle>,
    /// Whether it gets certificates: a missing Secret is no obstacle to issuing one (D15).
    pub(super) for_certificates: bool,
}

/// The acceptance in one object's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedStatus {
    observed: Observed,
    object: ObjectRef,
    /// The entry of the status that contains it.
    field: StatusField,
    /// The `Accepted` condition, if it is not true for this generation.
    accepted: Option<Condition>,
}

/// The field that contains an observed status, or should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusField {
    Conditions,
    Listener(usize),
    Parent(usize),
    ParentRef(usize),
}

/// The verdict on a pair that attaches according to the specs.
pub(super) fn of_pair(
    base: PublicationInput<'_>,
    context: &ListenerContext,
    route: &Route,
    parent: usize,
) -> PairVerdict {
    if let Some(invalid) = &route.meta.invalid {
        return PairVerdict { obstacle: Some(Obstacle::of_invalid(invalid, route.object())), for_certificates: false };
    }
    let computed = &context.computed;
    let entry = || entry(context, route, parent);
    let verdict = decided(base, context, route, entry, computed.as_ref().map_or(Ok(()), |o| Err(o.reason)));
    match verdict {
        Verdict::Yes => PairVerdict { obstacle: None, for_certificates: true },
        Verdict::No(_) => PairVerdict { obstacle: computed.clone(), for_certificates: false },
        Verdict::Unknown(reason) => {
            let waits = computed.is_none() && context.waits_for_secret;
            PairVerdict { obstacle: Some(worst(context, route, parent).obstacle(reason)), for_certificates: waits }
        }
    }
}

/// Whether the implementation accepts a route that our computation refuses, and its status is trusted.
pub(super) fn is_contradicted(
    base: PublicationInput<'_>,
    context: &ListenerContext,
    route: &RouteState,
    parent: usize,
    candidate: &Candidate,
) -> bool {
    let refused = route.parents[parent].refused;
    let (Some(_), Err(reason)) = (refused, &candidate.verdict) else { return false };
    let entry = || entry(context, &route.route, parent);
    let verdict = decided(base, context, &route.route, entry, Err(*reason));
    verdict == Verdict::Unknown(reason::STATUS_DISAGREES)
}

fn decided(
    base: PublicationInput<'_>,
    context: &ListenerContext,
    route: &Route,
    entry: impl FnOnce() -> Option<usize>,
    computed: Result<(), Reason>,
) -> Verdict {
    let trust = match base.settings.status {
        StatusMode::Auto => Trust::Auto,
        StatusMode::Trust => Trust::Trust,
        StatusMode::Compute => return decide(computed, Observed::Silent, Trust::Compute, false),
    };
    decide(computed, observed(context, route, entry()), trust, context.has_conditions)
}

/// Why a Gateway serves nothing by our own computation, if so.
pub(super) fn computed_gateway(base: PublicationInput<'_>, gateway: &GatewayState) -> Option<Obstacle> {
    let world = LintContext { snapshot: base.snapshot, topology: base.topology };
    Some(obstacle_of(world.gateway(gateway), gateway.refused?, &gateway_object(&gateway.gateway.meta.key)))
}

/// Why a ListenerSet of a Gateway serves nothing by our own computation, if so.
pub(super) fn computed_set(base: PublicationInput<'_>, set: &ListenerSet) -> Option<Obstacle> {
    let world = LintContext { snapshot: base.snapshot, topology: base.topology };
    let object = set.object();
    let state = base.topology.sets.get(&object)?;
    Some(obstacle_of(world.set(state), state.refused?, &object))
}

/// Why a listener of a Gateway serves nothing by our own computation, if so; regardless of its owners.
pub(super) fn computed(base: PublicationInput<'_>, listener: &ListenerState) -> Option<Obstacle> {
    let refused = listener.refused.or(listener.conflict.map(|conflict| conflict.reason))?;
    let world = LintContext { snapshot: base.snapshot, topology: base.topology };
    Some(obstacle_of(world.listener(listener.id), refused, &listener.owner.object()))
}

/// The diagnostic with this reason, as an obstacle.
fn obstacle_of(diagnostics: Vec<Diagnostic>, reason: Reason, object: &ObjectRef) -> Obstacle {
    match diagnostics.into_iter().find(|diagnostic| diagnostic.reason == reason) {
        Some(diagnostic) => Obstacle::of(diagnostic, object),
        None => {
            let message = format!("{object}: {}", reason.row().summary);
            Obstacle { reason, message, object: object.clone(), field: FieldPath::root() }
        }
    }
}

/// The worst observed status among the given ones of Gateway and ListenerSet, and the listener's; the first of equals.
/// `index` is the listener's entry in its owner's status.
pub(super) fn of_listener_side(
    listener: &ListenerState,
    index: Option<usize>,
    owners: [Option<&ObservedStatus>; 2],
) -> Option<ObservedStatus> {
    let own = of_listener(listener, index);
    let worst =
        owners.into_iter().flatten().reduce(|a, b| if severity(b.observed) > severity(a.observed) { b } else { a });
    match (worst, own) {
        (Some(theirs), Some(own)) if severity(own.observed) > severity(theirs.observed) => Some(own),
        (None, own) => own,
        (theirs, _) => theirs.cloned(),
    }
}

/// The acceptance in the status of a ListenerSet.
pub(super) fn of_set(set: &ListenerSet) -> ObservedStatus {
    observed_status(set.object(), &set.conditions, set.meta.generation)
}

/// The acceptance in the status of a Gateway.
pub(super) fn of_gateway(gateway: &Gateway) -> ObservedStatus {
    observed_status(gateway_object(&gateway.meta.key), &gateway.status.conditions, gateway.meta.generation)
}

/// The refusal in the status of a Gateway's class, if there is one (D36).
pub(super) fn of_refused_class(base: PublicationInput<'_>, gateway: &Gateway) -> Option<ObservedStatus> {
    let class = base.snapshot.classes.get(&gateway.class)?;
    let object = ObjectRef::new(Kind::GatewayClass, "", gateway.class.clone());
    let observed_status = observed_status(object, &class.conditions, class.meta.generation);
    (observed_status.observed == Observed::Refused).then_some(observed_status)
}

/// The worst observation among those of the listener's context and the route.
fn observed(context: &ListenerContext, route: &Route, entry: Option<usize>) -> Observed {
    let own = of_route(route, entry);
    match &context.observed_status {
        Some(theirs) if severity(own) <= severity(theirs.observed) => theirs.observed,
        _ => own,
    }
}

/// The worst observed status among those of the listener's context and the route.
fn worst(context: &ListenerContext, route: &Route, parent: usize) -> ObservedStatus {
    let entry = entry(context, route, parent);
    let observed = of_route(route, entry);
    let conditions = entry.map(|index| &route.status[index].conditions[..]).unwrap_or_default();
    let field = entry.map_or(StatusField::ParentRef(parent), StatusField::Parent);
    let own = ObservedStatus {
        observed,
        object: route.object(),
        field,
        accepted: condition(conditions, "Accepted").cloned(),
    };
    match context.observed_status.clone() {
        Some(theirs) => worse(theirs, own),
        None => own,
    }
}

fn worse(a: ObservedStatus, b: ObservedStatus) -> ObservedStatus {
    if severity(b.observed) > severity(a.observed) { b } else { a }
}

fn severity(observed: Observed) -> usize {
    match observed {
        Observed::Accepted => 0,
        Observed::Silent => 1,
        Observed::Undecided => 2,
        Observed::Stale => 3,
        Observed::Refused => 4,
    }
}

/// The acceptance of a listener; `None` without an entry in its owner's status, since owner and route have theirs.
fn of_listener(listener: &ListenerState, index: Option<usize>) -> Option<ObservedStatus> {
    let index = index?;
    let entry = &status_entries(listener)[index];
    let (object, generation) = (listener.owner.object(), listener.owner.meta().generation);
    let mut observed_status = observed_status(object, &entry.conditions, generation);
    let observed = Observed::of_listener(&entry.conditions, generation);
    if observed != observed_status.observed {
        let conflict = condition(&entry.conditions, "Conflicted").cloned();
        observed_status = ObservedStatus { observed, accepted: conflict, ..observed_status };
    }
    (observed_status.observed != Observed::Silent)
        .then_some(ObservedStatus { field: StatusField::Listener(index), ..observed_status })
}

/// The acceptance in an entry of the route's status.
fn of_route(route: &Route, entry: Option<usize>) -> Observed {
    let conditions = entry.map(|i| &route.status[i].conditions[..]).unwrap_or_default();
    Observed::of(conditions, route.meta.generation)
}

/// The entry of the route's status for a parentRef.
fn entry(context: &ListenerContext, route: &Route, parent: usize) -> Option<usize> {
    let own = &route.meta.key.namespace;
    let asked = &route.parents[parent];
    let is_meant = |entry: &ParentStatus| {
        is_same(&entry.parent, asked, own) && context.controller.as_ref().is_none_or(|known| *known == entry.controller)
    };
    route.status.iter().position(is_meant)
}

fn is_same(a: &ParentRef, b: &ParentRef, own: &Str) -> bool {
    a.target.name == b.target.name
        && a.section == b.section
        && a.port == b.port
        && a.target.namespace_or(own) == b.target.namespace_or(own)
        && a.target.kind == b.target.kind
        && a.target.group == b.target.group
}

fn observed_status(object: ObjectRef, conditions: &[Condition], generation: Option<i64>) -> ObservedStatus {
    let observed = Observed::of(conditions, generation);
    let accepted = condition(conditions, "Accepted").filter(|_| observed != Observed::Accepted);
    ObservedStatus { observed, object, field: StatusField::Conditions, accepted: accepted.cloned() }
}

impl StatusField {
    fn path(self) -> FieldPath {
        match self {
            StatusField::Conditions => FieldPath::of("status.conditions"),
            StatusField::Listener(index) => FieldPath::of("status.listeners").index(index).key("conditions"),
            StatusField::Parent(index) => FieldPath::of("status.parents").index(index).key("conditions"),
            StatusField::ParentRef(index) => FieldPath::of("spec.parentRefs").index(index),
        }
    }
}

impl ObservedStatus {
    fn obstacle(self, reason: Reason) -> Obstacle {
        Obstacle { reason, message: self.message(), field: self.field.path(), object: self.object }
    }

    fn message(&self) -> String {
        let object = &self.object;
        match (self.observed, &self.accepted) {
            (Observed::Refused, Some(c)) => {
                let message =
                    format!("the status of {object} says {}: {}, {}: {}", c.kind, c.status, c.reason, c.message);
                message.trim_end_matches([':', ' ']).to_owned()
            }
            (Observed::Undecided, Some(c)) => {
                let message = format!("the status of {object} says Accepted: Unknown, {}: {}", c.reason, c.message);
                format!("{}; it is not decided yet", message.trim_end_matches([':', ' ', '.']))
            }
            (Observed::Stale, _) => format!("the status of {object} speaks of an older generation"),
            (Observed::Accepted, _) => format!("the status of {object} says Accepted, against our own judgement"),
            _ => format!("the status of {object} does not say yet whether it is accepted"),
        }
    }
}

/// Whether the implementation reports that only the listener's Secret is missing.
pub(super) fn waits_for_secret(listener: &ListenerState, index: Option<usize>) -> bool {
    let entry = index.map(|index| &status_entries(listener)[index]);
    let resolved = entry.and_then(|entry| condition(&entry.conditions, "ResolvedRefs"));
    resolved.is_some_and(|c| !c.is_true() && &*c.reason == "InvalidCertificateRef")
}

/// The index of a listener's entry in its owner's status.
pub(super) fn status_index(listener: &ListenerState) -> Option<usize> {
    let (name, entries) = (&listener.spec().name, status_entries(listener));
    let is_it = |entry: &ListenerStatus| entry.name == *name;
    // Entries are usually in the order of listeners.
    let is_at_its_place = entries.get(listener.index).is_some_and(is_it);
    if is_at_its_place { Some(listener.index) } else { entries.iter().position(is_it) }
}

fn status_entries(listener: &ListenerState) -> &[ListenerStatus] {
    match &listener.owner {
        Owner::Gateway(gateway) => &gateway.status.listeners,
        Owner::Set(set) => &set.listener_status,
    }
}

/// The Gateway that a listener belongs to.
pub(super) fn gateway_of<'a>(topology: &'a Topology, listener: &ListenerState) -> Option<&'a GatewayState> {
    topology.gateways.get(listener.gateway.as_ref()?).map(|state| &**state)
}
