//! Evaluates dirty policies, listener contexts and routes, and marks what depends on changed results.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Engine;
use super::dirty::Dirty;
use super::reverse_indexes::{RouteId, StatusSource};
use crate::attachment::routes::{attach_route, attached_listeners, counted_listeners};
use crate::attachment::{ListenerId, RouteState};
use crate::diagnostic::Diagnostic;
use crate::model::*;
use crate::names::Hostname;
use crate::policy::{Policies, PoliciesOfKind, Policy};
use crate::publication::{
    CertificateNameRequest, CertificateState, GatewayContexts, KeptName, ListenerInput, PassedOver, PolicyStatusEntry,
    PublicationInput, RouteClaims, RouteNameClaim, Withheld, of_route,
};

impl Engine {
    /// Evaluates all policies if a policy or a targeted listener changed.
    pub(super) fn update_policies(&mut self, dirty: &mut Dirty) {
        let snapshot = &self.world.snapshot;
        let are_any = !snapshot.dns_policies.is_empty() || !snapshot.tls_policies.is_empty();
        let are_listeners_changed = !dirty.contexts.is_empty() || !dirty.changed_parents.is_empty();
        if !(dirty.policies || (are_listeners_changed && are_any)) {
            return;
        }
        dirty.policies = true;
        let after = Policies::build(snapshot, &self.world.topology, &self.world.settings.providers);
        mark_policies(&self.world.policies.dns, &after.dns, dirty);
        mark_policies(&self.world.policies.tls, &after.tls, dirty);
        self.world.policies = after;
    }

    /// Builds the dirty listener contexts, and marks the routes of those that changed.
    pub(super) fn update_contexts(&mut self, dirty: &mut Dirty) {
        for number in std::mem::take(&mut dirty.contexts) {
            let Some(group) = self.world.topology.groups.get(number as usize) else { continue };
            let input = ListenerInput { base: self.input(), policies: &self.world.policies };
            let owners: BTreeSet<Str> =
                group.slots().flatten().map(|listener| listener.owner.meta().key.name.clone()).collect();
            let after = GatewayContexts::build(input, group);
            let differ = self.world.contexts.replace(number, after);
            for slot in &differ {
                dirty.routes.extend(self.indexes.listeners.of(&ListenerId { group: number, slot: *slot }));
            }
            if !differ.is_empty() {
                owners.iter().for_each(|name| dirty.routes.extend(self.indexes.incomplete.of(name)));
            }
        }
    }

    /// Evaluates the dirty routes.
    pub(super) fn update_routes(&mut self, dirty: &mut Dirty) {
        for id in std::mem::take(&mut dirty.routes) {
            match self.indexes.routes.route(id).cloned() {
                Some(route) => self.update_route(id, &route, dirty),
                None => self.drop_route(id, dirty),
            }
        }
    }

    fn update_route(&mut self, id: RouteId, route: &Arc<Route>, dirty: &mut Dirty) {
        let object = route.object();
        let world = &self.world;
        let state = attach_route(&world.snapshot, &world.topology, &self.grants, route);
        let before = world.topology.routes.get(&object).cloned();
        let state = match before {
            Some(before) if *before == state => before,
            before => {
                let state = Arc::new(state);
                self.count_attachments(id, before.as_deref(), Some(&state));
                self.world.topology.routes.insert(object.clone(), state.clone());
                dirty.changed_routes += 1;
                state
            }
        };
        let claims = of_route(self.input(), &self.world.contexts, &state);
        let is_incomplete = claims.is_withheld() || state.parents.iter().any(|parent| parent.attached.is_empty());
        self.indexes.set_incomplete(id, is_incomplete.then_some(&**route));
        self.replace_claims(id, &object, Some(claims), dirty);
    }

    fn drop_route(&mut self, id: RouteId, dirty: &mut Dirty) {
        let Some(object) = self.indexes.routes.object(id) else { return };
        if let Some(before) = self.world.topology.routes.remove(&object) {
            self.count_attachments(id, Some(&before), None);
            self.indexes.set_incomplete(id, None);
            self.replace_claims(id, &object, None, dirty);
            dirty.changed_routes += 1;
        }
        self.indexes.routes.forget(id);
    }

    pub(super) fn input(&self) -> PublicationInput<'_> {
        PublicationInput {
            snapshot: &self.world.snapshot,
            topology: &self.world.topology,
            settings: &self.world.settings,
            grants: &self.hostname_grants,
        }
    }

    /// Updates the index and the number of routes at the listeners that a route attaches to.
    fn count_attachments(&mut self, id: RouteId, before: Option<&RouteState>, after: Option<&RouteState>) {
        let list = |state: Option<&RouteState>| state.map(attached_listeners).unwrap_or_default();
        let counted = |state: Option<&RouteState>| state.map(counted_listeners).unwrap_or_default();
        let (counted_before, counted_after) = (counted(before), counted(after));
        let (before, after) = (list(before), list(after));
        for listener in before.iter().filter(|listener| !after.contains(listener)) {
            self.indexes.listeners.remove(listener, id);
        }
        for listener in after.iter().filter(|listener| !before.contains(listener)) {
            self.indexes.listeners.add(listener, id);
        }
        let attached = &mut self.world.topology.attached;
        for listener in &counted_before {
            match attached.get_mut(listener) {
                Some(count) if *count > 1 => *count -= 1,
                _ => _ = attached.remove(listener),
            }
        }
        for listener in &counted_after {
            *attached.entry(*listener).or_default() += 1;
        }
    }

    /// Replaces the claims of a route, and marks the names, Secrets and policies that differ.
    fn replace_claims(&mut self, id: RouteId, object: &ObjectRef, after: Option<RouteClaims>, dirty: &mut Dirty) {
        let before = self.indexes.routes.claims(id).cloned();
        if before.as_deref() == after.as_ref() {
            return;
        }
        let after = after.map(Arc::new);
        let (old, new) = (ClaimKeys::of(before.as_deref()), ClaimKeys::of(after.as_deref()));
        old.names.difference(&new.names).for_each(|name| self.indexes.names.remove(name, id));
        new.names.difference(&old.names).for_each(|name| self.indexes.names.add(name, id));
        if old.withheld != new.withheld {
            dirty.changed_withheld.insert(object.clone());
        }
        dirty.names.extend(old.names.iter().chain(&new.names).map(|name| (*name).clone()));
        let blocked = |claims: Option<&'_ RouteClaims>| claims.map(RouteClaims::blocked).unwrap_or_default().to_vec();
        self.hidden.replace_blocked(&blocked(before.as_deref()), &blocked(after.as_deref()));
        dirty.changed_notes |= old.notes != new.notes;
        self.replace_requests(before.as_deref(), after.as_deref(), dirty);
        self.replace_status_source(&StatusSource::Route(object.clone()), old.policy_entries, new.policy_entries, dirty);
        let has_extras = |claims: &Option<Arc<RouteClaims>>| claims.as_ref().is_some_and(|c| c.extras().is_some());
        match &after {
            Some(claims) if has_extras(&after) => _ = self.world.extras.insert(object.clone(), claims.clone()),
            _ if has_extras(&before) => _ = self.world.extras.remove(object),
            _ => {}
        }
        self.indexes.routes.set_claims(id, after);
    }

    /// Replaces the certificate requests of a route.
    fn replace_requests(&mut self, old: Option<&RouteClaims>, new: Option<&RouteClaims>, dirty: &mut Dirty) {
        let states = &mut self.world.certificate_states;
        let (mut old_secrets, mut new_secrets) = (BTreeSet::new(), BTreeSet::new());
        for (route, request, secret) in requests(old) {
            if let Some(state) = states.get_mut(secret) {
                state.remove(route, &request);
            }
            old_secrets.insert(secret);
        }
        for (route, request, secret) in requests(new) {
            states.entry(secret.clone()).or_default().add(route, &request);
            new_secrets.insert(secret);
        }
        for secret in &old_secrets {
            if states.get(secret).is_some_and(CertificateState::is_empty) {
                states.remove(secret);
            }
        }
        dirty.secrets.extend(old_secrets.union(&new_secrets).map(|secret| (*secret).clone()));
        // A certificate lists its routes, so it changes even if its names do not.
        let joined_or_left = old_secrets.symmetric_difference(&new_secrets);
        dirty.changed_secrets.extend(joined_or_left.map(|secret| (*secret).clone()));
    }

    /// Replaces the policy status entries of a source, and marks the policies whose entries changed.
    pub(super) fn replace_status_source(
        &mut self,
        source: &StatusSource,
        before: &[PolicyStatusEntry],
        after: &[PolicyStatusEntry],
        dirty: &mut Dirty,
    ) {
        if before == after {
            return;
        }
        let policies = |entries: &[PolicyStatusEntry]| -> BTreeSet<ObjectRef> {
            entries.iter().map(|entry| entry.policy.clone()).collect()
        };
        let (before, after) = (policies(before), policies(after));
        for gone in before.difference(&after) {
            if let Some(sources) = self.indexes.status_sources.get_mut(gone) {
                sources.remove(source);
                if sources.is_empty() {
                    self.indexes.status_sources.remove(gone);
                }
            }
        }
        for policy in after.difference(&before) {
            self.indexes.status_sources.entry(policy.clone()).or_default().insert(source.clone());
        }
        dirty.reports.extend(before);
        dirty.reports.extend(after);
    }
}

/// The certificate requests of a route, each with every Secret that it applies to.
fn requests(claims: Option<&RouteClaims>) -> impl Iterator<Item = (&Arc<Route>, CertificateNameRequest<'_>, &Key)> {
    claims.into_iter().flat_map(|claims| {
        let requests = claims.certificate_requests();
        requests.flat_map(move |request| request.secrets().map(move |secret| (&claims.route, request, secret)))
    })
}

/// The keys under which the claims of a route are indexed.
#[derive(Default)]
struct ClaimKeys<'a> {
    names: BTreeSet<&'a Hostname>,
    withheld: &'a [Withheld],
    policy_entries: &'a [PolicyStatusEntry],
    notes: ClaimNotes<'a>,
}

/// Kept names, exclusion, own and shared diagnostics of a route.
type ClaimNotes<'a> = (&'a [KeptName], Option<&'a PassedOver>, &'a [Diagnostic], &'a [Arc<Vec<Diagnostic>>]);

impl<'a> ClaimKeys<'a> {
    fn of(claims: Option<&'a RouteClaims>) -> Self {
        let Some(claims) = claims else { return ClaimKeys::default() };
        let names = RouteNameClaim::all(claims).map(|(name, _)| name).collect();
        let mut keys = ClaimKeys { names, ..ClaimKeys::default() };
        if let Some(extras) = claims.extras() {
            keys.withheld = &extras.withheld;
            keys.policy_entries = &extras.policy_entries;
            keys.notes = (&extras.kept, extras.passed_over.as_ref(), &extras.diagnostics, &extras.shared);
        }
        keys
    }
}

/// Marks policies whose state changed, and the listener groups that they target.
fn mark_policies<P: Policy + Eq>(before: &PoliciesOfKind<P>, after: &PoliciesOfKind<P>, dirty: &mut Dirty) {
    let keys: BTreeSet<&Key> = before.states.keys().chain(after.states.keys()).collect();
    for key in keys {
        let (old, new) = (before.states.get(key), after.states.get(key));
        if old == new && before.governed_by(key) == after.governed_by(key) {
            continue;
        }
        dirty.reports.insert(ObjectRef { kind: P::KIND, key: key.clone() });
        let listeners = old.into_iter().chain(new).flat_map(|state| &state.listeners);
        dirty.contexts.extend(listeners.map(|listener| listener.group));
    }
}
