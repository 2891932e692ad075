//! The objects as the rules see them: parsed, defaulted, and the same for files and clusters.
//!
//! Five wire shapes of routes are one [`Route`] here. Values that a later release may add are kept as `Other`, never dropped.
//! Nothing here is serialized; the border is the `objects` crate on the way in and the views on the way out.

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

/// A shared text.
pub type Str = Arc<str>;

/// A list whose clones share its items; objects that repeat each other hold one copy.
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

/// A list that mostly has one item, which then needs no allocation.
pub type ShortVec<T> = smallvec::SmallVec<[T; 1]>;

/// The API group of Gateways and routes.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// The API group that held ListenerSets while they were an experiment.
pub const EXPERIMENTAL_GROUP: &str = "gateway.networking.x-k8s.io";

/// The API group of our own kinds, which is also the group of issuers that are this program's own.
pub const OWN_GROUP: &str = "gatepost.dev";

/// A hostname as it stands in a field: the text, and what it means if it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenHostname(Written);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Written {
    /// The text is the name, as nearly always.
    Plain(Hostname),
    Other(Box<(Str, Result<Hostname, HostnameError>)>),
}

impl WrittenHostname {
    /// Reads a field's text.
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

    /// The name it stands for, or why it stands for none.
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
    /// Kind as written.
    pub kind: Str,
    /// Namespace as written; unset means the referrer's.
    pub namespace: Option<Str>,
    /// Name.
    pub name: Str,
}

impl Reference {
    /// The namespace it points into, for an object in `own`.
    pub fn namespace_or<'a>(&'a self, own: &'a Str) -> &'a Str {
        self.namespace.as_ref().unwrap_or(own)
    }
}
