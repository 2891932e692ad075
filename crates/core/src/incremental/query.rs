//! Queries for single names, routes and policies of an [`Engine`], for readers that process deltas.
//!
//! A [`DesiredPatch`] holds the new values of everything that a [`Delta`] lists; applied to the previous desired state
//! it gives the current one. Nothing is decided here.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Delta, Engine, World};
use crate::diagnostic::Diagnostic;
use crate::model::{Key, ObjectRef, Str};
use crate::policy::PolicyReport;
use crate::publication::holders::{ObservedNames, may_miss_routes};
use crate::publication::settings::Profile;
use crate::publication::{
    Certificate, Desired, DesiredBuilder, KeptName, NameDecision, PassedOver, Record, RouteNameClaim, Withheld,
};

/// The new values of everything that one delta lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredPatch {
    /// Names with their records, sorted.
    pub names: Vec<NameRecords>,
    /// Secrets with their certificates, sorted; `None` if none is wanted any more.
    pub certificates: Vec<(Key, Option<Certificate>)>,
    /// Policies with their reports, sorted; `None` for a deleted policy.
    pub policies: Vec<(ObjectRef, Option<PolicyReport>)>,
    /// Routes with their withheld hostnames, sorted.
    pub withheld: Vec<(ObjectRef, Vec<Withheld>)>,
    /// Kept names, excluded objects and diagnostics, if any of them may have changed.
    notes: Option<Notes>,
}

/// The records of one name: its own, or those that a wildcard answers with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameRecords {
    /// The name.
    pub name: Str,
    /// The records that should exist.
    pub records: Vec<Record>,
    /// The records that need not exist because a wildcard answers for the name.
    pub covered: Vec<Record>,
}

/// The parts of a desired state that belong to no single name, Secret or policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Notes {
    kept_names: Vec<KeptName>,
    passed_over: Vec<PassedOver>,
    diagnostics: Vec<Diagnostic>,
}

impl Engine {
    /// The new values of everything that a delta lists.
    pub fn patch(&self, delta: &Delta) -> DesiredPatch {
        let world = &self.world;
        let certificate = |secret: &Key| (secret.clone(), world.certificate(secret));
        let policy = |policy: &ObjectRef| (policy.clone(), world.policy(policy).cloned());
        DesiredPatch {
            names: delta.names.iter().map(|name| world.name_records(name)).collect(),
            certificates: delta.certificates.iter().map(certificate).collect(),
            policies: delta.policies.iter().map(policy).collect(),
            withheld: delta.withheld.iter().map(|route| (route.clone(), self.withheld(route))).collect(),
            notes: delta.notes.then(|| world.notes()),
        }
    }

    /// The names whose holder depends on what their records were made for (D27).
    pub fn contested_names(&self) -> BTreeSet<Str> {
        let world = &self.world;
        if world.settings.profile == Profile::ExternalDns {
            return BTreeSet::new();
        }
        match may_miss_routes(&world.snapshot) {
            true => ObservedNames::deciding(world.names.keys().map(|name| name.text().clone())),
            false => ObservedNames::deciding(world.contested.iter().map(|name| name.text().clone())),
        }
    }

    /// The withheld hostnames of a route, sorted.
    pub fn withheld(&self, route: &ObjectRef) -> Vec<Withheld> {
        let Some(claims) = self.indexes.routes.claims_of(route) else { return Vec::new() };
        let own = claims.extras().into_iter().flat_map(|extras| &extras.withheld);
        let names = RouteNameClaim::all(claims).map(|(name, _)| name);
        let decisions = names.filter_map(|name| self.world.names.get(name).and_then(NameDecision::extras));
        let lost = decisions.flat_map(|extras| &extras.withheld).filter(|withheld| withheld.route == *route);
        let mut withheld: Vec<Withheld> = own.chain(lost).cloned().collect();
        withheld.sort();
        withheld.dedup();
        withheld
    }
}

impl World {
    /// Whether a wildcard answers for any name.
    pub fn has_covered(&self) -> bool {
        !self.covered.is_empty()
    }

    /// The reports of all policies, sorted.
    pub fn policies(&self) -> impl Iterator<Item = &PolicyReport> {
        self.reports.values()
    }

    /// The records of one name, including those that a wildcard answers with.
    fn name_records(&self, name: &Str) -> NameRecords {
        let mut of_name = NameRecords { name: name.clone(), ..NameRecords::default() };
        let Some((name, decision)) = self.names.get_key_value(&**name) else {
            of_name.records = self.hidden_records(name);
            of_name.records.sort_by(|a, b| a.rank().cmp(&b.rank()));
            return of_name;
        };
        let mut records: Vec<Record> = decision.records(name).collect();
        records.sort_by(|a, b| a.rank().cmp(&b.rank()));
        match self.covered.contains(name) {
            true => of_name.covered = records,
            false => of_name.records = records,
        }
        of_name
    }

    fn notes(&self) -> Notes {
        let mut diagnostics = self.policies.diagnostics();
        diagnostics.extend(self.secrets.values().flat_map(|secret| secret.diagnostics.iter().cloned()));
        let mut builder = DesiredBuilder::new(Vec::new(), diagnostics);
        self.selected.values().for_each(|owner| builder.owner(owner));
        self.extras.values().for_each(|claims| builder.route(claims, |kept| self.is_held(kept)));
        let Desired { kept_names, passed_over, diagnostics, .. } = builder.finish();
        Notes { kept_names, passed_over, diagnostics }
    }
}

impl DesiredPatch {
    /// Turns the desired state before the delta into the one after it.
    pub fn apply(self, desired: &mut Desired) {
        for NameRecords { name, records, covered } in self.names {
            replace(&mut desired.records, |record| record.name.cmp(&name), records);
            replace(&mut desired.covered, |record| record.name.cmp(&name), covered);
        }
        for (secret, certificate) in self.certificates {
            replace(&mut desired.certificates, |known| known.secret.cmp(&secret), certificate);
        }
        for (policy, report) in self.policies {
            replace(&mut desired.policies, |known| known.policy.cmp(&policy), report);
        }
        for (route, withheld) in self.withheld {
            replace(&mut desired.withheld, |known| known.route.cmp(&route), withheld);
        }
        if let Some(Notes { kept_names, passed_over, diagnostics }) = self.notes {
            (desired.kept_names, desired.passed_over, desired.diagnostics) = (kept_names, passed_over, diagnostics);
        }
    }
}

/// Replaces the entries of a sorted list that compare as equal.
fn replace<T>(list: &mut Vec<T>, order: impl Fn(&T) -> std::cmp::Ordering, new: impl IntoIterator<Item = T>) {
    let range: Range<usize> =
        list.partition_point(|entry| order(entry).is_lt())..list.partition_point(|e| order(e).is_le());
    list.splice(range, new);
}
