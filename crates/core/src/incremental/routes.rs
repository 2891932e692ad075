//! Policies, the listener's side of publishing, and routes: what is due is made again, and what differs is passed on.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Engine;
use super::due::Due;
use super::links::{RouteId, Teller};
use crate::attachment::{ListenerId, Memo, RouteState, routes as route_attachment};
use crate::model::*;
use crate::names::Hostname;
use crate::policy::{Policies, PoliciesOfKind, Policy};
use crate::publication::Withheld;
use crate::publication::strict::{Base, Context, Contribution, HallOutlets, Told, names_of, of_route};

impl Engine {
    /// Judges policies, where they or the listeners they are about differ.
    pub(super) fn settle_policies(&mut self, due: &mut Due) {
        let snapshot = &self.world.snapshot;
        let are_any = !snapshot.dns_policies.is_empty() || !snapshot.tls_policies.is_empty();
        let are_others = !due.halls.is_empty() || !due.changed_parents.is_empty();
        let is_due = due.policies || (are_others && are_any);
        if !is_due {
            return;
        }
        due.are_policies_judged = true;
        let after = Arc::new(Policies::build(snapshot, &self.world.topology));
        let before = std::mem::replace(&mut self.world.policies, after.clone());
        compare(&before.dns, &after.dns, due);
        compare(&before.tls, &after.tls, due);
    }

    /// Makes the outlets that are due, and marks the routes of those that differ.
    pub(super) fn settle_outlets(&mut self, due: &mut Due) {
        for number in std::mem::take(&mut due.halls) {
            let Some(hall) = self.world.topology.halls.get(number as usize).cloned() else { continue };
            let context = Context { base: self.base(), policies: &self.world.policies };
            let known = self.world.outlets.of_hall(number).filter(|_| !due.are_policies_judged);
            let after = Arc::new(HallOutlets::of(context, &hall, known.as_deref()));
            let before = self.world.outlets.set(number, after.clone());
            let slots = 0..before.width().max(after.width()) as u32;
            let differ: Vec<u32> = slots.filter(|slot| before.at(*slot) != after.at(*slot)).collect();
            if differ.is_empty() {
                continue;
            }
            for slot in differ {
                due.routes.extend(self.links.listeners.of(&ListenerId { hall: number, slot }));
            }
            let mut owners: Vec<&Str> = hall.slots().flatten().map(|l| &l.owner.meta().key.name).collect();
            owners.dedup();
            let owners: BTreeSet<&Str> = owners.into_iter().collect();
            for name in owners {
                due.routes.extend(self.links.unsettled.of(name));
            }
        }
    }

    /// Binds and walks the routes that are due.
    pub(super) fn settle_routes(&mut self, due: &mut Due) {
        let mut memo = Memo::default();
        for id in due.routes.take() {
            match self.links.route(id).cloned() {
                Some(route) => self.settle_route(id, &route, &mut memo, due),
                None => self.drop_route(id, due),
            }
        }
    }

    fn settle_route(&mut self, id: RouteId, route: &Arc<Route>, memo: &mut Memo, due: &mut Due) {
        let object = route.object();
        let world = &self.world;
        let state = route_attachment::bind(&world.snapshot, &world.topology, &self.grants, route, memo);
        let before = world.topology.routes.get(&object).cloned();
        let state = match before {
            Some(before) if *before == state => before,
            before => {
                let state = Arc::new(state);
                self.attach(id, before.as_deref(), Some(&state));
                self.world.topology.routes.insert(state.clone());
                due.changed_routes += 1;
                state
            }
        };
        let contribution = of_route(self.base(), &self.world.outlets, &state);
        let is_unsettled = contribution.is_withheld() || state.parents.iter().any(|parent| parent.attached.is_empty());
        self.links.set_unsettled(id, is_unsettled.then_some(&**route));
        self.contribute(id, &object, Some(contribution), due);
    }

    fn drop_route(&mut self, id: RouteId, due: &mut Due) {
        let Some(object) = self.links.object(id) else { return };
        if let Some(before) = self.world.topology.routes.remove(&object) {
            self.attach(id, Some(&before), None);
            self.links.set_unsettled(id, None);
            self.contribute(id, &object, None, due);
            due.changed_routes += 1;
        }
        self.links.forget(id);
    }

    pub(super) fn base(&self) -> Base<'_> {
        Base { snapshot: &self.world.snapshot, topology: &self.world.topology, settings: &self.world.settings }
    }

    /// Counts and files a route under the listeners it attaches to.
    fn attach(&mut self, id: RouteId, before: Option<&RouteState>, after: Option<&RouteState>) {
        let list = |state: Option<&RouteState>| state.map(route_attachment::attached).unwrap_or_default();
        let (before, after) = (list(before), list(after));
        for listener in before.iter().filter(|listener| !after.contains(listener)) {
            self.links.listeners.take(listener, id);
            self.count(*listener, -1);
        }
        for listener in after.iter().filter(|listener| !before.contains(listener)) {
            self.links.listeners.add(listener, id);
            self.count(*listener, 1);
        }
    }

    fn count(&mut self, listener: ListenerId, step: i64) {
        let attached = &mut self.world.topology.attached;
        let count = i64::from(attached.get(&listener).copied().unwrap_or_default()) + step;
        match u32::try_from(count) {
            Ok(count) if count > 0 => _ = attached.insert(listener, count),
            _ => _ = attached.remove(&listener),
        }
    }

    /// Replaces what a route brings in, and marks names, Secrets and policies where that differs.
    fn contribute(&mut self, id: RouteId, object: &ObjectRef, after: Option<Contribution>, due: &mut Due) {
        let before = self.links.contribution(id).cloned();
        if before.as_deref() == after.as_ref() {
            return;
        }
        let after = after.map(Arc::new);
        let (old, new) = (Parts::of(before.as_deref()), Parts::of(after.as_deref()));
        let links = &mut self.links;
        old.names.difference(&new.names).for_each(|name| links.release(name, id));
        new.names.difference(&old.names).for_each(|name| links.claim(name, id));
        if old.withheld != new.withheld {
            due.changed_withheld.insert(object.clone());
        }
        due.names.extend(old.names.iter().chain(&new.names).map(|name| (*name).clone()));
        for secret in old.secrets.union(&new.secrets) {
            self.wish(secret, object, before.as_deref(), after.as_deref());
            due.secrets.insert((*secret).clone());
        }
        if !(old.told.is_empty() && new.told.is_empty()) {
            self.retell(&Teller::Route(object.clone()), old.told, new.told, due);
        }
        let has_rest =
            |contribution: &Option<Arc<Contribution>>| contribution.as_ref().is_some_and(|c| c.rest().is_some());
        match &after {
            Some(new) if has_rest(&after) => _ = self.world.contributions.insert(object.clone(), new.clone()),
            _ if has_rest(&before) => _ = self.world.contributions.remove(object),
            _ => {}
        }
        self.links.set_contribution(id, after);
    }

    /// Replaces what a route wishes for one Secret.
    fn wish(&mut self, secret: &Key, object: &ObjectRef, old: Option<&Contribution>, new: Option<&Contribution>) {
        let limit = self.world.settings.certificate_names;
        let book = self.books.entry(secret.clone()).or_default();
        book.replace(
            limit,
            object,
            old.and_then(|old| old.wishes_for(secret)),
            new.and_then(|new| new.wishes_for(secret)),
        );
        if book.is_empty() {
            self.books.remove(secret);
        }
    }

    /// Files a teller under the policies that it tells something, and marks those that are told something else.
    pub(super) fn retell(&mut self, teller: &Teller, before: &[Told], after: &[Told], due: &mut Due) {
        if before == after {
            return;
        }
        let policies = |told: &[Told]| told.iter().map(|told| told.policy.clone()).collect::<BTreeSet<_>>();
        let (before, after) = (policies(before), policies(after));
        for gone in before.difference(&after) {
            if let Some(tellers) = self.links.tellers.get_mut(gone) {
                tellers.remove(teller);
                if tellers.is_empty() {
                    self.links.tellers.remove(gone);
                }
            }
        }
        for policy in after.difference(&before) {
            self.links.tellers.entry(policy.clone()).or_default().insert(teller.clone());
        }
        due.reports.extend(before);
        due.reports.extend(after);
    }
}

/// What a contribution is filed under.
#[derive(Default)]
struct Parts<'a> {
    names: BTreeSet<&'a Hostname>,
    secrets: BTreeSet<&'a Key>,
    withheld: &'a [Withheld],
    told: &'a [Told],
}

impl<'a> Parts<'a> {
    fn of(contribution: Option<&'a Contribution>) -> Self {
        let Some(contribution) = contribution else { return Parts::default() };
        let (names, secrets) = (names_of(contribution).collect(), contribution.secrets().collect());
        let mut parts = Parts { names, secrets, ..Parts::default() };
        if let Some(rest) = contribution.rest() {
            parts.withheld = &rest.withheld;
            parts.told = &rest.told;
        }
        parts
    }
}

/// Marks policies that are judged differently, and the halls whose listeners they are about.
fn compare<P: Policy + Eq>(before: &PoliciesOfKind<P>, after: &PoliciesOfKind<P>, due: &mut Due) {
    let keys: BTreeSet<&Key> = before.states.keys().chain(after.states.keys()).collect();
    for key in keys {
        let (old, new) = (before.states.get(key), after.states.get(key));
        if old == new && before.governed_by(key) == after.governed_by(key) {
            continue;
        }
        due.reports.insert(ObjectRef { kind: P::KIND, key: key.clone() });
        let listeners = old.into_iter().chain(new).flat_map(|state| &state.listeners);
        due.halls.extend(listeners.map(|listener| listener.hall));
    }
}
