//! Evaluates dirty Gateways with their ListenerSets, and marks the routes that a changed result may affect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Engine;
use super::dirty::Dirty;
use crate::attachment::listeners::ListenerEvaluation;
use crate::attachment::routes::AttachmentRules;
use crate::attachment::{GatewayListeners, GatewayState, ListenerId, SetState, listener_sets};
use crate::model::*;
use crate::publication::{GatewayContexts, SelectedOwner};
use crate::reason::{self, Reason};

/// The numbers of listener groups, by Gateway or refused set.
#[derive(Default)]
pub(super) struct GroupNumbers {
    numbers: BTreeMap<ObjectRef, u32>,
    free: Vec<u32>,
    /// Numbers that are free from the next application on, so that a number means one group during an application.
    freed: Vec<u32>,
    next: u32,
}

impl GroupNumbers {
    /// All numbers in use.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.numbers.values().copied()
    }

    /// The number of an object's group.
    pub(super) fn number(&self, object: &ObjectRef) -> Option<u32> {
        self.numbers.get(object).copied()
    }

    fn assign(&mut self, object: &ObjectRef) -> u32 {
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

/// The properties of a parent that the result of a parentRef depends on, apart from the rules of its listeners.
struct ParentOfRoutes<'a> {
    is_evaluated: bool,
    gateway: Option<&'a Key>,
    listeners: &'a [ListenerId],
}

impl<'a> ParentOfRoutes<'a> {
    fn gateway(state: &'a GatewayState) -> Self {
        ParentOfRoutes { is_evaluated: state.is_in_scope(), gateway: None, listeners: state.listener_index.all() }
    }

    fn set(state: &'a SetState) -> Self {
        let is_evaluated = state.gateway.is_some() || state.refused == Some(reason::LISTENER_SET_NOT_ALLOWED);
        ParentOfRoutes { is_evaluated, gateway: state.gateway.as_ref(), listeners: &state.listeners }
    }
}

impl Engine {
    /// Evaluates every dirty Gateway.
    pub(super) fn update_gateways(&mut self, dirty: &mut Dirty) {
        for object in std::mem::take(&mut dirty.deleted_sets) {
            self.drop_set(&object, dirty);
        }
        for key in std::mem::take(&mut dirty.gateways) {
            self.update_gateway(&key, dirty);
        }
        let freed = std::mem::take(&mut self.group_numbers.freed);
        self.group_numbers.free.extend(freed);
    }

    fn update_gateway(&mut self, key: &Key, dirty: &mut Dirty) {
        let object = ObjectRef { kind: Kind::Gateway, key: key.clone() };
        let (members, refused) = self.sets_of(key);
        match self.world.snapshot.gateways.get(key).cloned() {
            Some(gateway) => self.evaluate_gateway(&object, &gateway, members, dirty),
            None => {
                self.replace_gateway(key, None, &GatewayListeners::default(), dirty);
                self.free_group(&object);
            }
        }
        refused.into_iter().for_each(|(set, reason)| self.refuse_set(set, reason, dirty));
        self.select_gateway(&object, dirty);
        if dirty.changed_parents.contains(&object) {
            // A set or its routes may be refused because of the Gateway.
            let sets = self.indexes.sets.get(key).into_iter().flatten();
            sets.for_each(|set| dirty.routes.extend(self.indexes.incomplete.of(set.name())));
        }
    }

    fn evaluate_gateway(
        &mut self,
        object: &ObjectRef,
        gateway: &Arc<Gateway>,
        members: Vec<Arc<ListenerSet>>,
        dirty: &mut Dirty,
    ) {
        // Without a state from the last application, the group of this number belonged to another object.
        let is_known = self.world.topology.gateways.contains_key(&object.key);
        let number = self.group_numbers.assign(object);
        let before = self.world.topology.groups.get(number as usize).filter(|_| is_known);
        let evaluated = self.evaluation().gateway(number, before, gateway, members);
        let before = self.replace_group(number, evaluated.listeners);
        let mut is_changed = before != self.world.topology.groups[number as usize];
        is_changed |= self.replace_gateway(&object.key, Some(evaluated.gateway), &before, dirty);
        for set in evaluated.sets {
            is_changed |= self.replace_set(set, &before, dirty);
        }
        if is_changed {
            dirty.contexts.insert(number);
        }
    }

    fn evaluation(&self) -> ListenerEvaluation<'_> {
        ListenerEvaluation { snapshot: &self.world.snapshot, grants: &self.grants, scope: &self.scope }
    }

    /// The sets that refer to a Gateway: allowed ones in order of precedence, and the others with the reason.
    #[allow(clippy::type_complexity)]
    fn sets_of(&self, key: &Key) -> (Vec<Arc<ListenerSet>>, Vec<(Arc<ListenerSet>, Reason)>) {
        let objects = self.indexes.sets.get(key).into_iter().flatten();
        let mut all: Vec<_> = objects.filter_map(|object| self.world.snapshot.listener_sets.get(object)).collect();
        all.sort_by_cached_key(|set| listener_sets::precedence(set));
        let (mut members, mut refused) = (Vec::new(), Vec::new());
        for set in all {
            match listener_sets::admission(&self.world.snapshot, &self.scope, set) {
                Ok(_) => members.push(set.clone()),
                Err(reason) => refused.push((set.clone(), reason)),
            }
        }
        (members, refused)
    }

    /// Replaces a group, and returns the previous one.
    fn replace_group(&mut self, number: u32, group: GatewayListeners) -> GatewayListeners {
        let groups = &mut self.world.topology.groups;
        groups.resize_with(groups.len().max(number as usize + 1), GatewayListeners::default);
        std::mem::replace(&mut groups[number as usize], group)
    }

    /// Empties the group of an object and frees its number.
    fn free_group(&mut self, object: &ObjectRef) {
        let Some(number) = self.group_numbers.numbers.remove(object) else { return };
        self.replace_group(number, GatewayListeners::default());
        self.world.contexts.set(number, GatewayContexts::default());
        self.group_numbers.freed.push(number);
    }

    fn replace_gateway(
        &mut self,
        key: &Key,
        state: Option<GatewayState>,
        before: &GatewayListeners,
        dirty: &mut Dirty,
    ) -> bool {
        let old = self.world.topology.gateways.get(key).cloned();
        if old.as_deref() == state.as_ref() {
            return false;
        }
        let object = ObjectRef { kind: Kind::Gateway, key: key.clone() };
        let state = state.map(Arc::new);
        match &state {
            Some(state) => _ = self.world.topology.gateways.insert(key.clone(), state.clone()),
            None => _ = self.world.topology.gateways.remove(key),
        }
        let (was, is) = (old.as_deref().map(ParentOfRoutes::gateway), state.as_deref().map(ParentOfRoutes::gateway));
        self.mark_children(&object, was, is, before, dirty);
        dirty.changed_parents.insert(object);
        true
    }

    fn replace_set(&mut self, state: SetState, before: &GatewayListeners, dirty: &mut Dirty) -> bool {
        let object = state.set.object();
        if state.gateway.is_some() {
            self.free_group(&object);
        }
        self.world.selected.insert(object.clone(), SelectedOwner::set(&state.set, &self.world.settings));
        let old = self.world.topology.sets.get(&object).cloned();
        if old.as_deref() == Some(&state) {
            return false;
        }
        let state = Arc::new(state);
        self.world.topology.sets.insert(object.clone(), state.clone());
        let (was, is) = (old.as_deref().map(ParentOfRoutes::set), Some(ParentOfRoutes::set(&state)));
        self.mark_children(&object, was, is, before, dirty);
        dirty.changed_parents.insert(object);
        true
    }

    fn refuse_set(&mut self, set: Arc<ListenerSet>, reason: Reason, dirty: &mut Dirty) {
        let object = set.object();
        let is_own = self.group_numbers.numbers.contains_key(&object);
        let number = self.group_numbers.assign(&object);
        let before = self.world.topology.groups.get(number as usize).filter(|_| is_own);
        let (state, group) = self.evaluation().refused_set(number, before, set, reason);
        let before = self.replace_group(number, group);
        let is_changed = before != self.world.topology.groups[number as usize];
        if self.replace_set(state, &before, dirty) || is_changed {
            dirty.contexts.insert(number);
        }
    }

    fn drop_set(&mut self, object: &ObjectRef, dirty: &mut Dirty) {
        if self.world.snapshot.listener_sets.contains_key(object) {
            return;
        }
        self.world.selected.remove(object);
        self.free_group(object);
        if let Some(old) = self.world.topology.sets.remove(object) {
            let before = GatewayListeners::default();
            self.mark_children(object, Some(ParentOfRoutes::set(&old)), None, &before, dirty);
            dirty.changed_parents.insert(object.clone());
        }
    }

    fn select_gateway(&mut self, object: &ObjectRef, dirty: &mut Dirty) {
        let Some(gateway) = self.world.snapshot.gateways.get(&object.key) else {
            self.world.selected.remove(object);
            return;
        };
        let selected = SelectedOwner::gateway(gateway, &self.world.settings);
        if self.world.selected.get(object) != Some(&selected) {
            self.world.selected.insert(object.clone(), selected);
            dirty.contexts.extend(self.group_numbers.numbers.get(object));
        }
    }

    /// Marks the routes that a changed parent may affect.
    fn mark_children(
        &self,
        parent: &ObjectRef,
        was: Option<ParentOfRoutes<'_>>,
        is: Option<ParentOfRoutes<'_>>,
        before: &GatewayListeners,
        dirty: &mut Dirty,
    ) {
        dirty.routes.extend(self.indexes.incomplete.of(parent.name()));
        match (was, is) {
            (Some(was), Some(is)) if (was.is_evaluated, was.gateway) == (is.is_evaluated, is.gateway) => {
                self.mark_by_listeners(parent, was.listeners, is.listeners, before, dirty);
            }
            _ => self.mark_routes_of(parent, dirty, |_| true),
        }
    }

    /// Marks the routes of listeners whose attachment rules changed, and the routes that may attach to them now.
    fn mark_by_listeners(
        &self,
        parent: &ObjectRef,
        was: &[ListenerId],
        is: &[ListenerId],
        before: &GatewayListeners,
        dirty: &mut Dirty,
    ) {
        let topology = &self.world.topology;
        let (old_ids, new_ids): (BTreeSet<_>, BTreeSet<_>) = (was.iter().collect(), is.iter().collect());
        let is_same = |id: &ListenerId| match before.listener(id.slot) {
            Some(then) if old_ids.contains(id) && new_ids.contains(id) => {
                AttachmentRules::of(then) == AttachmentRules::of(topology.listener(*id))
            }
            _ => false,
        };
        let kept = was.iter().filter(|id| new_ids.contains(id));
        let is_reordered = !kept.eq(is.iter().filter(|id| old_ids.contains(id)));
        for id in was.iter().filter(|id| is_reordered || !is_same(id)) {
            dirty.routes.extend(self.indexes.listeners.of(id));
        }
        let changed = is.iter().filter(|id| !is_same(id)).map(|id| AttachmentRules::of(topology.listener(*id)));
        let changed: Vec<AttachmentRules<'_>> = changed.collect();
        if !changed.is_empty() {
            self.mark_routes_of(parent, dirty, |route| changed.iter().any(|rules| rules.may_intersect(route)));
        }
    }

    /// Marks the routes that refer to a parent and satisfy a condition.
    fn mark_routes_of(&self, parent: &ObjectRef, dirty: &mut Dirty, is_affected: impl Fn(&Route) -> bool) {
        for id in self.indexes.parents.of(parent.name()) {
            let Some(route) = self.indexes.routes.route(id) else { continue };
            if is_affected(route) && names_parent(route, parent) {
                dirty.routes.insert(id);
            }
        }
    }
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
