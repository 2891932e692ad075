//! From claims on a name to its records: who shares it, who loses it, and whether a wildcard may stand for it.
//!
//! Addresses of all claims on a name are united (D8). A CNAME stands alone: where one claim wants it and another addresses,
//! the claim that goes first keeps the name. A wildcard that only stands for other names makes no difference to those who
//! want the wildcard itself. A name that a listener's wildcard answers for by RFC 4592, with the very same
//! records, needs none of its own; every other name has its own (D13).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::addresses::Targets;
use super::listener_context::Seat;
use super::obstacles::Obstacle;
use super::route_claims::{Claim, Contribution};
use super::strict::{Told, told};
use crate::attachment::{ListenerId, ListenerKey};
use crate::diagnostic::FieldPath;
use crate::few::Few;
use crate::model::{Kind, List, ObjectRef, Str};
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState};
use crate::publication::{NameSource, Record, Withheld};
use crate::reason::{self, Reason};

/// What became of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    sets: Few<RecordSet>,
    /// Whether a wildcard may stand for it: every claim says so.
    pub(crate) is_coverable: bool,
    source: NameSource,
    rest: Option<Box<Rest>>,
}

/// What most names have nothing of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Routes that do not get the name.
    pub(crate) withheld: Vec<Withheld>,
    /// What policies are told.
    pub(crate) told: Vec<Told>,
}

/// Records of one name that are told apart by a set identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordSet {
    set_identifier: Option<Str>,
    targets: Arc<Targets>,
    ttl: Option<u32>,
    properties: Vec<(Str, Str)>,
    routes: Few<ObjectRef>,
    listeners: List<ListenerKey>,
}

/// Lists of listeners that several names have, each made once. Only asked, never walked.
#[derive(Default)]
pub(super) struct Memo {
    asked: Vec<ListenerId>,
    known: HashMap<Box<[ListenerId]>, List<ListenerKey>>,
}

/// A claim on a name, by the route that has it.
#[derive(Clone, Copy)]
pub(crate) struct Bid<'a> {
    contribution: &'a Contribution,
    claim: &'a Claim,
    /// Whether it is only for the listener's wildcard, to stand for other names.
    is_stand_in: bool,
}

/// A claim that does not get its name.
struct Loss<'a> {
    bid: Bid<'a>,
    winner: ObjectRef,
    reason: Reason,
}

impl<'a> Bid<'a> {
    /// Every claim of a route on a name, its own and those for a wildcard that is to stand for other names.
    pub(crate) fn all(contribution: &'a Contribution, name: &Hostname, into: &mut Vec<Bid<'a>>) {
        for wanted in &contribution.names {
            let is_own = wanted.name == *name;
            for claim in &wanted.claims {
                if is_own {
                    into.push(Bid { contribution, claim, is_stand_in: false });
                }
                if claim.is_coverable && claim.outlet.seat.wildcard.as_ref() == Some(name) {
                    into.push(Bid { contribution, claim, is_stand_in: true });
                }
            }
        }
    }

    fn targets(&self) -> &'a Arc<Targets> {
        self.claim.targets()
    }

    fn source(&self) -> NameSource {
        if self.is_stand_in { NameSource::ListenerWildcard } else { self.claim.source }
    }

    fn gateway(&self) -> ObjectRef {
        self.seat().gateway_object()
    }

    fn seat(&self) -> &'a Seat {
        &self.claim.outlet.seat
    }

    /// The order of claims on one name: those under a policy, by its age; then the Gateway's, then the route's.
    fn rank(&self, other: &Self) -> Ordering {
        let (seat, theirs) = (self.seat(), other.seat());
        self.is_stand_in
            .cmp(&other.is_stand_in)
            .then_with(|| seat.by_policy(theirs))
            .then_with(|| seat.gateway.cmp(&theirs.gateway))
            .then_with(|| by_route(self.contribution, other.contribution))
            .then_with(|| seat.by_precedence(theirs))
            .then_with(|| self.claim.source.cmp(&other.claim.source))
    }
}

fn by_route(a: &Contribution, b: &Contribution) -> Ordering {
    if std::ptr::eq(a, b) {
        return Ordering::Equal;
    }
    let (a, b) = (&a.route, &b.route);
    a.meta.seniority().cmp(&b.meta.seniority()).then_with(|| a.kind.kind().cmp(&b.kind.kind()))
}

/// The names that a route has claims on, its own and the wildcards that are to stand for them; a name may come twice.
pub(crate) fn names_of(contribution: &Contribution) -> impl Iterator<Item = &Hostname> {
    contribution.names.iter().flat_map(|wanted| {
        let stand_ins = wanted.claims.iter().filter(|claim| claim.is_coverable);
        std::iter::once(&wanted.name).chain(stand_ins.filter_map(|claim| claim.outlet.seat.wildcard.as_ref()))
    })
}

/// Decides about a name.
pub(crate) fn decide(name: &Hostname, bids: &mut [Bid<'_>]) -> Decision {
    decide_next(name, bids, &mut Memo::default())
}

/// Decides about one of many names.
pub(super) fn decide_next(name: &Hostname, bids: &mut [Bid<'_>], memo: &mut Memo) -> Decision {
    if !bids.is_sorted_by(|a, b| a.rank(b).is_le()) {
        bids.sort_by(Bid::rank);
    }
    let wishes = bids.partition_point(|bid| !bid.is_stand_in);
    let (wishes, stand_ins) = bids.split_at(wishes);
    let (winners, losses) = contest(wishes);
    let mut decision = hold(&winners, stand_ins, memo);
    let mut rest = Rest::default();
    for bid in &*winners {
        rest.told.extend(served(name, bid));
    }
    losses.into_iter().for_each(|loss| withhold(name, loss, &mut rest));
    decision.rest = (rest != Rest::default()).then(|| Box::new(rest));
    decision
}

/// Tells the claims that can share a name from those that cannot; they come in order.
fn contest<'b, 'a>(bids: &'b [Bid<'a>]) -> (Cow<'b, [Bid<'a>]>, Vec<Loss<'a>>) {
    if bids.iter().all(|bid| !bid.targets().is_name()) {
        return (Cow::Borrowed(bids), Vec::new());
    }
    let Some(first) = bids.first().copied() else { return (Cow::Borrowed(bids), Vec::new()) };
    let is_name = first.targets().is_name();
    let mut names: BTreeMap<Option<&Str>, Bid<'a>> = BTreeMap::new();
    let (mut winners, mut losses) = (Vec::new(), Vec::new());
    for bid in bids.iter().copied() {
        if bid.targets().is_name() != is_name {
            losses.push(Loss { winner: first.gateway(), reason: reason::TYPE_CLASH, bid });
            continue;
        }
        let holder = names.entry(bid.contribution.set_identifier()).or_insert(bid);
        if is_name && holder.targets() != bid.targets() {
            losses.push(Loss { winner: holder.gateway(), reason: reason::SEVERAL_CNAME_TARGETS, bid });
        } else {
            winners.push(bid);
        }
    }
    (Cow::Owned(winners), losses)
}

/// What a name has. Who only needs a wildcard to stand for other names takes it as those have it who want the wildcard
/// itself, or not at all.
fn hold(winners: &[Bid<'_>], stand_ins: &[Bid<'_>], memo: &mut Memo) -> Decision {
    if winners.is_empty() {
        return share(&contest(stand_ins).0, memo);
    }
    let mut held = share(winners, memo);
    if let [set] = held.sets.as_mut_slice() {
        let same = stand_ins.iter().filter(|bid| set.targets == *bid.targets());
        let same: Vec<_> = same.collect();
        if !same.is_empty() {
            set.routes =
                sorted(set.routes.iter().cloned().chain(same.iter().map(|bid| bid.contribution.route.object())));
            let listeners = set.listeners.iter().cloned().chain(same.iter().map(|bid| bid.seat().key.clone()));
            set.listeners = sorted(listeners).into_vec().into();
        }
    }
    held
}

/// Unites claims that share a name; they come in order.
fn share(winners: &[Bid<'_>], memo: &mut Memo) -> Decision {
    let sets = match winners.iter().any(|bid| bid.contribution.set_identifier().is_some()) {
        false => record_set(None, winners, memo).into_iter().collect(),
        true => {
            let mut sets: BTreeMap<Option<&Str>, Vec<Bid<'_>>> = BTreeMap::new();
            for bid in winners {
                sets.entry(bid.contribution.set_identifier()).or_default().push(*bid);
            }
            sets.into_iter().filter_map(|(id, bids)| record_set(id, &bids, memo)).collect()
        }
    };
    Decision {
        sets,
        is_coverable: winners.iter().all(|bid| !bid.is_stand_in && bid.claim.is_coverable),
        source: winners.iter().map(Bid::source).min().unwrap_or(NameSource::Intersected),
        rest: None,
    }
}

fn record_set(set_identifier: Option<&Str>, bids: &[Bid<'_>], memo: &mut Memo) -> Option<RecordSet> {
    let first = bids.first()?.targets();
    let mut targets = first.clone();
    for other in bids.iter().map(Bid::targets).filter(|other| *other != first) {
        Arc::make_mut(&mut targets).unite(other);
    }
    let route_ttl = bids.iter().find_map(|bid| bid.contribution.ttl());
    let policy_ttl = || bids.iter().find_map(|bid| bid.seat().policy_ttl);
    let properties = bids.iter().map(|bid| bid.contribution.properties()).find(|p| !p.is_empty());
    Some(RecordSet {
        set_identifier: set_identifier.cloned(),
        targets,
        ttl: route_ttl.or_else(policy_ttl),
        properties: properties.map(<[_]>::to_vec).unwrap_or_default(),
        routes: routes(bids),
        listeners: memo.listeners(bids),
    })
}

impl Memo {
    /// The listeners of claims.
    fn listeners(&mut self, bids: &[Bid<'_>]) -> List<ListenerKey> {
        if let [bid] = bids {
            return bid.seat().alone.clone();
        }
        self.asked.clear();
        self.asked.extend(bids.iter().map(|bid| bid.claim.outlet.id));
        if let Some(known) = self.known.get(&self.asked[..]) {
            return known.clone();
        }
        let listeners: List<ListenerKey> = sorted(bids.iter().map(|bid| bid.seat().key.clone())).into_vec().into();
        self.known.insert(self.asked[..].into(), listeners.clone());
        listeners
    }
}

/// The routes behind claims; those of one route stand together.
fn routes(bids: &[Bid<'_>]) -> Few<ObjectRef> {
    let first = bids[0].contribution;
    if bids.iter().all(|bid| std::ptr::eq(bid.contribution, first)) {
        return Few::One(first.route.object());
    }
    let mut routes: Vec<&Contribution> = bids.iter().map(|bid| bid.contribution).collect();
    routes.dedup_by(|a, b| std::ptr::eq(*a, *b));
    sorted(routes.into_iter().map(|contribution| contribution.route.object()))
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Few<T> {
    match items.collect() {
        Few::Many(several) => {
            let mut several = several.into_vec();
            several.sort_unstable();
            several.dedup();
            several.into()
        }
        few => few,
    }
}

impl Decision {
    /// What most names have nothing of.
    pub(crate) fn rest(&self) -> Option<&Rest> {
        self.rest.as_deref()
    }

    /// Whether the records are the same, whatever else is told.
    pub(crate) fn is_same_to_readers(&self, other: &Decision) -> bool {
        self.sets == other.sets && self.source == other.source
    }

    /// The routes that have the name.
    pub(crate) fn routes(&self) -> impl Iterator<Item = &ObjectRef> {
        self.sets.iter().flat_map(|set| &set.routes)
    }

    /// Whether another name would be answered in the same way.
    pub(crate) fn is_same_answer(&self, other: &Decision) -> bool {
        let ([wanted], [given]) = (&*self.sets, &*other.sets) else { return false };
        wanted.targets == given.targets
            && wanted.ttl == given.ttl
            && wanted.set_identifier == given.set_identifier
            && wanted.properties == given.properties
    }

    /// Its records, where the decision is not needed any more.
    pub(crate) fn into_records(self, name: &Hostname, into: &mut Vec<Record>) {
        let source = self.source;
        match self.sets {
            Few::One(set) => set.into_records(name, source, into),
            sets => sets.iter().for_each(|set| into.extend(set.records(name, source))),
        }
    }

    /// Its records.
    pub(crate) fn records<'a>(&'a self, name: &'a Hostname) -> impl Iterator<Item = Record> + 'a {
        self.sets.iter().flat_map(move |set| set.records(name, self.source))
    }
}

impl RecordSet {
    fn into_records(self, name: &Hostname, source: NameSource, into: &mut Vec<Record>) {
        let mut types = self.targets.by_type();
        let (Some((kind, targets)), None) = (types.next(), types.next()) else {
            return into.extend(self.records(name, source));
        };
        let targets = targets.clone();
        into.push(Record {
            name: name.text().clone(),
            kind,
            targets,
            ttl: self.ttl,
            set_identifier: self.set_identifier,
            provider_specific: self.properties,
            routes: self.routes,
            listeners: self.listeners,
            source,
        });
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
        })
    }
}

fn served(name: &Hostname, bid: &Bid<'_>) -> Option<Told> {
    told_by(name, bid, HostnameState::Served, String::new())
}

fn told_by(name: &Hostname, bid: &Bid<'_>, state: HostnameState, message: String) -> Option<Told> {
    let (_, policy) = bid.seat().policy.as_ref()?;
    let report = HostnameReport {
        hostname: name.text().clone(),
        listener: bid.seat().key.clone(),
        route: bid.contribution.route.object(),
        state,
        message,
    };
    Some(told(Kind::DnsPolicy, policy, report))
}

fn withhold(name: &Hostname, loss: Loss<'_>, rest: &mut Rest) {
    let Loss { bid, winner, reason } = loss;
    let gateway = bid.gateway();
    let message = match reason {
        reason::TYPE_CLASH => {
            let (own, theirs) =
                if bid.targets().is_name() { ("a CNAME", "addresses") } else { ("addresses", "a CNAME") };
            format!("`{name}` would have {own} by {gateway}, and has {theirs} by {winner}, which goes first")
        }
        _ => format!("`{name}` is a CNAME already by {winner}, which goes first, and has one target only"),
    };
    rest.told.extend(told_by(name, &bid, HostnameState::Skipped(reason), message.clone()));
    let obstacle = Obstacle { reason, message, object: gateway, field: FieldPath::of("status.addresses") };
    let route = bid.contribution.route.object();
    rest.withheld.push(obstacle.withhold(&route, name.as_str(), Some(bid.seat().key.clone())));
}
