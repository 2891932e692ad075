//! What plain routes meet at listeners: routes without annotations, with the same parents and of which the same is said, get
//! the same answers at the same listeners. Those are worked out once, so that only hostnames are compared route by route.
//!
//! A lane only ever says yes. Whatever has more to tell — a refusal, a policy, a wildcard, two ways to one listener — is
//! left to [`super::route_claims`], which knows all the rules; the engine, which knows no lanes, is held to the same results.

use std::sync::Arc;

use super::asked_names;
use super::listener_context::{Outlet, Outlets};
use super::scratch::Secrets;
use super::selection;
use super::servings::Servings;
use super::strict::Base;
use super::verdicts::{self, Spoken};
use crate::attachment::routes::{doors_of, is_meant};
use crate::attachment::{Doors, ListenerId, ListenerState, listener_sets};
use crate::model::{Admission, ParentRef, Route, Str};
use crate::names::{Hostname, Suffixes};
use crate::publication::annotations::Annotations;
use crate::publication::wildcards::above;
use crate::recent::Recent;
use crate::snapshot::Labelled;

mod domains;

use domains::{Domains, Whose};

/// So many lanes are kept at most, and one for so many routes. Each has one place, where the latest stays.
const MOST_LANES: usize = 2048;
const ROUTES_OF_LANE: usize = 8;

/// The lanes that routes came by lately.
pub(super) struct Lanes<'a> {
    /// A power of two.
    slots: Vec<Option<Lane<'a>>>,
    /// How many there were so far.
    count: u32,
    domains: Domains<'a>,
    world: Surroundings<'a>,
    servings: Servings<'a>,
}

/// What all lanes look at, and the room in which they look.
struct Surroundings<'a> {
    base: Base<'a>,
    outlets: &'a Outlets,
    parents: Recent<ParentRef, Option<Vec<(usize, &'a Doors)>>>,
    spoken: Spoken,
    /// The last route that the settings let in and that has no annotations of ours.
    quiet: Option<&'a Route>,
    /// Whether the settings ask for labels.
    asks_labels: bool,
    /// The namespace of the last route, and how many there were so far.
    namespace: Labelled,
    namespaces: u32,
    suffixes: Suffixes,
    promising: Vec<u32>,
    found: Vec<&'a Arc<Outlet>>,
    /// Whether that was found without a look at the namespace.
    is_for_all: bool,
}

/// What routes that ask alike meet.
struct Lane<'a> {
    number: u32,
    /// The first of them.
    route: &'a Route,
    /// Whether its parents are in its own namespace, or its status speaks of such.
    is_relative: bool,
    /// By precedence of the listeners; nothing where several lead to the same ones.
    ways: Option<Vec<Way<'a>>>,
    /// Whether all hostnames behind are wildcards or unset, so that names right below one domain are served alike.
    is_wild: bool,
}

/// A parentRef, and the listeners behind it.
struct Way<'a> {
    parent: usize,
    doors: &'a Doors,
    gates: Vec<Gate>,
}

/// One of those listeners. There are many, so that it is small.
#[derive(Clone, Copy)]
struct Gate {
    state: State,
    /// Whether routes of a namespace are let in, and of which, by its number.
    is_admitted: bool,
    namespace: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Nobody has asked.
    Unknown,
    /// Routes do not attach there.
    Shut,
    /// They do where their namespace and hostnames let them.
    Open,
    /// The same, and there is more to be told.
    Odd,
}

impl<'a> Lanes<'a> {
    /// No lanes yet.
    pub(super) fn new(base: Base<'a>, outlets: &'a Outlets, secrets: Secrets<'a>) -> Self {
        let world = Surroundings {
            base,
            outlets,
            parents: Recent::default(),
            spoken: Spoken::default(),
            quiet: None,
            asks_labels: base.settings.label_filter.is_some(),
            namespace: Labelled::default(),
            namespaces: 0,
            suffixes: Suffixes::default(),
            promising: Vec::new(),
            found: Vec::new(),
            is_for_all: true,
        };
        let routes = base.snapshot.routes.len();
        let room = routes.div_ceil(ROUTES_OF_LANE).next_power_of_two().min(MOST_LANES);
        let slots = std::iter::repeat_with(|| None).take(room).collect();
        Lanes { slots, count: 0, domains: Domains::new(routes), world, servings: Servings::new(secrets) }
    }

    /// Where names are served.
    pub(super) fn servings(&self) -> &Servings<'a> {
        &self.servings
    }

    /// The same, where no more routes come.
    pub(super) fn into_servings(self) -> Servings<'a> {
        self.servings
    }

    /// Tells of each hostname of a route where it is served. Where it gives back `false` the route has to be walked, whatever
    /// was told of some of its hostnames.
    pub(super) fn pass(&mut self, route: &'a Route, mut tell: impl FnMut(&'a Hostname, u32)) -> bool {
        if !self.world.is_plain(route) {
            return false;
        }
        self.world.enter(&route.meta.key.namespace);
        let mask = self.slots.len() - 1;
        let slot = &mut self.slots[spread(route) & mask];
        if !slot.as_ref().is_some_and(|lane| lane.is_for(route)) {
            self.count += 1;
            *slot = Some(self.world.lane(route, self.count));
        }
        // It was there or has been put there.
        let lane = slot.as_mut().expect("the lane of this route");
        let (admitted, namespace) = (&self.world.base.settings.domains, self.world.namespaces);
        let is_plain = |name: &&Hostname| name.is_precise() && admitted.admits(name.as_str());
        for written in &route.hostnames {
            let Some(name) = written.name().ok().filter(is_plain) else { return false };
            let domain = lane.domain(name).map(|domain| (domain, self.domains.place(lane.number, domain)));
            let known = domain.and_then(|(domain, place)| self.domains.serving(place, domain, lane.number, namespace));
            let serving = known.or_else(|| self.world.serve(lane, route, name, &mut self.servings));
            let Some(serving) = serving else { return false };
            if let Some((domain, place)) = domain.filter(|_| known.is_none()) {
                let namespace = Some(namespace).filter(|_| !self.world.is_for_all);
                self.domains.keep(place, domain, Whose { lane: lane.number, namespace }, serving);
            }
            tell(name, serving);
        }
        true
    }
}

/// A number by which the lane of a route is kept.
fn spread(route: &Route) -> usize {
    let lists = (route.parents.place() as u64).rotate_left(17) ^ route.status.said().place() as u64;
    let asked = lists ^ (route.meta.generation.get().unwrap_or_default() as u64) << 3 ^ route.kind as u64;
    (asked.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

impl Lane<'_> {
    /// The domain right above a name, where all names below it are served alike.
    fn domain<'n>(&self, name: &'n Hostname) -> Option<&'n str> {
        above(name.as_str()).next().filter(|_| self.is_wild)
    }

    fn is_for(&self, route: &Route) -> bool {
        let known = self.route;
        known.parents.is_one_with(&route.parents)
            && known.status.said().is_one_with(route.status.said())
            && known.kind == route.kind
            && known.meta.generation == route.meta.generation
            && (!self.is_relative || known.meta.key.namespace == route.meta.key.namespace)
    }
}

/// The listeners behind a route's parents, by their precedence, each with which parent it is; nothing where two lead to the
/// same ones.
fn behind<'a>(base: Base<'a>, route: &Route) -> Option<Vec<(usize, &'a Doors)>> {
    let parents = route.parents.iter().enumerate();
    let behind = parents.filter_map(|(parent, asked)| Some((parent, doors_of(base.topology, route, asked)?)));
    let mut behind: Vec<(usize, &'a Doors)> = behind.filter(|(_, doors)| !doors.all().is_empty()).collect();
    // The listeners of one owner stand together.
    behind.sort_by(|(_, a), (_, b)| base.topology.by_precedence(a.id(0), b.id(0)));
    let is_apart = behind.windows(2).all(|pair| pair[0].1.id(0) != pair[1].1.id(0));
    is_apart.then_some(behind)
}

impl<'a> Way<'a> {
    fn new(&(parent, doors): &(usize, &'a Doors)) -> Self {
        let gate = Gate { state: State::Unknown, is_admitted: false, namespace: 0 };
        Way { parent, doors, gates: vec![gate; doors.all().len()] }
    }
}

impl<'a> Surroundings<'a> {
    fn lane(&mut self, route: &'a Route, number: u32) -> Lane<'a> {
        let is_relative = |parent: &ParentRef| parent.target.namespace.is_none();
        let known = self.parents.answer(&route.parents, &route.meta.key.namespace, || {
            (behind(self.base, route), route.parents.iter().any(is_relative))
        });
        let ways = known.as_ref().map(|behind| behind.iter().map(Way::new).collect());
        let is_wild = known.iter().flatten().all(|(_, doors)| !doors.has_precise());
        let mut spoken = route.status.iter().map(|entry| &entry.parent).chain(&route.parents);
        Lane { number, route, is_relative: spoken.any(is_relative), ways, is_wild }
    }

    /// Whether nothing but hostnames tells a route from others of its lane.
    fn is_plain(&mut self, route: &'a Route) -> bool {
        asked_names::are_all_its_own(route, self.base.settings) && is_each_once(route) && self.is_quiet(route)
    }

    /// Whether the settings let a route in, and its annotations say nothing.
    fn is_quiet(&mut self, route: &'a Route) -> bool {
        let has_same_labels = |known: &Route| match self.asks_labels {
            true => known.meta.labels.are_one_with(&route.meta.labels),
            false => !selection::is_solver(route),
        };
        let is_same = |known: &Route| {
            known.kind == route.kind
                && known.meta.annotations.are_one_with(&route.meta.annotations)
                && Arc::ptr_eq(&known.meta.key.namespace, &route.meta.key.namespace)
                && has_same_labels(known)
        };
        if self.quiet.is_some_and(is_same) {
            return true;
        }
        let settings = self.base.settings;
        let annotations = Annotations::of(&route.meta, &settings.annotation_prefixes);
        let is_quiet =
            annotations.entries().is_empty() && selection::route_refusal(settings, route, &annotations).is_none();
        self.quiet = Some(route).filter(|_| is_quiet).or(self.quiet);
        is_quiet
    }

    /// Notes the namespace that the next routes are of.
    fn enter(&mut self, namespace: &Str) {
        if !self.namespace.is(namespace) || self.namespaces == 0 {
            self.namespace = self.base.snapshot.labelled(namespace);
            self.namespaces += 1;
        }
    }

    /// Finds where a hostname is served; nothing where it is nowhere, or where there is more to be told.
    fn serve(
        &mut self,
        lane: &mut Lane<'a>,
        route: &'a Route,
        name: &Hostname,
        servings: &mut Servings<'a>,
    ) -> Option<u32> {
        self.found.clear();
        self.is_for_all = true;
        for way in lane.ways.as_mut()? {
            let asked = &route.parents[way.parent];
            let mut promising = std::mem::take(&mut self.promising);
            way.doors.promising_for([name], asked.section.as_ref(), &mut self.suffixes, &mut promising);
            let is_told = promising.iter().all(|door| self.enter_gate(way, *door, route, name));
            self.promising = promising;
            if !is_told {
                return None;
            }
        }
        servings.number(&self.found)
    }

    /// Looks at one listener; `false` where there is more to be told of it.
    fn enter_gate(&mut self, way: &mut Way<'a>, door: u32, route: &'a Route, name: &Hostname) -> bool {
        let (gate, id) = (&mut way.gates[door as usize], way.doors.id(door));
        if gate.state == State::Unknown {
            gate.state = self.state(id, way.parent, route);
        }
        if gate.state == State::Shut {
            return true;
        }
        let listener = self.base.topology.listener(id);
        if !listener.hostname.contains(name) {
            return true;
        }
        if gate.namespace != self.namespaces {
            gate.namespace = self.namespaces;
            gate.is_admitted = self.admits(listener);
        }
        self.is_for_all &= matches!(listener.spec().allowed_routes.namespaces, Admission::All);
        if gate.is_admitted {
            self.found.push(self.outlets.at(id));
        }
        !gate.is_admitted || gate.state == State::Open
    }

    fn state(&mut self, id: ListenerId, parent: usize, route: &Route) -> State {
        let listener = self.base.topology.listener(id);
        let takes = listener.gateway.is_some() && listener.supported_kinds.contains(&route.kind);
        if !takes || !is_meant(listener.spec(), &route.parents[parent]) {
            return State::Shut;
        }
        let outlet = self.outlets.at(id);
        let judgement = verdicts::judge(self.base, outlet, route, parent, &mut self.spoken);
        if judgement.obstacle.is_none() && outlet.is_plain() { State::Open } else { State::Odd }
    }

    fn admits(&self, listener: &ListenerState) -> bool {
        let own = &listener.owner.meta().key.namespace;
        let (namespace, admission) = (&self.namespace, &listener.spec().allowed_routes.namespaces);
        listener_sets::admits(admission, own, namespace.name(), |selector| namespace.is_chosen_by(selector))
    }
}

/// Whether a route names no hostname twice.
fn is_each_once(route: &Route) -> bool {
    let names = &route.hostnames;
    (1..names.len()).all(|place| names[..place].iter().all(|before| before.name() != names[place].name()))
}
