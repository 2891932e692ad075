//! Gateways and ListenerSets as a whole.

use super::*;

pub(super) fn gateway(context: LintContext<'_>, state: &GatewayState) -> Vec<Diagnostic> {
    let object = ObjectRef { kind: Kind::Gateway, key: state.gateway.meta.key.clone() };
    let class = &state.gateway.class;
    let class_field = FieldPath::of("spec.gatewayClassName");
    let mut all = Vec::new();
    match state.class {
        ClassState::NotInInput => {
            let message = format!("GatewayClass {class} is not in the input; it is taken as accepted");
            let near = closest(class, context.snapshot.classes.keys().map(|name| &**name));
            let mut diagnostic = Diagnostic::new(reason::CLASS_NOT_IN_INPUT, &object, class_field, message);
            if near.is_some() {
                diagnostic.severity = reason::Severity::Warning;
            }
            all.push(suggested(diagnostic, near));
        }
        ClassState::Missing => {
            let message = format!("GatewayClass {class} does not exist, so nobody runs this Gateway");
            let near = closest(class, context.snapshot.classes.keys().map(|name| &**name));
            let diagnostic = Diagnostic::new(reason::GATEWAY_CLASS_MISSING, &object, class_field, message);
            all.push(suggested(diagnostic, near));
        }
        ClassState::NotOurs => {
            let message = format!("GatewayClass {class} is left out by --gateway-class");
            all.push(Diagnostic::new(reason::GATEWAY_CLASS_NOT_OURS, &object, class_field, message));
        }
        ClassState::Known(_) => {}
    }
    all.extend(state.refused.map(|refused| gateway_refused(state, &object, refused)));
    all
}

/// A Gateway for which the files name no address, so that nothing is published for it without a flag.
pub(super) fn without_address(context: LintContext<'_>, state: &GatewayState) -> Option<Diagnostic> {
    let gateway = &state.gateway;
    let all = || gateway.status.addresses.iter().chain(&gateway.wished_addresses);
    let has_none = !all().any(|address| matches!(&*address.kind, "IPAddress" | "Hostname"));
    let is_meant = context.snapshot.origin == Origin::Files && state.refused.is_none() && has_none;
    let object = ObjectRef { kind: Kind::Gateway, key: gateway.meta.key.clone() };
    let message = match all().next() {
        None => "the files name no address of this Gateway, so no records can be planned from them alone".to_owned(),
        Some(address) => format!(
            "no address of this Gateway can be published: `{}` is of type {}, and not an IPAddress or a Hostname",
            address.value, address.kind
        ),
    };
    let field = if gateway.status.addresses.is_empty() { "spec.addresses" } else { "status.addresses" };
    let note = || Diagnostic::new(reason::GATEWAY_WITHOUT_ADDRESS, &object, FieldPath::of(field), message);
    is_meant.then(note).map(|note| {
        let help =
            format!("give `--gateway-address {}=VALUE` to `plan` and the like, or set `spec.addresses`", object.key);
        Diagnostic { severity: reason::Severity::Info, ..note }.help(help)
    })
}

fn gateway_refused(state: &GatewayState, object: &ObjectRef, refused: reason::Reason) -> Diagnostic {
    if let Some(invalid) = super::invalid(&state.gateway.meta, object) {
        return invalid;
    }
    if refused == reason::INVALID_PARAMETERS {
        let field = FieldPath::of("spec.infrastructure.parametersRef");
        return Diagnostic::new(refused, object, field, "this class supports no parameters");
    }
    let count = state.gateway.listeners.len();
    let message = format!("none of the {count} listeners of this Gateway is valid, so it is not accepted");
    Diagnostic::new(refused, object, FieldPath::of("spec.listeners"), message)
}

pub(super) fn set(context: LintContext<'_>, state: &SetState) -> Vec<Diagnostic> {
    let is_elsewhere = |refused: &reason::Reason| {
        *refused == reason::LISTENER_SET_PARENT_MISSING
            && context.may_be_elsewhere(Kind::Gateway, &state.set.parent.name)
    };
    let refused = state.refused.filter(|refused| !is_elsewhere(refused));
    refused.map(|refused| set_refused(context, state, refused)).into_iter().collect()
}

fn set_refused(context: LintContext<'_>, state: &SetState, refused: reason::Reason) -> Diagnostic {
    let set = &state.set;
    let object = set.object();
    let own = &set.meta.key.namespace;
    let parent = Key::new(set.parent.namespace_or(own).clone(), set.parent.name.clone());
    let field = FieldPath::of("spec.parentRef");
    if let Some(invalid) = super::invalid(&set.meta, &object).filter(|invalid| invalid.reason == refused) {
        return invalid;
    }
    match refused {
        reason::LISTENER_SET_PARENT_MISSING => {
            let message = format!("{} {parent} {}", set.parent.kind, context.absent());
            lowered(Diagnostic::new(refused, &object, field.key("name"), message), context.expects(Kind::Gateway, own))
        }
        reason::LISTENER_SET_NOT_ALLOWED => not_allowed(context, &object, &parent),
        reason::GATEWAY_NOT_ACCEPTED => {
            let message = format!("Gateway {parent} is not accepted, so this ListenerSet cannot be");
            Diagnostic::new(refused, &object, field, message)
        }
        reason::GATEWAY_CLASS_NOT_OURS => {
            let message = format!("Gateway {parent} is not of a class that is looked after here");
            Diagnostic::new(refused, &object, field, message)
        }
        _ => Diagnostic::new(
            refused,
            &object,
            FieldPath::of("spec.listeners"),
            "none of the listeners of this ListenerSet is valid, so it is not accepted",
        ),
    }
}

fn not_allowed(context: LintContext<'_>, set: &ObjectRef, parent: &Key) -> Diagnostic {
    let namespace = set.namespace();
    let allowed = context.snapshot.gateways.get(parent).map(|g| &g.allowed_listeners);
    let (says, fix) = match allowed {
        Some(Admission::Same) => ("admits ListenerSets of its own namespace only".to_owned(), None),
        Some(Admission::Selector(Some(selector))) => (
            format!("admits ListenerSets of namespaces with {selector}, and {namespace} does not match"),
            super::routes::label_fix(context, namespace, selector),
        ),
        Some(Admission::Selector(None)) => ("admits ListenerSets by selector and has none".to_owned(), None),
        Some(Admission::Other(word)) => (format!("has the unknown `from: {word}`"), None),
        _ => ("admits no ListenerSets".to_owned(), None),
    };
    let message = format!("Gateway {parent} {says} (`spec.allowedListeners.namespaces`)");
    let field = FieldPath::of("spec.parentRef");
    let gateway = ObjectRef { kind: Kind::Gateway, key: parent.clone() };
    let mut diagnostic = Diagnostic::new(reason::LISTENER_SET_NOT_ALLOWED, set, field, message).related(
        &gateway,
        FieldPath::of("spec.allowedListeners"),
        "this is what would have to admit it",
    );
    diagnostic.fix = fix.filter(|_| !context.is_namespace_assumed(set));
    match allowed {
        Some(admission) => super::namespaces::lowered_if_unknown(context, diagnostic, namespace, admission),
        None => diagnostic,
    }
}

pub(super) fn suggested(diagnostic: Diagnostic, near: Option<&str>) -> Diagnostic {
    match near {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}
