//! Certificates as JSON: what is wanted, what is held, and the order in between. Never a key.

use gatepost_core::names::Hostname;
use gatepost_tls::certifier::{IssuanceState, OpenOrder};
use schemars::JsonSchema;
use serde::Serialize;

/// The certificate of one Secret.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct IssuingView {
    secret: String,
    wanted: Vec<String>,
    held: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renewal: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<OrderView>,
    missing: Vec<MissingView>,
}

#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
struct OrderView {
    step: &'static str,
    names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    challenges: Vec<ChallengeView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    wake: i64,
}

#[derive(Serialize, JsonSchema, Debug)]
struct ChallengeView {
    name: String,
    value: String,
}

#[derive(Serialize, JsonSchema, Debug)]
struct MissingView {
    hostname: String,
    reason: &'static str,
    message: String,
}

impl IssuingView {
    /// The view of a state.
    pub fn of(state: &IssuanceState) -> Self {
        let names = |names: &[gatepost_core::model::Str]| names.iter().map(|name| name.to_string()).collect();
        let missing = state.wanted.iter().filter_map(|name| {
            let (reason, message) = state.obstacle(name)?;
            Some(MissingView { hostname: name.to_string(), reason: reason.name(), message })
        });
        IssuingView {
            secret: state.secret.to_string(),
            wanted: names(&state.wanted),
            held: state.held.as_ref().map(|leaf| names(&leaf.names)).unwrap_or_default(),
            not_after: state.held.as_ref().map(|leaf| leaf.not_after),
            issuer: state.held.as_ref().map(|leaf| leaf.issuer.to_string()),
            unusable: state.unusable.clone(),
            renewal: state.renewal.filter(|_| state.held.is_some()),
            order: state.order.as_ref().map(order),
            missing: missing.collect(),
        }
    }
}

fn order(order: &OpenOrder) -> OrderView {
    let challenge = |challenge: &gatepost_tls::order::Challenge| ChallengeView {
        name: challenge.owner(),
        value: challenge.value.clone(),
    };
    OrderView {
        step: order.step.as_str(),
        names: order.names.iter().map(|name| name.to_string()).collect(),
        url: order.url.clone(),
        challenges: order.challenges.iter().map(challenge).collect(),
        last_error: order.trouble.clone(),
        wake: order.wake,
    }
}

/// A hostname that listeners serve with a Secret, and what the certificate has for it.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ServedView {
    hostname: String,
    /// The certificate's name that is good for it; unset if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    covered_by: Option<String>,
    /// A wildcard of the certificate above it, which reaches one label only and so not this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    too_deep_for: Option<String>,
}

impl ServedView {
    /// The view of a hostname and the names that a certificate has.
    pub fn of(hostname: &Hostname, names: &[Hostname]) -> Self {
        let is_good = |name: &&Hostname| *name == hostname || name.covers_in_certificate(hostname.as_str());
        let covering = names.iter().filter(is_good).max_by_key(|name| name.specificity());
        let is_above = |name: &&Hostname| covering.is_none() && name.is_wildcard() && name.contains(hostname);
        let above = names.iter().filter(is_above).max_by_key(|name| name.specificity());
        ServedView {
            hostname: hostname.to_string(),
            covered_by: covering.map(ToString::to_string),
            too_deep_for: above.map(ToString::to_string),
        }
    }

    /// Whether a name of the certificate is good for it.
    pub fn is_covered(&self) -> bool {
        self.covered_by.is_some()
    }
}
