//! The objects and every decision about them, as of the engine's last application. Readers borrow it between two.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attachment::Topology;
use crate::external_dns;
use crate::lint;
use crate::model::{Key, Kind, ObjectRef, Str};
use crate::names::Hostname;
use crate::policy::{Policies, PolicyReport};
use crate::publication::settings::Profile;
use crate::publication::{
    Certificate, CertificateState, Desired, DesiredBuilder, ListenerContexts, NameDecision, PublicationSettings,
    Record, RouteClaims, SecretDecision, SelectedOwner,
};
use crate::snapshot::Snapshot;

/// The objects of one moment and everything that was decided about them.
#[derive(Default)]
pub struct World {
    pub(super) settings: Arc<PublicationSettings>,
    pub(super) snapshot: Snapshot,
    pub(super) topology: Topology,
    pub(super) policies: Policies,
    pub(super) contexts: ListenerContexts,
    pub(super) selected: BTreeMap<ObjectRef, SelectedOwner>,
    /// The claims of routes about which something is reported.
    pub(super) extras: BTreeMap<ObjectRef, Arc<RouteClaims>>,
    pub(super) names: BTreeMap<Hostname, NameDecision>,
    /// Names that a wildcard answers for.
    pub(super) covered: BTreeSet<Hostname>,
    pub(super) certificate_states: BTreeMap<Key, CertificateState>,
    pub(super) secrets: BTreeMap<Key, SecretDecision>,
    pub(super) reports: BTreeMap<ObjectRef, PolicyReport>,
    /// How many names each kind of route requests for.
    pub(super) kinds: BTreeMap<Kind, usize>,
    /// What external-dns would publish, where that is asked for.
    pub(super) external: Option<Arc<Desired>>,
}

impl World {
    /// The objects.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Who attaches to whom.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Objects and decisions, for those who tell people what is wrong.
    pub fn lint(&self) -> lint::LintContext<'_> {
        lint::LintContext { snapshot: &self.snapshot, topology: &self.topology }
    }

    /// The records of one name, those that a wildcard answers for left out.
    pub fn records(&self, name: &str) -> Vec<Record> {
        if let Some(desired) = &self.external {
            return desired.records.iter().filter(|record| &*record.name == name).cloned().collect();
        }
        match self.names.get_key_value(name) {
            Some((name, decision)) if !self.covered.contains(name) => decision.records(name).collect(),
            _ => Vec::new(),
        }
    }

    /// The kinds of routes that request for any records at all, in lower case, as a plan of a few names wants to know.
    pub fn kinds(&self) -> BTreeSet<String> {
        let lower = |kind: &Kind| kind.as_str().to_ascii_lowercase();
        if let Some(desired) = &self.external {
            return desired.records.iter().flat_map(|record| &record.routes).map(|route| lower(&route.kind)).collect();
        }
        self.kinds.keys().map(lower).collect()
    }

    /// The certificate of one Secret.
    pub fn certificate(&self, secret: &Key) -> Option<Certificate> {
        let (decision, state) = (self.secrets.get(secret)?, self.certificate_states.get(secret)?);
        Some(decision.certificate(secret, state.routes()))
    }

    /// What became of one policy.
    pub fn policy(&self, policy: &ObjectRef) -> Option<&PolicyReport> {
        self.reports.get(policy)
    }

    /// Everything that is to exist. Looks at every name; who handles changes asks for single names instead.
    pub fn desired(&self) -> Desired {
        if let Some(desired) = &self.external {
            return (**desired).clone();
        }
        let mut builder = DesiredBuilder::new(self.reports.values().cloned().collect(), self.policies.diagnostics());
        self.selected.values().for_each(|owner| builder.owner(owner));
        self.extras.values().for_each(|claims| builder.route(claims));
        for (name, decision) in &self.names {
            builder.name(name, decision, !self.covered.contains(name));
        }
        for (secret, decision) in &self.secrets {
            let routes = self.certificate_states.get(secret).into_iter().flat_map(CertificateState::routes);
            builder.secret(decision.certificate(secret, routes), decision);
        }
        builder.finish()
    }

    /// What external-dns would publish, or nothing where that is not asked for.
    pub(super) fn externally(&self) -> Option<Arc<Desired>> {
        let is_asked = self.settings.profile == Profile::ExternalDns;
        is_asked.then(|| Arc::new(external_dns::publish(&self.snapshot, &self.settings)))
    }
}

/// What one change came to. Who follows it looks only at what is named here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// How many routes are bound otherwise, or no longer.
    pub routes: usize,
    /// Gateways and ListenerSets that were judged anew, sorted.
    pub parents: Vec<ObjectRef>,
    /// Names whose records differ, sorted.
    pub names: Vec<Str>,
    /// Secrets whose certificates differ, sorted.
    pub certificates: Vec<Key>,
    /// Policies whose reports differ, sorted.
    pub policies: Vec<ObjectRef>,
    /// Routes that have other hostnames withheld, or for other reasons, sorted.
    pub withheld: Vec<ObjectRef>,
    /// Whether kept names, objects that are passed over or diagnostics may differ.
    pub notes: bool,
}

impl Delta {
    /// Whether nothing came of the change.
    pub fn is_empty(&self) -> bool {
        *self == Delta::default()
    }
}
