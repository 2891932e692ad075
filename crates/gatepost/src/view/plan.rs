//! `plan -o json`: what ought to exist.

use gatepost_core::health::AddressReport;
use std::collections::BTreeSet;

use gatepost_core::model::{self, Reference, Str};
use gatepost_core::plan::Plan;
use gatepost_core::policy::{HostnameReport, PolicyReport};
use gatepost_core::publication::change::{Change, Differs};
use gatepost_core::publication::{self, Desired, NameSource};
use gatepost_core::reason::Reason;
use gatepost_objects::crds::AddressStatus;
use gatepost_tls::budget::Forecast;
use gatepost_tls::certifier::IssuanceState;
use schemars::JsonSchema;
use serde::Serialize;

use super::certificates::IssuingView;
use super::diagnostic::DiagnosticView;
use super::rows::Rows;
use super::steps::{self, HeldView, StepView};
use crate::apply::Outcome;
use crate::health::kept;
use crate::run::ProviderReport;

/// The whole answer.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct PlanView<'a> {
    records: Rows<'a, RecordView>,
    certificates: Rows<'a, CertificateView>,
    withheld: Rows<'a, WithheldView>,
    policies: Vec<PolicyView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    passed_over: Vec<PassedOverView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<DiffView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Rows<'a, StepView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Rows<'a, HeldView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The providers, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    providers: Vec<ProviderView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<RefusedView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    orders: Option<OrdersView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issuing: Vec<IssuingView>,
    /// In profile external-dns: the names that profile strict would publish other records for.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_under_strict: Option<Vec<String>>,
    diagnostics: Vec<DiagnosticView>,
}

/// One of several providers: what it is to be told, what became of it, what is in its way.
#[derive(Serialize, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct ProviderView {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Vec<HeldView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_ready: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

impl ProviderView {
    /// A provider with its plan.
    pub fn planned(name: &str, plan: &Plan, outcome: Option<&Outcome>) -> ProviderView {
        let steps = plan.steps.iter().enumerate().flat_map(|(i, step)| steps::rows(i, step, outcome));
        ProviderView {
            name: name.to_owned(),
            digest: Some(plan.digest.clone()),
            steps: Some(steps.collect()),
            held: Some(plan.held.iter().map(steps::held).collect()),
            ..ProviderView::default()
        }
    }

    /// A provider that is written beside others.
    pub fn reported(report: &ProviderReport) -> ProviderView {
        ProviderView {
            name: report.name.to_string(),
            is_ready: Some(report.is_ready()),
            trouble: report.trouble.clone(),
            ..ProviderView::default()
        }
    }
}

/// What it takes to have all certificates.
#[derive(Serialize, JsonSchema, Debug)]
struct OrdersView {
    needed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<usize>,
    message: String,
}

/// Why nothing was done at all.
#[derive(Serialize, JsonSchema, Debug)]
struct RefusedView {
    reason: &'static str,
    code: &'static str,
    message: String,
    help: &'static str,
}

#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordView {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    targets: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_identifier: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    provider_specific: Vec<PropertyView>,
    routes: Vec<String>,
    listeners: Vec<String>,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct PropertyView {
    name: String,
    value: String,
}

#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct CertificateView {
    secret: String,
    dns_names: Vec<String>,
    listeners: Vec<String>,
    routes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
}

impl CertificateView {
    /// The names that it is to have.
    pub(super) fn dns_names(&self) -> &[String] {
        &self.dns_names
    }
}

#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct WithheldView {
    hostname: String,
    route: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    listener: Option<String>,
    reason: &'static str,
    message: String,
    object: String,
    field: String,
}

#[derive(Serialize, JsonSchema, Debug)]
struct PolicyView {
    policy: String,
    conditions: Vec<ConditionView>,
    hostnames: Vec<HostnameView>,
    skipped: Vec<SkippedView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<AddressView>,
}

/// What probes found out about an address of a hostname.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct AddressView {
    #[serde(flatten)]
    status: AddressStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct ConditionView {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Serialize, JsonSchema, Debug)]
struct HostnameView {
    hostname: String,
    listener: String,
    route: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

#[derive(Serialize, JsonSchema, Debug)]
struct SkippedView {
    hostname: String,
    listener: String,
    route: String,
    reason: &'static str,
}

#[derive(Serialize, JsonSchema, Debug)]
struct PassedOverView {
    object: String,
    because: String,
}

#[derive(Serialize, JsonSchema, Debug)]
struct DiffView {
    gained: Vec<String>,
    lost: Vec<String>,
    moved: Vec<MovedView>,
    records: Vec<DiffersView<RecordView>>,
    certificates: Vec<DiffersView<CertificateView>>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct MovedView {
    hostname: String,
    from: Vec<String>,
    to: Vec<String>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct DiffersView<T> {
    old: Option<T>,
    new: Option<T>,
}

impl<'a> PlanView<'a> {
    /// The view of a desired state.
    pub fn of(desired: &'a Desired, change: Option<&Change>, diagnostics: Vec<DiagnosticView>) -> Self {
        let passed_over = desired.passed_over.iter();
        PlanView {
            records: Rows::of(&desired.records, record),
            certificates: Rows::of(&desired.certificates, certificate),
            withheld: Rows::of(&desired.withheld, withheld),
            policies: desired.policies.iter().map(policy).collect(),
            passed_over: passed_over
                .map(|p| PassedOverView { object: p.object.to_string(), because: p.because.clone() })
                .collect(),
            diff: change.map(diff),
            steps: None,
            held: None,
            digest: None,
            providers: Vec::new(),
            refused: None,
            orders: None,
            issuing: Vec::new(),
            changed_under_strict: None,
            diagnostics,
        }
    }

    /// The same with what a provider is to be told, and what became of it where it was written.
    pub fn with(mut self, plan: Option<&'a Plan>, outcome: Option<&'a Outcome>) -> Self {
        self.steps = plan.map(|plan| Rows::several(&plan.steps, move |i, step| steps::rows(i, step, outcome)));
        self.held = plan.map(|plan| Rows::of(&plan.held, steps::held));
        self.digest = plan.map(|plan| plan.digest.clone());
        self
    }

    /// The same with several providers apart.
    pub fn with_providers(mut self, providers: impl Iterator<Item = ProviderView>) -> Self {
        self.providers = providers.collect();
        self
    }

    /// The same with what certificates take.
    pub fn with_orders(mut self, orders: Option<&Forecast>) -> Self {
        let view =
            |orders: &Forecast| OrdersView { needed: orders.orders, left: orders.left, message: orders.to_string() };
        self.orders = orders.map(view);
        self
    }

    /// The same with the names that profile strict would publish other records for.
    pub fn with_changed_under_strict(mut self, names: Option<&BTreeSet<Str>>) -> Self {
        self.changed_under_strict = names.map(|names| names.iter().map(ToString::to_string).collect());
        self
    }

    /// The same with what is known of the certificates that are issued here.
    pub fn with_issuing(mut self, states: &[IssuanceState]) -> Self {
        self.issuing = states.iter().map(IssuingView::of).collect();
        self
    }

    /// The same, and nothing was done, for a reason.
    pub fn refused(mut self, reason: Reason, message: String) -> Self {
        let row = reason.row();
        self.refused = Some(RefusedView { reason: row.name, code: row.code, message, help: row.help });
        self
    }
}

/// Who issues a certificate: `Kind/name`.
pub fn issuer(reference: &Reference) -> String {
    format!("{}/{}", reference.kind, reference.name)
}

/// Where a name comes from.
pub fn source(source: NameSource) -> &'static str {
    match source {
        NameSource::Intersected => "intersected",
        NameSource::Annotation => "annotation",
        NameSource::Template => "template",
        NameSource::ListenerWildcard => "listener-wildcard",
        NameSource::HiddenFromWildcard => "hidden-from-wildcard",
    }
}

fn texts<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

pub(super) fn record(record: &publication::Record) -> RecordView {
    let properties = record.provider_specific.iter();
    RecordView {
        name: record.name.to_string(),
        kind: record.kind.as_str(),
        targets: texts(&record.targets),
        ttl: record.ttl,
        set_identifier: record.set_identifier.as_ref().map(ToString::to_string),
        provider_specific: properties
            .map(|(name, value)| PropertyView { name: name.to_string(), value: value.to_string() })
            .collect(),
        routes: texts(&record.routes),
        listeners: texts(&record.listeners),
        source: source(record.source),
        provider: record.provider.as_ref().map(ToString::to_string),
    }
}

pub(super) fn certificate(certificate: &publication::Certificate) -> CertificateView {
    CertificateView {
        secret: certificate.secret.to_string(),
        dns_names: texts(&certificate.dns_names),
        listeners: texts(&certificate.listeners),
        routes: certificate.routes.iter().map(|route| route.to_string()).collect(),
        issuer: certificate.issuer.as_ref().map(issuer),
        policy: certificate.policy.as_ref().map(|key| format!("TLSPolicy/{key}")),
    }
}

pub(super) fn withheld(withheld: &publication::Withheld) -> WithheldView {
    WithheldView {
        hostname: withheld.hostname.to_string(),
        route: withheld.route.to_string(),
        listener: withheld.listener.as_ref().map(ToString::to_string),
        reason: withheld.reason.name(),
        message: withheld.message.clone(),
        object: withheld.object.to_string(),
        field: withheld.field.to_string(),
    }
}

fn policy(report: &PolicyReport) -> PolicyView {
    let condition = |c: &model::Condition| ConditionView {
        kind: c.kind.to_string(),
        status: c.status.to_string(),
        reason: c.reason.to_string(),
        message: c.message.to_string(),
    };
    PolicyView {
        policy: report.policy.to_string(),
        conditions: report.conditions.iter().map(condition).collect(),
        hostnames: report.hostnames.iter().map(hostname).collect(),
        skipped: report.hostnames.iter().filter_map(skipped).collect(),
        addresses: report.addresses.iter().map(address).collect(),
    }
}

pub(super) fn address(report: &AddressReport) -> AddressView {
    AddressView { status: kept::status(report), reason: report.publication.reason().map(|reason| reason.name()) }
}

fn hostname(report: &HostnameReport) -> HostnameView {
    HostnameView {
        hostname: report.hostname.to_string(),
        listener: report.listener.to_string(),
        route: report.route.to_string(),
        state: report.state.as_str(),
        reason: report.state.reason().map(|reason| reason.name()),
        message: report.message.clone(),
    }
}

fn skipped(report: &HostnameReport) -> Option<SkippedView> {
    Some(SkippedView {
        reason: report.skipped()?,
        hostname: report.hostname.to_string(),
        listener: report.listener.to_string(),
        route: report.route.to_string(),
    })
}

fn diff(change: &Change) -> DiffView {
    let moved = change.moved.iter();
    DiffView {
        gained: texts(&change.gained),
        lost: texts(&change.lost),
        moved: moved
            .map(|m| MovedView { hostname: m.name.to_string(), from: texts(&m.from), to: texts(&m.to) })
            .collect(),
        records: change.records.iter().map(|d| differs(d, record)).collect(),
        certificates: change.certificates.iter().map(|d| differs(d, certificate)).collect(),
    }
}

fn differs<T, V>(pair: &Differs<T>, view: impl Fn(&T) -> V) -> DiffersView<V> {
    DiffersView { old: pair.old.as_ref().map(&view), new: pair.new.as_ref().map(&view) }
}
