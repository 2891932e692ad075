//! TLSRoute.

use gatepost_core::model::{Meta, RouteKind};
use gatepost_core::snapshot::Object;

use super::parts::{Spec, hostnames, route};
use super::plain::plain_rules;
use crate::fields::Fields;

/// Reads a TLSRoute. Hostnames must be there since v1alpha3.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, version: &str) -> Object {
    route(RouteKind::Tls, meta, root, |f| {
        let hostnames = hostnames(f, 1024);
        if version != "v1alpha2" && hostnames.is_empty() {
            f.invalid("hostnames", format!("is missing; a TLSRoute of {version} has 1 to 1024 hostnames"));
        }
        Spec { hostnames, rules: plain_rules(f, version) }
    })
}
