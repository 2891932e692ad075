//! The listeners that a policy targets, and its distance from each.

use super::*;
use crate::attachment::{ClassState, GatewayState, ListenerState, Owner};
use crate::lint::{closest, listed};
use crate::snapshot::Origin;

/// How specifically a policy targets a listener; the smallest value governs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Distance {
    /// It targets the listener.
    Section,
    /// It targets the listener's owner.
    Owner,
    /// It targets the Gateway that the listener's ListenerSet attaches to.
    Inherited,
}

/// The distance of a policy from a listener that it targets.
pub(super) fn distance<P: Policy>(policy: &P, listener: &ListenerState) -> Distance {
    match (&policy.target().section, &listener.owner) {
        (Some(_), _) => Distance::Section,
        (None, Owner::Set(_)) if kind(policy) == Some(Kind::Gateway) => Distance::Inherited,
        (None, _) => Distance::Owner,
    }
}

/// The target, for comparing policies; `None` if its kind is not supported.
pub(super) fn identity<P: Policy>(policy: &P) -> Option<(ObjectRef, Option<Str>)> {
    let kind = kind(policy)?;
    Some((ObjectRef { kind, key: key(policy) }, policy.target().section.clone()))
}

/// The listeners that a policy targets, or why the target does not exist.
pub(super) fn listeners<P: Policy>(
    snapshot: &Snapshot,
    topology: &Topology,
    policy: &P,
) -> Result<Vec<ListenerId>, Refusal> {
    let target = TargetLookup { snapshot, topology, key: key(policy) };
    let (kind, own) = match kind(policy) {
        Some(Kind::Gateway) => (Kind::Gateway, target.gateway()?),
        Some(kind) => (kind, target.set(kind)?),
        None => return Err(missing("kind", unknown_kind(policy.target()))),
    };
    match &policy.target().section {
        None if kind == Kind::Gateway => Ok(target.merged()),
        None => Ok(own),
        Some(section) => target.section(kind, &own, section),
    }
}

struct TargetLookup<'a> {
    snapshot: &'a Snapshot,
    topology: &'a Topology,
    key: Key,
}

impl TargetLookup<'_> {
    /// The Gateway's own listeners.
    fn gateway(&self) -> Result<Vec<ListenerId>, Refusal> {
        let state = self.topology.gateways.get(&self.key).ok_or_else(|| self.absent(Kind::Gateway))?;
        in_scope(state)?;
        Ok(state.listeners[..state.gateway.listeners.len()].to_vec())
    }

    /// The Gateway's listeners, including those of its ListenerSets.
    fn merged(&self) -> Vec<ListenerId> {
        self.topology.gateways.get(&self.key).map(|state| state.listeners.clone()).unwrap_or_default()
    }

    /// A ListenerSet's listeners.
    fn set(&self, kind: Kind) -> Result<Vec<ListenerId>, Refusal> {
        let object = ObjectRef { kind, key: self.key.clone() };
        let state = self.topology.sets.get(&object).ok_or_else(|| self.absent(kind))?;
        let parent = &state.set.parent;
        let gateway = Key::new(parent.namespace_or(&self.key.namespace).clone(), parent.name.clone());
        if let Some(gateway) = self.topology.gateways.get(&gateway) {
            in_scope(gateway)?;
        }
        Ok(state.listeners.clone())
    }

    fn section(&self, kind: Kind, own: &[ListenerId], section: &Str) -> Result<Vec<ListenerId>, Refusal> {
        let name = |id: &ListenerId| &self.topology.listener(*id).spec().name;
        let found: Vec<_> = own.iter().copied().filter(|id| name(id) == section).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let names = || own.iter().map(|id| &**name(id));
        let near = closest(section, names()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("{kind} {} has no listener `{section}`; it has {}{near}", self.key, listed(names()));
        Err(missing("sectionName", message))
    }

    fn absent(&self, kind: Kind) -> Refusal {
        if !is_visible(self.snapshot, kind) {
            let message = format!("objects of kind {kind} could not be listed, so the target is not known");
            return Refusal { reason: reason::KIND_NOT_VISIBLE, ..missing("name", message) };
        }
        let absent = match self.snapshot.origin {
            Origin::Files => "is not in the input",
            Origin::Cluster => "does not exist",
        };
        missing("name", format!("{kind} {} {absent}; a policy and its target share a namespace", self.key))
    }
}

fn in_scope(state: &GatewayState) -> Result<(), Refusal> {
    let gateway = &state.gateway;
    let why = match state.class {
        ClassState::NotOurs => "which `--gateway-class` leaves out",
        ClassState::Missing => "which does not exist",
        ClassState::Known(_) | ClassState::NotInInput => return Ok(()),
    };
    Err(missing("name", format!("Gateway {} is of class `{}`, {why}", gateway.meta.key, gateway.class)))
}

fn missing(field: &str, message: String) -> Refusal {
    let field = FieldPath::of("spec.targetRef").key(field);
    Refusal { reason: reason::POLICY_TARGET_MISSING, message, field, winner: None }
}

fn unknown_kind(target: &PolicyTarget) -> String {
    let group = if target.object.group.is_empty() { "core" } else { &target.object.group };
    format!("a policy is about a Gateway or a ListenerSet, not about {} of group {group}", target.object.kind)
}

fn kind<P: Policy>(policy: &P) -> Option<Kind> {
    let object = &policy.target().object;
    let kind = Kind::of(&object.group, &object.kind)?;
    matches!(kind, Kind::Gateway | Kind::ListenerSet | Kind::XListenerSet).then_some(kind)
}

/// The target's key, which is in the namespace of the policy.
fn key<P: Policy>(policy: &P) -> Key {
    Key::new(policy.meta().key.namespace.clone(), policy.target().object.name.clone())
}
