//! The objects that the rules read: parsed, defaulted, and the same for files and clusters.
//!
//! Five wire formats of routes become one [`Route`]. Unknown values, which a later release may add, are kept as `Other`
//! and never dropped. Nothing here is serialized: the `objects` crate parses, and the views render.

use std::sync::Arc;

use crate::names::{Hostname, HostnameError};

mod gateway;
mod identity;
mod labels;
mod policy;
mod route;
mod status;
mod support;

pub use gateway::*;
pub use identity::*;
pub use labels::Labels;
pub use policy::*;
pub use route::*;
pub use status::*;
pub use support::*;

/// A shared string.
pub type Str = Arc<str>;

/// A list whose clones share its items; equal lists of many objects can be one allocation.
pub type SharedList<T> = Arc<[T]>;

/// Adds an item to a shared list, for tests that build objects by hand.
#[cfg(test)]
pub(crate) fn push<T: Clone>(list: &mut SharedList<T>, item: T) {
    *list = list.iter().cloned().chain([item]).collect();
}

/// The items of a shared list to change in place, for tests that build objects by hand.
#[cfg(test)]
pub(crate) fn items<T: Clone>(list: &mut SharedList<T>) -> &mut [T] {
    Arc::make_mut(list)
}

/// A list that usually has one item, which then needs no allocation.
pub type ShortVec<T> = smallvec::SmallVec<[T; 1]>;

/// The API group of Gateways and routes.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// The API group of `XListenerSet`, the experimental form of `ListenerSet`.
pub const EXPERIMENTAL_GROUP: &str = "gateway.networking.x-k8s.io";

/// The API group of our own kinds, and of the issuers that are part of this program.
pub const OWN_GROUP: &str = "gatepost.dev";

/// The text of a hostname field, and the hostname or the error that it parses to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenHostname(Written);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Written {
    /// The text is already the normalized name, which is the usual case; stored once.
    Plain(Hostname),
    Other(Box<(Str, Result<Hostname, HostnameError>)>),
}

impl WrittenHostname {
    /// Parses the text of a field.
    pub fn new(text: &str) -> Self {
        match Hostname::parse(text) {
            Ok(name) if name.as_str() == text => WrittenHostname(Written::Plain(name)),
            name => WrittenHostname(Written::Other(Box::new((text.into(), name)))),
        }
    }

    /// The text of the field.
    pub fn text(&self) -> &Str {
        match &self.0 {
            Written::Plain(name) => name.text(),
            Written::Other(other) => &other.0,
        }
    }

    /// The parsed hostname, or why the text is not one.
    pub fn name(&self) -> Result<&Hostname, &HostnameError> {
        match &self.0 {
            Written::Plain(name) => Ok(name),
            Written::Other(other) => other.1.as_ref(),
        }
    }
}

/// A reference to an object, with the API server's defaults applied except for the namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// API group; empty for the core group.
    pub group: Str,
    /// Kind, unvalidated.
    pub kind: Str,
    /// Namespace; unset means that of the referring object.
    pub namespace: Option<Str>,
    /// Name.
    pub name: Str,
}

impl Reference {
    /// The namespace it refers to, for a reference in an object of namespace `own`.
    pub fn namespace_or<'a>(&'a self, own: &'a Str) -> &'a Str {
        self.namespace.as_ref().unwrap_or(own)
    }
}
