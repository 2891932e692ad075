//! The state of one certificate: all requests for its Secret, counted, and the decision from them.
//!
//! Both drivers use it: `build` adds all requests, `incremental` adds and removes those of changed routes. This module
//! never looks at a Secret's current content.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::smallvec;

use super::{
    CertificateNameRequest, CertificateNames, SecretDecision, chosen_issuer, held_elsewhere, issuers_differ, left_out,
};
use crate::attachment::ListenerKey;
use crate::lint::SHOWN;
use crate::model::{Key, ObjectRef, Route, ShortVec, Str, TlsPolicy};
use crate::names::Hostname;
use crate::publication::holders::CertificateRefusals;
use crate::publication::wildcards::above;
use crate::reason::Reason;

/// All requests of routes for one Secret.
#[derive(Default)]
pub(crate) struct CertificateState {
    /// Number of requests per route.
    routes: BTreeMap<ObjectRef, usize>,
    /// The routes that request each name; never empty.
    names: BTreeMap<Hostname, ShortVec<Requester>>,
    /// `example.org` for each requested `*.example.org`.
    wildcard_bases: BTreeSet<Str>,
    /// Names that no requested wildcard covers, ordered by their oldest route. They are included in this order, up to
    /// the limit.
    ranking: BTreeSet<(RouteAge, Hostname)>,
    listeners: BTreeMap<ListenerKey, usize>,
    policies: BTreeMap<(i64, Key), (Arc<TlsPolicy>, usize)>,
    /// Wildcards by the TLSPolicy that allows them by leaving `allowWildcardHosts` unset.
    unset_wildcards: BTreeMap<Key, BTreeMap<Hostname, usize>>,
    /// Number of requests whose result is reported.
    reported: usize,
}

/// A route that requests a name, and the number of its requests.
struct Requester {
    age: RouteAge,
    requests: usize,
}

/// A route, ordered by age, then by namespace and name.
#[derive(Clone)]
struct RouteAge(Arc<Route>);

impl CertificateState {
    /// Whether nothing is requested.
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The routes that request names, in order.
    pub(crate) fn routes(&self) -> impl Iterator<Item = &ObjectRef> {
        self.routes.keys()
    }

    /// Adds a request of a route.
    pub(crate) fn add(&mut self, route: &Arc<Route>, request: &CertificateNameRequest<'_>) {
        *self.routes.entry(route.object()).or_default() += 1;
        if !request.is_added {
            *self.listeners.entry(request.context.rank.key.clone()).or_default() += 1;
        }
        self.reported += usize::from(request.is_reported());
        request.names().for_each(|name| self.add_name(name, route));
        let Some(policy) = request.policy() else { return };
        let (created, key) = policy.meta.seniority();
        let (known, count) = self.policies.entry((created, key.clone())).or_insert_with(|| (policy.clone(), 0));
        // Other routes may still have the previous version of the policy; they are updated in the same application.
        *known = policy.clone();
        *count += 1;
        for wildcard in request.unset_wildcards() {
            *self.unset_wildcards.entry(key.clone()).or_default().entry(wildcard.clone()).or_default() += 1;
        }
    }

    /// Removes a request that was added.
    pub(crate) fn remove(&mut self, route: &Arc<Route>, request: &CertificateNameRequest<'_>) {
        decrement(&mut self.routes, &route.object(), |count| count);
        if !request.is_added {
            decrement(&mut self.listeners, &request.context.rank.key, |count| count);
        }
        self.reported -= usize::from(request.is_reported());
        request.names().for_each(|name| self.remove_name(name, route));
        let Some(policy) = request.policy() else { return };
        let (created, key) = policy.meta.seniority();
        decrement(&mut self.policies, &(created, key.clone()), |(_, count)| count);
        for wildcard in request.unset_wildcards() {
            let Some(wildcards) = self.unset_wildcards.get_mut(key) else { continue };
            decrement(wildcards, wildcard, |count| count);
            if wildcards.is_empty() {
                self.unset_wildcards.remove(key);
            }
        }
    }

    /// Decides which names the certificate gets: at most `limit`, those of the oldest routes first. `requests` returns
    /// a route's requests for this Secret.
    pub(crate) fn decide<'a>(
        &self,
        limit: usize,
        refusals: CertificateRefusals<'_>,
        requests: impl Fn(&ObjectRef) -> Vec<CertificateNameRequest<'a>>,
    ) -> SecretDecision {
        let secret = refusals.secret;
        let refused = self.refused(refusals);
        let admitted = (!refused.is_empty()).then(|| self.ranking_without(&refused));
        let ranking = admitted.as_ref().unwrap_or(&self.ranking);
        let mut names: Vec<&Hostname> = ranking.iter().take(limit).map(|(_, name)| name).collect();
        names.sort_unstable();
        let mut diagnostics = Vec::new();
        let left = ranking.len() - names.len();
        let first = || self.routes.keys().find_map(|route| first_field(&requests(route), secret));
        if left > 0 {
            let left_names = ranking.iter().skip(limit).take(SHOWN).map(|(_, name)| name);
            diagnostics.extend(first().map(|field| left_out(field, secret, limit, left, left_names)));
        }
        if !refused.is_empty() {
            diagnostics.extend(first().into_iter().flat_map(|field| held_elsewhere(&field, secret, &refused)));
        }
        let policies = || self.policies.values().map(|(policy, _)| policy);
        diagnostics.extend(issuers_differ(secret, policies()));
        let names = CertificateNames::of(names);
        let mut policy_entries = Vec::new();
        if self.reported > 0 {
            for request in self.routes.keys().flat_map(&requests) {
                let refused = refused.get(request.name).map(|(reason, _)| *reason);
                names.report(secret, &request, refused, &mut diagnostics, &mut policy_entries);
            }
        }
        let notes = self.unset_wildcards.iter().map(|(policy, wildcards)| {
            let made = wildcards.keys().filter(|wildcard| names.contains(wildcard));
            (policy.clone(), made.map(|name| name.text().clone()).collect::<Vec<_>>())
        });
        let (issuer, policy) = chosen_issuer(policies());
        SecretDecision {
            notes: notes.filter(|(_, made)| !made.is_empty()).collect(),
            dns_names: names.texts(),
            is_refused: names.is_empty() && !refused.is_empty(),
            listeners: self.listeners.keys().cloned().collect(),
            issuer,
            policy,
            diagnostics,
            policy_entries,
        }
    }

    /// The requested names that the Secret may not have, with the reason.
    fn refused(&self, refusals: CertificateRefusals<'_>) -> BTreeMap<&Hostname, (Reason, String)> {
        if refusals.is_empty() {
            return BTreeMap::new();
        }
        self.names.keys().filter_map(|name| Some((name, refusals.of(name)?))).collect()
    }

    /// The ranking as if some names had not been requested.
    fn ranking_without(&self, refused: &BTreeMap<&Hostname, (Reason, String)>) -> BTreeSet<(RouteAge, Hostname)> {
        let names = || self.names.iter().filter(|(name, _)| !refused.contains_key(*name));
        let bases: BTreeSet<&str> = names().filter_map(|(name, _)| name.wildcard_base()).collect();
        let is_covered =
            |name: &Hostname| name.is_precise() && above(name.as_str()).next().is_some_and(|base| bases.contains(base));
        let ranked = names().filter(|(name, _)| !is_covered(name));
        ranked.map(|(name, requesters)| (requesters[0].age.clone(), name.clone())).collect()
    }

    fn add_name(&mut self, name: &Hostname, route: &Arc<Route>) {
        let age = RouteAge(route.clone());
        let Some(requesters) = self.names.get_mut(name) else {
            self.names.insert(name.clone(), smallvec![Requester { age: age.clone(), requests: 1 }]);
            if let Some(base) = name.wildcard_base() {
                self.wildcard_bases.insert(base.into());
                self.rank_names_below(base);
            }
            return self.rank(name, age);
        };
        let before = requesters[0].age.clone();
        match requesters.binary_search_by(|known| known.age.cmp(&age)) {
            Ok(place) => {
                requesters[place].requests += 1;
                requesters[place].age = age;
            }
            Err(place) => requesters.insert(place, Requester { age, requests: 1 }),
        }
        let after = requesters[0].age.clone();
        self.rank_again(name, before, after);
    }

    fn remove_name(&mut self, name: &Hostname, route: &Arc<Route>) {
        let Some(requesters) = self.names.get_mut(name) else { return };
        let before = requesters[0].age.clone();
        let age = RouteAge(route.clone());
        let Ok(place) = requesters.binary_search_by(|known| known.age.cmp(&age)) else { return };
        requesters[place].requests -= 1;
        if requesters[place].requests == 0 {
            requesters.remove(place);
        }
        if let Some(first) = requesters.first() {
            let after = first.age.clone();
            return self.rank_again(name, before, after);
        }
        self.names.remove(name);
        self.ranking.remove(&(before, name.clone()));
        if let Some(base) = name.wildcard_base() {
            self.wildcard_bases.remove(base);
            self.rank_names_below(base);
        }
    }

    fn rank_again(&mut self, name: &Hostname, before: RouteAge, after: RouteAge) {
        if before != after && self.ranking.remove(&(before, name.clone())) {
            self.rank(name, after);
        }
    }

    fn rank(&mut self, name: &Hostname, age: RouteAge) {
        if !self.is_covered(name) {
            self.ranking.insert((age, name.clone()));
        }
    }

    /// Updates the ranking of the names directly below a wildcard's base, after the wildcard was added or removed.
    /// Visits all names; wildcards of a certificate rarely change.
    fn rank_names_below(&mut self, base: &str) {
        let is_below = |name: &Hostname| name.is_precise() && above(name.as_str()).next() == Some(base);
        let below = self.names.iter().filter(|(name, _)| is_below(name));
        let below: Vec<_> = below.map(|(name, requesters)| (requesters[0].age.clone(), name.clone())).collect();
        for (age, name) in below {
            if self.wildcard_bases.contains(base) {
                self.ranking.remove(&(age, name));
            } else {
                self.rank(&name, age);
            }
        }
    }

    /// Whether a requested wildcard covers a name, one label deep (D3).
    fn is_covered(&self, name: &Hostname) -> bool {
        name.is_precise() && above(name.as_str()).next().is_some_and(|base| self.wildcard_bases.contains(base))
    }
}

/// The field that refers to the Secret, at the listener with the highest precedence among a route's requests.
fn first_field(
    requests: &[CertificateNameRequest<'_>],
    secret: &Key,
) -> Option<(ObjectRef, crate::diagnostic::FieldPath)> {
    let requests = requests.iter().filter(|request| !request.is_added);
    let first = requests.min_by(|a, b| a.context.rank.precedence.cmp(&b.context.rank.precedence))?;
    Some(first.secret_field(secret))
}

/// Decrements a count, and removes the entry at zero.
fn decrement<K: Ord, V>(counts: &mut BTreeMap<K, V>, key: &K, count: impl Fn(&mut V) -> &mut usize) {
    let Some(found) = counts.get_mut(key) else { return };
    let left = count(found);
    *left -= 1;
    if *left == 0 {
        counts.remove(key);
    }
}

impl Ord for RouteAge {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.meta.seniority().cmp(&other.0.meta.seniority()).then(self.0.kind.cmp(&other.0.kind))
    }
}

impl PartialOrd for RouteAge {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RouteAge {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RouteAge {}
