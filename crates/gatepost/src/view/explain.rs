//! `explain -o json`: chains and reasons.

use gatepost_core::explain::{Chain, Explanation, Link, Role};
use gatepost_core::reason::Reason;
use serde::Serialize;

use super::diagnostic::DiagnosticView;

/// What is to be said about a hostname.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ExplainView {
    hostname: String,
    attached: bool,
    chains: Vec<ChainView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_listeners: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar: Vec<String>,
}

#[derive(Serialize, Debug)]
struct ChainView {
    works: bool,
    links: Vec<LinkView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intersected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<DiagnosticView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<DiagnosticView>,
}

#[derive(Serialize, Debug)]
struct LinkView {
    role: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    holds: bool,
}

/// A row of the catalog.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ReasonView {
    name: &'static str,
    code: &'static str,
    severity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    summary: &'static str,
    help: &'static str,
}

impl ExplainView {
    /// The view of an explanation.
    pub fn of(explanation: &Explanation) -> Self {
        ExplainView {
            hostname: explanation.hostname.to_string(),
            attached: explanation.works(),
            chains: explanation.chains.iter().map(chain).collect(),
            open_listeners: explanation.open_listeners.iter().map(ToString::to_string).collect(),
            similar: explanation.similar.clone(),
        }
    }
}

impl ReasonView {
    /// The view of a reason.
    pub fn of(reason: Reason) -> Self {
        let row = reason.row();
        let (kind, word) = row.condition;
        ReasonView {
            name: row.name,
            code: row.code,
            severity: row.severity.as_str(),
            condition: (!kind.is_empty()).then(|| format!("{kind}/{word}")),
            summary: row.summary,
            help: row.help,
        }
    }
}

fn chain(chain: &Chain) -> ChainView {
    ChainView {
        works: chain.works(),
        links: chain.links.iter().map(link).collect(),
        intersected: chain.intersected.as_ref().map(ToString::to_string),
        broken: chain.broken.as_ref().map(DiagnosticView::of),
        notes: chain.notes.iter().map(DiagnosticView::of).collect(),
    }
}

fn link(link: &Link) -> LinkView {
    let role = match link.role {
        Role::Class => "class",
        Role::Gateway => "gateway",
        Role::ListenerSet => "listenerSet",
        Role::Listener => "listener",
        Role::Route => "route",
    };
    LinkView { role, name: link.name.clone(), detail: link.detail.clone(), holds: link.holds }
}
