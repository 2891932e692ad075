//! Attached routes that get no requests: a more specific listener or an older route takes all of them.

use std::collections::BTreeMap;

use super::*;
use crate::names::Hostname;
use crate::routing::HostIndex;

pub(super) fn unreachable(context: LintContext<'_>) -> Vec<Diagnostic> {
    let owners = Owners::of(context);
    let mut all = Vec::new();
    for route in context.topology.routes.values() {
        all.extend(shadowed(context, &owners, route));
    }
    all.extend(losers(context));
    all
}

/// Serving listeners by what they own: for each Gateway, port and protocol the hostnames.
struct Owners {
    indexes: Vec<HostIndex<Option<ListenerId>>>,
    /// The position in `indexes` of each serving listener with a hostname.
    positions: BTreeMap<ListenerId, usize>,
}

impl Owners {
    fn of(context: LintContext<'_>) -> Owners {
        let mut numbers: BTreeMap<(&Key, u16, &Protocol), usize> = BTreeMap::new();
        let mut owners = Owners { indexes: Vec::new(), positions: BTreeMap::new() };
        for (id, listener) in context.topology.listener_ids() {
            let spec = listener.spec();
            let serving = listener.is_serving() && spec.protocol.has_hostname();
            let position = listener.gateway.as_ref().filter(|_| serving).map(|gateway| {
                *numbers.entry((gateway, spec.port, &spec.protocol)).or_insert_with(|| {
                    owners.indexes.push(HostIndex::new());
                    owners.indexes.len() - 1
                })
            });
            if let Some(index) = position.and_then(|position| owners.indexes.get_mut(position)) {
                index.insert(listener.hostname.clone(), Some(id));
            }
            owners.positions.extend(position.map(|position| (id, position)));
        }
        owners
    }

    /// The most specific listener that takes every request for a name, perhaps this one itself.
    fn owner(&self, listener: ListenerId, name: &Hostname) -> Option<ListenerId> {
        let index = self.indexes.get(*self.positions.get(&listener)?)?;
        let wider = || {
            let inner = name.wildcard_base().unwrap_or(name.as_str());
            index.lookup(inner).find(|(other, _)| !other.is_precise()).map(|(_, id)| id)
        };
        index.get(name).or_else(wider).copied().flatten()
    }
}

/// Names that a route has on a listener while another listener takes all requests for them.
fn shadowed(context: LintContext<'_>, owners: &Owners, route: &RouteState) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    for attachment in route.attachments() {
        let listener = context.topology.listener(attachment.listener);
        if !listener.is_serving() {
            continue;
        }
        for name in &attachment.names {
            let owner = owners.owner(attachment.listener, &name.hostname);
            let Some(owner) = owner.filter(|owner| *owner != attachment.listener) else { continue };
            if !route.is_attached_to(owner) {
                all.push(shadow(context, route, listener, owner, name));
            }
        }
    }
    all
}

fn shadow(
    context: LintContext<'_>,
    route: &RouteState,
    listener: &ListenerState,
    owner: ListenerId,
    name: &Intersection,
) -> Diagnostic {
    let owner = context.topology.listener(owner);
    let field = FieldPath::of("spec.hostnames");
    let field = name.written.map_or(FieldPath::of("spec.parentRefs"), |i| field.index(i as usize));
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
fn losers(context: LintContext<'_>) -> Vec<Diagnostic> {
    let mut by_listener: BTreeMap<ListenerId, Vec<&RouteState>> = BTreeMap::new();
    for (route, id, _) in context.topology.attachments() {
        if !route.route.kind.has_hostnames() {
            by_listener.entry(id).or_default().push(route);
        }
    }
    let mut all = Vec::new();
    for (id, listener) in context.topology.listener_ids() {
        let mut routes = by_listener.remove(&id).unwrap_or_default();
        routes.sort_by(|a, b| a.route.meta.seniority().cmp(&b.route.meta.seniority()));
        routes.dedup_by(|a, b| a.route.object() == b.route.object());
        for loser in routes.iter().skip(1) {
            let name = listener_name(listener);
            let message = format!("{name} gives all connections to an older route");
            let field = FieldPath::of("spec.parentRefs");
            let winner = routes[0].route.object();
            let diagnostic = Diagnostic::new(reason::ROUTE_LOSES_ALL, &loser.route.object(), field, message);
            all.push(diagnostic.related(&winner, FieldPath::of("metadata.creationTimestamp"), "the older one"));
        }
    }
    all
}
