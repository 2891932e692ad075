//! Backends that cannot be used.

use super::*;

pub(super) fn backends(context: LintContext<'_>, route: &RouteState) -> Vec<Diagnostic> {
    let mut all: Vec<_> = route.backends.iter().filter_map(|problem| unusable(context, route, problem)).collect();
    all.extend(missing_ports(context, route));
    all
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
    Some(match problem.reason {
        reason::REFERENCE_NOT_PERMITTED => {
            let message = format!(
                "backend {called} is in another namespace, and no ReferenceGrant in {namespace} permits {} of {} to use it",
                object.kind,
                object.namespace()
            );
            Diagnostic::new(problem.reason, &object, field, message)
                .help(super::listeners::grant_help(&object, target, namespace))
        }
        reason::BACKEND_KIND_UNKNOWN => {
            let group = if target.group.is_empty() { "core" } else { &*target.group };
            let message = format!("backend {called} of group {group} is no Service");
            Diagnostic::new(problem.reason, &object, field.key("kind"), message)
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

fn missing_ports(context: LintContext<'_>, route: &RouteState) -> Vec<Diagnostic> {
    let object = route.route.object();
    let mut all = Vec::new();
    for (r, rule) in route.route.rules.iter().enumerate() {
        for (b, backend) in rule.backends.iter().enumerate() {
            let place = BackendUse::Backend(b);
            let usable = !route.backends.iter().any(|p| (p.rule, p.place) == (r, place));
            let key = Key::new(backend.target.namespace_or(object.namespace()).clone(), backend.target.name.clone());
            let service = context.snapshot.services.get(&key).filter(|_| usable);
            if let (Some(service), Some(port)) = (service, backend.port)
                && !service.ports.is_empty()
                && service.ports.iter().all(|p| p.port != port)
            {
                let ports: Vec<_> = service.ports.iter().map(|p| p.port.to_string()).collect();
                let message =
                    format!("Service {key} has no port {port}; it has {}", listed(ports.iter().map(|p| &**p)));
                all.push(Diagnostic::new(reason::BACKEND_PORT_MISSING, &object, field(r, place).key("port"), message));
            }
        }
    }
    all
}
