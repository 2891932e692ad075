//! `metadata`: who an object is.

use gatepost_core::model::{Key, Meta};

use crate::fields::Fields;
use crate::shapes::Shape;
use crate::times::timestamp;

/// Reads `metadata` of an object whose key is known already.
pub(crate) fn metadata(root: &Fields<'_>, key: Key) -> Meta {
    let mut meta = Meta::named(key.namespace, key.name);
    root.mapping("metadata", |f| {
        f.shaped("name", Shape::Subdomain);
        f.shaped("namespace", Shape::Label);
        f.ignore(&IGNORED);
        meta.created = created(f);
        meta.generation = f.number("generation");
        meta.labels = f.labels("labels");
        meta.annotations = f.labels("annotations");
    });
    meta
}

/// What else a server or a tool may write into `metadata`.
const IGNORED: [&str; 10] = [
    "generateName",
    "uid",
    "resourceVersion",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "clusterName",
];

fn created(f: &Fields<'_>) -> Option<i64> {
    let node = f.node("creationTimestamp")?;
    let text = node.text()?;
    let time = timestamp(text);
    if time.is_none() {
        node.invalid("is not an RFC 3339 time such as `2026-03-01T10:00:00Z`; the object counts as new");
    }
    time
}
