//! Which certificates should exist: one per Secret, with the names of every listener that refers to it.
//!
//! Only intersections of route and listener hostnames are included. A wildcard needs a TLSPolicy that allows it; a name
//! that a wildcard of the same certificate covers, one label deep, is omitted (D3). A Secret in another namespace is
//! never filled: a ReferenceGrant lets a Gateway read it and no more. Nothing here looks at existing certificates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::input::{ListenerInput, PublicationInput};
use super::listener_context::ListenerContext;
use super::policy_status::{PolicyStatusEntry, policy_entry};
use super::route_claims::RouteExtras;
use super::verdicts::PairVerdict;
use crate::attachment::{CertificateUse, Intersection, ListenerKey, ListenerState};
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::lint::{LintContext, listed, listed_of, listener_name};
use crate::model::{Key, Kind, ObjectRef, Reference, Route, ShortVec, Str, TlsPolicy};
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState, Policy};
use crate::publication::settings::Publish;
use crate::publication::wildcards::above;
use crate::publication::{Certificate, KeptName};
use crate::reason::{self, Reason, Severity};
use crate::snapshot::Visibility;

mod state;

pub(crate) use state::CertificateState;

/// The TLS settings of a listener: which Secrets to fill, and under which policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenerTls {
    /// The TLSPolicy that governs.
    policy: Option<Arc<TlsPolicy>>,
    /// Why no certificate is requested at this listener, if so.
    obstacle: Option<(Reason, String)>,
    /// The Secrets to fill, sorted, with their index in `certificateRefs`; or why there are none.
    secrets: Result<ShortVec<(Key, usize)>, Option<Reason>>,
    /// Problems of the other references.
    diagnostics: Arc<Vec<Diagnostic>>,
    /// The listener's wildcard, where a policy allows it.
    wildcard: Option<Hostname>,
}

/// Names that a route requests in a listener's certificates without a claim on their records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnclaimedNames {
    pub(super) context: Arc<ListenerContext>,
    pub(super) names: ShortVec<Hostname>,
    /// Names that come only from an annotation or the template.
    pub(super) added: ShortVec<Hostname>,
}

/// A name that a route requests in the certificates of a listener.
#[derive(Clone, Copy)]
pub(crate) struct CertificateNameRequest<'a> {
    /// The name.
    pub(crate) name: &'a Hostname,
    /// Whether it comes only from an annotation or the template: reported if not covered, never added to the
    /// certificate.
    pub(super) is_added: bool,
    pub(super) route: &'a Route,
    pub(super) context: &'a ListenerContext,
}

/// A route at one of its listeners.
pub(super) struct RouteAtListener<'a> {
    pub(super) base: PublicationInput<'a>,
    pub(super) route: &'a Route,
    pub(super) listener: &'a ListenerState,
    pub(super) tls: &'a ListenerTls,
    /// Their intersected hostnames.
    pub(super) common: &'a [Intersection],
}

/// The certificate that a Secret should hold, with its reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretDecision {
    pub(super) dns_names: Vec<Str>,
    /// Whether every requested name is held by another namespace, so that there is no certificate.
    pub(crate) is_refused: bool,
    listeners: Vec<ListenerKey>,
    issuer: Option<Reference>,
    policy: Option<Key>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) policy_entries: Vec<PolicyStatusEntry>,
    /// Wildcards by the TLSPolicy that allows them by leaving `allowWildcardHosts` unset.
    pub(crate) notes: Vec<(Key, Vec<Str>)>,
}

impl SecretDecision {
    /// The certificate, with the routes whose names it has.
    pub(crate) fn certificate<'r>(&self, secret: &Key, routes: impl Iterator<Item = &'r ObjectRef>) -> Certificate {
        Certificate {
            secret: secret.clone(),
            dns_names: self.dns_names.clone(),
            listeners: self.listeners.clone(),
            routes: routes.cloned().collect(),
            issuer: self.issuer.clone(),
            policy: self.policy.clone(),
        }
    }

    /// Whether the certificate is equal, regardless of its reports.
    pub(crate) fn is_same_certificate(&self, other: &SecretDecision) -> bool {
        self.dns_names == other.dns_names
            && self.is_refused == other.is_refused
            && self.listeners == other.listeners
            && self.issuer == other.issuer
            && self.policy == other.policy
    }
}

impl ListenerTls {
    /// The listener's wildcard, where a policy allows it and there is a Secret for it.
    pub(super) fn wildcard(&self) -> Option<&Hostname> {
        self.wildcard.as_ref().filter(|_| self.secrets.is_ok())
    }

    /// The Secrets to fill.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Key> {
        self.secrets.iter().flatten().map(|(key, _)| key)
    }
}

impl UnclaimedNames {
    /// The certificate requests for these names.
    pub(super) fn requests<'a>(&'a self, route: &'a Route) -> impl Iterator<Item = CertificateNameRequest<'a>> {
        let request =
            move |is_added| move |name| CertificateNameRequest { name, is_added, route, context: &self.context };
        self.names.iter().map(request(false)).chain(self.added.iter().map(request(true)))
    }
}

impl<'a> CertificateNameRequest<'a> {
    /// The Secrets that the name is requested for.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &'a Key> + use<'a> {
        self.context.secrets()
    }

    /// Whether it is a request for this Secret.
    pub(super) fn is_for(&self, secret: &Key) -> bool {
        self.context.secrets().any(|key| key == secret)
    }

    fn policy(&self) -> Option<&'a Arc<TlsPolicy>> {
        self.context.tls.as_ref()?.policy.as_ref()
    }

    /// Every name to add to the certificate: the requested one, and the listener's wildcard.
    fn names(&self) -> impl Iterator<Item = &'a Hostname> + use<'a> {
        let wildcard = self.context.tls.as_ref().and_then(|tls| tls.wildcard.as_ref());
        let is_added = self.is_added;
        std::iter::once(self.name).chain(wildcard).filter(move |_| !is_added)
    }

    /// The wildcards that its policy allows by leaving `allowWildcardHosts` unset.
    fn unset_wildcards(&self) -> impl Iterator<Item = &'a Hostname> + use<'a> {
        let is_unset = self.policy().is_some_and(|policy| policy.allow_wildcards.is_none());
        self.names().filter(move |name| is_unset && name.is_wildcard())
    }

    /// Whether the result is reported, in a policy's status or as a diagnostic.
    fn is_reported(&self) -> bool {
        self.is_added || self.policy().is_some()
    }

    /// The listener's owner, and its field that refers to the Secret.
    fn secret_field(&self, secret: &Key) -> (ObjectRef, FieldPath) {
        let tls = self.context.tls.as_ref();
        let named = tls.and_then(|tls| tls.secrets.iter().flatten().find(|(key, _)| key == secret));
        let field = named.map(|(_, place)| reference_field(self.context.rank.index, *place));
        (self.context.rank.key.owner.clone(), field.unwrap_or_default())
    }
}

/// The TLS settings of a listener; `None` if it does not terminate TLS.
pub(super) fn tls(input: ListenerInput<'_>, listener: &ListenerState) -> Option<ListenerTls> {
    if !listener.spec().terminates_tls() {
        return None;
    }
    let policy = input.policies.tls.governing(listener.id);
    let mut diagnostics = Vec::new();
    let secrets = secrets(input, listener, &mut diagnostics);
    let is_allowed = policy.is_some_and(|policy| policy.allows_wildcards());
    let wildcard = Some(&listener.hostname).filter(|_| is_allowed);
    Some(ListenerTls {
        policy: policy.cloned(),
        obstacle: obstacle(input, listener, policy),
        secrets,
        diagnostics: diagnostics.into(),
        wildcard: wildcard.filter(|name| input.base.may_have_wildcard(listener, name)).cloned(),
    })
}

/// Why no certificate is requested at a listener, if so.
fn obstacle(
    input: ListenerInput<'_>,
    listener: &ListenerState,
    policy: Option<&Arc<TlsPolicy>>,
) -> Option<(Reason, String)> {
    if *input.base.snapshot.visibility(Kind::TlsPolicy) != Visibility::Complete {
        return Some((reason::KIND_NOT_VISIBLE, "TLSPolicies could not be listed".to_owned()));
    }
    if let Some(state) = input.policies.tls.invalid(listener.id) {
        let what = state.refused.as_ref().map(|refusal| refusal.message.as_str()).unwrap_or_default();
        return Some((reason::POLICY_INVALID, format!("{} is not valid: {what}", state.policy.object())));
    }
    let has_wildcard = policy.is_some_and(|policy| policy.allows_wildcards());
    if let Some(unknown) = input.base.unknown_grants(listener, has_wildcard) {
        return Some((unknown.reason, unknown.message));
    }
    let is_published = policy.is_some() || input.base.settings.publish == Publish::All;
    (!is_published).then(|| (reason::NO_POLICY, String::new()))
}

/// The Secrets that a listener refers to and that may be filled, with their index; or why there are none.
fn secrets(
    input: ListenerInput<'_>,
    listener: &ListenerState,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<ShortVec<(Key, usize)>, Option<Reason>> {
    let namespace = &listener.owner.meta().key.namespace;
    let mut secrets: ShortVec<(Key, usize)> = ShortVec::new();
    let mut refused = None;
    let references = listener.spec().tls.iter().flat_map(|tls| &tls.certificates);
    for (i, reference) in references.enumerate().filter(|(_, reference)| is_secret(reference)) {
        let place = CertificateUse::Own(i);
        let problem = listener.certificates.iter().find(|problem| problem.place == place);
        let key = Key::new(reference.namespace_or(namespace).clone(), reference.name.clone());
        if problem.is_some_and(|problem| problem.reason == reason::REFERENCE_NOT_PERMITTED) {
            refused = Some(reason::REFERENCE_NOT_PERMITTED);
            let context = LintContext { snapshot: input.base.snapshot, topology: input.base.topology };
            let field = reference_field(listener.index, i);
            diagnostics.extend(context.listener(listener.id).into_iter().find(|found| found.field == field));
        } else if key.namespace != *namespace {
            refused = Some(reason::CERTIFICATE_SECRET_ELSEWHERE);
            diagnostics.push(elsewhere(listener, &key, reference_field(listener.index, i)));
        } else {
            match secrets.iter_mut().find(|(known, _)| *known == key) {
                Some((_, place)) => *place = i,
                None => secrets.push((key, i)),
            }
        }
    }
    secrets.sort();
    if secrets.is_empty() { Err(refused) } else { Ok(secrets) }
}

/// The field path of a certificateRef, by the indexes of listener and reference.
fn reference_field(listener: usize, place: usize) -> FieldPath {
    FieldPath::of("spec.listeners").index(listener).key("tls").key("certificateRefs").index(place)
}

/// The names that a route requests in the certificates of a listener; reports those it cannot have.
pub(super) fn names_at<'a>(
    pair: &RouteAtListener<'a>,
    verdict: &PairVerdict,
    extras: &mut Option<Box<RouteExtras>>,
) -> ShortVec<&'a Hostname> {
    let obstacle = match verdict.for_certificates {
        true => pair.tls.obstacle.clone(),
        false => {
            let known = verdict.obstacle.as_ref().map(|obstacle| (obstacle.reason, obstacle.message.clone()));
            known.or(Some((reason::LISTENER_REFUSED, String::new())))
        }
    };
    if matches!(obstacle, Some((reason::NO_POLICY, _))) {
        return ShortVec::new();
    }
    if !pair.tls.diagnostics.is_empty() {
        extras.get_or_insert_default().share(&pair.tls.diagnostics);
    }
    match (&pair.tls.secrets, obstacle) {
        (Ok(_), None) => return pair.names(extras),
        (Ok(secrets), Some((reason, message))) => pair.keep(secrets, reason, &message, extras.get_or_insert_default()),
        (Err(Some(reason)), None) => {
            pair.report_all(HostnameState::Skipped(*reason), reason.row().summary, extras.get_or_insert_default());
        }
        (Err(_), _) => {}
    }
    ShortVec::new()
}

impl<'a> RouteAtListener<'a> {
    /// Keeps the route's names in their certificates while it is not known whether they are wanted.
    fn keep(&self, secrets: &[(Key, usize)], reason: Reason, message: &str, extras: &mut RouteExtras) {
        if !reason.is_unknown() {
            return self.report_all(HostnameState::Skipped(reason), message, extras);
        }
        let (rules, namespace) = (self.base.grant_rules(), &self.route.meta.key.namespace);
        let may_have = |name: &&Hostname| !name.is_any() && rules.certain_refusal(name, namespace).is_none();
        for (secret, _) in secrets {
            let names = self.common.iter().map(|common| &common.hostname).filter(may_have);
            extras.kept.extend(names.chain(&self.tls.wildcard).map(|name| self.kept(secret, name, reason)));
        }
        self.report_all(HostnameState::Pending(reason), message, extras);
    }

    fn kept(&self, secret: &Key, hostname: &Hostname, reason: Reason) -> KeptName {
        KeptName {
            secret: secret.clone(),
            hostname: hostname.text().clone(),
            listener: self.listener.key(),
            route: self.route.object(),
            reason,
        }
    }

    /// The names that may be in a certificate.
    fn names(&self, extras: &mut Option<Box<RouteExtras>>) -> ShortVec<&'a Hostname> {
        let mut names = ShortVec::new();
        for hostname in self.common.iter().map(|common| &common.hostname) {
            match self.objection(hostname) {
                None => {
                    if hostname.is_wildcard() {
                        extras.get_or_insert_default().diagnostics.push(one_label(self, hostname));
                    }
                    names.push(hostname);
                }
                Some((reason, message)) if reason.is_unknown() => {
                    let extras = extras.get_or_insert_default();
                    let secrets = self.tls.secrets();
                    extras.kept.extend(secrets.map(|secret| self.kept(secret, hostname, reason)));
                    self.report(hostname, HostnameState::Pending(reason), message, extras);
                }
                Some((reason, message)) => {
                    let extras = extras.get_or_insert_default();
                    if reason == reason::WILDCARD_NOT_ALLOWED {
                        extras.diagnostics.push(cannot_cover(self, hostname, &message));
                    }
                    self.report(hostname, HostnameState::Skipped(reason), message, extras);
                }
            }
        }
        names
    }

    /// Why a name may not be in a certificate, if so.
    fn objection(&self, hostname: &Hostname) -> Option<(Reason, String)> {
        if hostname.is_any() {
            let listener = listener_name(self.listener);
            return Some((reason::NO_NAME, format!("neither the route nor {listener} names a hostname")));
        }
        if !self.base.settings.domains.admits(hostname.as_str()) {
            let message = format!("`--domain-filter` or `--exclude-domains` leaves `{hostname}` out");
            return Some((reason::DOMAIN_NOT_SELECTED, message));
        }
        if let Some(refusal) = self.base.grant_rules().refusal(hostname, &self.route.meta.key.namespace) {
            return Some((refusal.reason, refusal.message));
        }
        let who = match &self.tls.policy {
            _ if !hostname.is_wildcard() => return None,
            Some(policy) if policy.allows_wildcards() => return None,
            Some(policy) => format!("{} does not allow wildcards", policy.object()),
            None => "no TLSPolicy allows wildcards here".to_owned(),
        };
        Some((reason::WILDCARD_NOT_ALLOWED, format!("`{hostname}` is a wildcard, and {who}")))
    }

    fn report_all(&self, state: HostnameState, message: &str, extras: &mut RouteExtras) {
        for common in self.common {
            self.report(&common.hostname, state, message.to_owned(), extras);
        }
    }

    fn report(&self, hostname: &Hostname, state: HostnameState, message: String, extras: &mut RouteExtras) {
        let Some(policy) = &self.tls.policy else { return };
        let report = HostnameReport {
            hostname: hostname.text().clone(),
            listener: self.listener.key(),
            route: self.route.object(),
            state,
            message,
        };
        extras.policy_entries.push(policy_entry(Kind::TlsPolicy, &policy.meta.key, report));
    }
}

/// The names of a certificate, sorted, for checking which names it covers.
struct CertificateNames<'a> {
    names: Vec<&'a Hostname>,
    wildcard_bases: BTreeSet<&'a str>,
}

impl<'a> CertificateNames<'a> {
    fn of(names: Vec<&'a Hostname>) -> Self {
        let wildcard_bases = names.iter().filter_map(|name| name.wildcard_base()).collect();
        CertificateNames { names, wildcard_bases }
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn texts(&self) -> Vec<Str> {
        self.names.iter().map(|name| name.text().clone()).collect()
    }

    fn contains(&self, name: &Hostname) -> bool {
        self.names.binary_search(&name).is_ok()
    }

    /// Whether the certificate covers a name: it contains the name, or a wildcard one label above.
    fn serves(&self, name: &Hostname) -> bool {
        let base = above(name.as_str()).next().filter(|_| name.is_precise());
        self.contains(name) || base.is_some_and(|base| self.wildcard_bases.contains(base))
    }

    /// Reports the result of a request.
    fn report(
        &self,
        secret: &Key,
        request: &CertificateNameRequest<'_>,
        refused: Option<Reason>,
        diagnostics: &mut Vec<Diagnostic>,
        policy_entries: &mut Vec<PolicyStatusEntry>,
    ) {
        if request.is_added {
            let is_served = self.serves(request.name);
            return diagnostics.extend((!is_served).then(|| added_uncovered(request, secret)));
        }
        if let Some(policy) = request.policy() {
            let left_out = refused.unwrap_or(reason::CERTIFICATE_TOO_MANY_NAMES);
            let report = name_report(request, self.serves(request.name), left_out);
            policy_entries.push(policy_entry(Kind::TlsPolicy, &policy.meta.key, report));
        }
    }
}

/// The report of one name.
fn name_report(request: &CertificateNameRequest<'_>, is_served: bool, left_out: Reason) -> HostnameReport {
    let skipped = HostnameState::Skipped(left_out);
    HostnameReport {
        hostname: request.name.text().clone(),
        listener: request.context.rank.key.clone(),
        route: request.route.object(),
        state: if is_served { HostnameState::Served } else { skipped },
        message: String::new(),
    }
}

/// The diagnostics of names beyond the limit; `count` is their number.
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

/// The diagnostics of names that the Secret may not have; `place` is the field that refers to the Secret.
fn held_elsewhere(
    place: &(ObjectRef, FieldPath),
    secret: &Key,
    refused: &BTreeMap<&Hostname, (Reason, String)>,
) -> Vec<Diagnostic> {
    let told = refused.values().map(|(reason, message)| {
        let message = format!("the certificate of Secret {secret} does not get it: {message}");
        Diagnostic::new(*reason, &place.0, place.1.clone(), message)
    });
    told.collect()
}

/// Issuer and key of the oldest policy; `policies` are sorted by age.
fn chosen_issuer<'a>(mut policies: impl Iterator<Item = &'a Arc<TlsPolicy>>) -> (Option<Reference>, Option<Key>) {
    let first = policies.next();
    (first.and_then(|policy| policy.issuer.clone()), first.map(|policy| policy.meta.key.clone()))
}

/// The diagnostics of policies whose issuer differs from that of the oldest; `policies` are sorted by age.
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

fn is_secret(reference: &Reference) -> bool {
    reference.group.is_empty() && &*reference.kind == "Secret"
}

fn elsewhere(listener: &ListenerState, secret: &Key, field: FieldPath) -> Diagnostic {
    let message = format!("Secret {secret} is in another namespace than {}; it is not filled", listener_name(listener));
    let object = listener.owner.object();
    Diagnostic::new(reason::CERTIFICATE_SECRET_ELSEWHERE, &object, field.key("namespace"), message)
}

/// The note about a wildcard that is routed at any depth and certified one label deep.
fn one_label(pair: &RouteAtListener<'_>, hostname: &Hostname) -> Diagnostic {
    let base = hostname.wildcard_base().unwrap_or_default();
    let message = format!(
        "{} serves names at any depth below `{base}`; the certificate for `{hostname}` covers one label, not `a.b.{base}`",
        listener_name(pair.listener)
    );
    let written = pair.common.iter().find(|common| common.hostname == *hostname);
    let field = FieldPath::of("spec.hostnames");
    let field = match written.and_then(|common| common.written) {
        Some(index) => field.index(index as usize),
        None => field,
    };
    let mut note = Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, &pair.route.object(), field, message);
    note.severity = Severity::Info;
    note.help("list deeper names by themselves in the hostnames of a route")
}

fn cannot_cover(pair: &RouteAtListener<'_>, hostname: &Hostname, because: &str) -> Diagnostic {
    let written = pair.common.iter().find(|common| common.hostname == *hostname);
    let field = FieldPath::of("spec.hostnames");
    let field = match written.and_then(|common| common.written) {
        Some(index) => field.index(index as usize),
        None => field,
    };
    let message =
        format!("{} ends TLS for `{hostname}` without a certificate: {because}", listener_name(pair.listener));
    Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, &pair.route.object(), field, message)
}

fn added_uncovered(request: &CertificateNameRequest<'_>, secret: &Key) -> Diagnostic {
    let (hostname, listener) = (request.name, &request.context.rank.key);
    let message = format!(
        "`{hostname}` is not in the certificate of Secret {secret}: {listener} and the route have it not in common by their hostnames"
    );
    let field = FieldPath::of("spec.hostnames");
    Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, &request.route.object(), field, message)
}

/// The note about wildcards that are allowed because `allowWildcardHosts` is unset (D1).
pub(super) fn unset_wildcards_note(names: &BTreeSet<&Str>) -> String {
    let names = listed(names.iter().map(|name| &***name));
    format!(
        "`allowWildcardHosts` is not set, which allows the wildcard certificate for {names}; set it to say what is meant"
    )
}
