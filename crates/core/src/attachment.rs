//! Which route attaches to which listener under which hostname, and why the others do not.
//!
//! ```text
//! GatewayClass ◀─ Gateway ◀─ (ListenerSet) ◀─ listener ◀─ route
//! ```
//!
//! Everything is computed from the objects' specs; status that others wrote is a second observed_status ([`status_trust`]). Refused
//! candidates are kept with their reason, so that an explanation is a walk over these values and never a second computation.
//! Nothing here decides what is published.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use smallvec::smallvec;

use crate::model::*;
use crate::names::Hostname;
use crate::reason::{self, Reason};
use crate::snapshot::Snapshot;

pub mod backends;
mod certificates;
mod conflicts;
mod grants;
mod listener_index;
pub mod listener_sets;
pub mod listeners;
pub mod routes;
pub mod status_trust;

pub use backends::{BackendProblem, BackendUse};
pub use certificates::{CertificateProblem, CertificateUse};
pub use grants::{Grants, Referrer};
pub use listener_index::ListenerIndex;
pub(crate) use listeners::GatewayListeners;

/// What decides whose Gateways are looked at.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Names of GatewayClasses; empty means all.
    pub classes: Vec<Str>,
}

/// The whole ownership tree of a snapshot, evaluated.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Gateways, those out of scope too.
    pub gateways: BTreeMap<Key, Arc<GatewayState>>,
    /// ListenerSets, refused ones too.
    pub sets: BTreeMap<ObjectRef, Arc<SetState>>,
    /// Routes with what became of each parentRef.
    pub routes: BTreeMap<ObjectRef, Arc<RouteState>>,
    /// The listeners of each Gateway, and those of each refused set, by the number that their ids carry.
    pub(crate) groups: Vec<GatewayListeners>,
    /// How many accepted routes are attached to each listener that has any.
    pub(crate) attached: BTreeMap<ListenerId, u32>,
}

/// A listener of a [`Topology`]. Its value says nothing of its precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId {
    pub(crate) group: u32,
    pub(crate) slot: u32,
}

/// A Gateway, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayState {
    /// The object.
    pub gateway: Arc<Gateway>,
    /// Who runs it.
    pub class: ClassState,
    /// Why it is not accepted, if it is not.
    pub refused: Option<Reason>,
    /// Its merged listeners in order of precedence: own, then those of its ListenerSets. Conflicted ones are in here.
    pub listeners: Vec<ListenerId>,
    /// How many ListenerSets are accepted.
    pub attached_sets: usize,
    /// Its own listeners, found by name and hostname.
    pub listener_index: ListenerIndex,
}

/// What is known of a Gateway's class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassState {
    /// It is there; holds who runs it.
    Known(Str),
    /// It is not among the files: taken as accepted (D26).
    NotInInput,
    /// It does not exist in the cluster.
    Missing,
    /// It is left out by the settings.
    NotOurs,
}

/// A ListenerSet, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetState {
    /// The object.
    pub set: Arc<ListenerSet>,
    /// The Gateway it joins; unset where that is missing, out of scope, or does not admit it.
    pub gateway: Option<Key>,
    /// Why it is not accepted, if it is not.
    pub refused: Option<Reason>,
    /// Its listeners, in order.
    pub listeners: Vec<ListenerId>,
    /// The same, found by name and hostname.
    pub listener_index: ListenerIndex,
}

/// Whose listener it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A Gateway's own.
    Gateway(Arc<Gateway>),
    /// A ListenerSet's.
    Set(Arc<ListenerSet>),
}

/// A listener, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Which it is.
    pub id: ListenerId,
    /// Whose it is.
    pub owner: Owner,
    /// Which of the owner's listeners, counted from 0.
    pub index: usize,
    /// The Gateway it is part of; unset for listeners of refused ListenerSets.
    pub gateway: Option<Key>,
    /// Its hostname; `*` if unset or unreadable.
    pub hostname: Hostname,
    /// Kinds of routes it takes.
    pub supported_kinds: Vec<RouteKind>,
    /// Kinds it requests for and cannot take (group, kind).
    pub unfit_kinds: Vec<(Str, Str)>,
    /// Why it is not accepted for itself: protocol, TLS mode, unreadable hostname, CA certificates.
    pub refused: Option<Reason>,
    /// With whom it conflicts, if it does.
    pub conflict: Option<Conflict>,
    /// What is wrong with its certificates, one entry per reference.
    pub certificates: Vec<CertificateProblem>,
    /// Another TLS listener on its port whose hostname overlaps.
    pub overlaps: Option<ListenerId>,
}

/// A conflict that a listener has lost or shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// `listener-hostname-conflict` or `listener-protocol-conflict`.
    pub reason: Reason,
    /// The other party.
    pub with: ListenerId,
}

/// A route with what became of each parentRef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteState {
    /// The object.
    pub route: Arc<Route>,
    /// One entry per parentRef, in order.
    pub parents: ShortVec<ParentState>,
    /// Backends that cannot be used; they do not keep the route from attaching.
    pub backends: Vec<BackendProblem>,
}

/// What became of one parentRef. The listeners that refuse the route are not kept: [`routes::candidates`] tells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentState {
    /// What it points to; one value for all routes that name the same parents.
    pub target: ParentTarget,
    /// Every listener that the route attaches to, in the order of the parent.
    pub attached: ShortVec<Attachment>,
    /// Why the route is not accepted here; unset if it is, or where the target is nobody's.
    pub refused: Option<Reason>,
}

/// A listener that a route attaches to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Which listener.
    pub listener: ListenerId,
    /// The intersected hostnames; never none.
    pub names: ShortVec<Intersection>,
}

/// What a parentRef points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentTarget {
    /// A Gateway in scope.
    Gateway(Key),
    /// A ListenerSet, and the Gateway it belongs to where it is admitted.
    Set(ObjectRef, Option<Key>),
    /// A Gateway or ListenerSet that is not there.
    Missing,
    /// A Gateway, or a ListenerSet of one, that is not ours to judge.
    OutOfScope,
    /// Neither Gateway nor ListenerSet.
    OtherKind,
}

/// One listener that a parentRef could mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which listener.
    pub listener: ListenerId,
    /// The intersected hostnames, or why it does not attach here.
    pub verdict: Result<ShortVec<Intersection>, Reason>,
}

/// A hostname that a listener and a route have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Intersection {
    /// The intersected hostname; `*` where neither side names one.
    pub hostname: Hostname,
    /// Which of the route's hostnames it came from, counted from 0; unset where the route has none.
    pub written: Option<u32>,
}

/// A listener by name: `Gateway/infra/edge/https`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerKey {
    /// The Gateway or ListenerSet.
    pub owner: ObjectRef,
    /// The listener's name.
    pub section: Str,
}

/// The order of listeners: by Gateway, there the Gateway's own first, then those of its ListenerSets in order of
/// precedence, and each in its owner's order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListenerPrecedence {
    gateway: Option<Key>,
    set: Option<listener_sets::SetPrecedence>,
    owner: Key,
    index: usize,
}

impl Topology {
    /// Judges a snapshot.
    pub fn build(snapshot: &Snapshot, scope: &Scope) -> Topology {
        let grants = Grants::of(snapshot);
        let mut topology = Topology::default();
        listeners::build(&mut topology, snapshot, &grants, scope);
        routes::build(&mut topology, snapshot, &grants);
        topology
    }

    /// A listener.
    pub fn listener(&self, id: ListenerId) -> &ListenerState {
        // Ids are only given out for listeners that are there, and are used with the topology that they are of.
        self.groups[id.group as usize].listener(id.slot).expect("a listener of this topology")
    }

    /// Every listener with its id: Gateway by Gateway in order of precedence, then those of refused sets.
    pub fn listener_ids(&self) -> impl Iterator<Item = (ListenerId, &ListenerState)> {
        let admitted = self.gateways.values().flat_map(|gateway| &gateway.listeners);
        let refused = self.sets.values().filter(|set| set.gateway.is_none()).flat_map(|set| &set.listeners);
        admitted.chain(refused).map(|id| (*id, self.listener(*id)))
    }

    /// How many accepted routes are attached to a listener.
    pub fn attached_routes(&self, id: ListenerId) -> usize {
        self.attached.get(&id).map_or(0, |count| *count as usize)
    }

    /// Every attached (route, listener) pair with its intersected hostnames. A route that reaches a listener through two
    /// parentRefs is given twice.
    pub fn attachments(&self) -> impl Iterator<Item = (&RouteState, ListenerId, &[Intersection])> {
        self.routes.values().flat_map(|route| {
            route.attachments().map(move |attachment| (&**route, attachment.listener, &*attachment.names))
        })
    }
}

impl RouteState {
    /// Every listener that it attaches to, parentRef by parentRef.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.parents.iter().flat_map(|parent| &parent.attached)
    }

    /// Whether it attaches to a listener.
    pub fn is_attached_to(&self, listener: ListenerId) -> bool {
        self.attachments().any(|attachment| attachment.listener == listener)
    }
}

impl ListenerState {
    /// The listener's spec.
    pub fn spec(&self) -> &Listener {
        &self.owner.listeners()[self.index]
    }

    /// Its place in the order of all listeners.
    pub(crate) fn precedence(&self) -> ListenerPrecedence {
        let set = match &self.owner {
            Owner::Gateway(_) => None,
            Owner::Set(set) => Some(listener_sets::precedence(set)),
        };
        let owner = self.owner.meta().key.clone();
        ListenerPrecedence { gateway: self.gateway.clone(), set, owner, index: self.index }
    }

    /// Its name.
    pub fn key(&self) -> ListenerKey {
        ListenerKey { owner: self.owner.object(), section: self.spec().name.clone() }
    }

    /// Whether it is accepted: valid for itself and not conflicted.
    pub fn is_accepted(&self) -> bool {
        self.refused.is_none() && self.conflict.is_none()
    }

    /// Whether it takes part in a Gateway and is accepted.
    pub fn is_serving(&self) -> bool {
        self.gateway.is_some() && self.is_accepted()
    }
}

impl Owner {
    /// Which object it is.
    pub fn object(&self) -> ObjectRef {
        match self {
            Owner::Gateway(gateway) => ObjectRef { kind: Kind::Gateway, key: gateway.meta.key.clone() },
            Owner::Set(set) => set.object(),
        }
    }

    /// Name, age and labels.
    pub fn meta(&self) -> &Meta {
        match self {
            Owner::Gateway(gateway) => &gateway.meta,
            Owner::Set(set) => &set.meta,
        }
    }

    /// Its listeners.
    pub fn listeners(&self) -> &[Listener] {
        match self {
            Owner::Gateway(gateway) => &gateway.listeners,
            Owner::Set(set) => &set.listeners,
        }
    }
}

impl GatewayState {
    /// Whether it is ours to judge.
    pub fn is_in_scope(&self) -> bool {
        !matches!(self.class, ClassState::NotOurs | ClassState::Missing)
    }

    /// Who writes its status.
    pub fn controller(&self) -> Str {
        match &self.class {
            ClassState::Known(controller) => controller.clone(),
            _ => OWN_CONTROLLER.into(),
        }
    }
}

impl ParentState {
    /// The Gateway behind it, where there is one.
    pub fn gateway(&self) -> Option<&Key> {
        match &self.target {
            ParentTarget::Gateway(key) => Some(key),
            ParentTarget::Set(_, gateway) => gateway.as_ref(),
            _ => None,
        }
    }

    /// Whether a status entry is dirty: the target is there and in scope.
    pub fn is_judged(&self) -> bool {
        matches!(self.target, ParentTarget::Gateway(_) | ParentTarget::Set(..))
    }

    /// Whether the route is accepted here.
    pub fn is_accepted(&self) -> bool {
        self.is_judged() && self.refused.is_none()
    }
}

impl fmt::Display for ListenerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.section)
    }
}

/// The controller name of Gatepost's own class.
pub const OWN_CONTROLLER: &str = "gatepost.dev/gateway";

/// The reasons a listener conflict can have.
pub const CONFLICTS: [Reason; 2] = [reason::LISTENER_HOSTNAME_CONFLICT, reason::LISTENER_PROTOCOL_CONFLICT];
