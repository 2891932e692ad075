//! Conditions of a status, as somebody wrote them. Nothing is judged here: what cannot be understood is left empty.

use gatepost_core::model::{Condition, ListenerStatus};

use crate::fields::Fields;

/// The conditions below `conditions`.
pub(crate) fn conditions(status: &Fields<'_>) -> Vec<Condition> {
    status.mappings("conditions", |f| Condition {
        kind: f.text("type").unwrap_or_default(),
        status: f.text("status").unwrap_or_default(),
        reason: f.text("reason").unwrap_or_default(),
        message: f.text("message").unwrap_or_default(),
        observed_generation: f.number("observedGeneration"),
        last_transition: f.text("lastTransitionTime"),
    })
}

/// The listeners below `listeners` of a status.
pub(crate) fn listeners(status: &Fields<'_>) -> Vec<ListenerStatus> {
    status.mappings("listeners", |f| ListenerStatus {
        name: f.text("name").unwrap_or_default(),
        conditions: conditions(f),
    })
}
