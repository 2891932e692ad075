//! Whether the backends of a route can be used. An unusable backend never prevents the route from attaching.

use crate::model::*;
use crate::reason::{self, Reason};
use crate::snapshot::Snapshot;

use super::{Grants, Referrer, RouteState};

/// A backend that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendProblem {
    /// Which rule, counted from 0.
    pub rule: usize,
    /// The field of the rule that refers to it.
    pub place: BackendUse,
    /// Why.
    pub reason: Reason,
}

/// The field of a rule that refers to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendUse {
    /// `backendRefs[i]`.
    Backend(usize),
    /// `filters[i]`: a request mirror or an external authorization server.
    Filter(usize),
    /// `backendRefs[i].filters[j]`.
    BackendFilter(usize, usize),
}

/// Why a backend of a route cannot be used, if it cannot. The grant is checked before existence.
pub fn problem(snapshot: &Snapshot, grants: &Grants, route: &Route, backend: &BackendRef) -> Option<Reason> {
    let target = &backend.target;
    if !target.group.is_empty() || &*target.kind != "Service" {
        return Some(reason::BACKEND_KIND_UNKNOWN);
    }
    let own = &route.meta.key.namespace;
    if !grants.permit(Referrer { kind: Kind::Route(route.kind), namespace: own }, target) {
        return Some(reason::REFERENCE_NOT_PERMITTED);
    }
    let key = Key::new(target.namespace_or(own).clone(), target.name.clone());
    (!snapshot.services.contains_key(&key)).then_some(reason::BACKEND_MISSING)
}

/// All backends of a route that cannot be used, in order.
pub(super) fn problems(snapshot: &Snapshot, grants: &Grants, route: &Route) -> Vec<BackendProblem> {
    let rules = route.rules.iter().enumerate();
    let all = rules.flat_map(|(rule, spec)| backends(spec).map(move |(place, backend)| (rule, place, backend)));
    let problems = all.filter_map(|(rule, place, backend)| {
        let reason = problem(snapshot, grants, route, backend)?;
        Some(BackendProblem { rule, place, reason })
    });
    problems.collect()
}

/// Backends whose Service exists and lacks the port. Requests to them fail; the status of the route does not say so.
pub fn missing_ports(snapshot: &Snapshot, route: &RouteState) -> Vec<BackendProblem> {
    let own = &route.route.meta.key.namespace;
    let lacks_port = |backend: &BackendRef| {
        let key = Key::new(backend.target.namespace_or(own).clone(), backend.target.name.clone());
        let ports = snapshot.services.get(&key).map(|service| &service.ports).filter(|ports| !ports.is_empty());
        matches!((ports, backend.port), (Some(ports), Some(port)) if ports.iter().all(|known| known.port != port))
    };
    let rules = route.route.rules.iter().enumerate();
    let all = rules.flat_map(|(rule, spec)| {
        spec.backends.iter().enumerate().map(move |(i, backend)| (rule, BackendUse::Backend(i), backend))
    });
    let is_usable = |rule, place| !route.backends.iter().any(|problem| (problem.rule, problem.place) == (rule, place));
    let missing = all.filter(|(rule, place, backend)| is_usable(*rule, *place) && lacks_port(backend));
    missing.map(|(rule, place, _)| BackendProblem { rule, place, reason: reason::BACKEND_PORT_MISSING }).collect()
}

/// Every backend that a rule refers to.
pub(crate) fn backends(rule: &Rule) -> impl Iterator<Item = (BackendUse, &BackendRef)> {
    let own = rule.backends.iter().enumerate().map(|(i, b)| (BackendUse::Backend(i), b));
    let filters = targets(&rule.filters).map(|(i, b)| (BackendUse::Filter(i), b));
    let nested = rule.backends.iter().enumerate();
    let nested = nested.flat_map(|(i, b)| targets(&b.filters).map(move |(j, b)| (BackendUse::BackendFilter(i, j), b)));
    own.chain(filters).chain(nested)
}

fn targets(filters: &[Filter]) -> impl Iterator<Item = (usize, &BackendRef)> {
    filters.iter().enumerate().filter_map(|(i, filter)| match filter {
        Filter::Mirror(backend) | Filter::ExternalAuth(backend) => Some((i, backend)),
        _ => None,
    })
}
