//! The links of a chain, from a route up to the class.

use super::*;

/// Every way on which a route could serve a name.
pub(super) fn chains(world: LintContext<'_>, route: &RouteState, hostname: &Hostname) -> Vec<Chain> {
    let Some(asks) = asks(&route.route, hostname) else { return Vec::new() };
    if let Asks::Unreadable(index) = asks {
        let broken = unreadable(&route.route, index);
        return vec![Chain { links: vec![route_link(route, false)], intersected: None, broken, notes: Vec::new() }];
    }
    if route.parents.is_empty() {
        let broken = world.route(route).into_iter().next();
        return vec![Chain { links: vec![route_link(route, false)], intersected: None, broken, notes: Vec::new() }];
    }
    (0..route.parents.len()).flat_map(|index| parent_chains(world, route, index, hostname, asks)).collect()
}

/// How a route asks for a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// It writes it, or a wildcard around it.
    ByName,
    /// It writes no name at all.
    ByListener,
    /// It writes it in a form that cannot be read.
    Unreadable(usize),
}

fn asks(route: &Route, hostname: &Hostname) -> Option<Asks> {
    if !route.kind.has_hostnames() || route.hostnames.is_empty() {
        return Some(Asks::ByListener);
    }
    let named = |w: &WrittenHostname| w.name().is_ok_and(|name| name.contains(hostname));
    if route.hostnames.iter().any(named) {
        return Some(Asks::ByName);
    }
    let alike = |w: &WrittenHostname| w.name().is_err() && loosely(w.text()) == hostname.as_str();
    route.hostnames.iter().position(alike).map(Asks::Unreadable)
}

/// What an unreadable hostname was probably meant to be.
fn loosely(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase();
    let text = text.split_once("://").map_or(&*text, |(_, rest)| rest);
    let text = text.split(['/', ':']).next().unwrap_or_default();
    text.trim_end_matches('.').to_owned()
}

fn parent_chains(
    world: LintContext<'_>,
    route: &RouteState,
    index: usize,
    hostname: &Hostname,
    asks: Asks,
) -> Vec<Chain> {
    let parent = &route.parents[index];
    let candidates = world.candidates(route, index);
    if candidates.is_empty() {
        let broken = world.parent(route, index).or_else(|| out_of_scope(world, route, index));
        let refused = asks == Asks::ByName;
        let mut links = gateway_links(world, parent.gateway());
        links.push(route_link(route, false));
        return if refused { vec![Chain { links, intersected: None, broken, notes: Vec::new() }] } else { Vec::new() };
    }
    let relevant =
        |c: &&Candidate| asks == Asks::ByName || world.topology.listener(c.listener).hostname.contains(hostname);
    candidates.iter().filter(relevant).map(|c| candidate_chain(world, route, index, c, hostname)).collect()
}

fn out_of_scope(world: LintContext<'_>, route: &RouteState, index: usize) -> Option<Diagnostic> {
    let target = &route.route.parents[index].target;
    let key = Key::new(target.namespace_or(&route.route.meta.key.namespace).clone(), target.name.clone());
    match Kind::of(&target.group, &target.kind)? {
        Kind::Gateway => world.gateway(world.topology.gateways.get(&key)?).into_iter().next(),
        kind => world.set(world.topology.sets.get(&ObjectRef { kind, key })?).into_iter().next(),
    }
}

fn candidate_chain(
    world: LintContext<'_>,
    route: &RouteState,
    index: usize,
    candidate: &Candidate,
    hostname: &Hostname,
) -> Chain {
    let listener = world.topology.listener(candidate.listener);
    let mut links = gateway_links(world, listener.gateway.as_ref());
    let above = above(world, candidate.listener);
    if let Owner::Set(set) = &listener.owner {
        let holds = listener.gateway.is_some();
        links.push(Link { role: Role::ListenerSet, name: set.object().to_string(), detail: None, holds });
    }
    links.push(Link {
        role: Role::Listener,
        name: listener.key().to_string(),
        detail: Some(listener.hostname.to_string()),
        holds: above.is_none(),
    });
    let intersected = candidate.verdict.as_ref().ok().and_then(|names| covering(names, hostname));
    let refused = match (&candidate.verdict, &intersected) {
        (Err(_), _) => world.candidate(route, index, candidate),
        (Ok(_), None) => {
            let without = Candidate { listener: candidate.listener, verdict: Err(reason::NO_COMMON_HOSTNAME) };
            world.candidate(route, index, &without)
        }
        (Ok(_), Some(_)) => None,
    };
    links.push(route_link(route, refused.is_none()));
    let broken = above.or(refused).or_else(|| shadowed(world, route, candidate.listener, hostname));
    let notes = if broken.is_none() { world.backends(route) } else { Vec::new() };
    Chain { links, intersected, broken, notes }
}

/// The intersected hostname that covers the name, the most specific one.
fn covering(names: &[Intersection], hostname: &Hostname) -> Option<Hostname> {
    let covering = names.iter().map(|n| &n.hostname).filter(|name| name.contains(hostname));
    covering.max_by_key(|name| name.specificity()).cloned()
}

/// What is wrong above the route: Gateway, ListenerSet, listener.
fn above(world: LintContext<'_>, id: ListenerId) -> Option<Diagnostic> {
    let listener = world.topology.listener(id);
    if let Owner::Set(set) = &listener.owner
        && listener.gateway.is_none()
    {
        return world.set(world.topology.sets.get(&set.object())?).into_iter().next();
    }
    if !listener.is_accepted() {
        return world.listener(id).into_iter().next();
    }
    let gateway = world.topology.gateways.get(listener.gateway.as_ref()?)?;
    gateway.refused.and_then(|_| world.gateway(gateway).into_iter().find(|d| Some(d.reason) == gateway.refused))
}

/// Whether a more specific listener takes all requests for the name away from this route.
fn shadowed(world: LintContext<'_>, route: &RouteState, id: ListenerId, hostname: &Hostname) -> Option<Diagnostic> {
    let listener = world.topology.listener(id);
    let same_door = |l: &ListenerState| {
        l.is_serving()
            && l.gateway == listener.gateway
            && l.spec().port == listener.spec().port
            && l.spec().protocol == listener.spec().protocol
            && l.spec().protocol.has_hostname()
    };
    let covering = world.topology.listener_ids().filter(|(_, l)| same_door(l) && l.hostname.contains(hostname));
    let (owner, state) = covering.max_by_key(|(_, l)| l.hostname.specificity())?;
    if owner == id || route.is_attached_to(owner) {
        return None;
    }
    let message = format!(
        "requests for `{hostname}` go to the more specific listener for `{}`, never to this one",
        state.hostname
    );
    let field = FieldPath::of("spec.parentRefs");
    let diagnostic = Diagnostic::new(reason::HOSTNAME_UNREACHABLE, &route.route.object(), field, message);
    Some(diagnostic.related(
        &state.owner.object(),
        crate::lint::listener_field(state, "hostname"),
        "the more specific listener",
    ))
}

fn gateway_links(world: LintContext<'_>, gateway: Option<&Key>) -> Vec<Link> {
    let Some(state) = gateway.and_then(|key| world.topology.gateways.get(key)) else { return Vec::new() };
    let class = format!("GatewayClass/{}", state.gateway.class);
    let detail = matches!(state.class, ClassState::NotInInput).then(|| "not in the input".to_owned());
    let name = format!("Gateway/{}", state.gateway.meta.key);
    vec![
        Link { role: Role::Class, name: class, detail, holds: state.is_in_scope() },
        Link { role: Role::Gateway, name, detail: None, holds: state.is_in_scope() && state.refused.is_none() },
    ]
}

fn route_link(route: &RouteState, holds: bool) -> Link {
    Link { role: Role::Route, name: route.route.object().to_string(), detail: None, holds }
}
