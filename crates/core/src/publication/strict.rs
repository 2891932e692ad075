//! The strict profile: every hostname that a listener and a route have in common, resolvable and certified.
//!
//! [`outlets`] has the listener's side of every question; [`claims`] walks a route through the gates of status, policy and
//! address; [`records`] gives a name to the claims that can share it; [`certificates`] unites names per Secret; [`why`]
//! says of every other hostname what stood in its way. Each of them decides about one thing, from values that are given;
//! [`scratch`] asks them about everything, the engine only about what has changed. Most routes have nothing to tell, and
//! [`lanes`] knows what they meet. Only intersected hostnames, and annotated ones inside a listener's, are ever published.

use std::collections::{BTreeMap, BTreeSet};

use super::{Desired, PublicationSettings, Record};
use crate::attachment::Topology;
use crate::model::{Key, Kind, ObjectRef, Str};
use crate::names::Hostname;
use crate::policy::status::{report, unprobed};
use crate::policy::{HostnameReport, HostnameState, Policies, PolicyReport};
use crate::snapshot::Snapshot;

use super::certificates;
pub(crate) use super::certificates::{Book as SecretBook, SecretDecision};
pub(crate) use super::listener_context::{HallOutlets, Outlets};
pub(crate) use super::records::{Bid, Decision, Rest as NameRest, decide as decide_name, names_of};
pub(crate) use super::route_claims::{Contribution, of_route};
pub use super::scratch::publish;
pub(crate) use super::selection::Selected;

/// What everybody looks at.
#[derive(Clone, Copy)]
pub(crate) struct Base<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) topology: &'a Topology,
    pub(crate) settings: &'a PublicationSettings,
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

pub(super) fn told(kind: Kind, policy: &Key, report: HostnameReport) -> Told {
    Told { policy: ObjectRef { kind, key: policy.clone() }, report }
}

/// Puts decisions together.
pub(crate) struct Assembly {
    pub(super) desired: Desired,
    /// Where the shared diagnostics that were told already are kept.
    pub(super) told: BTreeSet<usize>,
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
    pub(super) fn take_name(&mut self, name: &Hostname, decision: Decision, is_owner: bool) {
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
    pub(super) fn reports(&self, policies: &Policies, is_owner: impl Fn(&str) -> bool) -> Vec<PolicyReport> {
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
