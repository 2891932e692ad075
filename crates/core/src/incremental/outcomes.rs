//! Names, Secrets and policies: the last stages, where equal results are what readers see as no change.

use std::sync::Arc;

use super::Engine;
use super::due::Due;
use super::links::Teller;
use super::named::Named;
use crate::model::{Key, Kind, ObjectRef, Str};
use crate::names::Hostname;
use crate::policy::PolicyReport;
use crate::publication::strict::{Contribution, Decision, Ledger, NameRest, SecretDecision};

impl Engine {
    /// Decides about the names that are due, and about wildcards that answer for them.
    pub(super) fn settle_names(&mut self, due: &mut Due) {
        // The names that differ take the room of those that were due; nothing before this stage tells of any.
        let names = due.names.take().into_iter();
        let differ: Vec<Str> = names.filter_map(|name| self.settle_name(name, due)).collect();
        due.changed_names = differ.into();
        for name in self.coverage.settle(&self.world.names, &mut self.world.covered) {
            due.changed_names.insert(name.text().clone());
            let told = self.world.names.get(&name).and_then(Named::rest).map(|rest| &rest.told[..]);
            due.reports.extend(told.into_iter().flatten().map(|told| told.policy.clone()));
        }
    }

    /// Decides about a name; gives it back where readers see something else.
    fn settle_name(&mut self, name: Hostname, due: &mut Due) -> Option<Str> {
        let claimants: Vec<Arc<Contribution>> =
            self.links.claimants(&name).filter_map(|id| self.links.contribution(id).cloned()).collect();
        let (kept, after) = Named::of(&name, &claimants).unzip();
        let before = self.world.names.get(&name).cloned();
        let was = before.as_ref().map(|before| before.decision(&name));
        if was.as_deref() == after.as_deref() {
            self.keep_name(name, before.as_ref(), kept);
            return None;
        }
        let is_same = is_same_to_readers(was.as_deref(), after.as_deref());
        let differs = (!is_same).then(|| name.text().clone());
        self.coverage.note(&name, was.as_deref(), after.as_deref());
        was.iter().for_each(|decision| self.count_kinds(decision, false));
        after.iter().for_each(|decision| self.count_kinds(decision, true));
        let (old, new) = (was.as_deref().and_then(Decision::rest), after.as_deref().and_then(Decision::rest));
        let withheld = old.into_iter().chain(new).flat_map(|rest| &rest.withheld);
        due.changed_withheld.extend(withheld.map(|withheld| withheld.route.clone()));
        if old.is_some() || new.is_some() {
            let told = |rest: Option<&'_ NameRest>| rest.map(|rest| rest.told.clone()).unwrap_or_default();
            self.retell(&Teller::Name(name.clone()), &told(old), &told(new), due);
        }
        match kept {
            Some(kept) => _ = self.world.names.insert(name, kept),
            None => _ = self.world.names.remove(&name),
        }
        differs
    }

    /// Keeps a decision that came out as before: what it follows from may be another value now, and the old one is to go.
    fn keep_name(&mut self, name: Hostname, before: Option<&Named>, kept: Option<Named>) {
        let is_decided = |named: &Named| named.decided().is_some();
        let (Some(before), Some(kept)) = (before, kept) else { return };
        if !(before.is_one_with(&kept) || is_decided(before) && is_decided(&kept)) {
            self.world.names.insert(name, kept);
        }
    }

    /// Counts the kinds of routes that have a name, or no longer.
    fn count_kinds(&mut self, decision: &Decision, is_there: bool) {
        for route in decision.routes() {
            let count = self.world.kinds.entry(route.kind).or_default();
            *count = if is_there { *count + 1 } else { count.saturating_sub(1) };
            if *count == 0 {
                self.world.kinds.remove(&route.kind);
            }
        }
    }

    /// Decides about the Secrets that are due.
    pub(super) fn settle_secrets(&mut self, due: &mut Due) {
        for secret in std::mem::take(&mut due.secrets) {
            self.settle_secret(secret, due);
        }
    }

    fn settle_secret(&mut self, secret: Key, due: &mut Due) {
        let before = self.world.secrets.get(&secret).cloned();
        let after = self.decided_secret(&secret).map(Arc::new);
        if before == after {
            return;
        }
        let is_same = before.as_ref().map(|d| &d.certificate) == after.as_ref().map(|d| &d.certificate);
        if !is_same {
            due.changed_secrets.insert(secret.clone());
        }
        let diagnostics = |decision: &Option<Arc<SecretDecision>>| decision.as_ref().map(|d| d.diagnostics.clone());
        due.changed_notes |= diagnostics(&before) != diagnostics(&after);
        let told =
            |decision: &Option<Arc<SecretDecision>>| decision.as_ref().map(|d| d.told.clone()).unwrap_or_default();
        let (old, new) = (told(&before), told(&after));
        // The notes of a policy follow its wishes, and those are told.
        let noted = before.iter().chain(&after).flat_map(|decision| &decision.notes);
        due.reports.extend(noted.map(|(policy, _)| ObjectRef { kind: Kind::TlsPolicy, key: policy.clone() }));
        self.retell(&Teller::Secret(secret.clone()), &old, &new, due);
        match after {
            Some(after) => _ = self.world.secrets.insert(secret, after),
            None => _ = self.world.secrets.remove(&secret),
        }
    }

    fn decided_secret(&self, secret: &Key) -> Option<SecretDecision> {
        let limit = self.world.settings.certificate_names;
        let wishes = |route: &ObjectRef| self.links.contribution(self.links.id(route)?)?.wishes_for(secret);
        self.books.get(secret).map(|book| book.decide(limit, secret, wishes))
    }

    /// Reports on the policies that are due.
    pub(super) fn settle_reports(&mut self, due: &mut Due) {
        for policy in std::mem::take(&mut due.reports) {
            let after = self.report(&policy).map(Arc::new);
            if self.world.reports.get(&policy) == after.as_ref() {
                continue;
            }
            match after {
                Some(after) => _ = self.world.reports.insert(policy.clone(), after),
                None => _ = self.world.reports.remove(&policy),
            }
            due.changed_reports.insert(policy);
        }
    }

    fn report(&self, policy: &ObjectRef) -> Option<PolicyReport> {
        let (world, key) = (&self.world, &policy.key);
        let mut ledger = Ledger::default();
        for teller in self.links.tellers.get(policy).into_iter().flatten() {
            match teller {
                Teller::Route(route) => world.contributions.get(route).into_iter().for_each(|c| ledger.add_route(c)),
                Teller::Name(name) => {
                    let decided = world.names.get(name).and_then(Named::decided);
                    decided.into_iter().for_each(|decision| ledger.add_name(decision));
                }
                Teller::Secret(secret) => world.secrets.get(secret).into_iter().for_each(|d| ledger.add_secret(d)),
            }
        }
        let is_owner = |name: &str| world.names.contains_key(name) && !world.covered.contains_key(name);
        match policy.kind {
            Kind::DnsPolicy => {
                world.policies.dns.states.get(key).map(|_| ledger.dns_report(&world.policies, key, is_owner))
            }
            _ => world.policies.tls.states.get(key).map(|_| ledger.tls_report(&world.policies, key)),
        }
    }
}

fn is_same_to_readers(before: Option<&Decision>, after: Option<&Decision>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before.is_same_to_readers(after),
        (before, after) => before.is_none() && after.is_none(),
    }
}
