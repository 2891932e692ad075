//! The objects and every decision about them, as of the engine's last application of changes. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::hidden::Hidden;
use crate::attachment::Topology;
use crate::external_dns;
use crate::lint;
use crate::model::{Key, Kind, ObjectRef, Str};
use crate::names::Hostname;
use crate::policy::{Policies, PolicyReport};
use crate::publication::settings::Profile;
use crate::publication::{
    Certificate, CertificateState, Desired, DesiredBuilder, KeptName, ListenerContexts, NameDecision,
    PublicationSettings, Record, RouteClaims, SecretDecision, SelectedOwner, is_held,
};
use crate::snapshot::Snapshot;

/// A snapshot and everything that was decided about it.
#[derive(Default)]
pub struct World {
    pub(super) settings: Arc<PublicationSettings>,
    pub(super) snapshot: Snapshot,
    pub(super) topology: Topology,
    pub(super) policies: Policies,
    pub(super) contexts: ListenerContexts,
    pub(super) selected: BTreeMap<ObjectRef, SelectedOwner>,
    /// The claims of routes that have something to report.
    pub(super) extras: BTreeMap<ObjectRef, Arc<RouteClaims>>,
    pub(super) names: BTreeMap<Hostname, NameDecision>,
    /// Names that Routes of several namespaces claim, with or without a holder.
    pub(super) contested: BTreeSet<Hostname>,
    /// Names that a wildcard answers for.
    pub(super) covered: BTreeSet<Hostname>,
    /// Names that a routed wildcard serves and DNS does not answer with it.
    pub(super) hidden: Hidden,
    pub(super) certificate_states: BTreeMap<Key, CertificateState>,
    pub(super) secrets: BTreeMap<Key, SecretDecision>,
    pub(super) reports: BTreeMap<ObjectRef, PolicyReport>,
    /// Number of names per kind of route that requests them.
    pub(super) kinds: BTreeMap<Kind, usize>,
    /// The result of the external-dns profile, if that is selected.
    pub(super) external: Option<Arc<Desired>>,
}

impl World {
    /// The objects.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The evaluated Gateways, listeners and routes.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The input of lint rules.
    pub fn lint(&self) -> lint::LintContext<'_> {
        lint::LintContext { snapshot: &self.snapshot, topology: &self.topology }
    }

    /// The records of one name, without those that a wildcard makes unnecessary.
    pub fn records(&self, name: &str) -> Vec<Record> {
        if let Some(desired) = &self.external {
            return desired.records.iter().filter(|record| &*record.name == name).cloned().collect();
        }
        match self.names.get_key_value(name) {
            Some((name, decision)) if !self.covered.contains(name) => decision.records(name).collect(),
            _ => self.hidden_records(name),
        }
    }

    /// The records of a name that is hidden from a wildcard.
    pub(super) fn hidden_records(&self, name: &str) -> Vec<Record> {
        let Some((name, wildcard)) = self.hidden.get_key_value(name) else { return Vec::new() };
        self.names.get(wildcard).into_iter().flat_map(|decision| decision.hidden_records(name)).collect()
    }

    /// The kinds of routes that request records, in lower case; a plan of a few names needs them.
    pub fn kinds(&self) -> BTreeSet<String> {
        let lower = |kind: &Kind| kind.as_str().to_ascii_lowercase();
        if let Some(desired) = &self.external {
            return desired.records.iter().flat_map(|record| &record.routes).map(|route| lower(&route.kind)).collect();
        }
        self.kinds.keys().map(lower).collect()
    }

    /// Whether a name has records of its own or a wildcard's.
    pub(super) fn has_records(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(NameDecision::has_records)
    }

    /// Whether another namespace holds a name that a certificate would keep.
    pub(super) fn is_held(&self, kept: &KeptName) -> bool {
        is_held(self.names.get(&*kept.hostname), &kept.secret)
    }

    /// The certificate of one Secret.
    pub fn certificate(&self, secret: &Key) -> Option<Certificate> {
        let decision = self.secrets.get(secret).filter(|decision| !decision.is_refused)?;
        let state = self.certificate_states.get(secret)?;
        Some(decision.certificate(secret, state.routes()))
    }

    /// The report of one policy.
    pub fn policy(&self, policy: &ObjectRef) -> Option<&PolicyReport> {
        self.reports.get(policy)
    }

    /// The whole desired state. Visits every name; code that processes deltas uses
    /// [`Engine::patch`](super::Engine::patch) instead.
    pub fn desired(&self) -> Desired {
        if let Some(desired) = &self.external {
            return (**desired).clone();
        }
        let mut builder = DesiredBuilder::new(self.reports.values().cloned().collect(), self.policies.diagnostics());
        self.selected.values().for_each(|owner| builder.owner(owner));
        self.extras.values().for_each(|claims| builder.route(claims, |kept| self.is_held(kept)));
        for (name, decision) in &self.names {
            builder.name(name, decision, !self.covered.contains(name));
        }
        for (name, wildcard) in &self.hidden {
            self.names.get(wildcard).into_iter().for_each(|decision| builder.hidden(name, decision));
        }
        for (secret, decision) in &self.secrets {
            let routes = self.certificate_states.get(secret).into_iter().flat_map(CertificateState::routes);
            builder.secret(decision.certificate(secret, routes), decision);
        }
        builder.finish()
    }

    /// The result of the external-dns profile; `None` with any other profile.
    pub(super) fn externally(&self) -> Option<Arc<Desired>> {
        let is_asked = self.settings.profile == Profile::ExternalDns;
        is_asked.then(|| Arc::new(external_dns::publish(&self.snapshot, &self.settings)))
    }
}

/// The results that an application of changes changed. Everything not listed is unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Number of routes whose attachment changed, including deleted ones.
    pub routes: usize,
    /// Gateways and ListenerSets that were evaluated with a different result, sorted.
    pub parents: Vec<ObjectRef>,
    /// Names whose records changed, sorted.
    pub names: Vec<Str>,
    /// Secrets whose certificates changed, sorted.
    pub certificates: Vec<Key>,
    /// Policies whose reports changed, sorted.
    pub policies: Vec<ObjectRef>,
    /// Routes whose withheld hostnames or their reasons changed, sorted.
    pub withheld: Vec<ObjectRef>,
    /// Whether kept names, excluded objects or diagnostics may have changed.
    pub notes: bool,
}

impl Delta {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Delta::default()
    }
}
