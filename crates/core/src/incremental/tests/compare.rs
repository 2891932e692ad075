//! Comparison of the engine with a full build: everything that a reader can see of a world, without ids.

use std::collections::BTreeMap;

use super::super::{Delta, World};
use crate::attachment::*;
use crate::diagnostic::Diagnostic;
use crate::lint;
use crate::model::*;
use crate::publication::{self, Desired, PublicationSettings};
use crate::routing::{GatewayRequest, Router};
use crate::snapshot::Snapshot;

/// A listener by name, and its index among those of the same name; ids differ between engines.
type Name = (ListenerKey, usize);

/// A topology without ids.
#[derive(Debug, PartialEq)]
pub(super) struct Plain {
    gateways: Vec<PlainGateway>,
    sets: Vec<PlainSet>,
    listeners: Vec<PlainListener>,
    routes: Vec<(ObjectRef, Vec<PlainParent>, Vec<BackendProblem>)>,
}

#[derive(Debug, PartialEq)]
struct PlainListener {
    name: Name,
    state: ListenerState,
    conflict: Option<(crate::reason::Reason, Name)>,
    overlaps: Option<Name>,
    attached: usize,
}

type PlainGateway = (Key, ClassState, Option<crate::reason::Reason>, Vec<Name>, usize);

type PlainSet = (ObjectRef, Option<Key>, Option<crate::reason::Reason>, Vec<Name>);

type PlainParent = (ParentTarget, Vec<(Name, Vec<Intersection>)>, Option<crate::reason::Reason>);

pub(super) fn plain(topology: &Topology) -> Plain {
    let name = |id: ListenerId| (topology.listener(id).key(), topology.listener(id).index);
    let names = |ids: &[ListenerId]| ids.iter().map(|id| name(*id)).collect::<Vec<_>>();
    let listener = |(id, state): (ListenerId, &ListenerState)| PlainListener {
        name: name(id),
        conflict: state.conflict.map(|conflict| (conflict.reason, name(conflict.with))),
        overlaps: state.overlaps.map(name),
        attached: topology.attached_routes(id),
        state: ListenerState { id: ListenerId { group: 0, slot: 0 }, conflict: None, overlaps: None, ..state.clone() },
    };
    let parent = |parent: &ParentState| {
        let attached = parent.attached.iter().map(|a| (name(a.listener), a.names.to_vec()));
        (parent.target.clone(), attached.collect(), parent.refused)
    };
    let route = |route: &RouteState| route.parents.iter().map(parent).collect::<Vec<_>>();
    Plain {
        gateways: topology
            .gateways
            .iter()
            .map(|(key, s)| (key.clone(), s.class.clone(), s.refused, names(&s.listeners), s.attached_sets))
            .collect(),
        sets: topology
            .sets
            .iter()
            .map(|(object, s)| (object.clone(), s.gateway.clone(), s.refused, names(&s.listeners)))
            .collect(),
        listeners: topology.listener_ids().map(listener).collect(),
        routes: topology.routes.iter().map(|(object, s)| (object.clone(), route(s), s.backends.to_vec())).collect(),
    }
}

/// Everything that can be seen.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    topology: Plain,
    pub(super) desired: Desired,
    /// Diagnostics, if they are compared.
    diagnostics: Vec<Diagnostic>,
}

/// How much of a world is compared.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Look {
    /// The decisions.
    Quick,
    /// Also the diagnostics and request routing.
    Close,
}

/// The result of a full build, with names that exist for reasons other than routes.
pub(super) fn from_scratch(
    snapshot: &Snapshot,
    scope: &Scope,
    settings: &PublicationSettings,
    beside: publication::PresentState<'_>,
    look: Look,
) -> Seen {
    let topology = Topology::build(snapshot, scope);
    Seen {
        desired: publication::build_beside(snapshot, &topology, settings, beside),
        diagnostics: told(lint::LintContext { snapshot, topology: &topology }, look),
        topology: plain(&topology),
    }
}

pub(super) fn of_engine(world: &World, look: Look) -> Seen {
    Seen { topology: plain(world.topology()), desired: world.desired(), diagnostics: told(world.lint(), look) }
}

fn told(world: lint::LintContext<'_>, look: Look) -> Vec<Diagnostic> {
    if look == Look::Close { world.diagnostics() } else { Vec::new() }
}

/// Fails at the first entry of two lists that differs.
fn first<T: PartialEq + std::fmt::Debug>(what: &str, found: &[T], expected: &[T], context: &dyn Fn() -> String) {
    let differs = found.iter().zip(expected).find(|(a, b)| a != b);
    if let Some((found, expected)) = differs {
        panic!("{what}: found {found:#?}, expected {expected:#?} after {}", context());
    }
    let longer = if found.len() > expected.len() { found } else { expected };
    let rest = longer.get(found.len().min(expected.len()));
    assert!(rest.is_none(), "{what}: {} and not {}: {rest:#?} after {}", found.len(), expected.len(), context());
}

/// Fails with the first difference, rather than with all.
pub(super) fn assert_same(found: &Seen, expected: &Seen, context: &dyn Fn() -> String) {
    let (a, b) = (&found.topology, &expected.topology);
    first("gateways", &a.gateways, &b.gateways, context);
    first("sets", &a.sets, &b.sets, context);
    first("listeners", &a.listeners, &b.listeners, context);
    first("routes", &a.routes, &b.routes, context);
    let (a, b) = (&found.desired, &expected.desired);
    first("withheld", &a.withheld, &b.withheld, context);
    first("passed over", &a.passed_over, &b.passed_over, context);
    first("records", &a.records, &b.records, context);
    first("covered", &a.covered, &b.covered, context);
    first("certificates", &a.certificates, &b.certificates, context);
    first("kept names", &a.kept_names, &b.kept_names, context);
    first("policies", &a.policies, &b.policies, context);
    first("diagnostics", &a.diagnostics, &b.diagnostics, context);
    first("lint", &found.diagnostics, &expected.diagnostics, context);
}

/// Routes requests at each Gateway by the topology of the engine and by one built from scratch.
pub(super) fn check_routing(world: &World, scope: &Scope, requests: &[GatewayRequest]) {
    let scratch = Topology::build(world.snapshot(), scope);
    for gateway in world.snapshot().gateways.keys() {
        let compile = |topology: &Topology| Router::compile(world.snapshot(), topology, gateway).unwrap();
        let (found, expected) = (compile(world.topology()), compile(&scratch));
        for request in requests {
            assert_eq!(found.route(request), expected.route(request), "{gateway} {request:?}");
        }
    }
    let nowhere = Key::new("nowhere", "edge");
    assert!(Router::compile(world.snapshot(), world.topology(), &nowhere).is_none());
}

/// Fails if a delta misses a change, or lists something that did not change.
pub(super) fn check_delta(before: &Desired, after: &Desired, deltas: &[&Delta]) {
    let (old, new) = (before.records_by_name(), after.records_by_name());
    for name in old.keys().chain(new.keys()) {
        let differs = old.get(name) != new.get(name);
        assert!(!differs || deltas.iter().any(|delta| delta.names.contains(name)), "{name} is not told");
    }
    let secrets = |desired: &Desired| {
        desired.certificates.iter().map(|c| (c.secret.clone(), c.clone())).collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (secrets(before), secrets(after));
    for secret in old.keys().chain(new.keys()) {
        let told = deltas.iter().filter(|delta| delta.certificates.contains(secret)).count();
        // A second delta may revert what the first one changed: the holder of a name may be another once records are seen.
        assert!(if old.get(secret) == new.get(secret) { told != 1 } else { told > 0 }, "{secret}");
    }
    let policies =
        |desired: &Desired| desired.policies.iter().map(|p| (p.policy.clone(), p.clone())).collect::<BTreeMap<_, _>>();
    let (old, new) = (policies(before), policies(after));
    for policy in old.keys().chain(new.keys()) {
        let told = deltas.iter().filter(|delta| delta.policies.contains(policy)).count();
        // A second delta may revert what the first one changed.
        assert!(if old.get(policy) == new.get(policy) { told != 1 } else { told > 0 }, "{policy}");
    }
}

/// Fails if a desired state kept up to date by patches differs from one built from scratch.
pub(super) fn check_patched(kept: &Desired, made: &Desired, context: &dyn Fn() -> String) {
    first("kept withheld", &kept.withheld, &made.withheld, context);
    first("kept passed over", &kept.passed_over, &made.passed_over, context);
    first("kept records", &kept.records, &made.records, context);
    first("kept covered", &kept.covered, &made.covered, context);
    first("kept certificates", &kept.certificates, &made.certificates, context);
    first("kept kept names", &kept.kept_names, &made.kept_names, context);
    first("kept policies", &kept.policies, &made.policies, context);
    first("kept diagnostics", &kept.diagnostics, &made.diagnostics, context);
}
