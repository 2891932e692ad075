//! Which route attaches to which listener under which hostname, and why the others do not.
//!
//! ```text
//! GatewayClass ◀─ Gateway ◀─ (ListenerSet) ◀─ listener ◀─ route
//! ```
//!
//! Everything is computed from the objects' specs. Status that a Gateway implementation wrote is compared with the
//! result in [`status_trust`]. Refused candidates keep their reason, so an explanation reads these values and computes
//! nothing again. Nothing here decides what is published.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use smallvec::smallvec;

use crate::model::*;
use crate::names::Hostname;
use crate::reason::{self, Reason};
use crate::snapshot::Snapshot;

pub mod backends;
pub(crate) mod certificates;
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

/// Which Gateways are evaluated.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Names of GatewayClasses; empty means all.
    pub classes: Vec<Str>,
}

/// The evaluated Gateways, ListenerSets, listeners and routes of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Gateways, including those out of scope.
    pub gateways: BTreeMap<Key, Arc<GatewayState>>,
    /// ListenerSets, including refused ones.
    pub sets: BTreeMap<ObjectRef, Arc<SetState>>,
    /// Routes with the result of each parentRef.
    pub routes: BTreeMap<ObjectRef, Arc<RouteState>>,
    /// The listeners of each Gateway, and those of each refused ListenerSet, by group number ([`ListenerId`]).
    pub(crate) groups: Vec<GatewayListeners>,
    /// Number of accepted routes per listener; listeners without any have no entry.
    pub(crate) attached: BTreeMap<ListenerId, u32>,
}

/// The id of a listener in one [`Topology`]. Ids are not ordered by precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId {
    pub(crate) group: u32,
    pub(crate) slot: u32,
}

/// A Gateway and the result of its evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayState {
    /// The object.
    pub gateway: Arc<Gateway>,
    /// Its GatewayClass, and the controller that implements it.
    pub class: ClassState,
    /// Why it is not accepted, if it is not.
    pub refused: Option<Reason>,
    /// Its merged listeners in order of precedence: its own, then those of its ListenerSets. Includes conflicted ones.
    pub listeners: Vec<ListenerId>,
    /// Number of accepted ListenerSets.
    pub attached_sets: usize,
    /// Its own listeners, indexed by name and hostname.
    pub listener_index: ListenerIndex,
}

/// What is known about a Gateway's class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassState {
    /// It exists; holds its controller name.
    Known(Str),
    /// It is not among the files; assumed to be accepted (D26).
    NotInInput,
    /// It does not exist in the cluster.
    Missing,
    /// The settings exclude it.
    NotOurs,
}

/// A ListenerSet and the result of its evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetState {
    /// The object.
    pub set: Arc<ListenerSet>,
    /// The Gateway it attaches to; unset if that is missing, out of scope, or does not allow the set.
    pub gateway: Option<Key>,
    /// Why it is not accepted, if it is not.
    pub refused: Option<Reason>,
    /// Its listeners, in spec order.
    pub listeners: Vec<ListenerId>,
    /// The same listeners, indexed by name and hostname.
    pub listener_index: ListenerIndex,
}

/// The object whose spec contains a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A Gateway's own.
    Gateway(Arc<Gateway>),
    /// A ListenerSet's.
    Set(Arc<ListenerSet>),
}

/// A listener and the result of its evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Its id.
    pub id: ListenerId,
    /// The object whose spec contains it.
    pub owner: Owner,
    /// Its index in the owner's `listeners`.
    pub index: usize,
    /// The Gateway it belongs to; unset for listeners of refused ListenerSets.
    pub gateway: Option<Key>,
    /// Its hostname; `*` if unset or unreadable.
    pub hostname: Hostname,
    /// Route kinds it accepts.
    pub supported_kinds: Vec<RouteKind>,
    /// Requested kinds that it cannot support (group, kind).
    pub unfit_kinds: Vec<(Str, Str)>,
    /// Why it is invalid regardless of other listeners: protocol, TLS mode, invalid hostname, CA certificates.
    pub refused: Option<Reason>,
    /// The listener it conflicts with, if any.
    pub conflict: Option<Conflict>,
    /// What is wrong with its certificates, one entry per reference.
    pub certificates: Vec<CertificateProblem>,
    /// Another TLS listener on its port whose hostname overlaps.
    pub overlaps: Option<ListenerId>,
}

/// A conflict with another listener, which may or may not have a winner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// `listener-hostname-conflict` or `listener-protocol-conflict`.
    pub reason: Reason,
    /// The other listener.
    pub with: ListenerId,
}

/// A route with the result of each parentRef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteState {
    /// The object.
    pub route: Arc<Route>,
    /// One entry per parentRef, in order.
    pub parents: ShortVec<ParentState>,
    /// Backends that cannot be used; they do not prevent attachment.
    pub backends: Vec<BackendProblem>,
}

/// The result of one parentRef. Listeners that refuse the route are not stored; [`routes::candidates`] computes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentState {
    /// The object it refers to.
    pub target: ParentTarget,
    /// Every listener that the route attaches to, in the parent's order.
    pub attached: ShortVec<Attachment>,
    /// Why the route is not accepted here; unset if it is accepted, or if the target is not evaluated.
    pub refused: Option<Reason>,
}

/// A listener that a route attaches to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Which listener.
    pub listener: ListenerId,
    /// The intersected hostnames; never empty.
    pub names: ShortVec<Intersection>,
}

/// The object that a parentRef refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentTarget {
    /// A Gateway in scope.
    Gateway(Key),
    /// A ListenerSet, and its Gateway if that allows the set.
    Set(ObjectRef, Option<Key>),
    /// A Gateway or ListenerSet that does not exist.
    Missing,
    /// A Gateway out of scope, or a ListenerSet of one.
    OutOfScope,
    /// Neither Gateway nor ListenerSet.
    OtherKind,
}

/// One listener that a parentRef could refer to.
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
    /// The intersected hostname; `*` if neither side has one.
    pub hostname: Hostname,
    /// Index of the route's hostname it came from; unset if the route has none.
    pub written: Option<u32>,
}

/// A listener by owner and name: `Gateway/infra/edge/https`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerKey {
    /// The Gateway or ListenerSet.
    pub owner: ObjectRef,
    /// The listener's name.
    pub section: Str,
}

/// The sort key of listeners. Ordered by Gateway; its own listeners precede those of its ListenerSets, which follow in
/// order of precedence, each in spec order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListenerPrecedence {
    gateway: Option<Key>,
    set: Option<listener_sets::SetPrecedence>,
    owner: Key,
    index: usize,
}

impl Topology {
    /// Evaluates a snapshot.
    pub fn build(snapshot: &Snapshot, scope: &Scope) -> Topology {
        let grants = Grants::of(snapshot);
        let mut topology = Topology::default();
        listeners::build(&mut topology, snapshot, &grants, scope);
        routes::build(&mut topology, snapshot, &grants);
        topology
    }

    /// A listener.
    pub fn listener(&self, id: ListenerId) -> &ListenerState {
        // Ids are only created for existing listeners, and are only used with the topology that created them.
        self.groups[id.group as usize].listener(id.slot).expect("a listener of this topology")
    }

    /// Every listener with its id: by Gateway in order of precedence, then those of refused sets.
    pub fn listener_ids(&self) -> impl Iterator<Item = (ListenerId, &ListenerState)> {
        let admitted = self.gateways.values().flat_map(|gateway| &gateway.listeners);
        let refused = self.sets.values().filter(|set| set.gateway.is_none()).flat_map(|set| &set.listeners);
        admitted.chain(refused).map(|id| (*id, self.listener(*id)))
    }

    /// Number of accepted routes that are attached to a listener.
    pub fn attached_routes(&self, id: ListenerId) -> usize {
        self.attached.get(&id).map_or(0, |count| *count as usize)
    }

    /// Every attached (route, listener) pair with its intersected hostnames. A pair that two parentRefs lead to occurs
    /// twice.
    pub fn attachments(&self) -> impl Iterator<Item = (&RouteState, ListenerId, &[Intersection])> {
        self.routes.values().flat_map(|route| {
            route.attachments().map(move |attachment| (&**route, attachment.listener, &*attachment.names))
        })
    }
}

impl RouteState {
    /// Every listener that it attaches to, in the order of its parentRefs.
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

    /// Its position in the order of all listeners.
    pub(crate) fn precedence(&self) -> ListenerPrecedence {
        let set = match &self.owner {
            Owner::Gateway(_) => None,
            Owner::Set(set) => Some(listener_sets::precedence(set)),
        };
        let owner = self.owner.meta().key.clone();
        ListenerPrecedence { gateway: self.gateway.clone(), set, owner, index: self.index }
    }

    /// Its owner and name.
    pub fn key(&self) -> ListenerKey {
        ListenerKey { owner: self.owner.object(), section: self.spec().name.clone() }
    }

    /// Whether it is accepted: valid by itself and without conflicts.
    pub fn is_accepted(&self) -> bool {
        self.refused.is_none() && self.conflict.is_none()
    }

    /// Whether it belongs to a Gateway and is accepted.
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
    /// Whether this Gateway is evaluated.
    pub fn is_in_scope(&self) -> bool {
        !matches!(self.class, ClassState::NotOurs | ClassState::Missing)
    }

    /// The controller that writes its status.
    pub fn controller(&self) -> Str {
        match &self.class {
            ClassState::Known(controller) => controller.clone(),
            _ => OWN_CONTROLLER.into(),
        }
    }
}

impl ParentState {
    /// The Gateway that it leads to, if any.
    pub fn gateway(&self) -> Option<&Key> {
        match &self.target {
            ParentTarget::Gateway(key) => Some(key),
            ParentTarget::Set(_, gateway) => gateway.as_ref(),
            _ => None,
        }
    }

    /// Whether the route gets a status entry for it: the target exists and is in scope.
    pub fn is_judged(&self) -> bool {
        matches!(self.target, ParentTarget::Gateway(_) | ParentTarget::Set(..))
    }
}

impl fmt::Display for ListenerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.section)
    }
}

/// The controller name of Gatepost's own class.
pub const OWN_CONTROLLER: &str = "gatepost.dev/gateway";
