//! The full build of publication: one loop per stage over the functions that `incremental` calls for changed inputs.
//!
//! No rule is written here.

use std::collections::{BTreeMap, BTreeSet};

use super::certificates::{CertificateNameRequest, CertificateState, SecretDecision};
use super::desired_builder::DesiredBuilder;
use super::input::{ListenerInput, PublicationInput};
use super::listener_context::ListenerContexts;
use super::policy_status::PolicyStatusEntries;
use super::records::{self, NameDecision, RouteNameClaim};
use super::route_claims::{self, RouteClaims};
use super::selection::SelectedOwner;
use super::wildcards::{self, DnsTree};
use super::{Desired, PublicationSettings};
use crate::attachment::Topology;
use crate::model::{Key, ObjectRef, ShortVec, Str};
use crate::names::Hostname;
use crate::policy::Policies;
use crate::snapshot::Snapshot;

type RoutesClaims = BTreeMap<ObjectRef, RouteClaims>;
type NameDecisions = BTreeMap<Hostname, NameDecision>;

/// The desired state of the strict profile. `others` are names that exist for reasons other than routes.
pub(super) fn publish(
    snapshot: &Snapshot,
    topology: &Topology,
    settings: &PublicationSettings,
    others: &[Str],
) -> Desired {
    let policies = Policies::build(snapshot, topology);
    let base = PublicationInput { snapshot, topology, settings };
    let contexts = ListenerContexts::build(ListenerInput { base, policies: &policies });
    let routes = claim_names(base, &contexts);
    let names = decide_names(&routes);
    let covered = covered_names(&names, others);
    let secrets = request_names(&routes);
    let secrets = decide_secrets(&secrets, &routes, settings);

    let mut entries = PolicyStatusEntries::default();
    routes.values().for_each(|route| entries.add_route(route));
    names.values().for_each(|name| entries.add_name(name));
    secrets.iter().for_each(|(_, _, decision)| entries.add_secret(decision));
    let reports = entries.reports(&policies, |name| names.contains_key(name) && !covered.contains(name));

    let mut builder = DesiredBuilder::new(reports, policies.diagnostics());
    snapshot.gateways.values().for_each(|gateway| builder.owner(&SelectedOwner::gateway(gateway, settings)));
    snapshot.listener_sets.values().for_each(|set| builder.owner(&SelectedOwner::set(set, settings)));
    routes.values().for_each(|route| builder.route(route));
    names.iter().for_each(|(name, decision)| builder.name(name, decision, !covered.contains(name.as_str())));
    for (secret, state, decision) in &secrets {
        builder.secret(decision.certificate(secret, state.routes()), decision);
    }
    builder.finish()
}

/// The names that each route claims at the listeners it attaches to.
fn claim_names(base: PublicationInput<'_>, contexts: &ListenerContexts) -> RoutesClaims {
    let routes = base.topology.routes.iter();
    routes.map(|(object, state)| (object.clone(), route_claims::of_route(base, contexts, state))).collect()
}

/// The decision about each claimed name.
fn decide_names(routes: &RoutesClaims) -> NameDecisions {
    let mut claims: Vec<(&Hostname, RouteNameClaim<'_>)> = routes.values().flat_map(RouteNameClaim::all).collect();
    claims.sort_by_key(|(name, _)| *name);
    let decide = |same: &[(&Hostname, RouteNameClaim<'_>)]| {
        let name = same[0].0;
        let mut claims: ShortVec<RouteNameClaim<'_>> = same.iter().map(|(_, claim)| *claim).collect();
        (name.clone(), records::decide(name, &mut claims))
    };
    claims.chunk_by(|(a, _), (b, _)| a == b).map(decide).collect()
}

/// The names that need no records because a wildcard answers for them.
fn covered_names(names: &NameDecisions, others: &[Str]) -> BTreeSet<Str> {
    let coverable = || names.iter().filter(|(_, decision)| decision.is_coverable).map(|(name, _)| name);
    if coverable().next().is_none() {
        return BTreeSet::new();
    }
    let owners = names.iter().filter(|(_, decision)| !decision.is_coverable);
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
    settings: &PublicationSettings,
) -> Vec<(&'a Key, &'s CertificateState, SecretDecision)> {
    let decide = |(secret, state): (&&'a Key, &'s CertificateState)| {
        let requests = |route: &ObjectRef| -> Vec<CertificateNameRequest<'a>> {
            routes.get(route).map(|claims| claims.certificate_requests_for(secret)).unwrap_or_default()
        };
        (*secret, state, state.decide(settings.certificate_names, secret, requests))
    };
    secrets.iter().map(decide).collect()
}
