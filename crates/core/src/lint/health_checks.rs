//! Health checks of DNSPolicies that cannot find out anything.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::names::Hostname;
use crate::policy::{Policies, Policy, PolicyState};

impl LintContext<'_> {
    /// What is wrong with the health checks of policies, as far as that can be seen without a probe.
    pub fn health_checks(self, policies: &Policies) -> Vec<Diagnostic> {
        let mut names: BTreeMap<ListenerId, BTreeSet<&Hostname>> = BTreeMap::new();
        for (_, listener, intersections) in self.topology.attachments() {
            names.entry(listener).or_default().extend(intersections.iter().map(|name| &name.hostname));
        }
        let accepted = policies.dns.states.iter().filter(|(_, state)| state.refused.is_none());
        let findings = accepted.flat_map(|(key, state)| {
            let listeners = policies.dns.governed_by(key);
            let probed = ProbedNames { context: self, listeners, names: &names, state };
            state.policy.health_check.as_ref().map(|check| probed.findings(check)).unwrap_or_default()
        });
        findings.collect()
    }
}

/// The names that one policy governs.
struct ProbedNames<'a> {
    context: LintContext<'a>,
    /// The listeners that it governs.
    listeners: Vec<ListenerId>,
    /// The names of routes at each listener.
    names: &'a BTreeMap<ListenerId, BTreeSet<&'a Hostname>>,
    state: &'a PolicyState<DnsPolicy>,
}

impl ProbedNames<'_> {
    fn findings(&self, check: &HealthCheck) -> Vec<Diagnostic> {
        let all = [self.without_names(), self.port_unserved(check), self.uncovered(check)];
        all.into_iter().flatten().collect()
    }

    fn diagnostic(&self, reason: reason::Reason, field: &str, message: String) -> Diagnostic {
        let field = if field.is_empty() { HEALTH_CHECK.to_owned() } else { format!("{HEALTH_CHECK}.{field}") };
        Diagnostic::new(reason, &self.state.policy.object(), FieldPath::of(&field), message)
    }

    /// Every name at a governed listener, with the listener.
    fn all(&self) -> impl Iterator<Item = (ListenerId, &Hostname)> {
        let listeners = self.listeners.iter().filter_map(|id| Some((*id, self.names.get(id)?)));
        listeners.flat_map(|(id, names)| names.iter().map(move |name| (id, *name)))
    }

    /// Whether a name gets records of its own: no wildcard that the policy allows answers for it.
    fn is_probed(&self, listener: ListenerId, name: &Hostname) -> bool {
        let wildcard = &self.context.topology.listener(listener).hostname;
        let is_covered = self.state.policy.allows_wildcards() && wildcard.is_wildcard();
        name.is_precise() && !(is_covered && wildcard.contains(name))
    }

    fn without_names(&self) -> Option<Diagnostic> {
        let mut names: Vec<&str> = self.all().map(|(_, name)| name.as_str()).collect();
        if names.is_empty() || self.all().any(|(listener, name)| self.is_probed(listener, name)) {
            return None;
        }
        names.sort_unstable();
        names.dedup();
        let (precise, wild): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| !name.starts_with('*'));
        let mut message = "nothing is probed: ".to_owned();
        match (wild.is_empty(), precise.is_empty()) {
            (false, true) => message.push_str(&format!("all hostnames are wildcards: {}", listed(wild.into_iter()))),
            _ => message.push_str(&format!(
                "the wildcard of the listener answers for {}; set `allowWildcardHosts: false` to have precise names published",
                listed(precise.into_iter())
            )),
        }
        Some(self.diagnostic(reason::HEALTH_CHECK_WITHOUT_NAMES, "", message))
    }

    fn port_unserved(&self, check: &HealthCheck) -> Option<Diagnostic> {
        let ports: BTreeSet<u16> =
            self.listeners.iter().map(|id| self.context.topology.listener(*id).spec().port).collect();
        if ports.is_empty() || ports.contains(&check.port) {
            return None;
        }
        let served: Vec<String> = ports.iter().map(u16::to_string).collect();
        let message =
            format!("no listener has port {}, which is probed; listeners have {}", check.port, served.join(", "));
        Some(self.diagnostic(reason::HEALTH_CHECK_PORT_UNSERVED, "port", message))
    }

    fn uncovered(&self, check: &HealthCheck) -> Option<Diagnostic> {
        if &*check.protocol != "HTTPS" || check.skips_verification {
            return None;
        }
        let is_bad = |(listener, name): &(ListenerId, &Hostname)| {
            self.is_probed(*listener, name) && self.covers(*listener, check.port, name) == Some(false)
        };
        let mut names: Vec<&str> = self.all().filter(is_bad).map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return None;
        }
        let message = format!(
            "probes speak HTTPS on port {}, and no certificate there covers {}",
            check.port,
            listed(names.into_iter())
        );
        Some(self.diagnostic(reason::HEALTH_CHECK_UNCOVERED, "", message))
    }

    /// Whether a certificate of a listener covers a name; `None` where that is not known, because a Secret is still to be
    /// filled or TLS ends elsewhere.
    fn covers(&self, listener: ListenerId, port: u16, name: &Hostname) -> Option<bool> {
        let state = self.context.topology.listener(listener);
        let spec = state.spec();
        if spec.port != port || !spec.terminates_tls() {
            return None;
        }
        let own = &state.owner.object().key.namespace;
        let mut certificates = spec.tls.as_ref()?.certificates.iter().map(|reference| {
            let key = Key::new(reference.namespace_or(own).clone(), reference.name.clone());
            match &self.context.snapshot.secrets.get(&key)?.certificate {
                Material::Present(certificate) => Some(certificate),
                _ => None,
            }
        });
        let good = |covering: &Str| {
            let covering = Hostname::parse(covering);
            covering.is_ok_and(|covering| covering.covers_in_certificate(name.as_str()))
        };
        certificates.try_fold(false, |covers, certificate| Some(covers || certificate?.dns_names.iter().any(good)))
    }
}

const HEALTH_CHECK: &str = "spec.healthCheck";
