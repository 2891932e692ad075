//! The answer of the router to one request.

use crate::attachment::ListenerKey;
use crate::model::{Key, ObjectRef};
use crate::reason::Reason;

/// What a Gateway does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutingOutcome {
    /// Sends it to a backend.
    Forward,
    /// Answers with a redirect.
    Redirect,
    /// Answers a CORS question itself.
    Preflight,
    /// Answers 404; gRPC: UNIMPLEMENTED.
    NotFound,
    /// Answers 421: the host belongs to another listener than the handshake's name.
    Misdirected,
    /// Answers 500; gRPC: UNAVAILABLE.
    BackendError,
    /// Refuses the connection.
    Rejected,
}

impl RoutingOutcome {
    /// The text form in output.
    pub fn as_str(self) -> &'static str {
        match self {
            RoutingOutcome::Forward => "forward",
            RoutingOutcome::Redirect => "redirect",
            RoutingOutcome::Preflight => "preflight",
            RoutingOutcome::NotFound => "not-found",
            RoutingOutcome::Misdirected => "misdirected",
            RoutingOutcome::BackendError => "backend-error",
            RoutingOutcome::Rejected => "rejected",
        }
    }

    /// Whether the request is served: forwarded, redirected, or a preflight answered.
    pub fn is_served(self) -> bool {
        matches!(self, RoutingOutcome::Forward | RoutingOutcome::Redirect | RoutingOutcome::Preflight)
    }
}

/// The listener, rule and backends of a request, with an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingAnswer {
    /// What is done with it.
    pub outcome: RoutingOutcome,
    /// The status the Gateway answers with, where it answers itself over HTTP.
    pub status: Option<u16>,
    /// The listener that takes it.
    pub listener: Option<ListenerKey>,
    /// The route that was chosen.
    pub route: Option<ObjectRef>,
    /// Which of its rules, counted from 0.
    pub rule: Option<usize>,
    /// The backends and their shares of the requests, in order.
    pub backends: Vec<Share>,
    /// Backends whose share is answered 500.
    pub unavailable: Vec<Unavailable>,
    /// The request as the first backend gets it; unset where no HTTP request is forwarded.
    pub request: Option<Rewritten>,
    /// What filters do to the response.
    pub response: ResponseChange,
    /// Where a redirect points.
    pub location: Option<String>,
    /// The explanation, in short sentences.
    pub because: Vec<String>,
}

impl RoutingAnswer {
    /// An answer with only an outcome and an explanation.
    pub(super) fn new(outcome: RoutingOutcome, because: Vec<String>) -> Self {
        let status = match outcome {
            RoutingOutcome::Forward | RoutingOutcome::Redirect | RoutingOutcome::Rejected => None,
            RoutingOutcome::Preflight => Some(204),
            RoutingOutcome::NotFound => Some(404),
            RoutingOutcome::Misdirected => Some(421),
            RoutingOutcome::BackendError => Some(500),
        };
        RoutingAnswer {
            outcome,
            status,
            listener: None,
            route: None,
            rule: None,
            backends: Vec::new(),
            unavailable: Vec::new(),
            request: None,
            response: ResponseChange::default(),
            location: None,
            because,
        }
    }
}

/// A backend and its share of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The Service.
    pub backend: Key,
    /// Its port.
    pub port: Option<u16>,
    /// Its weight among the others; never 0.
    pub weight: u32,
    /// The request it gets, where that differs from the answer's.
    pub request: Option<Rewritten>,
    /// What its own filters do to the response, where that differs from the answer's.
    pub response: Option<ResponseChange>,
}

/// A backend that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// What was meant.
    pub backend: Key,
    /// Its port.
    pub port: Option<u16>,
    /// The weight of the requests that are answered 500.
    pub weight: u32,
    /// Why.
    pub reason: Reason,
}

/// A request as filters leave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The `Host` header.
    pub host: String,
    /// The path with its query.
    pub path: String,
    /// Headers without `Host`; each name once, several values joined by commas.
    pub headers: Vec<(String, String)>,
}

/// What filters do to a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseChange {
    /// Headers that are set, or added where [`ResponseChange::appended`] names them.
    pub headers: Vec<(String, String)>,
    /// Names of headers that are added to what the backend sent, not in its place.
    pub appended: Vec<String>,
    /// Names of headers that are taken out.
    pub removed: Vec<String>,
}

impl ResponseChange {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.removed.is_empty()
    }
}
