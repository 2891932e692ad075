//! ListenerSet, and XListenerSet, the experiment it grew out of.

use gatepost_core::model::{ListenerSet, Meta, Reference};
use gatepost_core::snapshot::Object;

use crate::conditions::{conditions, listeners as listener_status};
use crate::fields::Fields;
use crate::listener::listeners;
use crate::references;

/// Reads a ListenerSet or XListenerSet.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    root.require("spec");
    let status = root.silent_mapping("status", |f| (conditions(f), listener_status(f)));
    let (conditions, listener_status) = status.unwrap_or_default();
    let spec = root.mapping("spec", |f| (parent(f), listeners(f)));
    let (parent, listeners) = spec.unwrap_or_else(|| (references::nobody(), Vec::new()));
    let kind = root.collector().object().kind;
    Object::ListenerSet(ListenerSet { kind, meta, parent, listeners, conditions, listener_status })
}

fn parent(f: &Fields<'_>) -> Reference {
    f.require("parentRef");
    f.mapping("parentRef", |f| references::reference(f, references::GATEWAY)).unwrap_or_else(references::nobody)
}
