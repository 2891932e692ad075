//! Which certificates ought to exist: one per Secret, with the names of every listener that names it.
//!
//! Only names that routes and listeners have in common; a wildcard only where a TLSPolicy governs and allows it; a name that
//! a wildcard of the same certificate covers, one label deep, is left out (D3). A Secret in another namespace is never
//! filled: a grant lets a Gateway read it, not more.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use super::listener_context::Outlet;
use super::route_claims::Rest;
use super::strict::{Base, Context, Told, told};
use super::verdicts::Judgement;
use crate::attachment::{CertificateUse, Intersection, ListenerKey, ListenerState};
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::few::Few;
use crate::lint::{SHOWN, listed, listed_of, listener_name};
use crate::model::{Key, Kind, ObjectRef, Reference, Route, Str, TlsPolicy};
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState, Policy};
use crate::publication::settings::Publish;
use crate::publication::wildcards::above;
use crate::publication::{Certificate, KeptName, RoutesBehind};
use crate::reason::{self, Reason};
use crate::snapshot::Visibility;

mod book;
mod ranking;

pub(crate) use book::{Book, Wishes};

/// The listener's side: which Secrets are to be filled, and by whose leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The TLSPolicy that governs.
    policy: Option<Arc<TlsPolicy>>,
    /// Why nothing is made at this listener, if so.
    obstacle: Option<(Reason, String)>,
    /// The Secrets that the listener names and that are ours to fill, sorted, with their places; or why there are none.
    secrets: Result<Few<(Key, usize)>, Option<Reason>>,
    /// What is odd about the others.
    diagnostics: Arc<Vec<Diagnostic>>,
    /// The listener's wildcard, where a policy allows it.
    wildcard: Option<Hostname>,
}

/// A route wants names in the certificates of a listener, beside those that it has claims on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(super) outlet: Arc<Outlet>,
    pub(super) names: Few<Hostname>,
    /// Names that only an annotation or the template names.
    pub(super) added: Few<Hostname>,
}

/// The rank of a name that has none.
const NO_RANK: u32 = u32::MAX;

/// A route wants a name in the certificates of a listener.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// Where the route stands among all.
    pub(super) place: u32,
    /// Whether only an annotation or the template names it, so that it is told of and not put in.
    pub(super) is_added: bool,
    /// Whether the name is a wildcard.
    pub(super) is_wildcard: bool,
    /// Where the name stands among all, or [`NO_RANK`]: a name is told from others by it without being looked at.
    pub(super) rank: u32,
    /// When the route was created.
    pub(super) created: i64,
    pub(super) route: &'a Route,
    pub(super) outlet: &'a Outlet,
    /// The name.
    pub(crate) name: &'a Hostname,
}

/// One listener with one of its routes.
pub(super) struct Pair<'a> {
    pub(super) base: Base<'a>,
    pub(super) route: &'a Route,
    pub(super) listener: &'a ListenerState,
    pub(super) terms: &'a Terms,
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

impl Terms {
    /// Whether nobody is told what becomes of names, and nothing is odd.
    pub(super) fn are_plain(&self) -> bool {
        let is_quiet = match &self.obstacle {
            Some((reason, _)) => *reason == reason::NO_POLICY,
            None => self.diagnostics.is_empty(),
        };
        self.policy.is_none() && is_quiet
    }

    /// Whether there are Secrets to be filled, and nothing is in the way.
    pub(super) fn certify(&self) -> bool {
        self.obstacle.is_none() && self.secrets.is_ok()
    }

    /// The Secrets that are to be filled.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Key> {
        self.secrets.iter().flatten().map(|(key, _)| key)
    }
}

impl Wish {
    /// The same, name by name.
    pub(super) fn asks<'a>(&'a self, place: u32, route: &'a Route) -> impl Iterator<Item = Ask<'a>> {
        let ask = move |is_added| move |name| Ask { is_added, ..Ask::new(place, route, &self.outlet, name) };
        self.names.iter().map(ask(false)).chain(self.added.iter().map(ask(true)))
    }
}

impl<'a> Ask<'a> {
    pub(super) fn new(place: u32, route: &'a Route, outlet: &'a Outlet, name: &'a Hostname) -> Self {
        let (created, _) = route.meta.seniority();
        let is_wildcard = name.is_wildcard();
        Ask { place, is_added: false, is_wildcard, rank: NO_RANK, created, route, outlet, name }
    }

    /// Whether another is for the same name.
    fn is_same_name(&self, other: &Self) -> bool {
        match self.rank == NO_RANK || other.rank == NO_RANK {
            true => self.name == other.name,
            false => self.rank == other.rank,
        }
    }

    fn age(&self) -> Age<'a> {
        (self.created, &self.route.meta.key)
    }

    /// Whether it is about a Secret.
    pub(super) fn is_about(&self, secret: &Key) -> bool {
        self.outlet.secrets().any(|key| key == secret)
    }

    fn policy(&self) -> Option<&'a Arc<TlsPolicy>> {
        self.outlet.terms.as_ref()?.policy.as_ref()
    }

    /// Every name that it brings in: its own, and the listener's wildcard.
    fn wanted(&self) -> impl Iterator<Item = &'a Hostname> + use<'a> {
        let wildcard = self.outlet.terms.as_ref().and_then(|terms| terms.wildcard.as_ref());
        std::iter::once(self.name).chain(wildcard).filter({
            let is_added = self.is_added;
            move |_| !is_added
        })
    }

    /// The wildcards that its policy allows by saying nothing.
    fn unsaid(&self) -> impl Iterator<Item = &'a Hostname> + use<'a> {
        let is_unsaid = self.policy().is_some_and(|policy| policy.allow_wildcards.is_none());
        self.wanted().filter(move |name| is_unsaid && name.is_wildcard())
    }

    /// Whether anybody is told what becomes of it.
    fn is_spoken_of(&self) -> bool {
        self.is_added || self.policy().is_some()
    }

    /// The listener's owner, and its field that names a Secret.
    fn place(&self, secret: &Key) -> (ObjectRef, FieldPath) {
        let terms = self.outlet.terms.as_ref();
        let named = terms.and_then(|terms| terms.secrets.iter().flatten().find(|(key, _)| key == secret));
        let field = named.map(|(_, place)| reference_field(self.outlet.seat.index, *place));
        (self.outlet.seat.key.owner.clone(), field.unwrap_or_default())
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

/// The Secrets that a listener names and that are ours to fill, with their places; or why there are none.
fn secrets(listener: &ListenerState, diagnostics: &mut Vec<Diagnostic>) -> Result<Few<(Key, usize)>, Option<Reason>> {
    let namespace = &listener.owner.meta().key.namespace;
    let mut secrets: Few<(Key, usize)> = Few::None;
    let mut refused = None;
    let references = listener.spec().tls.iter().flat_map(|tls| &tls.certificates);
    for (i, reference) in references.enumerate().filter(|(_, reference)| is_secret(reference)) {
        let place = CertificateUse::Own(i);
        let problem = listener.certificates.iter().find(|problem| problem.place == place);
        let key = Key::new(reference.namespace_or(namespace).clone(), reference.name.clone());
        if problem.is_some_and(|problem| problem.reason == reason::REFERENCE_NOT_PERMITTED) {
            refused = Some(reason::REFERENCE_NOT_PERMITTED);
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

/// The way to a certificateRef of a listener, both by their places.
fn reference_field(listener: usize, place: usize) -> FieldPath {
    FieldPath::of("spec.listeners").index(listener).key("tls").key("certificateRefs").index(place)
}

/// What a route at a listener that ends TLS wants in certificates, and what is told of that.
pub(super) fn pair<'a>(pair: &Pair<'a>, judgement: &Judgement, rest: &mut Option<Box<Rest>>) -> Few<&'a Hostname> {
    let obstacle = match judgement.for_certificates {
        true => pair.terms.obstacle.clone(),
        false => {
            let known = judgement.obstacle.as_ref().map(|obstacle| (obstacle.reason, obstacle.message.clone()));
            known.or(Some((reason::LISTENER_REFUSED, String::new())))
        }
    };
    if matches!(obstacle, Some((reason::NO_POLICY, _))) {
        return Few::None;
    }
    if !pair.terms.diagnostics.is_empty() {
        rest.get_or_insert_default().share(&pair.terms.diagnostics);
    }
    match (&pair.terms.secrets, obstacle) {
        (Ok(_), None) => return pair.names(rest),
        (Ok(secrets), Some((reason, message))) => pair.keep(secrets, reason, &message, rest.get_or_insert_default()),
        (Err(Some(reason)), None) => {
            pair.tell_all(HostnameState::Skipped(*reason), reason.row().summary, rest.get_or_insert_default());
        }
        (Err(_), _) => {}
    }
    Few::None
}

impl<'a> Pair<'a> {
    /// Names that are not known to be gone stay in their certificates.
    fn keep(&self, secrets: &[(Key, usize)], reason: Reason, message: &str, rest: &mut Rest) {
        if !reason.is_unknown() {
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

    /// The names that may stand in a certificate.
    fn names(&self, rest: &mut Option<Box<Rest>>) -> Few<&'a Hostname> {
        let mut names = Few::None;
        for hostname in self.common.iter().map(|common| &common.hostname) {
            match self.objection(hostname) {
                None => names.push(hostname),
                Some((reason, message)) => {
                    let rest = rest.get_or_insert_default();
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
    /// Names, sorted, each once.
    names: Vec<(&'a Hostname, Age<'a>)>,
    /// The wildcards among them.
    wildcards: BTreeSet<&'a Hostname>,
    /// Listeners that ask for any, in order, each with its oldest route.
    outlets: Vec<(&'a Outlet, Age<'a>)>,
    policies: BTreeMap<Age<'a>, &'a Arc<TlsPolicy>>,
    /// Wildcards by the policy that allows them by saying nothing.
    unsaid: BTreeMap<&'a Key, BTreeSet<&'a Hostname>>,
}

/// The names that a certificate gets, sorted, and those there is no room for.
struct Chosen<'a> {
    names: Vec<&'a Hostname>,
    /// The first of those that are left out, the oldest first, and how many there are.
    first_dropped: Vec<&'a Hostname>,
    dropped: usize,
}

/// Decides about a Secret. The asks come by name, and all are about it; `routes` are those behind them, in order.
pub(super) fn decide(limit: usize, secret: &Key, asks: &[Ask<'_>], routes: Vec<Arc<Route>>) -> SecretDecision {
    let draft = Draft::of(asks);
    let Chosen { names, first_dropped, dropped } = Chosen::of(&draft.names, &draft.wildcards, limit);
    let mut diagnostics = Vec::new();
    if dropped > 0 {
        // The listener that goes first among those of the first route says where the Secret is named.
        let first = first_of(asks.iter()).map(|ask| ask.place(secret));
        diagnostics.extend(first.map(|place| left_out(place, secret, limit, dropped, first_dropped.iter().copied())));
    }
    diagnostics.extend(issuers_differ(secret, draft.policies.values().copied()));
    let made = Made::of(&names);
    let mut told = Vec::new();
    asks.iter().for_each(|ask| made.speak(secret, ask, &mut diagnostics, &mut told));
    let (issuer, policy) = chosen_issuer(draft.policies.values().copied());
    let certificate = Certificate {
        secret: secret.clone(),
        dns_names: names.iter().map(|name| name.text().clone()).collect(),
        listeners: draft.listeners(),
        routes: RoutesBehind::Whole(routes),
        issuer,
        policy,
    };
    SecretDecision { certificate, diagnostics, told, notes: draft.notes(&made) }
}

/// The ask of the first route at the listener that goes first.
fn first_of<'b, 'a: 'b>(asks: impl Iterator<Item = &'b Ask<'a>>) -> Option<&'b Ask<'a>> {
    let asks = asks.filter(|ask| !ask.is_added);
    asks.min_by(|a, b| a.place.cmp(&b.place).then_with(|| a.outlet.seat.by_gateway(&b.outlet.seat)))
}

impl<'a> Draft<'a> {
    fn of(asks: &[Ask<'a>]) -> Self {
        let mut draft = Draft { names: Vec::with_capacity(asks.len()), ..Draft::default() };
        let mut last: Option<(&Outlet, Age<'_>)> = None;
        let mut before: Option<&Ask<'_>> = None;
        for ask in asks.iter().filter(|ask| !ask.is_added) {
            let age = ask.age();
            match draft.names.last_mut() {
                Some((_, known)) if before.is_some_and(|before| before.is_same_name(ask)) => *known = age.min(*known),
                _ => draft.names.push((ask.name, age)),
            }
            before = Some(ask);
            match &mut last {
                Some((outlet, known)) if std::ptr::eq(*outlet, ask.outlet) => *known = age.min(*known),
                _ => draft.outlets.extend(last.replace((ask.outlet, age))),
            }
            if ask.is_wildcard {
                draft.wildcards.insert(ask.name);
                draft.add_unsaid(ask.outlet, ask.name);
            }
        }
        draft.outlets.extend(last);
        draft.outlets.sort_unstable_by_key(|(outlet, age)| (outlet.id, *age));
        draft.outlets.dedup_by_key(|(outlet, _)| outlet.id);
        draft.add_policies();
        draft
    }

    /// Adds what the listeners say: their policies, and their wildcards.
    fn add_policies(&mut self) {
        for place in 0..self.outlets.len() {
            let (outlet, age) = self.outlets[place];
            let Some(terms) = &outlet.terms else { continue };
            if let Some(policy) = &terms.policy {
                self.policies.insert(policy.meta.seniority(), policy);
            }
            if let Some(wildcard) = &terms.wildcard {
                self.add_unsaid(outlet, wildcard);
                self.wildcards.insert(wildcard);
                match self.names.binary_search_by(|(name, _)| (*name).cmp(wildcard)) {
                    Ok(place) => self.names[place].1 = age.min(self.names[place].1),
                    Err(place) => self.names.insert(place, (wildcard, age)),
                }
            }
        }
    }

    fn add_unsaid(&mut self, outlet: &'a Outlet, wildcard: &'a Hostname) {
        let policy = outlet.terms.as_ref().and_then(|terms| terms.policy.as_ref());
        if let Some(policy) = policy.filter(|policy| policy.allow_wildcards.is_none()) {
            self.unsaid.entry(&policy.meta.key).or_default().insert(wildcard);
        }
    }

    fn listeners(&self) -> Vec<ListenerKey> {
        let mut listeners: Vec<ListenerKey> = self.outlets.iter().map(|(outlet, _)| outlet.seat.key.clone()).collect();
        listeners.sort();
        listeners.dedup();
        listeners
    }

    fn notes(&self, made: &Made<'_>) -> Vec<(Key, Vec<Str>)> {
        let notes = self.unsaid.iter().map(|(policy, wildcards)| {
            let made = wildcards.iter().filter(|wildcard| made.has(wildcard));
            ((*policy).clone(), made.map(|wildcard| wildcard.text().clone()).collect::<Vec<_>>())
        });
        notes.filter(|(_, made)| !made.is_empty()).collect()
    }
}

impl<'a> Chosen<'a> {
    /// Takes the names that no wildcard among them covers, and where there are too many, those that are asked for longest.
    fn of(names: &[(&'a Hostname, Age<'a>)], wildcards: &BTreeSet<&Hostname>, limit: usize) -> Self {
        let wildcards: Vec<&Hostname> = wildcards.iter().copied().collect();
        let is_needed = |name: &Hostname| !is_covered(&wildcards, name);
        if names.len() <= limit {
            let names = names.iter().map(|(name, _)| *name).filter(|name| is_needed(name)).collect();
            return Chosen { names, first_dropped: Vec::new(), dropped: 0 };
        }
        // Those that come next are told of.
        let told = limit.saturating_add(SHOWN);
        let mut oldest: BinaryHeap<(Age<'a>, usize)> = BinaryHeap::new();
        let mut needed = 0;
        for (place, (name, age)) in names.iter().enumerate() {
            if is_needed(name) {
                needed += 1;
                take_older(&mut oldest, told, (*age, place));
            }
        }
        let mut places: Vec<usize> = oldest.into_sorted_vec().into_iter().map(|(_, place)| place).collect();
        let next = places.split_off(limit.min(places.len()));
        places.sort_unstable();
        let named = |places: Vec<usize>| places.into_iter().map(|place| names[place].0).collect();
        Chosen { dropped: needed - places.len(), names: named(places), first_dropped: named(next) }
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
        self.has(name) || is_covered(&self.wildcards, name)
    }

    /// Tells what became of an ask.
    fn speak(&self, secret: &Key, ask: &Ask<'_>, diagnostics: &mut Vec<Diagnostic>, all_told: &mut Vec<Told>) {
        if ask.is_added {
            let is_served = self.serves(ask.name);
            return diagnostics.extend((!is_served).then(|| added_uncovered(ask, secret)));
        }
        if let Some(policy) = ask.policy() {
            let report = granted(ask, self.serves(ask.name));
            all_told.push(told(Kind::TlsPolicy, &policy.meta.key, report));
        }
    }
}

/// What became of one name.
fn granted(ask: &Ask<'_>, is_served: bool) -> HostnameReport {
    let skipped = HostnameState::Skipped(reason::CERTIFICATE_TOO_MANY_NAMES);
    HostnameReport {
        hostname: ask.name.text().clone(),
        listener: ask.outlet.seat.key.clone(),
        route: ask.route.object(),
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

/// Keeps the oldest names, so many of them at most.
fn take_older<'a>(oldest: &mut BinaryHeap<(Age<'a>, usize)>, limit: usize, name: (Age<'a>, usize)) {
    if oldest.len() < limit {
        return oldest.push(name);
    }
    if oldest.peek().is_some_and(|youngest| name < *youngest) {
        oldest.pop();
        oldest.push(name);
    }
}

/// Whether one of the wildcards, which are sorted, stands for a name in a certificate.
fn is_covered(wildcards: &[&Hostname], name: &Hostname) -> bool {
    if wildcards.is_empty() || !name.is_precise() {
        return false;
    }
    let Some(base) = above(name.as_str()).next() else { return false };
    wildcards.binary_search_by(|wildcard| wildcard.wildcard_base().unwrap_or_default().cmp(base)).is_ok()
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
        Some(index) => field.index(index as usize),
        None => field,
    };
    let message =
        format!("{} ends TLS for `{hostname}` without a certificate: {because}", listener_name(pair.listener));
    Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, &pair.route.object(), field, message)
}

fn added_uncovered(ask: &Ask<'_>, secret: &Key) -> Diagnostic {
    let (hostname, listener) = (ask.name, &ask.outlet.seat.key);
    let message = format!(
        "`{hostname}` is not in the certificate of Secret {secret}: {listener} and the route have it not in common by their hostnames"
    );
    let field = FieldPath::of("spec.hostnames");
    Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, &ask.route.object(), field, message)
}

/// What is told of wildcards that a policy allows by saying nothing (D1).
pub(super) fn note(names: &BTreeSet<&Str>) -> String {
    let names = listed(names.iter().map(|name| &***name));
    format!(
        "`allowWildcardHosts` is not set, which allows the wildcard certificate for {names}; set it to say what is meant"
    )
}
