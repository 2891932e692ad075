//! The desired state: the records and certificates of published hostnames, and the withheld hostnames with their
//! reason.
//!
//! Two profiles produce it: [`crate::external_dns`] publishes what external-dns would for the same objects and flags;
//! the strict profile, implemented here, follows the hostname document and also requests certificates. Both use
//! [`settings`], [`filters`], [`annotations`], [`template`], [`hostnames`], [`targets`] and [`domains`]. Nothing here
//! knows providers, zones or existing records, and nothing here deletes: a hostname that gets nothing is a value in
//! [`Desired::withheld`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::attachment::{ListenerKey, Topology};
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::external_dns;
use crate::health::ObservedHealth;
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
mod cname_loops;
mod desired_builder;
pub mod domains;
pub mod filters;
pub mod holders;
pub mod hostname_grants;
pub mod hostnames;
mod input;
pub mod inward;
mod listener_context;
mod obstacles;
mod policy_status;
pub mod providers;
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
pub(crate) use cname_loops::find as find_cname_loops;
pub(crate) use desired_builder::DesiredBuilder;
pub(crate) use holders::{CertificateRefusals, HolderInput, SecretNamespaces, WildcardGuards, admitted, is_held};
pub(crate) use hostname_grants::GrantRules;
pub use hostname_grants::HostnameGrants;
pub(crate) use input::{ListenerInput, PublicationInput};
pub(crate) use listener_context::{GatewayContexts, ListenerContexts};
pub(crate) use obstacles::{excluded, left_out};
pub(crate) use policy_status::{PolicyStatusEntries, PolicyStatusEntry};
pub(crate) use records::{NameDecision, NameExtras, RouteNameClaim, decide as decide_name, refuse_loop};
pub(crate) use route_claims::{RouteClaims, of_route};
pub(crate) use selection::SelectedOwner;
pub use settings::PublicationSettings;

use holders::ObservedNames;
use settings::Profile;

/// The desired state of a snapshot and its topology, by the rules of the selected profile.
pub fn build(snapshot: &Snapshot, topology: &Topology, settings: &PublicationSettings) -> Desired {
    let (observed, health) = (&ObservedNames::default(), &ObservedHealth::default());
    build_beside(snapshot, topology, settings, PresentState { names: &[], observed, health })
}

/// What a desired state depends on besides objects and settings.
#[derive(Clone, Copy, Debug)]
pub struct PresentState<'a> {
    /// Names that exist for reasons other than routes, such as challenges. A DNS wildcard does not answer at or above
    /// them (D13).
    pub names: &'a [Str],
    /// What the existing records were made for (D27).
    pub observed: &'a ObservedNames,
    /// What probes found out about addresses.
    pub health: &'a ObservedHealth,
}

/// The same as [`build`], beside what exists already.
pub fn build_beside(
    snapshot: &Snapshot,
    topology: &Topology,
    settings: &PublicationSettings,
    beside: PresentState<'_>,
) -> Desired {
    match settings.profile {
        Profile::Strict => build::publish(snapshot, topology, settings, beside),
        Profile::ExternalDns => external_dns::publish(snapshot, settings),
    }
}

/// The names whose holder depends on what their records were made for (D27): those that Routes of several namespaces claim,
/// and all names while Routes may exist that could not be read.
pub fn contested_names(
    snapshot: &Snapshot,
    topology: &Topology,
    settings: &PublicationSettings,
    has_unread_objects: bool,
) -> BTreeSet<Str> {
    match settings.profile {
        Profile::Strict => build::contested(snapshot, topology, settings, has_unread_objects),
        Profile::ExternalDns => BTreeSet::new(),
    }
}

/// Everything that should exist, and everything that was left out with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// Records, sorted by name, type, set identifier, TTL and targets.
    pub records: Vec<Record>,
    /// Records that need not exist because a wildcard record answers for their name, in the same order.
    pub covered: Vec<Record>,
    /// Certificates, sorted by Secret.
    pub certificates: Vec<Certificate>,
    /// Names that a certificate keeps if it has them, because they are not known to be unwanted; sorted.
    pub kept_names: Vec<KeptName>,
    /// Hostnames that get no records, sorted by route and hostname.
    pub withheld: Vec<Withheld>,
    /// Objects that the settings or a `controller` annotation exclude, sorted.
    pub passed_over: Vec<PassedOver>,
    /// The status of each policy, sorted.
    pub policies: Vec<PolicyReport>,
    /// Problems of the objects.
    pub diagnostics: Vec<Diagnostic>,
}

/// One record set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name, without a trailing dot.
    pub name: Str,
    /// Record type.
    pub kind: RecordType,
    /// Targets, sorted, without duplicates.
    pub targets: SharedList<Str>,
    /// TTL in seconds; unset leaves it to the provider.
    pub ttl: Option<u32>,
    /// Distinguishes record sets of one name and type, for providers with routing policies.
    pub set_identifier: Option<Str>,
    /// Provider-specific properties, sorted by name.
    pub provider_specific: Vec<(Str, Str)>,
    /// Routes that request it; those of the namespace that holds the name first.
    pub routes: ShortVec<ObjectRef>,
    /// Listeners that serve it.
    pub listeners: SharedList<ListenerKey>,
    /// Where the name comes from.
    pub source: NameSource,
    /// The provider that publishes it; unset where there is only one.
    pub provider: Option<Str>,
}

/// The types of records that are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordType {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// An alias for another name.
    Cname,
    /// Text.
    Txt,
}

/// The source of a published name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameSource {
    /// The intersection of a route's and a listener's hostnames.
    Intersected,
    /// The `hostname` annotation.
    Annotation,
    /// `--fqdn-template`.
    Template,
    /// The listener's own wildcard, published instead of the names below it; needs a policy that allows wildcards.
    ListenerWildcard,
    /// A wildcard that a route serves, at a name that DNS does not answer with it (D35).
    HiddenFromWildcard,
}

/// A certificate that a Secret should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The Secret.
    pub secret: Key,
    /// DNS names, sorted, without duplicates.
    pub dns_names: Vec<Str>,
    /// Listeners that refer to the Secret and have a name in it, sorted.
    pub listeners: Vec<ListenerKey>,
    /// Routes that request its names, in order.
    pub routes: Vec<ObjectRef>,
    /// The issuer that a policy sets; unset means the one of the settings.
    pub issuer: Option<Reference>,
    /// The TLSPolicy that governs; the oldest if listeners with different policies share the Secret.
    pub policy: Option<Key>,
}

/// A name that a certificate must not lose, although nothing requests it at the moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptName {
    /// The Secret.
    pub secret: Key,
    /// The name.
    pub hostname: Str,
    /// The listener that refers to the Secret.
    pub listener: ListenerKey,
    /// The route that requests the name.
    pub route: ObjectRef,
    /// Why it is not known whether the name is wanted.
    pub reason: Reason,
}

/// A hostname that gets no records, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Withheld {
    /// The route that requests it.
    pub route: ObjectRef,
    /// The hostname as the route requests it; `*` if the route has none.
    pub hostname: Str,
    /// The listener at which it was withheld, if it matched one.
    pub listener: Option<ListenerKey>,
    /// The first check that failed.
    pub reason: Reason,
    /// The reason as text.
    pub message: String,
    /// The object to edit.
    pub object: ObjectRef,
    /// The field to edit.
    pub field: FieldPath,
}

/// An object that is excluded on purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassedOver {
    /// The object.
    pub object: ObjectRef,
    /// The setting or annotation that excludes it, as text.
    pub because: String,
}

impl Withheld {
    /// Whether it prevents deletes: it is not known whether the hostname should be removed.
    pub fn holds(&self) -> bool {
        self.reason.is_unknown()
    }
}

impl RecordType {
    /// The text form in zones.
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

/// Name, type, set identifier, TTL, targets and provider, by which records are sorted.
pub type RecordRank<'a> = (&'a Str, RecordType, &'a Option<Str>, Option<u32>, &'a [Str], &'a Option<Str>);

impl Record {
    /// The sort key of records.
    pub fn rank(&self) -> RecordRank<'_> {
        (&self.name, self.kind, &self.set_identifier, self.ttl, &self.targets, &self.provider)
    }
}

impl Desired {
    /// The records that answer a query for a name according to RFC 4592; empty if there are none.
    pub fn answer(&self, name: &str) -> Vec<&Record> {
        let tree = wildcards::DnsTree::of(self.records.iter().map(|record| &*record.name));
        let owner = tree.owner(name);
        self.records.iter().filter(|record| owner == Some(&*record.name)).collect()
    }

    /// The records of each name.
    pub(crate) fn records_by_name(&self) -> BTreeMap<&Str, &[Record]> {
        self.records.chunk_by(|a, b| a.name == b.name).map(|same| (&same[0].name, same)).collect()
    }

    /// Sorts every list except the records, which are added in order.
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
