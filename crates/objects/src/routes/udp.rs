//! UDPRoute.

use gatepost_core::model::{Meta, RouteKind, ShortVec};
use gatepost_core::snapshot::Object;

use super::parts::{Spec, route};
use super::plain::plain_rules;
use crate::fields::Fields;

/// Reads a UDPRoute.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, version: &str) -> Object {
    route(RouteKind::Udp, meta, root, |f| Spec { hostnames: ShortVec::new(), rules: plain_rules(f, version) })
}
