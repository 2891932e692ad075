//! Collects the decisions about routes, names and Secrets into a [`Desired`]; decides nothing itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::certificates::SecretDecision;
use super::records::NameDecision;
use super::route_claims::RouteClaims;
use super::selection::SelectedOwner;
use super::{Certificate, Desired, KeptName};
use crate::diagnostic::Diagnostic;
use crate::names::Hostname;
use crate::policy::PolicyReport;

/// A [`Desired`] under construction.
pub(crate) struct DesiredBuilder {
    desired: Desired,
    /// Addresses of shared diagnostics that were already added, to add each once.
    added: BTreeSet<usize>,
    /// Whether records were added out of order.
    is_unsorted: bool,
}

impl DesiredBuilder {
    /// Starts with the reports and diagnostics of policies.
    pub(crate) fn new(policies: Vec<PolicyReport>, diagnostics: Vec<Diagnostic>) -> Self {
        let desired = Desired { policies, diagnostics, ..Desired::default() };
        DesiredBuilder { desired, added: BTreeSet::new(), is_unsorted: false }
    }

    /// Adds the exclusion and diagnostics of a Gateway or ListenerSet.
    pub(crate) fn owner(&mut self, selected: &SelectedOwner) {
        self.desired.passed_over.extend(selected.passed_over());
        self.desired.diagnostics.extend(selected.diagnostics.iter().cloned());
    }

    /// Adds what is reported about a route. `is_held` says whether another namespace holds a name that is kept.
    pub(crate) fn route(&mut self, route_claims: &RouteClaims, is_held: impl Fn(&KeptName) -> bool) {
        let Some(extras) = route_claims.extras() else { return };
        let desired = &mut self.desired;
        desired.withheld.extend(extras.withheld.iter().cloned());
        desired.passed_over.extend(extras.passed_over.iter().cloned());
        desired.diagnostics.extend(extras.diagnostics.iter().cloned());
        desired.kept_names.extend(extras.kept.iter().filter(|kept| !is_held(kept)).cloned());
        for shared in &extras.shared {
            if self.added.insert(Arc::as_ptr(shared).addr()) {
                desired.diagnostics.extend(shared.iter().cloned());
            }
        }
    }

    /// Adds the records of a name; names must be added in order.
    pub(crate) fn name(&mut self, name: &Hostname, decision: &NameDecision, is_owner: bool) {
        let records = if is_owner { &mut self.desired.records } else { &mut self.desired.covered };
        let first = records.len();
        records.extend(decision.records(name));
        records[first..].sort_by(|a, b| a.rank().cmp(&b.rank()));
        if let Some(extras) = decision.extras() {
            self.desired.withheld.extend(extras.withheld.iter().cloned());
        }
    }

    /// Adds the records of a wildcard at a name that it serves and that DNS does not answer with it.
    pub(crate) fn hidden(&mut self, name: &Hostname, wildcard: &NameDecision) {
        self.desired.records.extend(wildcard.hidden_records(name));
        self.is_unsorted = true;
    }

    /// Adds the certificate of a Secret.
    pub(crate) fn secret(&mut self, certificate: Certificate, decision: &SecretDecision) {
        self.desired.diagnostics.extend(decision.diagnostics.iter().cloned());
        if !decision.is_refused {
            self.desired.certificates.push(certificate);
        }
    }

    /// The desired state, sorted and without duplicate diagnostics.
    pub(crate) fn finish(self) -> Desired {
        let mut desired = self.desired;
        if self.is_unsorted {
            desired.records.sort_by(|a, b| a.rank().cmp(&b.rank()));
        }
        desired.sort();
        desired.kept_names.dedup();
        desired.withheld.dedup();
        desired.passed_over.dedup();
        desired.diagnostics.dedup();
        desired
    }
}
