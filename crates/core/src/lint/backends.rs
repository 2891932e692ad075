//! Backends that cannot be used.

use super::*;

pub(super) fn backends(context: LintContext<'_>, route: &RouteState) -> Vec<Diagnostic> {
    let mut all: Vec<_> = route.backends.iter().filter_map(|problem| unusable(context, route, problem)).collect();
    let missing = crate::attachment::backends::missing_ports(context.snapshot, route);
    all.extend(missing.iter().filter_map(|problem| missing_port(context, route, problem)));
    all.extend(without_weight(route));
    all
}

/// Rules whose backends all have weight 0.
fn without_weight(route: &RouteState) -> impl Iterator<Item = Diagnostic> {
    let rules = route.route.rules.iter().enumerate();
    let idle = rules.filter(|(_, rule)| !rule.backends.is_empty() && rule.backends.iter().all(|b| b.weight == 0));
    idle.map(|(i, _)| {
        let message = format!("every backendRef of rule {i} has weight 0, so requests are answered 500");
        let field = FieldPath::of("spec.rules").index(i).key("backendRefs");
        Diagnostic::new(reason::BACKEND_WEIGHTS_ZERO, &route.route.object(), field, message)
    })
}

/// The way to a backend reference.
fn field(rule: usize, place: BackendUse) -> FieldPath {
    let rule = FieldPath::of("spec.rules").index(rule);
    match place {
        BackendUse::Backend(i) => rule.key("backendRefs").index(i),
        BackendUse::Filter(i) => rule.key("filters").index(i),
        BackendUse::BackendFilter(i, j) => rule.key("backendRefs").index(i).key("filters").index(j),
    }
}

fn backend(rule: &Rule, place: BackendUse) -> Option<&BackendRef> {
    match place {
        BackendUse::Backend(i) => rule.backends.get(i),
        BackendUse::Filter(i) => filter_target(&rule.filters, i),
        BackendUse::BackendFilter(i, j) => filter_target(&rule.backends.get(i)?.filters, j),
    }
}

fn filter_target(filters: &[Filter], index: usize) -> Option<&BackendRef> {
    match filters.get(index)? {
        Filter::Mirror(backend) | Filter::ExternalAuth(backend) => Some(backend),
        _ => None,
    }
}

fn unusable(context: LintContext<'_>, route: &RouteState, problem: &BackendProblem) -> Option<Diagnostic> {
    let object = route.route.object();
    let backend = backend(route.route.rules.get(problem.rule)?, problem.place)?;
    let target = &backend.target;
    let namespace = target.namespace_or(object.namespace());
    let called = format!("{} {namespace}/{}", target.kind, target.name);
    let field = field(problem.rule, problem.place);
    let is_elsewhere = || namespace != object.namespace() && context.may_be_elsewhere(Kind::Service, &target.name);
    if problem.reason == reason::BACKEND_MISSING && is_elsewhere() {
        return None;
    }
    Some(match problem.reason {
        reason::REFERENCE_NOT_PERMITTED => {
            let message = format!(
                "backend {called} is in another namespace, and no ReferenceGrant in {namespace} permits {} of {} to use it",
                object.kind,
                object.namespace()
            );
            let help = super::listeners::grant_help(&object, target, namespace);
            let diagnostic = Diagnostic::new(problem.reason, &object, field, message).help(help);
            super::listeners::near_grant(context, diagnostic, target, namespace)
        }
        reason::BACKEND_KIND_UNKNOWN => {
            let group = if target.group.is_empty() { "core" } else { &*target.group };
            let message = format!("backend {called} of group {group} is not a Service");
            let diagnostic = Diagnostic::new(problem.reason, &object, field.key("kind"), message);
            // Kinds of other groups are what implementations add.
            match target.group.is_empty() {
                true => diagnostic,
                false => Diagnostic { severity: reason::Severity::Info, ..diagnostic }
                    .help("Nothing to do if the Gateway implementation knows this kind; otherwise use a Service."),
            }
        }
        _ => {
            let message = format!("backend {called} {}", context.absent());
            let same = context.snapshot.services_in(namespace).map(|key| &*key.name).take(MOST_NAMES);
            let diagnostic = Diagnostic::new(problem.reason, &object, field.key("name"), message);
            let diagnostic = super::gateways::suggested(diagnostic, closest(&target.name, same));
            lowered(diagnostic, context.expects(Kind::Service, namespace))
        }
    })
}

fn missing_port(context: LintContext<'_>, route: &RouteState, problem: &BackendProblem) -> Option<Diagnostic> {
    let object = route.route.object();
    let backend = backend(route.route.rules.get(problem.rule)?, problem.place)?;
    let key = Key::new(backend.target.namespace_or(object.namespace()).clone(), backend.target.name.clone());
    let ports = context.snapshot.services.get(&key)?.ports.iter().map(|known| known.port.to_string());
    let (ports, port) = (ports.collect::<Vec<_>>(), backend.port?);
    let message = format!("Service {key} has no port {port}; it has {}", listed(ports.iter().map(|p| &**p)));
    let field = field(problem.rule, problem.place).key("port");
    Some(Diagnostic::new(problem.reason, &object, field, message))
}
