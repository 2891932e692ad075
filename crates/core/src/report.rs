//! The status that every object should have.
//!
//! Conditions and counts follow from [`crate::attachment`]; messages come from [`crate::lint`]. What others wrote is kept field by
//! field, in its place: entries of other controllers, conditions of types that are not ours. `Programmed` belongs to the data
//! plane: what it says is left to it, and is unknown or false until it does. Nothing is written to a cluster here, and
//! time is a parameter.

use std::collections::BTreeSet;

use crate::attachment::*;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::lint::LintContext;
use crate::model::*;
use crate::policy::{HostnameReport, PolicyReport};
use crate::reason;
use crate::snapshot::Snapshot;

mod conditions;

/// The statuses of all objects in scope.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One entry per object in scope, in order.
    pub items: Vec<Item>,
    /// What could not be reported, such as a list that others have filled.
    pub diagnostics: Vec<Diagnostic>,
    /// The time of conditions whose status is new.
    now: Option<Str>,
}

/// The status of one object.
#[derive(Clone, Debug)]
pub struct Item {
    /// Which object.
    pub object: ObjectRef,
    /// Its status.
    pub status: ObjectStatus,
}

/// A status, by kind.
#[derive(Clone, Debug)]
pub enum ObjectStatus {
    /// Of a GatewayClass.
    Class(Conditions),
    /// Of a Gateway.
    Gateway {
        /// Conditions.
        conditions: Conditions,
        /// Addresses, as they were read.
        addresses: Vec<Address>,
        /// Per listener.
        listeners: Vec<ListenerReport>,
        /// How many ListenerSets are accepted.
        attached_sets: usize,
    },
    /// Of a ListenerSet.
    Set {
        /// Conditions.
        conditions: Conditions,
        /// Per listener.
        listeners: Vec<ListenerReport>,
    },
    /// Of a route: per parent.
    Route(Vec<ParentReport>),
    /// Of a DNSPolicy or TLSPolicy.
    Policy {
        /// Conditions.
        conditions: Conditions,
        /// Every hostname on the listeners it governs.
        hostnames: Vec<HostnameReport>,
    },
}

/// `status.listeners[]`.
#[derive(Clone, Debug)]
pub struct ListenerReport {
    /// Which listener.
    pub name: Str,
    /// Kinds of routes it takes.
    pub supported_kinds: Vec<RouteKind>,
    /// How many routes are attached.
    pub attached_routes: usize,
    /// Conditions.
    pub conditions: Conditions,
}

/// `status.parents[]`.
#[derive(Clone, Debug)]
pub struct ParentReport {
    /// The parent.
    pub parent: ParentRef,
    /// The controller that writes it.
    pub controller: Str,
    /// Conditions.
    pub conditions: Conditions,
}

/// At most this many conditions in one list.
const MAX_CONDITIONS: usize = 8;
/// At most this many parents in a route's status.
const MAX_PARENTS: usize = 32;

impl Report {
    /// The statuses of all objects in scope. `now` is the time of conditions whose status is new.
    pub fn build(context: LintContext<'_>, now: Option<Str>) -> Report {
        let mut report = Report { now, ..Report::default() };
        report.classes(context);
        report.gateways(context);
        report.sets(context);
        report.routes(context);
        report
    }

    /// Adds the statuses of policies.
    pub fn add_policies(&mut self, policies: &[PolicyReport], snapshot: &Snapshot) {
        for policy in policies {
            let key = &policy.policy.key;
            let meta = match policy.policy.kind {
                Kind::DnsPolicy => snapshot.dns_policies.get(key).map(|policy| &policy.meta),
                _ => snapshot.tls_policies.get(key).map(|policy| &policy.meta),
            };
            let stamped = |condition: &Condition| {
                let observed_generation = meta.and_then(|meta| meta.generation);
                (Condition { observed_generation, ..condition.clone() }, self.now.clone())
            };
            let conditions = policy.conditions.iter().map(stamped).collect();
            let status = ObjectStatus::Policy { conditions, hostnames: policy.hostnames.clone() };
            self.items.push(Item { object: policy.policy.clone(), status });
        }
    }

    fn classes(&mut self, context: LintContext<'_>) {
        for (name, class) in &context.snapshot.classes {
            let used = |g: &&GatewayState| g.gateway.class == *name && !g.is_in_scope();
            if context.topology.gateways.values().any(|g| used(&&**g)) {
                continue;
            }
            let object = ObjectRef::new(Kind::GatewayClass, "", name.clone());
            let own = vec![Condition::new("Accepted", true, "Accepted", "")];
            let conditions = self.merged(&object, &FieldPath::of("status"), own, &class.conditions, &class.meta);
            self.items.push(Item { object, status: ObjectStatus::Class(conditions) });
        }
    }

    fn gateways(&mut self, context: LintContext<'_>) {
        for (key, state) in context.topology.gateways.iter().filter(|(_, state)| state.is_in_scope()) {
            let gateway = &state.gateway;
            let object = ObjectRef { kind: Kind::Gateway, key: key.clone() };
            let own = conditions::gateway(context, state);
            let conditions =
                self.merged(&object, &FieldPath::of("status"), own, &gateway.status.conditions, &gateway.meta);
            let ids = &state.listeners[..gateway.listeners.len()];
            let listeners = self.listeners(context, &object, ids, &gateway.status.listeners, &gateway.meta);
            let addresses = gateway.status.addresses.clone();
            let status = ObjectStatus::Gateway { conditions, addresses, listeners, attached_sets: state.attached_sets };
            self.items.push(Item { object, status });
        }
    }

    fn sets(&mut self, context: LintContext<'_>) {
        for (object, state) in &context.topology.sets {
            let refused = state.refused == Some(reason::LISTENER_SET_NOT_ALLOWED);
            if state.gateway.is_none() && !refused {
                continue;
            }
            let set = &state.set;
            let own = conditions::set(context, state);
            let conditions = self.merged(object, &FieldPath::of("status"), own, &set.conditions, &set.meta);
            let ids = if refused { &[][..] } else { &state.listeners[..] };
            let listeners = self.listeners(context, object, ids, &set.listener_status, &set.meta);
            self.items.push(Item { object: object.clone(), status: ObjectStatus::Set { conditions, listeners } });
        }
    }

    fn listeners(
        &mut self,
        context: LintContext<'_>,
        object: &ObjectRef,
        ids: &[ListenerId],
        written: &[ListenerStatus],
        meta: &Meta,
    ) -> Vec<ListenerReport> {
        let mut reports = Vec::new();
        for id in ids {
            let state = context.topology.listener(*id);
            let name = state.spec().name.clone();
            let before = written.iter().find(|w| w.name == name).map(|w| w.conditions.clone()).unwrap_or_default();
            let field = FieldPath::of("status.listeners").index(state.index);
            let conditions = self.merged(object, &field, conditions::listener(context, *id), &before, meta);
            reports.push(ListenerReport {
                name,
                supported_kinds: state.supported_kinds.clone(),
                attached_routes: context.topology.attached_routes(*id),
                conditions,
            });
        }
        reports
    }

    fn routes(&mut self, context: LintContext<'_>) {
        let controllers: BTreeSet<Str> =
            context.topology.gateways.values().filter(|g| g.is_in_scope()).map(|g| g.controller()).collect();
        for (object, state) in context.topology.routes.iter() {
            let mut own = self.own_parents(context, object, state);
            let written = state.route.status.iter();
            let foreign = written.filter(|entry| !controllers.contains(&entry.controller)).count();
            if own.is_empty() && state.route.status.len() == foreign {
                continue;
            }
            let room = MAX_PARENTS.saturating_sub(foreign);
            if own.len() > room {
                self.full(object, FieldPath::of("status.parents"), MAX_PARENTS);
                own.truncate(room);
            }
            let parents = in_place(&state.route.status, own, &controllers);
            self.items.push(Item { object: object.clone(), status: ObjectStatus::Route(parents) });
        }
    }

    fn own_parents(&mut self, context: LintContext<'_>, object: &ObjectRef, state: &RouteState) -> Vec<ParentReport> {
        let mut parents = Vec::new();
        for (index, parent) in state.parents.iter().enumerate().filter(|(_, p)| p.is_judged()) {
            let reference = &state.route.parents[index];
            let controller = controller(context, parent);
            let same = |p: &ParentStatus| p.controller == controller && p.parent == *reference;
            let written = &state.route.status;
            let before = written.iter().position(same).map(|place| written.conditions(place)).unwrap_or_default();
            let own = conditions::route(context, state, index);
            let field = FieldPath::of("status.parents").index(index);
            let conditions = self.merged(object, &field, own, &before, &state.route.meta);
            parents.push(ParentReport { parent: reference.clone(), controller, conditions });
        }
        parents
    }

    /// Our conditions beside those that others wrote.
    fn merged(
        &mut self,
        object: &ObjectRef,
        field: &FieldPath,
        own: Vec<Condition>,
        before: &Conditions,
        meta: &Meta,
    ) -> Conditions {
        let foreign = before.timed().filter(|(c, _)| !conditions::is_ours(&c.kind));
        let foreign: Vec<_> = foreign.map(|(c, time)| (c.clone(), time)).collect();
        let now = self.now.clone();
        let mut merged: Vec<_> = own.into_iter().map(|c| conditions::stamped(c, before, meta, &now)).collect();
        let room = MAX_CONDITIONS.saturating_sub(foreign.len());
        if merged.len() > room {
            // Nothing is known about `Programmed` here, so it gives way.
            merged.retain(|(condition, _)| &*condition.kind != "Programmed");
        }
        if merged.len() > room {
            self.full(object, field.key("conditions"), MAX_CONDITIONS);
            merged.truncate(room);
        }
        merged.into_iter().chain(foreign).collect()
    }

    fn full(&mut self, object: &ObjectRef, field: FieldPath, most: usize) {
        let message = format!("`{field}` holds at most {most} entries, and others have filled it");
        self.diagnostics.push(Diagnostic::new(reason::STATUS_LIST_FULL, object, field, message));
    }
}

/// The entries as they were written: those of other controllers untouched, ours renewed; new ones at the end.
fn in_place(written: &RouteStatus, own: Vec<ParentReport>, controllers: &BTreeSet<Str>) -> Vec<ParentReport> {
    let mut own: Vec<Option<ParentReport>> = own.into_iter().map(Some).collect();
    let mut parents = Vec::new();
    for (place, entry) in written.iter().enumerate() {
        if !controllers.contains(&entry.controller) {
            parents.push(as_written(written, place));
            continue;
        }
        let is_it = |new: &&mut Option<ParentReport>| {
            new.as_ref().is_some_and(|new| new.parent == entry.parent && new.controller == entry.controller)
        };
        parents.extend(own.iter_mut().find(is_it).and_then(Option::take));
    }
    parents.extend(own.into_iter().flatten());
    parents
}

/// The entry that a controller wrote for one parent.
fn as_written(status: &RouteStatus, place: usize) -> ParentReport {
    let ParentStatus { parent, controller, .. } = status[place].clone();
    ParentReport { parent, controller, conditions: status.conditions(place) }
}

/// The controller that writes the status of a parent.
fn controller(context: LintContext<'_>, parent: &ParentState) -> Str {
    let gateway = match &parent.target {
        ParentTarget::Set(set, None) => context.topology.sets.get(set).and_then(|state| {
            let set = &state.set;
            let key = Key::new(set.parent.namespace_or(&set.meta.key.namespace).clone(), set.parent.name.clone());
            context.topology.gateways.get(&key)
        }),
        _ => parent.gateway().and_then(|key| context.topology.gateways.get(key)),
    };
    gateway.map_or_else(|| OWN_CONTROLLER.into(), |gateway| gateway.controller())
}
