//! Who may have a say about a host at a Gateway, kept while objects change.
//!
//! A directory finds the listeners and routes of a Gateway whose hostnames match a host, however many others there are; a
//! [`Router`] of just those answers as one of everything would. It is changed entry by entry, and a copy shares what it has in
//! common with others. Nothing is judged here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::register::Register;
use super::request::Asked;
use super::{Answer, Dense, HostIndex, Request, compile};
use crate::attachment::{ListenerId, ListenerState, RouteState, Topology};
use crate::few::Few;
use crate::model::{Key, ObjectRef};
use crate::names::Hostname;
use crate::snapshot::Snapshot;

/// The listeners and routes of one Gateway by hostname.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    listeners: HostIndex<Few<ListenerId>, Dense>,
    routes: Register<Arc<RouteState>>,
}

impl Directory {
    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.listeners.is_empty() && self.routes.is_empty()
    }

    /// Files a listener under its hostname, or takes it out there.
    pub(crate) fn set_listener(&mut self, listener: &ListenerState, is_there: bool) {
        for name in filed(listener) {
            let mut ids: Vec<ListenerId> = self.listeners.get(&name).map(|ids| ids.to_vec()).unwrap_or_default();
            ids.retain(|id| *id != listener.id);
            if is_there {
                ids.push(listener.id);
            }
            match ids.is_empty() {
                true => _ = self.listeners.remove(&name),
                false => _ = self.listeners.insert(name, ids.into()),
            }
        }
    }

    /// Files a route under a hostname that it wrote.
    pub(crate) fn add_route(&mut self, name: &Hostname, route: &Arc<RouteState>) {
        self.routes.insert(name, route.clone());
    }

    /// Takes a route out under a hostname.
    pub(crate) fn take_route(&mut self, name: &Hostname, route: &ObjectRef) {
        self.routes.remove(name, route);
    }

    /// Says who serves a request at the Gateway that this is the directory of.
    pub(crate) fn route(
        &self,
        snapshot: &Snapshot,
        topology: &Topology,
        gateway: &Key,
        request: &Request,
    ) -> Option<Answer> {
        let state = topology.gateways.get(gateway)?;
        let asked = Asked::new(request);
        let listeners = self.listeners_for(topology, &asked);
        let routes = self.routes_for(&asked);
        let router = |listeners: &[ListenerId]| {
            compile::router_of(snapshot, topology, state, listeners, routes.values().map(|route| &***route))
        };
        let few = router(&listeners);
        let is_served = few.ports().any(|(port, scheme)| port == request.port && scheme.is_like(request.scheme));
        // Where nobody listens for the host it is told who else does.
        let router = if is_served { few } else { router(&state.listeners) };
        Some(router.route(request))
    }

    /// The listeners that may be asked about, in order of precedence.
    fn listeners_for(&self, topology: &Topology, asked: &Asked<'_>) -> Vec<ListenerId> {
        let found = self.listeners.lookup(&asked.host).chain(self.listeners.lookup(&asked.sni));
        let mut ids: Vec<ListenerId> = found.flat_map(|(_, ids)| ids.iter().copied()).collect();
        let place = |id: &ListenerId| topology.listener(*id);
        ids.sort_by(|a, b| place(a).by_precedence(place(b)).then(a.cmp(b)));
        ids.dedup();
        ids
    }

    fn routes_for(&self, asked: &Asked<'_>) -> BTreeMap<ObjectRef, &Arc<RouteState>> {
        let found = self.routes.lookup(&asked.host).chain(self.routes.lookup(&asked.sni));
        found.map(|route| (route.route.object(), route)).collect()
    }
}

/// What a route is filed under: every Gateway that it has for a parent, with each of its hostnames.
pub(crate) fn places(route: &RouteState) -> BTreeSet<(Key, Hostname)> {
    let gateways: BTreeSet<&Key> = route.parents.iter().filter_map(|parent| parent.gateway()).collect();
    let names: Vec<Hostname> = compile::written(&route.route).collect();
    gateways.into_iter().flat_map(|key| names.iter().map(move |name| (key.clone(), name.clone()))).collect()
}

/// The hostnames that a listener is found by: as it goes by it, and as it is written where it takes no requests.
fn filed(listener: &ListenerState) -> BTreeSet<Hostname> {
    [listener.hostname.clone(), compile::written_hostname(listener)].into_iter().collect()
}
