//! What ought to exist: the records every published hostname gets, and the hostnames that get none, with the reason.
//!
//! Two profiles fill these values: [`crate::external_dns`] publishes what external-dns would for the same objects and flags;
//! [`strict`] follows the hostname document, and makes certificates too. Both share the pieces beside them: [`settings`],
//! [`filters`], [`annotations`], [`template`], [`hostnames`], [`targets`] and [`domains`]. Nothing here knows a provider, a
//! zone, or what exists already, and nothing here deletes: a hostname that gets nothing is a value in [`Desired::withheld`].

use std::fmt;

use crate::attachment::{ListenerKey, Topology};
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::external_dns;
use crate::model::{Key, ObjectRef, Reference, SharedList, ShortVec, Str};
use crate::policy::PolicyReport;
use crate::reason::Reason;
use crate::snapshot::Snapshot;

mod addresses;
pub mod annotations;
mod asked_names;
mod build;
mod certificates;
pub mod change;
mod desired_builder;
pub mod domains;
pub mod filters;
pub mod hostnames;
mod input;
mod listener_context;
mod obstacles;
mod policy_status;
mod records;
mod route_claims;
mod selection;
pub mod settings;
pub mod targets;
pub mod template;
#[cfg(test)]
pub(crate) mod tests;
mod verdicts;
pub mod wildcards;

pub(crate) use certificates::{CertificateNameRequest, CertificateState, SecretDecision};
pub(crate) use desired_builder::DesiredBuilder;
pub(crate) use input::{ListenerInput, PublicationInput};
pub(crate) use listener_context::{GatewayContexts, ListenerContexts};
pub(crate) use policy_status::{PolicyStatusEntries, PolicyStatusEntry};
pub(crate) use records::{NameDecision, NameExtras, RouteNameClaim, decide as decide_name};
pub(crate) use route_claims::{RouteClaims, of_route};
pub(crate) use selection::SelectedOwner;
pub use settings::PublicationSettings;

use settings::Profile;

/// What ought to exist for a snapshot and its judged tree, by the rules of the profile.
pub fn build(snapshot: &Snapshot, topology: &Topology, settings: &PublicationSettings) -> Desired {
    build_beside(snapshot, topology, settings, &[])
}

/// The same beside names that exist for other reasons, such as those of challenges: a DNS wildcard does not answer at or
/// above them (D13).
pub fn build_beside(
    snapshot: &Snapshot,
    topology: &Topology,
    settings: &PublicationSettings,
    others: &[Str],
) -> Desired {
    match settings.profile {
        Profile::Strict => build::publish(snapshot, topology, settings, others),
        Profile::ExternalDns => external_dns::publish(snapshot, settings),
    }
}

/// Everything that ought to exist, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// Records, sorted by name, type, set identifier, TTL and targets.
    pub records: Vec<Record>,
    /// Records that need not exist because a wildcard among the others answers for them, in the same order.
    pub covered: Vec<Record>,
    /// Certificates, sorted by Secret.
    pub certificates: Vec<Certificate>,
    /// Names that a certificate keeps if it has them, because it is not known that they ought to be gone; sorted.
    pub kept_names: Vec<KeptName>,
    /// Hostnames that get nothing, sorted by route and hostname.
    pub withheld: Vec<Withheld>,
    /// Objects that the settings or a `controller` annotation leave out, sorted.
    pub passed_over: Vec<PassedOver>,
    /// What became of each policy, sorted.
    pub policies: Vec<PolicyReport>,
    /// What is odd about the objects.
    pub diagnostics: Vec<Diagnostic>,
}

/// One record set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name, without a dot at the end.
    pub name: Str,
    /// Type.
    pub kind: RecordType,
    /// Targets, sorted, each once.
    pub targets: SharedList<Str>,
    /// TTL in seconds, where one was asked for.
    pub ttl: Option<u32>,
    /// Tells record sets of one name and type apart, for providers with routing policies.
    pub set_identifier: Option<Str>,
    /// Properties for one provider, by name.
    pub provider_specific: Vec<(Str, Str)>,
    /// Routes that ask for it; the first decides TTL and properties.
    pub routes: ShortVec<ObjectRef>,
    /// Listeners that serve it.
    pub listeners: SharedList<ListenerKey>,
    /// Where the name comes from.
    pub source: NameSource,
}

/// The types of records that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordType {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Another name.
    Cname,
    /// Text.
    Txt,
}

/// Where a published name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameSource {
    /// What a route and a listener have in common.
    Intersected,
    /// The `hostname` annotation.
    Annotation,
    /// `--fqdn-template`.
    Template,
    /// The listener's own wildcard, which stands for the names below it under a policy that allows wildcards.
    ListenerWildcard,
}

/// A certificate that a Secret is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The Secret.
    pub secret: Key,
    /// The names it is good for, sorted, each once.
    pub dns_names: Vec<Str>,
    /// Listeners that name the Secret and have something to serve, sorted.
    pub listeners: Vec<ListenerKey>,
    /// Routes behind them, in order.
    pub routes: Vec<ObjectRef>,
    /// Who issues it, where a policy says so; otherwise the issuer of the settings.
    pub issuer: Option<Reference>,
    /// The TLSPolicy that governs; the oldest where listeners share the Secret.
    pub policy: Option<Key>,
}

/// A name that a certificate is not to lose, though nothing asks for it at the moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptName {
    /// The Secret.
    pub secret: Key,
    /// The name.
    pub hostname: Str,
    /// The listener that names the Secret.
    pub listener: ListenerKey,
    /// The route that wants the name.
    pub route: ObjectRef,
    /// What is not known.
    pub reason: Reason,
}

/// A hostname that gets nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Withheld {
    /// The route that asks for it.
    pub route: ObjectRef,
    /// The hostname as the route asks for it; `*` where it names none.
    pub hostname: Str,
    /// The listener it failed at, where it came that far.
    pub listener: Option<ListenerKey>,
    /// The first thing in its way.
    pub reason: Reason,
    /// The same in words.
    pub message: String,
    /// Whose field is to be looked at.
    pub object: ObjectRef,
    /// Which field of it.
    pub field: FieldPath,
}

/// An object that is left out on purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassedOver {
    /// Which.
    pub object: ObjectRef,
    /// By which setting or annotation, in words.
    pub because: String,
}

impl Withheld {
    /// Whether nothing may be deleted because of it: it is not known that the hostname ought to be gone.
    pub fn holds(&self) -> bool {
        self.reason.is_unknown()
    }
}

impl RecordType {
    /// As written in a zone.
    pub fn as_str(self) -> &'static str {
        match self {
            RecordType::A => "A",
            RecordType::Aaaa => "AAAA",
            RecordType::Cname => "CNAME",
            RecordType::Txt => "TXT",
        }
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Record {
    /// The order in which records are listed.
    pub fn rank(&self) -> (&Str, RecordType, &Option<Str>, Option<u32>, &[Str]) {
        (&self.name, self.kind, &self.set_identifier, self.ttl, &self.targets)
    }
}

impl Desired {
    /// The records that answer a query for a name by the rules of RFC 4592; none where nothing does.
    pub fn answer(&self, name: &str) -> Vec<&Record> {
        let tree = wildcards::DnsTree::of(self.records.iter().map(|record| &*record.name));
        let owner = tree.owner(name);
        self.records.iter().filter(|record| owner == Some(&*record.name)).collect()
    }

    /// Puts every list into its order; records come in theirs.
    pub(crate) fn sort(&mut self) {
        debug_assert!(self.records.is_sorted_by(|a, b| a.rank() <= b.rank()));
        debug_assert!(self.covered.is_sorted_by(|a, b| a.rank() <= b.rank()));
        self.certificates.sort_by(|a, b| a.secret.cmp(&b.secret));
        self.kept_names.sort();
        self.withheld.sort();
        self.passed_over.sort();
        self.policies.sort_by(|a, b| a.policy.cmp(&b.policy));
        self.diagnostics.sort_by(|a, b| a.rank().cmp(&b.rank()));
    }
}
