//! From claims on a name to its records: which claims share it, which lose it, whether a wildcard covers it.
//!
//! Addresses of all claims on a name are merged (D8). A CNAME cannot coexist with other records: if one claim needs a
//! CNAME and another needs addresses, the first in order keeps the name. Claims on a wildcard that only cover other
//! names never change the records of claims on the wildcard itself. A name needs no records if a listener's wildcard
//! gives the same answer according to RFC 4592; every other name has its own (D13). Zones and existing records are not
//! known here. Where there are several providers, the claims that one of them publishes are merged by themselves.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::addresses::Targets;
use super::holders::{self, HolderInput, NameHolder};
use super::hostname_grants::GrantRules;
use super::listener_context::{ListenerContext, ListenerRank};
use super::obstacles::Obstacle;
use super::policy_status::{PolicyStatusEntry, policy_entry};
use super::providers::PublishingProviders;
use super::route_claims::{NameClaim, RouteClaims};
use crate::attachment::ListenerKey;
use crate::diagnostic::FieldPath;
use crate::health::{self, AddressHealth, AddressPublication, AddressReport, HealthState, ObservedHealth};
use crate::model::{Key, Kind, ObjectRef, SharedList, ShortVec, Str};
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState};
use crate::publication::{NameSource, Record, Withheld};
use crate::reason::{self, Reason};

/// The decision about one name; without records if nothing but what is withheld is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameDecision {
    sets: ShortVec<RecordSet>,
    /// Whether a wildcard may answer for it: every claim allows that.
    pub(crate) is_coverable: bool,
    source: NameSource,
    extras: Option<Box<NameExtras>>,
}

/// Parts of a decision that most names lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameExtras {
    /// Routes that lost the name.
    pub(crate) withheld: Vec<Withheld>,
    /// Entries of policy statuses.
    pub(crate) policy_entries: Vec<PolicyStatusEntry>,
    /// The namespace that holds the name, if Routes of several claim it.
    pub(crate) holder: Option<NameHolder>,
    /// The addresses that are probed, by the policy that says so; sorted.
    pub(crate) addresses: Vec<(Key, AddressReport)>,
}

/// The records of one name with one set identifier at one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordSet {
    provider: Option<Str>,
    set_identifier: Option<Str>,
    targets: Arc<Targets>,
    ttl: Option<u32>,
    properties: Vec<(Str, Str)>,
    routes: ShortVec<ObjectRef>,
    listeners: SharedList<ListenerKey>,
}

/// A claim on a name, with the route that makes it.
#[derive(Clone, Copy)]
pub(crate) struct RouteNameClaim<'a> {
    route_claims: &'a RouteClaims,
    context: &'a ListenerContext,
    role: ClaimRole<'a>,
}

/// What a claim on a name is for. Ordered: own claims precede those on a listener's wildcard.
#[derive(Clone, Copy)]
enum ClaimRole<'a> {
    /// Its records.
    Records(&'a NameClaim),
    /// A certificate, without records.
    Certificate,
    /// Its records or a certificate, once it is known whether the route is accepted.
    Pending,
    /// The name is the listener's wildcard, and its records cover another name.
    StandIn(&'a NameClaim),
    /// The name is the listener's wildcard, which the certificates of other names get.
    WildcardCertificate,
}

/// A claim that lost its name.
struct Loss<'a> {
    claim: RouteNameClaim<'a>,
    winner: ObjectRef,
    reason: Reason,
}

impl<'a> RouteNameClaim<'a> {
    /// Every claim of a route with its name: its own, and those on listener wildcards that cover its names.
    pub(crate) fn all(route_claims: &'a RouteClaims) -> impl Iterator<Item = (&'a Hostname, RouteNameClaim<'a>)> {
        let by_route = move |context, role| RouteNameClaim { route_claims, context, role };
        let claimed = route_claims.names.iter().flat_map(move |claimed| {
            claimed.claims.iter().flat_map(move |claim| {
                let context = &*claim.context;
                let wildcard = context.rank.wildcard.as_ref().filter(|_| claim.is_coverable);
                let stand_in = wildcard.map(|wildcard| (wildcard, by_route(context, ClaimRole::StandIn(claim))));
                let certified = context.certificate_wildcard().filter(|_| claim.is_certified);
                let certified = certified.map(|wildcard| (wildcard, by_route(context, ClaimRole::WildcardCertificate)));
                let own = (&claimed.name, by_route(context, ClaimRole::Records(claim)));
                std::iter::once(own).chain(stand_in).chain(certified)
            })
        });
        let extras = || route_claims.extras().into_iter();
        let unclaimed = extras().flat_map(|extras| &extras.unclaimed).flat_map(move |unclaimed| {
            let context = &*unclaimed.context;
            let names = unclaimed.names.iter().map(move |name| (name, by_route(context, ClaimRole::Certificate)));
            let wildcard = context.certificate_wildcard().filter(|_| !unclaimed.names.is_empty());
            names.chain(wildcard.map(|wildcard| (wildcard, by_route(context, ClaimRole::WildcardCertificate))))
        });
        let pending = extras().flat_map(|extras| &extras.pending);
        let pending = pending.map(move |(name, context)| (name, by_route(&**context, ClaimRole::Pending)));
        claimed.chain(unclaimed).chain(pending)
    }

    /// The namespace of the route.
    pub(super) fn namespace(&self) -> &'a Str {
        &self.route_claims.route.meta.key.namespace
    }

    /// The policy that has its addresses probed, if one does.
    fn probing_policy(&self) -> Option<&'a Key> {
        let policy = self.context.policy.as_ref().filter(|policy| policy.health_check.is_some())?;
        Some(&policy.meta.key)
    }

    /// The provider that publishes its records; `None` where there is only one.
    fn provider<'p>(&self, name: &Hostname, providers: &'p PublishingProviders) -> Option<&'p Str> {
        let named = self.context.policy.as_ref().and_then(|policy| policy.provider.as_ref());
        providers.of(name.as_str(), named)
    }

    /// What probes found out about one of its addresses.
    fn health_of<'h>(&self, name: &Hostname, address: &str, health: &'h ObservedHealth) -> Option<&'h AddressHealth> {
        health.of(name.as_str(), self.probing_policy()?, address)
    }

    /// Whether it asks for a target.
    fn has_target(&self, target: &Str) -> bool {
        self.targets().by_type().any(|(_, targets)| targets.contains(target))
    }

    /// Whether it is not known if the route is accepted.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.role, ClaimRole::Pending)
    }

    /// The listener's wildcard, if it may answer for the name.
    pub(super) fn covering_wildcard(&self) -> Option<&'a Hostname> {
        match self.role {
            ClaimRole::Records(claim) if claim.is_coverable => self.listener().wildcard.as_ref(),
            _ => None,
        }
    }

    /// Whether a certificate is requested for the name.
    pub(crate) fn is_certified(&self) -> bool {
        match self.role {
            ClaimRole::Records(claim) => claim.is_certified,
            ClaimRole::Certificate | ClaimRole::WildcardCertificate => true,
            ClaimRole::Pending | ClaimRole::StandIn(_) => false,
        }
    }

    /// The order of claims by which the holder of a name is chosen: own claims first, then the oldest route.
    pub(super) fn by_age(&self, other: &Self) -> Ordering {
        self.is_stand_in().cmp(&other.is_stand_in()).then_with(|| by_route(self.route_claims, other.route_claims))
    }

    fn is_stand_in(&self) -> bool {
        matches!(self.role, ClaimRole::StandIn(_) | ClaimRole::WildcardCertificate)
    }

    /// The claim on records, if it is one.
    fn on_records(&self) -> Option<&'a NameClaim> {
        match self.role {
            ClaimRole::Records(claim) | ClaimRole::StandIn(claim) => Some(claim),
            _ => None,
        }
    }

    fn claim(&self) -> &'a NameClaim {
        // Only claims on records are compared and published.
        self.on_records().expect("a claim on records")
    }

    fn targets(&self) -> &'a Arc<Targets> {
        self.claim().targets()
    }

    fn source(&self) -> NameSource {
        if self.is_stand_in() { NameSource::ListenerWildcard } else { self.claim().source }
    }

    fn gateway(&self) -> ObjectRef {
        self.listener().gateway_object()
    }

    /// The listener that it is made at.
    pub(super) fn listener(&self) -> &'a ListenerRank {
        &self.context.rank
    }

    /// The order of claims on the records of one name. Own claims precede covering ones; then by age of policy, Gateway
    /// and route.
    fn rank(&self, other: &Self) -> Ordering {
        let (rank, theirs) = (self.listener(), other.listener());
        self.is_stand_in()
            .cmp(&other.is_stand_in())
            .then_with(|| rank.by_policy(theirs))
            .then_with(|| rank.gateway.cmp(&theirs.gateway))
            .then_with(|| by_route(self.route_claims, other.route_claims))
            .then_with(|| rank.precedence.cmp(&theirs.precedence))
            .then_with(|| self.claim().source.cmp(&other.claim().source))
    }
}

fn by_route(a: &RouteClaims, b: &RouteClaims) -> Ordering {
    if std::ptr::eq(a, b) {
        return Ordering::Equal;
    }
    let (a, b) = (&a.route, &b.route);
    a.meta.seniority().cmp(&b.meta.seniority()).then_with(|| a.kind.cmp(&b.kind))
}

/// Decides the records of a name; `None` if there are neither records nor anything to report.
pub(crate) fn decide(
    name: &Hostname,
    claims: &mut [RouteNameClaim<'_>],
    input: HolderInput<'_>,
) -> Option<NameDecision> {
    decide_records(name, claims, input, false)
}

/// The same for a name whose CNAME would lead back to itself: it gets no records (D34).
pub(crate) fn refuse_loop(
    name: &Hostname,
    claims: &mut [RouteNameClaim<'_>],
    input: HolderInput<'_>,
) -> Option<NameDecision> {
    decide_records(name, claims, input, true)
}

fn decide_records(
    name: &Hostname,
    claims: &mut [RouteNameClaim<'_>],
    input: HolderInput<'_>,
    is_loop: bool,
) -> Option<NameDecision> {
    let holder = holders::holder(name, claims, input);
    let mut own: ShortVec<RouteNameClaim<'_>> =
        claims.iter().copied().filter(|claim| claim.on_records().is_some()).collect();
    let mut others = Vec::new();
    if let Some(holder) = &holder {
        others.extend(own.iter().copied().filter(|claim| *claim.namespace() != holder.namespace));
        own.retain(|claim| *claim.namespace() == holder.namespace);
    }
    if own.is_empty() && holder.is_none() {
        return None;
    }
    own.sort_by(RouteNameClaim::rank);
    others.sort_by(RouteNameClaim::rank);
    let SharedName { mut decision, winners, losses } = by_provider(name, &own, input.providers);
    let mut extras = NameExtras::default();
    for claim in &*winners {
        match is_loop {
            true => withhold_loop(name, claim, &mut extras),
            false => extras.policy_entries.extend(served(name, claim)),
        }
    }
    if is_loop {
        (decision.sets, decision.is_coverable) = (ShortVec::new(), false);
    }
    losses.into_iter().for_each(|loss| withhold(name, loss, &mut extras));
    if let Some(holder) = holder {
        decision.share_with(name, &holder, &others, &mut extras);
        extras.holder = Some(holder);
    }
    extras.addresses = decision.remove_unhealthy(name, &winners, input);
    decision.extras = (extras != NameExtras::default()).then(|| Box::new(extras));
    Some(decision)
}

/// What claims that may have a name come to.
struct SharedName<'b, 'a> {
    decision: NameDecision,
    winners: Cow<'b, [RouteNameClaim<'a>]>,
    losses: Vec<Loss<'a>>,
}

/// Merges claims, given in order: those that one provider publishes never compete with those of another.
fn by_provider<'b, 'a>(
    name: &Hostname,
    claims: &'b [RouteNameClaim<'a>],
    providers: &PublishingProviders,
) -> SharedName<'b, 'a> {
    let provider = |claim: &RouteNameClaim<'a>| claim.provider(name, providers);
    let first = claims.first().and_then(provider);
    if claims.iter().all(|claim| provider(claim) == first) {
        return of_provider(claims, first);
    }
    let mut groups: BTreeMap<Option<&Str>, Vec<RouteNameClaim<'a>>> = BTreeMap::new();
    claims.iter().for_each(|claim| groups.entry(provider(claim)).or_default().push(*claim));
    let (mut all, mut winners, mut losses) = (hold(&[], &[]), Vec::new(), Vec::new());
    (all.is_coverable, all.source) = (true, NameSource::HiddenFromWildcard);
    for (provider, claims) in groups {
        let mut part = of_provider(&claims, provider);
        all.sets.append(&mut part.decision.sets);
        all.is_coverable &= part.decision.is_coverable;
        all.source = all.source.min(part.decision.source);
        winners.extend_from_slice(&part.winners);
        losses.append(&mut part.losses);
    }
    SharedName { decision: all, winners: Cow::Owned(winners), losses }
}

/// Merges the claims that one provider publishes.
fn of_provider<'b, 'a>(claims: &'b [RouteNameClaim<'a>], provider: Option<&Str>) -> SharedName<'b, 'a> {
    let stand_ins = claims.partition_point(|claim| !claim.is_stand_in());
    let (own, stand_ins) = claims.split_at(stand_ins);
    let (winners, losses) = contest(own);
    let mut decision = hold(&winners, stand_ins);
    decision.sets.iter_mut().for_each(|set| set.provider = provider.cloned());
    SharedName { decision, winners, losses }
}

/// Withholds a name whose CNAME would lead back to itself, from a claim that would have it (D34).
fn withhold_loop(name: &Hostname, claim: &RouteNameClaim<'_>, extras: &mut NameExtras) {
    let obstacle = loop_obstacle(name, claim);
    let state = HostnameState::Skipped(obstacle.reason);
    extras.policy_entries.extend(policy_entry_of(name, claim, state, obstacle.message.clone()));
    let route = claim.route_claims.route.object();
    extras.withheld.push(obstacle.withhold(&route, name.as_str(), Some(claim.listener().key.clone())));
}

fn loop_obstacle(name: &Hostname, claim: &RouteNameClaim<'_>) -> Obstacle {
    let target = claim.targets().name().map(|target| &**target).unwrap_or_default();
    let (object, field) = match claim.claim().has_own_targets() {
        true => (claim.route_claims.route.object(), FieldPath::of("metadata.annotations")),
        false => (claim.gateway(), FieldPath::of("status.addresses")),
    };
    let message = match target == name.as_str() {
        true => format!("`{name}` would be a CNAME for itself"),
        false => format!("`{name}` would be a CNAME for `{target}`, which leads back to `{name}`"),
    };
    Obstacle { reason: reason::CNAME_LOOP, message, object, field }
}

/// Splits claims, given in order, into those that share the name and those that lose it.
fn contest<'b, 'a>(claims: &'b [RouteNameClaim<'a>]) -> (Cow<'b, [RouteNameClaim<'a>]>, Vec<Loss<'a>>) {
    if claims.iter().all(|claim| !claim.targets().is_name()) {
        return (Cow::Borrowed(claims), Vec::new());
    }
    let Some(first) = claims.first().copied() else { return (Cow::Borrowed(claims), Vec::new()) };
    let is_name = first.targets().is_name();
    let mut names: BTreeMap<Option<&Str>, RouteNameClaim<'a>> = BTreeMap::new();
    let (mut winners, mut losses) = (Vec::new(), Vec::new());
    for claim in claims.iter().copied() {
        if claim.targets().is_name() != is_name {
            losses.push(Loss { winner: first.gateway(), reason: reason::TYPE_CLASH, claim });
            continue;
        }
        let holder = names.entry(claim.route_claims.set_identifier()).or_insert(claim);
        if is_name && holder.targets() != claim.targets() {
            losses.push(Loss { winner: holder.gateway(), reason: reason::SEVERAL_CNAME_TARGETS, claim });
        } else {
            winners.push(claim);
        }
    }
    (Cow::Owned(winners), losses)
}

/// The decision about a name. Claims that need a wildcard only to cover other names accept the records of the claims on
/// the wildcard itself.
fn hold(winners: &[RouteNameClaim<'_>], stand_ins: &[RouteNameClaim<'_>]) -> NameDecision {
    if winners.is_empty() {
        return share(&contest(stand_ins).0);
    }
    let mut held = share(winners);
    if let [set] = held.sets.as_mut_slice() {
        let same = stand_ins.iter().filter(|claim| set.targets == *claim.targets());
        let same: Vec<_> = same.collect();
        if !same.is_empty() {
            set.routes =
                sorted(set.routes.iter().cloned().chain(same.iter().map(|claim| claim.route_claims.route.object())));
            let listeners = set.listeners.iter().cloned().chain(same.iter().map(|claim| claim.listener().key.clone()));
            set.listeners = sorted(listeners).into_vec().into();
        }
    }
    held
}

/// Merges claims that share a name; they are given in order.
fn share(winners: &[RouteNameClaim<'_>]) -> NameDecision {
    let sets = match winners.iter().any(|claim| claim.route_claims.set_identifier().is_some()) {
        false => record_set(None, winners).into_iter().collect(),
        true => {
            let mut sets: BTreeMap<Option<&Str>, Vec<RouteNameClaim<'_>>> = BTreeMap::new();
            for claim in winners {
                sets.entry(claim.route_claims.set_identifier()).or_default().push(*claim);
            }
            sets.into_iter().filter_map(|(id, claims)| record_set(id, &claims)).collect()
        }
    };
    NameDecision {
        sets,
        is_coverable: !winners.is_empty()
            && winners.iter().all(|claim| !claim.is_stand_in() && claim.claim().is_coverable),
        source: winners.iter().map(RouteNameClaim::source).min().unwrap_or(NameSource::Intersected),
        extras: None,
    }
}

fn record_set(set_identifier: Option<&Str>, claims: &[RouteNameClaim<'_>]) -> Option<RecordSet> {
    let first = claims.first()?.targets();
    let mut targets = first.clone();
    for other in claims.iter().map(RouteNameClaim::targets).filter(|other| *other != first) {
        Arc::make_mut(&mut targets).unite(other);
    }
    let route_ttl = claims.iter().find_map(|claim| claim.route_claims.ttl());
    let policy_ttl = || claims.iter().find_map(|claim| claim.listener().policy_ttl);
    let properties = claims.iter().map(|claim| claim.route_claims.properties()).find(|p| !p.is_empty());
    Some(RecordSet {
        provider: None,
        set_identifier: set_identifier.cloned(),
        targets,
        ttl: route_ttl.or_else(policy_ttl),
        properties: properties.map(<[_]>::to_vec).unwrap_or_default(),
        routes: routes(claims),
        listeners: listeners(claims),
    })
}

/// The listeners of claims, in order, without duplicates.
fn listeners(claims: &[RouteNameClaim<'_>]) -> SharedList<ListenerKey> {
    match claims {
        [claim] => claim.listener().alone.clone(),
        _ => sorted(claims.iter().map(|claim| claim.listener().key.clone())).into_vec().into(),
    }
}

/// The routes of claims; claims of one route are adjacent.
fn routes(claims: &[RouteNameClaim<'_>]) -> ShortVec<ObjectRef> {
    let first = claims[0].route_claims;
    if claims.iter().all(|claim| std::ptr::eq(claim.route_claims, first)) {
        return ShortVec::from_elem(first.route.object(), 1);
    }
    let mut routes: Vec<&RouteClaims> = claims.iter().map(|claim| claim.route_claims).collect();
    routes.dedup_by(|a, b| std::ptr::eq(*a, *b));
    sorted(routes.into_iter().map(|route_claims| route_claims.route.object()))
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> ShortVec<T> {
    let mut items: ShortVec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

impl NameDecision {
    /// Whether it has records.
    pub(crate) fn has_records(&self) -> bool {
        !self.sets.is_empty()
    }

    /// The namespace that holds the name, if Routes of several claim it.
    pub(crate) fn holder(&self) -> Option<&NameHolder> {
        self.extras()?.holder.as_ref()
    }

    /// Adds the claims of other namespaces than the holder's: those at its Gateways share the records as they are, the
    /// others get nothing.
    fn share_with(
        &mut self,
        name: &Hostname,
        holder: &NameHolder,
        others: &[RouteNameClaim<'_>],
        extras: &mut NameExtras,
    ) {
        let has_records = self.has_records();
        let (sharing, refused): (Vec<&RouteNameClaim<'_>>, Vec<&RouteNameClaim<'_>>) =
            others.iter().partition(|claim| has_records && holder.is_at(&claim.listener().gateway.1));
        for claim in refused.into_iter().filter(|claim| !claim.is_stand_in()) {
            let message = format!("{}; {}", holder.stated(name), at_another_gateway(claim));
            extras.policy_entries.extend(skipped(name, claim, reason::HOSTNAME_HELD, message.clone()));
            extras.withheld.push(held(name, claim, FieldPath::of("spec.hostnames"), message));
        }
        for claim in &sharing {
            if let Some(message) = self.values_not_counted(claim) {
                let message = format!("{}; {message}", holder.stated(name));
                extras.withheld.push(held(name, claim, FieldPath::of("metadata.annotations"), message));
            }
            extras.policy_entries.extend(served(name, claim).filter(|_| !claim.is_stand_in()));
        }
        self.sets.iter_mut().for_each(|set| set.share_with(&sharing));
    }

    /// Removes the addresses whose probes fail, and returns what is told about every address that is probed. Wildcards are
    /// not.
    fn remove_unhealthy(
        &mut self,
        name: &Hostname,
        winners: &[RouteNameClaim<'_>],
        input: HolderInput<'_>,
    ) -> Vec<(Key, AddressReport)> {
        let mut reports = Vec::new();
        if name.is_precise() && winners.iter().any(|claim| claim.probing_policy().is_some()) {
            for set in &mut self.sets {
                let is_here = |claim: &&RouteNameClaim<'_>| {
                    claim.route_claims.set_identifier() == set.set_identifier.as_ref()
                        && claim.provider(name, input.providers) == set.provider.as_ref()
                };
                let claims: Vec<_> = winners.iter().filter(is_here).copied().collect();
                set.remove_unhealthy(name, &claims, input.health, &mut reports);
            }
        }
        reports.sort();
        reports.dedup();
        reports
    }

    /// The values of a sharing claim that do not count, as text, if there are any.
    fn values_not_counted(&self, claim: &RouteNameClaim<'_>) -> Option<String> {
        if claim.is_stand_in() {
            return None;
        }
        let route_claims = claim.route_claims;
        let has = |counts: &dyn Fn(&RecordSet) -> bool| self.sets.iter().any(counts);
        let theirs = |set: &RecordSet| {
            claim.targets().by_type().all(|(kind, values)| {
                set.targets
                    .by_type()
                    .any(|(own, targets)| own == kind && values.iter().all(|value| targets.contains(value)))
            })
        };
        let mut ignored = Vec::new();
        ignored.extend((!has(&theirs)).then_some("targets"));
        ignored.extend(route_claims.ttl().filter(|ttl| !has(&|set| set.ttl == Some(*ttl))).map(|_| "TTL"));
        let id = route_claims.set_identifier();
        ignored.extend(id.filter(|id| !has(&|set| set.set_identifier.as_ref() == Some(*id))).map(|_| "set identifier"));
        let properties = route_claims.properties();
        let has_properties = properties.is_empty() || has(&|set| set.properties == properties);
        ignored.extend((!has_properties).then_some("provider properties"));
        (!ignored.is_empty()).then(|| format!("what this Route says of {} does not count", ignored.join(" and ")))
    }

    /// Parts that most names lack.
    pub(crate) fn extras(&self) -> Option<&NameExtras> {
        self.extras.as_deref()
    }

    /// The targets of its CNAME records: one for each set identifier.
    pub(crate) fn cname_targets(&self) -> impl Iterator<Item = &Str> {
        self.sets.iter().filter_map(|set| set.targets.name())
    }

    /// Whether it is a wildcard that a route serves, and not only one that covers precise names.
    pub(crate) fn is_routed(&self) -> bool {
        self.has_records() && self.source != NameSource::ListenerWildcard
    }

    /// Whether HostnameGrants let the namespaces of a wildcard's routes have a name that is hidden from it (D28, D35).
    pub(crate) fn may_serve_hidden(&self, name: &Hostname, grants: GrantRules<'_>) -> bool {
        self.routes().all(|route| grants.refusal(name, route.namespace()).is_none())
    }

    /// Whether the records are equal, regardless of withheld routes and policy entries.
    pub(crate) fn is_same_to_readers(&self, other: &NameDecision) -> bool {
        self.sets == other.sets && self.source == other.source
    }

    /// The routes that share the name.
    pub(crate) fn routes(&self) -> impl Iterator<Item = &ObjectRef> {
        self.sets.iter().flat_map(|set| &set.routes)
    }

    /// Whether another name would get the same answer.
    pub(crate) fn is_same_answer(&self, other: &NameDecision) -> bool {
        let ([wanted], [given]) = (&*self.sets, &*other.sets) else { return false };
        wanted.targets == given.targets
            && wanted.provider == given.provider
            && wanted.ttl == given.ttl
            && wanted.set_identifier == given.set_identifier
            && wanted.properties == given.properties
    }

    /// The records of the name.
    pub(crate) fn records<'a>(&'a self, name: &'a Hostname) -> impl Iterator<Item = Record> + 'a {
        self.sets.iter().flat_map(move |set| set.records(name, self.source))
    }

    /// The records of a name that is hidden from this wildcard.
    pub(crate) fn hidden_records<'a>(&'a self, name: &'a Hostname) -> impl Iterator<Item = Record> + 'a {
        self.sets.iter().flat_map(move |set| set.records(name, NameSource::HiddenFromWildcard))
    }
}

impl RecordSet {
    /// Adds the routes and listeners of claims that share the records. The holder's routes stay in front: markers name
    /// the first.
    fn share_with(&mut self, claims: &[&RouteNameClaim<'_>]) {
        let is_listed = |claim: &&RouteNameClaim<'_>| !claim.is_stand_in() || self.targets == *claim.targets();
        let claims: Vec<_> = claims.iter().copied().filter(is_listed).collect();
        if claims.is_empty() {
            return;
        }
        self.routes.extend(sorted(claims.iter().map(|claim| claim.route_claims.route.object())));
        let listeners = self.listeners.iter().cloned();
        let listeners = listeners.chain(claims.iter().map(|claim| claim.listener().key.clone()));
        self.listeners = sorted(listeners).into_vec().into();
    }

    /// Removes the addresses whose probes fail by every claim on them, never the last one of a type. Who asks for type A
    /// gets an answer although only AAAA records would be left: resolvers would remember an empty one.
    fn remove_unhealthy(
        &mut self,
        name: &Hostname,
        claims: &[RouteNameClaim<'_>],
        health: &ObservedHealth,
        reports: &mut Vec<(Key, AddressReport)>,
    ) {
        let all = self.targets.clone();
        let mut removed = BTreeSet::new();
        for (_, targets) in all.by_type() {
            let since = |target: &Str| {
                let claims = claims.iter().filter(|claim| claim.has_target(target));
                health::unhealthy_since(claims.map(|claim| claim.health_of(name, target, health)))
            };
            let since: Vec<Option<i64>> = targets.iter().map(since).collect();
            for (target, publication) in targets.iter().zip(health::decide(&since)) {
                if publication == AddressPublication::Removed {
                    removed.insert(target);
                }
                let asking = claims.iter().filter(|claim| claim.has_target(target));
                reports.extend(asking.filter_map(|claim| address_report(name, claim, target, health, publication)));
            }
        }
        if !removed.is_empty() {
            self.targets = Arc::new(all.without(&removed));
        }
    }

    fn records<'a>(&'a self, name: &'a Hostname, source: NameSource) -> impl Iterator<Item = Record> + 'a {
        self.targets.by_type().map(move |(kind, targets)| Record {
            name: name.text().clone(),
            kind,
            targets: targets.clone(),
            ttl: self.ttl,
            set_identifier: self.set_identifier.clone(),
            provider_specific: self.properties.clone(),
            routes: self.routes.clone(),
            listeners: self.listeners.clone(),
            source,
            provider: self.provider.clone(),
        })
    }
}

/// What the policy of a claim is told about one address.
fn address_report(
    name: &Hostname,
    claim: &RouteNameClaim<'_>,
    address: &Str,
    health: &ObservedHealth,
    publication: AddressPublication,
) -> Option<(Key, AddressReport)> {
    let policy = claim.probing_policy()?;
    let known = claim.health_of(name, address, health);
    let report = AddressReport {
        hostname: name.text().clone(),
        address: address.clone(),
        state: known.map_or(HealthState::Unknown, |known| known.state),
        since: known.map(|known| known.since),
        error: known.map_or_else(Str::default, |known| known.error.clone()),
        publication,
    };
    Some((policy.clone(), report))
}

fn served(name: &Hostname, claim: &RouteNameClaim<'_>) -> Option<PolicyStatusEntry> {
    policy_entry_of(name, claim, HostnameState::Served, String::new())
}

fn skipped(name: &Hostname, claim: &RouteNameClaim<'_>, reason: Reason, message: String) -> Option<PolicyStatusEntry> {
    policy_entry_of(name, claim, HostnameState::Skipped(reason), message)
}

/// Where a refused claim is made.
fn at_another_gateway(claim: &RouteNameClaim<'_>) -> String {
    format!("its Routes do not attach to {}", claim.gateway())
}

/// A hostname that another namespace holds.
fn held(name: &Hostname, claim: &RouteNameClaim<'_>, field: FieldPath, message: String) -> Withheld {
    let route = claim.route_claims.route.object();
    let obstacle = Obstacle { reason: reason::HOSTNAME_HELD, message, object: route.clone(), field };
    obstacle.withhold(&route, name.as_str(), Some(claim.listener().key.clone()))
}

fn policy_entry_of(
    name: &Hostname,
    claim: &RouteNameClaim<'_>,
    state: HostnameState,
    message: String,
) -> Option<PolicyStatusEntry> {
    let (_, policy) = claim.listener().policy.as_ref()?;
    let report = HostnameReport {
        hostname: name.text().clone(),
        listener: claim.listener().key.clone(),
        route: claim.route_claims.route.object(),
        state,
        message,
    };
    Some(policy_entry(Kind::DnsPolicy, policy, report))
}

fn withhold(name: &Hostname, loss: Loss<'_>, extras: &mut NameExtras) {
    let Loss { claim, winner, reason } = loss;
    let gateway = claim.gateway();
    let message = match reason {
        reason::TYPE_CLASH => {
            let (own, theirs) =
                if claim.targets().is_name() { ("a CNAME", "addresses") } else { ("addresses", "a CNAME") };
            format!("`{name}` would have {own} by {gateway}, and has {theirs} by {winner}, which goes first")
        }
        _ => format!("`{name}` is a CNAME already by {winner}, which goes first, and has one target only"),
    };
    extras.policy_entries.extend(skipped(name, &claim, reason, message.clone()));
    let obstacle = Obstacle { reason, message, object: gateway, field: FieldPath::of("status.addresses") };
    let route = claim.route_claims.route.object();
    extras.withheld.push(obstacle.withhold(&route, name.as_str(), Some(claim.listener().key.clone())));
}
