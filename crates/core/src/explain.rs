//! What becomes of one hostname: who asks for it, what is published, and what a client meets at each listener.
//!
//! Reads what [`crate::attachment`] and [`crate::publication`] have decided, with the messages of [`crate::lint`], and sends
//! sample requests through [`crate::routing`]. Nothing is decided here, so that explanation and decision cannot differ.

use std::collections::BTreeSet;

use crate::attachment::*;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::lint::{LintContext, closest};
use crate::model::*;
use crate::names::Hostname;
use crate::publication::{Desired, HostnameGrants, Withheld};
use crate::reason;
use crate::snapshot::Snapshot;

mod certificates;
mod health;
mod index;
mod publication;
mod redirects;
mod requests;
#[cfg(test)]
mod tests;
mod unclaimed;
mod verdict;
mod walk;

pub use certificates::{CertificateWalk, SecretContent};
pub use health::{NameHealth, RecordWrites};
pub use index::ExplainIndex;
pub use publication::{AnnotatedName, Publication};
pub use requests::ListenerOutcome;
pub use verdict::NameVerdict;

/// The explanation of one hostname.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The hostname in question.
    pub hostname: Hostname,
    /// Every way from a Gateway to this name, working ones first, then those that came furthest.
    pub chains: Vec<Chain>,
    /// Listeners that would serve the name if a route asked for it; only where none does.
    pub open_listeners: Vec<ListenerKey>,
    /// Names that look alike; only where no route asks for this one.
    pub similar: Vec<String>,
    /// The HostnameGrant that decides which namespaces may have the name.
    pub grant: Option<ExplainedGrant>,
}

/// The HostnameGrant that decides about a hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedGrant {
    /// The grant.
    pub grant: ObjectRef,
    /// Its pattern that covers the hostname most closely.
    pub pattern: Str,
    /// The namespaces that it admits by name.
    pub namespaces: Vec<Str>,
    /// Its selector, as text.
    pub selector: Option<String>,
    /// Known namespaces that the selector admits.
    pub selected: Vec<Str>,
}

/// One way to a name.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The links, from the class on.
    pub links: Vec<Link>,
    /// The intersected hostname that covers the name; unset where it did not come that far.
    pub intersected: Option<Hostname>,
    /// The route.
    pub route: ObjectRef,
    /// Whether the route writes the name, or a wildcard around it, and does not take whatever the listener has.
    pub is_by_name: bool,
    /// The listener, where it came that far.
    pub listener: Option<ListenerId>,
    /// Why it is broken, if it is.
    pub broken: Option<Diagnostic>,
    /// Why the route gets nothing for the name at this listener although it is attached.
    pub withheld: Option<Withheld>,
    /// What is odd though it works.
    pub notes: Vec<Diagnostic>,
}

/// One link of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it is.
    pub role: Role,
    /// Its name, as `Kind/namespace/name` or `Kind/namespace/name/listener`.
    pub name: String,
    /// A hostname that belongs to it.
    pub detail: Option<String>,
    /// Whether it holds.
    pub holds: bool,
}

/// What a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Role {
    Class,
    Gateway,
    ListenerSet,
    Listener,
    Route,
}

impl Chain {
    /// Whether the name works along this way.
    pub fn works(&self) -> bool {
        self.broken.is_none()
    }

    /// Whether the route is attached under the name, though perhaps no request gets there.
    pub fn is_attached(&self) -> bool {
        self.intersected.is_some() && self.broken.as_ref().is_none_or(|d| d.reason == reason::HOSTNAME_UNREACHABLE)
    }

    fn rank(&self) -> (bool, bool, usize) {
        let reached = self.links.iter().filter(|link| link.holds).count();
        (!self.works(), self.withheld.is_some(), usize::MAX - reached)
    }
}

impl Explanation {
    /// Walks every way to a name.
    pub fn of(context: LintContext<'_>, hostname: &Hostname) -> Explanation {
        Explanation::among(context, by_seniority(context).into_iter(), hostname)
    }

    /// The same with the routes that may ask for the name, the most senior first.
    fn among<'a>(
        context: LintContext<'_>,
        routes: impl Iterator<Item = &'a RouteState>,
        hostname: &Hostname,
    ) -> Explanation {
        let mut chains: Vec<_> = routes.flat_map(|route| walk::chains(context, route, hostname)).collect();
        chains.sort_by_key(Chain::rank);
        let asked = !chains.is_empty();
        Explanation {
            hostname: hostname.clone(),
            chains,
            open_listeners: if asked { Vec::new() } else { open_listeners(context, hostname) },
            similar: if asked { Vec::new() } else { similar(context, hostname) },
            grant: grant(context.snapshot, hostname),
        }
    }

    /// Whether a route is attached under the name and reached by requests.
    pub fn works(&self) -> bool {
        self.chains.iter().any(Chain::works)
    }
}

fn grant(snapshot: &Snapshot, hostname: &Hostname) -> Option<ExplainedGrant> {
    let grants = HostnameGrants::of(snapshot);
    let found = grants.covering(hostname)?;
    let admitted = &found.grant.namespaces;
    let is_selected = |namespace: &&Str| {
        let selector = admitted.selector.as_ref();
        selector.is_some_and(|selector| snapshot.is_namespace_selected(namespace, selector))
    };
    Some(ExplainedGrant {
        grant: found.grant.object(),
        pattern: found.text().clone(),
        namespaces: admitted.names.clone(),
        selector: admitted.selector.as_ref().map(ToString::to_string),
        selected: snapshot.namespaces.keys().filter(is_selected).cloned().collect(),
    })
}

/// All routes, the most senior first.
fn by_seniority(context: LintContext<'_>) -> Vec<&RouteState> {
    let mut routes: Vec<&RouteState> = context.topology.routes.values().map(|route| &**route).collect();
    routes.sort_by(|a, b| a.route.meta.seniority().cmp(&b.route.meta.seniority()));
    routes
}

fn open_listeners(context: LintContext<'_>, hostname: &Hostname) -> Vec<ListenerKey> {
    let open = |l: &&ListenerState| l.is_serving() && l.spec().protocol.has_hostname() && l.hostname.contains(hostname);
    let mut listeners: Vec<_> = context.topology.listener_ids().map(|(_, listener)| listener).filter(open).collect();
    listeners.sort_by_key(|l| std::cmp::Reverse(l.hostname.specificity()));
    listeners.into_iter().map(ListenerState::key).collect()
}

/// Names in use that a typing mistake could have meant.
fn similar(context: LintContext<'_>, hostname: &Hostname) -> Vec<String> {
    let routes = context.topology.routes.values();
    let names: BTreeSet<&str> = routes.flat_map(|r| &r.route.hostnames).map(|w| &**w.text()).collect();
    let below = |name: &&&str| {
        name.split_once('.').map(|(_, rest)| rest) == hostname.as_str().split_once('.').map(|(_, rest)| rest)
    };
    let mut found: Vec<String> =
        closest(hostname.as_str(), names.iter().copied()).map(str::to_owned).into_iter().collect();
    for name in names.iter().filter(below).take(5) {
        if !found.iter().any(|known| known == name) {
            found.push((*name).to_owned());
        }
    }
    found
}

/// The names that an object asks for, or that are published or withheld at its listeners.
pub fn asked_names(snapshot: &Snapshot, desired: &Desired, object: &ObjectRef) -> BTreeSet<Hostname> {
    let written = snapshot.routes.get(object).into_iter().flat_map(|route| &route.hostnames);
    let mut names: BTreeSet<Hostname> = written.filter_map(|written| written.name().ok().cloned()).collect();
    let is_at = |key: &ListenerKey| key.owner == *object;
    let records = desired.records.iter().chain(&desired.covered);
    let records = records.filter(|record| record.routes.contains(object) || record.listeners.iter().any(is_at));
    let withheld = desired.withheld.iter().filter(|w| w.route == *object || w.listener.as_ref().is_some_and(is_at));
    let texts = records.map(|record| &record.name).chain(withheld.map(|withheld| &withheld.hostname));
    names.extend(texts.filter_map(|text| Hostname::parse(text).ok()));
    names
}

/// The reason an unreadable hostname gets nothing.
fn unreadable(route: &Route, index: usize) -> Option<Diagnostic> {
    let written = route.hostnames.get(index)?;
    let error = written.name().err()?;
    let field = FieldPath::of("spec.hostnames").index(index);
    Some(Diagnostic::new(reason::INVALID_HOSTNAME, &route.object(), field, format!("`{}` {error}", written.text())))
}
