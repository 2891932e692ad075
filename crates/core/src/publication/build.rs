//! The full build of publication: one loop per stage over the functions that `incremental` calls for changed inputs.
//!
//! No rule is written here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::certificates::{CertificateNameRequest, CertificateState, SecretDecision};
use super::desired_builder::DesiredBuilder;
use super::holders::{self, CertificateRefusals, HolderInput, ObservedNames, WildcardGuards};
use super::hostname_grants::HostnameGrants;
use super::input::{ListenerInput, PublicationInput};
use super::listener_context::ListenerContexts;
use super::policy_status::PolicyStatusEntries;
use super::records::{self, NameDecision, RouteNameClaim};
use super::route_claims::{self, RouteClaims};
use super::selection::SelectedOwner;
use super::wildcards::{self, DnsTree};
use super::{Desired, KeptName, PresentState, PublicationSettings, cname_loops};
use crate::attachment::Topology;
use crate::model::{Key, ObjectRef, ShortVec, Str};
use crate::names::Hostname;
use crate::policy::Policies;
use crate::snapshot::Snapshot;

type RoutesClaims = BTreeMap<ObjectRef, RouteClaims>;
type NameDecisions = BTreeMap<Hostname, NameDecision>;

/// The desired state of the strict profile.
pub(super) fn publish(
    snapshot: &Snapshot,
    topology: &Topology,
    settings: &PublicationSettings,
    beside: PresentState<'_>,
) -> Desired {
    let policies = Policies::build(snapshot, topology, &settings.providers);
    let grants = HostnameGrants::of(snapshot);
    let base = PublicationInput { snapshot, topology, settings, grants: &grants };
    let contexts = ListenerContexts::build(ListenerInput { base, policies: &policies });
    let routes = claim_names(base, &contexts);
    let grants = base.grant_rules();
    let (observed, health, providers) = (beside.observed, beside.health, &settings.providers);
    let holder_input = HolderInput { snapshot, observed, grants, health, providers };
    let (mut names, guards) = decide_names(&routes, holder_input);
    refuse_loops(&mut names, &routes, holder_input);
    let covered = covered_names(&names, beside.names);
    let hidden = hidden_names(&names, &covered, &routes, beside.names, base);
    let secrets = request_names(&routes);
    let secrets = decide_secrets(&secrets, &routes, base, (&names, &guards));

    let mut entries = PolicyStatusEntries::default();
    routes.values().for_each(|route| entries.add_route(route));
    names.values().for_each(|name| entries.add_name(name));
    secrets.iter().for_each(|(_, _, decision)| entries.add_secret(decision));
    let reports = entries.reports(&policies, |name| has_records(&names, name) && !covered.contains(name));

    let mut builder = DesiredBuilder::new(reports, policies.diagnostics());
    snapshot.gateways.values().for_each(|gateway| builder.owner(&SelectedOwner::gateway(gateway, settings)));
    snapshot.listener_sets.values().for_each(|set| builder.owner(&SelectedOwner::set(set, settings)));
    let is_held = |kept: &KeptName| holders::is_held(names.get(&*kept.hostname), &kept.secret);
    routes.values().for_each(|route| builder.route(route, is_held));
    names.iter().for_each(|(name, decision)| builder.name(name, decision, !covered.contains(name.as_str())));
    hidden.iter().for_each(|(name, wildcard)| builder.hidden(name, wildcard));
    for (secret, state, decision) in &secrets {
        builder.secret(decision.certificate(secret, state.routes()), decision);
    }
    builder.finish()
}

/// The names that Routes of several namespaces claim; all names if Routes may exist that could not be read.
pub(super) fn contested(
    snapshot: &Snapshot,
    topology: &Topology,
    settings: &PublicationSettings,
    has_unread_objects: bool,
) -> BTreeSet<Str> {
    let every = has_unread_objects || holders::may_miss_routes(snapshot);
    if !every && !holders::is_contested(snapshot.routes.keys().map(ObjectRef::namespace)) {
        return BTreeSet::new();
    }
    let policies = Policies::build(snapshot, topology, &settings.providers);
    let grants = HostnameGrants::of(snapshot);
    let base = PublicationInput { snapshot, topology, settings, grants: &grants };
    let contexts = ListenerContexts::build(ListenerInput { base, policies: &policies });
    let routes = claim_names(base, &contexts);
    let mut claims: Vec<_> = routes.values().flat_map(RouteNameClaim::all).collect();
    claims.sort_by_key(|(name, _)| *name);
    let is_wanted = |same: &&[(&Hostname, RouteNameClaim<'_>)]| {
        grants.covering(same[0].0).is_none() && holders::is_contested(same.iter().map(|(_, claim)| claim.namespace()))
    };
    let chunks = claims.chunk_by(|(a, _), (b, _)| a == b).filter(|same| every || is_wanted(same));
    ObservedNames::deciding(chunks.map(|same| same[0].0.text().clone()))
}

/// The names that each route claims at the listeners it attaches to.
fn claim_names(base: PublicationInput<'_>, contexts: &ListenerContexts) -> RoutesClaims {
    let routes = base.topology.routes.iter();
    routes.map(|(object, state)| (object.clone(), route_claims::of_route(base, contexts, state))).collect()
}

/// The decision about each claimed name, and what guards the wildcards of certificates.
fn decide_names(routes: &RoutesClaims, input: HolderInput<'_>) -> (NameDecisions, WildcardGuards) {
    let mut claims: Vec<(&Hostname, RouteNameClaim<'_>)> = routes.values().flat_map(RouteNameClaim::all).collect();
    claims.sort_by_key(|(name, _)| *name);
    let mut guards = WildcardGuards::default();
    let certified = claims.iter().filter(|(name, claim)| name.is_wildcard() && claim.is_certified());
    certified.for_each(|(name, _)| _ = guards.watch(name, true));
    let mut names = NameDecisions::new();
    for same in claims.chunk_by(|(a, _), (b, _)| a == b) {
        let name = same[0].0;
        let mut claims: ShortVec<RouteNameClaim<'_>> = same.iter().map(|(_, claim)| *claim).collect();
        let decision = records::decide(name, &mut claims, input);
        if guards.is_watched(name) {
            guards.set(name, holders::admitted(name, decision.as_ref(), &claims, input.grants));
        }
        names.extend(decision.map(|decision| (name.clone(), decision)));
    }
    (names, guards)
}

fn has_records(names: &NameDecisions, name: &str) -> bool {
    names.get(name).is_some_and(NameDecision::has_records)
}

/// Decides again the names whose CNAME would lead back to themselves.
fn refuse_loops(names: &mut NameDecisions, routes: &RoutesClaims, input: HolderInput<'_>) {
    let targets: BTreeSet<&Str> = names.values().flat_map(NameDecision::cname_targets).collect();
    for looping in cname_loops::find(targets.iter().copied(), |name| names.get(name)) {
        let all = routes.values().flat_map(RouteNameClaim::all);
        let mut claims: Vec<_> = all.filter(|(name, _)| name.as_str() == looping).map(|(_, claim)| claim).collect();
        if let Some((name, _)) = names.get_key_value(&*looping) {
            let name = name.clone();
            names.extend(records::refuse_loop(&name, &mut claims, input).map(|decision| (name, decision)));
        }
    }
}

/// The names that a routed wildcard serves and DNS does not answer with it, with the decision about that wildcard.
fn hidden_names<'n>(
    names: &'n NameDecisions,
    covered: &BTreeSet<Str>,
    routes: &RoutesClaims,
    others: &[Str],
    base: PublicationInput<'_>,
) -> BTreeMap<Hostname, &'n NameDecision> {
    let owners = || names.iter().filter(|(name, decision)| decision.has_records() && !covered.contains(name.as_str()));
    if !owners().any(|(name, decision)| name.is_wildcard() && decision.is_routed()) {
        return BTreeMap::new();
    }
    let blocked: BTreeSet<&Hostname> = routes.values().flat_map(RouteClaims::blocked).collect();
    let wildcard = |base: &str| {
        let name = format!("*.{base}");
        names.get(&*name).filter(|decision| decision.has_records() && !covered.contains(&*name))
    };
    let is_free = |name: &Hostname| {
        !names.contains_key(name) && !blocked.contains(name) && base.settings.domains.admits(name.as_str())
    };
    let existing = owners().map(|(name, _)| name.as_str()).chain(others.iter().map(|name| &**name));
    let (mut hidden, mut seen) = (BTreeMap::new(), HashSet::new());
    for name in existing.flat_map(|name| std::iter::once(name).chain(wildcards::above(name))) {
        if !seen.insert(name) {
            continue;
        }
        let Some((decision, served)) = wildcards::hidden(name, wildcard) else { continue };
        if decision.is_routed() {
            let may_have = |name: &Hostname| decision.may_serve_hidden(name, base.grant_rules());
            let served = served.into_iter().filter(|name| is_free(name) && may_have(name));
            hidden.extend(served.map(|name| (name, decision)));
        }
    }
    hidden
}

/// The names that need no records because a wildcard answers for them.
fn covered_names(names: &NameDecisions, others: &[Str]) -> BTreeSet<Str> {
    let coverable = || names.iter().filter(|(_, decision)| decision.is_coverable).map(|(name, _)| name);
    if coverable().next().is_none() {
        return BTreeSet::new();
    }
    let owners = names.iter().filter(|(_, decision)| decision.has_records() && !decision.is_coverable);
    let mut tree = DnsTree::of(owners.map(|(name, _)| name.as_str()));
    others.iter().for_each(|name| tree.insert_existing(name));
    let has_same_answer = |name: &str, owner: &str| match (names.get(name), names.get(owner)) {
        (Some(wanted), Some(given)) => wanted.is_same_answer(given),
        _ => false,
    };
    let explicit = wildcards::explicit(&mut tree, coverable().map(Hostname::as_str), has_same_answer);
    let covered = coverable().filter(|name| !explicit.contains(name.as_str()));
    covered.map(|name| name.text().clone()).collect()
}

/// The names that routes request in the certificate of each Secret.
fn request_names(routes: &RoutesClaims) -> BTreeMap<&Key, CertificateState> {
    let mut secrets: BTreeMap<&Key, CertificateState> = BTreeMap::new();
    for route in routes.values() {
        for request in route.certificate_requests() {
            for secret in request.secrets() {
                secrets.entry(secret).or_default().add(&route.route, &request);
            }
        }
    }
    secrets
}

/// The certificate of each Secret.
fn decide_secrets<'s, 'a>(
    secrets: &'s BTreeMap<&'a Key, CertificateState>,
    routes: &'a RoutesClaims,
    base: PublicationInput<'_>,
    (names, guards): (&NameDecisions, &WildcardGuards),
) -> Vec<(&'a Key, &'s CertificateState, SecretDecision)> {
    let is_contested = names.values().any(|decision| decision.holder().is_some());
    let decide = |(secret, state): (&&'a Key, &'s CertificateState)| {
        let requests = |route: &ObjectRef| -> Vec<CertificateNameRequest<'a>> {
            routes.get(route).map(|claims| claims.certificate_requests_for(secret)).unwrap_or_default()
        };
        let names = is_contested.then_some(names);
        let refusals = CertificateRefusals { secret, names, guards, grants: base.grant_rules() };
        (*secret, state, state.decide(base.settings.certificate_names, refusals, requests))
    };
    secrets.iter().map(decide).collect()
}
