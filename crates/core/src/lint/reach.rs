//! Attached and yet out of reach: names that a more specific listener owns, and connections that an older route takes.

use std::collections::BTreeMap;

use super::*;
use crate::names::Hostname;

pub(super) fn unreachable(world: World<'_>) -> Vec<Diagnostic> {
    let owners = owners(world);
    let mut all = Vec::new();
    for route in world.topology.routes.values() {
        all.extend(shadowed(world, &owners, route));
    }
    all.extend(losers(world));
    all
}

/// A Gateway, port, protocol and hostname.
type Door = (Key, u16, Protocol, Hostname);

/// Serving listeners by what they own.
fn owners(world: World<'_>) -> BTreeMap<Door, ListenerId> {
    let serving = world.topology.listener_ids().filter(|(_, l)| l.is_serving() && l.spec().protocol.has_hostname());
    serving.filter_map(|(id, l)| Some((door(l, l.hostname.clone())?, id))).collect()
}

fn door(listener: &ListenerState, name: Hostname) -> Option<Door> {
    let spec = listener.spec();
    Some((listener.gateway.clone()?, spec.port, spec.protocol.clone(), name))
}

/// Names that a route has on a listener while another listener takes all requests for them.
fn shadowed(world: World<'_>, owners: &BTreeMap<Door, ListenerId>, route: &RouteState) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    let attached = || route.parents.iter().flat_map(|p| &p.candidates);
    for candidate in attached() {
        let listener = world.topology.listener(candidate.listener);
        let Ok(names) = &candidate.verdict else { continue };
        if !listener.is_serving() {
            continue;
        }
        for name in names {
            let owner = owner(owners, listener, &name.hostname).filter(|owner| *owner != candidate.listener);
            let Some(owner) = owner else { continue };
            let reached = attached().any(|c| c.listener == owner && c.verdict.is_ok());
            if !reached {
                all.push(shadow(world, route, listener, owner, name));
            }
        }
    }
    all
}

/// The most specific listener that takes every request for a name.
fn owner(owners: &BTreeMap<Door, ListenerId>, listener: &ListenerState, name: &Hostname) -> Option<ListenerId> {
    let mut candidates = std::iter::successors(Some(name.clone()), wider);
    candidates.find_map(|name| owners.get(&door(listener, name)?).copied())
}

/// The next wider hostname: `a.b.c`, `*.b.c`, `*.c`, `*`.
fn wider(name: &Hostname) -> Option<Hostname> {
    if name.is_any() {
        return None;
    }
    let base = name.wildcard_base().unwrap_or(name.as_str());
    match base.split_once('.') {
        Some((_, rest)) => Hostname::parse(&format!("*.{rest}")).ok(),
        None => Some(Hostname::any()),
    }
}

fn shadow(
    world: World<'_>,
    route: &RouteState,
    listener: &ListenerState,
    owner: ListenerId,
    name: &Intersection,
) -> Diagnostic {
    let owner = world.topology.listener(owner);
    let field = FieldPath::of("spec.hostnames");
    let field = name.written.map_or(FieldPath::of("spec.parentRefs"), |i| field.index(i));
    let message = format!(
        "requests for `{}` go to a listener for `{}`, never to {}",
        name.hostname,
        owner.hostname,
        listener_name(listener)
    );
    let diagnostic = Diagnostic::new(reason::HOSTNAME_UNREACHABLE, &route.route.object(), field, message);
    diagnostic.related(&owner.owner.object(), listener_field(owner, "hostname"), "the more specific listener")
}

/// TCP and UDP routes that share a listener with an older one.
fn losers(world: World<'_>) -> Vec<Diagnostic> {
    let mut by_listener: BTreeMap<ListenerId, Vec<&RouteState>> = BTreeMap::new();
    for (route, id, _) in world.topology.attachments() {
        if matches!(route.route.kind, RouteKind::Tcp | RouteKind::Udp) {
            by_listener.entry(id).or_default().push(route);
        }
    }
    let mut all = Vec::new();
    for (id, mut routes) in by_listener {
        routes.sort_by(|a, b| a.route.meta.seniority().cmp(&b.route.meta.seniority()));
        routes.dedup_by(|a, b| a.route.object() == b.route.object());
        for loser in routes.iter().skip(1) {
            let name = listener_name(world.topology.listener(id));
            let message = format!("{name} gives all connections to an older route");
            let field = FieldPath::of("spec.parentRefs");
            let winner = routes[0].route.object();
            let diagnostic = Diagnostic::new(reason::ROUTE_LOSES_ALL, &loser.route.object(), field, message);
            all.push(diagnostic.related(&winner, FieldPath::of("metadata.creationTimestamp"), "the older one"));
        }
    }
    all
}
