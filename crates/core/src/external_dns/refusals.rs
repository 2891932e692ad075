//! Why a hostname gets no record: the parent claim that passed the most checks, and the check that it failed.
//!
//! Runs only for hostnames without a record, so it may be slow. It repeats the checks of [`super::resolve`] in their order.

use super::admission::{self, Objection};
use super::hosts;
use super::parents::{Detached, RouteParent};
use super::resolve::{ClaimRefusal, ClaimedListeners, ParentClaim, ReferenceTarget, Resolution, Resolver};
use crate::attachment::ListenerKey;
use crate::diagnostic::FieldPath;
use crate::model::{Kind, ObjectRef, ParentRef, Route, Str, condition};
use crate::names::Hostname;
use crate::publication::Withheld;
use crate::publication::hostnames::WantedHostname;
use crate::publication::settings::StatusMode;
use crate::reason::{self, Reason};

/// The hostnames of a route that get no record.
pub(super) fn withheld(
    resolver: &Resolver,
    route: &Route,
    wanted: &[WantedHostname],
    resolution: &Resolution,
) -> Vec<Withheld> {
    let is_served = resolution.answered.contains(&true);
    if wanted.is_empty() {
        return vec![UnservedHostname { resolver, route, wanted: None }.withheld()];
    }
    let unanswered = wanted.iter().zip(&resolution.answered).filter(|(_, answered)| !**answered).map(|(name, _)| name);
    let worth_telling = unanswered.filter(|name| !is_served || !name.text.is_empty());
    worth_telling.map(|name| UnservedHostname { resolver, route, wanted: Some(name) }.withheld()).collect()
}

/// One hostname of a route that gets no record.
struct UnservedHostname<'c> {
    resolver: &'c Resolver<'c>,
    route: &'c Route,
    wanted: Option<&'c WantedHostname>,
}

/// A failed check, and how far the claim got.
struct Obstacle {
    /// Whether the listener has this hostname; such listeners take precedence over others.
    has_name: bool,
    stage: RefusalStage,
    reason: Reason,
    message: String,
    object: ObjectRef,
    field: FieldPath,
    listener: Option<ListenerKey>,
}

/// The checks, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RefusalStage {
    Status,
    RouteParent,
    Accepted,
    Section,
    Listener(Objection),
    Hostname,
    Address,
}

impl Obstacle {
    fn rank(&self) -> (bool, RefusalStage) {
        (self.has_name, self.stage)
    }
}

impl UnservedHostname<'_> {
    fn withheld(&self) -> Withheld {
        let obstacle = self.first_obstacle();
        Withheld {
            route: self.route.object(),
            hostname: self.wanted.map_or("*".into(), WantedHostname::shown),
            listener: obstacle.listener,
            reason: obstacle.reason,
            message: obstacle.message,
            object: obstacle.object,
            field: obstacle.field,
        }
    }

    fn first_obstacle(&self) -> Obstacle {
        if let Some(obstacle) = self.own_fault() {
            return obstacle;
        }
        let mut furthest = self.without_status();
        for claim in self.resolver.claims(self.route) {
            let obstacle = self.at_claim(claim);
            if furthest.as_ref().is_none_or(|known| obstacle.rank() > known.rank()) {
                furthest = Some(obstacle);
            }
        }
        furthest.unwrap_or_else(|| self.no_status(0))
    }

    /// What is wrong with the route itself.
    fn own_fault(&self) -> Option<Obstacle> {
        if self.route.parents.is_empty() {
            let message = "the route names no parent".to_owned();
            return Some(self.on_route(RefusalStage::Status, reason::ROUTE_WITHOUT_PARENT, message, "spec.parentRefs"));
        }
        let Some(wanted) = self.wanted else {
            let message =
                "`gateway-hostname-source` leaves out the listeners' hostnames, and the route has none of its own";
            let message = message.to_owned();
            return Some(self.on_route(RefusalStage::Status, reason::NO_NAME, message, "metadata.annotations"));
        };
        if hosts::canonical(&wanted.text).is_some() {
            return None;
        }
        let message = match Hostname::parse(&wanted.text) {
            Err(error) => format!("`{}` {error}", wanted.text),
            Ok(_) => format!("`{}` is not a hostname", wanted.text),
        };
        let mut obstacle = self.on_route(RefusalStage::Status, reason::INVALID_HOSTNAME, message, "");
        obstacle.field = wanted.field();
        Some(obstacle)
    }

    /// A parentRef without an entry in the status.
    fn without_status(&self) -> Option<Obstacle> {
        if self.resolver.settings.status == StatusMode::Compute {
            return None;
        }
        let own = &self.route.meta.key.namespace;
        let is_silent = |parent: &ParentRef| {
            let target = ReferenceTarget::of(&parent.target, own);
            !self.route.status.iter().any(|status| ReferenceTarget::of(&status.parent.target, own) == target)
        };
        self.route.parents.iter().position(is_silent).map(|place| self.no_status(place))
    }

    fn no_status(&self, place: usize) -> Obstacle {
        let own = &self.route.meta.key.namespace;
        let parent = self.route.parents.get(place).map(|parent| ReferenceTarget::of(&parent.target, own).shown());
        let message = format!("`status.parents` says nothing about {} yet", parent.unwrap_or_default());
        let mut obstacle = self.on_route(RefusalStage::Status, reason::STATUS_MISSING, message, "");
        obstacle.field = FieldPath::of("spec.parentRefs").index(place);
        obstacle
    }

    fn at_claim(&self, claim: ParentClaim) -> Obstacle {
        match self.resolver.entrance(self.route, claim) {
            Err(dead) => self.dead(claim, dead),
            Ok(entrance) => self.at_entrance(claim, entrance),
        }
    }

    fn dead(&self, claim: ParentClaim, dead: ClaimRefusal) -> Obstacle {
        let target = ReferenceTarget::of(&claim.parent.target, &self.route.meta.key.namespace);
        let shown = target.shown();
        let (stage, reason, message) = match dead {
            ClaimRefusal::NotInSpec => {
                let message = format!("`status.parents` speaks of {shown}, which `spec.parentRefs` does not name");
                let field = FieldPath::of("status.parents").index(claim.place).key("parentRef");
                return Obstacle { field, ..self.on_route(RefusalStage::Status, reason::STATUS_STALE, message, "") };
            }
            ClaimRefusal::NotAccepted => return self.not_accepted(claim, &shown),
            ClaimRefusal::Detached => return self.detached_parent(&target),
            ClaimRefusal::OtherKind => (
                RefusalStage::RouteParent,
                reason::PARENT_KIND_UNKNOWN,
                format!("{shown} is neither Gateway nor ListenerSet"),
            ),
            ClaimRefusal::SetsNotRead => (
                RefusalStage::RouteParent,
                reason::NOT_SELECTED,
                format!("{shown} is not read without `--gateway-listener-sets`"),
            ),
            ClaimRefusal::Absent => self.absent(&target),
            ClaimRefusal::OtherName => {
                let name = self.resolver.settings.gateway_name.as_deref().unwrap_or_default();
                (RefusalStage::RouteParent, reason::NOT_SELECTED, format!("`--gateway-name {name}` leaves {shown} out"))
            }
            ClaimRefusal::NoSection => {
                let section = claim.parent.section.as_deref().unwrap_or_default();
                let field = self.parent_field(claim).key("sectionName");
                let message = format!("{shown} has no listener `{section}`");
                return Obstacle {
                    field,
                    ..self.on_route(RefusalStage::Section, reason::SECTION_NOT_FOUND, message, "")
                };
            }
        };
        Obstacle { field: self.parent_field(claim), ..self.on_route(stage, reason, message, "") }
    }

    fn not_accepted(&self, claim: ParentClaim, parent: &str) -> Obstacle {
        let conditions = self.route.status.get(claim.place).map(|status| &*status.conditions).unwrap_or_default();
        let message = match condition(conditions, "Accepted") {
            Some(found) => format!("{parent} refuses the route: {} {}", found.reason, found.message).trim().to_owned(),
            None => format!("{parent} has not said whether it accepts the route"),
        };
        let field = FieldPath::of("status.parents").index(claim.place).key("conditions");
        Obstacle { field, ..self.on_route(RefusalStage::Accepted, reason::STATUS_REFUSED, message, "") }
    }

    fn absent(&self, target: &ReferenceTarget) -> (RefusalStage, Reason, String) {
        let snapshot = self.resolver.snapshot;
        let is_there = match target.known_kind() {
            Some(Kind::Gateway) => snapshot.gateways.contains_key(&target.key()),
            Some(kind) => snapshot.listener_sets.contains_key(&ObjectRef { kind, key: target.key() }),
            None => false,
        };
        if is_there {
            (RefusalStage::RouteParent, reason::NOT_SELECTED, format!("{} is left out by a filter", target.shown()))
        } else {
            (RefusalStage::RouteParent, reason::PARENT_MISSING, format!("{} is not there", target.shown()))
        }
    }

    fn detached_parent(&self, target: &ReferenceTarget) -> Obstacle {
        let parent = self.resolver.parents.find(Kind::ListenerSet, &target.key());
        match parent.and_then(|parent| parent.detached.as_ref()) {
            Some(detached) => of_detached(RefusalStage::Accepted, detached, None),
            None => self.on_route(
                RefusalStage::Accepted,
                reason::LISTENER_SET_NOT_ATTACHED,
                target.shown(),
                "spec.parentRefs",
            ),
        }
    }

    /// The listener that came furthest.
    fn at_entrance(&self, claim: ParentClaim, entrance: ClaimedListeners) -> Obstacle {
        let parent = entrance.parent;
        let listeners = match entrance.section {
            Some(listener) => listener..listener + 1,
            None => 0..parent.listeners.len(),
        };
        let mut furthest: Option<Obstacle> = None;
        for listener in listeners {
            let obstacle = self.at_listener(claim, parent, listener);
            if furthest.as_ref().is_none_or(|known| obstacle.rank() > known.rank()) {
                furthest = Some(obstacle);
            }
        }
        furthest.unwrap_or_else(|| self.dead(claim, ClaimRefusal::NoSection))
    }

    fn at_listener(&self, claim: ParentClaim, parent: &RouteParent, place: usize) -> Obstacle {
        let listener = &parent.listeners[place];
        if let Some(detached) = &listener.detached {
            return of_detached(RefusalStage::Section, detached, Some(parent.listener_key(place)));
        }
        let applicant = self.resolver.applicant(self.route);
        let objection = admission::objection(listener.spec, parent.object.namespace(), applicant, claim.parent.port);
        let mut obstacle = match objection {
            Some(objection) => self.objected(claim, parent, place, objection),
            None => self.hostname_or_address(parent, place),
        };
        obstacle.has_name = self.common_name(parent, place).is_some();
        obstacle
    }

    /// What the hostname has in common with a listener's.
    fn common_name(&self, parent: &RouteParent, place: usize) -> Option<Str> {
        let host = parent.listeners[place].host.as_deref()?;
        let wanted = self.wanted.and_then(|wanted| hosts::canonical(&wanted.text)).unwrap_or_default();
        hosts::common(host, &wanted).map(Str::from)
    }

    fn objected(&self, claim: ParentClaim, parent: &RouteParent, place: usize, objection: Objection) -> Obstacle {
        let listener = parent.listener_key(place);
        let spec = parent.listeners[place].spec;
        let namespace = &self.route.meta.key.namespace;
        let kind = self.route.kind;
        let of_listener = FieldPath::of("spec.listeners").index(place).key("allowedRoutes");
        let (reason, message, object, field) = match objection {
            Objection::Protocol => {
                let message = format!(
                    "{listener} speaks {}, which external-dns does not pair with {kind}",
                    spec.protocol.as_str()
                );
                (reason::ROUTE_KIND_NOT_ALLOWED, message, self.route.object(), self.parent_field(claim))
            }
            Objection::Port => {
                let message = format!("{listener} has port {}, the parentRef asks for another", spec.port);
                (reason::SECTION_NOT_FOUND, message, self.route.object(), self.parent_field(claim).key("port"))
            }
            Objection::Namespace => {
                let message = self.namespace_message(&listener, namespace);
                (reason::NAMESPACE_NOT_ALLOWED, message, parent.object.clone(), of_listener.key("namespaces"))
            }
            Objection::Kind => {
                let message = format!("{listener} does not list {kind} in `allowedRoutes.kinds`");
                (reason::ROUTE_KIND_NOT_ALLOWED, message, parent.object.clone(), of_listener.key("kinds"))
            }
        };
        let stage = RefusalStage::Listener(objection);
        Obstacle { has_name: false, stage, reason, message, object, field, listener: Some(listener) }
    }

    fn namespace_message(&self, listener: &ListenerKey, namespace: &Str) -> String {
        let is_known = self.resolver.snapshot.namespaces.contains_key(namespace);
        let unknown =
            if is_known { "" } else { ", whose labels are not known: the Namespace is not among the objects" };
        format!("{listener} takes no routes from namespace `{namespace}`{unknown}")
    }

    fn hostname_or_address(&self, parent: &RouteParent, place: usize) -> Obstacle {
        let listener = parent.listener_key(place);
        let (stage, reason, message, object, field) = match self.common_name(parent, place).as_deref() {
            Some("") => {
                let message = format!("neither the route nor {listener} names a hostname");
                let (object, field) = match self.route.kind.has_hostnames() {
                    true => (self.route.object(), FieldPath::of("spec.hostnames")),
                    false => (parent.object.clone(), FieldPath::of("spec.listeners").index(place).key("hostname")),
                };
                (RefusalStage::Hostname, reason::NO_NAME, message, object, field)
            }
            Some(_) => {
                let gateway = parent.gateway.map_or_else(|| parent.object.clone(), gateway_object);
                let message = format!("{gateway} has no address, so that there is nothing to publish");
                (
                    RefusalStage::Address,
                    reason::GATEWAY_WITHOUT_ADDRESS,
                    message,
                    gateway,
                    FieldPath::of("status.addresses"),
                )
            }
            None => {
                let theirs = parent.listeners[place].spec.hostname.as_ref().map_or("", |hostname| hostname.text());
                let message = format!("`{}` and `{theirs}` of {listener} have nothing in common", self.shown());
                let field = self.wanted.map(WantedHostname::field).unwrap_or_default();
                (RefusalStage::Hostname, reason::NO_COMMON_HOSTNAME, message, self.route.object(), field)
            }
        };
        Obstacle { has_name: false, stage, reason, message, object, field, listener: Some(listener) }
    }

    fn shown(&self) -> Str {
        self.wanted.map_or("*".into(), WantedHostname::shown)
    }

    fn on_route(&self, stage: RefusalStage, reason: Reason, message: String, field: &str) -> Obstacle {
        let (object, field) = (self.route.object(), FieldPath::of(field));
        Obstacle { has_name: false, stage, reason, message, object, field, listener: None }
    }

    /// The parentRef of the spec that a claim belongs to.
    fn parent_field(&self, claim: ParentClaim) -> FieldPath {
        let own = &self.route.meta.key.namespace;
        let target = ReferenceTarget::of(&claim.parent.target, own);
        let is_same = |parent: &&ParentRef| ReferenceTarget::of(&parent.target, own) == target;
        let exact = self.route.parents.iter().position(|parent| parent == claim.parent);
        let place = exact.or_else(|| self.route.parents.iter().position(|parent| is_same(&parent)));
        FieldPath::of("spec.parentRefs").index(place.unwrap_or_default())
    }
}

fn of_detached(stage: RefusalStage, detached: &Detached, listener: Option<ListenerKey>) -> Obstacle {
    Obstacle {
        has_name: false,
        stage,
        reason: detached.reason,
        message: detached.message.clone(),
        object: detached.object.clone(),
        field: FieldPath::of(detached.field),
        listener,
    }
}

fn gateway_object(gateway: &crate::model::Gateway) -> ObjectRef {
    ObjectRef { kind: Kind::Gateway, key: gateway.meta.key.clone() }
}
