//! What is the same for every route at a listener, computed once per listener.
//!
//! A context depends only on the evaluated listeners of its Gateway, their policies and statuses; it knows no routes.
//! Routes get the same result from equal contexts.

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
use crate::policy::{Policy, PolicyState};
use crate::publication::settings::Publish;
use crate::reason;
use crate::snapshot::Visibility;

/// Everything that publication needs to know about a listener, independent of routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenerContext {
    /// The listener's id.
    pub(super) id: ListenerId,
    /// Its name and sort key.
    pub(super) rank: ListenerRank,
    /// The Gateway or ListenerSet that the settings exclude, and why.
    pub(super) left_out: Option<(ObjectRef, String)>,
    /// Why it serves nothing by our own computation, if so.
    pub(super) computed: Option<Obstacle>,
    /// The worst observed status among Gateway, ListenerSet and listener, if there is any.
    pub(super) observed_status: Option<ObservedStatus>,
    /// Whether the Gateway's status has any conditions, or its class is refused.
    pub(super) has_conditions: bool,
    /// The controller of the Gateway, if known.
    pub(super) controller: Option<Str>,
    /// Whether the implementation reports that only the listener's Secret is missing.
    pub(super) waits_for_secret: bool,
    /// The DNSPolicy that governs.
    pub(super) policy: Option<Arc<DnsPolicy>>,
    /// Why nothing is published here for lack of a policy, if so.
    pub(super) ungoverned: Option<Obstacle>,
    /// The object whose annotation sets targets.
    pub(super) targets_owner: ObjectRef,
    /// The key of that annotation.
    pub(super) target_key: Option<Str>,
    /// The targets of that annotation, without empty ones.
    pub(super) targets: Vec<Str>,
    /// The addresses of the Gateway after the policy's exclusions; `None` without a Gateway.
    pub(super) addresses: Option<Arc<ResolvedTargets>>,
    /// The targets of routes that have none of their own.
    pub(super) usual: Option<Arc<ResolvedTargets>>,
    /// TLS settings; `None` if the listener does not terminate TLS.
    pub(super) tls: Option<Arc<ListenerTls>>,
}

/// The sort key of a listener in the order of claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenerRank {
    /// Its name.
    pub(super) key: ListenerKey,
    /// A list of only that key, shared by the records of this listener.
    pub(super) alone: SharedList<ListenerKey>,
    /// Age and key of the policy that governs.
    pub(super) policy: Option<(i64, Key)>,
    /// Age and key of its Gateway; the name is empty without one.
    pub(super) gateway: (i64, Key),
    /// Its position in the order of listeners.
    pub(super) precedence: ListenerPrecedence,
    /// Its index in the owner's `listeners`.
    pub(super) index: usize,
    /// The TTL of the policy.
    pub(super) policy_ttl: Option<u32>,
    /// The listener's wildcard, if the policy and the settings allow publishing it.
    pub(super) wildcard: Option<Hostname>,
}

impl ListenerContext {
    /// The targets of routes that have none of their own, if there are any.
    pub(super) fn usual_targets(&self) -> Option<&Arc<Targets>> {
        self.usual.as_ref()?.targets.as_ref().ok()
    }

    /// The listener's wildcard, where its certificates get it.
    pub(super) fn certificate_wildcard(&self) -> Option<&Hostname> {
        self.tls.as_ref()?.wildcard()
    }

    /// The Secrets whose certificates get the names of routes at this listener, sorted.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Key> {
        self.tls.iter().flat_map(|tls| tls.secrets())
    }
}

impl ListenerRank {
    /// Compares by policy: claims under a policy come first, the oldest policy before others.
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
    /// Builds the contexts of every listener.
    pub(super) fn build(input: ListenerInput<'_>) -> Self {
        let groups = input.base.topology.groups.iter();
        ListenerContexts(groups.map(|group| GatewayContexts::build(input, group)).collect())
    }

    /// Replaces the contexts of a group, and returns the previous ones.
    pub(crate) fn set(&mut self, group: u32, contexts: GatewayContexts) -> GatewayContexts {
        self.0.resize_with(self.0.len().max(group as usize + 1), GatewayContexts::default);
        std::mem::replace(&mut self.0[group as usize], contexts)
    }

    /// Replaces the contexts of a group, and returns the slots that changed. Equal contexts keep their allocation.
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

    /// The context of one listener.
    pub(super) fn at(&self, id: ListenerId) -> &Arc<ListenerContext> {
        let context = self.0[id.group as usize].0[id.slot as usize].as_ref();
        // Contexts exist for every listener of the topology.
        context.expect("the context of a listener of this topology")
    }
}

impl GatewayContexts {
    /// Builds the contexts of one group.
    pub(crate) fn build(input: ListenerInput<'_>, group: &GatewayListeners) -> Self {
        let mut builder = ContextBuilder::new(input, group);
        GatewayContexts(group.slots().map(|listener| Some(Arc::new(builder.context(listener?)))).collect())
    }
}

/// The controller of a Gateway, if known.
fn controller(state: &GatewayState) -> Option<Str> {
    match &state.class {
        ClassState::Known(controller) => Some(controller.clone()),
        _ => None,
    }
}

/// Builds the contexts of one group; computes what its listeners share once.
struct ContextBuilder<'a> {
    input: ListenerInput<'a>,
    gateway: Option<GatewaySide<'a>>,
    /// The ListenerSet of the last listener.
    set: Option<SetSide>,
    /// Addresses of the Gateway, by the key of the policy.
    addresses: Vec<(Option<Key>, Arc<ResolvedTargets>)>,
}

/// What a listener's context takes from the Gateway.
struct GatewaySide<'a> {
    state: &'a GatewayState,
    selected: SelectedOwner,
    /// That of its class, if that is refused.
    observed_status: ObservedStatus,
    is_class_refused: bool,
    computed: Option<Obstacle>,
}

/// What a listener's context takes from the ListenerSet.
struct SetSide {
    selected: SelectedOwner,
    observed_status: ObservedStatus,
    computed: Option<Obstacle>,
}

impl<'a> GatewaySide<'a> {
    fn of(base: PublicationInput<'_>, state: &'a GatewayState) -> Self {
        let refused_class = verdicts::of_refused_class(base, &state.gateway);
        GatewaySide {
            state,
            selected: SelectedOwner::gateway(&state.gateway, base.settings),
            is_class_refused: refused_class.is_some(),
            observed_status: refused_class.unwrap_or_else(|| verdicts::of_gateway(&state.gateway)),
            computed: verdicts::computed_gateway(base, state),
        }
    }
}

impl GatewaySide<'_> {
    /// Whether an implementation has written a status for the Gateway or refused its class.
    fn has_conditions(&self) -> bool {
        self.is_class_refused || !self.state.gateway.status.conditions.is_empty()
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
        self.evaluate_set(listener);
        let (targets_owner, target_key, targets) = self.annotated_targets(listener);
        let usual = match targets.is_empty() {
            true => addresses.clone(),
            false => {
                let policy = policy.map(|policy| &**policy);
                Some(Arc::new(addresses::of_annotations(
                    base.settings,
                    &targets,
                    policy,
                    &targets_owner,
                    target_key.as_ref(),
                )))
            }
        };
        ListenerContext {
            id: listener.id,
            rank: rank(base, listener, gateway, policy.map(|policy| &**policy)),
            left_out: self.left_out(listener),
            computed: self.computed(listener),
            observed_status: self.observed_status(listener, status_entry),
            has_conditions: self.gateway.as_ref().is_some_and(GatewaySide::has_conditions),
            controller: gateway.and_then(controller),
            waits_for_secret: verdicts::waits_for_secret(listener, status_entry),
            policy: policy.cloned(),
            ungoverned: ungoverned(self.input, listener, policy.map(|policy| &**policy)),
            targets_owner,
            target_key,
            targets,
            addresses,
            usual,
            tls: certificates::tls(self.input, listener).map(Arc::new),
        }
    }

    /// Evaluates the listener's ListenerSet, unless it is that of the last listener.
    fn evaluate_set(&mut self, listener: &ListenerState) {
        let Owner::Set(set) = &listener.owner else { return };
        let is_same =
            |known: &SetSide| known.selected.object.key == set.meta.key && known.selected.object.kind == set.kind;
        if !self.set.as_ref().is_some_and(is_same) {
            self.set = Some(SetSide::of(self.input.base, set));
        }
    }

    /// The evaluated ListenerSet of the listener, if it belongs to one.
    fn set_of(&self, listener: &ListenerState) -> Option<&SetSide> {
        self.set.as_ref().filter(|_| matches!(listener.owner, Owner::Set(_)))
    }

    fn left_out(&self, listener: &ListenerState) -> Option<(ObjectRef, String)> {
        let passed_over = |selected: &SelectedOwner| Some((selected.object.clone(), selected.left_out.clone()?));
        let above = self.gateway.as_ref().and_then(|side| passed_over(&side.selected));
        above.or_else(|| passed_over(&self.set_of(listener)?.selected)).or_else(|| passed_over(&self.alone(listener)?))
    }

    /// Why the listener serves nothing by our own computation, if so; `None` without a Gateway.
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

    /// The owning Gateway of a listener that is part of no evaluated Gateway, with its selection.
    fn alone(&self, listener: &ListenerState) -> Option<SelectedOwner> {
        match &listener.owner {
            Owner::Gateway(gateway) if self.gateway.is_none() => {
                Some(SelectedOwner::gateway(gateway, self.input.base.settings))
            }
            _ => None,
        }
    }

    /// The targets of a listener's owner: those of its ListenerSet, else those of its Gateway.
    fn annotated_targets(&self, listener: &ListenerState) -> (ObjectRef, Option<Str>, Vec<Str>) {
        let gateway = self.gateway.as_ref().map(|side| &side.selected);
        let set = self.set_of(listener).map(|side| &side.selected);
        let alone = self.alone(listener);
        // A listener belongs to a ListenerSet, or directly to its Gateway.
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

/// Why nothing is published at a listener for lack of a policy, if so.
fn ungoverned(input: ListenerInput<'_>, listener: &ListenerState, policy: Option<&DnsPolicy>) -> Option<Obstacle> {
    let obstacle = |reason, message| {
        let (object, field) = (listener.owner.object(), listener_field(listener, ""));
        Some(Obstacle { reason, message, object, field })
    };
    if *input.base.snapshot.visibility(Kind::DnsPolicy) != Visibility::Complete {
        let message = "DNSPolicies could not be listed, so it is not known what is allowed".to_owned();
        return obstacle(reason::KIND_NOT_VISIBLE, message);
    }
    if let Some(state) = input.policies.dns.invalid(listener.id) {
        return Some(invalid_policy(state, listener));
    }
    if let Some(unknown) = input.base.unknown_grants(listener, policy.is_some_and(DnsPolicy::allows_wildcards)) {
        return obstacle(unknown.reason, unknown.message);
    }
    if policy.is_some() || input.base.settings.publish == Publish::All {
        return None;
    }
    obstacle(reason::NO_POLICY, format!("no DNSPolicy governs {}", listener_name(listener)))
}

/// Nothing is published, changed or deleted under a policy with an invalid value or a provider that does not exist (D31).
fn invalid_policy(state: &PolicyState<DnsPolicy>, listener: &ListenerState) -> Obstacle {
    let object = state.policy.object();
    let refusal = state.refused.as_ref();
    let what = refusal.map(|refusal| refusal.message.as_str()).unwrap_or_default();
    let message = format!("{object} governs {} and is not valid: {what}", listener_name(listener));
    let field = refusal.map(|refusal| refusal.field.clone()).unwrap_or_default();
    let reason = refusal.map_or(reason::POLICY_INVALID, |refusal| refusal.reason);
    Obstacle { reason, message, object, field }
}

/// The listener's wildcard, if it may be published instead of names below it.
fn published_wildcard(
    base: PublicationInput<'_>,
    listener: &ListenerState,
    policy: Option<&DnsPolicy>,
) -> Option<Hostname> {
    let wildcard = &listener.hostname;
    policy.filter(|policy| policy.allows_wildcards())?;
    base.may_have_wildcard(listener, wildcard).then(|| wildcard.clone())
}
