//! TCPRoute.

use gatepost_core::model::{Meta, RouteKind, ShortVec};
use gatepost_core::snapshot::Object;

use super::parts::{Spec, route};
use super::plain::plain_rules;
use crate::fields::Fields;

/// Reads a TCPRoute.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, version: &str) -> Object {
    route(RouteKind::Tcp, meta, root, |f| Spec { hostnames: ShortVec::new(), rules: plain_rules(f, version) })
}
