//! Which listener, rule and backends serve a request, and why the others do not.
//!
//! ```text
//! port and protocol ─▶ one listener, by SNI or Host ─▶ one rule, by precedence ─▶ filters ─▶ backends
//! ```
//!
//! A [`Router`] is compiled once per Gateway and then queried. A lookup hashes each suffix of the host and then tests only
//! the rules of hostnames that match it. A rule is chosen before its backends are checked. Attachment is decided in
//! [`crate::attachment`], never here, and no request is sent.

use std::collections::BTreeMap;

use crate::attachment::{ListenerId, ListenerKey, Topology};
use crate::model::Key;
use crate::names::Hostname;
use crate::reason::Reason;
use crate::snapshot::Snapshot;

mod answer;
mod compile;
mod decision;
mod filters;
mod host_index;
mod matching;
mod request;
mod rules;
mod sample;
mod serve;
#[cfg(test)]
mod tests;

pub use answer::{ResponseChange, Rewritten, RoutingAnswer, RoutingOutcome, Share, Unavailable};
pub use host_index::HostIndex;
pub use request::{GatewayRequest, Scheme};
pub use sample::SampleSite;

/// The feature of a GatewayClass that ranks routes by their hostnames as written (D18).
pub const WRITTEN_PRECEDENCE: &str = "GatewayRouteHostnameIntersectionPrecedence";

/// The compiled routing of one Gateway.
#[derive(Clone, Debug)]
pub struct Router {
    gateway: Key,
    /// Why the Gateway serves no requests at all.
    refused: Option<Reason>,
    /// Whether its class claims [`WRITTEN_PRECEDENCE`].
    claims_written: bool,
    /// Serving listeners by port, scheme and hostname.
    listeners_by_hostname: BTreeMap<(u16, Scheme), HostIndex<usize>>,
    listeners: Vec<ServingListener>,
    /// Listeners that serve no requests, by port.
    idle: BTreeMap<u16, Vec<IdleListener>>,
    routes: Vec<compile::Attached>,
    /// Routes that a listener refuses, by hostname as written.
    refused_by_hostname: HostIndex<Vec<usize>>,
    refusals: Vec<compile::Refused>,
}

/// A listener that serves requests.
#[derive(Clone, Debug)]
struct ServingListener {
    id: ListenerId,
    key: ListenerKey,
    hostname: Hostname,
    port: u16,
    scheme: Scheme,
    has_filters: bool,
    is_terminating: bool,
    /// What is wrong with its certificate.
    certificate: Option<Reason>,
    /// The names of its certificates, where all of them are known.
    certified: Option<Vec<Hostname>>,
    /// Rules by hostname as the route wrote it.
    named: HostIndex<compile::HostnameRules>,
    /// Rules of routes without hostnames of their own: TCP and UDP.
    raw: Vec<compile::RuleMatch>,
}

/// A listener that serves no requests.
#[derive(Clone, Debug)]
struct IdleListener {
    key: ListenerKey,
    hostname: Hostname,
    reason: Reason,
}

impl Router {
    /// Compiles the routing of a Gateway; `None` if the Gateway does not exist.
    pub fn compile(snapshot: &Snapshot, topology: &Topology, gateway: &Key) -> Option<Router> {
        compile::router(snapshot, topology, gateway)
    }

    /// Routes a request.
    pub fn route(&self, request: &GatewayRequest) -> RoutingAnswer {
        let asked = request::ParsedRequest::new(request);
        decision::run(self, &asked)
    }

    /// The ports on which something listens.
    pub fn ports(&self) -> impl Iterator<Item = (u16, Scheme)> {
        self.listeners_by_hostname.keys().copied()
    }
}
