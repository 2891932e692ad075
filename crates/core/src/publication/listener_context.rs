//! The listener's side of publishing: whatever is the same for every route at a listener, decided once.
//!
//! An outlet is made from its Gateway's judged listeners, policies and statuses alone; it knows no route. Two equal outlets
//! mean the same to every route.

use std::cmp::Ordering;
use std::sync::Arc;

use super::addresses::{self, Resolved, Targets};
use super::certificates::{self, Terms};
use super::obstacles::Obstacle;
use super::selection::{Selected, gateway_object};
use super::strict::{Base, Context};
use super::verdicts::{self, Opinion};
use crate::attachment::{
    CertificateProblem, ClassState, GatewayState, Hall, ListenerId, ListenerKey, ListenerState, Owner,
};
use crate::lint::{listener_field, listener_name};
use crate::model::*;
use crate::names::Hostname;
use crate::policy::Policy;
use crate::publication::settings::Publish;
use crate::reason::{self, Reason};
use crate::snapshot::Visibility;

/// What a listener decides for every route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outlet {
    /// Which listener.
    pub(super) id: ListenerId,
    /// Its name, and its place among others.
    pub(super) seat: Seat,
    /// The Gateway or ListenerSet that the settings leave out, and why.
    pub(super) left_out: Option<(ObjectRef, String)>,
    /// Why it carries nothing by our own judgement, if so.
    pub(super) computed: Option<Obstacle>,
    /// The least favourable word of Gateway, ListenerSet and listener; none where none of them is there.
    pub(super) opinion: Option<Opinion>,
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
    pub(super) teller: ObjectRef,
    /// The key of that annotation.
    pub(super) target_key: Option<Str>,
    /// Those targets, without empty ones.
    pub(super) targets: Vec<Str>,
    /// The addresses of the Gateway under the policy; none where there is no Gateway.
    pub(super) addresses: Option<Arc<Resolved>>,
    /// What a route without targets of its own is answered with.
    pub(super) usual: Option<Arc<Resolved>>,
    /// What certificates need, where TLS ends here.
    pub(super) terms: Option<Arc<Terms>>,
}

/// A listener as claims are ranked by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Its name.
    pub(super) key: ListenerKey,
    /// The same as a list, which records of one listener share.
    pub(super) alone: List<ListenerKey>,
    /// Age and name of the policy that governs.
    pub(super) policy: Option<(i64, Key)>,
    /// Age and name of its Gateway; the name is empty where there is none.
    pub(super) gateway: (i64, Key),
    /// Age and name of its ListenerSet.
    set: Option<(i64, Key, Kind)>,
    /// Which of its owner's listeners.
    pub(super) index: usize,
    /// The TTL of the policy.
    pub(super) policy_ttl: Option<u32>,
    /// The listener's wildcard, where it is one that the policy and the settings let be published.
    pub(super) wildcard: Option<Hostname>,
}

impl Outlet {
    /// What a route without targets of its own is answered with, where it can be.
    pub(super) fn usual_targets(&self) -> Option<&Arc<Targets>> {
        self.usual.as_ref()?.targets.as_ref().ok()
    }

    /// Whether a route that is accepted here gets its names without a word: no policy governs, and nothing is in the way.
    pub(super) fn is_plain(&self) -> bool {
        let is_governed = self.policy.is_some() || self.ungoverned.is_some() || self.seat.wildcard.is_some();
        let is_answered =
            self.usual.as_ref().is_some_and(|usual| usual.targets.is_ok() && usual.diagnostics.is_empty());
        self.left_out.is_none()
            && !is_governed
            && is_answered
            && self.terms.as_ref().is_none_or(|terms| terms.are_plain())
    }

    /// Whether the names of plain routes are to be in certificates.
    pub(super) fn certifies(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.certify())
    }

    /// The Secrets whose certificates are to have the names of routes at this listener, sorted.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Key> {
        self.terms.iter().flat_map(|terms| terms.secrets())
    }
}

impl Seat {
    /// The order of claims by policy: those under one first, by its age.
    pub(super) fn by_policy(&self, other: &Seat) -> Ordering {
        self.policy.is_none().cmp(&other.policy.is_none()).then_with(|| self.policy.cmp(&other.policy))
    }

    /// The order of listeners of one Gateway.
    pub(super) fn by_precedence(&self, other: &Seat) -> Ordering {
        self.set.cmp(&other.set).then(self.index.cmp(&other.index))
    }

    /// The order of listeners of all Gateways.
    pub(super) fn by_gateway(&self, other: &Seat) -> Ordering {
        self.gateway.1.cmp(&other.gateway.1).then_with(|| self.by_precedence(other))
    }

    /// The Gateway.
    pub(super) fn gateway_object(&self) -> ObjectRef {
        gateway_object(&self.gateway.1)
    }
}

/// The outlets of all listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlets(Arc<Vec<Arc<HallOutlets>>>);

/// The outlets of one Gateway, or of a refused set, by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct HallOutlets {
    slots: Vec<Option<Arc<Outlet>>>,
    /// What they were made from: the listeners, and what all of them take from the Gateway, where there is one.
    hall: Arc<Hall>,
    common: Option<Common>,
}

/// What the outlets of a Gateway take from it, where no policy has a say.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Common {
    age: (i64, Key),
    refused: Option<Reason>,
    controller: Option<Str>,
    speaks: bool,
    opinion: Opinion,
    selected: Selected,
    addresses: Arc<Resolved>,
}

impl Outlets {
    /// Those of every listener.
    pub(super) fn of(context: Context<'_>) -> Self {
        let halls = context.base.topology.halls.iter();
        Outlets(Arc::new(halls.map(|hall| Arc::new(HallOutlets::of(context, hall, None))).collect()))
    }

    /// Replaces those of one hall; gives back what was there.
    pub(crate) fn set(&mut self, hall: u32, outlets: Arc<HallOutlets>) -> Arc<HallOutlets> {
        let halls = Arc::make_mut(&mut self.0);
        halls.resize_with(halls.len().max(hall as usize + 1), Arc::default);
        std::mem::replace(&mut halls[hall as usize], outlets)
    }

    /// Those of one hall.
    pub(crate) fn of_hall(&self, hall: u32) -> Option<Arc<HallOutlets>> {
        self.0.get(hall as usize).cloned()
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Outlet>> {
        self.0.iter().flat_map(|hall| hall.slots.iter().flatten())
    }

    /// That of one listener.
    pub(super) fn at(&self, id: ListenerId) -> &Arc<Outlet> {
        // Outlets are made for every listener of a topology.
        self.0[id.hall as usize].at(id.slot).expect("the outlet of a listener of this topology")
    }
}

impl HallOutlets {
    /// Those of the listeners that are judged together. What can only be as it was `before` is taken over: no policy may have
    /// been judged since.
    pub(crate) fn of(context: Context<'_>, hall: &Arc<Hall>, before: Option<&HallOutlets>) -> Self {
        let common = Common::of(context.base, hall);
        let before = before.filter(|before| common.is_some() && before.common == common);
        let known = |slot: u32| before?.known(hall, slot);
        let mut maker = Maker::of(context, hall);
        let outlet = |(slot, listener): (usize, Option<&ListenerState>)| {
            let listener = listener?;
            Some(known(slot as u32).unwrap_or_else(|| Arc::new(maker.outlet(listener))))
        };
        HallOutlets { slots: hall.slots().enumerate().map(outlet).collect(), hall: hall.clone(), common }
    }

    /// The outlet of a listener that is as it was, and that nobody refuses.
    fn known(&self, hall: &Hall, slot: u32) -> Option<Arc<Outlet>> {
        let listener = hall.listener(slot).filter(|_| self.hall.is_same_slot(hall, slot))?;
        let is_forbidden = |problem: &CertificateProblem| problem.reason == reason::REFERENCE_NOT_PERMITTED;
        let is_sound = listener.is_accepted() && !listener.certificates.iter().any(is_forbidden);
        let outlet = self.slots.get(slot as usize)?.as_ref()?;
        (is_sound && outlet.computed.is_none()).then(|| outlet.clone())
    }

    /// How many slots there are.
    pub(crate) fn width(&self) -> usize {
        self.slots.len()
    }

    /// That of one listener.
    pub(crate) fn at(&self, slot: u32) -> Option<&Arc<Outlet>> {
        self.slots.get(slot as usize)?.as_ref()
    }
}

impl Common {
    fn of(base: Base<'_>, hall: &Hall) -> Option<Self> {
        let state = hall.slots().flatten().next().and_then(|listener| verdicts::gateway_of(base.topology, listener))?;
        let gateway = &state.gateway;
        let (created, key) = gateway.meta.seniority();
        Some(Common {
            age: (created, key.clone()),
            refused: state.refused,
            controller: controller(state),
            speaks: !gateway.status.conditions.is_empty(),
            opinion: verdicts::of_gateway(gateway),
            selected: Selected::gateway(gateway, base.settings),
            addresses: Arc::new(addresses::of_gateway(base, gateway, None)),
        })
    }
}

/// Who runs a Gateway, where that is known.
fn controller(state: &GatewayState) -> Option<Str> {
    match &state.class {
        ClassState::Known(controller) => Some(controller.clone()),
        _ => None,
    }
}

/// Makes the outlets of one hall, and remembers what its listeners share.
struct Maker<'a> {
    context: Context<'a>,
    gateway: Option<GatewaySide<'a>>,
    /// The ListenerSet that was asked for last.
    set: Option<SetSide>,
    /// Addresses of the Gateway, by policy.
    addresses: Vec<(Option<Key>, Arc<Resolved>)>,
}

/// What listeners take from their Gateway.
struct GatewaySide<'a> {
    state: &'a GatewayState,
    selected: Selected,
    opinion: Opinion,
    computed: Option<Obstacle>,
}

/// What listeners take from their ListenerSet.
struct SetSide {
    selected: Selected,
    opinion: Opinion,
    computed: Option<Obstacle>,
}

impl<'a> GatewaySide<'a> {
    fn of(base: Base<'_>, state: &'a GatewayState) -> Self {
        GatewaySide {
            state,
            selected: Selected::gateway(&state.gateway, base.settings),
            opinion: verdicts::of_gateway(&state.gateway),
            computed: verdicts::computed_gateway(base, state),
        }
    }
}

impl SetSide {
    fn of(base: Base<'_>, set: &ListenerSet) -> Self {
        SetSide {
            selected: Selected::set(set, base.settings),
            opinion: verdicts::of_set(set),
            computed: verdicts::computed_set(base, set),
        }
    }
}

impl<'a> Maker<'a> {
    fn of(context: Context<'a>, hall: &Hall) -> Self {
        // All listeners of a hall have the same Gateway, or none.
        let first = hall.slots().flatten().next();
        let gateway = first.and_then(|listener| verdicts::gateway_of(context.base.topology, listener));
        let gateway = gateway.map(|state| GatewaySide::of(context.base, state));
        Maker { context, gateway, set: None, addresses: Vec::new() }
    }

    fn outlet(&mut self, listener: &ListenerState) -> Outlet {
        let Context { base, policies } = self.context;
        let gateway = self.gateway.as_ref().map(|side| side.state);
        let spoken = verdicts::status_index(listener);
        let policy = policies.dns.governing(listener.id);
        let addresses = gateway.map(|gateway| self.addresses(&gateway.gateway, policy.map(|policy| &**policy)));
        self.enter(listener);
        let (teller, target_key, targets) = self.told(listener);
        let usual = match targets.is_empty() {
            true => addresses.clone(),
            false => {
                let policy = policy.map(|policy| &**policy);
                Some(Arc::new(addresses::of_annotations(&targets, policy, &teller, target_key.as_ref())))
            }
        };
        Outlet {
            id: listener.id,
            seat: seat(base, listener, gateway, policy.map(|policy| &**policy)),
            left_out: self.left_out(listener),
            computed: self.computed(listener),
            opinion: self.opinion(listener, spoken),
            speaks: gateway.is_some_and(|state| !state.gateway.status.conditions.is_empty()),
            controller: gateway.and_then(controller),
            waits_for_secret: verdicts::waits_for_secret(listener, spoken),
            policy: policy.cloned(),
            ungoverned: ungoverned(self.context, listener, policy.is_some()),
            teller,
            target_key,
            targets,
            addresses,
            usual,
            terms: certificates::terms(self.context, listener).map(Arc::new),
        }
    }

    /// Looks at the listener's ListenerSet, where it is not the one that was looked at last.
    fn enter(&mut self, listener: &ListenerState) {
        let Owner::Set(set) = &listener.owner else { return };
        let is_same =
            |known: &SetSide| known.selected.object.key == set.meta.key && known.selected.object.kind == set.kind;
        if !self.set.as_ref().is_some_and(is_same) {
            self.set = Some(SetSide::of(self.context.base, set));
        }
    }

    /// What is known of the listener's ListenerSet, where it has one.
    fn set_of(&self, listener: &ListenerState) -> Option<&SetSide> {
        self.set.as_ref().filter(|_| matches!(listener.owner, Owner::Set(_)))
    }

    fn left_out(&self, listener: &ListenerState) -> Option<(ObjectRef, String)> {
        let told = |selected: &Selected| Some((selected.object.clone(), selected.left_out.clone()?));
        let above = self.gateway.as_ref().and_then(|side| told(&side.selected));
        above.or_else(|| told(&self.set_of(listener)?.selected)).or_else(|| told(&self.alone(listener)?))
    }

    /// Why the listener carries nothing by our own judgement, if so; nothing is said where it is part of no Gateway.
    fn computed(&self, listener: &ListenerState) -> Option<Obstacle> {
        let gateway = self.gateway.as_ref()?;
        let set = || self.set_of(listener)?.computed.clone();
        gateway.computed.clone().or_else(set).or_else(|| verdicts::computed(self.context.base, listener))
    }

    fn opinion(&self, listener: &ListenerState, spoken: Option<usize>) -> Option<Opinion> {
        let gateway = self.gateway.as_ref().map(|side| &side.opinion);
        let set = self.set_of(listener).map(|side| &side.opinion);
        verdicts::of_listener_side(listener, spoken, [gateway, set])
    }

    /// The Gateway of a listener that is part of none, as the settings see it.
    fn alone(&self, listener: &ListenerState) -> Option<Selected> {
        match &listener.owner {
            Owner::Gateway(gateway) if self.gateway.is_none() => {
                Some(Selected::gateway(gateway, self.context.base.settings))
            }
            _ => None,
        }
    }

    /// The targets that a listener's owner names: a ListenerSet's own, else its Gateway's.
    fn told(&self, listener: &ListenerState) -> (ObjectRef, Option<Str>, Vec<Str>) {
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

    fn addresses(&mut self, gateway: &Gateway, policy: Option<&DnsPolicy>) -> Arc<Resolved> {
        let key = policy.map(|policy| &policy.meta.key);
        if let Some((_, known)) = self.addresses.iter().find(|(known, _)| known.as_ref() == key) {
            return known.clone();
        }
        let resolved = Arc::new(addresses::of_gateway(self.context.base, gateway, policy));
        self.addresses.push((key.cloned(), resolved.clone()));
        resolved
    }
}

fn seat(base: Base<'_>, listener: &ListenerState, gateway: Option<&GatewayState>, policy: Option<&DnsPolicy>) -> Seat {
    let age = |meta: &Meta| {
        let (created, key) = meta.seniority();
        (created, key.clone())
    };
    let key = listener.key();
    Seat {
        alone: [key.clone()].into(),
        key,
        policy: policy.map(|policy| age(&policy.meta)),
        gateway: gateway.map_or_else(|| (0, Key::new("", "")), |state| age(&state.gateway.meta)),
        set: match &listener.owner {
            Owner::Gateway(_) => None,
            Owner::Set(set) => Some((age(&set.meta).0, set.meta.key.clone(), set.kind)),
        },
        index: listener.index,
        policy_ttl: policy.and_then(|policy| policy.ttl),
        wildcard: published_wildcard(base, listener, policy),
    }
}

/// Why nothing is published at a listener by want of a policy, if so.
fn ungoverned(context: Context<'_>, listener: &ListenerState, is_governed: bool) -> Option<Obstacle> {
    let obstacle = |reason, message| {
        let (object, field) = (listener.owner.object(), listener_field(listener, ""));
        Some(Obstacle { reason, message, object, field })
    };
    if *context.base.snapshot.visibility(Kind::DnsPolicy) != Visibility::Complete {
        let message = "DNSPolicies could not be listed, so it is not known what is allowed".to_owned();
        return obstacle(reason::KIND_NOT_VISIBLE, message);
    }
    if is_governed || context.base.settings.publish == Publish::All {
        return None;
    }
    let name = listener_name(listener);
    match context.policies.dns.invalid(listener.id) {
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
fn published_wildcard(base: Base<'_>, listener: &ListenerState, policy: Option<&DnsPolicy>) -> Option<Hostname> {
    let wildcard = &listener.hostname;
    policy.filter(|policy| policy.allows_wildcards())?;
    (wildcard.is_wildcard() && base.settings.domains.admits(wildcard.as_str())).then(|| wildcard.clone())
}
