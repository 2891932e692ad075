//! The strict profile: every hostname that a listener and a route have in common, resolvable and certified.
//!
//! [`claims`] walks the attached pairs of the judged tree through the gates of status, policy and address; [`records`] gives
//! each name to the claims that can share it, and lets a listener's wildcard stand for names where a policy allows that;
//! [`certificates`] unites names per Secret; [`why`] says of every other hostname what stood in its way. Only intersected
//! hostnames, and annotated ones inside a listener's, are ever published.

use std::collections::{BTreeMap, BTreeSet};

use super::{Desired, Settings};
use crate::model::{Key, Kind, ObjectRef, Str};
use crate::policy::report::{report, unprobed};
use crate::policy::{HostnameReport, HostnameState, Policies};
use crate::snapshot::Snapshot;
use crate::topology::Topology;

mod addresses;
mod certificates;
mod claims;
mod names;
mod records;
mod selection;
#[cfg(test)]
pub(crate) mod tests;
mod verdicts;
mod why;

/// What the stages look at.
#[derive(Clone, Copy)]
struct Context<'a> {
    snapshot: &'a Snapshot,
    topology: &'a Topology,
    settings: &'a Settings,
    policies: &'a Policies,
}

/// What became of hostnames, by policy.
#[derive(Default)]
struct Ledger(BTreeMap<ObjectRef, Vec<HostnameReport>>);

impl Ledger {
    fn add(&mut self, kind: Kind, policy: Option<&Key>, report: HostnameReport) {
        if let Some(key) = policy {
            self.0.entry(ObjectRef { kind, key: key.clone() }).or_default().push(report);
        }
    }

    fn take(&mut self, kind: Kind, key: &Key) -> Vec<HostnameReport> {
        self.0.remove(&ObjectRef { kind, key: key.clone() }).unwrap_or_default()
    }
}

/// Everything that ought to exist. `others` are names that exist for other reasons.
pub fn publish(snapshot: &Snapshot, topology: &Topology, settings: &Settings, others: &[Str]) -> Desired {
    let policies = Policies::build(snapshot, topology);
    let context = Context { snapshot, topology, settings, policies: &policies };
    let mut desired = Desired { diagnostics: policies.diagnostics(), ..Desired::default() };
    let mut ledger = Ledger::default();
    let walk = claims::collect(context, &mut desired, &mut ledger);
    records::build(context, walk.claims, others, &mut desired, &mut ledger);
    let notes = certificates::build(context, &walk.attached, &mut desired, &mut ledger);
    report_policies(&policies, ledger, &notes, &mut desired);
    desired.sort();
    desired.kept_names.dedup();
    desired.withheld.dedup();
    desired.passed_over.dedup();
    desired.diagnostics.dedup();
    desired
}

fn report_policies(policies: &Policies, mut ledger: Ledger, notes: &BTreeMap<Key, String>, desired: &mut Desired) {
    let owners: BTreeSet<Str> = desired.records.iter().map(|record| record.name.clone()).collect();
    let is_precise = |name: &Str| !name.starts_with('*') && owners.contains(name);
    for (key, state) in &policies.dns.states {
        let mut told = report(&policies.dns, key, ledger.take(Kind::DnsPolicy, key), "");
        let is_probed = |h: &HostnameReport| h.state == HostnameState::Served && is_precise(&h.hostname);
        if state.refused.is_none() && state.policy.health_check.is_some() && told.hostnames.iter().any(is_probed) {
            told.conditions.push(unprobed());
        }
        desired.policies.push(told);
    }
    for key in policies.tls.states.keys() {
        let note = notes.get(key).map_or("", |note| note);
        desired.policies.push(report(&policies.tls, key, ledger.take(Kind::TlsPolicy, key), note));
    }
}
