//! What readers get: one moment, complete and unchanging, while the engine makes the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::named::Named;
use crate::attachment::Topology;
use crate::external_dns;
use crate::lint;
use crate::model::{Key, Kind, ObjectRef, Str};
use crate::names::Hostname;
use crate::policy::{Policies, PolicyReport};
use crate::publication::settings::Profile;
use crate::publication::strict::{Assembly, Contribution, Outlets, SecretDecision, Selected};
use crate::publication::{Certificate, Desired, PublicationSettings, Record};
use crate::snapshot::Snapshot;
use crate::table::Table;

/// The objects of one moment and everything that was decided about them. A copy costs next to nothing.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub(super) settings: Arc<PublicationSettings>,
    pub(super) snapshot: Snapshot,
    pub(super) topology: Topology,
    pub(super) policies: Arc<Policies>,
    pub(super) outlets: Outlets,
    pub(super) selected: Table<ObjectRef, Arc<Selected>>,
    /// What routes bring in, of those that have more to tell than their names.
    pub(super) contributions: Table<ObjectRef, Arc<Contribution>>,
    pub(super) names: Table<Hostname, Named>,
    /// Names that a wildcard answers for.
    pub(super) covered: Table<Hostname, ()>,
    pub(super) secrets: Table<Key, Arc<SecretDecision>>,
    pub(super) reports: Table<ObjectRef, Arc<PolicyReport>>,
    /// How many names each kind of route asks for.
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
            Some((name, named)) if !self.covered.contains_key(name) => named.decision(name).records(name).collect(),
            _ => Vec::new(),
        }
    }

    /// The kinds of routes that ask for any records at all, in lower case, as a plan of a few names wants to know.
    pub fn kinds(&self) -> BTreeSet<String> {
        let lower = |kind: &Kind| kind.as_str().to_ascii_lowercase();
        if let Some(desired) = &self.external {
            return desired.records.iter().flat_map(|record| &record.routes).map(|route| lower(&route.kind)).collect();
        }
        self.kinds.keys().map(lower).collect()
    }

    /// The certificate of one Secret.
    pub fn certificate(&self, secret: &Key) -> Option<&Certificate> {
        self.secrets.get(secret).map(|decision| &decision.certificate)
    }

    /// What became of one policy.
    pub fn policy(&self, policy: &ObjectRef) -> Option<&PolicyReport> {
        self.reports.get(policy).map(|report| &**report)
    }

    /// Everything that ought to exist, written out. This looks at all there is; who only follows changes asks for names.
    pub fn desired(&self) -> Desired {
        if let Some(desired) = &self.external {
            return (**desired).clone();
        }
        let reports = self.reports.values().map(|report| (**report).clone()).collect();
        let mut assembly = Assembly::new(reports, self.policies.diagnostics());
        self.selected.values().for_each(|selected| assembly.selected(selected));
        self.contributions.values().for_each(|contribution| assembly.route(contribution));
        let covered = &self.covered;
        let is_owner = |name: &Hostname| covered.is_empty() || !covered.contains_key(name);
        self.names.iter().for_each(|(name, named)| assembly.name(name, &named.decision(name), is_owner(name)));
        self.secrets.values().for_each(|secret| assembly.secret((**secret).clone()));
        assembly.finish()
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
}

impl Delta {
    /// Whether nothing came of the change.
    pub fn is_empty(&self) -> bool {
        *self == Delta::default()
    }
}
