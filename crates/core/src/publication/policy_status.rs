//! The entries of policy statuses, from routes, names and Secrets, and the reports made of them.
//!
//! Never decides the state of a hostname; it collects what other stages decided.

use std::collections::{BTreeMap, BTreeSet};

use super::certificates::{SecretDecision, unset_wildcards_note};
use super::records::NameDecision;
use super::route_claims::RouteClaims;
use crate::health::{self, AddressReport};
use crate::model::{Key, Kind, ObjectRef, Str};
use crate::policy::status::report;
use crate::policy::{HostnameReport, HostnameState, Policies, PolicyReport};

/// One hostname's entry in the status of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyStatusEntry {
    /// Which policy.
    pub(crate) policy: ObjectRef,
    /// The state of the hostname.
    pub(crate) report: HostnameReport,
}

/// An entry for a policy of this kind.
pub(super) fn policy_entry(kind: Kind, policy: &Key, report: HostnameReport) -> PolicyStatusEntry {
    PolicyStatusEntry { policy: ObjectRef { kind, key: policy.clone() }, report }
}

/// Entries by policy.
#[derive(Default)]
pub(crate) struct PolicyStatusEntries<'a> {
    reports: BTreeMap<&'a ObjectRef, Vec<&'a HostnameReport>>,
    /// Addresses that are probed, by the DNSPolicy that says so.
    addresses: BTreeMap<&'a Key, Vec<&'a AddressReport>>,
    /// Wildcards by the TLSPolicy that allows them by leaving `allowWildcardHosts` unset.
    unset_wildcards: BTreeMap<&'a Key, BTreeSet<&'a Str>>,
}

impl<'a> PolicyStatusEntries<'a> {
    /// Adds the entries of a route.
    pub(crate) fn add_route(&mut self, route_claims: &'a RouteClaims) {
        let extras = route_claims.extras();
        extras.into_iter().flat_map(|extras| &extras.policy_entries).for_each(|entry| self.add(entry));
    }

    /// Adds the entries of a name.
    pub(crate) fn add_name(&mut self, decision: &'a NameDecision) {
        let Some(extras) = decision.extras() else { return };
        extras.policy_entries.iter().for_each(|entry| self.add(entry));
        for (policy, address) in &extras.addresses {
            self.addresses.entry(policy).or_default().push(address);
        }
    }

    /// Adds the entries of a Secret.
    pub(crate) fn add_secret(&mut self, secret: &'a SecretDecision) {
        secret.policy_entries.iter().for_each(|entry| self.add(entry));
        for (policy, wildcards) in &secret.notes {
            self.unset_wildcards.entry(policy).or_default().extend(wildcards);
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
        let mut made = report(&policies.dns, key, self.of(Kind::DnsPolicy, key), "");
        let Some(state) = policies.dns.states.get(key) else { return made };
        if state.refused.is_some() || state.policy.health_check.is_none() {
            return made;
        }
        let is_precise = |name: &Str| !name.starts_with('*') && is_owner(name);
        let addresses = self.addresses.get(key).into_iter().flatten().filter(|address| is_precise(&address.hostname));
        made.addresses = addresses.map(|address| (*address).clone()).collect();
        made.addresses.sort();
        let served = made.hostnames.iter().filter(|report| report.state == HostnameState::Served);
        let mut unprobed: Vec<&Str> = served.map(|report| &report.hostname).filter(|name| !is_precise(name)).collect();
        unprobed.dedup();
        made.conditions.push(health::condition(&made.addresses, &unprobed));
        made
    }

    /// The report on a TLSPolicy.
    pub(crate) fn tls_report(&self, policies: &Policies, key: &Key) -> PolicyReport {
        let note = self.unset_wildcards.get(key).map(unset_wildcards_note).unwrap_or_default();
        report(&policies.tls, key, self.of(Kind::TlsPolicy, key), &note)
    }

    fn add(&mut self, entry: &'a PolicyStatusEntry) {
        self.reports.entry(&entry.policy).or_default().push(&entry.report);
    }

    fn of(&self, kind: Kind, key: &Key) -> Vec<HostnameReport> {
        let policy = ObjectRef { kind, key: key.clone() };
        self.reports.get(&policy).into_iter().flatten().map(|report| (*report).clone()).collect()
    }
}
