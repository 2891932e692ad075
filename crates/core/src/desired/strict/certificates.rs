//! Which certificates ought to exist: one per Secret, with the names of every listener that names it.
//!
//! Only names that routes and listeners have in common; a wildcard only where a TLSPolicy governs and allows it; a name that
//! a wildcard of the same certificate covers, one label deep, is left out (D3). A Secret in another namespace is never
//! filled: a grant lets a Gateway read it, not more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::Rest;
use super::outlets::{Outlet, Seat};
use super::verdicts::Judgement;
use super::{Base, Context, Told, told};
use crate::desired::settings::Publish;
use crate::desired::{Certificate, KeptName, is_unknown};
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::few::Few;
use crate::lint::{listed, listed_of, listener_field, listener_name};
use crate::model::{Key, Kind, ObjectRef, Reference, Route, Str, TlsPolicy};
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState, Policy};
use crate::reason::{self, Reason};
use crate::snapshot::Visibility;
use crate::topology::{CertificateUse, Intersection, ListenerKey, ListenerState};

mod book;

pub(crate) use book::{Book, Wishes};

/// The listener's side: which Secrets are to be filled, and by whose leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The TLSPolicy that governs.
    policy: Option<Arc<TlsPolicy>>,
    /// Why nothing is made at this listener, if so.
    obstacle: Option<(Reason, String)>,
    /// The Secrets that the listener names and that are ours to fill, sorted, with their fields; or why there are none.
    secrets: Result<Vec<(Key, FieldPath)>, Option<Reason>>,
    /// What is odd about the others.
    diagnostics: Arc<Vec<Diagnostic>>,
    /// The listener's wildcard, where a policy allows it.
    wildcard: Option<Hostname>,
}

/// A route wants names in the certificates of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    seat: Arc<Seat>,
    terms: Arc<Terms>,
    names: Few<Hostname>,
    /// Names that only an annotation or the template names.
    added: Few<Hostname>,
}

/// One listener with one of its routes.
pub(super) struct Pair<'a> {
    pub(super) base: Base<'a>,
    pub(super) route: &'a Route,
    pub(super) listener: &'a ListenerState,
    pub(super) outlet: &'a Outlet,
    pub(super) terms: &'a Arc<Terms>,
    /// What they have in common.
    pub(super) common: &'a [Intersection],
}

/// What became of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretDecision {
    /// What it is to hold.
    pub(crate) certificate: Certificate,
    /// What is odd about it.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What policies are told.
    pub(crate) told: Vec<Told>,
    /// Wildcards that a policy allows by saying nothing.
    pub(crate) notes: Vec<(Key, Vec<Str>)>,
}

impl Wish {
    /// The Secrets that it is about.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Key> {
        self.terms.secrets.iter().flatten().map(|(key, _)| key)
    }

    /// Every name that it brings in: its own, and the listener's wildcard.
    fn wanted(&self) -> impl Iterator<Item = &Hostname> {
        self.names.iter().chain(&self.terms.wildcard)
    }

    /// The wildcards that its policy allows by saying nothing.
    fn unsaid(&self) -> impl Iterator<Item = &Hostname> {
        let is_unsaid = self.terms.policy.as_ref().is_some_and(|policy| policy.allow_wildcards.is_none());
        self.wanted().filter(move |name| is_unsaid && name.is_wildcard())
    }

    /// Whether anybody is told what becomes of it.
    fn is_spoken_of(&self) -> bool {
        self.terms.policy.is_some() || !self.added.is_empty()
    }

    /// The listener's owner, and its field that names a Secret.
    fn place(&self, secret: &Key) -> (ObjectRef, FieldPath) {
        let named = self.terms.secrets.iter().flatten().find(|(key, _)| key == secret);
        (self.seat.key.owner.clone(), named.map(|(_, field)| field.clone()).unwrap_or_default())
    }
}

/// What a listener says about certificates; nothing where TLS does not end there.
pub(super) fn terms(context: Context<'_>, listener: &ListenerState) -> Option<Terms> {
    if !listener.spec().terminates_tls() {
        return None;
    }
    let policy = context.policies.tls.governing(listener.id);
    let mut diagnostics = Vec::new();
    let secrets = secrets(listener, &mut diagnostics);
    let is_allowed = policy.is_some_and(|policy| policy.allows_wildcards());
    let wildcard = Some(&listener.hostname).filter(|name| name.is_wildcard() && is_allowed);
    Some(Terms {
        policy: policy.cloned(),
        obstacle: obstacle(context, listener, policy.is_some()),
        secrets,
        diagnostics: diagnostics.into(),
        wildcard: wildcard.filter(|name| context.base.settings.domains.admits(name.as_str())).cloned(),
    })
}

/// Why nothing is made at a listener, if so.
fn obstacle(context: Context<'_>, listener: &ListenerState, is_governed: bool) -> Option<(Reason, String)> {
    if *context.base.snapshot.visibility(Kind::TlsPolicy) != Visibility::Complete {
        return Some((reason::KIND_NOT_VISIBLE, "TLSPolicies could not be listed".to_owned()));
    }
    if is_governed || context.base.settings.publish == Publish::All {
        return None;
    }
    let invalid = context.policies.tls.invalid(listener.id).is_some();
    Some((if invalid { reason::POLICY_INVALID } else { reason::NO_POLICY }, String::new()))
}

/// The Secrets that a listener names and that are ours to fill, with their fields; or why there are none.
fn secrets(
    listener: &ListenerState,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Vec<(Key, FieldPath)>, Option<Reason>> {
    let namespace = &listener.owner.meta().key.namespace;
    let mut secrets = BTreeMap::new();
    let mut refused = None;
    let references = listener.spec().tls.iter().flat_map(|tls| &tls.certificates);
    for (i, reference) in references.enumerate().filter(|(_, reference)| is_secret(reference)) {
        let field = listener_field(listener, "tls.certificateRefs").index(i);
        let place = CertificateUse::Own(i);
        let problem = listener.certificates.iter().find(|problem| problem.place == place);
        let key = Key::new(reference.namespace_or(namespace).clone(), reference.name.clone());
        if problem.is_some_and(|problem| problem.reason == reason::REFERENCE_NOT_PERMITTED) {
            refused = Some(reason::REFERENCE_NOT_PERMITTED);
        } else if key.namespace != *namespace {
            refused = Some(reason::CERTIFICATE_SECRET_ELSEWHERE);
            diagnostics.push(elsewhere(listener, &key, field));
        } else {
            secrets.insert(key, field);
        }
    }
    if secrets.is_empty() { Err(refused) } else { Ok(secrets.into_iter().collect()) }
}

/// What a route at a listener that ends TLS wants in certificates, and what is told of that.
pub(super) fn pair(pair: &Pair<'_>, added: Few<Hostname>, judgement: &Judgement, rest: &mut Rest) {
    let obstacle = match judgement.for_certificates {
        true => pair.terms.obstacle.clone(),
        false => {
            let known = judgement.obstacle.as_ref().map(|obstacle| (obstacle.reason, obstacle.message.clone()));
            known.or(Some((reason::LISTENER_REFUSED, String::new())))
        }
    };
    if matches!(obstacle, Some((reason::NO_POLICY, _))) {
        return;
    }
    rest.share(&pair.terms.diagnostics);
    let secrets = match (&pair.terms.secrets, &obstacle) {
        (Ok(secrets), _) => secrets,
        (Err(Some(reason)), None) => {
            return pair.tell_all(HostnameState::Skipped(*reason), reason.row().summary, rest);
        }
        (Err(_), _) => return,
    };
    match obstacle {
        Some((reason, message)) => pair.keep(secrets, reason, &message, rest),
        None => pair.wish(added, rest),
    }
}

impl Pair<'_> {
    /// Names that are not known to be gone stay in their certificates.
    fn keep(&self, secrets: &[(Key, FieldPath)], reason: Reason, message: &str, rest: &mut Rest) {
        if !is_unknown(reason) {
            return self.tell_all(HostnameState::Skipped(reason), message, rest);
        }
        for (secret, _) in secrets {
            let kept = |hostname: &Hostname| KeptName {
                secret: secret.clone(),
                hostname: hostname.text().clone(),
                listener: self.listener.key(),
                route: self.route.object(),
                reason,
            };
            let names = self.common.iter().map(|common| &common.hostname).filter(|name| !name.is_any());
            rest.kept.extend(names.chain(&self.terms.wildcard).map(kept));
        }
        self.tell_all(HostnameState::Pending(reason), message, rest);
    }

    fn wish(&self, added: Few<Hostname>, rest: &mut Rest) {
        let names = self.names(rest);
        if !names.is_empty() {
            let (seat, terms) = (self.outlet.seat.clone(), self.terms.clone());
            rest.wishes.push(Wish { seat, terms, names, added });
        }
    }

    /// The names that may stand in a certificate.
    fn names(&self, rest: &mut Rest) -> Few<Hostname> {
        let mut names = Few::None;
        for hostname in self.common.iter().map(|common| &common.hostname) {
            match self.objection(hostname) {
                None => names.push(hostname.clone()),
                Some((reason, message)) => {
                    if reason == reason::WILDCARD_NOT_ALLOWED {
                        rest.diagnostics.push(cannot_cover(self, hostname, &message));
                    }
                    self.tell(hostname, HostnameState::Skipped(reason), message, rest);
                }
            }
        }
        names
    }

    /// Why a name may not stand in a certificate, if so.
    fn objection(&self, hostname: &Hostname) -> Option<(Reason, String)> {
        if hostname.is_any() {
            let listener = listener_name(self.listener);
            return Some((reason::NO_NAME, format!("neither the route nor {listener} names a hostname")));
        }
        if !self.base.settings.domains.admits(hostname.as_str()) {
            let message = format!("`--domain-filter` or `--exclude-domains` leaves `{hostname}` out");
            return Some((reason::DOMAIN_NOT_SELECTED, message));
        }
        let who = match &self.terms.policy {
            _ if !hostname.is_wildcard() => return None,
            Some(policy) if policy.allows_wildcards() => return None,
            Some(policy) => format!("{} does not allow wildcards", policy.object()),
            None => "no TLSPolicy allows wildcards here".to_owned(),
        };
        Some((reason::WILDCARD_NOT_ALLOWED, format!("`{hostname}` is a wildcard, and {who}")))
    }

    fn tell_all(&self, state: HostnameState, message: &str, rest: &mut Rest) {
        for common in self.common {
            self.tell(&common.hostname, state, message.to_owned(), rest);
        }
    }

    fn tell(&self, hostname: &Hostname, state: HostnameState, message: String, rest: &mut Rest) {
        let Some(policy) = &self.terms.policy else { return };
        let report = HostnameReport {
            hostname: hostname.text().clone(),
            listener: self.listener.key(),
            route: self.route.object(),
            state,
            message,
        };
        rest.told.push(told(Kind::TlsPolicy, &policy.meta.key, report));
    }
}

/// When the oldest route asks for a name, and which it is.
type Age<'a> = (i64, &'a Key);

/// A certificate in the making.
#[derive(Default)]
struct Draft<'a> {
    names: BTreeMap<&'a Hostname, Age<'a>>,
    listeners: BTreeSet<&'a ListenerKey>,
    routes: Vec<ObjectRef>,
    policies: BTreeMap<Age<'a>, &'a Arc<TlsPolicy>>,
    /// Wildcards by the policy that allows them by saying nothing.
    unsaid: BTreeMap<&'a Key, BTreeSet<&'a Hostname>>,
}

/// Decides about a Secret. The wishes come by route and then by precedence of the listener, and all are about it.
pub(crate) fn decide(limit: usize, secret: &Key, wishes: &[(&Route, &Wish)]) -> SecretDecision {
    let mut draft = Draft::default();
    wishes.iter().for_each(|(route, wish)| draft.add(route, wish));
    let (names, dropped) = draft.chosen(limit);
    let mut diagnostics = Vec::new();
    if let (Some((_, first)), false) = (wishes.first(), dropped.is_empty()) {
        diagnostics.push(left_out(first.place(secret), secret, limit, dropped.len(), dropped.iter().copied()));
    }
    diagnostics.extend(issuers_differ(secret, draft.policies.values().copied()));
    let made = Made::of(&names);
    let mut told = Vec::new();
    wishes.iter().for_each(|(route, wish)| made.speak(secret, route, wish, &mut diagnostics, &mut told));
    let (issuer, policy) = chosen_issuer(draft.policies.values().copied());
    let certificate = Certificate {
        secret: secret.clone(),
        dns_names: names.iter().map(|name| name.text().clone()).collect(),
        listeners: draft.listeners.iter().map(|listener| (*listener).clone()).collect(),
        routes: draft.routes.into_iter().map(|route| (route, ())).collect(),
        issuer,
        policy,
    };
    let notes = draft.unsaid.iter().map(|(policy, wildcards)| {
        let made = wildcards.iter().filter(|wildcard| made.has(wildcard));
        ((*policy).clone(), made.map(|wildcard| wildcard.text().clone()).collect::<Vec<_>>())
    });
    let notes = notes.filter(|(_, made)| !made.is_empty()).collect();
    SecretDecision { certificate, diagnostics, told, notes }
}

impl<'a> Draft<'a> {
    fn add(&mut self, route: &'a Route, wish: &'a Wish) {
        let age = route.meta.seniority();
        for name in wish.wanted() {
            let known = self.names.entry(name).or_insert(age);
            *known = age.min(*known);
        }
        self.listeners.insert(&wish.seat.key);
        if self.routes.last().is_none_or(|last| last.key != route.meta.key || last.kind != route.kind.kind()) {
            self.routes.push(route.object());
        }
        if let Some(policy) = &wish.terms.policy {
            let age = policy.meta.seniority();
            self.policies.insert(age, policy);
            let mut unsaid = wish.unsaid().peekable();
            if unsaid.peek().is_some() {
                self.unsaid.entry(age.1).or_default().extend(unsaid);
            }
        }
    }

    /// The names that the certificate gets, sorted, and those there is no room for: the youngest.
    fn chosen(&self, limit: usize) -> (Vec<&'a Hostname>, Vec<&'a Hostname>) {
        let wildcards: Vec<&Hostname> = self.names.keys().copied().filter(|name| name.is_wildcard()).collect();
        let is_needed = |name: &Hostname| !wildcards.iter().any(|wildcard| covers(wildcard, name));
        let mut needed: Vec<_> = self.names.iter().filter(|(name, _)| is_needed(name)).collect();
        needed.sort_by(|(name, age), (other, other_age)| age.cmp(other_age).then(name.cmp(other)));
        let mut names: Vec<&Hostname> = needed.into_iter().map(|(name, _)| *name).collect();
        let mut dropped = names.split_off(limit.min(names.len()));
        names.sort();
        dropped.sort();
        (names, dropped)
    }
}

/// The names of a certificate, sorted, to be asked what they serve.
struct Made<'a> {
    names: &'a [&'a Hostname],
    wildcards: Vec<&'a Hostname>,
}

impl<'a> Made<'a> {
    fn of(names: &'a [&'a Hostname]) -> Self {
        Made { names, wildcards: names.iter().copied().filter(|name| name.is_wildcard()).collect() }
    }

    fn has(&self, name: &Hostname) -> bool {
        self.names.binary_search(&name).is_ok()
    }

    fn serves(&self, name: &Hostname) -> bool {
        self.has(name) || self.wildcards.iter().any(|wildcard| covers(wildcard, name))
    }

    /// Tells what became of a wish.
    fn speak(
        &self,
        secret: &Key,
        route: &Route,
        wish: &Wish,
        diagnostics: &mut Vec<Diagnostic>,
        all_told: &mut Vec<Told>,
    ) {
        let unserved = wish.added.iter().filter(|name| !self.serves(name));
        diagnostics.extend(unserved.map(|name| added_uncovered(name, &wish.seat.key, route, secret)));
        let Some(policy) = &wish.terms.policy else { return };
        let granted = wish.names.iter().map(|name| granted(name, wish, route, self.serves(name)));
        all_told.extend(granted.map(|report| told(Kind::TlsPolicy, &policy.meta.key, report)));
    }
}

/// What became of one name of a wish.
fn granted(hostname: &Hostname, wish: &Wish, route: &Route, is_served: bool) -> HostnameReport {
    let skipped = HostnameState::Skipped(reason::CERTIFICATE_TOO_MANY_NAMES);
    HostnameReport {
        hostname: hostname.text().clone(),
        listener: wish.seat.key.clone(),
        route: route.object(),
        state: if is_served { HostnameState::Served } else { skipped },
        message: String::new(),
    }
}

/// What is told of names that there is no room for; `count` is how many there are.
fn left_out<'a>(
    place: (ObjectRef, FieldPath),
    secret: &Key,
    limit: usize,
    count: usize,
    names: impl Iterator<Item = &'a Hostname>,
) -> Diagnostic {
    let names = listed_of(count, names.map(Hostname::as_str));
    let message = format!("the certificate of Secret {secret} has room for {limit} names; left out are {names}");
    Diagnostic::new(reason::CERTIFICATE_TOO_MANY_NAMES, &place.0, place.1, message)
}

/// The issuer and name of the oldest policy; they come by age.
fn chosen_issuer<'a>(mut policies: impl Iterator<Item = &'a Arc<TlsPolicy>>) -> (Option<Reference>, Option<Key>) {
    let first = policies.next();
    (first.and_then(|policy| policy.issuer.clone()), first.map(|policy| policy.meta.key.clone()))
}

/// What is told of policies whose issuer is not that of the oldest; they come by age.
fn issuers_differ<'a>(secret: &Key, mut policies: impl Iterator<Item = &'a Arc<TlsPolicy>>) -> Vec<Diagnostic> {
    let Some(first) = policies.next() else { return Vec::new() };
    let differ = policies.filter(|policy| policy.issuer != first.issuer).map(|policy| {
        let object = policy.object();
        let message =
            format!("Secret {secret} is shared, and its issuer is that of {}, which is older", first.object());
        Diagnostic::new(reason::CERTIFICATE_ISSUERS_DIFFER, &object, FieldPath::of("spec.issuerRef"), message)
    });
    differ.collect()
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
    let written = pair.common.iter().find(|common| common.hostname == *hostname);
    let field = FieldPath::of("spec.hostnames");
    let field = match written.and_then(|common| common.written) {
        Some(index) => field.index(index),
        None => field,
    };
    let message =
        format!("{} ends TLS for `{hostname}` without a certificate: {because}", listener_name(pair.listener));
    Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, &pair.route.object(), field, message)
}

fn added_uncovered(hostname: &Hostname, listener: &ListenerKey, route: &Route, secret: &Key) -> Diagnostic {
    let message = format!(
        "`{hostname}` is not in the certificate of Secret {secret}: {listener} and the route have it not in common by their hostnames"
    );
    let field = FieldPath::of("spec.hostnames");
    Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, &route.object(), field, message)
}

/// What is told of wildcards that a policy allows by saying nothing (D1).
pub(super) fn note(names: &BTreeSet<&Str>) -> String {
    let names = listed(names.iter().map(|name| &***name));
    format!(
        "`allowWildcardHosts` is not set, which allows the wildcard certificate for {names}; set it to say what is meant"
    )
}
