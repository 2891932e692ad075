//! `explain -o json`: chains and reasons.

use gatepost_core::explain::{CertificateWalk, Chain, Explanation, Link, Publication, Role, SecretContent};
use gatepost_core::reason::Reason;
use gatepost_tls::certifier::IssuanceState;
use serde::Serialize;

use super::certificates::IssuingView;
use super::diagnostic::DiagnosticView;

/// What is to be said about a hostname.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ExplainView {
    hostname: String,
    attached: bool,
    published: bool,
    records: Vec<super::plan::RecordView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    certificates: Vec<CertificateView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issuing: Vec<IssuingView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<super::plan::WithheldView>,
    chains: Vec<ChainView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_listeners: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar: Vec<String>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct CertificateView {
    listener: String,
    secret: String,
    wanted: bool,
    held: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    covers: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<i64>,
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
    pub fn of(explanation: &Explanation, published: &Publication) -> Self {
        ExplainView {
            hostname: explanation.hostname.to_string(),
            attached: explanation.works(),
            published: published.is_published(),
            records: published.records.iter().map(super::plan::record).collect(),
            certificates: published.certificates.iter().map(certificate).collect(),
            issuing: Vec::new(),
            withheld: published.withheld.iter().map(super::plan::withheld).collect(),
            chains: explanation.chains.iter().map(chain).collect(),
            open_listeners: explanation.open_listeners.iter().map(ToString::to_string).collect(),
            similar: explanation.similar.clone(),
        }
    }
}

impl ExplainView {
    /// The same with what is known of the certificates that are issued here.
    pub fn with_issuing(mut self, states: &[IssuanceState]) -> Self {
        self.issuing = states.iter().map(IssuingView::of).collect();
        self
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

fn certificate(walk: &CertificateWalk) -> CertificateView {
    let (held, covers, not_after) = match &walk.held {
        SecretContent::Missing => ("missing", None, None),
        SecretContent::Unusable(_) => ("unusable", None, None),
        SecretContent::Certificate { covers, not_after } => ("certificate", Some(*covers), Some(*not_after)),
    };
    CertificateView {
        listener: walk.listener.to_string(),
        secret: walk.secret.to_string(),
        wanted: walk.wanted,
        held,
        covers,
        not_after,
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
