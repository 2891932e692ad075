//! Whether an attached pair counts: our own judgement of Gateway, ListenerSet and listener, and what others wrote.

use super::Context;
use super::selection::gateway_object;
use super::why::Obstacle;
use crate::desired::settings::StatusMode;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::lint::World;
use crate::model::*;
use crate::reason::{self, Reason};
use crate::topology::authority::{Observed, Trust, Verdict, decide};
use crate::topology::*;

/// What is known of a pair of route and listener.
pub(super) struct Judgement {
    /// Why it does not count for records; nothing where it does.
    pub(super) obstacle: Option<Obstacle>,
    /// Whether it counts for certificates: a Secret that is still missing is no reason against making it (D15).
    pub(super) for_certificates: bool,
}

/// What one object's status says.
struct Opinion<'a> {
    observed: Observed,
    object: ObjectRef,
    field: FieldPath,
    accepted: Option<&'a Condition>,
}

/// Judges a pair that attaches by its specs.
pub(super) fn judge(context: Context<'_>, route: &RouteState, parent: usize, id: ListenerId) -> Judgement {
    let computed = computed(context, id);
    let verdict = decided(context, route, parent, id, computed.as_ref().map_or(Ok(()), |o| Err(o.reason)));
    let waits = computed.is_none() && waits_for_secret(context.topology.listener(id));
    match verdict {
        Verdict::Yes => Judgement { obstacle: None, for_certificates: true },
        Verdict::No(_) => Judgement { obstacle: computed, for_certificates: false },
        Verdict::Unknown(reason) => {
            let opinion = worst(context, route, parent, id);
            Judgement { obstacle: Some(opinion.obstacle(reason)), for_certificates: waits }
        }
    }
}

/// Whether others accept a route that our own judgement refuses, and are to be believed.
pub(super) fn is_contradicted(context: Context<'_>, route: &RouteState, parent: usize, candidate: &Candidate) -> bool {
    let refused = route.parents[parent].refused;
    let (Some(_), Err(reason)) = (refused, &candidate.verdict) else { return false };
    let verdict = decided(context, route, parent, candidate.listener, Err(*reason));
    verdict == Verdict::Unknown(reason::STATUS_DISAGREES)
}

fn decided(
    context: Context<'_>,
    route: &RouteState,
    parent: usize,
    id: ListenerId,
    computed: Result<(), Reason>,
) -> Verdict {
    let trust = match context.settings.status {
        StatusMode::Auto => Trust::Auto,
        StatusMode::Trust => Trust::Trust,
        StatusMode::Compute => return decide(computed, Observed::Silent, Trust::Compute, false),
    };
    let speaks = gateway_of(context.topology, id).is_some_and(|state| !state.gateway.status.conditions.is_empty());
    decide(computed, worst(context, route, parent, id).observed, trust, speaks)
}

/// Why a listener carries nothing by our own judgement, if so.
fn computed(context: Context<'_>, id: ListenerId) -> Option<Obstacle> {
    let world = World { snapshot: context.snapshot, topology: context.topology };
    let listener = context.topology.listener(id);
    let owner = listener.owner.object();
    let gateway = gateway_of(context.topology, id)?;
    if let Some(refused) = gateway.refused {
        return Some(told(world.gateway(gateway), refused, &gateway_object(&gateway.gateway.meta.key)));
    }
    if let Some(set) = context.topology.sets.get(&owner)
        && let Some(refused) = set.refused
    {
        return Some(told(world.set(set), refused, &owner));
    }
    let refused = listener.refused.or(listener.conflict.map(|conflict| conflict.reason))?;
    Some(told(world.listener(id), refused, &owner))
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

/// The least favourable opinion among Gateway, ListenerSet, listener and route.
fn worst<'a>(context: Context<'a>, route: &'a RouteState, parent: usize, id: ListenerId) -> Opinion<'a> {
    let listener = context.topology.listener(id);
    let mut opinions = Vec::new();
    opinions.extend(gateway_of(context.topology, id).map(of_gateway));
    if let Owner::Set(set) = &listener.owner {
        opinions.push(opinion(set.object(), &set.conditions, set.meta.generation));
    }
    opinions.extend(of_listener(listener));
    opinions.push(of_route(context, &route.route, parent, id));
    let mut opinions = opinions.into_iter();
    let first = opinions.next();
    let worse = |a: Opinion<'a>, b: Opinion<'a>| if severity(b.observed) > severity(a.observed) { b } else { a };
    match first {
        Some(first) => opinions.fold(first, worse),
        None => opinion(listener.owner.object(), &[], None),
    }
}

fn severity(observed: Observed) -> usize {
    match observed {
        Observed::Accepted => 0,
        Observed::Silent => 1,
        Observed::Stale => 2,
        Observed::Refused => 3,
    }
}

fn of_gateway(state: &GatewayState) -> Opinion<'_> {
    let gateway = &state.gateway;
    opinion(gateway_object(&gateway.meta.key), &gateway.status.conditions, gateway.meta.generation)
}

/// A listener that its owner's status does not speak of has no opinion: its owner and the route have.
fn of_listener(listener: &ListenerState) -> Option<Opinion<'_>> {
    let index = status_entries(listener).iter().position(|entry| entry.name == listener.spec().name)?;
    let entry = &status_entries(listener)[index];
    let meta = listener.owner.meta();
    let mut opinion = opinion(listener.owner.object(), &entry.conditions, meta.generation);
    opinion.field = FieldPath::of("status.listeners").index(index).key("conditions");
    (opinion.observed != Observed::Silent).then_some(opinion)
}

fn of_route<'a>(context: Context<'a>, route: &'a Route, parent: usize, id: ListenerId) -> Opinion<'a> {
    let own = &route.meta.key.namespace;
    let asked = &route.parents[parent];
    let controller = match gateway_of(context.topology, id).map(|state| &state.class) {
        Some(ClassState::Known(controller)) => Some(controller),
        _ => None,
    };
    let is_meant = |entry: &ParentStatus| {
        is_same(&entry.parent, asked, own) && controller.is_none_or(|known| *known == entry.controller)
    };
    let index = route.status.iter().position(is_meant);
    let conditions = index.map(|i| &route.status[i].conditions[..]).unwrap_or_default();
    let mut opinion = opinion(route.object(), conditions, route.meta.generation);
    opinion.field = match index {
        Some(index) => FieldPath::of("status.parents").index(index).key("conditions"),
        None => FieldPath::of("spec.parentRefs").index(parent),
    };
    opinion
}

fn is_same(a: &ParentRef, b: &ParentRef, own: &Str) -> bool {
    let full = |p: &ParentRef| {
        let target = &p.target;
        (target.group.clone(), target.kind.clone(), target.namespace_or(own).clone(), target.name.clone())
    };
    full(a) == full(b) && a.section == b.section && a.port == b.port
}

fn opinion(object: ObjectRef, conditions: &[Condition], generation: Option<i64>) -> Opinion<'_> {
    let observed = Observed::of(conditions, generation);
    let field = FieldPath::of("status.conditions");
    Opinion { observed, object, field, accepted: condition(conditions, "Accepted") }
}

impl Opinion<'_> {
    fn obstacle(self, reason: Reason) -> Obstacle {
        Obstacle { reason, message: self.message(), object: self.object, field: self.field }
    }

    fn message(&self) -> String {
        let object = &self.object;
        match (self.observed, self.accepted) {
            (Observed::Refused, Some(c)) => {
                let message =
                    format!("the status of {object} says Accepted: {}, {}: {}", c.status, c.reason, c.message);
                message.trim_end_matches([':', ' ']).to_owned()
            }
            (Observed::Stale, _) => format!("the status of {object} speaks of an older generation"),
            (Observed::Accepted, _) => format!("the status of {object} says Accepted, against our own judgement"),
            _ => format!("the status of {object} does not say yet whether it is accepted"),
        }
    }
}

/// Whether the implementation says that the listener's Secret is what is missing.
fn waits_for_secret(listener: &ListenerState) -> bool {
    let entry = status_entries(listener).iter().find(|entry| entry.name == listener.spec().name);
    let resolved = entry.and_then(|entry| condition(&entry.conditions, "ResolvedRefs"));
    resolved.is_some_and(|c| !c.is_true() && &*c.reason == "InvalidCertificateRef")
}

fn status_entries(listener: &ListenerState) -> &[ListenerStatus] {
    match &listener.owner {
        Owner::Gateway(gateway) => &gateway.status.listeners,
        Owner::Set(set) => &set.listener_status,
    }
}

/// The Gateway that a listener is part of.
pub(super) fn gateway_of(topology: &Topology, id: ListenerId) -> Option<&GatewayState> {
    topology.gateways.get(topology.listener(id).gateway.as_ref()?).map(|state| &**state)
}
