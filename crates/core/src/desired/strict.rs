//! The strict profile: every hostname that a listener and a route have in common, resolvable and certified.
//!
//! [`outlets`] has the listener's side of every question; [`claims`] walks a route through the gates of status, policy and
//! address; [`records`] gives a name to the claims that can share it; [`certificates`] unites names per Secret; [`why`]
//! says of every other hostname what stood in its way. Each of them decides about one thing, from values that are given;
//! this module asks them about everything, the engine only about what has changed. Only intersected hostnames, and
//! annotated ones inside a listener's, are ever published.

use std::collections::{BTreeMap, BTreeSet};

use super::wildcards::{self, Tree};
use super::{Desired, Record, Settings};
use crate::few::Few;
use crate::model::{Key, Kind, ObjectRef, Str};
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

use certificates::Ask;
pub(crate) use certificates::{Book as SecretBook, SecretDecision, decide as decide_secret};
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
    let contributions = contributions(base, &outlets);
    let wanted = wanted(&contributions);
    let names = decide_names(&wanted);
    let covered = covered(&names, others);
    let secrets = decide_secrets(settings, &outlets, &contributions, &wanted);
    drop(wanted);
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
        let first = records.len();
        records.extend(decision.records(name));
        sort_records(&mut records[first..]);
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
        let first = records.len();
        decision.into_records(name, records);
        sort_records(&mut records[first..]);
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

/// Puts the records of one name into their order.
fn sort_records(records: &mut [Record]) {
    if records.len() > 1 {
        records.sort_by(|a, b| a.rank().cmp(&b.rank()));
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

/// What every route brings in, in order.
fn contributions(base: Base<'_>, outlets: &Outlets) -> Vec<Contribution> {
    let mut memo = claims::Memo::default();
    let routes = &base.topology.routes;
    let mut contributions = Vec::with_capacity(routes.len());
    contributions.extend(routes.values().map(|route| claims::of_next_route(base, outlets, route, &mut memo)));
    contributions
}

/// A route wants a name, for itself or as a wildcard that is to stand for others.
struct Want<'a> {
    front: u128,
    name: &'a Hostname,
    /// The route, and where it stands among all.
    contribution: &'a Contribution,
    place: u32,
}

/// Everything that routes want, by name and then by route.
fn wanted(contributions: &[Contribution]) -> Vec<Want<'_>> {
    let mut wanted = Vec::with_capacity(contributions.len());
    for (place, contribution) in contributions.iter().enumerate() {
        let names = names_of(contribution);
        wanted.extend(names.map(|name| Want { front: front(name), name, contribution, place: place as u32 }));
    }
    wanted.sort_unstable_by(|a, b| {
        a.front.cmp(&b.front).then_with(|| a.name.cmp(b.name)).then_with(|| a.place.cmp(&b.place))
    });
    wanted
}

/// Decides about every name, in order.
fn decide_names<'a>(wanted: &[Want<'a>]) -> Vec<(&'a Hostname, Decision)> {
    let mut decided = Vec::with_capacity(wanted.len());
    let mut bids = Vec::new();
    let mut memo = records::Memo::default();
    for same in wanted.chunk_by(|a, b| a.front == b.front && a.name == b.name) {
        bids.clear();
        for routes in same.chunk_by(|a, b| a.place == b.place) {
            Bid::all(routes[0].contribution, routes[0].name, &mut bids);
        }
        decided.push((same[0].name, records::decide_next(same[0].name, &mut bids, &mut memo)));
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
fn decide_secrets(
    settings: &Settings,
    outlets: &Outlets,
    contributions: &[Contribution],
    wanted: &[Want<'_>],
) -> Vec<SecretDecision> {
    let secrets = Secrets::of(outlets);
    let mut drawers = secrets.drawers(wanted);
    let mut mixed: BTreeSet<u32> = BTreeSet::new();
    for (place, contribution) in contributions.iter().enumerate().filter(|(_, one)| one.has_wishes()) {
        for ask in contribution.wished(place as u32) {
            secrets.of_ask(&ask).iter().for_each(|secret| drawers[*secret as usize].push(ask));
            mixed.extend(secrets.of_ask(&ask));
        }
    }
    for secret in mixed {
        drawers[secret as usize].sort_by(|a, b| a.name.cmp(b.name));
    }
    let limit = settings.certificate_names;
    let asked = secrets.keys.iter().zip(drawers).filter(|(_, asks)| !asks.is_empty());
    asked.map(|(secret, asks)| decide_secret(limit, secret, &asks)).collect()
}

/// The Secrets that listeners name, by number.
struct Secrets<'a> {
    /// Sorted.
    keys: Vec<&'a Key>,
    /// The numbers of each listener's, by hall and slot.
    numbers: Vec<Vec<Few<u32>>>,
}

impl<'a> Secrets<'a> {
    fn of(outlets: &'a Outlets) -> Self {
        let keys: BTreeSet<&Key> = outlets.all().flat_map(|outlet| outlet.secrets()).collect();
        let keys: Vec<&Key> = keys.into_iter().collect();
        let mut numbers: Vec<Vec<Few<u32>>> = Vec::new();
        for outlet in outlets.all() {
            let (hall, slot) = (outlet.id.hall as usize, outlet.id.slot as usize);
            numbers.resize_with(numbers.len().max(hall + 1), Vec::new);
            let slots = &mut numbers[hall];
            slots.resize_with(slots.len().max(slot + 1), Few::default);
            slots[slot] = outlet.secrets().filter_map(|key| Some(keys.binary_search(&key).ok()? as u32)).collect();
        }
        Secrets { keys, numbers }
    }

    fn of_ask(&self, ask: &Ask<'_>) -> &[u32] {
        &self.numbers[ask.outlet.id.hall as usize][ask.outlet.id.slot as usize]
    }

    /// What is wanted in each of them by claims on names; those come in order, and so stay in order here.
    fn drawers<'w>(&self, wanted: &[Want<'w>]) -> Vec<Vec<Ask<'w>>> {
        let mut counts = vec![0; self.keys.len()];
        let asks = || wanted.iter().flat_map(Want::asks);
        asks().for_each(|ask| self.of_ask(&ask).iter().for_each(|secret| counts[*secret as usize] += 1));
        let mut drawers: Vec<Vec<Ask<'w>>> = counts.into_iter().map(Vec::with_capacity).collect();
        for ask in asks() {
            self.of_ask(&ask).iter().for_each(|secret| drawers[*secret as usize].push(ask));
        }
        drawers
    }
}

impl<'a> Want<'a> {
    /// The name in certificates, where it is not wanted only to stand for others.
    fn asks(&self) -> impl Iterator<Item = Ask<'a>> + use<'a> {
        let Want { name, contribution, place, .. } = *self;
        let own = contribution.names.iter().find(|known| std::ptr::eq(&known.name, name));
        own.into_iter().flat_map(move |own| contribution.certified(own, place))
    }
}
