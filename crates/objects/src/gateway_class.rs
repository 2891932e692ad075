//! GatewayClass.

use gatepost_core::model::{GatewayClass, Meta, Str};
use gatepost_core::snapshot::Object;

use crate::conditions::conditions;
use crate::fields::{FieldValue, Fields};
use crate::references;
use crate::shapes::Shape;
use crate::tree::Tree;

/// Reads a GatewayClass.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    root.require("spec");
    let controller = root.mapping("spec", spec).unwrap_or_default();
    let status = root.silent_mapping("status", |f| (conditions(f), f.list("supportedFeatures", feature)));
    let (conditions, features) = status.unwrap_or_default();
    Object::GatewayClass(GatewayClass { meta, controller, features, conditions })
}

fn spec(f: &Fields<'_>) -> Str {
    f.shaped("description", Shape::Short(64));
    f.mapping("parametersRef", references::explicit);
    f.required("controllerName", Shape::DomainPath)
}

/// A feature is an object with a name; before 1.3 it was the name alone.
fn feature(node: FieldValue<'_>) -> Option<Str> {
    match node.value() {
        Tree::Text(name) => Some((**name).into()),
        _ => node.mapping(|f| f.text("name"))?,
    }
}
