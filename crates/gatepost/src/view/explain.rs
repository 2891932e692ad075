//! `explain -o json`: chains and reasons.

use gatepost_core::explain::{
    CertificateWalk, Chain, ExplainedGrant, Explanation, Link, ListenerOutcome, Publication, Role, SecretContent,
};
use gatepost_core::model::Str;
use gatepost_core::publication::{NameSource, PassedOver};
use gatepost_core::reason::Reason;
use gatepost_tls::certifier::IssuanceState;
use schemars::JsonSchema;
use serde::Serialize;

use super::certificates::IssuingView;
use super::diagnostic::DiagnosticView;

/// What is to be said about a hostname.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ExplainView {
    hostname: String,
    verdict: &'static str,
    attached: bool,
    published: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<DiagnosticView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RequestView>,
    records: Vec<super::plan::RecordView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    certificates: Vec<CertificateView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issuing: Vec<IssuingView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<super::plan::WithheldView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    passed_over: Vec<PassedOverView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotated: Vec<AnnotatedView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<super::plan::AddressView>,
    chains: Vec<ChainView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_listeners: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<GrantView>,
}

/// What becomes of every name that an object asks for.
#[derive(Serialize, JsonSchema, Debug)]
pub struct ObjectNamesView {
    /// The object.
    pub object: String,
    /// Its names.
    pub names: Vec<ExplainView>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct RequestView {
    listener: String,
    url: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    fails: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<DiagnosticView>,
}

/// Which namespaces may have the hostname.
#[derive(Serialize, JsonSchema, Debug)]
struct GrantView {
    grant: String,
    pattern: String,
    namespaces: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    selected: Vec<String>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct PassedOverView {
    object: String,
    because: String,
}

#[derive(Serialize, JsonSchema, Debug)]
struct AnnotatedView {
    object: String,
    source: &'static str,
}

#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
struct CertificateView {
    listener: String,
    secret: String,
    wanted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unwanted: Option<String>,
    held: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    covers: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<i64>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct ChainView {
    works: bool,
    links: Vec<LinkView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intersected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<DiagnosticView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<super::plan::WithheldView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<DiagnosticView>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct LinkView {
    role: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    holds: bool,
}

/// A row of the catalog.
#[derive(Serialize, JsonSchema, Debug)]
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
            verdict: published.verdict(explanation).as_str(),
            causes: published.failures().map(|cause| DiagnosticView::of(&cause)).collect(),
            requests: published.requests.iter().map(|outcome| request(outcome, published)).collect(),
            passed_over: published.passed_over.iter().map(passed_over).collect(),
            annotated: annotated(published),
            addresses: published.addresses.iter().map(|(_, report)| super::plan::address(report)).collect(),
            attached: explanation.works(),
            published: published.is_published(),
            records: published.records.iter().map(super::plan::record).collect(),
            certificates: published.certificates.iter().map(certificate).collect(),
            issuing: Vec::new(),
            withheld: published.withheld.iter().map(super::plan::withheld).collect(),
            chains: explanation.chains.iter().map(chain).collect(),
            open_listeners: explanation.open_listeners.iter().map(ToString::to_string).collect(),
            similar: explanation.similar.clone(),
            grant: explanation.grant.as_ref().map(grant),
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

fn grant(grant: &ExplainedGrant) -> GrantView {
    let texts = |names: &[Str]| names.iter().map(ToString::to_string).collect();
    GrantView {
        grant: grant.grant.to_string(),
        pattern: grant.pattern.to_string(),
        namespaces: texts(&grant.namespaces),
        selector: grant.selector.clone(),
        selected: texts(&grant.selected),
    }
}

fn request(outcome: &ListenerOutcome, published: &Publication) -> RequestView {
    let answer = &outcome.answer;
    let certificate = published.certificate_problem(&outcome.listener);
    RequestView {
        listener: outcome.listener.to_string(),
        url: outcome.url.clone(),
        outcome: if certificate.is_some() { "no-certificate" } else { answer.outcome.as_str() },
        status: answer.status,
        route: answer.route.as_ref().map(ToString::to_string),
        rule: answer.rule,
        backend: answer.backends.first().map(|share| share.backend.to_string()),
        location: answer.location.clone(),
        fails: outcome.fails || certificate.is_some(),
        cause: certificate.or_else(|| outcome.cause.clone()).map(|cause| DiagnosticView::of(&cause)),
    }
}

fn passed_over(passed: &PassedOver) -> PassedOverView {
    PassedOverView { object: passed.object.to_string(), because: passed.because.clone() }
}

fn annotated(published: &Publication) -> Vec<AnnotatedView> {
    let source = |source| if source == NameSource::Template { "template" } else { "annotation" };
    let names = published.annotated.iter();
    names.map(|name| AnnotatedView { object: name.object.to_string(), source: source(name.source) }).collect()
}

fn certificate(walk: &CertificateWalk) -> CertificateView {
    let (held, covers, not_after) = match &walk.held {
        SecretContent::NotPermitted => ("not-permitted", None, None),
        SecretContent::Missing => ("missing", None, None),
        SecretContent::Provided => ("provided-elsewhere", None, None),
        SecretContent::Unusable(_) => ("unusable", None, None),
        SecretContent::Certificate { covers, not_after } => ("certificate", Some(*covers), Some(*not_after)),
    };
    CertificateView {
        listener: walk.listener.to_string(),
        secret: walk.secret.to_string(),
        wanted: walk.wanted,
        unwanted: walk.unwanted.clone(),
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
        withheld: chain.withheld.as_ref().map(super::plan::withheld),
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
