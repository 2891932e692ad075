//! Which DNSPolicy and which TLSPolicy governs each listener, and why the others govern nothing.
//!
//! A policy for a listener takes precedence over one for the whole object, and a ListenerSet's own policy over the one
//! inherited from its Gateway. Among equal targets the oldest wins, then the first by `namespace/name`. A policy with an
//! invalid value, or with a provider that does not exist, takes its place among the others all the same: nothing is
//! published or deleted under it, and no other policy takes its place (D31). The effects of a policy are implemented in [`crate::publication`], never here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attachment::{ListenerId, Topology};
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::model::*;
use crate::publication::providers::PublishingProviders;
use crate::reason::{self, Reason};
use crate::snapshot::{Snapshot, Visibility};

pub mod exclusions;
pub mod status;
mod targets;
mod validity;

pub use exclusions::Exclusion;
pub use status::{HostnameReport, HostnameState, PolicyReport};

/// The state of all policies of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// DNSPolicies.
    pub dns: PoliciesOfKind<DnsPolicy>,
    /// TLSPolicies.
    pub tls: PoliciesOfKind<TlsPolicy>,
}

/// The policies of one kind.
#[derive(Clone, Debug)]
pub struct PoliciesOfKind<P> {
    /// Every policy, including refused ones.
    pub states: BTreeMap<Key, PolicyState<P>>,
    governing: BTreeMap<ListenerId, Key>,
}

/// The state of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyState<P> {
    /// The object.
    pub policy: Arc<P>,
    /// Why it is not accepted, if it is not.
    pub refused: Option<Refusal>,
    /// The listeners it targets, in order; a more specific policy may govern some of them.
    pub listeners: Vec<ListenerId>,
}

/// Why a policy is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `policy-target-missing`, `policy-invalid`, `provider-not-found`, `policy-conflicted`, or `kind-not-visible`.
    pub reason: Reason,
    /// The reason as text.
    pub message: String,
    /// The field to edit.
    pub field: FieldPath,
    /// The policy that wins a conflict.
    pub winner: Option<Key>,
}

/// What DNSPolicies and TLSPolicies have in common.
pub trait Policy {
    /// Its kind.
    const KIND: Kind;
    /// Name and age.
    fn meta(&self) -> &Meta;
    /// The object that it targets.
    fn target(&self) -> &PolicyTarget;
    /// Its `allowWildcardHosts`.
    fn allow_wildcards(&self) -> Option<bool>;
    /// The first invalid field, and a clause that says what is wrong.
    fn problem(&self) -> Option<(FieldPath, String)>;
    /// The field that names a provider that does not exist, and a clause that says so.
    fn missing_provider(&self, providers: &PublishingProviders) -> Option<(FieldPath, String)>;

    /// Which object it is.
    fn object(&self) -> ObjectRef {
        ObjectRef { kind: Self::KIND, key: self.meta().key.clone() }
    }

    /// Whether wildcards are allowed; unset means yes (D1).
    fn allows_wildcards(&self) -> bool {
        self.allow_wildcards().unwrap_or(true)
    }
}

impl Policies {
    /// Evaluates the policies of a snapshot.
    pub fn build(snapshot: &Snapshot, topology: &Topology, providers: &PublishingProviders) -> Policies {
        let input = PolicyInput { snapshot, topology, providers };
        Policies {
            dns: PoliciesOfKind::build(input, snapshot.dns_policies.values()),
            tls: PoliciesOfKind::build(input, snapshot.tls_policies.values()),
        }
    }

    /// The problems of all policies.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut all = self.dns.diagnostics();
        all.extend(self.tls.diagnostics());
        all
    }
}

impl<P: Policy> PoliciesOfKind<P> {
    /// The policy that governs a listener; its values may be invalid.
    pub fn governing(&self, listener: ListenerId) -> Option<&Arc<P>> {
        let key = self.governing.get(&listener)?;
        self.states.get(key).map(|state| &state.policy)
    }

    /// The policy that governs a listener, if nothing may change under it because of one of its values.
    pub fn invalid(&self, listener: ListenerId) -> Option<&PolicyState<P>> {
        self.states.get(self.governing.get(&listener)?).filter(|state| state.is_invalid())
    }

    /// The listeners that a policy governs, in order.
    pub fn governed_by(&self, key: &Key) -> Vec<ListenerId> {
        let listeners = self.states.get(key).map_or(&[][..], |state| &state.listeners);
        listeners.iter().copied().filter(|id| self.governing.get(id) == Some(key)).collect()
    }

    fn build<'a>(input: PolicyInput<'_>, policies: impl Iterator<Item = &'a Arc<P>>) -> Self
    where
        P: 'a,
    {
        let mut policies_of_kind = PoliciesOfKind::default();
        for policy in policies {
            policies_of_kind.states.insert(policy.meta().key.clone(), evaluate(input, policy));
        }
        let losers = policies_of_kind.resolve_conflicts();
        policies_of_kind.assign(input.topology, &losers);
        policies_of_kind
    }

    /// Refuses all but the oldest policy of each target, and returns those that are not the oldest.
    fn resolve_conflicts(&mut self) -> BTreeSet<Key> {
        let mut holders: BTreeMap<(ObjectRef, Option<Str>), Arc<P>> = BTreeMap::new();
        let mut losers = BTreeSet::new();
        for policy in self.by_age() {
            let Some(target) = targets::identity(&*policy) else { continue };
            match holders.get(&target) {
                Some(winner) => {
                    self.refuse(&policy.meta().key, conflict(&**winner, &*policy));
                    losers.insert(policy.meta().key.clone());
                }
                None => _ = holders.insert(target, policy),
            }
        }
        losers
    }

    /// Accepted and invalid policies, oldest first.
    fn by_age(&self) -> Vec<Arc<P>> {
        let candidates = self.states.values().filter(|state| state.refused.is_none() || state.is_invalid());
        let mut policies: Vec<_> = candidates.map(|state| state.policy.clone()).collect();
        policies.sort_by(|a, b| a.meta().seniority().cmp(&b.meta().seniority()));
        policies
    }

    fn refuse(&mut self, key: &Key, refusal: Refusal) {
        // An invalid value is to be corrected first.
        if let Some(state) = self.states.get_mut(key).filter(|state| !state.is_invalid()) {
            state.refused = Some(refusal);
        }
    }

    /// Assigns to every listener the policy with the smallest distance.
    fn assign(&mut self, topology: &Topology, losers: &BTreeSet<Key>) {
        let mut closest: BTreeMap<ListenerId, (targets::Distance, Key)> = BTreeMap::new();
        let is_candidate = |state: &PolicyState<P>| state.refused.is_none() || state.is_invalid();
        for (key, state) in self.states.iter().filter(|(key, state)| is_candidate(state) && !losers.contains(*key)) {
            for id in &state.listeners {
                let distance = targets::distance(&*state.policy, topology.listener(*id));
                let offer = (distance, key.clone());
                let holder = closest.entry(*id).or_insert_with(|| offer.clone());
                if offer < *holder {
                    *holder = offer;
                }
            }
        }
        self.governing = closest.into_iter().map(|(id, (_, key))| (id, key)).collect();
    }

    fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut all: Vec<_> = self.states.values().filter_map(refusal_diagnostic).collect();
        all.extend(self.states.iter().filter_map(|(key, state)| self.overridden(key, state)));
        all
    }

    /// The diagnostic of a policy that governs nothing because every listener has a more specific one.
    fn overridden(&self, key: &Key, state: &PolicyState<P>) -> Option<Diagnostic> {
        if state.refused.is_some() || state.listeners.is_empty() || !self.governed_by(key).is_empty() {
            return None;
        }
        let message = "every listener it is about has a policy of its own, so this one decides nothing";
        let field = FieldPath::of("spec.targetRef");
        Some(Diagnostic::new(reason::POLICY_OVERRIDDEN, &state.policy.object(), field, message))
    }
}

impl<P> PolicyState<P> {
    /// Whether it is refused because of a value.
    fn is_invalid(&self) -> bool {
        self.refused.as_ref().is_some_and(|refusal| holds(refusal.reason))
    }
}

/// Whether a policy that is refused for a reason lets nothing change under its target (D31).
pub(crate) fn holds(reason: Reason) -> bool {
    matches!(reason, reason::POLICY_INVALID | reason::PROVIDER_NOT_FOUND)
}

impl<P> Default for PoliciesOfKind<P> {
    fn default() -> Self {
        PoliciesOfKind { states: BTreeMap::new(), governing: BTreeMap::new() }
    }
}

impl Policy for DnsPolicy {
    const KIND: Kind = Kind::DnsPolicy;

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn target(&self) -> &PolicyTarget {
        &self.target
    }

    fn allow_wildcards(&self) -> Option<bool> {
        self.allow_wildcards
    }

    fn problem(&self) -> Option<(FieldPath, String)> {
        validity::dns(self)
    }

    fn missing_provider(&self, providers: &PublishingProviders) -> Option<(FieldPath, String)> {
        validity::provider(self, providers)
    }
}

impl Policy for TlsPolicy {
    const KIND: Kind = Kind::TlsPolicy;

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn target(&self) -> &PolicyTarget {
        &self.target
    }

    fn allow_wildcards(&self) -> Option<bool> {
        self.allow_wildcards
    }

    fn problem(&self) -> Option<(FieldPath, String)> {
        validity::tls(self)
    }

    fn missing_provider(&self, _providers: &PublishingProviders) -> Option<(FieldPath, String)> {
        None
    }
}

/// What policies are evaluated against.
#[derive(Clone, Copy)]
struct PolicyInput<'a> {
    snapshot: &'a Snapshot,
    topology: &'a Topology,
    providers: &'a PublishingProviders,
}

fn evaluate<P: Policy>(input: PolicyInput<'_>, policy: &Arc<P>) -> PolicyState<P> {
    let PolicyInput { snapshot, topology, providers } = input;
    let (listeners, mut refused) = match targets::listeners(snapshot, topology, &**policy) {
        Ok(listeners) => (listeners, None),
        Err(refusal) => (Vec::new(), Some(refusal)),
    };
    if refused.is_none() {
        let invalid = policy.meta().invalid.as_ref().map(|invalid| Refusal {
            reason: reason::POLICY_INVALID,
            message: invalid.message.clone(),
            field: invalid.field.clone(),
            winner: None,
        });
        let refusal = |reason, (field, message): (FieldPath, String)| {
            let message = format!("`{field}` {message}");
            Refusal { reason, message, field, winner: None }
        };
        let unusable = || policy.problem().map(|problem| refusal(reason::POLICY_INVALID, problem));
        let elsewhere =
            || policy.missing_provider(providers).map(|missing| refusal(reason::PROVIDER_NOT_FOUND, missing));
        refused = invalid.or_else(unusable).or_else(elsewhere);
    }
    PolicyState { policy: policy.clone(), refused, listeners }
}

fn conflict<P: Policy>(winner: &P, loser: &P) -> Refusal {
    let object = winner.object();
    let is_older = winner.meta().seniority().0 < loser.meta().seniority().0;
    let why = if is_older { "is older" } else { "is as old, and comes first by name" };
    Refusal {
        reason: reason::POLICY_CONFLICTED,
        message: format!("{} {} has the same target and {why}", object.kind, object.key),
        field: FieldPath::of("spec.targetRef"),
        winner: Some(object.key),
    }
}

fn refusal_diagnostic<P: Policy>(state: &PolicyState<P>) -> Option<Diagnostic> {
    let refusal = state.refused.as_ref()?;
    let object = state.policy.object();
    let diagnostic = Diagnostic::new(refusal.reason, &object, refusal.field.clone(), refusal.message.clone());
    Some(match &refusal.winner {
        Some(key) => {
            let winner = ObjectRef { kind: P::KIND, key: key.clone() };
            diagnostic.related(&winner, FieldPath::of("spec.targetRef"), "the policy that governs")
        }
        None => diagnostic,
    })
}

/// Whether all objects of a kind could be listed.
fn is_visible(snapshot: &Snapshot, kind: Kind) -> bool {
    *snapshot.visibility(kind) == Visibility::Complete
}

#[cfg(test)]
mod tests;
