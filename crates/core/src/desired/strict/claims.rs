//! From attached pairs to claims: which route wants which name at which listener, answered with what.
//!
//! Every hostname passes the gates in order: the pair counts, a policy governs where one is needed, there is a name, the
//! policy allows it, the settings take its domain, there is an address. The first gate that it fails is its reason.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::addresses::{self, Resolved, Targets};
use super::names::{self, Asked, Name};
use super::selection::{self, Selection, gateway_object};
use super::verdicts::{self, Judgement};
use super::why::{self, Obstacle};
use super::{Context, Ledger};
use crate::desired::annotations::{Annotations, RouteAnnotations};
use crate::desired::hostnames::Origin;
use crate::desired::settings::Publish;
use crate::desired::targets::Strategy;
use crate::desired::{Desired, NameSource, PassedOver};
use crate::lint::{listener_field, listener_name};
use crate::model::*;
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState, Policy};
use crate::reason;
use crate::snapshot::Visibility;
use crate::topology::{GatewayState, Intersection, ListenerId, RouteState};

/// A route wants a name at a listener.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The name.
    pub(super) name: Hostname,
    /// Where it comes from.
    pub(super) source: NameSource,
    /// Who wants it.
    pub(super) route: ObjectRef,
    /// Where.
    pub(super) listener: ListenerId,
    /// The Gateway behind the listener.
    pub(super) gateway: Key,
    /// The policy that governs.
    pub(super) policy: Option<Key>,
    /// Who goes first where not all can have the name.
    pub(super) rank: Rank,
    /// What the name is to be answered with.
    pub(super) answer: Answer,
    /// The listener's wildcard, where it may stand for the name.
    pub(super) wildcard: Option<Hostname>,
}

/// What a name is to be answered with.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Targets.
    pub(super) targets: Rc<Targets>,
    /// The TTL that the route asks for.
    pub(super) route_ttl: Option<u32>,
    /// The TTL of the policy.
    pub(super) policy_ttl: Option<u32>,
    /// Set identifier.
    pub(super) set_identifier: Option<Str>,
    /// Properties for providers.
    pub(super) properties: Vec<(Str, Str)>,
}

/// The order of claims on one name: those under a policy, by its age; then the Gateway's, then the route's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    is_ungoverned: bool,
    policy: Option<(i64, Key)>,
    gateway: (i64, Key),
    route: (i64, Key),
    kind: Kind,
    listener: ListenerId,
}

/// A pair of route and listener that attaches by its specs.
pub(super) struct Attached<'a> {
    /// The route.
    pub(super) route: &'a RouteState,
    /// The listener.
    pub(super) listener: ListenerId,
    /// What they have in common.
    pub(super) names: &'a [Intersection],
    /// Names that an annotation or the template adds.
    pub(super) added: Vec<Hostname>,
    /// Whether it counts.
    pub(super) judgement: Judgement,
}

/// What the walk over the tree yields.
#[derive(Default)]
pub(super) struct Walk<'a> {
    /// Names that can be answered.
    pub(super) claims: Vec<Claim>,
    /// Attached pairs.
    pub(super) attached: Vec<Attached<'a>>,
}

/// Walks every route that the settings let in.
pub(super) fn collect<'a>(context: Context<'a>, desired: &mut Desired, ledger: &mut Ledger) -> Walk<'a> {
    let selection = Selection::of(context, desired);
    let addresses = BTreeMap::new();
    let mut walker = Walker { context, selection, desired, ledger, addresses, walk: Walk::default() };
    context.topology.routes.values().for_each(|route| walker.route(route));
    walker.walk
}

struct Walker<'a, 'd> {
    context: Context<'a>,
    selection: Selection,
    desired: &'d mut Desired,
    ledger: &'d mut Ledger,
    /// Addresses by Gateway and policy.
    addresses: BTreeMap<(Key, Option<Key>), Resolved>,
    walk: Walk<'a>,
}

/// What all names of a route at one listener share.
struct Post<'p> {
    route: &'p RouteState,
    told: &'p RouteAnnotations,
    listener: ListenerId,
    gateway: &'p GatewayState,
    policy: Option<&'p Arc<DnsPolicy>>,
}

/// Where a route attaches: by listener, each parentRef that leads there with what they have in common.
type Doors<'a> = BTreeMap<ListenerId, Vec<(usize, &'a [Intersection])>>;

impl<'a> Walker<'a, '_> {
    fn route(&mut self, state: &'a RouteState) {
        let route = &state.route;
        let annotations = Annotations::of(&route.meta, &self.context.settings.annotation_prefixes);
        if let Some(because) = selection::route_refusal(self.context, route, &annotations) {
            return self.desired.passed_over.push(PassedOver { object: route.object(), because });
        }
        let diagnostics = &mut self.desired.diagnostics;
        let told = RouteAnnotations::read(&annotations, &route.object(), diagnostics);
        let asked = names::of_route(route, &told, self.context.settings, diagnostics);
        if asked.is_empty() {
            self.desired.withheld.push(why::nothing_asked(state));
        }
        let mut is_answered = vec![false; asked.len()];
        for (listener, ways) in doors(state) {
            self.door(state, &told, &asked, listener, &ways, &mut is_answered);
        }
        for (one, _) in asked.iter().zip(is_answered).filter(|(_, is_answered)| !is_answered) {
            self.desired.withheld.push(why::unanswered(self.context, &self.selection, state, one));
        }
    }

    /// A listener that a route attaches to.
    fn door(
        &mut self,
        state: &'a RouteState,
        told: &RouteAnnotations,
        asked: &[Asked],
        id: ListenerId,
        ways: &[(usize, &'a [Intersection])],
        is_answered: &mut [bool],
    ) {
        let listener = self.context.topology.listener(id);
        let gateway = verdicts::gateway_of(self.context.topology, id);
        let (Some(gateway), None) = (gateway, self.selection.listener_refusal(listener)) else { return };
        let Some((judgement, common)) = self.judged(state, id, ways) else { return };
        for (one, is_answered) in asked.iter().zip(is_answered) {
            *is_answered |= one.at(&listener.hostname).is_some();
        }
        let policy = self.context.policies.dns.governing(id);
        let post = Post { route: state, told, listener: id, gateway, policy };
        let mut added = Vec::new();
        for name in names::at_listener(asked, &listener.hostname) {
            if name.wanted.source() != NameSource::Intersected {
                added.push(name.hostname.clone());
            }
            match self.claim(&post, &name, &judgement) {
                Ok(claim) => self.walk.claims.push(claim),
                Err(obstacle) => self.withhold(&post, &name, obstacle),
            }
        }
        self.walk.attached.push(Attached { route: state, listener: id, names: common, added, judgement });
    }

    /// The most favourable judgement among the parentRefs that lead to a listener.
    fn judged(
        &self,
        state: &'a RouteState,
        id: ListenerId,
        ways: &[(usize, &'a [Intersection])],
    ) -> Option<(Judgement, &'a [Intersection])> {
        let mut judged = ways.iter().map(|(parent, names)| (verdicts::judge(self.context, state, *parent, id), *names));
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
        self.policy_gate(post)?;
        self.name_gate(post, name)?;
        let answer = self.answer(post)?;
        Ok(Claim {
            name: name.hostname.clone(),
            source: name.wanted.source(),
            route: post.route.route.object(),
            listener: post.listener,
            gateway: post.gateway.gateway.meta.key.clone(),
            policy: post.policy.map(|policy| policy.meta.key.clone()),
            rank: rank(post),
            wildcard: self.wildcard(post, &name.hostname, &answer),
            answer,
        })
    }

    fn policy_gate(&self, post: &Post<'_>) -> Result<(), Obstacle> {
        let listener = self.context.topology.listener(post.listener);
        let obstacle = |reason, message| {
            let (object, field) = (listener.owner.object(), listener_field(listener, ""));
            Err(Obstacle { reason, message, object, field })
        };
        if *self.context.snapshot.visibility(Kind::DnsPolicy) != Visibility::Complete {
            let message = "DNSPolicies could not be listed, so it is not known what is allowed".to_owned();
            return obstacle(reason::KIND_NOT_VISIBLE, message);
        }
        if post.policy.is_some() || self.context.settings.publish == Publish::All {
            return Ok(());
        }
        let name = listener_name(listener);
        match self.context.policies.dns.invalid(post.listener) {
            Some(state) => {
                let object = state.policy.object();
                let message = format!("{object} is about {name}, and is not valid");
                let field = state.refused.as_ref().map(|refusal| refusal.field.clone()).unwrap_or_default();
                Err(Obstacle { reason: reason::POLICY_INVALID, message, object, field })
            }
            None => obstacle(reason::NO_POLICY, format!("no DNSPolicy governs {name}")),
        }
    }

    fn name_gate(&self, post: &Post<'_>, name: &Name<'_>) -> Result<(), Obstacle> {
        let (route, hostname) = (&post.route.route, &name.hostname);
        let listener = self.context.topology.listener(post.listener);
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
        if let Some(policy) = post.policy.filter(|policy| hostname.is_wildcard() && !policy.allows_wildcards()) {
            let message = format!("`{hostname}` is a wildcard, and {} does not allow wildcards", policy.object());
            return refused(reason::WILDCARD_NOT_ALLOWED, message);
        }
        if !self.context.settings.domains.admits(hostname.as_str()) {
            let message = format!("`--domain-filter` or `--exclude-domains` leaves `{hostname}` out");
            return refused(reason::DOMAIN_NOT_SELECTED, message);
        }
        Ok(())
    }

    fn answer(&mut self, post: &Post<'_>) -> Result<Answer, Obstacle> {
        let targets = self.targets(post, &post.told.targets, post.told.strategy)?;
        Ok(Answer {
            targets,
            route_ttl: post.told.ttl,
            policy_ttl: post.policy.and_then(|policy| policy.ttl),
            set_identifier: post.told.set_identifier.clone(),
            properties: post.told.properties.clone(),
        })
    }

    /// The targets by annotations, else the addresses of the Gateway.
    fn targets(&mut self, post: &Post<'_>, own: &[Str], strategy: Strategy) -> Result<Rc<Targets>, Obstacle> {
        let filled = |targets: &[Str]| targets.iter().filter(|target| !target.is_empty()).cloned().collect::<Vec<_>>();
        let listener = self.context.topology.listener(post.listener);
        let (own, theirs) = (filled(own), filled(self.selection.targets(listener)));
        let chosen = strategy.choose(&own, &theirs);
        let policy = post.policy.map(|policy| &**policy);
        if chosen.is_empty() {
            return self.gateway_addresses(&post.gateway.gateway, policy);
        }
        let is_own = chosen.iter().any(|target| own.contains(target));
        let place = if is_own { post.route.route.object() } else { self.selection.teller(listener) };
        let key = if is_own { post.told.target_key.as_ref() } else { self.selection.target_key(&place) };
        let resolved = addresses::of_annotations(&chosen, policy, &place, key);
        self.desired.diagnostics.extend(resolved.diagnostics);
        resolved.targets
    }

    fn gateway_addresses(&mut self, gateway: &Gateway, policy: Option<&DnsPolicy>) -> Result<Rc<Targets>, Obstacle> {
        let key = (gateway.meta.key.clone(), policy.map(|policy| policy.meta.key.clone()));
        if let Some(known) = self.addresses.get(&key) {
            return known.targets.clone();
        }
        let resolved = addresses::of_gateway(self.context, gateway, policy);
        self.desired.diagnostics.extend(resolved.diagnostics.iter().cloned());
        let targets = resolved.targets.clone();
        self.addresses.insert(key, resolved);
        targets
    }

    /// The listener's wildcard, where a policy lets it stand for a name: the answer has to be the same.
    fn wildcard(&mut self, post: &Post<'_>, name: &Hostname, answer: &Answer) -> Option<Hostname> {
        let wildcard = &self.context.topology.listener(post.listener).hostname;
        let policy = post.policy.filter(|policy| policy.allows_wildcards())?;
        let is_plain = answer.set_identifier.is_none() && answer.properties.is_empty();
        let is_usual = answer.route_ttl.is_none_or(|ttl| Some(ttl) == policy.ttl);
        let is_published = wildcard.is_wildcard() && self.context.settings.domains.admits(wildcard.as_str());
        if !(is_plain && is_usual && is_published) || wildcard == name {
            return None;
        }
        let usual = self.targets(post, &[], Strategy::RoutePreferred).ok()?;
        (usual == answer.targets).then(|| wildcard.clone())
    }

    fn withhold(&mut self, post: &Post<'_>, name: &Name<'_>, obstacle: Obstacle) {
        let route = post.route.route.object();
        let listener = self.context.topology.listener(post.listener).key();
        let withheld = obstacle.withhold(&route, name.hostname.as_str(), Some(listener.clone()));
        let reason = withheld.reason;
        let state = if withheld.holds() { HostnameState::Pending(reason) } else { HostnameState::Skipped(reason) };
        let hostname = withheld.hostname.clone();
        let report = HostnameReport { hostname, listener, route, state, message: withheld.message.clone() };
        self.ledger.add(Kind::DnsPolicy, post.policy.map(|policy| &policy.meta.key), report);
        self.desired.withheld.push(withheld);
    }
}

fn doors(state: &RouteState) -> Doors<'_> {
    let mut doors = Doors::new();
    for (parent, attached) in state.parents.iter().map(|parent| &parent.attached).enumerate() {
        for attachment in attached {
            doors.entry(attachment.listener).or_default().push((parent, &attachment.names));
        }
    }
    doors
}

fn rank(post: &Post<'_>) -> Rank {
    let age = |meta: &Meta| {
        let (created, key) = meta.seniority();
        (created, key.clone())
    };
    Rank {
        is_ungoverned: post.policy.is_none(),
        policy: post.policy.map(|policy| age(&policy.meta)),
        gateway: age(&post.gateway.gateway.meta),
        route: age(&post.route.route.meta),
        kind: post.route.route.kind.kind(),
        listener: post.listener,
    }
}

impl Claim {
    /// The Gateway behind it.
    pub(super) fn gateway(&self) -> ObjectRef {
        gateway_object(&self.gateway)
    }

    /// The same wish, for the wildcard that may stand for the name.
    pub(super) fn of_wildcard(&self) -> Option<Claim> {
        let wildcard = self.wildcard.clone()?;
        Some(Claim { name: wildcard, source: NameSource::ListenerWildcard, wildcard: None, ..self.clone() })
    }
}
