//! `route -o json`: who serves a request.

use std::collections::BTreeMap;

use gatepost_core::routing::{ResponseChange, Rewritten, RoutingAnswer, Share};
use schemars::JsonSchema;
use serde::Serialize;

/// The whole answer.
#[derive(Serialize, JsonSchema, Debug)]
pub struct RouteView {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    listener: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    backends: Vec<BackendView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<UnavailableView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<ResponseView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    because: Vec<String>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct BackendView {
    backend: String,
    port: Option<u16>,
    weight: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<ResponseView>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct UnavailableView {
    backend: String,
    port: Option<u16>,
    weight: u32,
    reason: &'static str,
}

#[derive(Serialize, JsonSchema, Debug)]
struct RequestView {
    host: String,
    path: String,
    headers: BTreeMap<String, String>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct ResponseView {
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    appended: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
}

impl RouteView {
    /// The view of an answer.
    pub fn of(answer: &RoutingAnswer) -> Self {
        let unavailable = answer.unavailable.iter().map(|u| UnavailableView {
            backend: u.backend.to_string(),
            port: u.port,
            weight: u.weight,
            reason: u.reason.name(),
        });
        RouteView {
            outcome: answer.outcome.as_str(),
            status: answer.status,
            listener: answer.listener.as_ref().map(ToString::to_string),
            route: answer.route.as_ref().map(ToString::to_string),
            rule: answer.rule,
            backend: answer.backends.first().map(|b| b.backend.to_string()),
            backends: answer.backends.iter().map(backend).collect(),
            unavailable: unavailable.collect(),
            request: answer.request.as_ref().map(request),
            response: response(&answer.response),
            location: answer.location.clone(),
            because: answer.because.clone(),
        }
    }
}

fn backend(share: &Share) -> BackendView {
    BackendView {
        backend: share.backend.to_string(),
        port: share.port,
        weight: share.weight,
        request: share.request.as_ref().map(request),
        response: share.response.as_ref().map(response_view),
    }
}

fn request(request: &Rewritten) -> RequestView {
    RequestView {
        host: request.host.clone(),
        path: request.path.clone(),
        headers: request.headers.iter().cloned().collect(),
    }
}

fn response(change: &ResponseChange) -> Option<ResponseView> {
    let nothing = change.headers.is_empty() && change.removed.is_empty();
    (!nothing).then(|| response_view(change))
}

fn response_view(change: &ResponseChange) -> ResponseView {
    ResponseView {
        headers: change.headers.iter().cloned().collect(),
        appended: change.appended.clone(),
        removed: change.removed.clone(),
    }
}
