//! References between objects, with the API server's defaults filled in.

use gatepost_core::model::{GATEWAY_GROUP, Reference};

use crate::fields::Fields;
use crate::shapes::Shape;

/// What an unset group and kind mean.
#[derive(Clone, Copy)]
pub(crate) struct Default {
    group: &'static str,
    kind: &'static str,
}

/// A Gateway: parents of routes and ListenerSets.
pub(crate) const GATEWAY: Default = Default { group: GATEWAY_GROUP, kind: "Gateway" };
/// A Service: backends.
pub(crate) const SERVICE: Default = Default { group: "", kind: "Service" };
/// A Secret: certificates.
pub(crate) const SECRET: Default = Default { group: "", kind: "Secret" };

/// A reference whose group and kind may be left out.
pub(crate) fn reference(fields: &Fields<'_>, default: Default) -> Reference {
    Reference {
        group: fields.shaped("group", Shape::Group).unwrap_or_else(|| fields.share(default.group)),
        kind: fields.shaped("kind", Shape::Kind).unwrap_or_else(|| fields.share(default.kind)),
        namespace: fields.shaped("namespace", Shape::Label),
        name: fields.required("name", Shape::ObjectName),
    }
}

/// A reference into the own namespace whose group and kind must be given.
pub(crate) fn local(fields: &Fields<'_>) -> Reference {
    fields.require("group");
    Reference {
        group: fields.shaped("group", Shape::Group).unwrap_or_default(),
        kind: fields.required("kind", Shape::Kind),
        namespace: None,
        name: fields.required("name", Shape::ObjectName),
    }
}

/// A reference whose group and kind must be given and whose namespace may be.
pub(crate) fn explicit(fields: &Fields<'_>) -> Reference {
    Reference { namespace: fields.shaped("namespace", Shape::Label), ..local(fields) }
}

/// A Gateway without a name, which nobody can have: for references that cannot be read.
pub(crate) fn nobody() -> Reference {
    Reference { group: GATEWAY_GROUP.into(), kind: "Gateway".into(), namespace: None, name: "".into() }
}
