//! From one route to its claims: the names that it requests at its listeners, and their targets.
//!
//! Every hostname passes these checks in order, and the first that fails is the reason: route and listener are
//! accepted, a policy governs if one is needed, there is a name, the policy allows it, the domain filter admits it,
//! a HostnameGrant admits the namespace, there is a target. A grant that refuses for certain goes before all but an
//! invalid policy. Other routes are never looked at.

use std::sync::Arc;

use smallvec::smallvec;

use super::addresses::{self, ResolvedTargets, Targets};
use super::asked_names::{self, AskedName, NameAtListener};
use super::certificates::{self, CertificateNameRequest, UnclaimedNames};
use super::input::PublicationInput;
use super::listener_context::{ListenerContext, ListenerContexts};
use super::obstacles::{self, Obstacle};
use super::policy_status::PolicyStatusEntry;
use super::selection;
use super::verdicts::{self, PairVerdict};
use crate::attachment::{Intersection, ListenerId, ListenerState, RouteState};
use crate::diagnostic::Diagnostic;
use crate::lint::{listener_field, listener_name};
use crate::model::*;
use crate::names::Hostname;
use crate::policy::{self, HostnameReport, HostnameState, Policy};
use crate::publication::annotations::{Annotations, HostnameSource, RouteAnnotations};
use crate::publication::targets::Strategy;
use crate::publication::{KeptName, NameSource, PassedOver, Withheld};
use crate::reason;

/// Everything that one route requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteClaims {
    /// The route.
    pub(crate) route: Arc<Route>,
    /// The names it gets unless another route has precedence, without duplicates.
    pub(crate) names: ShortVec<ClaimedName>,
    /// Annotation values other than targets, if any is set.
    annotated: Option<Box<AnnotatedValues>>,
    /// Parts that most routes lack.
    extras: Option<Box<RouteExtras>>,
}

/// A name, and the listeners that a route requests it at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimedName {
    /// The name.
    pub(crate) name: Hostname,
    /// One claim per listener.
    pub(crate) claims: ShortVec<NameClaim>,
}

/// A route's request for a name at one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameClaim {
    /// The listener.
    pub(super) context: Arc<ListenerContext>,
    /// Targets, if they differ from the listener's usual ones.
    targets: Option<Arc<Targets>>,
    /// The source of the name.
    pub(super) source: NameSource,
    /// Whether the listener's wildcard may answer for the name.
    pub(super) is_coverable: bool,
    /// Whether the name is also requested in the certificates of the listener.
    pub(super) is_certified: bool,
}

/// The values of a route's annotations, other than targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AnnotatedValues {
    pub(super) ttl: Option<u32>,
    pub(super) set_identifier: Option<Str>,
    pub(super) properties: Vec<(Str, Str)>,
}

/// Parts of a route's claims that most routes lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteExtras {
    /// Hostnames that get nothing.
    pub(crate) withheld: Vec<Withheld>,
    /// Why the route is excluded.
    pub(crate) passed_over: Option<PassedOver>,
    /// Problems of the route.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Problems of targets and Secrets that other routes share.
    pub(crate) shared: Vec<Arc<Vec<Diagnostic>>>,
    /// Entries of policy statuses.
    pub(crate) policy_entries: Vec<PolicyStatusEntry>,
    /// Names that it requests in certificates without a claim on their records.
    pub(crate) unclaimed: Vec<UnclaimedNames>,
    /// Names that certificates must not lose.
    pub(crate) kept: Vec<KeptName>,
    /// Names that it requests at listeners where it is not known whether it gets them.
    pub(crate) pending: Vec<(Hostname, Arc<ListenerContext>)>,
    /// Names that are withheld at a listener that the route attaches to: no wildcard's records take their place.
    pub(crate) blocked: Vec<Hostname>,
}

impl RouteClaims {
    /// Parts that most routes lack.
    pub(crate) fn extras(&self) -> Option<&RouteExtras> {
        self.extras.as_deref()
    }

    /// Names that are withheld at a listener that the route attaches to.
    pub(crate) fn blocked(&self) -> &[Hostname] {
        self.extras().map(|extras| &extras.blocked[..]).unwrap_or_default()
    }

    /// Whether a hostname is withheld.
    pub(crate) fn is_withheld(&self) -> bool {
        self.extras().is_some_and(|extras| !extras.withheld.is_empty())
    }

    /// The names that it requests in certificates.
    pub(crate) fn certificate_requests(&self) -> impl Iterator<Item = CertificateNameRequest<'_>> {
        let route = &*self.route;
        let claimed = self.names.iter().flat_map(move |claimed| {
            let certified = claimed.claims.iter().filter(|claim| claim.is_certified);
            certified.map(move |claim| CertificateNameRequest {
                name: &claimed.name,
                is_added: false,
                route,
                context: &claim.context,
            })
        });
        let unclaimed = self.extras().into_iter().flat_map(|extras| &extras.unclaimed);
        claimed.chain(unclaimed.flat_map(move |unclaimed| unclaimed.requests(route)))
    }

    /// The names that it requests in the certificate of one Secret.
    pub(crate) fn certificate_requests_for(&self, secret: &Key) -> Vec<CertificateNameRequest<'_>> {
        self.certificate_requests().filter(|request| request.is_for(secret)).collect()
    }

    pub(super) fn ttl(&self) -> Option<u32> {
        self.annotated.as_ref()?.ttl
    }

    pub(super) fn set_identifier(&self) -> Option<&Str> {
        self.annotated.as_ref()?.set_identifier.as_ref()
    }

    pub(super) fn properties(&self) -> &[(Str, Str)] {
        self.annotated.as_ref().map(|values| &values.properties[..]).unwrap_or_default()
    }
}

impl NameClaim {
    /// Whether the targets differ from the listener's usual ones: they come from an annotation of the route.
    pub(super) fn has_own_targets(&self) -> bool {
        self.targets.is_some()
    }

    /// The targets of the name.
    pub(super) fn targets(&self) -> &Arc<Targets> {
        // A claim without its own targets is only made if the listener has some.
        self.targets.as_ref().or(self.context.usual_targets()).expect("the targets of a claim")
    }
}

impl AnnotatedValues {
    fn of(annotations: &RouteAnnotations) -> Option<Box<Self>> {
        let (ttl, set_identifier) = (annotations.ttl, annotations.set_identifier.clone());
        let values = AnnotatedValues { ttl, set_identifier, properties: annotations.properties.clone() };
        (values != AnnotatedValues::default()).then(|| Box::new(values))
    }
}

/// The names that a route claims at the listeners it attaches to.
pub(crate) fn of_route(base: PublicationInput<'_>, contexts: &ListenerContexts, state: &RouteState) -> RouteClaims {
    let route = &state.route;
    let raw = Annotations::of(&route.meta, &base.settings.annotation_prefixes);
    let mut builder = ClaimBuilder { base, contexts, state, names: ShortVec::new(), extras: None };
    if let Some(because) = selection::route_refusal(base.settings, route, &raw) {
        if let Some((own, field)) = selection::own_refusal(route, &raw).filter(|(own, _)| *own == because) {
            let names = obstacles::excluded(route, &raw, base.settings, (&own, &field));
            builder.extras().withheld.extend(names);
        }
        builder.extras().passed_over = Some(PassedOver { object: route.object(), because });
        return builder.finish(None);
    }
    let annotations = match raw.entries().is_empty() {
        true => RouteAnnotations::default(),
        false => RouteAnnotations::read(&raw, &route.object(), &mut builder.extras().diagnostics),
    };
    let mut diagnostics = Vec::new();
    let asked = asked_names::of_route(route, &annotations, base.settings, &mut diagnostics);
    if !diagnostics.is_empty() {
        builder.extras().diagnostics.append(&mut diagnostics);
    }
    if annotations.hostname_source != HostnameSource::All {
        let left_out = obstacles::left_out(route, &annotations, base.settings);
        let nothing = (asked.is_empty() && left_out.is_empty()).then(|| obstacles::nothing_asked(state));
        builder.extras().withheld.extend(left_out.into_iter().chain(nothing));
    }
    builder.claim_names(&annotations, asked);
    builder.finish(AnnotatedValues::of(&annotations))
}

struct ClaimBuilder<'a> {
    base: PublicationInput<'a>,
    contexts: &'a ListenerContexts,
    state: &'a RouteState,
    names: ShortVec<ClaimedName>,
    extras: Option<Box<RouteExtras>>,
}

/// A listener that the route attaches to, with each parentRef that leads to it and the intersections.
struct AttachedListener<'a> {
    id: ListenerId,
    parents: ShortVec<(usize, &'a [Intersection])>,
}

/// What all names of a route at one listener share.
struct ClaimSite<'p> {
    annotations: &'p RouteAnnotations,
    listener: &'p ListenerState,
    context: &'p Arc<ListenerContext>,
}

impl<'a> ClaimBuilder<'a> {
    fn claim_names(&mut self, annotations: &RouteAnnotations, mut asked: ShortVec<AskedName<'_>>) {
        let attached_listeners = attached_listeners(self.base, self.state);
        let listeners = attached_listeners.iter().filter(|attached| self.is_usable(attached.id));
        let hostnames = listeners.map(|attached| &self.base.topology.listener(attached.id).hostname);
        let last_resort = asked_names::last_resort(&self.state.route, annotations, &asked, hostnames);
        // Without any listener the names that the route does ask for say enough.
        asked.extend(last_resort.filter(|_| attached_listeners.iter().any(|attached| self.is_usable(attached.id))));
        let mut is_answered: ShortVec<bool> = asked.iter().map(|_| false).collect();
        for attached in &attached_listeners {
            self.claim_at(annotations, &asked, attached, &mut is_answered);
        }
        for (one, _) in asked.iter().zip(&is_answered).filter(|(_, is_answered)| !**is_answered) {
            let withheld = obstacles::unanswered(self.base, self.contexts, self.state, one);
            self.extras().withheld.push(withheld);
        }
    }

    /// The extras, created on first use.
    fn extras(&mut self) -> &mut RouteExtras {
        self.extras.get_or_insert_default()
    }

    fn finish(self, annotated: Option<Box<AnnotatedValues>>) -> RouteClaims {
        let extras = self.extras.filter(|extras| **extras != RouteExtras::default());
        RouteClaims { route: self.state.route.clone(), names: self.names, annotated, extras }
    }

    /// Whether a listener is part of a Gateway, and the settings select it.
    fn is_usable(&self, id: ListenerId) -> bool {
        self.base.topology.listener(id).gateway.is_some() && self.contexts.at(id).left_out.is_none()
    }

    /// Claims the names that the route requests at one listener, and sets `is_answered` for them.
    fn claim_at(
        &mut self,
        annotations: &RouteAnnotations,
        asked: &[AskedName<'_>],
        attached: &AttachedListener<'a>,
        is_answered: &mut [bool],
    ) {
        let (listener, context) = (self.base.topology.listener(attached.id), self.contexts.at(attached.id));
        if !self.is_usable(attached.id) {
            return;
        }
        let Some((verdict, common)) = self.pair_verdict(context, &attached.parents) else { return };
        let names = asked_names::at_listener(asked, &listener.hostname, is_answered);
        let site = ClaimSite { annotations, listener, context };
        let certified = self.certified_names(attached.id, common, &verdict);
        for name in &names {
            match self.claim(&site, name, &verdict) {
                Ok(claim) => {
                    self.add(name.hostname, NameClaim { is_certified: certified.contains(&name.hostname), ..claim })
                }
                Err(obstacle) => self.withhold(&site, name, obstacle),
            }
        }
        if !certified.is_empty() {
            self.note_unclaimed(context, &certified, &names);
        }
    }

    /// The names to request in the certificates of a listener.
    fn certified_names(
        &mut self,
        id: ListenerId,
        common: &'a [Intersection],
        verdict: &PairVerdict,
    ) -> ShortVec<&'a Hostname> {
        let Some(tls) = &self.contexts.at(id).tls else { return ShortVec::new() };
        let (base, route) = (self.base, &self.state.route);
        let pair = certificates::RouteAtListener { base, route, listener: base.topology.listener(id), tls, common };
        certificates::names_at(&pair, verdict, &mut self.extras)
    }

    /// Records the certificate names without claims, and names that come only from an annotation or the template.
    fn note_unclaimed(
        &mut self,
        context: &Arc<ListenerContext>,
        certified: &[&Hostname],
        names: &[NameAtListener<'_>],
    ) {
        let is_here = |claim: &NameClaim| Arc::ptr_eq(&claim.context, context);
        let is_claimed = |name: &Hostname| {
            let known = self.names.iter().find(|known| known.name == *name);
            known.and_then(|known| known.claims.last()).is_some_and(is_here)
        };
        let unclaimed: ShortVec<Hostname> =
            certified.iter().filter(|name| !is_claimed(name)).map(|name| (*name).clone()).collect();
        let added = names.iter().filter(|name| name.asked.source() != NameSource::Intersected);
        let added: ShortVec<Hostname> = added.map(|name| name.hostname.clone()).collect();
        if !(unclaimed.is_empty() && added.is_empty()) {
            self.extras().unclaimed.push(UnclaimedNames { context: context.clone(), names: unclaimed, added });
        }
    }

    fn add(&mut self, name: &Hostname, claim: NameClaim) {
        match self.names.as_mut_slice().iter_mut().find(|known| known.name == *name) {
            Some(known) => known.claims.push(claim),
            None => self.names.push(ClaimedName { name: name.clone(), claims: smallvec![claim] }),
        }
    }

    /// The best verdict among the parentRefs that lead to a listener.
    fn pair_verdict(
        &mut self,
        context: &ListenerContext,
        parents: &[(usize, &'a [Intersection])],
    ) -> Option<(PairVerdict, &'a [Intersection])> {
        let (base, route) = (self.base, &self.state.route);
        let mut verdicts =
            parents.iter().map(|(parent, names)| (verdicts::of_pair(base, context, route, *parent), *names));
        let first = verdicts.next()?;
        if first.0.obstacle.is_none() {
            return Some(first);
        }
        Some(verdicts.find(|(verdict, _)| verdict.obstacle.is_none()).unwrap_or(first))
    }

    fn claim(
        &mut self,
        site: &ClaimSite<'_>,
        name: &NameAtListener<'_>,
        verdict: &PairVerdict,
    ) -> Result<NameClaim, Obstacle> {
        // Under an invalid policy nothing is deleted, whatever else is wrong (D31).
        let ungoverned = site.context.ungoverned.as_ref();
        let invalid = ungoverned.filter(|obstacle| policy::holds(obstacle.reason));
        let grant = self.grant_obstacle(name);
        // What another namespace has for certain waits for no verdict.
        let refused = grant.as_ref().filter(|obstacle| !obstacle.reason.is_unknown());
        if let Some(obstacle) = invalid.or(refused).or(verdict.obstacle.as_ref()).or(ungoverned) {
            return Err(obstacle.clone());
        }
        self.check_name(site, name)?;
        if let Some(obstacle) = grant {
            return Err(obstacle);
        }
        let targets = self.targets(site)?;
        Ok(NameClaim {
            context: site.context.clone(),
            is_coverable: self.is_coverable(site, name.hostname, targets.as_ref()),
            targets,
            source: name.asked.source(),
            is_certified: false,
        })
    }

    /// Why no HostnameGrant lets the route's namespace have a name, if so (D28).
    fn grant_obstacle(&self, name: &NameAtListener<'_>) -> Option<Obstacle> {
        let route = &self.state.route;
        let refusal = self.base.grant_rules().refusal(name.hostname, &route.meta.key.namespace)?;
        let (object, field) = refusal.place.unwrap_or_else(|| (route.object(), name.asked.field()));
        Some(Obstacle { reason: refusal.reason, message: refusal.message, object, field })
    }

    fn check_name(&self, site: &ClaimSite<'_>, name: &NameAtListener<'_>) -> Result<(), Obstacle> {
        let (route, hostname, listener) = (&self.state.route, name.hostname, site.listener);
        let refused = |reason, message| {
            let is_silent = name.asked.is_the_listeners() && !route.kind.has_hostnames();
            let (object, field) = match is_silent {
                true => (listener.owner.object(), listener_field(listener, "hostname")),
                false => (route.object(), name.asked.field()),
            };
            Err(Obstacle { reason, message, object, field })
        };
        let policy = site.context.policy.as_ref().filter(|policy| !policy.allows_wildcards());
        if let Some(policy) = policy.filter(|_| hostname.is_any()) {
            let (listener, policy) = (listener_name(listener), policy.object());
            let message = format!(
                "neither the route nor {listener} names a hostname, which is a wildcard, and {policy} does not allow wildcards"
            );
            return refused(reason::WILDCARD_NOT_ALLOWED, message);
        }
        if hostname.is_any() {
            let listener = listener_name(listener);
            return refused(reason::NO_NAME, format!("neither the route nor {listener} names a hostname"));
        }
        if let Some(policy) = policy.filter(|_| hostname.is_wildcard()) {
            let message = format!("`{hostname}` is a wildcard, and {} does not allow wildcards", policy.object());
            return refused(reason::WILDCARD_NOT_ALLOWED, message);
        }
        if !self.base.settings.domains.admits(hostname.as_str()) {
            let message = format!("`--domain-filter` or `--exclude-domains` leaves `{hostname}` out");
            return refused(reason::DOMAIN_NOT_SELECTED, message);
        }
        Ok(())
    }

    /// The targets of annotations, else the addresses of the Gateway; `None` if they equal the listener's usual ones.
    fn targets(&mut self, site: &ClaimSite<'_>) -> Result<Option<Arc<Targets>>, Obstacle> {
        let (annotations, context) = (site.annotations, site.context);
        if annotations.targets.is_empty() && annotations.strategy != Strategy::RouteOnly {
            self.resolved(context.usual.as_ref())?;
            return Ok(None);
        }
        let own: Vec<Str> = annotations.targets.iter().filter(|target| !target.is_empty()).cloned().collect();
        let chosen = match annotations.targets.is_empty() {
            true => Default::default(),
            false => annotations.strategy.choose(&own, &context.targets),
        };
        let targets = if chosen.is_empty() {
            self.resolved(context.addresses.as_ref())?.clone()
        } else {
            let is_own = chosen.iter().any(|target| own.contains(target));
            let (place, key) = match is_own {
                true => (self.state.route.object(), annotations.target_key.as_ref()),
                false => (context.targets_owner.clone(), context.target_key.as_ref()),
            };
            let settings = self.base.settings;
            let resolved = addresses::of_annotations(settings, &chosen, context.policy.as_deref(), &place, key);
            self.resolved(Some(&Arc::new(resolved)))?.clone()
        };
        Ok(Some(targets).filter(|targets| context.usual_targets() != Some(targets)))
    }

    /// Resolved targets; their diagnostics are reported on the route.
    fn resolved<'r>(&mut self, resolved: Option<&'r Arc<ResolvedTargets>>) -> Result<&'r Arc<Targets>, Obstacle> {
        // A context with a Gateway always has addresses or an obstacle; without a Gateway nothing is claimed.
        let Some(resolved) = resolved else {
            let object = self.state.route.object();
            let message = "the listener is part of no Gateway".to_owned();
            let field = Default::default();
            return Err(Obstacle { reason: reason::LISTENER_SET_NOT_ATTACHED, message, object, field });
        };
        if !resolved.diagnostics.is_empty() {
            self.extras().share(&resolved.diagnostics);
        }
        resolved.targets.as_ref().map_err(Obstacle::clone)
    }

    /// Whether the listener's wildcard may answer for a name: the answer must be the same. `targets` is `None` for the
    /// usual ones.
    fn is_coverable(&mut self, site: &ClaimSite<'_>, name: &Hostname, targets: Option<&Arc<Targets>>) -> bool {
        let (annotations, context) = (site.annotations, site.context);
        let Some(wildcard) = context.rank.wildcard.as_ref().filter(|wildcard| *wildcard != name) else { return false };
        let is_plain = annotations.set_identifier.is_none() && annotations.properties.is_empty();
        let is_usual = annotations.ttl.is_none_or(|ttl| Some(ttl) == context.rank.policy_ttl);
        if !(is_plain && is_usual && wildcard.is_wildcard()) {
            return false;
        }
        self.resolved(context.usual.as_ref()).is_ok() && targets.is_none()
    }

    fn withhold(&mut self, site: &ClaimSite<'_>, name: &NameAtListener<'_>, obstacle: Obstacle) {
        let route = self.state.route.object();
        let listener = site.listener.key();
        let withheld = obstacle.withhold(&route, name.hostname.as_str(), Some(listener.clone()));
        let reason = withheld.reason;
        let state = if withheld.holds() { HostnameState::Pending(reason) } else { HostnameState::Skipped(reason) };
        let hostname = withheld.hostname.clone();
        let is_pending = withheld.holds() && !name.hostname.is_any();
        let report = HostnameReport { hostname, listener, route, state, message: withheld.message.clone() };
        let extras = self.extras();
        extras.pending.extend(is_pending.then(|| (name.hostname.clone(), site.context.clone())));
        extras
            .policy_entries
            .extend(site.context.policy.as_ref().map(|policy| PolicyStatusEntry { policy: policy.object(), report }));
        extras.withheld.push(withheld);
        extras.blocked.push(name.hostname.clone());
    }
}

impl RouteExtras {
    /// Reports diagnostics that other routes share.
    pub(super) fn share(&mut self, diagnostics: &Arc<Vec<Diagnostic>>) {
        if !diagnostics.is_empty() && !self.shared.contains(diagnostics) {
            self.shared.push(diagnostics.clone());
        }
    }
}

/// The listeners that a route attaches to, in order of precedence.
fn attached_listeners<'a>(base: PublicationInput<'a>, state: &'a RouteState) -> ShortVec<AttachedListener<'a>> {
    let mut listeners: ShortVec<AttachedListener<'a>> = ShortVec::new();
    for (parent, attached) in state.parents.iter().map(|parent| &parent.attached).enumerate() {
        for attachment in attached {
            let (id, common) = (attachment.listener, (parent, &*attachment.names));
            match listeners.iter_mut().find(|known| known.id == id) {
                Some(known) => known.parents.push(common),
                None => listeners.push(AttachedListener { id, parents: smallvec![common] }),
            }
        }
    }
    if listeners.len() > 1 {
        listeners.sort_by_cached_key(|attached| base.topology.listener(attached.id).precedence());
    }
    listeners
}
