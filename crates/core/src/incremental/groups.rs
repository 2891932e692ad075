//! Gateways with the ListenerSets that name them: judged together, compared with before, and passed on to the routes that
//! may notice.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Engine;
use super::due::Due;
use crate::attachment::listeners::{Judge, Judged, class_state};
use crate::attachment::{Before, GatewayState, Hall, ListenerId, ListenerState, SetState, listener_sets};
use crate::model::*;
use crate::names::Hostname;
use crate::publication::strict::Selected;
use crate::reason;

/// The numbers of halls: by the Gateway, or by the refused set.
#[derive(Default)]
pub(super) struct Halls {
    numbers: BTreeMap<ObjectRef, u32>,
    free: Vec<u32>,
    /// Numbers that are free from the next application on, so that no number means two things at once.
    freed: Vec<u32>,
    next: u32,
}

impl Halls {
    /// All numbers in use.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.numbers.values().copied()
    }

    fn number(&mut self, object: &ObjectRef) -> u32 {
        if let Some(number) = self.numbers.get(object) {
            return *number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.numbers.insert(object.clone(), number);
        number
    }
}

/// A Gateway or ListenerSet as its routes see it.
struct Parent<'a> {
    object: ObjectRef,
    /// What tells one target of a parentRef from another.
    target: (bool, Option<&'a Key>),
    listeners: &'a [ListenerId],
}

impl<'a> Parent<'a> {
    fn gateway(state: &'a GatewayState) -> Self {
        let object = ObjectRef { kind: Kind::Gateway, key: state.gateway.meta.key.clone() };
        Parent { object, target: (state.is_in_scope(), None), listeners: state.doors.all() }
    }

    fn set(state: &'a SetState) -> Self {
        let is_judged = state.gateway.is_some() || state.refused == Some(reason::LISTENER_SET_NOT_ALLOWED);
        Parent { object: state.set.object(), target: (is_judged, state.gateway.as_ref()), listeners: &state.listeners }
    }
}

impl Engine {
    /// Judges every Gateway that is due.
    pub(super) fn settle_groups(&mut self, due: &mut Due) {
        for object in std::mem::take(&mut due.gone_sets) {
            self.drop_set(&object, due);
        }
        for key in std::mem::take(&mut due.groups) {
            self.settle_group(&key, due);
        }
        let freed = std::mem::take(&mut self.halls.freed);
        self.halls.free.extend(freed);
    }

    fn settle_group(&mut self, key: &Key, due: &mut Due) {
        let object = ObjectRef { kind: Kind::Gateway, key: key.clone() };
        let (members, refused) = self.members(key);
        let is_thorough = due.thorough.remove(key);
        let gateway = self.world.snapshot.gateways.get(key).cloned();
        let number = gateway.as_ref().map(|_| self.halls.number(&object));
        let judged = gateway
            .as_ref()
            .zip(number)
            .map(|(gateway, number)| self.judge_gateway(number, gateway, members, is_thorough));
        match (judged, number) {
            (Some(judged), Some(number)) => {
                let is_changed = self.replace_hall(number, judged.hall, due, |engine, before, due| {
                    let is_gateway = engine.replace_gateway(key, Some(judged.gateway), before, due);
                    let sets = judged.sets.into_iter();
                    sets.fold(is_gateway, |any, set| engine.replace_set(set, before, due) | any)
                });
                if is_changed {
                    due.halls.insert(number);
                }
            }
            _ => {
                self.replace_gateway(key, None, &Hall::default(), due);
                self.free_hall(&object);
            }
        }
        refused.into_iter().for_each(|(set, reason)| self.refuse_set(set, reason, due));
        self.select_gateway(&object, due);
        if due.changed_parents.contains(&object) {
            // What is told of a set that is refused, or of its routes, may be about the Gateway.
            let sets = self.links.sets.get(key).into_iter().flatten();
            sets.for_each(|set| due.routes.extend(self.links.unsettled.of(set.name())));
        }
    }

    fn judge(&self) -> Judge<'_> {
        Judge { snapshot: &self.world.snapshot, grants: &self.grants, scope: &self.scope }
    }

    /// Judges a Gateway with its sets. Unless that is to be thorough, listeners of objects that did not change are taken over.
    fn judge_gateway(
        &self,
        number: u32,
        gateway: &Arc<Gateway>,
        members: Vec<Arc<ListenerSet>>,
        is_thorough: bool,
    ) -> Judged {
        let (key, topology) = (&gateway.meta.key, &self.world.topology);
        // Where the Gateway was not there at the last application its hall is another's.
        let known = topology.gateways.get(key);
        let Some((known, hall)) = known.zip(topology.halls.get(number as usize)) else {
            return self.judge().gateway(number, None, gateway, members);
        };
        let is_like_before = !is_thorough && known.gateway.frontend == gateway.frontend;
        let is_same_scope = class_state(&self.world.snapshot, &self.scope, gateway) == known.class;
        let set = |set: &Arc<ListenerSet>| {
            let state = topology.sets.get(&set.object()).filter(|_| is_like_before);
            state.filter(|state| Arc::ptr_eq(&state.set, set) && state.gateway.as_ref() == Some(key)).cloned()
        };
        let own =
            Some(&**known).filter(|known| Arc::ptr_eq(&known.gateway, gateway) && is_like_before && is_same_scope);
        let before = Before { hall, order: &known.listeners, gateway: own, set: &set };
        self.judge().gateway(number, Some(before), gateway, members)
    }

    /// The sets that name a Gateway: those it admits in order of precedence, and the others with the reason.
    #[allow(clippy::type_complexity)]
    fn members(&self, key: &Key) -> (Vec<Arc<ListenerSet>>, Vec<(Arc<ListenerSet>, reason::Reason)>) {
        let objects = self.links.sets.get(key).into_iter().flatten();
        let mut all: Vec<_> = objects.filter_map(|object| self.world.snapshot.listener_sets.get(object)).collect();
        all.sort_by(|a, b| listener_sets::by_precedence(a, b));
        let (mut members, mut refused) = (Vec::new(), Vec::new());
        for set in all {
            match listener_sets::admission(&self.world.snapshot, &self.scope, set) {
                Ok(_) => members.push(set.clone()),
                Err(reason) => refused.push((set.clone(), reason)),
            }
        }
        (members, refused)
    }

    /// Puts a hall in place and has the states replaced that go with it; says whether anything differs.
    fn replace_hall(
        &mut self,
        number: u32,
        hall: Hall,
        due: &mut Due,
        states: impl FnOnce(&mut Engine, &Hall, &mut Due) -> bool,
    ) -> bool {
        let halls = Arc::make_mut(&mut self.world.topology.halls);
        halls.resize_with(halls.len().max(number as usize + 1), Arc::default);
        let is_same = *halls[number as usize] == hall;
        let before = std::mem::replace(&mut halls[number as usize], Arc::new(hall));
        let are_others = states(self, &before, due);
        !is_same || are_others
    }

    /// Empties the hall of an object, and gives back what was in it.
    fn free_hall(&mut self, object: &ObjectRef) -> Option<Arc<Hall>> {
        let number = self.halls.numbers.remove(object)?;
        let halls = Arc::make_mut(&mut self.world.topology.halls);
        let before = halls.get_mut(number as usize).map(std::mem::take);
        self.world.outlets.set(number, Arc::default());
        self.halls.freed.push(number);
        before
    }

    fn replace_gateway(&mut self, key: &Key, state: Option<GatewayState>, before: &Hall, due: &mut Due) -> bool {
        let state = state.map(Arc::new);
        let old = self.world.topology.gateways.get(key).cloned();
        if old == state {
            return false;
        }
        due.changed_parents.insert(ObjectRef { kind: Kind::Gateway, key: key.clone() });
        match &state {
            Some(state) => _ = self.world.topology.gateways.insert(key.clone(), state.clone()),
            None => _ = self.world.topology.gateways.remove(key),
        }
        self.compare(old.as_deref().map(Parent::gateway), state.as_deref().map(Parent::gateway), before, due);
        true
    }

    fn replace_set(&mut self, state: Arc<SetState>, before: &Hall, due: &mut Due) -> bool {
        let object = state.set.object();
        if self.world.topology.sets.get(&object).is_some_and(|known| Arc::ptr_eq(known, &state)) {
            return false;
        }
        if state.gateway.is_some() {
            self.free_hall(&object);
        }
        let selected = Arc::new(Selected::set(&state.set, &self.world.settings));
        if self.world.selected.get(&object) != Some(&selected) {
            self.world.selected.insert(object.clone(), selected);
        }
        let old = self.world.topology.sets.get(&object).cloned();
        if old.as_ref() == Some(&state) {
            return false;
        }
        due.changed_parents.insert(object.clone());
        self.world.topology.sets.insert(object, state.clone());
        self.compare(old.as_deref().map(Parent::set), Some(Parent::set(&state)), before, due);
        true
    }

    fn refuse_set(&mut self, set: Arc<ListenerSet>, reason: reason::Reason, due: &mut Due) {
        let object = set.object();
        let is_own = self.halls.numbers.contains_key(&object);
        let number = self.halls.number(&object);
        let before = self.world.topology.halls.get(number as usize).filter(|_| is_own).cloned();
        let (state, hall) = self.judge().refused_set(number, before.as_deref(), set, reason);
        if self.replace_hall(number, hall, due, |engine, before, due| engine.replace_set(Arc::new(state), before, due))
        {
            due.halls.insert(number);
        }
    }

    fn drop_set(&mut self, object: &ObjectRef, due: &mut Due) {
        if self.world.snapshot.listener_sets.contains_key(object) {
            return;
        }
        self.world.selected.remove(object);
        self.free_hall(object);
        if let Some(old) = self.world.topology.sets.remove(object) {
            due.changed_parents.insert(object.clone());
            self.compare(Some(Parent::set(&old)), None, &Hall::default(), due);
        }
    }

    fn select_gateway(&mut self, object: &ObjectRef, due: &mut Due) {
        let Some(gateway) = self.world.snapshot.gateways.get(&object.key) else {
            self.world.selected.remove(object);
            return;
        };
        let selected = Arc::new(Selected::gateway(gateway, &self.world.settings));
        if self.world.selected.get(object) != Some(&selected) {
            self.world.selected.insert(object.clone(), selected);
            due.halls.extend(self.halls.numbers.get(object));
        }
    }

    /// Marks the routes that may notice a difference between two states of a parent.
    fn compare(&self, old: Option<Parent<'_>>, new: Option<Parent<'_>>, before: &Hall, due: &mut Due) {
        let Some(either) = old.as_ref().or(new.as_ref()) else { return };
        let name = either.object.name();
        due.routes.extend(self.links.unsettled.of(name));
        match (&old, &new) {
            (Some(old), Some(new)) if old.target == new.target => self.compare_listeners(old, new, before, due),
            (Some(_), Some(_)) => self.mark_children(&either.object, due, |_| true),
            _ => due.routes.extend(self.links.parents.of(name)),
        }
    }

    /// Marks the routes of listeners that differ, and those that may attach to them now.
    fn compare_listeners(&self, old: &Parent<'_>, new: &Parent<'_>, before: &Hall, due: &mut Due) {
        let topology = &self.world.topology;
        let (was, is) = (Slots::of(old.listeners), Slots::of(new.listeners));
        let stays = |id: &ListenerId| match before.listener(id.slot) {
            Some(then) if was.has(id) && is.has(id) => is_same_to_routes(then, topology.listener(*id)),
            _ => false,
        };
        let is_reordered = {
            let kept = old.listeners.iter().filter(|id| is.has(id));
            !kept.eq(new.listeners.iter().filter(|id| was.has(id)))
        };
        let opened = new.listeners.iter().filter(|id| !stays(id)).map(|id| &topology.listener(*id).hostname);
        let opened: Vec<&Hostname> = opened.collect();
        for id in old.listeners.iter().filter(|id| is_reordered || !stays(id)) {
            due.routes.extend(self.links.listeners.of(id));
        }
        if !opened.is_empty() {
            self.mark_children(&new.object, due, |route| opened.iter().any(|name| may_attach(route, name)));
        }
    }

    /// Marks the routes that name a parent, as far as they are chosen.
    fn mark_children(&self, parent: &ObjectRef, due: &mut Due, is_chosen: impl Fn(&Route) -> bool) {
        for id in self.links.parents.of(parent.name()) {
            let Some(route) = self.links.route(id) else { continue };
            if is_chosen(route) && names_parent(route, parent) {
                due.routes.insert(id);
            }
        }
    }
}

/// Listeners of one owner, which are all of one hall, by slot.
struct Slots {
    hall: Option<u32>,
    are_there: Vec<bool>,
}

impl Slots {
    fn of(ids: &[ListenerId]) -> Self {
        let width = ids.iter().map(|id| id.slot as usize + 1).max().unwrap_or_default();
        let mut are_there = vec![false; width];
        ids.iter().for_each(|id| are_there[id.slot as usize] = true);
        Slots { hall: ids.first().map(|id| id.hall), are_there }
    }

    fn has(&self, id: &ListenerId) -> bool {
        self.hall == Some(id.hall) && self.are_there.get(id.slot as usize).is_some_and(|is_there| *is_there)
    }
}

/// Whether two states of a listener mean the same to every route's attachment.
fn is_same_to_routes(a: &ListenerState, b: &ListenerState) -> bool {
    a.gateway.is_some() == b.gateway.is_some()
        && a.refused.is_some() == b.refused.is_some()
        && a.hostname == b.hostname
        && a.supported_kinds == b.supported_kinds
        && a.spec().port == b.spec().port
        && a.spec().allowed_routes.namespaces == b.spec().allowed_routes.namespaces
}

/// Whether a route has a hostname in common with a listener.
fn may_attach(route: &Route, listener: &Hostname) -> bool {
    let mut names = route.hostnames.iter().filter_map(|written| written.name().ok());
    !route.kind.has_hostnames() || route.hostnames.is_empty() || names.any(|name| name.overlaps(listener))
}

/// Whether a route has a parentRef to an object.
fn names_parent(route: &Route, parent: &ObjectRef) -> bool {
    let own = &route.meta.key.namespace;
    let is_it = |target: &Reference| {
        target.name == parent.key.name
            && *target.namespace_or(own) == parent.key.namespace
            && Kind::of(&target.group, &target.kind) == Some(parent.kind)
    };
    route.parents.iter().any(|asked| is_it(&asked.target))
}
