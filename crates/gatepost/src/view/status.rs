//! `status -o json`: statuses as Kubernetes spells them.

use gatepost_core::model::{self, Kind, ParentRef};
use gatepost_core::report::{self, Report};
use serde::Serialize;

/// The whole answer.
#[derive(Serialize, Debug)]
pub struct StatusView {
    items: Vec<Item>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<super::diagnostic::DiagnosticView>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Item {
    api_version: String,
    kind: &'static str,
    metadata: Metadata,
    status: Status,
}

#[derive(Serialize, Debug)]
struct Metadata {
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: String,
    name: String,
}

#[derive(Serialize, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attached_listener_sets: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    listeners: Vec<Listener>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parents: Option<Vec<Parent>>,
}

#[derive(Serialize, Debug)]
struct Address {
    #[serde(rename = "type")]
    kind: String,
    value: String,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<String>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Listener {
    name: String,
    attached_routes: usize,
    supported_kinds: Vec<SupportedKind>,
    conditions: Vec<Condition>,
}

#[derive(Serialize, Debug)]
struct SupportedKind {
    group: &'static str,
    kind: &'static str,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Parent {
    parent_ref: Reference,
    controller_name: String,
    conditions: Vec<Condition>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Reference {
    group: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    section_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
}

impl StatusView {
    /// The view of a report.
    pub fn of(report: &Report, diagnostics: Vec<super::diagnostic::DiagnosticView>) -> Self {
        StatusView { items: report.items.iter().map(item).collect(), diagnostics }
    }
}

fn item(item: &report::Item) -> Item {
    let object = &item.object;
    let metadata = Metadata { namespace: object.namespace().to_string(), name: object.name().to_string() };
    Item { api_version: api_version(object.kind), kind: object.kind.as_str(), metadata, status: status(&item.status) }
}

fn api_version(kind: Kind) -> String {
    let version = if kind == Kind::XListenerSet { "v1alpha1" } else { "v1" };
    format!("{}/{version}", kind.group())
}

fn status(status: &report::ObjectStatus) -> Status {
    match status {
        report::ObjectStatus::Class(own) => Status { conditions: conditions(own), ..Status::default() },
        report::ObjectStatus::Gateway { conditions: own, addresses, listeners: each, attached_sets } => Status {
            addresses: addresses
                .iter()
                .map(|a| Address { kind: a.kind.to_string(), value: a.value.to_string() })
                .collect(),
            attached_listener_sets: Some(*attached_sets),
            conditions: conditions(own),
            listeners: each.iter().map(listener).collect(),
            parents: None,
        },
        report::ObjectStatus::Set { conditions: own, listeners: each } => {
            Status { conditions: conditions(own), listeners: each.iter().map(listener).collect(), ..Status::default() }
        }
        report::ObjectStatus::Route(parents) => {
            Status { parents: Some(parents.iter().map(parent).collect()), ..Status::default() }
        }
    }
}

fn conditions(conditions: &model::Conditions) -> Vec<Condition> {
    let view = |(c, time): (&model::Condition, Option<model::Time>)| Condition {
        kind: c.kind.to_string(),
        status: c.status.to_string(),
        reason: c.reason.to_string(),
        message: c.message.to_string(),
        observed_generation: c.observed_generation,
        last_transition_time: time.map(|time| time.to_string()),
    };
    conditions.timed().map(view).collect()
}

fn listener(report: &report::ListenerReport) -> Listener {
    let kind = |k: &model::RouteKind| SupportedKind { group: model::GATEWAY_GROUP, kind: k.kind().as_str() };
    Listener {
        name: report.name.to_string(),
        attached_routes: report.attached_routes,
        supported_kinds: report.supported_kinds.iter().map(kind).collect(),
        conditions: conditions(&report.conditions),
    }
}

fn parent(status: &report::ParentReport) -> Parent {
    Parent {
        parent_ref: reference(&status.parent),
        controller_name: status.controller.to_string(),
        conditions: conditions(&status.conditions),
    }
}

fn reference(parent: &ParentRef) -> Reference {
    let target = &parent.target;
    Reference {
        group: target.group.to_string(),
        kind: target.kind.to_string(),
        namespace: target.namespace.as_ref().map(ToString::to_string),
        name: target.name.to_string(),
        section_name: parent.section.as_ref().map(ToString::to_string),
        port: parent.port,
    }
}
