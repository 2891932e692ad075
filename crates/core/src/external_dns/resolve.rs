//! The hostnames and targets of one route, by the parents that its status names.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::admission::{self, CandidateRoute};
use super::hosts;
use super::parents::{ParentListener, Parents, RouteParent};
use crate::attachment::ListenerKey;
use crate::model::{GATEWAY_GROUP, Key, Kind, ParentRef, Reference, Route, RouteKind, SharedList, Str, condition};
use crate::publication::NameSource;
use crate::publication::annotations::RouteAnnotations;
use crate::publication::filters;
use crate::publication::hostnames::WantedHostname;
use crate::publication::settings::{PublicationSettings, StatusMode};
use crate::snapshot::Snapshot;

/// Inputs shared by all routes of one kind.
#[derive(Clone, Copy)]
pub(super) struct Resolver<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) settings: &'a PublicationSettings,
    pub(super) parents: &'a Parents<'a>,
    pub(super) kind: RouteKind,
}

/// What became of a route.
pub(super) struct Resolution {
    /// The hostnames it gets.
    pub(super) hosts: Vec<Host>,
    /// For each hostname it asks for, whether it was resolved.
    pub(super) answered: Vec<bool>,
}

/// A hostname that a route gets.
pub(super) struct Host {
    /// The name.
    pub(super) name: Str,
    /// What it resolves to; never empty.
    pub(super) targets: Vec<Str>,
    /// The listeners that serve it.
    pub(super) listeners: SharedList<ListenerKey>,
    /// Where the name comes from.
    pub(super) source: NameSource,
}

/// A parent named by the status or the spec of a route.
#[derive(Clone, Copy)]
pub(super) struct ParentClaim<'r> {
    /// Which.
    pub(super) parent: &'r ParentRef,
    /// Which entry of `status.parents`, or of `spec.parentRefs` where status is not asked, counted from 0.
    pub(super) place: usize,
    /// Whether it took the route.
    pub(super) is_accepted: bool,
}

/// Why a claim leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClaimRefusal {
    /// The spec does not name this parent, or no longer.
    NotInSpec,
    /// Neither Gateway nor ListenerSet.
    OtherKind,
    /// A ListenerSet, and those are not read.
    SetsNotRead,
    /// Not there, or left out by a filter.
    Absent,
    /// Left out by `--gateway-name`.
    OtherName,
    /// The parent has not accepted the route.
    NotAccepted,
    /// The parent accepts no routes at all.
    Detached,
    /// It has no listener of this name.
    NoSection,
}

/// A claim that leads to listeners.
#[derive(Clone, Copy)]
pub(super) struct ClaimedListeners<'a> {
    /// The parent.
    pub(super) parent: &'a RouteParent<'a>,
    /// The listener that the claim names, if it names one.
    pub(super) section: Option<usize>,
}

impl<'a> Resolver<'a> {
    /// Resolves a route.
    pub(super) fn resolve(&self, route: &Route, asked: &RouteAnnotations, wanted: &[WantedHostname]) -> Resolution {
        let canonical: Vec<Option<Cow<str>>> = wanted.iter().map(|name| hosts::canonical(&name.text)).collect();
        let mut search = Search { hosts: BTreeMap::new(), answered: vec![false; wanted.len()] };
        let applicant = self.applicant(route);
        for claim in self.claims(route) {
            let Ok(entrance) = self.entrance(route, claim) else { continue };
            let targets = targets(asked, entrance.parent);
            if targets.is_empty() {
                continue;
            }
            for (place, name) in wanted.iter().enumerate() {
                let Some(host) = &canonical[place] else { continue };
                let question = HostQuery { host, wanted: name, place, port: claim.parent.port };
                search.ask(entrance, applicant, &question, &targets);
            }
        }
        Resolution {
            hosts: search.hosts.into_iter().map(|(name, found)| found.named(name)).collect(),
            answered: search.answered,
        }
    }

    /// The route as listeners see it.
    pub(super) fn applicant<'r>(&self, route: &'r Route) -> CandidateRoute<'r>
    where
        'a: 'r,
    {
        let namespace = &route.meta.key.namespace;
        CandidateRoute { kind: self.kind, namespace, labels: self.snapshot.namespaces.get(namespace).map(|n| &**n) }
    }

    /// The parents that count for a route.
    pub(super) fn claims<'r>(&self, route: &'r Route) -> Vec<ParentClaim<'r>> {
        if self.settings.status == StatusMode::Compute {
            let parents = route.parents.iter().enumerate();
            return parents.map(|(place, parent)| ParentClaim { parent, place, is_accepted: true }).collect();
        }
        let claim = |(place, status): (usize, &'r crate::model::ParentStatus)| {
            let is_accepted = condition(&status.conditions, "Accepted").is_some_and(|c| c.is_true());
            ParentClaim { parent: &status.parent, place, is_accepted }
        };
        route.status.iter().enumerate().map(claim).collect()
    }

    /// Where a claim leads.
    pub(super) fn entrance(&self, route: &Route, claim: ParentClaim) -> Result<ClaimedListeners<'a>, ClaimRefusal> {
        let own = &route.meta.key.namespace;
        let target = ReferenceTarget::of(&claim.parent.target, own);
        if !route.parents.iter().any(|parent| ReferenceTarget::of(&parent.target, own) == target) {
            return Err(ClaimRefusal::NotInSpec);
        }
        let parent = self.parent(&target)?;
        if filters::gateway_name(parent.gateway_name, self.settings).is_some() {
            return Err(ClaimRefusal::OtherName);
        }
        if !claim.is_accepted {
            return Err(ClaimRefusal::NotAccepted);
        }
        if parent.detached.is_some() {
            return Err(ClaimRefusal::Detached);
        }
        let section = section(parent, claim.parent)?;
        Ok(ClaimedListeners { parent, section })
    }

    fn parent(&self, target: &ReferenceTarget) -> Result<&'a RouteParent<'a>, ClaimRefusal> {
        let kind = target.known_kind().ok_or(ClaimRefusal::OtherKind)?;
        if kind == Kind::ListenerSet && !self.settings.gateway_listener_sets {
            return Err(ClaimRefusal::SetsNotRead);
        }
        self.parents.find(kind, &target.key()).ok_or(ClaimRefusal::Absent)
    }
}

/// The targets that a route gets from a parent.
pub(super) fn targets<'a>(asked: &'a RouteAnnotations, parent: &'a RouteParent) -> Cow<'a, [Str]> {
    let chosen = asked.strategy.choose(&asked.targets, &parent.targets);
    if chosen.is_empty() { Cow::Borrowed(&parent.addresses) } else { chosen }
}

/// The listener that a claim names, if it names one.
fn section(parent: &RouteParent, claim: &ParentRef) -> Result<Option<usize>, ClaimRefusal> {
    match claim.section.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => parent.sections.get(name).copied().map(Some).ok_or(ClaimRefusal::NoSection),
        None if parent.listeners.is_empty() => Err(ClaimRefusal::NoSection),
        None => Ok(None),
    }
}

/// What a reference points to, with empty fields read as unset.
#[derive(PartialEq, Eq)]
pub(super) struct ReferenceTarget<'r> {
    group: &'r str,
    kind: &'r str,
    namespace: &'r Str,
    name: &'r Str,
}

impl<'r> ReferenceTarget<'r> {
    /// Reads a reference of an object in `own`.
    pub(super) fn of(reference: &'r Reference, own: &'r Str) -> Self {
        ReferenceTarget {
            group: filled(&reference.group, GATEWAY_GROUP),
            kind: filled(&reference.kind, "Gateway"),
            namespace: reference.namespace.as_ref().filter(|namespace| !namespace.is_empty()).unwrap_or(own),
            name: &reference.name,
        }
    }

    /// Its kind, if that is Gateway or ListenerSet.
    pub(super) fn known_kind(&self) -> Option<Kind> {
        let kinds = [Kind::Gateway, Kind::ListenerSet];
        kinds.into_iter().find(|kind| self.group == GATEWAY_GROUP && kind.as_str() == self.kind)
    }

    /// Namespace and name.
    pub(super) fn key(&self) -> Key {
        Key { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// `Gateway/infra/edge`.
    pub(super) fn shown(&self) -> String {
        format!("{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

fn filled<'r>(text: &'r str, default: &'r str) -> &'r str {
    if text.is_empty() { default } else { text }
}

impl ClaimedListeners<'_> {
    /// Every listener of the claim whose hostname overlaps.
    fn overlapping(&self, host: &str, mut visit: impl FnMut(usize, &ParentListener)) {
        let listeners = &self.parent.listeners;
        match self.section {
            Some(listener) => visit(listener, &listeners[listener]),
            None => {
                self.parent.index.overlapping(host, |listener| visit(listener as usize, &listeners[listener as usize]))
            }
        }
    }
}

/// One hostname at one parent.
struct HostQuery<'q> {
    host: &'q str,
    wanted: &'q WantedHostname,
    place: usize,
    port: Option<u16>,
}

/// What has been found so far for a route.
struct Search {
    hosts: BTreeMap<Str, HostTargets>,
    answered: Vec<bool>,
}

struct HostTargets {
    targets: Vec<Str>,
    listeners: Vec<ListenerKey>,
    source: NameSource,
}

impl Search {
    fn ask(&mut self, entrance: ClaimedListeners, applicant: CandidateRoute, question: &HostQuery, targets: &[Str]) {
        let parent = entrance.parent;
        entrance.overlapping(question.host, |place, listener| {
            if listener.detached.is_some() {
                return;
            }
            let Some(name) = shared_name(listener, question) else { return };
            if admission::objection(listener.spec, parent.object.namespace(), applicant, question.port).is_none() {
                self.answered[question.place] = true;
                self.add(name, parent.listener_key(place), question.wanted.source(), targets);
            }
        });
    }

    fn add(&mut self, name: Str, listener: ListenerKey, source: NameSource, targets: &[Str]) {
        let found = self.hosts.entry(name).or_insert_with(|| HostTargets {
            targets: Vec::new(),
            listeners: Vec::new(),
            source,
        });
        found.targets.extend_from_slice(targets);
        found.listeners.push(listener);
        found.source = found.source.min(source);
    }
}

impl HostTargets {
    fn named(mut self, name: Str) -> Host {
        self.targets.sort();
        self.targets.dedup();
        self.listeners.sort();
        self.listeners.dedup();
        Host { name, targets: self.targets, listeners: self.listeners.into(), source: self.source }
    }
}

/// The name that a listener and a wanted hostname have in common; nothing where neither names one.
fn shared_name(listener: &ParentListener, question: &HostQuery) -> Option<Str> {
    let host = listener.host.as_ref()?;
    let name = hosts::common(host, question.host).filter(|name| !name.is_empty())?;
    Some(if name == &**host {
        host.clone()
    } else if name == &*question.wanted.text {
        question.wanted.text.clone()
    } else {
        name.into()
    })
}
