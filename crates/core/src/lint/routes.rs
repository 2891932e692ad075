//! Routes that do not attach, and why.

use super::*;
use crate::selector::{Selector, Test};

/// Why a parent does not accept a route, by the candidate listener that passed the most checks.
pub(super) fn parent(context: LintContext<'_>, route: &RouteState, index: usize) -> Option<Diagnostic> {
    let state = &route.parents[index];
    match state.target {
        ParentTarget::Missing => return missing(context, route, index),
        ParentTarget::OtherKind => return Some(other_kind(route, index)),
        ParentTarget::OutOfScope => return None,
        ParentTarget::Gateway(_) | ParentTarget::Set(..) => {}
    }
    let refused = state.refused?;
    if refused == reason::SECTION_NOT_FOUND {
        return Some(section(context, route, index));
    }
    let candidates = context.candidates(route, index);
    let furthest = candidates.iter().find(|c| c.verdict.as_ref().err() == Some(&refused))?;
    let mut diagnostic = refusal(context, route, index, furthest.listener, refused);
    let others = candidates.len() - 1;
    if others > 0 {
        diagnostic
            .message
            .push_str(&format!("; nor to {others} other listener{} of it", if others > 1 { "s" } else { "" }));
    }
    Some(diagnostic)
}

/// Why a route does not attach to a listener.
pub(super) fn refusal(
    context: LintContext<'_>,
    route: &RouteState,
    index: usize,
    id: ListenerId,
    refused: reason::Reason,
) -> Diagnostic {
    let listener = context.topology.listener(id);
    let object = route.route.object();
    let field = FieldPath::of("spec.parentRefs").index(index);
    match refused {
        reason::NAMESPACE_NOT_ALLOWED => namespace(context, route, listener, field),
        reason::NO_COMMON_HOSTNAME => hostnames(route, listener),
        reason::ROUTE_KIND_NOT_ALLOWED => kind(route, listener, field),
        reason::LISTENER_SET_NOT_ATTACHED => {
            let set = listener.owner.object();
            let message = format!("{} {} is not part of any Gateway, so nothing attaches to it", set.kind, set.key);
            Diagnostic::new(refused, &object, field, message).related(
                &set,
                FieldPath::of("spec.parentRef"),
                "its own diagnostic says why",
            )
        }
        _ => {
            let message = format!("{} is not valid, so nothing attaches to it", listener_name(listener));
            Diagnostic::new(refused, &object, field, message).related(
                &listener.owner.object(),
                listener_field(listener, ""),
                "its own diagnostic says why",
            )
        }
    }
}

fn missing(context: LintContext<'_>, route: &RouteState, index: usize) -> Option<Diagnostic> {
    let target = &route.route.parents[index].target;
    let namespace = target.namespace_or(&route.route.meta.key.namespace);
    let key = Key::new(namespace.clone(), target.name.clone());
    let kind = Kind::of(&target.group, &target.kind).unwrap_or(Kind::Gateway);
    if context.may_be_elsewhere(kind, &key.name) {
        return None;
    }
    let message = format!("{kind} {key} {}", context.absent());
    let elsewhere = parents(context, kind).find(|k| k.name == key.name);
    let field = FieldPath::of("spec.parentRefs").index(index);
    let (field, help) = match (other_kind_of_parent(context, kind, &key), elsewhere) {
        (Some(other), _) => (field.key("kind"), Some(format!("there is {other} {key}; set `kind: {other}`"))),
        (None, Some(other)) => {
            (field.key("namespace"), Some(format!("there is {kind} {other}; set `namespace: {}`", other.namespace)))
        }
        (None, None) => {
            let same =
                parents(context, kind).filter(|k| k.namespace == key.namespace).map(|k| &*k.name).take(MOST_NAMES);
            (field.key("name"), closest(&key.name, same).map(|near| format!("did you mean `{near}`?")))
        }
    };
    let mut diagnostic = Diagnostic::new(reason::PARENT_MISSING, &route.route.object(), field, message);
    diagnostic.help = help;
    Some(lowered(diagnostic, context.expects(Kind::Gateway, namespace)))
}

/// Every Gateway or ListenerSet of one kind.
fn parents<'a>(context: LintContext<'a>, kind: Kind) -> Box<dyn Iterator<Item = &'a Key> + 'a> {
    match kind {
        Kind::Gateway => Box::new(context.snapshot.gateways.keys()),
        _ => Box::new(context.snapshot.listener_sets.keys().filter(move |o| o.kind == kind).map(|o| &o.key)),
    }
}

/// The other kind of parent that has an object of this name.
fn other_kind_of_parent(context: LintContext<'_>, asked: Kind, key: &Key) -> Option<Kind> {
    let set = |kind| context.snapshot.listener_sets.contains_key(&ObjectRef { kind, key: key.clone() });
    let there =
        |kind: &Kind| if *kind == Kind::Gateway { context.snapshot.gateways.contains_key(key) } else { set(*kind) };
    [Kind::Gateway, Kind::ListenerSet, Kind::XListenerSet].into_iter().filter(|kind| *kind != asked).find(there)
}

fn other_kind(route: &RouteState, index: usize) -> Diagnostic {
    let target = &route.route.parents[index].target;
    let group = if target.group.is_empty() { "core" } else { &target.group };
    let message = format!("parent {} of group {group} is neither a Gateway nor a ListenerSet", target.kind);
    let field = FieldPath::of("spec.parentRefs").index(index).key("kind");
    Diagnostic::new(reason::PARENT_KIND_UNKNOWN, &route.route.object(), field, message)
}

fn section(context: LintContext<'_>, route: &RouteState, index: usize) -> Diagnostic {
    let parent = &route.route.parents[index];
    let (owner, ids) = owner_listeners(context, &route.parents[index]);
    let specs: Vec<_> = ids.iter().map(|id| context.topology.listener(*id).spec()).collect();
    let names = || specs.iter().map(|l| &*l.name);
    let named = parent.section.as_ref().map(|s| specs.iter().find(|l| l.name == *s));
    let field = FieldPath::of("spec.parentRefs").index(index);
    let (field, message, near) = match (&parent.section, named, parent.port) {
        (Some(section), Some(None), _) => (
            field.key("sectionName"),
            format!("{owner} has no listener `{section}`; it has {}", listed(names())),
            closest(section, names()),
        ),
        (Some(section), Some(Some(found)), Some(port)) => {
            (field.key("port"), format!("listener `{section}` of {owner} has port {}, not {port}", found.port), None)
        }
        (_, _, port) => {
            let ports: std::collections::BTreeSet<_> = specs.iter().map(|l| l.port.to_string()).collect();
            let port = port.unwrap_or_default();
            let message =
                format!("{owner} has no listener on port {port}; it has {}", listed(ports.iter().map(|p| &**p)));
            (field.key("port"), message, None)
        }
    };
    let diagnostic = Diagnostic::new(reason::SECTION_NOT_FOUND, &route.route.object(), field, message);
    super::gateways::suggested(diagnostic, near)
}

fn owner_listeners<'a>(context: LintContext<'a>, parent: &ParentState) -> (String, &'a [ListenerId]) {
    match &parent.target {
        ParentTarget::Gateway(key) => {
            let state = context.topology.gateways.get(key);
            let own = state.map_or(&[][..], |s| &s.listeners[..s.gateway.listeners.len()]);
            (format!("Gateway {key}"), own)
        }
        ParentTarget::Set(set, _) => {
            let state = context.topology.sets.get(set);
            (format!("{} {}", set.kind, set.key), state.map_or(&[][..], |s| &s.listeners))
        }
        _ => (String::new(), &[]),
    }
}

fn namespace(context: LintContext<'_>, route: &RouteState, listener: &ListenerState, field: FieldPath) -> Diagnostic {
    let namespace = &route.route.meta.key.namespace;
    let own = &listener.owner.meta().key.namespace;
    let admission = &listener.spec().allowed_routes.namespaces;
    let (says, fix) = match admission {
        Admission::Same => (format!("admits routes of its own namespace {own} only"), None),
        Admission::Selector(Some(selector)) => (
            format!(
                "admits namespaces with {selector}, and namespace {namespace} {}",
                lacks(context, namespace, selector)
            ),
            label_fix(context, namespace, selector),
        ),
        Admission::Selector(None) => ("admits namespaces by selector and has none".to_owned(), None),
        Admission::Other(word) => (format!("has the unknown `from: {word}`"), None),
        _ => ("admits no namespace".to_owned(), None),
    };
    let object = route.route.object();
    let message = format!("{} {says} (`allowedRoutes.namespaces`)", listener_name(listener));
    let mut diagnostic = Diagnostic::new(reason::NAMESPACE_NOT_ALLOWED, &object, field, message);
    // The label is what is usually forgotten, so it is named first.
    if let Admission::Selector(Some(_)) = admission {
        let place = ObjectRef::new(Kind::Namespace, "", namespace.clone());
        diagnostic = diagnostic.related(&place, FieldPath::of("metadata.labels"), "its labels");
    }
    diagnostic = diagnostic.related(
        &listener.owner.object(),
        listener_field(listener, "allowedRoutes.namespaces"),
        "what the listener admits",
    );
    diagnostic.fix = fix.filter(|_| !context.is_namespace_assumed(&object));
    if let Admission::Selector(Some(selector)) = admission {
        diagnostic.help = near_label(context, namespace, selector);
    }
    super::namespaces::lowered_if_unknown(context, diagnostic, namespace, admission)
}

/// A label of the namespace whose key is nearly the one that is asked for.
fn near_label(context: LintContext<'_>, namespace: &Str, selector: &Selector) -> Option<String> {
    let labels = &context.snapshot.namespaces.get(namespace)?.meta.labels;
    let asked = selector.requirements.iter().map(|requirement| &requirement.key);
    let absent = asked.filter(|key| context.snapshot.namespace_label(namespace, key).is_none());
    let near = |key: &Str| {
        let near = closest(key, labels.iter().map(|(label, _)| &**label))?;
        Some(format!("namespace {namespace} has the label `{near}`; did you mean `{key}`?"))
    };
    absent.into_iter().find_map(near)
}

/// What a namespace's labels lack.
fn lacks(context: LintContext<'_>, namespace: &Str, selector: &Selector) -> String {
    if !context.snapshot.namespaces.contains_key(namespace) {
        return format!("{}, so its labels are not known", context.absent());
    }
    let found: Vec<_> = selector
        .requirements
        .iter()
        .filter_map(|r| context.snapshot.namespace_label(namespace, &r.key).map(|value| format!("{}={value}", r.key)))
        .collect();
    if found.is_empty() { "has no such label".to_owned() } else { format!("has {}", found.join(",")) }
}

/// The one command that makes a namespace match, where there is one.
pub(super) fn label_fix(context: LintContext<'_>, namespace: &Str, selector: &Selector) -> Option<String> {
    let mut labels = Vec::new();
    for requirement in &selector.requirements {
        let current = context.snapshot.namespace_label(namespace, &requirement.key);
        let single = Selector { requirements: vec![requirement.clone()] };
        if single.matches_with(|_| current) {
            continue;
        }
        match &requirement.test {
            Test::In(values) if &*requirement.key != "kubernetes.io/metadata.name" => {
                labels.push(format!("{}={}", requirement.key, values.first()?));
            }
            Test::Exists => labels.push(format!("{}=", requirement.key)),
            Test::NotIn(_) | Test::DoesNotExist => labels.push(format!("{}-", requirement.key)),
            _ => return None,
        }
    }
    let overwrite = labels.iter().any(|l| {
        let key = l.split('=').next().unwrap_or_default();
        l.contains('=') && context.snapshot.namespace_label(namespace, key).is_some()
    });
    let overwrite = if overwrite { " --overwrite" } else { "" };
    (!labels.is_empty()).then(|| format!("kubectl label namespace {namespace} {}{overwrite}", labels.join(" ")))
}

fn hostnames(route: &RouteState, listener: &ListenerState) -> Diagnostic {
    let written = &route.route.hostnames;
    let host = &listener.hostname;
    let field = FieldPath::of("spec.hostnames");
    let field = if written.len() == 1 { field.index(0) } else { field };
    let asked = match has_valid_hostname(route) {
        true => format!("the route asks for {}", listed(written.iter().map(|w| &**w.text()))),
        false => "none of the route's hostnames is valid".to_owned(),
    };
    let message = format!("{} serves `{host}`, and {asked}", listener_name(listener));
    let diagnostic = Diagnostic::new(reason::NO_COMMON_HOSTNAME, &route.route.object(), field, message).related(
        &listener.owner.object(),
        listener_field(listener, "hostname"),
        "the listener's hostname",
    );
    let apex = host.wildcard_base().filter(|base| written.iter().any(|w| **w.text() == **base));
    match apex {
        Some(base) => diagnostic.help(format!(
            "`{host}` stands for names below `{base}`, never for `{base}` itself; add a listener for it"
        )),
        None => diagnostic,
    }
}

/// Whether any hostname of a route could be read; those that could not were reported where they were read.
pub(super) fn has_valid_hostname(route: &RouteState) -> bool {
    route.route.hostnames.iter().any(|written| written.name().is_ok())
}

fn kind(route: &RouteState, listener: &ListenerState, field: FieldPath) -> Diagnostic {
    let spec = listener.spec();
    let kind = route.route.kind;
    let carried = crate::attachment::listeners::kinds_carried(spec);
    let names = |kinds: &[RouteKind]| listed(kinds.iter().map(|k| k.as_str()));
    let (listener_side, message) = if carried.contains(&kind) {
        (
            "allowedRoutes.kinds",
            format!(
                "{} allows {} only (`allowedRoutes.kinds`)",
                listener_name(listener),
                names(&listener.supported_kinds)
            ),
        )
    } else {
        let mode = match spec.tls.as_ref().map(|tls| &tls.mode) {
            Some(TlsMode::Passthrough) => " with TLS passthrough",
            _ => "",
        };
        (
            "protocol",
            format!(
                "{} has protocol {}{mode}, which carries {}",
                listener_name(listener),
                spec.protocol.as_str(),
                names(carried)
            ),
        )
    };
    Diagnostic::new(reason::ROUTE_KIND_NOT_ALLOWED, &route.route.object(), field, message).related(
        &listener.owner.object(),
        listener_field(listener, listener_side),
        "what the listener takes",
    )
}

/// What is odd about a route by itself.
pub(super) fn hygiene(route: &RouteState) -> Option<Diagnostic> {
    let message = "the route names no parent, so nothing reaches it";
    let field = FieldPath::of("spec.parentRefs");
    let alone = route.route.parents.is_empty();
    alone.then(|| Diagnostic::new(reason::ROUTE_WITHOUT_PARENT, &route.route.object(), field, message))
}

/// parentRefs that name one parent in different spellings; the schema refuses only equal ones.
pub(super) fn repeated_parents(route: &RouteState) -> Vec<Diagnostic> {
    let own = &route.route.meta.key.namespace;
    let in_full = |parent: &ParentRef| {
        let namespace = Some(parent.target.namespace_or(own).clone());
        ParentRef { target: Reference { namespace, ..parent.target.clone() }, ..parent.clone() }
    };
    let parents = &route.route.parents;
    let is_repeated = |i: &usize| {
        let same = |earlier: &&ParentRef| in_full(earlier) == in_full(&parents[*i]);
        parents[..*i].iter().any(|earlier| same(&earlier) && *earlier != parents[*i])
    };
    let told = |i: usize| {
        let message = format!("`spec.parentRefs[{i}]` names the same parent as an earlier entry, in other words");
        let field = FieldPath::of("spec.parentRefs").index(i);
        Diagnostic::new(reason::PARENT_REPEATED, &route.route.object(), field, message)
    };
    (0..parents.len()).filter(is_repeated).map(told).collect()
}

/// Hostnames of an attached route that no listener it attaches to covers.
pub(super) fn ignored_hostnames(context: LintContext<'_>, route: &RouteState) -> Vec<Diagnostic> {
    let attached: Vec<_> = route.attachments().collect();
    if attached.is_empty() || !route.route.kind.has_hostnames() {
        return Vec::new();
    }
    let covers = |name: &crate::names::Hostname| {
        attached.iter().any(|c| context.topology.listener(c.listener).hostname.intersect(name).is_some())
    };
    let object = route.route.object();
    let ignored = route.route.hostnames.iter().enumerate().filter(|(_, w)| w.name().is_ok_and(|name| !covers(name)));
    ignored
        .map(|(i, written)| {
            let hosts: std::collections::BTreeSet<_> =
                attached.iter().map(|c| context.topology.listener(c.listener).hostname.to_string()).collect();
            let message = format!(
                "`{}` is ignored: the listeners it attaches to serve {}",
                written.text(),
                listed(hosts.iter().map(|h| &**h))
            );
            Diagnostic::new(reason::HOSTNAME_NOT_COVERED, &object, FieldPath::of("spec.hostnames").index(i), message)
        })
        .collect()
}
