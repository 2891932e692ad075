//! Which certificates ought to exist: one per Secret, with the names of every listener that names it.
//!
//! Only names that routes and listeners have in common; a wildcard only where a TLSPolicy governs and allows it; a name that
//! a wildcard of the same certificate covers, one label deep, is left out (D3). A Secret in another namespace is never
//! filled: a grant lets a Gateway read it, not more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::Attached;
use super::{Context, Ledger};
use crate::desired::settings::Publish;
use crate::desired::{Certificate, Desired, KeptName, is_unknown};
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::lint::{listed, listener_field, listener_name};
use crate::model::{Key, Kind, ObjectRef, Reference, Str, TlsPolicy};
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState, Policy};
use crate::reason::{self, Reason};
use crate::snapshot::Visibility;
use crate::topology::{CertificateUse, ListenerKey, ListenerState};

/// When the oldest route asks for a name, and which it is.
type Age = (i64, Key);

/// A certificate in the making.
#[derive(Default)]
struct Draft {
    names: BTreeMap<Hostname, Age>,
    wishes: Vec<Wish>,
    listeners: BTreeSet<ListenerKey>,
    routes: BTreeSet<ObjectRef>,
    policies: BTreeMap<Age, Arc<TlsPolicy>>,
    /// Wildcards by the policy that allows them by saying nothing.
    unsaid: BTreeMap<Key, BTreeSet<Hostname>>,
    /// The listener that named the Secret first, and its field.
    place: Option<(ObjectRef, FieldPath)>,
}

/// A route wants a name in a certificate.
struct Wish {
    hostname: Hostname,
    listener: ListenerKey,
    route: ObjectRef,
    policy: Option<Arc<TlsPolicy>>,
    /// Whether it is only an annotation or the template that names it.
    is_added: bool,
}

/// One listener with one of its routes.
struct Pair<'a> {
    attached: &'a Attached<'a>,
    listener: &'a ListenerState,
    policy: Option<&'a Arc<TlsPolicy>>,
}

/// Makes the certificates of all attached pairs. Returns what is to be told beside the state of each TLSPolicy.
pub(super) fn build(
    context: Context<'_>,
    attached: &[Attached<'_>],
    desired: &mut Desired,
    ledger: &mut Ledger,
) -> BTreeMap<Key, String> {
    let mut maker = Maker { context, desired, ledger, drafts: BTreeMap::new(), notes: BTreeMap::new() };
    for attached in attached {
        let listener = context.topology.listener(attached.listener);
        let policy = context.policies.tls.governing(attached.listener);
        if listener.spec().terminates_tls() {
            maker.pair(&Pair { attached, listener, policy });
        }
    }
    for (secret, draft) in std::mem::take(&mut maker.drafts) {
        maker.finish(secret, draft);
    }
    maker.notes.into_iter().map(|(key, names)| (key, note(&names))).collect()
}

struct Maker<'a, 'd> {
    context: Context<'a>,
    desired: &'d mut Desired,
    ledger: &'d mut Ledger,
    drafts: BTreeMap<Key, Draft>,
    /// Wildcards that a policy allows by saying nothing.
    notes: BTreeMap<Key, BTreeSet<Str>>,
}

impl Maker<'_, '_> {
    fn pair(&mut self, pair: &Pair<'_>) {
        let obstacle = self.obstacle(pair);
        if matches!(obstacle, Some((reason::NO_POLICY, _))) {
            return;
        }
        let secrets = match (self.secrets(pair), &obstacle) {
            (Ok(secrets), _) => secrets,
            (Err(Some(reason)), None) => {
                return self.tell_all(pair, HostnameState::Skipped(reason), reason.row().summary);
            }
            (Err(_), _) => return,
        };
        match obstacle {
            Some((reason, message)) => self.keep(pair, secrets, reason, &message),
            None => self.draft(pair, secrets),
        }
    }

    /// Why nothing is made of a pair, if so.
    fn obstacle(&self, pair: &Pair<'_>) -> Option<(Reason, String)> {
        let judgement = &pair.attached.judgement;
        if !judgement.for_certificates {
            let obstacle = judgement.obstacle.as_ref();
            return Some(obstacle.map_or((reason::LISTENER_REFUSED, String::new()), |o| (o.reason, o.message.clone())));
        }
        if *self.context.snapshot.visibility(Kind::TlsPolicy) != Visibility::Complete {
            return Some((reason::KIND_NOT_VISIBLE, "TLSPolicies could not be listed".to_owned()));
        }
        if pair.policy.is_some() || self.context.settings.publish == Publish::All {
            return None;
        }
        let invalid = self.context.policies.tls.invalid(pair.attached.listener).is_some();
        Some((if invalid { reason::POLICY_INVALID } else { reason::NO_POLICY }, String::new()))
    }

    /// Names that are not known to be gone stay in their certificates.
    fn keep(&mut self, pair: &Pair<'_>, secrets: BTreeMap<Key, FieldPath>, reason: Reason, message: &str) {
        if !is_unknown(reason) {
            return self.tell_all(pair, HostnameState::Skipped(reason), message);
        }
        for secret in secrets.into_keys() {
            let kept = |hostname: &Hostname| KeptName {
                secret: secret.clone(),
                hostname: hostname.as_str().into(),
                listener: pair.listener.key(),
                route: pair.attached.route.route.object(),
                reason,
            };
            let names = pair.attached.names.iter().map(|common| &common.hostname).filter(|name| !name.is_any());
            self.desired.kept_names.extend(names.chain(self.wildcard(pair)).map(kept));
        }
        self.tell_all(pair, HostnameState::Pending(reason), message);
    }

    fn draft(&mut self, pair: &Pair<'_>, secrets: BTreeMap<Key, FieldPath>) {
        let names = self.names(pair);
        if names.is_empty() {
            return;
        }
        let wildcard = self.wildcard(pair);
        for (secret, field) in secrets {
            self.drafts.entry(secret).or_default().add(pair, &names, wildcard, field);
        }
    }

    /// The listener's wildcard, where a policy allows it.
    fn wildcard<'p>(&self, pair: &Pair<'p>) -> Option<&'p Hostname> {
        let wildcard = &pair.listener.hostname;
        let is_allowed = pair.policy.is_some_and(|policy| policy.allows_wildcards());
        (wildcard.is_wildcard() && is_allowed && self.is_admitted(wildcard)).then_some(wildcard)
    }

    /// The Secrets that a listener names and that are ours to fill, with their fields; or why there are none.
    fn secrets(&mut self, pair: &Pair<'_>) -> Result<BTreeMap<Key, FieldPath>, Option<Reason>> {
        let owner = pair.listener.owner.object();
        let mut secrets = BTreeMap::new();
        let mut refused = None;
        let references = pair.listener.spec().tls.iter().flat_map(|tls| &tls.certificates);
        for (i, reference) in references.enumerate().filter(|(_, reference)| is_secret(reference)) {
            let field = listener_field(pair.listener, "tls.certificateRefs").index(i);
            let place = CertificateUse::Own(i);
            let problem = pair.listener.certificates.iter().find(|problem| problem.place == place);
            let key = Key::new(reference.namespace_or(owner.namespace()).clone(), reference.name.clone());
            if problem.is_some_and(|problem| problem.reason == reason::REFERENCE_NOT_PERMITTED) {
                refused = Some(reason::REFERENCE_NOT_PERMITTED);
            } else if key.namespace != *owner.namespace() {
                refused = Some(reason::CERTIFICATE_SECRET_ELSEWHERE);
                self.desired.diagnostics.push(elsewhere(pair.listener, &key, field));
            } else {
                secrets.insert(key, field);
            }
        }
        if secrets.is_empty() { Err(refused) } else { Ok(secrets) }
    }

    /// The names of a pair that may stand in a certificate.
    fn names(&mut self, pair: &Pair<'_>) -> Vec<Hostname> {
        let mut names = Vec::new();
        for hostname in pair.attached.names.iter().map(|common| &common.hostname) {
            match self.objection(pair, hostname) {
                None => names.push(hostname.clone()),
                Some((reason, message)) => {
                    if reason == reason::WILDCARD_NOT_ALLOWED {
                        self.desired.diagnostics.push(cannot_cover(pair, hostname, &message));
                    }
                    self.tell(pair, hostname, HostnameState::Skipped(reason), message);
                }
            }
        }
        names
    }

    /// Why a name may not stand in a certificate, if so.
    fn objection(&self, pair: &Pair<'_>, hostname: &Hostname) -> Option<(Reason, String)> {
        if hostname.is_any() {
            let listener = listener_name(pair.listener);
            return Some((reason::NO_NAME, format!("neither the route nor {listener} names a hostname")));
        }
        if !self.is_admitted(hostname) {
            let message = format!("`--domain-filter` or `--exclude-domains` leaves `{hostname}` out");
            return Some((reason::DOMAIN_NOT_SELECTED, message));
        }
        let who = match pair.policy {
            _ if !hostname.is_wildcard() => return None,
            Some(policy) if policy.allows_wildcards() => return None,
            Some(policy) => format!("{} does not allow wildcards", policy.object()),
            None => "no TLSPolicy allows wildcards here".to_owned(),
        };
        Some((reason::WILDCARD_NOT_ALLOWED, format!("`{hostname}` is a wildcard, and {who}")))
    }

    fn is_admitted(&self, hostname: &Hostname) -> bool {
        self.context.settings.domains.admits(hostname.as_str())
    }

    fn finish(&mut self, secret: Key, draft: Draft) {
        let (names, dropped) = draft.chosen(self.context.settings.certificate_names);
        let policy = draft.policies.values().next();
        self.report_dropped(&secret, &draft, &dropped);
        self.report_issuers(&secret, &draft);
        let known: BTreeSet<&Hostname> = names.iter().collect();
        let wildcards: Vec<&Hostname> = names.iter().filter(|name| name.is_wildcard()).collect();
        for wish in &draft.wishes {
            let hostname = &wish.hostname;
            let is_served = known.contains(hostname) || wildcards.iter().any(|wildcard| covers(wildcard, hostname));
            self.grant(&secret, wish, is_served);
        }
        for (policy, wildcards) in draft.unsaid {
            let made = wildcards.iter().filter(|wildcard| names.contains(wildcard));
            let made: Vec<Str> = made.map(|wildcard| wildcard.as_str().into()).collect();
            if !made.is_empty() {
                self.notes.entry(policy).or_default().extend(made);
            }
        }
        self.desired.certificates.push(Certificate {
            secret,
            dns_names: names.iter().map(|name| name.as_str().into()).collect(),
            listeners: draft.listeners.into_iter().collect(),
            routes: draft.routes.into_iter().collect(),
            issuer: policy.and_then(|policy| policy.issuer.clone()),
            policy: policy.map(|policy| policy.meta.key.clone()),
        });
    }

    /// Reports what became of a wish.
    fn grant(&mut self, secret: &Key, wish: &Wish, is_served: bool) {
        let hostname = &wish.hostname;
        if wish.is_added {
            if !is_served {
                self.desired.diagnostics.push(added_uncovered(wish, secret));
            }
            return;
        }
        let skipped = HostnameState::Skipped(reason::CERTIFICATE_TOO_MANY_NAMES);
        let report = HostnameReport {
            hostname: hostname.as_str().into(),
            listener: wish.listener.clone(),
            route: wish.route.clone(),
            state: if is_served { HostnameState::Served } else { skipped },
            message: String::new(),
        };
        self.ledger.add(Kind::TlsPolicy, wish.policy.as_ref().map(|policy| &policy.meta.key), report);
    }

    fn report_dropped(&mut self, secret: &Key, draft: &Draft, dropped: &[Hostname]) {
        let Some((object, field)) = draft.place.as_ref().filter(|_| !dropped.is_empty()) else { return };
        let limit = self.context.settings.certificate_names;
        let names = listed(dropped.iter().map(Hostname::as_str));
        let message = format!("the certificate of Secret {secret} has room for {limit} names; left out are {names}");
        let reason = reason::CERTIFICATE_TOO_MANY_NAMES;
        self.desired.diagnostics.push(Diagnostic::new(reason, object, field.clone(), message));
    }

    fn report_issuers(&mut self, secret: &Key, draft: &Draft) {
        let mut policies = draft.policies.values();
        let Some(first) = policies.next() else { return };
        for policy in policies.filter(|policy| policy.issuer != first.issuer) {
            let object = policy.object();
            let message =
                format!("Secret {secret} is shared, and its issuer is that of {}, which is older", first.object());
            let field = FieldPath::of("spec.issuerRef");
            let reason = reason::CERTIFICATE_ISSUERS_DIFFER;
            self.desired.diagnostics.push(Diagnostic::new(reason, &object, field, message));
        }
    }

    fn tell_all(&mut self, pair: &Pair<'_>, state: HostnameState, message: &str) {
        for common in pair.attached.names {
            self.tell(pair, &common.hostname, state, message.to_owned());
        }
    }

    fn tell(&mut self, pair: &Pair<'_>, hostname: &Hostname, state: HostnameState, message: String) {
        let report = HostnameReport {
            hostname: hostname.as_str().into(),
            listener: pair.listener.key(),
            route: pair.attached.route.route.object(),
            state,
            message,
        };
        self.ledger.add(Kind::TlsPolicy, pair.policy.map(|policy| &policy.meta.key), report);
    }
}

impl Draft {
    fn add(&mut self, pair: &Pair<'_>, names: &[Hostname], wildcard: Option<&Hostname>, field: FieldPath) {
        let route = &pair.attached.route.route;
        let (created, key) = route.meta.seniority();
        let age = (created, key.clone());
        for name in names.iter().chain(wildcard) {
            let known = self.names.entry(name.clone()).or_insert_with(|| age.clone());
            if age < *known {
                *known = age.clone();
            }
        }
        let wish = |hostname: &Hostname, is_added| Wish {
            hostname: hostname.clone(),
            listener: pair.listener.key(),
            route: route.object(),
            policy: pair.policy.cloned(),
            is_added,
        };
        self.wishes.extend(names.iter().map(|name| wish(name, false)));
        self.wishes.extend(pair.attached.added.iter().map(|name| wish(name, true)));
        self.listeners.insert(pair.listener.key());
        self.routes.insert(route.object());
        self.place.get_or_insert_with(|| (pair.listener.owner.object(), field));
        if let Some(policy) = pair.policy {
            let (created, key) = policy.meta.seniority();
            self.policies.insert((created, key.clone()), policy.clone());
            if policy.allow_wildcards.is_none() {
                let wildcards = names.iter().chain(wildcard).filter(|name| name.is_wildcard());
                self.unsaid.entry(key.clone()).or_default().extend(wildcards.cloned());
            }
        }
    }

    /// The names that the certificate gets, sorted, and those there is no room for: the youngest.
    fn chosen(&self, limit: usize) -> (Vec<Hostname>, Vec<Hostname>) {
        let wildcards: Vec<&Hostname> = self.names.keys().filter(|name| name.is_wildcard()).collect();
        let is_needed = |name: &Hostname| !wildcards.iter().any(|wildcard| covers(wildcard, name));
        let mut needed: Vec<_> = self.names.iter().filter(|(name, _)| is_needed(name)).collect();
        needed.sort_by(|(name, age), (other, other_age)| age.cmp(other_age).then(name.cmp(other)));
        let mut names: Vec<Hostname> = needed.into_iter().map(|(name, _)| name.clone()).collect();
        let mut dropped = names.split_off(limit.min(names.len()));
        names.sort();
        dropped.sort();
        (names, dropped)
    }
}

/// Whether a wildcard in a certificate stands for another name of it.
fn covers(wildcard: &Hostname, name: &Hostname) -> bool {
    wildcard.is_wildcard() && name.is_precise() && wildcard.covers_in_certificate(name.as_str())
}

fn is_secret(reference: &Reference) -> bool {
    reference.group.is_empty() && &*reference.kind == "Secret"
}

fn elsewhere(listener: &ListenerState, secret: &Key, field: FieldPath) -> Diagnostic {
    let message = format!("Secret {secret} is in another namespace than {}; it is not filled", listener_name(listener));
    let object = listener.owner.object();
    Diagnostic::new(reason::CERTIFICATE_SECRET_ELSEWHERE, &object, field.key("namespace"), message)
}

fn cannot_cover(pair: &Pair<'_>, hostname: &Hostname, because: &str) -> Diagnostic {
    let route = &pair.attached.route.route;
    let written = pair.attached.names.iter().find(|common| common.hostname == *hostname);
    let field = FieldPath::of("spec.hostnames");
    let field = match written.and_then(|common| common.written) {
        Some(index) => field.index(index),
        None => field,
    };
    let message =
        format!("{} ends TLS for `{hostname}` without a certificate: {because}", listener_name(pair.listener));
    Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, &route.object(), field, message)
}

fn added_uncovered(wish: &Wish, secret: &Key) -> Diagnostic {
    let (hostname, listener) = (&wish.hostname, &wish.listener);
    let message = format!(
        "`{hostname}` is not in the certificate of Secret {secret}: {listener} and the route have it not in common by their hostnames"
    );
    let field = FieldPath::of("spec.hostnames");
    Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, &wish.route, field, message)
}

/// What is told of wildcards that a policy allows by saying nothing (D1).
fn note(names: &BTreeSet<Str>) -> String {
    let names = listed(names.iter().map(|name| &**name));
    format!(
        "`allowWildcardHosts` is not set, which allows the wildcard certificate for {names}; set it to say what is meant"
    )
}
