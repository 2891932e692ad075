//! Everything at once, from nothing.
//!
//! Routes are taken one after the other, as they lie in memory. What the records of a plain route need of it is taken right
//! there, and only put into order afterwards; routes that have more to tell are walked and decided about as the engine does
//! it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::lanes::Lanes;
use super::records;
use super::route_claims;
use super::servings::Servings;
use super::strict::{Assembly, Base, Bid, Context, Contribution, Decision, Ledger, Outlets, Selected, names_of};
use crate::attachment::Topology;
use crate::attachment::routes::{self, bind_parents};
use crate::few::Few;
use crate::model::{ObjectRef, Route, Str};
use crate::names::Hostname;
use crate::policy::Policies;
use crate::publication::wildcards::{self, Tree};
use crate::publication::{Desired, PublicationSettings, Record};
use crate::snapshot::Snapshot;

mod secrets;

pub(super) use secrets::Secrets;
use secrets::{Routes, add_behind};

/// Everything that ought to exist. `others` are names that exist for other reasons.
pub fn publish(snapshot: &Snapshot, topology: &Topology, settings: &PublicationSettings, others: &[Str]) -> Desired {
    let policies = Policies::build(snapshot, topology);
    let base = Base { snapshot, topology, settings };
    let outlets = Outlets::of(Context { base, policies: &policies });
    let mut walk = Walk { base, outlets: &outlets, bound: Default::default(), memo: Default::default() };
    let (crowd, Goods { parts, behind }) = Crowd::of(&mut walk);
    let settled = crowd.settle(&mut walk);
    let covered = settled.covered(others);
    let secrets = crowd.secrets(settings, &settled, behind);
    let mut ledger = Ledger::default();
    crowd.walked.iter().for_each(|(_, contribution)| ledger.add_route(contribution));
    settled.decided.iter().for_each(|(_, decision)| ledger.add_name(decision));
    secrets.iter().for_each(|secret| ledger.add_secret(secret));
    let mut desired = Desired { diagnostics: policies.diagnostics(), ..Desired::default() };
    desired.policies = ledger.reports(&policies, |name| settled.has(name) && !covered.contains(name));
    let mut assembly = Assembly { desired, told: BTreeSet::new() };
    for gateway in snapshot.gateways.values() {
        assembly.selected(&Selected::gateway(gateway, settings));
    }
    for set in snapshot.listener_sets.values() {
        assembly.selected(&Selected::set(set, settings));
    }
    crowd.walked.iter().for_each(|(_, contribution)| assembly.route(contribution));
    settled.assemble(&crowd, parts, &covered, &mut assembly);
    assembly.desired.certificates.reserve(secrets.len());
    secrets.into_iter().for_each(|secret| assembly.secret(secret));
    assembly.finish()
}

/// Walks routes that have more to tell.
struct Walk<'a> {
    base: Base<'a>,
    outlets: &'a Outlets,
    bound: routes::Memo,
    memo: route_claims::Memo,
}

impl Walk<'_> {
    fn route(&mut self, route: &Arc<Route>) -> Contribution {
        let Base { snapshot, topology, .. } = self.base;
        let state = bind_parents(snapshot, topology, route, &mut self.bound);
        route_claims::of_next_route(self.base, self.outlets, &state, &mut self.memo)
    }
}

/// All routes, with what each of them wants.
struct Crowd<'a> {
    /// The names of plain routes, in the order of routes.
    lines: Vec<Line<'a>>,
    /// Where they are served.
    servings: Servings<'a>,
    /// The other routes, each with its place among all.
    walked: Vec<(u32, Contribution)>,
}

/// What is made on the way.
struct Goods {
    /// What each line gives its records; taken while its route is near.
    parts: Vec<Option<Parts>>,
    /// By number of the Secret.
    behind: Vec<Routes>,
}

/// What the records of a name do not share with others.
struct Parts {
    name: Str,
    route: ObjectRef,
}

/// A name of a plain route.
struct Line<'a> {
    name: &'a Hostname,
    route: &'a Arc<Route>,
    created: i64,
    /// Where the route stands among all.
    place: u32,
    serving: u32,
}

/// A route wants a name, for itself or as a wildcard that is to stand for others.
#[derive(Clone, Copy)]
struct Want {
    /// The first bytes of the name as numbers: names that differ there are ordered by them.
    front: (u64, u64),
    /// Which line; those of walked routes are counted on behind them.
    line: u32,
}

/// A name that a walked route wants.
struct Wanted<'c> {
    name: &'c Hostname,
    contribution: &'c Contribution,
    place: u32,
}

/// So many routes are looked at together.
const NEAR: usize = 16;

/// Reads a little of everything that is looked at of some routes: what is far away in memory comes for all of them at once, and
/// not one piece after the other.
fn look_at(routes: &[(usize, &Arc<Route>)]) {
    let some = routes.iter().map(|(_, route)| {
        let hostname = route.hostnames.first().map_or(0, |written| written.text().len());
        let label = route.meta.labels.iter().next().map_or(0, |(key, _)| key.len());
        let name = route.meta.key.name.as_bytes().first().copied().unwrap_or_default();
        hostname + label + usize::from(name)
    });
    std::hint::black_box(some.sum::<usize>());
}

/// Takes in routes, one after the other.
struct Gathering<'a> {
    lanes: Lanes<'a>,
    lines: Vec<Line<'a>>,
    walked: Vec<(u32, Contribution)>,
    goods: Goods,
}

impl<'a> Gathering<'a> {
    fn new(walk: &Walk<'a>) -> Self {
        let routes = walk.base.snapshot.routes.len();
        let secrets = Secrets::of_all(walk.outlets);
        // As many as there are if every Secret has as many.
        let many = routes / secrets.keys.len().max(1) + 4;
        let behind = secrets.keys.iter().map(|_| Vec::with_capacity(many)).collect();
        Gathering {
            lanes: Lanes::new(walk.base, walk.outlets, secrets),
            lines: Vec::with_capacity(routes),
            walked: Vec::new(),
            goods: Goods { parts: Vec::with_capacity(routes), behind },
        }
    }

    /// Adds a plain route; `false` where it is none.
    fn passes(&mut self, place: u32, route: &'a Arc<Route>) -> bool {
        let Gathering { lanes, lines, goods, .. } = self;
        let first = lines.len();
        let created = route.meta.created.get().unwrap_or(i64::MAX);
        let is_plain = lanes.pass(route, |name, serving| lines.push(Line { name, route, created, place, serving }));
        if !is_plain {
            lines.truncate(first);
            return false;
        }
        for line in &lines[first..] {
            let serving = lanes.servings().at(line.serving);
            goods.parts.push(Some(Parts { name: line.name.text().clone(), route: route.object() }));
            serving.secrets.iter().for_each(|(secret, _)| add_behind(&mut goods.behind[*secret as usize], route));
        }
        true
    }

    fn add_walked(&mut self, place: u32, contribution: Contribution) {
        let secrets = self.lanes.servings().secrets();
        for ask in contribution.asks(place).filter(|ask| !ask.is_added) {
            for secret in secrets.of(ask.outlet) {
                add_behind(&mut self.goods.behind[*secret as usize], &contribution.route);
            }
        }
        self.walked.push((place, contribution));
    }
}

impl<'a> Crowd<'a> {
    fn of(walk: &mut Walk<'a>) -> (Self, Goods) {
        let mut gathering = Gathering::new(walk);
        let (mut routes, mut near) = (walk.base.snapshot.routes.values().enumerate(), Vec::with_capacity(NEAR));
        loop {
            near.clear();
            near.extend(routes.by_ref().take(NEAR));
            if near.is_empty() {
                break;
            }
            look_at(&near);
            for (place, route) in near.drain(..) {
                if !gathering.passes(place as u32, route) {
                    gathering.add_walked(place as u32, walk.route(route));
                }
            }
        }
        let Gathering { lanes, lines, walked, goods } = gathering;
        (Crowd { lines, walked, servings: lanes.into_servings() }, goods)
    }

    /// Everything that routes want, by name and then by route.
    fn order(&self, wanted: &[Wanted<'_>]) -> Vec<Want> {
        let lines = self.lines.iter().map(|line| line.name).chain(wanted.iter().map(|wanted| wanted.name));
        let mut order: Vec<Want> = Vec::with_capacity(self.lines.len() + wanted.len());
        order.extend(lines.enumerate().map(|(line, name)| Want { front: front(name), line: line as u32 }));
        let whole = |(first, second): (u64, u64)| u128::from(first) << 64 | u128::from(second);
        order.sort_unstable_by_key(|want| whole(want.front));
        for same in order.chunk_by_mut(|a, b| a.front == b.front).filter(|same| same.len() > 1) {
            same.sort_unstable_by_key(|want| self.name_and_place(wanted, *want));
        }
        order
    }

    fn name_and_place<'c>(&'c self, wanted: &[Wanted<'c>], want: Want) -> (&'c Hostname, u32) {
        match self.lines.get(want.line as usize) {
            Some(line) => (line.name, line.place),
            None => {
                let wanted = &wanted[want.line as usize - self.lines.len()];
                (wanted.name, wanted.place)
            }
        }
    }

    /// Decides about every name.
    fn settle<'c>(&'c self, walk: &mut Walk<'a>) -> Settled<'c> {
        let walked = self.walked.iter().flat_map(|(place, contribution)| {
            names_of(contribution).map(move |name| Wanted { name, contribution, place: *place })
        });
        let wanted: Vec<Wanted<'c>> = walked.collect();
        let order = self.order(&wanted);
        let mut outcomes = Vec::with_capacity(order.len());
        let mut decided = Vec::new();
        let mut memo = records::Memo::default();
        let is_same = |a: &Want, b: &Want| {
            a.front == b.front && self.name_and_place(&wanted, *a).0 == self.name_and_place(&wanted, *b).0
        };
        for same in order.chunk_by(is_same) {
            let (name, wants) = (self.name_and_place(&wanted, same[0]).0, same.len() as u32);
            if self.is_plain(same) {
                outcomes.push(Outcome { name, from: Source::Lines, wants });
                continue;
            }
            outcomes.push(Outcome { name, from: Source::Decision, wants });
            decided.push((name, self.decide(walk, name, same, &wanted, &mut memo)));
        }
        Settled { outcomes, decided, order, wanted }
    }

    /// Whether plain routes, and only those, want a name at the same listeners.
    fn is_plain(&self, same: &[Want]) -> bool {
        let serving = |want: &Want| self.lines.get(want.line as usize).map(|line| line.serving);
        let first = serving(&same[0]);
        first.is_some() && same[1..].iter().all(|want| serving(want) == first)
    }

    /// Decides about a name that is wanted at different listeners, or by a route that has more to tell.
    fn decide(
        &self,
        walk: &mut Walk<'a>,
        name: &Hostname,
        same: &[Want],
        wanted: &[Wanted<'_>],
        memo: &mut records::Memo,
    ) -> Decision {
        let lines = same.iter().filter_map(|want| self.lines.get(want.line as usize));
        let lines: Vec<Contribution> = lines.map(|line| walk.route(line.route)).collect();
        let walked = same.iter().filter_map(|want| (want.line as usize).checked_sub(self.lines.len()));
        let mut walked: Vec<&Wanted<'_>> = walked.map(|number| &wanted[number]).collect();
        walked.dedup_by_key(|wanted| wanted.place);
        let mut bids = Vec::with_capacity(same.len());
        for contribution in lines.iter().chain(walked.into_iter().map(|wanted| wanted.contribution)) {
            Bid::all(contribution, name, &mut bids);
        }
        records::decide_next(name, &mut bids, memo)
    }
}

/// What became of all names.
struct Settled<'c> {
    /// In order.
    outcomes: Vec<Outcome<'c>>,
    /// What was decided, in order.
    decided: Vec<(&'c Hostname, Decision)>,
    /// The wants behind all of them, in the same order.
    order: Vec<Want>,
    wanted: Vec<Wanted<'c>>,
}

/// What became of one name.
struct Outcome<'c> {
    name: &'c Hostname,
    from: Source,
    /// How many want it.
    wants: u32,
}

/// Where the records of a name come from.
enum Source {
    /// They were made for plain routes.
    Lines,
    /// They follow from a decision.
    Decision,
}

impl<'c> Settled<'c> {
    fn decision(&self, name: &str) -> Option<&Decision> {
        let place = self.decided.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(&self.decided[place].1)
    }

    fn has(&self, name: &str) -> bool {
        self.outcomes.binary_search_by(|outcome| outcome.name.as_str().cmp(name)).is_ok()
    }

    /// The names that have records of their own in any case.
    fn owners(&self) -> impl Iterator<Item = &'c str> {
        let mut decided = self.decided.iter();
        let is_owner = move |outcome: &&Outcome<'_>| match outcome.from {
            Source::Lines => true,
            Source::Decision => decided.next().is_some_and(|(_, decision)| !decision.is_coverable),
        };
        self.outcomes.iter().filter(is_owner).map(|outcome| outcome.name.as_str())
    }

    /// The names that need no records of their own, because a wildcard answers for them.
    fn covered(&self, others: &[Str]) -> BTreeSet<Str> {
        let coverable = || self.decided.iter().filter(|(_, decision)| decision.is_coverable).map(|(name, _)| *name);
        if coverable().next().is_none() {
            return BTreeSet::new();
        }
        let mut tree = Tree::with_room(self.outcomes.len());
        self.owners().for_each(|name| tree.insert(name));
        others.iter().for_each(|name| tree.insert_existing(name));
        // The names of plain routes are no wildcards, so that whatever covers a name was decided about.
        let suits = |name: &str, owner: &str| match (self.decision(name), self.decision(owner)) {
            (Some(wanted), Some(given)) => wanted.is_same_answer(given),
            _ => false,
        };
        let explicit = wildcards::explicit(&mut tree, coverable().map(Hostname::as_str), suits);
        let covered = coverable().filter(|name| !explicit.contains(name.as_str()));
        covered.map(|name| name.text().clone()).collect()
    }

    /// Puts all records together.
    fn assemble(self, crowd: &Crowd<'_>, mut parts: Vec<Option<Parts>>, covered: &BTreeSet<Str>, into: &mut Assembly) {
        let Settled { outcomes, decided, order, .. } = self;
        into.desired.records.reserve(outcomes.len());
        let (mut decided, mut order) = (decided.into_iter(), &order[..]);
        for Outcome { name, from, wants } in outcomes {
            let (wants, others) = order.split_at(wants as usize);
            order = others;
            match from {
                Source::Lines => crowd.publish(wants, &mut parts, &mut into.desired.records),
                Source::Decision => {
                    // One for each, in the same order.
                    let (_, decision) = decided.next().expect("the decision about a name");
                    into.take_name(name, decision, covered.is_empty() || !covered.contains(name.as_str()));
                }
            }
        }
    }
}

impl Crowd<'_> {
    /// The records of a name that plain routes want at the same listeners.
    fn publish(&self, wants: &[Want], parts: &mut [Option<Parts>], into: &mut Vec<Record>) {
        let Some((first, others)) = wants.split_first() else { return };
        let Some(Parts { name, route }) = parts[first.line as usize].take() else { return };
        let mut routes = Few::One(route);
        for other in others.iter().filter_map(|want| parts[want.line as usize].take()) {
            routes.push(other.route);
        }
        let serving = self.lines[first.line as usize].serving;
        self.servings.at(serving).publish(name, routes, into);
    }
}

/// The first bytes of a name as numbers.
fn front(name: &Hostname) -> (u64, u64) {
    let bytes = name.as_str().as_bytes();
    let front = match bytes.first_chunk() {
        Some(front) => u128::from_be_bytes(*front),
        None => {
            let mut front = [0; 16];
            front[..bytes.len()].copy_from_slice(bytes);
            u128::from_be_bytes(front)
        }
    };
    ((front >> 64) as u64, front as u64)
}
