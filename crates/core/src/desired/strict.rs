//! The strict profile: every hostname that a listener and a route have in common, resolvable and certified.
//!
//! [`outlets`] has the listener's side of every question; [`claims`] walks a route through the gates of status, policy and
//! address; [`records`] gives a name to the claims that can share it; [`certificates`] unites names per Secret; [`why`]
//! says of every other hostname what stood in its way. Each of them decides about one thing, from values that are given;
//! this module asks them about everything, the engine only about what has changed. Only intersected hostnames, and
//! annotated ones inside a listener's, are ever published.

use std::collections::{BTreeMap, BTreeSet};

use super::wildcards::{self, Tree};
use super::{Desired, Settings};
use crate::model::{Key, Kind, ObjectRef, Route, Str};
use crate::names::Hostname;
use crate::policy::report::{report, unprobed};
use crate::policy::{HostnameReport, HostnameState, Policies, PolicyReport};
use crate::snapshot::Snapshot;
use crate::topology::Topology;

mod addresses;
mod certificates;
mod claims;
mod names;
mod outlets;
mod records;
mod selection;
#[cfg(test)]
pub(crate) mod tests;
mod verdicts;
mod why;

pub(crate) use certificates::{Book as SecretBook, SecretDecision, Wish, decide as decide_secret};
pub(crate) use claims::{Contribution, of_route};
pub(crate) use outlets::{HallOutlets, Outlets};
pub(crate) use records::{Bid, Decision, Rest as NameRest, decide as decide_name, names_of};
pub(crate) use selection::Selected;

/// What everybody looks at.
#[derive(Clone, Copy)]
pub(crate) struct Base<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) topology: &'a Topology,
    pub(crate) settings: &'a Settings,
}

/// What the listener's side looks at.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) base: Base<'a>,
    pub(crate) policies: &'a Policies,
}

/// What a policy is told about a hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// Which policy.
    pub(crate) policy: ObjectRef,
    /// What became of the hostname.
    pub(crate) report: HostnameReport,
}

fn told(kind: Kind, policy: &Key, report: HostnameReport) -> Told {
    Told { policy: ObjectRef { kind, key: policy.clone() }, report }
}

/// Everything that ought to exist. `others` are names that exist for other reasons.
pub fn publish(snapshot: &Snapshot, topology: &Topology, settings: &Settings, others: &[Str]) -> Desired {
    let policies = Policies::build(snapshot, topology);
    let base = Base { snapshot, topology, settings };
    let outlets = Outlets::of(Context { base, policies: &policies });
    let contributions: Vec<Contribution> =
        topology.routes.values().map(|route| of_route(base, &outlets, route)).collect();
    let names = decide_names(&contributions);
    let covered = covered(&names, others);
    let secrets = decide_secrets(settings, &contributions);
    let mut ledger = Ledger::default();
    contributions.iter().for_each(|contribution| ledger.add_route(contribution));
    names.iter().for_each(|(_, decision)| ledger.add_name(decision));
    secrets.iter().for_each(|secret| ledger.add_secret(secret));
    let mut desired = Desired { diagnostics: policies.diagnostics(), ..Desired::default() };
    let is_owner = |name: &str| find(&names, name).is_some() && !covered.contains(name);
    desired.policies = ledger.reports(&policies, is_owner);
    let mut assembly = Assembly { desired, told: BTreeSet::new() };
    for gateway in snapshot.gateways.values() {
        assembly.selected(&Selected::gateway(gateway, settings));
    }
    for set in snapshot.listener_sets.values() {
        assembly.selected(&Selected::set(set, settings));
    }
    contributions.iter().for_each(|contribution| assembly.route(contribution));
    let covered: BTreeSet<Str> = covered.into_iter().map(Str::from).collect();
    assembly.desired.records.reserve(names.len());
    for (name, decision) in names {
        assembly.take_name(name, decision, covered.is_empty() || !covered.contains(name.as_str()));
    }
    secrets.into_iter().for_each(|secret| assembly.secret(secret));
    assembly.finish()
}

/// Puts decisions together.
pub(crate) struct Assembly {
    desired: Desired,
    /// Where the shared diagnostics that were told already are kept.
    told: BTreeSet<usize>,
}

impl Assembly {
    /// Begins with what is known of policies.
    pub(crate) fn new(policies: Vec<PolicyReport>, diagnostics: Vec<crate::diagnostic::Diagnostic>) -> Self {
        let desired = Desired { policies, diagnostics, ..Desired::default() };
        Assembly { desired, told: BTreeSet::new() }
    }

    /// Adds a Gateway or ListenerSet as the settings see it.
    pub(crate) fn selected(&mut self, selected: &Selected) {
        self.desired.passed_over.extend(selected.passed_over());
        self.desired.diagnostics.extend(selected.diagnostics.iter().cloned());
    }

    /// Adds what one route brings in.
    pub(crate) fn route(&mut self, contribution: &Contribution) {
        let Some(rest) = contribution.rest() else { return };
        let desired = &mut self.desired;
        desired.withheld.extend(rest.withheld.iter().cloned());
        desired.passed_over.extend(rest.passed_over.iter().cloned());
        desired.diagnostics.extend(rest.diagnostics.iter().cloned());
        desired.kept_names.extend(rest.kept.iter().cloned());
        for shared in &rest.shared {
            if self.told.insert(std::sync::Arc::as_ptr(shared).addr()) {
                desired.diagnostics.extend(shared.iter().cloned());
            }
        }
    }

    /// Adds the records of a name; names come in order.
    pub(crate) fn name(&mut self, name: &Hostname, decision: &Decision, is_owner: bool) {
        let records = if is_owner { &mut self.desired.records } else { &mut self.desired.covered };
        records.extend(decision.records(name));
        if let Some(rest) = decision.rest() {
            self.desired.withheld.extend(rest.withheld.iter().cloned());
        }
    }

    /// The same, where the decision is not needed any more.
    fn take_name(&mut self, name: &Hostname, decision: Decision, is_owner: bool) {
        if let Some(rest) = decision.rest() {
            self.desired.withheld.extend(rest.withheld.iter().cloned());
        }
        let records = if is_owner { &mut self.desired.records } else { &mut self.desired.covered };
        decision.into_records(name, records);
    }

    /// Adds a certificate.
    pub(crate) fn secret(&mut self, secret: SecretDecision) {
        self.desired.diagnostics.extend(secret.diagnostics);
        self.desired.certificates.push(secret.certificate);
    }

    /// Everything in its order, each once.
    pub(crate) fn finish(self) -> Desired {
        let mut desired = self.desired;
        desired.sort();
        desired.kept_names.dedup();
        desired.withheld.dedup();
        desired.passed_over.dedup();
        desired.diagnostics.dedup();
        desired
    }
}

/// What became of hostnames, by policy.
#[derive(Default)]
pub(crate) struct Ledger<'a> {
    told: BTreeMap<&'a ObjectRef, Vec<&'a HostnameReport>>,
    /// Wildcards that a TLSPolicy allows by saying nothing.
    notes: BTreeMap<&'a Key, BTreeSet<&'a Str>>,
}

impl<'a> Ledger<'a> {
    /// Adds what one route tells.
    pub(crate) fn add_route(&mut self, contribution: &'a Contribution) {
        contribution.rest().into_iter().flat_map(|rest| &rest.told).for_each(|told| self.add(told));
    }

    /// Adds what one name tells.
    pub(crate) fn add_name(&mut self, decision: &'a Decision) {
        decision.rest().into_iter().flat_map(|rest| &rest.told).for_each(|told| self.add(told));
    }

    /// Adds what one Secret tells.
    pub(crate) fn add_secret(&mut self, secret: &'a SecretDecision) {
        secret.told.iter().for_each(|told| self.add(told));
        for (policy, wildcards) in &secret.notes {
            self.notes.entry(policy).or_default().extend(wildcards);
        }
    }

    /// The reports on all policies.
    fn reports(&self, policies: &Policies, is_owner: impl Fn(&str) -> bool) -> Vec<PolicyReport> {
        let dns = policies.dns.states.keys().map(|key| self.dns_report(policies, key, &is_owner));
        let tls = policies.tls.states.keys().map(|key| self.tls_report(policies, key));
        dns.chain(tls).collect()
    }

    /// The report on a DNSPolicy. `is_owner` says whether a name has records of its own.
    pub(crate) fn dns_report(&self, policies: &Policies, key: &Key, is_owner: impl Fn(&str) -> bool) -> PolicyReport {
        let mut told = report(&policies.dns, key, self.of(Kind::DnsPolicy, key), "");
        let Some(state) = policies.dns.states.get(key) else { return told };
        let is_precise = |name: &Str| !name.starts_with('*') && is_owner(name);
        let is_probed = |h: &HostnameReport| h.state == HostnameState::Served && is_precise(&h.hostname);
        if state.refused.is_none() && state.policy.health_check.is_some() && told.hostnames.iter().any(is_probed) {
            told.conditions.push(unprobed());
        }
        told
    }

    /// The report on a TLSPolicy.
    pub(crate) fn tls_report(&self, policies: &Policies, key: &Key) -> PolicyReport {
        let note = self.notes.get(key).map(certificates::note).unwrap_or_default();
        report(&policies.tls, key, self.of(Kind::TlsPolicy, key), &note)
    }

    fn add(&mut self, told: &'a Told) {
        self.told.entry(&told.policy).or_default().push(&told.report);
    }

    fn of(&self, kind: Kind, key: &Key) -> Vec<HostnameReport> {
        let policy = ObjectRef { kind, key: key.clone() };
        self.told.get(&policy).into_iter().flatten().map(|report| (*report).clone()).collect()
    }
}

/// Decides about every name, in order.
fn decide_names(contributions: &[Contribution]) -> Vec<(&Hostname, Decision)> {
    let wanted = contributions.iter().flat_map(|c| names_of(c).map(move |name| (front(name), name, c)));
    let mut wanted: Vec<(u128, &Hostname, &Contribution)> = wanted.collect();
    let place = |contribution: &Contribution| std::ptr::from_ref(contribution).addr();
    wanted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(b.1)).then_with(|| place(a.2).cmp(&place(b.2))));
    let mut decided = Vec::with_capacity(wanted.len());
    let mut bids = Vec::new();
    for same in wanted.chunk_by(|a, b| a.0 == b.0 && a.1 == b.1) {
        bids.clear();
        let mut last: Option<&Contribution> = None;
        for (_, name, contribution) in same {
            if !last.is_some_and(|last| std::ptr::eq(last, *contribution)) {
                Bid::all(contribution, name, &mut bids);
            }
            last = Some(contribution);
        }
        decided.push((same[0].1, decide_name(same[0].1, &mut bids)));
    }
    decided
}

/// The first bytes of a name as a number: names that differ there are ordered by it.
fn front(name: &Hostname) -> u128 {
    let bytes = name.as_str().as_bytes();
    let mut front = [0; 16];
    let shown = bytes.len().min(16);
    front[..shown].copy_from_slice(&bytes[..shown]);
    u128::from_be_bytes(front)
}

fn find<'a>(names: &'a [(&Hostname, Decision)], name: &str) -> Option<&'a Decision> {
    let place = names.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
    Some(&names[place].1)
}

/// The names that need no records of their own, because a wildcard answers for them.
fn covered<'a>(names: &'a [(&Hostname, Decision)], others: &'a [Str]) -> BTreeSet<&'a str> {
    let coverable = || names.iter().filter(|(_, decision)| decision.is_coverable).map(|(name, _)| name.as_str());
    if coverable().next().is_none() {
        return BTreeSet::new();
    }
    let owners = names.iter().filter(|(_, decision)| !decision.is_coverable).map(|(name, _)| name.as_str());
    let mut tree = Tree::of(owners);
    others.iter().for_each(|name| tree.insert_existing(name));
    let suits = |name: &str, owner: &str| match (find(names, name), find(names, owner)) {
        (Some(wanted), Some(given)) => wanted.is_same_answer(given),
        _ => false,
    };
    let explicit = wildcards::explicit(&mut tree, coverable(), suits);
    coverable().filter(|name| !explicit.contains(name)).collect()
}

/// Decides about every Secret, in order.
fn decide_secrets(settings: &Settings, contributions: &[Contribution]) -> Vec<SecretDecision> {
    let mut by_secret: BTreeMap<&Key, Vec<(&Route, &Wish)>> = BTreeMap::new();
    for contribution in contributions {
        for wish in contribution.rest().into_iter().flat_map(|rest| &rest.wishes) {
            for secret in wish.secrets() {
                by_secret.entry(secret).or_default().push((&contribution.route, wish));
            }
        }
    }
    let limit = settings.certificate_names;
    by_secret.into_iter().map(|(secret, wishes)| decide_secret(limit, secret, &wishes)).collect()
}
