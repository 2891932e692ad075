//! The holder of a name: the namespace that it belongs to where Routes of several namespaces claim it (D27).
//!
//! The records that exist decide first: the namespace that they were made for keeps the name while a Route there claims
//! it. Otherwise the oldest Route decides. A claim whose verdict is not known defends what was made for its namespace and
//! wins nothing else. Certificates are no evidence, because the owner of a Secret can put any certificate into it. Nothing
//! here reads zones or changes records.

use std::collections::{BTreeMap, BTreeSet};

use super::hostname_grants::{Admittance, GrantRules};
use super::providers::PublishingProviders;
use super::records::{NameDecision, RouteNameClaim};
use crate::health::ObservedHealth;
use crate::model::{Key, Kind, RouteKind, ShortVec, Str};
use crate::names::Hostname;
use crate::reason::{self, Reason};
use crate::snapshot::{Snapshot, Visibility};

/// The objects that existing records were made for, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedNames {
    origins: BTreeMap<Str, Vec<RecordOrigin>>,
    /// Whether objects exist that could not be read, so that a missing Route may exist.
    has_unread_objects: bool,
}

/// The object that an existing record was made for, as its marker states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordOrigin {
    /// Its namespace.
    pub namespace: Str,
    /// Its kind, if it is one that is read here.
    pub kind: Option<Kind>,
}

/// The namespace that a name belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameHolder {
    /// The namespace.
    pub(crate) namespace: Str,
    /// Why.
    because: HolderReason,
    /// The Gateways that its Routes attach to under this name, sorted.
    gateways: ShortVec<Key>,
    /// The namespaces whose Secrets may have the name in a certificate, sorted.
    secret_namespaces: ShortVec<Str>,
}

/// Why a namespace holds a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HolderReason {
    /// The existing records were made for it.
    Records,
    /// They were, and it is not known whether it still claims the name.
    RecordsUnseen,
    /// An existing wildcard record answers for the name, as its claim allows.
    Wildcard,
    /// The oldest Route that claims the name is there.
    Oldest,
}

/// What the decision about a name depends on besides the claims: its holder, which of its addresses are published, and where.
#[derive(Clone, Copy)]
pub(crate) struct HolderInput<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) observed: &'a ObservedNames,
    pub(crate) grants: GrantRules<'a>,
    pub(crate) health: &'a ObservedHealth,
    pub(crate) providers: &'a PublishingProviders,
}

impl ObservedNames {
    /// The objects that records were made for. With unread objects, a Route that is missing may exist.
    pub fn new(origins: BTreeMap<Str, Vec<RecordOrigin>>, has_unread_objects: bool) -> Self {
        ObservedNames { origins, has_unread_objects }
    }

    /// The names that records exist for.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Str> {
        self.origins.keys()
    }

    /// The names where two observations differ.
    pub(crate) fn differences<'a>(&'a self, other: &'a ObservedNames) -> impl Iterator<Item = &'a Str> {
        let is_same = self.has_unread_objects == other.has_unread_objects;
        let mine =
            self.origins.iter().filter(move |(name, origins)| !is_same || other.origins.get(*name) != Some(origins));
        mine.map(|(name, _)| name).chain(other.origins.keys().filter(|name| !self.origins.contains_key(*name)))
    }

    /// The names whose records decide the holders of these: themselves, and the wildcards above them.
    pub fn deciding(names: impl Iterator<Item = Str>) -> BTreeSet<Str> {
        let with_wildcards = names.flat_map(|name| {
            let bases = name.match_indices('.').map(|(at, _)| format!("*{}", &name[at..]).into());
            let wildcards: Vec<Str> = bases.collect();
            std::iter::once(name).chain(wildcards)
        });
        with_wildcards.collect()
    }

    fn origins(&self, name: &Hostname) -> &[RecordOrigin] {
        self.origins.get(name.as_str()).map(Vec::as_slice).unwrap_or_default()
    }
}

impl HolderInput<'_> {
    /// Whether it is unknown if the object that a record was made for still exists.
    fn is_unseen(&self, origin: &RecordOrigin) -> bool {
        let is_hidden = |kind: Kind| *self.snapshot.visibility(kind) != Visibility::Complete;
        origin.kind.is_some_and(|kind| self.observed.has_unread_objects || is_hidden(kind))
    }
}

/// Whether Routes of several namespaces claim a name.
pub(crate) fn is_contested<'a>(mut namespaces: impl Iterator<Item = &'a Str>) -> bool {
    let Some(first) = namespaces.next() else { return false };
    namespaces.any(|other| other != first)
}

/// Whether Routes may exist that could not be read, so that what records were made for concerns every name.
pub(crate) fn may_miss_routes(snapshot: &Snapshot) -> bool {
    RouteKind::ALL.into_iter().any(|kind| *snapshot.visibility(Kind::Route(kind)) != Visibility::Complete)
}

/// The holder of a name; `None` if all claims are of one namespace, or of namespaces that a grant lets have it together
/// (D28): claims of others never come here.
pub(crate) fn holder(name: &Hostname, claims: &[RouteNameClaim<'_>], input: HolderInput<'_>) -> Option<NameHolder> {
    let first = claims.first()?.namespace();
    let is_contested = is_contested(claims.iter().map(RouteNameClaim::namespace));
    if input.grants.grants.covering(name).is_some() {
        return None;
    }
    let origins = input.observed.origins(name);
    if !is_contested && origins.iter().all(|origin| origin.namespace == *first || !input.is_unseen(origin)) {
        return None;
    }
    let is_made_for = |claim: &RouteNameClaim<'_>| origins.iter().any(|origin| origin.namespace == *claim.namespace());
    if let Some(marked) = claims.iter().filter(|claim| is_made_for(claim)).min_by(|a, b| a.by_age(b)) {
        return Some(NameHolder::of(marked.namespace(), HolderReason::Records, claims));
    }
    if let Some(unseen) = origins.iter().filter(|origin| input.is_unseen(origin)).min() {
        return Some(NameHolder::of(&unseen.namespace, HolderReason::RecordsUnseen, claims));
    }
    let is_answered = |claim: &&RouteNameClaim<'_>| {
        let wildcard = claim.covering_wildcard();
        origins.is_empty() && wildcard.is_some_and(|wildcard| !input.observed.origins(wildcard).is_empty())
    };
    if let Some(covered) = claims.iter().filter(is_answered).min_by(|a, b| a.by_age(b)) {
        return Some(NameHolder::of(covered.namespace(), HolderReason::Wildcard, claims));
    }
    let known = claims.iter().filter(|claim| !claim.is_pending());
    let oldest = known.min_by(|a, b| a.by_age(b))?;
    Some(NameHolder::of(oldest.namespace(), HolderReason::Oldest, claims))
}

/// The namespaces whose Secrets may have a name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SecretNamespaces {
    /// Those of the claims, and of the Gateways and ListenerSets that they are made at; sorted.
    names: ShortVec<Str>,
    /// The HostnameGrant that decides about the name: all its namespaces may have it.
    grant: Option<Str>,
}

impl SecretNamespaces {
    fn admit(&self, namespace: &Str, grants: GrantRules<'_>) -> bool {
        let grant = || grants.snapshot.hostname_grants.get(self.grant.as_ref()?);
        self.names.contains(namespace) || grant().is_some_and(|grant| grants.admits(grant, namespace) != Admittance::No)
    }
}

/// The namespaces whose Secrets may have a name in a certificate; `None` if the name has no records.
pub(crate) fn admitted(
    name: &Hostname,
    decision: Option<&NameDecision>,
    claims: &[RouteNameClaim<'_>],
    grants: GrantRules<'_>,
) -> Option<SecretNamespaces> {
    let decision = decision.filter(|decision| decision.has_records())?;
    let names = match decision.holder() {
        Some(holder) => holder.secret_namespaces.clone(),
        None => namespaces_of(claims.iter()),
    };
    let grant = grants.grants.covering(name).map(|found| found.grant.meta.key.name.clone());
    Some(SecretNamespaces { names, grant })
}

/// Whether another namespace holds a name, so that a Secret may not keep it. `decision` is that about the name.
pub(crate) fn is_held(decision: Option<&NameDecision>, secret: &Key) -> bool {
    let holder = decision.and_then(NameDecision::holder);
    holder.is_some_and(|holder| !holder.admits_secret(&secret.namespace))
}

fn namespaces_of<'c, 'a: 'c>(claims: impl Iterator<Item = &'c RouteNameClaim<'a>>) -> ShortVec<Str> {
    let own = claims.flat_map(|claim| {
        let listener = claim.listener();
        [claim.namespace(), &listener.gateway.1.namespace, &listener.key.owner.key.namespace]
    });
    sorted(own.cloned())
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> ShortVec<T> {
    let mut items: ShortVec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

impl NameHolder {
    fn of(namespace: &Str, because: HolderReason, claims: &[RouteNameClaim<'_>]) -> Self {
        let own = || claims.iter().filter(|claim| claim.namespace() == namespace);
        let mut secret_namespaces = namespaces_of(own());
        if secret_namespaces.is_empty() {
            secret_namespaces.push(namespace.clone());
        }
        NameHolder {
            namespace: namespace.clone(),
            because,
            gateways: sorted(own().map(|claim| claim.listener().gateway.1.clone())),
            secret_namespaces,
        }
    }

    /// Whether its Routes attach to a Gateway under this name.
    pub(crate) fn is_at(&self, gateway: &Key) -> bool {
        self.gateways.binary_search(gateway).is_ok()
    }

    /// Whether a Secret of a namespace may have the name in its certificate.
    pub(crate) fn admits_secret(&self, namespace: &Str) -> bool {
        self.secret_namespaces.contains(namespace)
    }

    /// Whose the name is and why, as text; names nothing of the holder but its namespace.
    pub(crate) fn stated(&self, name: &Hostname) -> String {
        let namespace = &self.namespace;
        match self.because {
            HolderReason::Records => {
                format!("`{name}` is held by namespace `{namespace}`, which its records were made for")
            }
            HolderReason::RecordsUnseen => format!(
                "`{name}` is held by namespace `{namespace}`, which its records were made for and whose Routes cannot all be read now"
            ),
            HolderReason::Wildcard => {
                format!("`{name}` is held by namespace `{namespace}`, whose Gateway's wildcard record answers for it")
            }
            HolderReason::Oldest => {
                format!(
                    "`{name}` is held by namespace `{namespace}`, whose Route is the first that claims it, by age and then by name"
                )
            }
        }
    }
}

/// For the base of each wildcard that certificates request: who may have certificates for the names directly below it.
/// The owner of such a certificate could pose as these names, so all of them must admit its Secret.
#[derive(Debug, Default)]
pub(crate) struct WildcardGuards {
    /// Numbers of names, by the namespaces whose Secrets they admit.
    by_base: BTreeMap<Str, BTreeMap<SecretNamespaces, usize>>,
    names: BTreeMap<Hostname, SecretNamespaces>,
}

impl WildcardGuards {
    /// Whether no certificate requests a wildcard.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_base.is_empty()
    }

    /// Starts to watch the names below a wildcard, or stops; returns whether it did not watch them before.
    pub(crate) fn watch(&mut self, wildcard: &Hostname, is_requested: bool) -> bool {
        let Some(base) = wildcard.wildcard_base() else { return false };
        if is_requested {
            let is_new = !self.by_base.contains_key(base);
            self.by_base.entry(base.into()).or_default();
            return is_new;
        }
        if self.by_base.remove(base).is_some() {
            self.names.retain(|name, _| parent(name) != Some(base));
        }
        false
    }

    /// Whether a name is directly below a watched wildcard.
    pub(crate) fn is_watched(&self, name: &Hostname) -> bool {
        !self.by_base.is_empty() && parent(name).is_some_and(|base| self.by_base.contains_key(base))
    }

    /// Sets the namespaces whose Secrets a name admits; `None` if it has no records. Returns whether they differ.
    pub(crate) fn set(&mut self, name: &Hostname, admitted: Option<SecretNamespaces>) -> bool {
        let Some(counts) = parent(name).and_then(|base| self.by_base.get_mut(base)) else { return false };
        let before = match &admitted {
            Some(admitted) => self.names.insert(name.clone(), admitted.clone()),
            None => self.names.remove(name),
        };
        if before == admitted {
            return false;
        }
        if let Some(before) = before
            && let Some(count) = counts.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                counts.remove(&before);
            }
        }
        if let Some(admitted) = admitted {
            *counts.entry(admitted).or_default() += 1;
        }
        true
    }

    /// Whether a name below a wildcard does not admit the Secrets of a namespace.
    pub(crate) fn refuses(&self, wildcard: &Hostname, namespace: &Str, grants: GrantRules<'_>) -> bool {
        let counts = wildcard.wildcard_base().and_then(|base| self.by_base.get(base));
        counts.into_iter().flat_map(BTreeMap::keys).any(|admitted| !admitted.admit(namespace, grants))
    }
}

/// The name directly above a precise name.
fn parent(name: &Hostname) -> Option<&str> {
    name.as_str().split_once('.').map(|(_, base)| base).filter(|_| name.is_precise())
}

/// Why the names of a certificate are refused, by the holders of names and by HostnameGrants.
#[derive(Clone, Copy)]
pub(crate) struct CertificateRefusals<'a> {
    pub(crate) secret: &'a Key,
    /// The decisions about names; `None` if no name is contested.
    pub(crate) names: Option<&'a BTreeMap<Hostname, NameDecision>>,
    pub(crate) guards: &'a WildcardGuards,
    pub(crate) grants: GrantRules<'a>,
}

impl CertificateRefusals<'_> {
    /// Whether nothing at all can be refused.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_none() && self.guards.is_empty()
    }

    /// Why a name may not be in the certificate of the Secret, if so.
    pub(crate) fn of(&self, name: &Hostname) -> Option<(Reason, String)> {
        let namespace = &self.secret.namespace;
        let holder = self.names.and_then(|names| names.get(name)?.holder());
        if let Some(holder) = holder.filter(|holder| !holder.admits_secret(namespace)) {
            let message = format!("{}; its Routes attach to nothing of namespace `{namespace}`", holder.stated(name));
            return Some((reason::HOSTNAME_HELD, message));
        }
        if !name.is_wildcard() {
            return None;
        }
        if self.guards.refuses(name, namespace, self.grants) {
            let message = format!(
                "a certificate for `{name}` would be valid for names directly below it that another namespace holds"
            );
            return Some((reason::HOSTNAME_HELD, message));
        }
        let refusal = self.grants.wildcard_refusal(name, namespace)?;
        Some((reason::HOSTNAME_NOT_GRANTED, refusal))
    }
}
