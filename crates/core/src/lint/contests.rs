//! Routes that ask for the same requests: who wins, and by which rule.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::*;
use crate::names::Hostname;

/// The routes that have one hostname at one listener.
type Users<'a> = Vec<(&'a RouteState, Option<u32>)>;

/// A rule of a route, and one thing that it matches.
#[derive(PartialEq, Eq, Hash)]
enum MatchItem<'a> {
    Http(&'a HttpMatch),
    Grpc(&'a GrpcMatch),
    EveryCall,
}

pub(super) fn contests(context: LintContext<'_>) -> Vec<Diagnostic> {
    let mut users: HashMap<(ListenerId, &Hostname), Users<'_>> = HashMap::new();
    let is_meant = |route: &RouteState| {
        [RouteKind::Http, RouteKind::Grpc].contains(&route.route.kind) && route.route.meta.invalid.is_none()
    };
    for route in context.topology.routes.values().filter(|route| is_meant(route)) {
        for attachment in route.attachments() {
            for name in &attachment.names {
                let known = users.entry((attachment.listener, &name.hostname)).or_default();
                if known.last().is_none_or(|(last, _)| !std::ptr::eq(*last, &raw const **route)) {
                    known.push((&**route, name.written));
                }
            }
        }
    }
    let mut shared: BTreeMap<ListenerId, BTreeMap<&Hostname, Users<'_>>> = BTreeMap::new();
    for ((listener, hostname), users) in users.into_iter().filter(|(_, users)| users.len() > 1) {
        shared.entry(listener).or_default().insert(hostname, users);
    }
    let mut told = BTreeSet::new();
    let mut all = Vec::new();
    // The numbers of listeners depend on the order in which objects came, and the order of the topology does not.
    let in_order = context.topology.listener_ids().filter_map(|(id, _)| shared.remove(&id));
    for (hostname, mut users) in in_order.flatten() {
        users.sort_by(|a, b| a.0.route.meta.seniority().cmp(&b.0.route.meta.seniority()));
        all.extend(kinds(hostname, &users, &mut told));
        all.extend(matches(hostname, &users, &mut told));
    }
    all
}

/// Which findings were reported at another hostname or listener already.
type ReportedFields = BTreeSet<(ObjectRef, FieldPath)>;

/// Routes of another kind than the oldest one.
fn kinds(hostname: &Hostname, users: &Users<'_>, told: &mut ReportedFields) -> Vec<Diagnostic> {
    let Some((first, _)) = users.first() else { return Vec::new() };
    let others = users.iter().filter(|(route, _)| route.route.kind != first.route.kind);
    let diagnostic = |(route, written): &(&RouteState, Option<u32>)| {
        let object = route.route.object();
        let field = FieldPath::of("spec.hostnames");
        let field = written.map_or(FieldPath::of("spec.parentRefs"), |i| field.index(i as usize));
        let message = format!(
            "{} {} has the hostname `{hostname}` at the same listener, and {}; implementations may refuse this route",
            if first.route.kind == RouteKind::Http { "an" } else { "a" },
            first.route.kind.as_str(),
            precedence(first, route)
        );
        let is_new = told.insert((object.clone(), field.clone()));
        let diagnostic = Diagnostic::new(reason::ROUTE_KINDS_SHARE_HOSTNAME, &object, field, message);
        is_new.then(|| diagnostic.related(&first.route.object(), FieldPath::of("spec.hostnames"), "the other route"))
    };
    others.filter_map(diagnostic).collect()
}

/// Matches that an earlier route has, too.
fn matches(hostname: &Hostname, users: &Users<'_>, told: &mut ReportedFields) -> Vec<Diagnostic> {
    let mut winners: HashMap<MatchItem<'_>, (&RouteState, usize)> = HashMap::new();
    let mut all = Vec::new();
    for (route, _) in users {
        for (i, rule) in route.route.rules.iter().enumerate() {
            for item in items(rule) {
                let (winner, rule) = *winners.entry(item).or_insert((route, i));
                if winner.route.object() != route.route.object() {
                    all.extend(contest(hostname, (winner, rule), (route, i), told));
                }
            }
        }
    }
    all
}

fn contest(
    hostname: &Hostname,
    (winner, winning): (&RouteState, usize),
    (route, rule): (&RouteState, usize),
    told: &mut ReportedFields,
) -> Option<Diagnostic> {
    let object = route.route.object();
    let field = FieldPath::of("spec.rules").index(rule);
    let is_new = told.insert((object.clone(), field.clone()));
    let message = format!(
        "another route has the same match for `{hostname}` and gets its requests: {}",
        precedence(winner, route)
    );
    let diagnostic = Diagnostic::new(reason::MATCH_CONTESTED, &object, field, message);
    let winning = FieldPath::of("spec.rules").index(winning);
    is_new.then(|| diagnostic.related(&winner.route.object(), winning, "the rule that gets them"))
}

/// Why one route comes before another one.
fn precedence(first: &RouteState, second: &RouteState) -> &'static str {
    match first.route.meta.created == second.route.meta.created {
        true => "its namespace and name come first in the alphabet",
        false => "it is older",
    }
}

fn items(rule: &Rule) -> Vec<MatchItem<'_>> {
    match &rule.matches {
        Matches::Everything => Vec::new(),
        Matches::Http(items) => items.iter().map(MatchItem::Http).collect(),
        Matches::Grpc(items) if items.is_empty() => vec![MatchItem::EveryCall],
        Matches::Grpc(items) => items.iter().map(MatchItem::Grpc).collect(),
    }
}
