//! `/api/v1/flow`: classes, Gateways, ListenerSets, listeners and routes as a graph.
//!
//! Where there are very many nodes, the routes of a listener are one node, and then the listeners of a Gateway as well.

use std::collections::BTreeMap;

use gatepost_core::attachment::{ClassState, ListenerState, ParentState, ParentTarget, RouteState, Topology};
use gatepost_core::model::{Key, ObjectRef, ParentRef};
use gatepost_core::reason::{self, Reason};
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::WorldCopy;

/// More nodes are drawn together.
const MOST_NODES: usize = 200;
/// More nodes are not told.
const MOST_TOLD: usize = 1000;

/// The graph.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct FlowView {
    generation: u64,
    as_of: i64,
    nodes: Vec<FlowNode>,
    edges: Vec<FlowEdge>,
    /// How many routes there are.
    routes: usize,
    /// Whether nodes were drawn together.
    is_collapsed: bool,
    /// How many nodes are left out.
    left_out: usize,
}

/// An object, a listener, or several routes together.
#[derive(Serialize, JsonSchema, Debug, Clone)]
#[serde(rename_all = "camelCase")]
struct FlowNode {
    /// `Kind/namespace/name`, of a listener with its name behind it.
    id: String,
    /// `GatewayClass`, `Gateway`, `ListenerSet`, `XListenerSet`, `Listener`, the kind of a route, or `Routes` for several.
    kind: String,
    /// What is written on it.
    name: String,
    /// Whether it works by itself.
    holds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// Routes that are drawn together here, and those of them that are not attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<usize>,
}

/// From an object to what hangs on it.
#[derive(Serialize, JsonSchema, Debug, Clone)]
struct FlowEdge {
    from: String,
    to: String,
    /// `works`, `broken` or `not-permitted`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// Which part of the graph is asked for.
pub struct FlowFilter<'a> {
    /// Only what hangs on this Gateway.
    pub gateway: Option<&'a Key>,
    /// Only routes of this namespace, and what is above them.
    pub namespace: Option<&'a str>,
    /// Whether a route may be seen.
    pub is_seen: &'a dyn Fn(&ObjectRef) -> bool,
    /// Whether objects without routes are told.
    pub has_idle: bool,
}

impl FlowView {
    /// The graph of a world.
    pub fn of(world: &WorldCopy, filter: &FlowFilter<'_>) -> Self {
        let mut graph = FlowGraph { topology: &world.topology, nodes: BTreeMap::new(), edges: BTreeMap::new() };
        let routes = world.topology.routes.iter().filter(|(route, _)| {
            (filter.is_seen)(route) && filter.namespace.is_none_or(|namespace| namespace == &**route.namespace())
        });
        let mut count = 0;
        for (object, route) in routes {
            count += usize::from(graph.route(object, route, filter.gateway));
        }
        if filter.has_idle && filter.namespace.is_none() {
            graph.idle(filter.gateway);
        }
        let is_collapsed = graph.nodes.len() > MOST_NODES;
        if is_collapsed {
            graph.collapse_routes();
        }
        if graph.nodes.len() > MOST_NODES {
            graph.collapse_listeners();
        }
        let left_out = graph.nodes.len().saturating_sub(MOST_TOLD);
        let nodes: BTreeMap<_, _> = graph.nodes.into_iter().take(MOST_TOLD).collect();
        let is_told = |edge: &FlowEdge| nodes.contains_key(&edge.from) && nodes.contains_key(&edge.to);
        FlowView {
            generation: world.pass.generation,
            as_of: world.pass.ended,
            edges: graph.edges.into_values().filter(is_told).collect(),
            nodes: nodes.into_values().collect(),
            routes: count,
            is_collapsed,
            left_out,
        }
    }
}

/// A graph that is being made.
struct FlowGraph<'a> {
    topology: &'a Topology,
    nodes: BTreeMap<String, FlowNode>,
    edges: BTreeMap<(String, String), FlowEdge>,
}

impl FlowGraph<'_> {
    /// Adds a route with what is above it; whether it hangs on the Gateway that is asked for.
    fn route(&mut self, object: &ObjectRef, route: &RouteState, only: Option<&Key>) -> bool {
        let id = object.to_string();
        let mut is_there = false;
        let mut is_attached = false;
        for (parent, asked) in route.parents.iter().zip(route.route.parents.iter()) {
            if only.is_some() && only != gateway_of(parent) {
                continue;
            }
            is_there = true;
            for attachment in parent.attached.iter() {
                let above = self.listener(self.topology.listener(attachment.listener));
                self.edge(&above, &id, None);
                is_attached = true;
            }
            if parent.attached.is_empty() {
                let above = self.asked(object, parent, asked);
                self.edge(&above, &id, Some(parent.refused.unwrap_or(reason::PARENT_MISSING)));
            }
        }
        if is_there || (only.is_none() && route.parents.is_empty()) {
            let refused = route.parents.iter().find_map(|parent| parent.refused);
            self.node(&id, object.kind.as_str(), &object.key.to_string(), refused.filter(|_| !is_attached), None);
        }
        is_there || only.is_none()
    }

    /// The node that a parentRef without an attachment refers to.
    fn asked(&mut self, route: &ObjectRef, parent: &ParentState, asked: &ParentRef) -> String {
        let section = |found: &mut Self, ids: &[gatepost_core::attachment::ListenerId]| {
            let topology = found.topology;
            let mut listeners = ids.iter().map(|id| topology.listener(*id));
            let meant = listeners.find(|listener| Some(&listener.key().section) == asked.section.as_ref());
            meant.map(|listener| found.listener(listener))
        };
        match &parent.target {
            ParentTarget::Gateway(key) => {
                let topology = self.topology;
                let listeners = topology.gateways.get(key).map(|gateway| gateway.listeners.as_slice());
                section(self, listeners.unwrap_or_default()).unwrap_or_else(|| self.gateway(key))
            }
            ParentTarget::Set(set, _) => {
                let topology = self.topology;
                let listeners = topology.sets.get(set).map(|set| set.listeners.as_slice());
                section(self, listeners.unwrap_or_default()).unwrap_or_else(|| self.set(set))
            }
            ParentTarget::Missing | ParentTarget::OutOfScope | ParentTarget::OtherKind => {
                let target = &asked.target;
                let key = Key::new(target.namespace_or(route.namespace()).clone(), target.name.clone());
                let (id, kind) = (format!("{}/{key}", target.kind), target.kind.to_string());
                self.node(&id, &kind, &key.to_string(), Some(reason::PARENT_MISSING), None);
                id
            }
        }
    }

    fn listener(&mut self, listener: &ListenerState) -> String {
        let key = listener.key();
        let id = key.to_string();
        if !self.nodes.contains_key(&id) {
            let refused = listener.refused.or_else(|| listener.conflict.as_ref().map(|conflict| conflict.reason));
            let hostname = listener.hostname.to_string();
            self.node(&id, "Listener", &key.section, refused, Some(hostname));
            let above = match key.owner.kind {
                gatepost_core::model::Kind::Gateway => self.gateway(&key.owner.key),
                _ => self.set(&key.owner),
            };
            self.edge(&above, &id, refused);
        }
        id
    }

    fn set(&mut self, object: &ObjectRef) -> String {
        let id = object.to_string();
        if !self.nodes.contains_key(&id) {
            let set = self.topology.sets.get(object).cloned();
            let refused = set.as_ref().and_then(|set| set.refused);
            self.node(&id, object.kind.as_str(), &object.key.to_string(), refused, None);
            if let Some(key) = set.as_ref().and_then(|set| set.gateway.as_ref()) {
                let above = self.gateway(key);
                self.edge(&above, &id, refused);
            }
        }
        id
    }

    fn gateway(&mut self, key: &Key) -> String {
        let id = format!("Gateway/{key}");
        if !self.nodes.contains_key(&id) {
            let state = self.topology.gateways.get(key).cloned();
            let refused = state.as_ref().and_then(|state| state.refused);
            self.node(&id, "Gateway", &key.to_string(), refused, None);
            if let Some(state) = &state {
                let name = &state.gateway.class;
                let (detail, problem) = match &state.class {
                    ClassState::Known(controller) => (Some(controller.to_string()), None),
                    ClassState::NotInInput => (Some("not in the input".to_owned()), None),
                    ClassState::Missing => (None, Some(reason::GATEWAY_CLASS_MISSING)),
                    ClassState::NotOurs => (Some("not in scope".to_owned()), None),
                };
                let above = format!("GatewayClass/{name}");
                self.node(&above, "GatewayClass", name, problem, detail);
                self.edge(&above, &id, refused);
            }
        }
        id
    }

    /// Adds Gateways, ListenerSets and listeners without routes.
    fn idle(&mut self, only: Option<&Key>) {
        let topology = self.topology;
        let is_meant = |gateway: Option<&Key>| only.is_none_or(|only| gateway == Some(only));
        topology.gateways.keys().filter(|key| is_meant(Some(key))).for_each(|key| _ = self.gateway(key));
        let sets = topology.sets.iter().filter(|(_, set)| is_meant(set.gateway.as_ref()));
        sets.for_each(|(object, _)| _ = self.set(object));
        let listeners = topology.listener_ids().map(|(_, listener)| listener);
        listeners.filter(|listener| is_meant(listener.gateway.as_ref())).for_each(|one| _ = self.listener(one));
    }

    fn node(&mut self, id: &str, kind: &str, name: &str, problem: Option<Reason>, detail: Option<String>) {
        let node = || FlowNode {
            id: id.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            holds: problem.is_none(),
            detail,
            reason: problem.map(Reason::name),
            count: None,
            broken: None,
        };
        self.nodes.entry(id.to_owned()).or_insert_with(node);
    }

    fn edge(&mut self, from: &str, to: &str, problem: Option<Reason>) {
        let state = match problem {
            None => "works",
            Some(reason::NAMESPACE_NOT_ALLOWED | reason::LISTENER_SET_NOT_ALLOWED | reason::ROUTE_KIND_NOT_ALLOWED) => {
                "not-permitted"
            }
            Some(_) => "broken",
        };
        let edge = FlowEdge { from: from.to_owned(), to: to.to_owned(), state, reason: problem.map(Reason::name) };
        self.edges.insert((from.to_owned(), to.to_owned()), edge);
    }

    /// One node for all routes of a listener.
    fn collapse_routes(&mut self) {
        self.collapse(|kind| kind.ends_with("Route"));
    }

    /// One node for all routes of a Gateway or ListenerSet.
    fn collapse_listeners(&mut self) {
        self.collapse(|kind| kind == "Listener" || kind == "Routes");
    }

    /// Puts the nodes of some kinds together, by what they hang on.
    fn collapse(&mut self, is_meant: impl Fn(&str) -> bool) {
        let is_gone =
            |nodes: &BTreeMap<String, FlowNode>, id: &str| nodes.get(id).is_some_and(|node| is_meant(&node.kind));
        let edges = std::mem::take(&mut self.edges);
        let mut groups: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let above: BTreeMap<&str, &str> = edges.values().map(|edge| (edge.to.as_str(), edge.from.as_str())).collect();
        for edge in edges.values() {
            if !is_gone(&self.nodes, &edge.to) {
                self.edges.insert((edge.from.clone(), edge.to.clone()), edge.clone());
                continue;
            }
            let mut top = edge.from.as_str();
            while is_gone(&self.nodes, top)
                && let Some(next) = above.get(top)
            {
                top = next;
            }
            let node = self.nodes.get(&edge.to);
            let (count, broken) = match node.map(|node| (node.kind.as_str(), node.count, node.broken)) {
                Some(("Listener", ..)) => (0, 0),
                Some((_, Some(count), broken)) => (count, broken.unwrap_or_default()),
                _ => (1, usize::from(edge.state != "works")),
            };
            let group = groups.entry(top.to_owned()).or_default();
            (group.0, group.1) = (group.0 + count, group.1 + broken);
        }
        self.nodes.retain(|_, node| !is_meant(&node.kind));
        for (top, (count, broken)) in groups.into_iter().filter(|(_, (count, _))| *count > 0) {
            let id = format!("{top}/…");
            let name = if count == 1 { "1 route".to_owned() } else { format!("{count} routes") };
            self.node(&id, "Routes", &name, None, None);
            if let Some(node) = self.nodes.get_mut(&id) {
                (node.count, node.broken, node.holds) = (Some(count), Some(broken), broken == 0);
            }
            let state = if broken == count { "broken" } else { "works" };
            let edge = FlowEdge { from: top.clone(), to: id.clone(), state, reason: None };
            self.edges.insert((top, id), edge);
        }
    }
}

fn gateway_of(parent: &ParentState) -> Option<&Key> {
    match &parent.target {
        ParentTarget::Gateway(key) => Some(key),
        ParentTarget::Set(_, gateway) => gateway.as_ref(),
        _ => None,
    }
}
