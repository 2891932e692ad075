//! The routes behind a certificate, in order.
//!
//! From scratch they are the routes themselves, which are at hand. Who follows changes keeps names: those stay when a route
//! becomes another, and a copy shares them.

use std::fmt;
use std::sync::Arc;

use crate::model::{Key, ObjectRef, Route, RouteKind};
use crate::table::Table;

/// Routes, in order; the same ones are equal however they are kept.
#[derive(Clone)]
pub enum RoutesBehind {
    /// All of them as they are.
    Whole(Vec<Arc<Route>>),
    /// Which they are.
    Named(RouteNames),
}

/// Which routes, kind by kind, so that the kind takes no room beside each. A copy shares what it has in common with others.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RouteNames([Table<Key, ()>; RouteKind::ALL.len()]);

impl RouteNames {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Table::is_empty)
    }

    /// Adds a route.
    pub(crate) fn insert(&mut self, route: &ObjectRef) {
        self.of_kind(route).into_iter().for_each(|names| _ = names.insert(route.key.clone(), ()));
    }

    /// Takes a route out.
    pub(crate) fn remove(&mut self, route: &ObjectRef) {
        self.of_kind(route).into_iter().for_each(|names| _ = names.remove(&route.key));
    }

    /// All of them, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = ObjectRef> {
        let kinds = RouteKind::ALL.into_iter().zip(&self.0);
        kinds.flat_map(|(kind, names)| names.keys().map(move |key| ObjectRef { kind: kind.kind(), key: key.clone() }))
    }

    fn of_kind(&mut self, route: &ObjectRef) -> Option<&mut Table<Key, ()>> {
        self.0.get_mut(RouteKind::of(route.kind)? as usize)
    }
}

impl RoutesBehind {
    /// Which they are, in order.
    pub fn keys(&self) -> impl Iterator<Item = ObjectRef> {
        let (routes, names) = match self {
            RoutesBehind::Whole(routes) => (Some(routes), None),
            RoutesBehind::Named(names) => (None, Some(names)),
        };
        let whole = routes.into_iter().flatten().map(|route| route.object());
        whole.chain(names.into_iter().flat_map(RouteNames::keys))
    }
}

impl Default for RoutesBehind {
    fn default() -> Self {
        RoutesBehind::Named(RouteNames::default())
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
