//! The listener's side of publishing: whatever is the same for every route at a listener, decided once.
//!
//! An context is made from its Gateway's judged listeners, policies and statuses alone; it knows no route. Two equal contexts
//! mean the same to every route.

use std::cmp::Ordering;
use std::sync::Arc;

use super::addresses::{self, ResolvedTargets, Targets};
use super::certificates::{self, ListenerTls};
use super::input::{ListenerInput, PublicationInput};
use super::obstacles::Obstacle;
use super::selection::{SelectedOwner, gateway_object};
use super::verdicts::{self, ObservedStatus};
use crate::attachment::{
    ClassState, GatewayListeners, GatewayState, ListenerId, ListenerKey, ListenerPrecedence, ListenerState, Owner,
};
use crate::lint::{listener_field, listener_name};
use crate::model::*;
use crate::names::Hostname;
use crate::policy::Policy;
use crate::publication::settings::Publish;
use crate::reason;
use crate::snapshot::Visibility;

/// What a listener decides for every route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenerContext {
    /// Which listener.
    pub(super) id: ListenerId,
    /// Its name, and its place among others.
    pub(super) rank: ListenerRank,
    /// The Gateway or ListenerSet that the settings leave out, and why.
    pub(super) left_out: Option<(ObjectRef, String)>,
    /// Why it carries nothing by our own judgement, if so.
    pub(super) computed: Option<Obstacle>,
    /// The least favourable word of Gateway, ListenerSet and listener; none where none of them is there.
    pub(super) observed_status: Option<ObservedStatus>,
    /// Whether the Gateway carries conditions at all.
    pub(super) speaks: bool,
    /// Who runs the Gateway, where that is known.
    pub(super) controller: Option<Str>,
    /// Whether the implementation says that the listener's Secret is what is missing.
    pub(super) waits_for_secret: bool,
    /// The DNSPolicy that governs.
    pub(super) policy: Option<Arc<DnsPolicy>>,
    /// Why nothing is published here by want of a policy, if so.
    pub(super) ungoverned: Option<Obstacle>,
    /// Whose annotation names targets, and what they are.
    pub(super) targets_owner: ObjectRef,
    /// The key of that annotation.
    pub(super) target_key: Option<Str>,
    /// Those targets, without empty ones.
    pub(super) targets: Vec<Str>,
    /// The addresses of the Gateway under the policy; none where there is no Gateway.
    pub(super) addresses: Option<Arc<ResolvedTargets>>,
    /// What a route without targets of its own is answered with.
    pub(super) usual: Option<Arc<ResolvedTargets>>,
    /// What certificates need, where TLS ends here.
    pub(super) tls: Option<Arc<ListenerTls>>,
}

/// A listener as claims are ranked by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenerRank {
    /// Its name.
    pub(super) key: ListenerKey,
    /// The same as a list, which records of one listener share.
    pub(super) alone: SharedList<ListenerKey>,
    /// Age and name of the policy that governs.
    pub(super) policy: Option<(i64, Key)>,
    /// Age and name of its Gateway; the name is empty where there is none.
    pub(super) gateway: (i64, Key),
    /// Its place in the order of listeners.
    pub(super) precedence: ListenerPrecedence,
    /// Which of its owner's listeners.
    pub(super) index: usize,
    /// The TTL of the policy.
    pub(super) policy_ttl: Option<u32>,
    /// The listener's wildcard, where it is one that the policy and the settings let be published.
    pub(super) wildcard: Option<Hostname>,
}

impl ListenerContext {
    /// What a route without targets of its own is answered with, where it can be.
    pub(super) fn usual_targets(&self) -> Option<&Arc<Targets>> {
        self.usual.as_ref()?.targets.as_ref().ok()
    }

    /// The Secrets whose certificates are to have the names of routes at this listener, sorted.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Key> {
        self.tls.iter().flat_map(|tls| tls.secrets())
    }
}

impl ListenerRank {
    /// The order of claims by policy: those under one first, by its age.
    pub(super) fn by_policy(&self, other: &ListenerRank) -> Ordering {
        self.policy.is_none().cmp(&other.policy.is_none()).then_with(|| self.policy.cmp(&other.policy))
    }

    /// The Gateway.
    pub(super) fn gateway_object(&self) -> ObjectRef {
        gateway_object(&self.gateway.1)
    }
}

/// The contexts of all listeners, by group and slot.
#[derive(Default)]
pub(crate) struct ListenerContexts(Vec<GatewayContexts>);

/// The contexts of the listeners of one Gateway, or of a refused set, by slot.
#[derive(Default)]
pub(crate) struct GatewayContexts(Vec<Option<Arc<ListenerContext>>>);

impl ListenerContexts {
    /// Those of every listener.
    pub(super) fn build(input: ListenerInput<'_>) -> Self {
        let groups = input.base.topology.groups.iter();
        ListenerContexts(groups.map(|group| GatewayContexts::build(input, group)).collect())
    }

    /// Puts the contexts of a group in place; gives back those before.
    pub(crate) fn set(&mut self, group: u32, contexts: GatewayContexts) -> GatewayContexts {
        self.0.resize_with(self.0.len().max(group as usize + 1), GatewayContexts::default);
        std::mem::replace(&mut self.0[group as usize], contexts)
    }

    /// Puts the contexts of a group in place; gives back the slots that differ. Equal ones stay the same value in memory.
    pub(crate) fn replace(&mut self, group: u32, contexts: GatewayContexts) -> Vec<u32> {
        let before = self.set(group, contexts);
        let after = &mut self.0[group as usize].0;
        let mut differ = Vec::new();
        for slot in 0..before.0.len().max(after.len()) {
            let old = before.0.get(slot).and_then(Option::as_ref);
            match (old, after.get_mut(slot).and_then(Option::as_mut)) {
                (Some(old), Some(new)) if old == new => *new = old.clone(),
                (None, None) => {}
                _ => differ.push(slot as u32),
            }
        }
        differ
    }

    /// That of one listener.
    pub(super) fn at(&self, id: ListenerId) -> &Arc<ListenerContext> {
        let context = self.0[id.group as usize].0[id.slot as usize].as_ref();
        // Contexts are made for every listener of a topology.
        context.expect("the context of a listener of this topology")
    }
}

impl GatewayContexts {
    /// Those of the listeners of one group.
    pub(crate) fn build(input: ListenerInput<'_>, group: &GatewayListeners) -> Self {
        let mut builder = ContextBuilder::new(input, group);
        GatewayContexts(group.slots().map(|listener| Some(Arc::new(builder.context(listener?)))).collect())
    }
}

/// Who runs a Gateway, where that is known.
fn controller(state: &GatewayState) -> Option<Str> {
    match &state.class {
        ClassState::Known(controller) => Some(controller.clone()),
        _ => None,
    }
}

/// Makes the contexts of one group; what its listeners share is made once.
struct ContextBuilder<'a> {
    input: ListenerInput<'a>,
    gateway: Option<GatewaySide<'a>>,
    /// The ListenerSet that was asked for last.
    set: Option<SetSide>,
    /// Addresses of the Gateway, by policy.
    addresses: Vec<(Option<Key>, Arc<ResolvedTargets>)>,
}

/// What listeners take from their Gateway.
struct GatewaySide<'a> {
    state: &'a GatewayState,
    selected: SelectedOwner,
    observed_status: ObservedStatus,
    computed: Option<Obstacle>,
}

/// What listeners take from their ListenerSet.
struct SetSide {
    selected: SelectedOwner,
    observed_status: ObservedStatus,
    computed: Option<Obstacle>,
}

impl<'a> GatewaySide<'a> {
    fn of(base: PublicationInput<'_>, state: &'a GatewayState) -> Self {
        GatewaySide {
            state,
            selected: SelectedOwner::gateway(&state.gateway, base.settings),
            observed_status: verdicts::of_gateway(&state.gateway),
            computed: verdicts::computed_gateway(base, state),
        }
    }
}

impl SetSide {
    fn of(base: PublicationInput<'_>, set: &ListenerSet) -> Self {
        SetSide {
            selected: SelectedOwner::set(set, base.settings),
            observed_status: verdicts::of_set(set),
            computed: verdicts::computed_set(base, set),
        }
    }
}

impl<'a> ContextBuilder<'a> {
    fn new(input: ListenerInput<'a>, group: &GatewayListeners) -> Self {
        // All listeners of a group have the same Gateway, or none.
        let first = group.slots().flatten().next();
        let gateway = first.and_then(|listener| verdicts::gateway_of(input.base.topology, listener));
        let gateway = gateway.map(|state| GatewaySide::of(input.base, state));
        ContextBuilder { input, gateway, set: None, addresses: Vec::new() }
    }

    fn context(&mut self, listener: &ListenerState) -> ListenerContext {
        let ListenerInput { base, policies } = self.input;
        let gateway = self.gateway.as_ref().map(|side| side.state);
        let status_entry = verdicts::status_index(listener);
        let policy = policies.dns.governing(listener.id);
        let addresses = gateway.map(|gateway| self.addresses(&gateway.gateway, policy.map(|policy| &**policy)));
        self.enter(listener);
        let (targets_owner, target_key, targets) = self.annotated_targets(listener);
        let usual = match targets.is_empty() {
            true => addresses.clone(),
            false => {
                let policy = policy.map(|policy| &**policy);
                Some(Arc::new(addresses::of_annotations(&targets, policy, &targets_owner, target_key.as_ref())))
            }
        };
        ListenerContext {
            id: listener.id,
            rank: rank(base, listener, gateway, policy.map(|policy| &**policy)),
            left_out: self.left_out(listener),
            computed: self.computed(listener),
            observed_status: self.observed_status(listener, status_entry),
            speaks: gateway.is_some_and(|state| !state.gateway.status.conditions.is_empty()),
            controller: gateway.and_then(controller),
            waits_for_secret: verdicts::waits_for_secret(listener, status_entry),
            policy: policy.cloned(),
            ungoverned: ungoverned(self.input, listener, policy.is_some()),
            targets_owner,
            target_key,
            targets,
            addresses,
            usual,
            tls: certificates::tls(self.input, listener).map(Arc::new),
        }
    }

    /// Looks at the listener's ListenerSet, where it is not the one that was looked at last.
    fn enter(&mut self, listener: &ListenerState) {
        let Owner::Set(set) = &listener.owner else { return };
        let is_same =
            |known: &SetSide| known.selected.object.key == set.meta.key && known.selected.object.kind == set.kind;
        if !self.set.as_ref().is_some_and(is_same) {
            self.set = Some(SetSide::of(self.input.base, set));
        }
    }

    /// What is known of the listener's ListenerSet, where it has one.
    fn set_of(&self, listener: &ListenerState) -> Option<&SetSide> {
        self.set.as_ref().filter(|_| matches!(listener.owner, Owner::Set(_)))
    }

    fn left_out(&self, listener: &ListenerState) -> Option<(ObjectRef, String)> {
        let passed_over = |selected: &SelectedOwner| Some((selected.object.clone(), selected.left_out.clone()?));
        let above = self.gateway.as_ref().and_then(|side| passed_over(&side.selected));
        above.or_else(|| passed_over(&self.set_of(listener)?.selected)).or_else(|| passed_over(&self.alone(listener)?))
    }

    /// Why the listener carries nothing by our own judgement, if so; nothing is said where it is part of no Gateway.
    fn computed(&self, listener: &ListenerState) -> Option<Obstacle> {
        let gateway = self.gateway.as_ref()?;
        let set = || self.set_of(listener)?.computed.clone();
        gateway.computed.clone().or_else(set).or_else(|| verdicts::computed(self.input.base, listener))
    }

    fn observed_status(&self, listener: &ListenerState, status_entry: Option<usize>) -> Option<ObservedStatus> {
        let gateway = self.gateway.as_ref().map(|side| &side.observed_status);
        let set = self.set_of(listener).map(|side| &side.observed_status);
        verdicts::of_listener_side(listener, status_entry, [gateway, set])
    }

    /// The Gateway of a listener that is part of none, as the settings see it.
    fn alone(&self, listener: &ListenerState) -> Option<SelectedOwner> {
        match &listener.owner {
            Owner::Gateway(gateway) if self.gateway.is_none() => {
                Some(SelectedOwner::gateway(gateway, self.input.base.settings))
            }
            _ => None,
        }
    }

    /// The targets that a listener's owner names: a ListenerSet's own, else its Gateway's.
    fn annotated_targets(&self, listener: &ListenerState) -> (ObjectRef, Option<Str>, Vec<Str>) {
        let gateway = self.gateway.as_ref().map(|side| &side.selected);
        let set = self.set_of(listener).map(|side| &side.selected);
        let alone = self.alone(listener);
        // A listener has a ListenerSet, or it is its Gateway's own.
        let selected = match set.filter(|set| gateway.is_none() || !set.targets.is_empty()) {
            Some(set) => set,
            None => gateway.or(alone.as_ref()).expect("the owner of a listener"),
        };
        let targets = selected.targets.iter().filter(|target| !target.is_empty()).cloned().collect();
        (selected.object.clone(), selected.target_key.clone(), targets)
    }

    fn addresses(&mut self, gateway: &Gateway, policy: Option<&DnsPolicy>) -> Arc<ResolvedTargets> {
        let key = policy.map(|policy| &policy.meta.key);
        if let Some((_, known)) = self.addresses.iter().find(|(known, _)| known.as_ref() == key) {
            return known.clone();
        }
        let resolved = Arc::new(addresses::of_gateway(self.input.base, gateway, policy));
        self.addresses.push((key.cloned(), resolved.clone()));
        resolved
    }
}

fn rank(
    base: PublicationInput<'_>,
    listener: &ListenerState,
    gateway: Option<&GatewayState>,
    policy: Option<&DnsPolicy>,
) -> ListenerRank {
    let age = |meta: &Meta| {
        let (created, key) = meta.seniority();
        (created, key.clone())
    };
    let key = listener.key();
    ListenerRank {
        alone: [key.clone()].into(),
        key,
        policy: policy.map(|policy| age(&policy.meta)),
        gateway: gateway.map_or_else(|| (0, Key::new("", "")), |state| age(&state.gateway.meta)),
        precedence: listener.precedence(),
        index: listener.index,
        policy_ttl: policy.and_then(|policy| policy.ttl),
        wildcard: published_wildcard(base, listener, policy),
    }
}

/// Why nothing is published at a listener by want of a policy, if so.
fn ungoverned(input: ListenerInput<'_>, listener: &ListenerState, is_governed: bool) -> Option<Obstacle> {
    let obstacle = |reason, message| {
        let (object, field) = (listener.owner.object(), listener_field(listener, ""));
        Some(Obstacle { reason, message, object, field })
    };
    if *input.base.snapshot.visibility(Kind::DnsPolicy) != Visibility::Complete {
        let message = "DNSPolicies could not be listed, so it is not known what is allowed".to_owned();
        return obstacle(reason::KIND_NOT_VISIBLE, message);
    }
    if is_governed || input.base.settings.publish == Publish::All {
        return None;
    }
    let name = listener_name(listener);
    match input.policies.dns.invalid(listener.id) {
        Some(state) => {
            let object = state.policy.object();
            let message = format!("{object} is about {name}, and is not valid");
            let field = state.refused.as_ref().map(|refusal| refusal.field.clone()).unwrap_or_default();
            Some(Obstacle { reason: reason::POLICY_INVALID, message, object, field })
        }
        None => obstacle(reason::NO_POLICY, format!("no DNSPolicy governs {name}")),
    }
}

/// The listener's wildcard, where it may be published to stand for names below it.
fn published_wildcard(
    base: PublicationInput<'_>,
    listener: &ListenerState,
    policy: Option<&DnsPolicy>,
) -> Option<Hostname> {
    let wildcard = &listener.hostname;
    policy.filter(|policy| policy.allows_wildcards())?;
    (wildcard.is_wildcard() && base.settings.domains.admits(wildcard.as_str())).then(|| wildcard.clone())
}
