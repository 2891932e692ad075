//! The last stages: names, Secrets and policies. A result equal to its previous value is not part of the delta.

use std::collections::BTreeMap;

use super::Engine;
use super::dirty::Dirty;
use super::hidden::Published;
use super::reverse_indexes::StatusSource;
use crate::health::AddressReport;
use crate::model::{Key, Kind, ObjectRef, Str};
use crate::names::Hostname;
use crate::policy::PolicyReport;
use crate::publication::{
    CertificateRefusals, GrantRules, HolderInput, NameDecision, NameExtras, PolicyStatusEntries, PolicyStatusEntry,
    RouteNameClaim, SecretDecision, SecretNamespaces, admitted as admitted_by, decide_name, find_cname_loops,
    refuse_loop,
};

/// The targets of CNAME records, and the names whose CNAME leads back to themselves.
#[derive(Default)]
pub(super) struct CnameTargets {
    counts: TargetCounts,
    /// Their decisions before they were refused.
    looping: BTreeMap<Hostname, NameDecision>,
}

/// The number of names with a CNAME record for each target.
#[derive(Default)]
struct TargetCounts(BTreeMap<Str, usize>);

impl TargetCounts {
    fn replace(&mut self, before: Option<&NameDecision>, after: Option<&NameDecision>) {
        for target in after.into_iter().flat_map(NameDecision::cname_targets) {
            *self.0.entry(target.clone()).or_default() += 1;
        }
        for target in before.into_iter().flat_map(NameDecision::cname_targets) {
            let Some(count) = self.0.get_mut(target) else { continue };
            *count -= 1;
            if *count == 0 {
                self.0.remove(target);
            }
        }
    }
}

impl Engine {
    /// Decides the dirty names, which of them a wildcard answers for, and which names are hidden from a wildcard.
    pub(super) fn update_names(&mut self, dirty: &mut Dirty) {
        for name in std::mem::take(&mut dirty.names) {
            self.update_name(name, dirty);
        }
        self.update_loops(dirty);
        for name in self.coverage.update(&self.world.names, &mut self.world.covered) {
            self.hidden.touch(name.text());
            dirty.changed_names.insert(name.text().clone());
            let extras = self.world.names.get(&name).and_then(NameDecision::extras);
            let entries = extras.into_iter().flat_map(|extras| &extras.policy_entries);
            dirty.reports.extend(entries.map(|entry| entry.policy.clone()));
        }
        let published = Published {
            names: &self.world.names,
            covered: &self.world.covered,
            domains: &self.world.settings.domains,
            existing: &self.existing,
            grants: GrantRules {
                snapshot: &self.world.snapshot,
                grants: &self.hostname_grants,
                is_required: self.world.settings.require_grants,
            },
        };
        dirty.changed_names.extend(self.hidden.update(published, &mut self.world.hidden));
    }

    fn update_name(&mut self, name: Hostname, dirty: &mut Dirty) {
        let mut claims = self.claims_on(&name);
        let after = decide_name(&name, &mut claims, self.holder_input());
        let is_certified = claims.iter().any(RouteNameClaim::is_certified);
        let admitted = self
            .guards
            .is_watched(&name)
            .then(|| admitted_by(&name, after.as_ref(), &claims, self.input().grant_rules()));
        self.guard(&name, is_certified, admitted, dirty);
        let known = self.cname_targets.looping.remove(&name);
        let before = known.as_ref().or_else(|| self.world.names.get(&name));
        self.cname_targets.counts.replace(before, after.as_ref());
        self.replace_name(name, after, dirty);
    }

    /// Refuses the names whose CNAME leads back to themselves, and restores those of which that is no longer so.
    fn update_loops(&mut self, dirty: &mut Dirty) {
        let CnameTargets { counts, looping } = &self.cname_targets;
        if counts.0.is_empty() && looping.is_empty() {
            return;
        }
        let decision = |name: &str| looping.get(name).or_else(|| self.world.names.get(name));
        let found = find_cname_loops(counts.0.keys(), decision);
        let restored: Vec<Hostname> = looping.keys().filter(|name| !found.contains(name.as_str())).cloned().collect();
        let refused = found.iter().filter(|name| !looping.contains_key(name.as_str()));
        let refused: Vec<Hostname> =
            refused.filter_map(|name| Some(self.world.names.get_key_value(&**name)?.0.clone())).collect();
        for name in restored {
            let decision = self.cname_targets.looping.remove(&name);
            self.replace_name(name, decision, dirty);
        }
        for name in refused {
            let after = refuse_loop(&name, &mut self.claims_on(&name), self.holder_input());
            let before = self.replace_name(name.clone(), after, dirty);
            self.cname_targets.looping.extend(before.map(|before| (name, before)));
        }
    }

    /// Replaces the decision about a name, and returns the previous one.
    fn replace_name(&mut self, name: Hostname, after: Option<NameDecision>, dirty: &mut Dirty) -> Option<NameDecision> {
        let before = self.world.names.get(&name);
        if before == after.as_ref() {
            return before.cloned();
        }
        let holders = (before.and_then(NameDecision::holder), after.as_ref().and_then(NameDecision::holder));
        if holders.0 != holders.1 {
            match holders.1 {
                Some(_) => _ = self.world.contested.insert(name.clone()),
                None => _ = self.world.contested.remove(&name),
            }
            dirty.changed_notes = true;
            self.mark_secrets_of(&name, dirty);
        }
        let before = self.world.names.get(&name);
        if !is_same_to_readers(before, after.as_ref()) {
            dirty.changed_names.insert(name.text().clone());
        }
        self.hidden.touch(name.text());
        let before = match after.clone() {
            Some(after) => self.world.names.insert(name.clone(), after),
            None => self.world.names.remove(&name),
        };
        let with_records = |decision: &Option<NameDecision>| decision.clone().filter(NameDecision::has_records);
        self.coverage.note(&name, with_records(&before).as_ref(), with_records(&after).as_ref());
        before.iter().for_each(|decision| self.count_kinds(decision, false));
        after.iter().for_each(|decision| self.count_kinds(decision, true));
        let (old, new) =
            (before.as_ref().and_then(NameDecision::extras), after.as_ref().and_then(NameDecision::extras));
        let withheld = old.into_iter().chain(new).flat_map(|extras| &extras.withheld);
        dirty.changed_withheld.extend(withheld.map(|withheld| withheld.route.clone()));
        let addresses = (addresses_of(old), addresses_of(new));
        if addresses.0 != addresses.1 {
            let policies = addresses.0.iter().chain(addresses.1).map(|(policy, _)| policy.clone());
            dirty.reports.extend(policies.map(|key| ObjectRef { kind: Kind::DnsPolicy, key }));
        }
        self.replace_status_source(&StatusSource::Name(name), entries_of(old), entries_of(new), dirty);
        before
    }

    /// The claims on a name.
    fn claims_on(&self, name: &Hostname) -> Vec<RouteNameClaim<'_>> {
        let routes = self.indexes.names.of(name).filter_map(|id| self.indexes.routes.claims(id));
        let claims = routes.flat_map(|route| RouteNameClaim::all(route));
        claims.filter(|(claimed, _)| *claimed == name).map(|(_, claim)| claim).collect()
    }

    fn holder_input(&self) -> HolderInput<'_> {
        let grants = self.input().grant_rules();
        let (snapshot, providers) = (&self.world.snapshot, &self.world.settings.providers);
        HolderInput { snapshot, observed: &self.observed, grants, health: &self.health, providers }
    }

    /// Updates what guards the wildcards of certificates, after the claims on a name changed.
    fn guard(
        &mut self,
        name: &Hostname,
        is_certified: bool,
        admitted: Option<Option<SecretNamespaces>>,
        dirty: &mut Dirty,
    ) {
        if let Some(admitted) = admitted
            && self.guards.set(name, admitted)
            && let Some((_, base)) = name.as_str().split_once('.')
            && let Ok(wildcard) = Hostname::parse(&format!("*.{base}"))
        {
            self.mark_secrets_of(&wildcard, dirty);
        }
        if name.is_wildcard() && self.guards.watch(name, is_certified) {
            let below: Vec<Hostname> =
                self.world.names.keys().filter(|name| self.guards.is_watched(name)).cloned().collect();
            for name in below {
                let (decision, claims) = (self.world.names.get(&name), self.claims_on(&name));
                let admitted = admitted_by(&name, decision, &claims, self.input().grant_rules());
                self.guards.set(&name, admitted);
            }
            self.mark_secrets_of(name, dirty);
        }
    }

    /// Marks the Secrets whose certificates request a name.
    fn mark_secrets_of(&self, name: &Hostname, dirty: &mut Dirty) {
        let routes = self.indexes.names.of(name).filter_map(|id| self.indexes.routes.claims(id));
        let requests = routes.flat_map(|route| route.certificate_requests());
        dirty.secrets.extend(requests.flat_map(|request| request.secrets()).cloned());
    }

    /// Adds the route kinds of a name to the counts, or subtracts them.
    fn count_kinds(&mut self, decision: &NameDecision, is_there: bool) {
        for route in decision.routes() {
            let count = self.world.kinds.entry(route.kind).or_default();
            *count = if is_there { *count + 1 } else { count.saturating_sub(1) };
            if *count == 0 {
                self.world.kinds.remove(&route.kind);
            }
        }
    }

    /// Decides the dirty Secrets.
    pub(super) fn update_secrets(&mut self, dirty: &mut Dirty) {
        for secret in std::mem::take(&mut dirty.secrets) {
            self.update_secret(secret, dirty);
        }
    }

    fn update_secret(&mut self, secret: Key, dirty: &mut Dirty) {
        let after = self.decide_secret(&secret);
        let before = match after.clone() {
            Some(after) => self.world.secrets.insert(secret.clone(), after),
            None => self.world.secrets.remove(&secret),
        };
        if before == after {
            return;
        }
        let is_same = match (&before, &after) {
            (Some(before), Some(after)) => before.is_same_certificate(after),
            _ => false,
        };
        if !is_same {
            dirty.changed_secrets.insert(secret.clone());
        }
        let diagnostics = |decision: &Option<SecretDecision>| decision.as_ref().map(|d| d.diagnostics.clone());
        dirty.changed_notes |= diagnostics(&before) != diagnostics(&after);
        // Notes are part of a TLSPolicy's status.
        let noted = before.iter().chain(&after).flat_map(|decision| &decision.notes);
        dirty.reports.extend(noted.map(|(policy, _)| ObjectRef { kind: Kind::TlsPolicy, key: policy.clone() }));
        let entries = |decision: &Option<SecretDecision>| -> Vec<PolicyStatusEntry> {
            decision.iter().flat_map(|decision| decision.policy_entries.clone()).collect()
        };
        self.replace_status_source(&StatusSource::Secret(secret), &entries(&before), &entries(&after), dirty);
    }

    fn decide_secret(&self, secret: &Key) -> Option<SecretDecision> {
        let requests = |route: &ObjectRef| {
            let claims = self.indexes.routes.claims_of(route);
            claims.map(|claims| claims.certificate_requests_for(secret)).unwrap_or_default()
        };
        let state = self.world.certificate_states.get(secret)?;
        let is_contested = !self.world.contested.is_empty();
        let names = is_contested.then_some(&self.world.names);
        let grants = self.input().grant_rules();
        let refusals = CertificateRefusals { secret, names, guards: &self.guards, grants };
        Some(state.decide(self.world.settings.certificate_names, refusals, requests))
    }

    /// Makes the reports of the dirty policies again.
    pub(super) fn update_reports(&mut self, dirty: &mut Dirty) {
        for policy in std::mem::take(&mut dirty.reports) {
            let after = self.report(&policy);
            let before = match after.clone() {
                Some(after) => self.world.reports.insert(policy.clone(), after),
                None => self.world.reports.remove(&policy),
            };
            if before != after {
                dirty.changed_reports.insert(policy);
            }
        }
    }

    fn report(&self, policy: &ObjectRef) -> Option<PolicyReport> {
        let (world, key) = (&self.world, &policy.key);
        let mut entries = PolicyStatusEntries::default();
        for source in self.indexes.status_sources.get(policy).into_iter().flatten() {
            match source {
                StatusSource::Route(route) => {
                    world.extras.get(route).into_iter().for_each(|claims| entries.add_route(claims));
                }
                StatusSource::Name(name) => world.names.get(name).into_iter().for_each(|name| entries.add_name(name)),
                StatusSource::Secret(secret) => {
                    world.secrets.get(secret).into_iter().for_each(|secret| entries.add_secret(secret));
                }
            }
        }
        let is_owner = |name: &str| world.has_records(name) && !world.covered.contains(name);
        match policy.kind {
            Kind::DnsPolicy => {
                world.policies.dns.states.get(key).map(|_| entries.dns_report(&world.policies, key, is_owner))
            }
            _ => world.policies.tls.states.get(key).map(|_| entries.tls_report(&world.policies, key)),
        }
    }
}

fn entries_of(extras: Option<&NameExtras>) -> &[PolicyStatusEntry] {
    extras.map(|extras| &extras.policy_entries[..]).unwrap_or_default()
}

fn addresses_of(extras: Option<&NameExtras>) -> &[(Key, AddressReport)] {
    extras.map(|extras| &extras.addresses[..]).unwrap_or_default()
}

fn is_same_to_readers(before: Option<&NameDecision>, after: Option<&NameDecision>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before.is_same_to_readers(after),
        (before, after) => !before.or(after).is_some_and(NameDecision::has_records),
    }
}
