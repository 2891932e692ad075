//! HostnameGrant.

use gatepost_core::model::{GrantedNamespaces, HostnameGrant, Meta, WrittenHostname};
use gatepost_core::snapshot::Object;

use crate::fields::Fields;
use crate::listener::selector;
use crate::shapes::Shape;
use crate::{hostnames, rules};

/// Reads a HostnameGrant.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    root.require("spec");
    let (hostnames, namespaces) = root.mapping("spec", spec).unwrap_or_default();
    Object::HostnameGrant(HostnameGrant { meta, hostnames, namespaces })
}

fn spec(f: &Fields<'_>) -> (Vec<WrittenHostname>, GrantedNamespaces) {
    let hostnames = f.list("hostnames", |node| Some(hostnames::hostname(node)));
    if f.require("hostnames") {
        rules::count(f, "hostnames", hostnames.len(), 1, 64);
    }
    rules::unique(f, "hostnames", None, hostnames.iter().map(WrittenHostname::text), "hostname");
    f.require("namespaces");
    (hostnames, f.mapping("namespaces", namespaces).unwrap_or_default())
}

/// Nobody is admitted by a field that cannot be read.
fn namespaces(f: &Fields<'_>) -> GrantedNamespaces {
    let names = f.list("names", |node| Some(f.share(node.shaped(Shape::Label).unwrap_or_default())));
    rules::at_most(f, "names", names.len(), 256);
    rules::unique(f, "names", None, names.iter(), "namespace");
    if !f.has("names") && !f.has("selector") {
        f.invalid_here(
            "has neither `names` nor `selector`; one of them must say which namespaces may have the hostnames",
        );
    }
    GrantedNamespaces { names, selector: f.mapping("selector", selector) }
}
