//! An index of one Gateway's or ListenerSet's listeners by name and hostname, so that routes need not try each.
//!
//! The index only narrows the candidates; whether a route attaches is decided in [`super::routes`].

use std::collections::HashMap;
use std::sync::Arc;

use super::{ListenerId, ListenerState};
use crate::model::{ParentRef, Route, ShortVec, Str};
use crate::names::OverlapIndex;

/// With fewer listeners, comparing with each is as fast as an index.
const MIN_INDEXED: usize = 8;

/// The listeners of one owner, in spec order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerIndex {
    ids: Vec<ListenerId>,
    maps: Option<Box<ListenerMaps>>,
}

/// Indexes into the list of listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ListenerMaps {
    sections: HashMap<Str, ShortVec<u32>>,
    hostnames: OverlapIndex,
}

impl ListenerIndex {
    /// Indexes the listeners of an owner, given in spec order.
    pub(super) fn of(listeners: &[Arc<ListenerState>]) -> Self {
        let ids = listeners.iter().map(|listener| listener.id).collect();
        let maps = (listeners.len() >= MIN_INDEXED).then(|| Box::new(ListenerMaps::of(listeners)));
        ListenerIndex { ids, maps }
    }

    /// All listeners, in order.
    pub fn all(&self) -> &[ListenerId] {
        &self.ids
    }

    /// The listeners that a route may attach to through a parentRef, in order. A superset of those it does attach to.
    pub(super) fn candidates(&self, route: &Route, parent: &ParentRef) -> Vec<ListenerId> {
        let Some(maps) = &self.maps else { return self.ids.clone() };
        if let Some(section) = &parent.section {
            let places = maps.sections.get(section).into_iter().flatten();
            return places.map(|place| self.ids[*place as usize]).collect();
        }
        if !route.kind.has_hostnames() || route.hostnames.is_empty() {
            return self.ids.clone();
        }
        let mut places = Vec::new();
        for name in route.hostnames.iter().filter_map(|written| written.name().ok()) {
            maps.hostnames.overlapping(name.as_str(), |place| places.push(place));
        }
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| self.ids[place as usize]).collect()
    }
}

impl ListenerMaps {
    fn of(listeners: &[Arc<ListenerState>]) -> Self {
        let mut sections: HashMap<Str, ShortVec<u32>> = HashMap::new();
        for (place, listener) in (0..).zip(listeners) {
            sections.entry(listener.spec().name.clone()).or_default().push(place);
        }
        // A refused listener accepts no routes, whatever its hostname is.
        let hostname = |listener: &Arc<ListenerState>| match listener.hostname.is_any() {
            _ if listener.refused.is_some() => None,
            true => Some(Str::default()),
            false => Some(listener.hostname.text().clone()),
        };
        ListenerMaps { sections, hostnames: OverlapIndex::new(listeners.iter().map(hostname)) }
    }
}
