//! Conditions of a status, as somebody wrote them. Nothing is judged here: what cannot be understood is left empty.

use gatepost_core::model::{Condition, Conditions, ListenerStatus, SharedList, Str};

use crate::fields::{FieldValue, Fields};

/// The conditions below `conditions`.
pub(crate) fn conditions(status: &Fields<'_>) -> Conditions {
    let mut times = Vec::new();
    Conditions::new(said(status, &mut times), times)
}

/// The conditions below `conditions`; their times are added to a list.
pub(crate) fn said(status: &Fields<'_>, times: &mut Vec<Option<Str>>) -> SharedList<Condition> {
    let said = status.mappings("conditions", |f| {
        times.push(f.node("lastTransitionTime").and_then(FieldValue::text).map(|time| f.share(time)));
        Condition {
            kind: f.text("type").unwrap_or_default(),
            status: f.text("status").unwrap_or_default(),
            reason: f.text("reason").unwrap_or_default(),
            message: f.text("message").unwrap_or_default(),
            observed_generation: f.number("observedGeneration"),
        }
    });
    status.share_list(said)
}

/// The listeners below `listeners` of a status.
pub(crate) fn listeners(status: &Fields<'_>) -> Vec<ListenerStatus> {
    status.mappings("listeners", |f| ListenerStatus {
        name: f.text("name").unwrap_or_default(),
        conditions: conditions(f),
    })
}
