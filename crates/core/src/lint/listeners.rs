//! Listeners: validity, conflicts, certificates.

use super::*;
use crate::attachment::certificates::is_provided;
use crate::reason::Severity;

pub(super) fn listener(context: LintContext<'_>, id: ListenerId) -> Vec<Diagnostic> {
    let state = context.topology.listener(id);
    let mut all = Vec::new();
    all.extend(state.refused.and_then(|refused| refusal(state, refused)));
    all.extend(state.conflict.map(|conflict| clash(context, state, conflict)));
    all.extend(state.unfit_kinds.iter().enumerate().map(|(i, kind)| unfit(state, i, kind)));
    all.extend(state.certificates.iter().map(|problem| certificate(context, state, problem)));
    all.extend(overlap(context, state));
    all.extend(open_to_all(state));
    all
}

/// What is wrong with a listener, without Secrets that another controller makes.
pub(super) fn findings(context: LintContext<'_>, id: ListenerId) -> Vec<Diagnostic> {
    let state = context.topology.listener(id);
    let refs = || state.spec().tls.iter().flat_map(|tls| tls.certificates.iter().enumerate());
    let provided: Vec<FieldPath> = refs()
        .filter(|(_, target)| is_provided(context.snapshot, state, target))
        .map(|(i, _)| listener_field(state, "tls.certificateRefs").index(i))
        .collect();
    let is_provided = |d: &Diagnostic| d.reason == reason::CERTIFICATE_MISSING && provided.contains(&d.field);
    let mut all = listener(context, id);
    all.retain(|diagnostic| !is_provided(diagnostic));
    // The API takes such a listener, and an implementation may have a certificate of its own.
    let unsecured = unsecured(state).filter(|_| state.refused.is_none() && state.owner.meta().invalid.is_none());
    all.extend(unsecured.map(|problem| Diagnostic { severity: Severity::Warning, ..problem }));
    if lacks_only_absent_ca(context, state) {
        all.iter_mut().filter(|d| d.reason == reason::CA_CERTIFICATE_UNUSABLE).for_each(|diagnostic| {
            diagnostic.severity = Severity::Info;
            diagnostic.help = Some(
                "Nothing to do if the ConfigMap is made elsewhere; add it to the files to have it checked.".to_owned(),
            );
        });
    }
    all
}

/// A listener that ends TLS and names no certificate at all.
pub(crate) fn unsecured(state: &ListenerState) -> Option<Diagnostic> {
    let spec = state.spec();
    let is_bare = spec.tls.as_ref().is_none_or(|tls| tls.certificates.is_empty() && tls.options == 0);
    let message = format!("{} names no certificate, so no handshake succeeds", listener_name(state));
    let field = if spec.tls.is_none() { "tls" } else { "tls.certificateRefs" };
    let problem = || {
        let field = listener_field(state, field);
        Diagnostic::new(reason::CERTIFICATE_MISSING, &state.owner.object(), field, message)
    };
    (spec.terminates_tls() && is_bare)
        .then(problem)
        .map(|problem| problem.help("name a Secret in `tls.certificateRefs` of the listener"))
}

/// Whether a listener is refused only because ConfigMaps with CA certificates are not among the files.
pub(super) fn lacks_only_absent_ca(context: LintContext<'_>, state: &ListenerState) -> bool {
    let Some(gateway) = state.gateway.as_ref().and_then(|key| context.snapshot.gateways.get(key)) else { return false };
    let absent = |problem: &CertificateProblem| {
        let CertificateUse::Client(entry, i) = problem.place else { return true };
        let validation = match entry {
            Some(entry) => gateway.frontend.per_port.get(entry).and_then(|(_, validation)| validation.as_ref()),
            None => gateway.frontend.default.as_ref(),
        };
        let target = validation.and_then(|validation| validation.ca_certificates.get(i));
        problem.condition == "InvalidCACertificateRef"
            && target.is_some_and(|target| {
                let namespace = target.namespace_or(&gateway.meta.key.namespace);
                !context.snapshot.config_maps.contains_key(&Key::new(namespace.clone(), target.name.clone()))
            })
    };
    context.snapshot.origin == Origin::Files && state.certificates.iter().all(absent)
}

/// A hostname that is none was reported where it was read.
fn refusal(state: &ListenerState, refused: reason::Reason) -> Option<Diagnostic> {
    let (object, spec) = (state.owner.object(), state.spec());
    let name = &spec.name;
    match refused {
        reason::PROTOCOL_UNSUPPORTED => {
            let message = format!("listener `{name}` has the protocol `{}`", spec.protocol.as_str());
            Some(Diagnostic::new(refused, &object, listener_field(state, "protocol"), message))
        }
        reason::TLS_MODE_UNSUPPORTED => {
            let mode = match spec.tls.as_ref().map(|tls| &tls.mode) {
                None => "no `tls` settings".to_owned(),
                Some(TlsMode::Passthrough) => "TLS mode Passthrough".to_owned(),
                Some(TlsMode::Terminate) => "TLS mode Terminate".to_owned(),
                Some(TlsMode::Other(word)) => format!("the unknown TLS mode `{word}`"),
            };
            let message = format!("listener `{name}` of protocol {} has {mode}", spec.protocol.as_str());
            let field = if spec.tls.is_none() { "tls" } else { "tls.mode" };
            let diagnostic = Diagnostic::new(refused, &object, listener_field(state, field), message);
            Some(match spec.tls.is_none() {
                true => diagnostic.help("add `tls` with `certificateRefs`, or use protocol HTTP"),
                false => diagnostic,
            })
        }
        reason::CA_CERTIFICATE_UNUSABLE => {
            let message = format!("listener `{name}` is to check client certificates and has no usable CA certificate");
            Some(Diagnostic::new(refused, &object, listener_field(state, "name"), message))
        }
        _ => None,
    }
}

fn clash(context: LintContext<'_>, state: &ListenerState, conflict: Conflict) -> Diagnostic {
    let (object, spec) = (state.owner.object(), state.spec());
    let other = context.topology.listener(conflict.with);
    let (port, protocol) = (spec.port, spec.protocol.as_str());
    let own = other.owner.object() == object;
    let who = match (own, &other.owner) {
        (true, _) => format!("listener `{}` of the same {}", other.spec().name, object.kind),
        (false, Owner::Gateway(_)) => "a listener of the Gateway".to_owned(),
        (false, Owner::Set(_)) => "a listener of an older ListenerSet".to_owned(),
    };
    let name = &spec.name;
    let (field, message) = if conflict.reason == reason::LISTENER_HOSTNAME_CONFLICT {
        let host = &state.hostname;
        ("hostname", format!("listener `{name}` claims {protocol} port {port} for `{host}`, and so does {who}"))
    } else {
        let theirs = other.spec().protocol.as_str();
        ("port", format!("listener `{name}` claims port {port} for {protocol}, and {who} claims it for {theirs}"))
    };
    let note = if own { "the other one" } else { "this one came first and keeps it" };
    Diagnostic::new(conflict.reason, &object, listener_field(state, field), message).related(
        &other.owner.object(),
        listener_field(other, field),
        note,
    )
}

fn unfit(state: &ListenerState, index: usize, (group, kind): &(Str, Str)) -> Diagnostic {
    let spec = state.spec();
    let carried: Vec<_> = crate::attachment::listeners::kinds_carried(spec).iter().map(|k| k.as_str()).collect();
    let kind = if **group == *GATEWAY_GROUP { kind.to_string() } else { format!("{kind}.{group}") };
    let message = format!(
        "listener `{}` allows `{kind}`, and its protocol {} carries {}",
        spec.name,
        spec.protocol.as_str(),
        listed(carried.into_iter())
    );
    let position = spec.allowed_routes.kinds.iter().position(|(g, k)| (g, k) == (group, &Str::from(&*kind)));
    let field = listener_field(state, "allowedRoutes.kinds").index(position.unwrap_or(index));
    Diagnostic::new(reason::LISTENER_KIND_UNFIT, &state.owner.object(), field, message)
}

fn certificate(context: LintContext<'_>, state: &ListenerState, problem: &CertificateProblem) -> Diagnostic {
    let object = state.owner.object();
    match problem.place {
        CertificateUse::Own(i) => own_certificate(context, state, problem, i),
        CertificateUse::Client(entry, i) => {
            let base = match entry {
                Some(entry) => FieldPath::of("spec.tls.frontend.perPort").index(entry).key("tls"),
                None => FieldPath::of("spec.tls.frontend.default"),
            };
            let field = base.key("validation").key("caCertificateRefs").index(i);
            let gateway = state.gateway.clone().map(|key| ObjectRef { kind: Kind::Gateway, key }).unwrap_or(object);
            let message =
                format!("a CA certificate for port {} cannot be used: {}", state.spec().port, problem.condition);
            Diagnostic::new(problem.reason, &gateway, field, message)
        }
    }
}

fn own_certificate(
    context: LintContext<'_>,
    state: &ListenerState,
    problem: &CertificateProblem,
    i: usize,
) -> Diagnostic {
    let (object, spec) = (state.owner.object(), state.spec());
    let target = spec.tls.as_ref().and_then(|tls| tls.certificates.get(i));
    let field = listener_field(state, "tls.certificateRefs").index(i);
    let Some(target) = target else { return Diagnostic::new(problem.reason, &object, field, "") };
    let namespace = target.namespace_or(object.namespace());
    let called = format!("{} {namespace}/{}", target.kind, target.name);
    let name = &spec.name;
    match problem.reason {
        reason::REFERENCE_NOT_PERMITTED => {
            let message = format!(
                "listener `{name}` uses {called} of another namespace, and no ReferenceGrant in {namespace} permits {} of namespace {} to use it",
                object.kind,
                object.namespace()
            );
            let diagnostic = Diagnostic::new(problem.reason, &object, field, message);
            near_grant(context, diagnostic.help(grant_help(&object, target, namespace)), target, namespace)
        }
        reason::CERTIFICATE_MALFORMED => {
            let key = Key::new(namespace.clone(), target.name.clone());
            let why = match context.snapshot.secrets.get(&key).map(|s| &s.certificate) {
                Some(Material::Malformed(why)) => why.to_string(),
                _ => "it has no `tls.crt`".to_owned(),
            };
            let secret = ObjectRef { kind: Kind::Secret, key };
            let message = format!("listener `{name}` uses {called}, which holds no usable certificate: {why}");
            Diagnostic::new(problem.reason, &object, field, message).related(
                &secret,
                FieldPath::of("data"),
                "the Secret",
            )
        }
        _ if !target.group.is_empty() || &*target.kind != "Secret" => {
            let message = format!("listener `{name}` uses {called}, and only Secrets hold certificates");
            Diagnostic::new(problem.reason, &object, field, message)
        }
        _ => {
            let message = format!("listener `{name}` uses {called}, which {}", context.absent());
            let same = context.snapshot.secrets_in(namespace).map(|key| &*key.name).take(MOST_NAMES);
            let near = closest(&target.name, same);
            let mut diagnostic = Diagnostic::new(problem.reason, &object, field, message);
            if context.snapshot.origin == Origin::Files {
                // Repositories seldom hold Secrets, so only a name that looks misspelt is suspicious.
                diagnostic.severity = if near.is_some() { Severity::Warning } else { Severity::Info };
            }
            super::gateways::suggested(diagnostic, near)
        }
    }
}

/// Adds a grant that permits the same to others, or something else to the same.
pub(super) fn near_grant(
    context: LintContext<'_>,
    diagnostic: Diagnostic,
    target: &Reference,
    namespace: &Str,
) -> Diagnostic {
    let Some(from) = diagnostic.object.clone() else { return diagnostic };
    let here = context.snapshot.grants.values().filter(|grant| grant.meta.key.namespace == *namespace);
    let is_from = |f: &GrantFrom| *f.kind == *from.kind.as_str() && f.namespace == *from.namespace();
    let is_to = |t: &GrantTo| t.kind == target.kind && t.name.as_ref().is_none_or(|name| *name == target.name);
    let near = here.filter_map(|grant| {
        let object = ObjectRef { kind: Kind::ReferenceGrant, key: grant.meta.key.clone() };
        match (grant.from.iter().any(is_from), grant.to.iter().any(is_to)) {
            (true, true) | (false, false) => None,
            (true, false) => Some((object, FieldPath::of("spec.to"), "this one permits it for other objects")),
            (false, true) => Some((object, FieldPath::of("spec.from"), "this one permits it to others")),
        }
    });
    match near.min_by_key(|(object, _, _)| object.clone()) {
        Some((object, field, note)) => diagnostic.related(&object, field, note),
        None => diagnostic,
    }
}

/// The grant that would permit a reference.
pub(super) fn grant_help(from: &ObjectRef, target: &Reference, namespace: &Str) -> String {
    format!(
        "create a ReferenceGrant in namespace {namespace}: from {{group: {}, kind: {}, namespace: {}}} to {{group: \"{}\", kind: {}, name: {}}}",
        from.kind.group(),
        from.kind,
        from.namespace(),
        target.group,
        target.kind,
        target.name
    )
}

fn overlap(context: LintContext<'_>, state: &ListenerState) -> Option<Diagnostic> {
    let other = context.topology.listener(state.overlaps?);
    let message = format!(
        "listener `{}` (`{}`) overlaps another TLS listener on port {}",
        state.spec().name,
        state.hostname,
        state.spec().port
    );
    let field = listener_field(state, "hostname");
    let diagnostic = Diagnostic::new(reason::OVERLAPPING_TLS, &state.owner.object(), field, message);
    Some(diagnostic.related(&other.owner.object(), listener_field(other, "hostname"), "overlaps with this one"))
}

fn open_to_all(state: &ListenerState) -> Option<Diagnostic> {
    let spec = state.spec();
    let open = state.refused.is_none()
        && state.hostname.is_any()
        && spec.protocol.has_hostname()
        && spec.allowed_routes.namespaces == Admission::All;
    let message = format!("listener `{}` has no hostname and takes routes from every namespace", spec.name);
    let field = listener_field(state, "allowedRoutes.namespaces.from");
    open.then(|| Diagnostic::new(reason::LISTENER_OPEN_TO_ALL, &state.owner.object(), field, message))
}
