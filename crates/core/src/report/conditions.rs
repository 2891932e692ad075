//! Conditions and their reasons, as the Gateway API names them.

use super::*;

/// The condition types that are ours to write; `Programmed` is, but only with a data plane.
const OURS: [&str; 7] =
    ["Accepted", "Programmed", "ResolvedRefs", "Conflicted", "OverlappingTLSConfig", "PartiallyInvalid", "Ready"];

/// Whether a condition type is ours to write.
pub(super) fn is_ours(kind: &str) -> bool {
    OURS.contains(&kind)
}

/// A condition with its generation; the old transition time is kept while the status is unchanged.
pub(super) fn stamped(
    mut own: Condition,
    before: &Conditions,
    meta: &Meta,
    now: &Option<Str>,
) -> (Condition, Option<Str>) {
    own.observed_generation = meta.generation;
    let same = before.timed().find(|(c, _)| c.kind == own.kind && c.status == own.status);
    let since = same.and_then(|(_, time)| time);
    (own, since.or_else(|| now.clone()))
}

/// `Programmed` as long as the data plane has not written it: unknown, or false for what is not accepted.
fn programmed(accepted: &Condition, before: &Conditions) -> Option<Condition> {
    if condition(before, "Programmed").is_some() {
        return None;
    }
    Some(match accepted.is_true() {
        true => {
            let message = "the data plane has not reported whether it is programmed";
            Condition { status: "Unknown".into(), ..Condition::new("Programmed", false, "Pending", message) }
        }
        false => Condition::new("Programmed", false, "Invalid", accepted.message.clone()),
    })
}

pub(super) fn gateway(context: LintContext<'_>, state: &GatewayState) -> Vec<Condition> {
    let accepted = accepted_gateway(context, state);
    let programmed = programmed(&accepted, &state.gateway.status.conditions);
    std::iter::once(accepted).chain(programmed).collect()
}

fn accepted_gateway(context: LintContext<'_>, state: &GatewayState) -> Condition {
    if let Some(refused) = state.refused {
        let message = said(context.gateway(state), refused);
        return Condition::new("Accepted", false, refused.row().condition.1, message);
    }
    let own = &state.listeners[..state.gateway.listeners.len()];
    let bad = own.iter().filter(|id| !context.topology.listener(**id).is_accepted()).count();
    match bad {
        0 => Condition::new("Accepted", true, "Accepted", ""),
        _ => {
            Condition::new("Accepted", true, "ListenersNotValid", format!("{bad} of {} listeners not valid", own.len()))
        }
    }
}

pub(super) fn set(context: LintContext<'_>, state: &SetState) -> Vec<Condition> {
    let bad = state.listeners.iter().filter(|id| !context.topology.listener(**id).is_accepted()).count();
    let (accepted, reason, message) = match state.refused {
        Some(refused) => {
            let reason = match refused {
                reason::GATEWAY_NOT_ACCEPTED => "ParentNotAccepted",
                _ => refused.row().condition.1,
            };
            (false, reason, said(context.set(state), refused))
        }
        None if bad == 0 => (true, "Accepted", String::new()),
        None => (true, "ListenersNotValid", format!("{bad} of {} listeners not valid", state.listeners.len())),
    };
    let accepted = Condition::new("Accepted", accepted, reason, message);
    let programmed = programmed(&accepted, &state.set.conditions);
    std::iter::once(accepted).chain(programmed).collect()
}

pub(super) fn listener(context: LintContext<'_>, id: ListenerId) -> Vec<Condition> {
    let state = context.topology.listener(id);
    let diagnostics = context.listener(id);
    let mut conditions = vec![accepted(state, &diagnostics), resolved(state, &diagnostics)];
    conditions.push(match state.conflict {
        Some(conflict) => Condition::new(
            "Conflicted",
            true,
            conflict.reason.row().condition.1,
            said(diagnostics.clone(), conflict.reason),
        ),
        None => Condition::new("Conflicted", false, "NoConflicts", ""),
    });
    if state.overlaps.is_some() {
        let message = said(diagnostics, reason::OVERLAPPING_TLS);
        conditions.push(Condition::new("OverlappingTLSConfig", true, "OverlappingHostnames", message));
    }
    conditions
}

fn accepted(state: &ListenerState, diagnostics: &[Diagnostic]) -> Condition {
    let refused = |why, reason| Condition::new("Accepted", false, reason, said(diagnostics.to_vec(), why));
    match (state.refused, state.conflict) {
        (Some(why @ reason::INVALID_HOSTNAME), _) => refused(why, "UnsupportedValue"),
        (Some(why @ reason::CA_CERTIFICATE_UNUSABLE), _) => refused(why, "NoValidCACertificate"),
        (Some(why), _) => refused(why, why.row().condition.1),
        (None, Some(conflict)) => refused(conflict.reason, conflict.reason.row().condition.1),
        (None, None) => Condition::new("Accepted", true, "Accepted", ""),
    }
}

fn resolved(state: &ListenerState, diagnostics: &[Diagnostic]) -> Condition {
    if !state.unfit_kinds.is_empty() {
        let message = said(diagnostics.to_vec(), reason::LISTENER_KIND_UNFIT);
        return Condition::new("ResolvedRefs", false, "InvalidRouteKinds", message);
    }
    match state.certificates.first() {
        Some(problem) => {
            Condition::new("ResolvedRefs", false, problem.condition, said(diagnostics.to_vec(), problem.reason))
        }
        None => Condition::new("ResolvedRefs", true, "ResolvedRefs", ""),
    }
}

pub(super) fn route(context: LintContext<'_>, state: &RouteState, index: usize) -> Vec<Condition> {
    let invalid = crate::lint::invalid(&state.route.meta, &state.route.object());
    let accepted = match state.parents[index].refused {
        _ if invalid.is_some() => {
            let message = invalid.map(|invalid| invalid.message).unwrap_or_default();
            Condition::new("Accepted", false, "UnsupportedValue", message)
        }
        Some(refused) => {
            let message = context.parent(state, index).map(|d| d.message).unwrap_or_default();
            Condition::new("Accepted", false, refused.row().condition.1, message)
        }
        None => Condition::new("Accepted", true, "Accepted", ""),
    };
    let resolved = match state.backends.first() {
        Some(problem) => {
            let message = said(context.backends(state), problem.reason);
            Condition::new("ResolvedRefs", false, problem.reason.row().condition.1, message)
        }
        None => Condition::new("ResolvedRefs", true, "ResolvedRefs", ""),
    };
    vec![accepted, resolved]
}

/// The message of the first diagnostic with this reason.
fn said(diagnostics: Vec<Diagnostic>, reason: reason::Reason) -> String {
    diagnostics.into_iter().find(|d| d.reason == reason).map(|d| d.message).unwrap_or_default()
}
