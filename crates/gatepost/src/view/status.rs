//! `status -o json`: statuses as Kubernetes spells them.

use gatepost_core::model::{self, Kind, ParentRef};
use gatepost_core::policy::HostnameReport;
use gatepost_core::report::{self, Report};
use schemars::JsonSchema;
use serde::Serialize;

/// The whole answer.
#[derive(Serialize, JsonSchema, Debug)]
pub struct StatusView {
    items: Vec<ItemView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<super::diagnostic::DiagnosticView>,
}

#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
struct ItemView {
    api_version: String,
    kind: &'static str,
    metadata: MetadataView,
    status: ObjectStatusView,
}

#[derive(Serialize, JsonSchema, Debug)]
struct MetadataView {
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: String,
    name: String,
}

#[derive(Serialize, JsonSchema, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct ObjectStatusView {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<AddressView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attached_listener_sets: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<StatusConditionView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    listeners: Vec<ListenerStatusView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parents: Option<Vec<ParentStatusView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hostnames: Option<Vec<GovernedHostnameView>>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct GovernedHostnameView {
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
struct AddressView {
    #[serde(rename = "type")]
    kind: String,
    value: String,
}

#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
struct StatusConditionView {
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

#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
struct ListenerStatusView {
    name: String,
    attached_routes: usize,
    supported_kinds: Vec<SupportedKindView>,
    conditions: Vec<StatusConditionView>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct SupportedKindView {
    group: &'static str,
    kind: &'static str,
}

#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
struct ParentStatusView {
    parent_ref: ParentRefView,
    controller_name: String,
    conditions: Vec<StatusConditionView>,
}

#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
struct ParentRefView {
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
    /// The view of some statuses.
    pub fn of_items<'a>(items: impl Iterator<Item = &'a report::Item>) -> Self {
        StatusView { items: items.map(item).collect(), diagnostics: Vec::new() }
    }

    /// The view of a report.
    pub fn of(report: &Report, diagnostics: Vec<super::diagnostic::DiagnosticView>) -> Self {
        StatusView { items: report.items.iter().map(item).collect(), diagnostics }
    }
}

fn item(item: &report::Item) -> ItemView {
    let object = &item.object;
    let metadata = MetadataView { namespace: object.namespace().to_string(), name: object.name().to_string() };
    ItemView {
        api_version: api_version(object.kind),
        kind: object.kind.as_str(),
        metadata,
        status: status(&item.status),
    }
}

fn api_version(kind: Kind) -> String {
    let version = match kind {
        Kind::XListenerSet | Kind::DnsPolicy | Kind::TlsPolicy | Kind::HostnameGrant => "v1alpha1",
        _ => "v1",
    };
    format!("{}/{version}", kind.group())
}

fn status(status: &report::ObjectStatus) -> ObjectStatusView {
    match status {
        report::ObjectStatus::Class(own) => {
            ObjectStatusView { conditions: conditions(own), ..ObjectStatusView::default() }
        }
        report::ObjectStatus::Gateway { conditions: own, addresses, listeners: each, attached_sets } => {
            ObjectStatusView {
                addresses: addresses
                    .iter()
                    .map(|a| AddressView { kind: a.kind.to_string(), value: a.value.to_string() })
                    .collect(),
                attached_listener_sets: Some(*attached_sets),
                conditions: conditions(own),
                listeners: each.iter().map(listener).collect(),
                ..ObjectStatusView::default()
            }
        }
        report::ObjectStatus::Set { conditions: own, listeners: each } => ObjectStatusView {
            conditions: conditions(own),
            listeners: each.iter().map(listener).collect(),
            ..ObjectStatusView::default()
        },
        report::ObjectStatus::Policy { conditions: own, hostnames } => ObjectStatusView {
            conditions: conditions(own),
            hostnames: Some(hostnames.iter().map(hostname).collect()),
            ..ObjectStatusView::default()
        },
        report::ObjectStatus::Route(parents) => {
            ObjectStatusView { parents: Some(parents.iter().map(parent).collect()), ..ObjectStatusView::default() }
        }
    }
}

fn hostname(report: &HostnameReport) -> GovernedHostnameView {
    GovernedHostnameView {
        hostname: report.hostname.to_string(),
        listener: report.listener.to_string(),
        route: report.route.to_string(),
        state: report.state.as_str(),
        reason: report.state.reason().map(|reason| reason.name()),
        message: report.message.clone(),
    }
}

fn conditions(conditions: &model::Conditions) -> Vec<StatusConditionView> {
    let view = |(c, time): (&model::Condition, Option<model::Str>)| StatusConditionView {
        kind: c.kind.to_string(),
        status: c.status.to_string(),
        reason: c.reason.to_string(),
        message: c.message.to_string(),
        observed_generation: c.observed_generation,
        last_transition_time: time.map(|time| time.to_string()),
    };
    conditions.timed().map(view).collect()
}

fn listener(report: &report::ListenerReport) -> ListenerStatusView {
    let kind = |k: &model::RouteKind| SupportedKindView { group: model::GATEWAY_GROUP, kind: k.as_str() };
    ListenerStatusView {
        name: report.name.to_string(),
        attached_routes: report.attached_routes,
        supported_kinds: report.supported_kinds.iter().map(kind).collect(),
        conditions: conditions(&report.conditions),
    }
}

fn parent(status: &report::ParentReport) -> ParentStatusView {
    ParentStatusView {
        parent_ref: reference(&status.parent),
        controller_name: status.controller.to_string(),
        conditions: conditions(&status.conditions),
    }
}

fn reference(parent: &ParentRef) -> ParentRefView {
    let target = &parent.target;
    ParentRefView {
        group: target.group.to_string(),
        kind: target.kind.to_string(),
        namespace: target.namespace.as_ref().map(ToString::to_string),
        name: target.name.to_string(),
        section_name: parent.section.as_ref().map(ToString::to_string),
        port: parent.port,
    }
}
