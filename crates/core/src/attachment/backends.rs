//! Whether the backends of a route can be used. A bad one never keeps the route from attaching.

use crate::model::*;
use crate::reason::{self, Reason};
use crate::recent::Recent;
use crate::snapshot::Snapshot;

use super::{Grants, Referrer};

/// A backend that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendProblem {
    /// Which rule, counted from 0.
    pub rule: usize,
    /// Where in the rule.
    pub place: BackendUse,
    /// Why.
    pub reason: Reason,
}

/// Where a rule refers to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendUse {
    /// `backendRefs[i]`.
    Backend(usize),
    /// `filters[i]`: a mirror or an authority to ask.
    Filter(usize),
    /// `backendRefs[i].filters[j]`.
    BackendFilter(usize, usize),
}

/// Why a backend of a route cannot be used, if it cannot. The grant is asked before existence.
pub fn problem(snapshot: &Snapshot, grants: &Grants, route: &Route, backend: &BackendRef) -> Option<Reason> {
    let target = &backend.target;
    if !target.group.is_empty() || &*target.kind != "Service" {
        return Some(reason::BACKEND_KIND_UNKNOWN);
    }
    let own = &route.meta.key.namespace;
    if !grants.permit(Referrer { kind: route.kind.kind(), namespace: own }, target) {
        return Some(reason::REFERENCE_NOT_PERMITTED);
    }
    let key = Key::new(target.namespace_or(own).clone(), target.name.clone());
    (!snapshot.services.contains_key(&key)).then_some(reason::BACKEND_MISSING)
}

/// Whether lists of backends are without fault, by the kind of route that has them: routes of one team mostly have the same.
#[derive(Default)]
pub(crate) struct Memo([Recent<BackendRef, bool>; RouteKind::ALL.len()]);

/// All backends of a route that cannot be used, in order.
pub(super) fn problems(snapshot: &Snapshot, grants: &Grants, route: &Route, memo: &mut Memo) -> Vec<BackendProblem> {
    let own = &route.meta.key.namespace;
    let known = &mut memo.0[route.kind as usize];
    let asked = |backend: &BackendRef| problem(snapshot, grants, route, backend);
    let mut problems = Vec::new();
    for (rule, spec) in route.rules.iter().enumerate() {
        let is_fine = |(_, backend): (BackendUse, &BackendRef)| asked(backend).is_none();
        if spec.filters.is_empty() && *known.answer(&spec.backends, own, || (backends(spec).all(is_fine), true)) {
            continue;
        }
        let bad = backends(spec).filter_map(|(place, backend)| Some((place, asked(backend)?)));
        problems.extend(bad.map(|(place, reason)| BackendProblem { rule, place, reason }));
    }
    problems
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
