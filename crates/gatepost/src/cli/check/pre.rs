//! `gatepost check --pre`: asks a cluster for each right that a controller needs, before one runs.
//!
//! Each verb is a question of its own to the API server; a right that is missing is named with what it costs. Nothing is
//! changed.

use std::io::Write;

use gatepost_kube::Connection;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::rbac::Features;
use crate::cli::session::block_on;
use crate::cli::{Cluster, Ending, Failure};
use crate::rights::Right;
use crate::source::cluster::connect;
use crate::view::write_json;

#[derive(Serialize)]
struct PreView {
    rights: Vec<RightView>,
    missing: usize,
}

#[derive(Serialize)]
struct RightView {
    group: &'static str,
    resource: &'static str,
    verb: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<&'static str>,
}

/// Asks, and says what is missing.
pub(super) fn run(
    cluster: &Cluster,
    features: &Features,
    is_json: bool,
    out: &mut dyn Write,
) -> Result<Ending, Failure> {
    features.check(false)?;
    let rights = block_on(async {
        let connection = connect(&cluster.place()).await?;
        let mut rights = Vec::new();
        for (right, namespace) in features.rights() {
            for verb in right.verbs {
                rights.push(ask(&connection, &right, verb, namespace).await?);
            }
        }
        Ok(rights)
    })?;
    let missing = rights.iter().filter(|right| !right.allowed).count();
    let view = PreView { rights, missing };
    match is_json {
        true => write_json(out, &view)?,
        false => write_text(out, &view)?,
    }
    Ok(if missing == 0 { Ending::Done } else { Ending::No })
}

async fn ask(
    connection: &Connection,
    right: &Right,
    verb: &'static str,
    namespace: Option<&str>,
) -> Result<RightView, Failure> {
    let (resource, subresource) = right.resource.split_once('/').unwrap_or((right.resource, ""));
    let mut attributes = json!({"group": right.group, "resource": resource, "verb": verb});
    if !subresource.is_empty() {
        attributes["subresource"] = subresource.into();
    }
    if let Some(namespace) = namespace {
        attributes["namespace"] = namespace.into();
    }
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let answer = connection.review(&review).await;
    let answer = answer.map_err(|error| Failure::Unreadable(anyhow::anyhow!("{}: {error}", connection.server())))?;
    let allowed = answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false);
    Ok(RightView {
        group: right.group,
        resource: right.resource,
        verb,
        namespace: namespace.map(str::to_owned),
        allowed,
        cost: (!allowed).then_some(right.cost),
    })
}

fn write_text(out: &mut dyn Write, view: &PreView) -> std::io::Result<()> {
    for right in view.rights.iter().filter(|right| !right.allowed) {
        let place = right.namespace.as_ref().map(|n| format!(" in namespace {n}")).unwrap_or_default();
        let group = if right.group.is_empty() { String::new() } else { format!(" of {}", right.group) };
        let cost = right.cost.unwrap_or_default();
        writeln!(out, "✗ may not {} {}{group}{place}: {cost}", right.verb, right.resource)?;
    }
    match view.missing {
        0 => writeln!(out, "✓ all {} rights are there", view.rights.len()),
        missing => {
            writeln!(out, "✗ {missing} of {} rights are missing; `gatepost rbac` prints the roles", view.rights.len())
        }
    }
}
