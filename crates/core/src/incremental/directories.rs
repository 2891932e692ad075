//! Which routes and listeners have a say about which hosts, Gateway by Gateway.

use std::sync::Arc;

use super::Engine;
use crate::attachment::{Hall, ListenerState, RouteState};
use crate::model::Key;
use crate::routing::{Directory, places};

impl Engine {
    /// Files a route under its Gateways and hostnames, and no longer as it was before.
    pub(super) fn direct_route(&mut self, before: Option<&RouteState>, after: Option<&Arc<RouteState>>) {
        let old = before.map(places).unwrap_or_default();
        let new = after.map(|route| places(route)).unwrap_or_default();
        for (gateway, name) in old.difference(&new) {
            let object = before.map(|route| route.route.object());
            self.direct(gateway, |directory| object.iter().for_each(|object| directory.take_route(name, object)));
        }
        let Some(after) = after else { return };
        for (gateway, name) in new {
            self.direct(&gateway, |directory| directory.add_route(&name, after));
        }
    }

    /// Files the listeners of a Gateway that differ from before.
    pub(super) fn direct_listeners(&mut self, gateway: &Key, before: &Hall, after: &Hall) {
        let slots = 0..before.width().max(after.width()) as u32;
        let differ =
            |slot: &u32| !before.is_same_slot(after, *slot) && !is_same(before.listener(*slot), after.listener(*slot));
        let differ: Vec<u32> = slots.filter(differ).collect();
        if differ.is_empty() {
            return;
        }
        self.direct(gateway, |directory| {
            let old = differ.iter().filter_map(|slot| before.listener(*slot));
            old.for_each(|listener| directory.set_listener(listener, false));
            let new = differ.iter().filter_map(|slot| after.listener(*slot));
            new.for_each(|listener| directory.set_listener(listener, true));
        });
    }

    fn direct(&mut self, gateway: &Key, change: impl FnOnce(&mut Directory)) {
        let mut directory = self.world.directories.remove(gateway).unwrap_or_default();
        change(Arc::make_mut(&mut directory));
        if !directory.is_empty() {
            self.world.directories.insert(gateway.clone(), directory);
        }
    }
}

/// Whether a listener is found by the same names.
fn is_same(a: Option<&ListenerState>, b: Option<&ListenerState>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.hostname == b.hostname && a.spec().hostname == b.spec().hostname,
        (a, b) => a.is_none() && b.is_none(),
    }
}
