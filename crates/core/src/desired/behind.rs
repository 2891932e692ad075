//! The routes behind a certificate, in order.
//!
//! From scratch they are the routes themselves, which are at hand. Who follows changes keeps names: those stay when a route
//! becomes another, and a copy shares them.

use std::fmt;
use std::sync::Arc;

use crate::model::{ObjectRef, Route};
use crate::table::Table;

/// Routes, in order; the same ones are equal however they are kept.
#[derive(Clone)]
pub enum RoutesBehind {
    /// All of them as they are.
    Whole(Vec<Arc<Route>>),
    /// Which they are.
    Named(Table<ObjectRef, ()>),
}

impl RoutesBehind {
    /// Which they are, in order.
    pub fn keys(&self) -> impl Iterator<Item = ObjectRef> {
        let (routes, names) = match self {
            RoutesBehind::Whole(routes) => (Some(routes), None),
            RoutesBehind::Named(names) => (None, Some(names)),
        };
        let whole = routes.into_iter().flatten().map(|route| route.object());
        whole.chain(names.into_iter().flat_map(Table::keys).cloned())
    }
}

impl Default for RoutesBehind {
    fn default() -> Self {
        RoutesBehind::Named(Table::new())
    }
}

impl PartialEq for RoutesBehind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (RoutesBehind::Named(own), RoutesBehind::Named(others)) => own == others,
            _ => self.keys().eq(other.keys()),
        }
    }
}

impl Eq for RoutesBehind {}

impl fmt::Debug for RoutesBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}
