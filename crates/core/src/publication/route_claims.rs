//! From one route to its claims: which names it wants at which listeners, answered with what.
//!
//! Every hostname passes the gates in order: the pair counts, a policy governs where one is needed, there is a name, the
//! policy allows it, the settings take its domain, there is an address. The first gate that it fails is its reason.

use std::sync::Arc;

use super::addresses::{self, Resolved, Targets};
use super::asked_names::{self, Asked, Name};
use super::certificates::{self, Ask, Wish, Wishes};
use super::listener_context::{Outlet, Outlets};
use super::obstacles::{self, Obstacle};
use super::selection;
use super::strict::{Base, Told};
use super::verdicts::{self, Judgement};
use crate::attachment::{Intersection, ListenerId, ListenerState, RouteState};
use crate::diagnostic::Diagnostic;
use crate::few::Few;
use crate::lint::{listener_field, listener_name};
use crate::model::*;
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState, Policy};
use crate::publication::annotations::{Annotations, RouteAnnotations};
use crate::publication::targets::Strategy;
use crate::publication::{KeptName, NameSource, PassedOver, Withheld};
use crate::reason;

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
    pub(super) outlet: Arc<Outlet>,
    /// What the name is to be answered with, where that is not what the listener usually says.
    targets: Option<Arc<Targets>>,
    /// Where the name comes from.
    pub(super) source: NameSource,
    /// Whether the listener's wildcard may stand for the name.
    pub(super) is_coverable: bool,
    /// Whether the name is also to be in the certificates of the listener.
    pub(super) is_certified: bool,
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
    /// Names that it wants in certificates without having claims on them, and those that it has not in common.
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

    /// The names that it wants in certificates. `place` is where the route stands among all.
    pub(super) fn asks(&self, place: u32) -> impl Iterator<Item = Ask<'_>> {
        let claimed = self.names.iter().flat_map(move |wanted| self.certified(wanted, place));
        claimed.chain(self.wished(place))
    }

    /// The same, of one name that it has claims on.
    pub(super) fn certified<'a>(&'a self, wanted: &'a NameClaims, place: u32) -> impl Iterator<Item = Ask<'a>> {
        let certified = wanted.claims.iter().filter(|claim| claim.is_certified);
        certified.map(move |claim| Ask::new(place, &self.route, &claim.outlet, &wanted.name))
    }

    /// The same, of names that it has no claims on.
    pub(super) fn wished(&self, place: u32) -> impl Iterator<Item = Ask<'_>> {
        let wishes = self.rest().into_iter().flat_map(|rest| &rest.wishes);
        wishes.flat_map(move |wish| wish.asks(place, &self.route))
    }

    /// Whether there are any of those.
    pub(super) fn has_wishes(&self) -> bool {
        self.rest().is_some_and(|rest| !rest.wishes.is_empty())
    }

    /// What it asks for in one Secret; nothing where it asks for nothing.
    pub(crate) fn wishes_for(&self, secret: &Key) -> Option<Wishes<'_>> {
        let asks: Vec<Ask<'_>> = self.asks(0).filter(|ask| ask.is_about(secret)).collect();
        (!asks.is_empty()).then_some((&self.route, asks))
    }

    /// The Secrets in which it wants any; one may come several times.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Key> {
        let claims = self.names.iter().flat_map(|wanted| &wanted.claims).filter(|claim| claim.is_certified);
        let wishes = self.rest().into_iter().flat_map(|rest| &rest.wishes);
        claims.map(|claim| &claim.outlet).chain(wishes.map(|wish| &wish.outlet)).flat_map(|outlet| outlet.secrets())
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

impl Claim {
    /// What the name is to be answered with.
    pub(super) fn targets(&self) -> &Arc<Targets> {
        // Without targets of its own a claim is only made where the listener has some.
        self.targets.as_ref().or(self.outlet.usual_targets()).expect("the targets of a claim")
    }
}

impl AskedFor {
    fn of(told: &RouteAnnotations) -> Option<Box<Self>> {
        let (ttl, set_identifier) = (told.ttl, told.set_identifier.clone());
        let asked = AskedFor { ttl, set_identifier, properties: told.properties.clone() };
        (asked != AskedFor::default()).then(|| Box::new(asked))
    }
}

/// What was asked for the routes before, and is likely to be asked again.
#[derive(Default)]
pub(crate) struct Memo {
    spoken: verdicts::Spoken,
}

/// Walks one route.
pub(crate) fn of_route(base: Base<'_>, outlets: &Outlets, state: &RouteState) -> Contribution {
    of_next_route(base, outlets, state, &mut Memo::default())
}

/// Walks one of many routes.
pub(super) fn of_next_route(base: Base<'_>, outlets: &Outlets, state: &RouteState, memo: &mut Memo) -> Contribution {
    let route = &state.route;
    let annotations = Annotations::of(&route.meta, &base.settings.annotation_prefixes);
    let mut walker = Walker { base, outlets, state, memo, names: Few::None, rest: None };
    if let Some(because) = selection::route_refusal(base.settings, route, &annotations) {
        walker.rest().passed_over = Some(PassedOver { object: route.object(), because });
        return walker.finish(None);
    }
    let told = match annotations.entries().is_empty() {
        true => RouteAnnotations::default(),
        false => RouteAnnotations::read(&annotations, &route.object(), &mut walker.rest().diagnostics),
    };
    let mut diagnostics = Vec::new();
    let asked = asked_names::of_route(route, &told, base.settings, &mut diagnostics);
    if !diagnostics.is_empty() {
        walker.rest().diagnostics.append(&mut diagnostics);
    }
    if asked.is_empty() {
        walker.rest().withheld.push(obstacles::nothing_asked(state));
    }
    walker.walk(&told, &asked);
    walker.finish(AskedFor::of(&told))
}

struct Walker<'a, 'm> {
    base: Base<'a>,
    outlets: &'a Outlets,
    state: &'a RouteState,
    memo: &'m mut Memo,
    names: Few<NameClaims>,
    rest: Option<Box<Rest>>,
}

/// A listener that the route attaches to, with each parentRef that leads there and what they have in common.
struct Door<'a> {
    id: ListenerId,
    ways: Few<(usize, &'a [Intersection])>,
}

/// What all names of a route at one listener share.
struct Post<'p> {
    told: &'p RouteAnnotations,
    listener: &'p ListenerState,
    outlet: &'p Arc<Outlet>,
}

impl<'a> Walker<'a, '_> {
    fn walk(&mut self, told: &RouteAnnotations, asked: &[Asked<'_>]) {
        let mut is_answered: Few<bool> = asked.iter().map(|_| false).collect();
        for door in &doors(self.base, self.state) {
            self.door(told, asked, door, is_answered.as_mut_slice());
        }
        for (one, _) in asked.iter().zip(&is_answered).filter(|(_, is_answered)| !**is_answered) {
            let withheld = obstacles::unanswered(self.base, self.outlets, self.state, one);
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
    fn door(&mut self, told: &RouteAnnotations, asked: &[Asked<'_>], door: &Door<'a>, is_answered: &mut [bool]) {
        let (listener, outlet) = (self.base.topology.listener(door.id), self.outlets.at(door.id));
        if listener.gateway.is_none() || outlet.left_out.is_some() {
            return;
        }
        let Some((judgement, common)) = self.judged(outlet, &door.ways) else { return };
        let names = asked_names::at_listener(asked, &listener.hostname, is_answered);
        let post = Post { told, listener, outlet };
        let wished = self.wished(door.id, common, &judgement);
        for name in &names {
            match self.claim(&post, name, &judgement) {
                Ok(claim) => self.add(name.hostname, Claim { is_certified: wished.contains(&name.hostname), ..claim }),
                Err(obstacle) => self.withhold(&post, name, obstacle),
            }
        }
        if !wished.is_empty() {
            self.wish(outlet, &wished, &names);
        }
    }

    /// The names that are to be in the certificates of a listener.
    fn wished(&mut self, id: ListenerId, common: &'a [Intersection], judgement: &Judgement) -> Few<&'a Hostname> {
        let Some(terms) = &self.outlets.at(id).terms else { return Few::None };
        let (base, route) = (self.base, &self.state.route);
        let pair = certificates::Pair { base, route, listener: base.topology.listener(id), terms, common };
        certificates::pair(&pair, judgement, &mut self.rest)
    }

    /// Notes the names that are to be in certificates and on which there are no claims, and those that a route and a listener
    /// have not in common by their hostnames.
    fn wish(&mut self, outlet: &Arc<Outlet>, wished: &[&Hostname], names: &[Name<'_>]) {
        let is_here = |claim: &Claim| Arc::ptr_eq(&claim.outlet, outlet);
        let is_claimed = |name: &Hostname| {
            let known = self.names.iter().find(|known| known.name == *name);
            known.and_then(|known| known.claims.last()).is_some_and(is_here)
        };
        let unclaimed: Few<Hostname> =
            wished.iter().filter(|name| !is_claimed(name)).map(|name| (*name).clone()).collect();
        let added = names.iter().filter(|name| name.asked.source() != NameSource::Intersected);
        let added: Few<Hostname> = added.map(|name| name.hostname.clone()).collect();
        if !(unclaimed.is_empty() && added.is_empty()) {
            self.rest().wishes.push(Wish { outlet: outlet.clone(), names: unclaimed, added });
        }
    }

    fn add(&mut self, name: &Hostname, claim: Claim) {
        match self.names.as_mut_slice().iter_mut().find(|known| known.name == *name) {
            Some(known) => known.claims.push(claim),
            None => self.names.push(NameClaims { name: name.clone(), claims: Few::One(claim) }),
        }
    }

    /// The most favourable judgement among the parentRefs that lead to a listener.
    fn judged(
        &mut self,
        outlet: &Outlet,
        ways: &[(usize, &'a [Intersection])],
    ) -> Option<(Judgement, &'a [Intersection])> {
        let (base, route, spoken) = (self.base, &self.state.route, &mut self.memo.spoken);
        let mut judged =
            ways.iter().map(|(parent, names)| (verdicts::judge(base, outlet, route, *parent, spoken), *names));
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
            outlet: post.outlet.clone(),
            is_coverable: self.is_coverable(post, name.hostname, targets.as_ref()),
            targets,
            source: name.asked.source(),
            is_certified: false,
        })
    }

    fn name_gate(&self, post: &Post<'_>, name: &Name<'_>) -> Result<(), Obstacle> {
        let (route, hostname, listener) = (&self.state.route, name.hostname, post.listener);
        let refused = |reason, message| {
            let is_silent = name.asked.is_the_listeners() && !route.kind.has_hostnames();
            let (object, field) = match is_silent {
                true => (listener.owner.object(), listener_field(listener, "hostname")),
                false => (route.object(), name.asked.field()),
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

    /// The targets by annotations, else the addresses of the Gateway; none where they are what the listener usually says.
    fn targets(&mut self, post: &Post<'_>) -> Result<Option<Arc<Targets>>, Obstacle> {
        let (told, outlet) = (post.told, post.outlet);
        if told.targets.is_empty() && told.strategy != Strategy::RouteOnly {
            self.resolved(outlet.usual.as_ref())?;
            return Ok(None);
        }
        let own: Vec<Str> = told.targets.iter().filter(|target| !target.is_empty()).cloned().collect();
        let chosen = match told.targets.is_empty() {
            true => Default::default(),
            false => told.strategy.choose(&own, &outlet.targets),
        };
        let targets = if chosen.is_empty() {
            self.resolved(outlet.addresses.as_ref())?.clone()
        } else {
            let is_own = chosen.iter().any(|target| own.contains(target));
            let (place, key) = match is_own {
                true => (self.state.route.object(), told.target_key.as_ref()),
                false => (outlet.teller.clone(), outlet.target_key.as_ref()),
            };
            let resolved = addresses::of_annotations(&chosen, outlet.policy.as_deref(), &place, key);
            self.resolved(Some(&Arc::new(resolved)))?.clone()
        };
        Ok(Some(targets).filter(|targets| outlet.usual_targets() != Some(targets)))
    }

    /// Targets, and a note of what is odd about them.
    fn resolved<'r>(&mut self, resolved: Option<&'r Arc<Resolved>>) -> Result<&'r Arc<Targets>, Obstacle> {
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
        resolved.targets.as_ref().map_err(Obstacle::clone)
    }

    /// Whether the listener's wildcard may stand for a name: the answer has to be the same. Only targets that are not the
    /// usual ones are given.
    fn is_coverable(&mut self, post: &Post<'_>, name: &Hostname, targets: Option<&Arc<Targets>>) -> bool {
        let (told, outlet) = (post.told, post.outlet);
        let Some(wildcard) = outlet.seat.wildcard.as_ref().filter(|wildcard| *wildcard != name) else { return false };
        let is_plain = told.set_identifier.is_none() && told.properties.is_empty();
        let is_usual = told.ttl.is_none_or(|ttl| Some(ttl) == outlet.seat.policy_ttl);
        if !(is_plain && is_usual && wildcard.is_wildcard()) {
            return false;
        }
        self.resolved(outlet.usual.as_ref()).is_ok() && targets.is_none()
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
            match doors.as_mut_slice().iter_mut().find(|door| door.id == id) {
                Some(door) => door.ways.push(way),
                None => doors.push(Door { id, ways: Few::One(way) }),
            }
        }
    }
    doors.as_mut_slice().sort_by(|a, b| base.topology.by_precedence(a.id, b.id));
    doors
}
