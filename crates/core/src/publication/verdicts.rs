//! Whether an attached pair counts: our own judgement of Gateway, ListenerSet and listener, and what others wrote.

use std::sync::Arc;

use super::listener_context::Outlet;
use super::obstacles::Obstacle;
use super::selection::gateway_object;
use super::strict::Base;
use crate::attachment::status_trust::{Observed, Trust, Verdict, decide};
use crate::attachment::*;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::lint::LintContext;
use crate::model::*;
use crate::publication::settings::StatusMode;
use crate::reason::{self, Reason};
use crate::recent::Recent;

/// What is known of a pair of route and listener.
pub(super) struct Judgement {
    /// Why it does not count for records; nothing where it does.
    pub(super) obstacle: Option<Obstacle>,
    /// Whether it counts for certificates: a Secret that is still missing is no reason against making it (D15).
    pub(super) for_certificates: bool,
}

/// What one object's status says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opinion {
    observed: Observed,
    object: ObjectRef,
    /// Which entry of a list in the status it stands in.
    place: Place,
    /// The condition, where it is not the usual one.
    accepted: Option<Condition>,
}

/// Where an opinion is written, or ought to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Conditions,
    Listener(usize),
    Parent(usize),
    ParentRef(usize),
}

/// Which entry of a route's status speaks of each of its parentRefs: many routes have the same of both.
#[derive(Default)]
pub(super) struct Spoken(Recent<ParentStatus, Entries>);

/// The entries of one status, for parents and a controller that mostly go with it.
struct Entries {
    parents: List<ParentRef>,
    controller: Option<Str>,
    places: Vec<Option<usize>>,
}

impl Spoken {
    fn entry(&mut self, outlet: &Outlet, route: &Route, parent: usize) -> Option<usize> {
        let own = &route.meta.key.namespace;
        let known = self.0.answer(route.status.said(), own, || {
            let places = (0..route.parents.len()).map(|parent| entry(outlet, route, parent)).collect();
            let (parents, controller) = (route.parents.clone(), outlet.controller.clone());
            let spoken = route.status.iter().map(|entry| &entry.parent);
            let is_relative = spoken.chain(&route.parents).any(|parent| parent.target.namespace.is_none());
            (Entries { parents, controller, places }, is_relative)
        });
        let is_same = match (&known.controller, &outlet.controller) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        match is_same && known.parents.is_one_with(&route.parents) {
            true => known.places[parent],
            false => entry(outlet, route, parent),
        }
    }
}

/// Judges a pair that attaches by its specs.
pub(super) fn judge(base: Base<'_>, outlet: &Outlet, route: &Route, parent: usize, spoken: &mut Spoken) -> Judgement {
    let computed = &outlet.computed;
    let entry = || spoken.entry(outlet, route, parent);
    let verdict = decided(base, outlet, route, entry, computed.as_ref().map_or(Ok(()), |o| Err(o.reason)));
    match verdict {
        Verdict::Yes => Judgement { obstacle: None, for_certificates: true },
        Verdict::No(_) => Judgement { obstacle: computed.clone(), for_certificates: false },
        Verdict::Unknown(reason) => {
            let waits = computed.is_none() && outlet.waits_for_secret;
            Judgement { obstacle: Some(worst(outlet, route, parent).obstacle(reason)), for_certificates: waits }
        }
    }
}

/// Whether others accept a route that our own judgement refuses, and are to be believed.
pub(super) fn is_contradicted(
    base: Base<'_>,
    outlet: &Outlet,
    route: &RouteState,
    parent: usize,
    candidate: &Candidate,
) -> bool {
    let refused = route.parents[parent].refused;
    let (Some(_), Err(reason)) = (refused, &candidate.verdict) else { return false };
    let entry = || entry(outlet, &route.route, parent);
    let verdict = decided(base, outlet, &route.route, entry, Err(*reason));
    verdict == Verdict::Unknown(reason::STATUS_DISAGREES)
}

fn decided(
    base: Base<'_>,
    outlet: &Outlet,
    route: &Route,
    entry: impl FnOnce() -> Option<usize>,
    computed: Result<(), Reason>,
) -> Verdict {
    let trust = match base.settings.status {
        StatusMode::Auto => Trust::Auto,
        StatusMode::Trust => Trust::Trust,
        StatusMode::Compute => return decide(computed, Observed::Silent, Trust::Compute, false),
    };
    decide(computed, observed(outlet, route, entry()), trust, outlet.speaks)
}

/// Why a Gateway carries nothing by our own judgement, if so.
pub(super) fn computed_gateway(base: Base<'_>, gateway: &GatewayState) -> Option<Obstacle> {
    let world = LintContext { snapshot: base.snapshot, topology: base.topology };
    Some(told(world.gateway(gateway), gateway.refused?, &gateway_object(&gateway.gateway.meta.key)))
}

/// Why a ListenerSet of a Gateway carries nothing by our own judgement, if so.
pub(super) fn computed_set(base: Base<'_>, set: &ListenerSet) -> Option<Obstacle> {
    let world = LintContext { snapshot: base.snapshot, topology: base.topology };
    let object = set.object();
    let state = base.topology.sets.get(&object)?;
    Some(told(world.set(state), state.refused?, &object))
}

/// Why a listener of a Gateway carries nothing by our own judgement, if so; whatever is said of its owners.
pub(super) fn computed(base: Base<'_>, listener: &ListenerState) -> Option<Obstacle> {
    let refused = listener.refused.or(listener.conflict.map(|conflict| conflict.reason))?;
    let world = LintContext { snapshot: base.snapshot, topology: base.topology };
    Some(told(world.listener(listener.id), refused, &listener.owner.object()))
}

/// The diagnostic with this reason, as an obstacle.
fn told(diagnostics: Vec<Diagnostic>, reason: Reason, object: &ObjectRef) -> Obstacle {
    match diagnostics.into_iter().find(|diagnostic| diagnostic.reason == reason) {
        Some(diagnostic) => Obstacle::of(diagnostic, object),
        None => {
            let message = format!("{object}: {}", reason.row().summary);
            Obstacle { reason, message, object: object.clone(), field: FieldPath::root() }
        }
    }
}

/// The least favourable opinion among those of Gateway and ListenerSet, which are given, and the listener's; of equal ones the
/// first. `index` says where the status of its owner speaks of the listener.
pub(super) fn of_listener_side(
    listener: &ListenerState,
    index: Option<usize>,
    owners: [Option<&Opinion>; 2],
) -> Option<Opinion> {
    let own = of_listener(listener, index);
    let worst =
        owners.into_iter().flatten().reduce(|a, b| if severity(b.observed) > severity(a.observed) { b } else { a });
    match (worst, own) {
        (Some(theirs), Some(own)) if severity(own.observed) > severity(theirs.observed) => Some(own),
        (None, own) => own,
        (theirs, _) => theirs.cloned(),
    }
}

/// What the status of a ListenerSet says of it.
pub(super) fn of_set(set: &ListenerSet) -> Opinion {
    opinion(set.object(), &set.conditions, set.meta.generation.get())
}

/// What the status of a Gateway says of it.
pub(super) fn of_gateway(gateway: &Gateway) -> Opinion {
    opinion(gateway_object(&gateway.meta.key), &gateway.status.conditions, gateway.meta.generation.get())
}

/// The least favourable word among those of the listener's side and the route's.
fn observed(outlet: &Outlet, route: &Route, entry: Option<usize>) -> Observed {
    let own = of_route(route, entry);
    match &outlet.opinion {
        Some(theirs) if severity(own) <= severity(theirs.observed) => theirs.observed,
        _ => own,
    }
}

/// The same with who says so.
fn worst(outlet: &Outlet, route: &Route, parent: usize) -> Opinion {
    let entry = entry(outlet, route, parent);
    let observed = of_route(route, entry);
    let conditions = entry.map(|index| &route.status[index].conditions[..]).unwrap_or_default();
    let place = entry.map_or(Place::ParentRef(parent), Place::Parent);
    let own = Opinion { observed, object: route.object(), place, accepted: condition(conditions, "Accepted").cloned() };
    match outlet.opinion.clone() {
        Some(theirs) => worse(theirs, own),
        None => own,
    }
}

fn worse(a: Opinion, b: Opinion) -> Opinion {
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

/// A listener that its owner's status does not speak of has no opinion: its owner and the route have.
fn of_listener(listener: &ListenerState, index: Option<usize>) -> Option<Opinion> {
    let index = index?;
    let entry = &status_entries(listener)[index];
    let opinion = opinion(listener.owner.object(), &entry.conditions, listener.owner.meta().generation.get());
    (opinion.observed != Observed::Silent).then_some(Opinion { place: Place::Listener(index), ..opinion })
}

/// What an entry of the route's status says.
fn of_route(route: &Route, entry: Option<usize>) -> Observed {
    let conditions = entry.map(|i| &route.status[i].conditions[..]).unwrap_or_default();
    Observed::of(conditions, route.meta.generation.get())
}

/// The entry of the route's status that speaks of a parentRef.
fn entry(outlet: &Outlet, route: &Route, parent: usize) -> Option<usize> {
    let own = &route.meta.key.namespace;
    let asked = &route.parents[parent];
    let is_meant = |entry: &ParentStatus| {
        is_same(&entry.parent, asked, own) && outlet.controller.as_ref().is_none_or(|known| *known == entry.controller)
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

fn opinion(object: ObjectRef, conditions: &[Condition], generation: Option<i64>) -> Opinion {
    let observed = Observed::of(conditions, generation);
    let accepted = condition(conditions, "Accepted").filter(|_| observed != Observed::Accepted);
    Opinion { observed, object, place: Place::Conditions, accepted: accepted.cloned() }
}

impl Place {
    fn field(self) -> FieldPath {
        match self {
            Place::Conditions => FieldPath::of("status.conditions"),
            Place::Listener(index) => FieldPath::of("status.listeners").index(index).key("conditions"),
            Place::Parent(index) => FieldPath::of("status.parents").index(index).key("conditions"),
            Place::ParentRef(index) => FieldPath::of("spec.parentRefs").index(index),
        }
    }
}

impl Opinion {
    fn obstacle(self, reason: Reason) -> Obstacle {
        Obstacle { reason, message: self.message(), field: self.place.field(), object: self.object }
    }

    fn message(&self) -> String {
        let object = &self.object;
        match (self.observed, &self.accepted) {
            (Observed::Refused, Some(c)) => {
                let message =
                    format!("the status of {object} says Accepted: {}, {}: {}", c.status, c.reason, c.message);
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

/// Whether the implementation says that the listener's Secret is what is missing.
pub(super) fn waits_for_secret(listener: &ListenerState, index: Option<usize>) -> bool {
    let entry = index.map(|index| &status_entries(listener)[index]);
    let resolved = entry.and_then(|entry| condition(&entry.conditions, "ResolvedRefs"));
    resolved.is_some_and(|c| !c.is_true() && &*c.reason == "InvalidCertificateRef")
}

/// Where the status of a listener's owner speaks of it.
pub(super) fn status_index(listener: &ListenerState) -> Option<usize> {
    let (name, entries) = (&listener.spec().name, status_entries(listener));
    let is_it = |entry: &ListenerStatus| entry.name == *name;
    // Mostly they come in the order of listeners.
    let is_at_its_place = entries.get(listener.index).is_some_and(is_it);
    if is_at_its_place { Some(listener.index) } else { entries.iter().position(is_it) }
}

fn status_entries(listener: &ListenerState) -> &[ListenerStatus] {
    match &listener.owner {
        Owner::Gateway(gateway) => &gateway.status.listeners,
        Owner::Set(set) => &set.listener_status,
    }
}

/// The Gateway that a listener is part of.
pub(super) fn gateway_of<'a>(topology: &'a Topology, listener: &ListenerState) -> Option<&'a GatewayState> {
    topology.gateways.get(listener.gateway.as_ref()?).map(|state| &**state)
}
