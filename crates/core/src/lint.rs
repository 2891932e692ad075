//! Diagnostics about a snapshot and its topology, for the owners of the objects.
//!
//! Every function turns a decision of [`crate::attachment`] into a [`Diagnostic`]: object, field, cause, and help. `check` shows
//! them, status messages quote them, `explain` uses them. Nothing is decided here. A message contains only what the owner of
//! the object may know; the other object of a conflict is in `related`.

use std::collections::BTreeSet;

use crate::attachment::*;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::model::*;
use crate::reason;
use crate::snapshot::{Origin, Snapshot};

mod annotations;
mod backends;
mod contests;
mod gateways;
mod health_checks;
mod hostname_grants;
mod listeners;
mod namespaces;
mod reach;
mod routes;
pub mod suppression;

/// A snapshot and its topology.
#[derive(Clone, Copy)]
pub struct LintContext<'a> {
    /// The objects.
    pub snapshot: &'a Snapshot,
    /// The decisions.
    pub topology: &'a Topology,
}

impl<'a> LintContext<'a> {
    /// All diagnostics, worst first.
    pub fn diagnostics(self) -> Vec<Diagnostic> {
        let mut all = Vec::new();
        for gateway in self.topology.gateways.values() {
            all.extend(gateways::gateway(self, gateway));
            all.extend(gateways::without_address(self, gateway));
        }
        for set in self.topology.sets.values() {
            all.extend(gateways::set(self, set));
        }
        for (id, listener) in self.topology.listener_ids() {
            if self.is_judged(listener) {
                all.extend(listeners::findings(self, id));
            }
        }
        for route in self.topology.routes.values() {
            all.extend(self.route(route));
        }
        let unjudged = self.unjudged_listeners();
        let is_unjudged =
            |d: &Diagnostic| d.related.iter().any(|r| unjudged.contains(&(r.object.clone(), r.field.clone())));
        all.retain(|diagnostic| diagnostic.reason != reason::LISTENER_REFUSED || !is_unjudged(diagnostic));
        all.extend(reach::unreachable(self));
        all.extend(contests::contests(self));
        all.extend(annotations::misspelt(self));
        all.extend(namespaces::unknown(self));
        all.extend(hostname_grants::findings(self));
        // What an API server would refuse was reported when the object was read.
        all.retain(|diagnostic| diagnostic.reason != reason::INVALID_FIELD);
        all.retain(|diagnostic| self.is_certain(diagnostic));
        all.extend(namespaces::assumed(self));
        all.extend(namespaces::incomplete(self));
        all.sort_by(|a, b| a.rank().cmp(&b.rank()));
        all
    }

    /// The diagnostics of a route.
    pub fn route(self, route: &RouteState) -> Vec<Diagnostic> {
        let mut all: Vec<_> = routes::hygiene(route).into_iter().collect();
        let told = |d: &Diagnostic| d.reason != reason::NO_COMMON_HOSTNAME || routes::has_valid_hostname(route);
        all.extend((0..route.parents.len()).filter_map(|i| self.parent(route, i)).filter(told));
        all.extend(routes::repeated_parents(route));
        all.extend(routes::ignored_hostnames(self, route));
        all.extend(backends::backends(self, route));
        all
    }

    /// Why a route is not accepted by one of its parents.
    pub fn parent(self, route: &RouteState, index: usize) -> Option<Diagnostic> {
        routes::parent(self, route, index)
    }

    /// Every listener that a parentRef of a route could mean, with the verdict on each.
    pub fn candidates(self, route: &RouteState, index: usize) -> Vec<Candidate> {
        crate::attachment::routes::candidates(self.snapshot, self.topology, route, index)
    }

    /// Why a route does not attach to one candidate listener.
    pub fn candidate(self, route: &RouteState, index: usize, candidate: &Candidate) -> Option<Diagnostic> {
        let reason = candidate.verdict.as_ref().err()?;
        Some(routes::refusal(self, route, index, candidate.listener, *reason))
    }

    /// What is wrong with a listener.
    pub fn listener(self, id: ListenerId) -> Vec<Diagnostic> {
        listeners::listener(self, id)
    }

    /// What is wrong with a ListenerSet as a whole.
    pub fn set(self, set: &SetState) -> Vec<Diagnostic> {
        gateways::set(self, set)
    }

    /// What is wrong with a Gateway as a whole.
    pub fn gateway(self, gateway: &GatewayState) -> Vec<Diagnostic> {
        gateways::gateway(self, gateway)
    }

    /// What is wrong with the backends of a route.
    pub fn backends(self, route: &RouteState) -> Vec<Diagnostic> {
        backends::backends(self, route)
    }

    /// Listeners that are refused only because of objects that are not among the files.
    fn unjudged_listeners(self) -> BTreeSet<(ObjectRef, FieldPath)> {
        let refused = self.topology.listener_ids().map(|(_, listener)| listener);
        let refused = refused.filter(|state| state.refused == Some(reason::CA_CERTIFICATE_UNUSABLE));
        let unjudged = refused.filter(|state| listeners::lacks_only_absent_ca(self, state));
        unjudged.map(|state| (state.owner.object(), listener_field(state, ""))).collect()
    }

    /// Whether a listener is expected to work: its Gateway is in scope, or would be if it admitted the set.
    fn is_judged(self, listener: &ListenerState) -> bool {
        listener.gateway.is_some()
    }

    /// Whether a diagnostic is about what the files say, and not about what another program completes.
    pub fn is_certain(self, diagnostic: &Diagnostic) -> bool {
        let facts = &self.snapshot.file_facts;
        let mut concerned = diagnostic.object.iter().chain(diagnostic.related.iter().map(|related| &related.object));
        !concerned.any(|object| facts.incomplete.contains(object)) && !self.rests_on_assumed_namespace(diagnostic)
    }

    /// Whether a diagnostic depends on the namespace of an object whose namespace is an assumption.
    fn rests_on_assumed_namespace(self, diagnostic: &Diagnostic) -> bool {
        let mut concerned = diagnostic.object.iter().chain(diagnostic.related.iter().map(|related| &related.object));
        let any_grant = || {
            let assumed = &self.snapshot.file_facts.without_namespace;
            assumed.iter().any(|object| object.kind == Kind::ReferenceGrant)
        };
        NAMESPACE_DEPENDENT.contains(&diagnostic.reason)
            && (concerned.any(|object| self.is_namespace_assumed(object))
                || (diagnostic.reason == reason::REFERENCE_NOT_PERMITTED && any_grant()))
    }

    /// Whether an object of this name may be the one that is missed: its namespace is an assumption.
    fn may_be_elsewhere(self, kind: Kind, name: &Str) -> bool {
        let assumed = &self.snapshot.file_facts.without_namespace;
        assumed.iter().any(|object| object.kind == kind && object.name() == name)
    }

    /// Whether the text of an object states no namespace, so that its real one is not known.
    fn is_namespace_assumed(self, object: &ObjectRef) -> bool {
        self.snapshot.file_facts.without_namespace.contains(object)
    }

    /// Whether the input can be expected to hold an object: a cluster always, files only if they hold others like it.
    fn expects(self, kind: Kind, namespace: &Str) -> bool {
        self.snapshot.origin == Origin::Cluster
            || match kind {
                Kind::Service => self.snapshot.services_in(namespace).next().is_some(),
                Kind::Gateway => !self.snapshot.gateways.is_empty(),
                _ => true,
            }
    }

    /// How a missing object is called: files may simply not hold it.
    fn absent(self) -> &'static str {
        match self.snapshot.origin {
            Origin::Files => "is not in the input",
            Origin::Cluster => "does not exist",
        }
    }
}

/// Reasons whose verdict would differ if the object were in another namespace.
const NAMESPACE_DEPENDENT: [reason::Reason; 7] = [
    reason::HOSTNAME_NOT_GRANTED,
    reason::NAMESPACE_NOT_ALLOWED,
    reason::PARENT_MISSING,
    reason::REFERENCE_NOT_PERMITTED,
    reason::LISTENER_SET_NOT_ALLOWED,
    reason::LISTENER_SET_PARENT_MISSING,
    reason::LISTENER_SET_NOT_ATTACHED,
];

pub(crate) use listeners::unsecured;

/// The field because of which an API server would refuse an object, if it would (D30).
pub fn invalid(meta: &Meta, object: &ObjectRef) -> Option<Diagnostic> {
    let invalid = meta.invalid.as_ref()?;
    Some(Diagnostic::new(invalid.reason, object, invalid.field.clone(), invalid.message.as_str()))
}

/// A listener in a message.
pub fn listener_name(listener: &ListenerState) -> String {
    let owner = listener.owner.object();
    format!("listener `{}` of {} {}", listener.spec().name, owner.kind, owner.key)
}

/// The way to a field of a listener in its owner.
pub fn listener_field(listener: &ListenerState, field: &str) -> FieldPath {
    let path = FieldPath::of("spec.listeners").index(listener.index);
    if field.is_empty() { path } else { FieldPath::of(&format!("{path}.{field}")) }
}

/// The most names that a misspelt one is compared with where there may be many mistakes among many names.
const MOST_NAMES: usize = 500;

/// The closest of several names to a misspelt one, if any is close.
pub fn closest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let most = 1 + wanted.len() / 4;
    let scored = names.filter_map(|name| Some((distance(wanted, name, most)?, name)));
    scored.min().map(|(_, name)| name)
}

/// Edit distance where it is at most so large, bounded by the lengths that names have.
fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(253).collect(), b.chars().take(253).collect());
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        let mut least = row[0];
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
            least = least.min(row[j + 1]);
        }
        if least > most {
            return None;
        }
    }
    row.pop().filter(|distance| *distance <= most)
}

/// Several names in one sentence, bounded.
pub fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.collect();
    listed_of(names.len(), names.into_iter())
}

/// How many names are shown.
pub(crate) const SHOWN: usize = 8;

/// The same, where it is known how many there are.
pub(crate) fn listed_of<'n>(count: usize, names: impl Iterator<Item = &'n str>) -> String {
    let quoted: Vec<_> = names.take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = count.saturating_sub(SHOWN);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", quoted.join(", "))
}

fn lowered(mut diagnostic: Diagnostic, expected: bool) -> Diagnostic {
    if !expected {
        diagnostic.severity = reason::Severity::Warning;
    }
    diagnostic
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn only_a_name_that_is_near_is_suggested() {
        let names = || ["web", "web-frontend", "store-front", "käse"].into_iter();
        assert_eq!(closest("web-fronted", names()), Some("web-frontend"));
        assert_eq!(closest("kase", names()), Some("käse"));
        assert_eq!(closest("we", names()), Some("web"));
        assert_eq!(closest("payments", names()), None);
        assert_eq!(closest("", ["a", "ab"].into_iter()), Some("a"));
    }
}
