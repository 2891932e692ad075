//! From one route to its claims: which names it wants at which listeners, answered with what.
//!
//! Every hostname passes the gates in order: the pair counts, a policy governs where one is needed, there is a name, the
//! policy allows it, the settings take its domain, there is an address. The first gate that it fails is its reason.

use std::sync::Arc;

use super::addresses::{self, Resolved, Targets};
use super::certificates::{self, Wish, Wishes};
use super::names::{self, Asked, Name};
use super::outlets::{Outlet, Outlets, Seat};
use super::selection;
use super::verdicts::{self, Judgement};
use super::why::{self, Obstacle};
use super::{Base, Told};
use crate::desired::annotations::{Annotations, RouteAnnotations};
use crate::desired::hostnames::Origin;
use crate::desired::targets::Strategy;
use crate::desired::{KeptName, NameSource, PassedOver, Withheld};
use crate::diagnostic::Diagnostic;
use crate::few::Few;
use crate::lint::{listener_field, listener_name};
use crate::model::*;
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState, Policy};
use crate::reason;
use crate::topology::{Intersection, ListenerId, ListenerState, RouteState};

/// Everything that one route brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contribution {
    /// The route.
    pub(crate) route: Arc<Route>,
    /// The names it gets if nobody else has them, each once.
    pub(crate) names: Few<NameClaims>,
    /// What its annotations ask for.
    asked: Option<Box<AskedFor>>,
    /// What most routes have nothing of.
    rest: Option<Box<Rest>>,
}

/// A name with the listeners that a route wants it at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameClaims {
    /// The name.
    pub(crate) name: Hostname,
    /// One per listener.
    pub(crate) claims: Few<Claim>,
}

/// A route wants a name at a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Where.
    pub(super) seat: Arc<Seat>,
    /// What the name is to be answered with.
    pub(super) targets: Arc<Targets>,
    /// Where the name comes from.
    pub(super) source: NameSource,
    /// Whether the listener's wildcard may stand for the name.
    pub(super) is_coverable: bool,
}

/// What a route's annotations ask for, beside targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AskedFor {
    pub(super) ttl: Option<u32>,
    pub(super) set_identifier: Option<Str>,
    pub(super) properties: Vec<(Str, Str)>,
}

/// What most routes have nothing of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Hostnames that get nothing.
    pub(crate) withheld: Vec<Withheld>,
    /// Why the route is left out.
    pub(crate) passed_over: Option<PassedOver>,
    /// What is odd.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What is odd about targets and Secrets that other routes use as well.
    pub(crate) shared: Vec<Arc<Vec<Diagnostic>>>,
    /// What policies are told.
    pub(crate) told: Vec<Told>,
    /// Names that it wants in certificates.
    pub(crate) wishes: Vec<Wish>,
    /// Names that certificates are not to lose.
    pub(crate) kept: Vec<KeptName>,
}

impl Contribution {
    /// What most routes have nothing of.
    pub(crate) fn rest(&self) -> Option<&Rest> {
        self.rest.as_deref()
    }

    /// Whether some hostname gets nothing for now.
    pub(crate) fn is_withheld(&self) -> bool {
        self.rest().is_some_and(|rest| !rest.withheld.is_empty())
    }

    /// What it wishes for one Secret; nothing where it has no wish for it.
    pub(crate) fn wishes_for(&self, secret: &Key) -> Option<Wishes<'_>> {
        let all = self.rest()?.wishes.iter();
        let wishes: Vec<&Wish> = all.filter(|wish| wish.secrets().any(|key| key == secret)).collect();
        (!wishes.is_empty()).then_some((&self.route, wishes))
    }

    pub(super) fn ttl(&self) -> Option<u32> {
        self.asked.as_ref()?.ttl
    }

    pub(super) fn set_identifier(&self) -> Option<&Str> {
        self.asked.as_ref()?.set_identifier.as_ref()
    }

    pub(super) fn properties(&self) -> &[(Str, Str)] {
        self.asked.as_ref().map(|asked| &asked.properties[..]).unwrap_or_default()
    }
}

impl AskedFor {
    fn of(told: &RouteAnnotations) -> Option<Box<Self>> {
        let (ttl, set_identifier) = (told.ttl, told.set_identifier.clone());
        let asked = AskedFor { ttl, set_identifier, properties: told.properties.clone() };
        (asked != AskedFor::default()).then(|| Box::new(asked))
    }
}

/// Walks one route.
pub(crate) fn of_route(base: Base<'_>, outlets: &Outlets, state: &RouteState) -> Contribution {
    let route = &state.route;
    let annotations = Annotations::of(&route.meta, &base.settings.annotation_prefixes);
    let mut walker = Walker { base, outlets, state, names: Few::None, rest: None };
    if let Some(because) = selection::route_refusal(base.settings, route, &annotations) {
        walker.rest().passed_over = Some(PassedOver { object: route.object(), because });
        return walker.finish(None);
    }
    let told = match annotations.entries().is_empty() {
        true => RouteAnnotations::default(),
        false => RouteAnnotations::read(&annotations, &route.object(), &mut walker.rest().diagnostics),
    };
    let mut diagnostics = Vec::new();
    let asked = names::of_route(route, &told, base.settings, &mut diagnostics);
    if !diagnostics.is_empty() {
        walker.rest().diagnostics.append(&mut diagnostics);
    }
    if asked.is_empty() {
        walker.rest().withheld.push(why::nothing_asked(state));
    }
    walker.walk(&told, &asked);
    walker.finish(AskedFor::of(&told))
}

struct Walker<'a> {
    base: Base<'a>,
    outlets: &'a Outlets,
    state: &'a RouteState,
    names: Few<NameClaims>,
    rest: Option<Box<Rest>>,
}

/// A listener that the route attaches to, with each parentRef that leads there and what they have in common.
struct Door<'a> {
    listener: &'a ListenerState,
    ways: Few<(usize, &'a [Intersection])>,
}

/// What all names of a route at one listener share.
struct Post<'p> {
    told: &'p RouteAnnotations,
    listener: &'p ListenerState,
    outlet: &'p Outlet,
}

impl<'a> Walker<'a> {
    fn walk(&mut self, told: &RouteAnnotations, asked: &[Asked]) {
        let mut is_answered: Few<bool> = asked.iter().map(|_| false).collect();
        for door in &doors(self.base, self.state) {
            self.door(told, asked, door, is_answered.as_mut_slice());
        }
        for (one, _) in asked.iter().zip(&is_answered).filter(|(_, is_answered)| !**is_answered) {
            let withheld = why::unanswered(self.base, self.outlets, self.state, one);
            self.rest().withheld.push(withheld);
        }
    }

    /// What most routes have nothing of, once there is something.
    fn rest(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }

    fn finish(self, asked: Option<Box<AskedFor>>) -> Contribution {
        let rest = self.rest.filter(|rest| **rest != Rest::default());
        Contribution { route: self.state.route.clone(), names: self.names, asked, rest }
    }

    /// A listener that the route attaches to.
    fn door(&mut self, told: &RouteAnnotations, asked: &[Asked], door: &Door<'a>, is_answered: &mut [bool]) {
        let listener = door.listener;
        let outlet = self.outlets.at(listener.id);
        if listener.gateway.is_none() || outlet.left_out.is_some() {
            return;
        }
        let Some((judgement, common)) = self.judged(outlet, &door.ways) else { return };
        for (one, is_answered) in asked.iter().zip(is_answered) {
            *is_answered |= one.at(&listener.hostname).is_some();
        }
        let post = Post { told, listener, outlet };
        let mut added = Few::None;
        for name in &names::at_listener(asked, &listener.hostname) {
            if name.wanted.source() != NameSource::Intersected {
                added.push(name.hostname.clone());
            }
            match self.claim(&post, name, &judgement) {
                Ok(claim) => self.add(&name.hostname, claim),
                Err(obstacle) => self.withhold(&post, name, obstacle),
            }
        }
        if let Some(terms) = &outlet.terms {
            let pair =
                certificates::Pair { base: self.base, route: &self.state.route, listener, outlet, terms, common };
            certificates::pair(&pair, added, &judgement, self.rest());
        }
    }

    fn add(&mut self, name: &Hostname, claim: Claim) {
        match self.names.as_mut_slice().iter_mut().find(|known| known.name == *name) {
            Some(known) => known.claims.push(claim),
            None => self.names.push(NameClaims { name: name.clone(), claims: Few::One(claim) }),
        }
    }

    /// The most favourable judgement among the parentRefs that lead to a listener.
    fn judged(&self, outlet: &Outlet, ways: &[(usize, &'a [Intersection])]) -> Option<(Judgement, &'a [Intersection])> {
        let route = &self.state.route;
        let mut judged =
            ways.iter().map(|(parent, names)| (verdicts::judge(self.base, outlet, route, *parent), *names));
        let first = judged.next()?;
        if first.0.obstacle.is_none() {
            return Some(first);
        }
        Some(judged.find(|(judgement, _)| judgement.obstacle.is_none()).unwrap_or(first))
    }

    fn claim(&mut self, post: &Post<'_>, name: &Name<'_>, judgement: &Judgement) -> Result<Claim, Obstacle> {
        if let Some(obstacle) = &judgement.obstacle {
            return Err(obstacle.clone());
        }
        if let Some(obstacle) = &post.outlet.ungoverned {
            return Err(obstacle.clone());
        }
        self.name_gate(post, name)?;
        let targets = self.targets(post)?;
        Ok(Claim {
            seat: post.outlet.seat.clone(),
            source: name.wanted.source(),
            is_coverable: self.is_coverable(post, &name.hostname, &targets),
            targets,
        })
    }

    fn name_gate(&self, post: &Post<'_>, name: &Name<'_>) -> Result<(), Obstacle> {
        let (route, hostname, listener) = (&self.state.route, &name.hostname, post.listener);
        let refused = |reason, message| {
            let is_silent = name.wanted.origin == Origin::Listener && !route.kind.has_hostnames();
            let (object, field) = match is_silent {
                true => (listener.owner.object(), listener_field(listener, "hostname")),
                false => (route.object(), name.wanted.field()),
            };
            Err(Obstacle { reason, message, object, field })
        };
        if hostname.is_any() {
            let listener = listener_name(listener);
            return refused(reason::NO_NAME, format!("neither the route nor {listener} names a hostname"));
        }
        let policy = post.outlet.policy.as_ref();
        if let Some(policy) = policy.filter(|policy| hostname.is_wildcard() && !policy.allows_wildcards()) {
            let message = format!("`{hostname}` is a wildcard, and {} does not allow wildcards", policy.object());
            return refused(reason::WILDCARD_NOT_ALLOWED, message);
        }
        if !self.base.settings.domains.admits(hostname.as_str()) {
            let message = format!("`--domain-filter` or `--exclude-domains` leaves `{hostname}` out");
            return refused(reason::DOMAIN_NOT_SELECTED, message);
        }
        Ok(())
    }

    /// The targets by annotations, else the addresses of the Gateway.
    fn targets(&mut self, post: &Post<'_>) -> Result<Arc<Targets>, Obstacle> {
        let (told, outlet) = (post.told, post.outlet);
        if told.targets.is_empty() {
            return match told.strategy {
                Strategy::RouteOnly => self.resolved(outlet.addresses.as_ref()),
                _ => self.resolved(outlet.usual.as_ref()),
            };
        }
        let own: Vec<Str> = told.targets.iter().filter(|target| !target.is_empty()).cloned().collect();
        let chosen = told.strategy.choose(&own, &outlet.targets);
        if chosen.is_empty() {
            return self.resolved(outlet.addresses.as_ref());
        }
        let is_own = chosen.iter().any(|target| own.contains(target));
        let (place, key) = match is_own {
            true => (self.state.route.object(), told.target_key.as_ref()),
            false => (outlet.teller.clone(), outlet.target_key.as_ref()),
        };
        let resolved = addresses::of_annotations(&chosen, outlet.policy.as_deref(), &place, key);
        self.resolved(Some(&Arc::new(resolved)))
    }

    /// Targets, and a note of what is odd about them.
    fn resolved(&mut self, resolved: Option<&Arc<Resolved>>) -> Result<Arc<Targets>, Obstacle> {
        // An outlet of a Gateway has addresses or says why not; others do not get this far.
        let Some(resolved) = resolved else {
            let object = self.state.route.object();
            let message = "the listener is part of no Gateway".to_owned();
            let field = Default::default();
            return Err(Obstacle { reason: reason::LISTENER_SET_NOT_ATTACHED, message, object, field });
        };
        if !resolved.diagnostics.is_empty() {
            self.rest().share(&resolved.diagnostics);
        }
        resolved.targets.clone()
    }

    /// Whether the listener's wildcard may stand for a name: the answer has to be the same.
    fn is_coverable(&mut self, post: &Post<'_>, name: &Hostname, targets: &Arc<Targets>) -> bool {
        let (told, outlet) = (post.told, post.outlet);
        let Some(wildcard) = outlet.seat.wildcard.as_ref().filter(|wildcard| *wildcard != name) else { return false };
        let is_plain = told.set_identifier.is_none() && told.properties.is_empty();
        let is_usual = told.ttl.is_none_or(|ttl| Some(ttl) == outlet.seat.policy_ttl);
        if !(is_plain && is_usual && wildcard.is_wildcard()) {
            return false;
        }
        let usual = self.resolved(outlet.usual.as_ref());
        usual.is_ok_and(|usual| usual == *targets)
    }

    fn withhold(&mut self, post: &Post<'_>, name: &Name<'_>, obstacle: Obstacle) {
        let route = self.state.route.object();
        let listener = post.listener.key();
        let withheld = obstacle.withhold(&route, name.hostname.as_str(), Some(listener.clone()));
        let reason = withheld.reason;
        let state = if withheld.holds() { HostnameState::Pending(reason) } else { HostnameState::Skipped(reason) };
        let hostname = withheld.hostname.clone();
        let report = HostnameReport { hostname, listener, route, state, message: withheld.message.clone() };
        let rest = self.rest();
        rest.told.extend(post.outlet.policy.as_ref().map(|policy| Told { policy: policy.object(), report }));
        rest.withheld.push(withheld);
    }
}

impl Rest {
    /// Notes what is odd about something that others use as well.
    pub(super) fn share(&mut self, diagnostics: &Arc<Vec<Diagnostic>>) {
        if !diagnostics.is_empty() && !self.shared.contains(diagnostics) {
            self.shared.push(diagnostics.clone());
        }
    }
}

/// The listeners that a route attaches to, in order of precedence.
fn doors<'a>(base: Base<'a>, state: &'a RouteState) -> Few<Door<'a>> {
    let mut doors: Few<Door<'a>> = Few::None;
    for (parent, attached) in state.parents.iter().map(|parent| &parent.attached).enumerate() {
        for attachment in attached {
            let (id, way) = (attachment.listener, (parent, &*attachment.names));
            let known = |door: &&mut Door<'a>| is_same(door.listener, id);
            match doors.as_mut_slice().iter_mut().find(known) {
                Some(door) => door.ways.push(way),
                None => doors.push(Door { listener: base.topology.listener(id), ways: Few::One(way) }),
            }
        }
    }
    doors.as_mut_slice().sort_by(|a, b| a.listener.by_precedence(b.listener));
    doors
}

fn is_same(listener: &ListenerState, id: ListenerId) -> bool {
    listener.id == id
}
