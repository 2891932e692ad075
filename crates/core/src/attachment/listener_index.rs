//! The listeners of one Gateway or ListenerSet, found by name and by hostname, so that a route never looks at all of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::{ListenerId, ListenerState};
use crate::few::Few;
use crate::model::{Route, Str};
use crate::names::{Hostname, Overlap, Suffixes};
use crate::seed::Seed;

/// From so many listeners on an index is quicker than a look at each.
const MANY: usize = 8;

/// The listeners of one owner, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doors {
    ids: Vec<ListenerId>,
    /// Whether some hostname is without a wildcard.
    has_precise: bool,
    index: Option<Box<Index>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Index {
    sections: HashMap<Str, Few<u32>, Seed>,
    hosts: Overlap,
}

impl Doors {
    /// Files the listeners of an owner; they come in its order.
    pub(super) fn of(listeners: &[Arc<ListenerState>]) -> Self {
        let ids = listeners.iter().map(|listener| listener.id).collect();
        let has_precise = listeners.iter().any(|listener| listener.hostname.is_precise());
        Doors { ids, has_precise, index: (listeners.len() >= MANY).then(|| Box::new(Index::of(listeners))) }
    }

    /// All of them, in order.
    pub fn all(&self) -> &[ListenerId] {
        &self.ids
    }

    /// Whether some hostname is without a wildcard.
    pub(crate) fn has_precise(&self) -> bool {
        self.has_precise
    }

    /// At least those that a route may attach to, in order: those of the name if one is given, else those that have a
    /// hostname in common with the route. `found` is overwritten.
    pub(super) fn promising(
        &self,
        route: &Route,
        section: Option<&Str>,
        suffixes: &mut Suffixes,
        found: &mut Vec<u32>,
    ) {
        if section.is_none() && (!route.kind.has_hostnames() || route.hostnames.is_empty()) {
            found.clear();
            return found.extend(0..self.ids.len() as u32);
        }
        let names = route.hostnames.iter().filter_map(|written| written.name().ok());
        self.promising_for(names, section, suffixes, found);
    }

    /// The same for some hostnames.
    pub(crate) fn promising_for<'n>(
        &self,
        names: impl IntoIterator<Item = &'n Hostname>,
        section: Option<&Str>,
        suffixes: &mut Suffixes,
        found: &mut Vec<u32>,
    ) {
        found.clear();
        let Some(index) = &self.index else { return found.extend(0..self.ids.len() as u32) };
        if let Some(section) = section {
            return found.extend(index.sections.get(section).into_iter().flatten());
        }
        for name in names {
            index.hosts.overlapping_known(suffixes.of(name.text()), |door| found.push(door));
        }
        if found.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
    }

    /// One of them.
    pub(crate) fn id(&self, door: u32) -> ListenerId {
        self.ids[door as usize]
    }
}

impl Index {
    fn of(listeners: &[Arc<ListenerState>]) -> Self {
        let mut index = Index::default();
        index.sections.reserve(listeners.len());
        for (door, listener) in listeners.iter().enumerate() {
            index.sections.entry(listener.spec().name.clone()).or_default().push(door as u32);
        }
        // A listener that is not valid takes no route, whatever its hostname is.
        let host = |listener: &Arc<ListenerState>| match listener.hostname.is_any() {
            _ if listener.refused.is_some() => None,
            true => Some(Str::default()),
            false => Some(listener.hostname.text().clone()),
        };
        index.hosts = Overlap::new(listeners.iter().map(host));
        index
    }
}
