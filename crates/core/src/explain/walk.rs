//! The links of a chain, from a route up to the class.

use super::*;

/// Every way on which a route could serve a name.
pub(super) fn chains(context: LintContext<'_>, route: &RouteState, hostname: &Hostname) -> Vec<Chain> {
    let Some(asks) = asks(&route.route, hostname) else { return Vec::new() };
    if let Asks::Unreadable(index) = asks {
        return vec![broken_chain(route, vec![route_link(route, false)], unreadable(&route.route, index))];
    }
    if route.parents.is_empty() {
        let invalid = crate::lint::invalid(&route.route.meta, &route.route.object());
        let broken = invalid.or_else(|| context.route(route).into_iter().next());
        return vec![broken_chain(route, vec![route_link(route, false)], broken)];
    }
    (0..route.parents.len()).flat_map(|index| parent_chains(context, route, index, hostname, asks)).collect()
}

/// A chain that ends before a listener.
fn broken_chain(route: &RouteState, links: Vec<Link>, broken: Option<Diagnostic>) -> Chain {
    Chain {
        links,
        intersected: None,
        route: route.route.object(),
        is_by_name: route.route.kind.has_hostnames() && !route.route.hostnames.is_empty(),
        listener: None,
        broken,
        withheld: None,
        notes: Vec::new(),
    }
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
pub(super) fn loosely(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase();
    let text = text.split_once("://").map_or(&*text, |(_, rest)| rest);
    let text = text.split(['/', ':']).next().unwrap_or_default();
    text.trim_end_matches('.').to_owned()
}

fn parent_chains(
    context: LintContext<'_>,
    route: &RouteState,
    index: usize,
    hostname: &Hostname,
    asks: Asks,
) -> Vec<Chain> {
    let parent = &route.parents[index];
    let candidates = context.candidates(route, index);
    if candidates.is_empty() {
        let invalid = crate::lint::invalid(&route.route.meta, &route.route.object());
        let refused = context.parent(route, index).or_else(|| out_of_scope(context, route, index));
        let broken = invalid.or(refused);
        let refused = asks == Asks::ByName;
        let mut links = gateway_links(context, parent.gateway());
        links.push(route_link(route, false));
        return if refused { vec![broken_chain(route, links, broken)] } else { Vec::new() };
    }
    let relevant =
        |c: &&Candidate| asks == Asks::ByName || context.topology.listener(c.listener).hostname.contains(hostname);
    // A parentRef without sectionName means whichever listeners fit: where one serves the name, others need not.
    let is_served = candidates.iter().any(|c| covering_names(c, hostname).is_some());
    let says = |c: &&Candidate| !is_served || !is_beside(c, hostname);
    candidates
        .iter()
        .filter(relevant)
        .filter(says)
        .map(|c| candidate_chain(context, route, index, c, hostname))
        .collect()
}

/// Whether a listener has nothing against the route, and only serves other names.
fn is_beside(candidate: &Candidate, hostname: &Hostname) -> bool {
    match &candidate.verdict {
        Ok(_) => covering_names(candidate, hostname).is_none(),
        Err(reason) => *reason == reason::NO_COMMON_HOSTNAME,
    }
}

fn covering_names(candidate: &Candidate, hostname: &Hostname) -> Option<Hostname> {
    candidate.verdict.as_ref().ok().and_then(|names| covering(names, hostname))
}

fn out_of_scope(context: LintContext<'_>, route: &RouteState, index: usize) -> Option<Diagnostic> {
    let target = &route.route.parents[index].target;
    let key = Key::new(target.namespace_or(&route.route.meta.key.namespace).clone(), target.name.clone());
    match Kind::of(&target.group, &target.kind)? {
        Kind::Gateway => context.gateway(context.topology.gateways.get(&key)?).into_iter().next(),
        kind => context.set(context.topology.sets.get(&ObjectRef { kind, key })?).into_iter().next(),
    }
}

fn candidate_chain(
    context: LintContext<'_>,
    route: &RouteState,
    index: usize,
    candidate: &Candidate,
    hostname: &Hostname,
) -> Chain {
    let listener = context.topology.listener(candidate.listener);
    let mut links = gateway_links(context, listener.gateway.as_ref());
    let above = above(context, candidate.listener);
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
    let intersected = covering_names(candidate, hostname);
    let invalid = crate::lint::invalid(&route.route.meta, &route.route.object());
    let refused = match (&candidate.verdict, &intersected) {
        _ if invalid.is_some() => invalid.clone(),
        (Err(_), _) => context.candidate(route, index, candidate),
        (Ok(_), None) => Some(attached_under_others(listener, route, hostname)),
        (Ok(_), Some(_)) => None,
    };
    links.push(route_link(route, refused.is_none()));
    let broken = invalid.or(above).or(refused).or_else(|| shadowed(context, route, candidate.listener, hostname));
    let notes = if broken.is_none() { context.backends(route) } else { Vec::new() };
    let listener = Some(candidate.listener);
    Chain { intersected, listener, notes, ..broken_chain(route, links, broken) }
}

/// A listener to which a route is attached under other names only.
fn attached_under_others(listener: &ListenerState, route: &RouteState, hostname: &Hostname) -> Diagnostic {
    let (object, field) = (route.route.object(), FieldPath::of("spec.hostnames"));
    let name = crate::lint::listener_name(listener);
    let message = format!("{name} serves `{}`, which does not cover `{hostname}`", listener.hostname);
    Diagnostic::new(reason::NO_COMMON_HOSTNAME, &object, field, message).related(
        &listener.owner.object(),
        crate::lint::listener_field(listener, "hostname"),
        "the listener's hostname",
    )
}

/// The intersected hostname that covers the name, the most specific one.
fn covering(names: &[Intersection], hostname: &Hostname) -> Option<Hostname> {
    let covering = names.iter().map(|n| &n.hostname).filter(|name| name.contains(hostname));
    covering.max_by_key(|name| name.specificity()).cloned()
}

/// What is wrong above the route: Gateway, ListenerSet, listener.
fn above(context: LintContext<'_>, id: ListenerId) -> Option<Diagnostic> {
    let listener = context.topology.listener(id);
    if let Owner::Set(set) = &listener.owner
        && listener.gateway.is_none()
    {
        return context.set(context.topology.sets.get(&set.object())?).into_iter().next();
    }
    let gateway = context.topology.gateways.get(listener.gateway.as_ref()?)?;
    if let Owner::Set(set) = &listener.owner
        && let Some(invalid) = crate::lint::invalid(&set.meta, &set.object())
    {
        return Some(invalid);
    }
    if !listener.is_accepted() && gateway.gateway.meta.invalid.is_none() {
        return context.listener(id).into_iter().next();
    }
    gateway.refused.and_then(|_| context.gateway(gateway).into_iter().find(|d| Some(d.reason) == gateway.refused))
}

/// Whether a more specific listener takes all requests for the name away from this route.
pub(super) fn shadowed(
    context: LintContext<'_>,
    route: &RouteState,
    id: ListenerId,
    hostname: &Hostname,
) -> Option<Diagnostic> {
    let listener = context.topology.listener(id);
    let shares_port = |l: &ListenerState| {
        l.is_serving()
            && l.gateway == listener.gateway
            && l.spec().port == listener.spec().port
            && l.spec().protocol == listener.spec().protocol
            && l.spec().protocol.has_hostname()
    };
    let covering = context.topology.listener_ids().filter(|(_, l)| shares_port(l) && l.hostname.contains(hostname));
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

fn gateway_links(context: LintContext<'_>, gateway: Option<&Key>) -> Vec<Link> {
    let Some(state) = gateway.and_then(|key| context.topology.gateways.get(key)) else { return Vec::new() };
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
