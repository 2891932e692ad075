//! ReferenceGrant.

use gatepost_core::model::{GrantFrom, GrantTo, Meta, ReferenceGrant};
use gatepost_core::snapshot::Object;

use crate::fields::Fields;
use crate::rules;
use crate::shapes::Shape;

/// Reads a ReferenceGrant.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    root.require("spec");
    let (from, to) = root.mapping("spec", spec).unwrap_or_default();
    Object::ReferenceGrant(ReferenceGrant { meta, from, to })
}

fn spec(f: &Fields<'_>) -> (Vec<GrantFrom>, Vec<GrantTo>) {
    let from = f.mappings("from", grant_from);
    let to = f.mappings("to", grant_to);
    rules::count(f, "from", from.len(), 1, 16);
    rules::count(f, "to", to.len(), 1, 16);
    (from, to)
}

fn grant_from(f: &Fields<'_>) -> GrantFrom {
    f.require("group");
    GrantFrom {
        group: f.shaped("group", Shape::Group).unwrap_or_default(),
        kind: f.required("kind", Shape::Kind),
        namespace: f.required("namespace", Shape::Label),
    }
}

fn grant_to(f: &Fields<'_>) -> GrantTo {
    f.require("group");
    GrantTo {
        group: f.shaped("group", Shape::Group).unwrap_or_default(),
        kind: f.required("kind", Shape::Kind),
        name: f.shaped("name", Shape::ObjectName),
    }
}
