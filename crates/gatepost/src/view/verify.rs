//! `verify -o json`: what is wanted, stored and answered, apart. `intent`, `provider` and `wire` are their older names.

use gatepost_dns::authority::ServerAnswer;
use serde::Serialize;

use super::plan::{WithheldView, withheld};
use crate::verify::{Check, CheckedAnswer, Handshake, TypeCheck};

/// The whole answer.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct VerifyView {
    right: bool,
    names: Vec<NameView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<String>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct NameView {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_as: Option<String>,
    right: bool,
    routes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<WithheldView>,
    types: Vec<TypeView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tls: Vec<HandshakeView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct HandshakeView {
    address: String,
    right: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns_names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct TypeView {
    #[serde(rename = "type")]
    kind: &'static str,
    right: bool,
    wanted: Vec<String>,
    stored: Option<Vec<String>>,
    answered: Vec<AnsweredView>,
    intent: Vec<String>,
    provider: Option<Vec<String>>,
    wire: Vec<AnsweredView>,
}

#[derive(Serialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
struct AnsweredView {
    server: String,
    state: &'static str,
    values: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authoritative: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl VerifyView {
    /// The view of what was found out.
    pub fn of(checks: &[Check], unread: &[String]) -> Self {
        let right = checks.iter().all(Check::is_right);
        VerifyView { right, names: checks.iter().map(name).collect(), unread: unread.to_vec() }
    }
}

fn name(check: &Check) -> NameView {
    NameView {
        name: check.name.to_string(),
        provider: check.provider.as_ref().map(ToString::to_string),
        asked_as: (check.asked != check.name).then(|| check.asked.to_string()),
        right: check.is_right(),
        routes: check.routes.iter().map(ToString::to_string).collect(),
        withheld: check.withheld.iter().map(withheld).collect(),
        types: check.types.iter().map(one).collect(),
        tls: check.tls.iter().map(handshake).collect(),
        error: check.unasked.clone(),
    }
}

fn handshake(handshake: &Handshake) -> HandshakeView {
    let leaf = handshake.leaf.as_ref().ok();
    HandshakeView {
        address: handshake.address.to_string(),
        right: handshake.is_right(),
        dns_names: leaf.map(|leaf| texts(&leaf.names)),
        issuer: leaf.map(|leaf| leaf.issuer.to_string()),
        not_after: leaf.map(|leaf| leaf.not_after),
        error: handshake.problem.clone().or_else(|| handshake.leaf.as_ref().err().cloned()),
    }
}

fn one(check: &TypeCheck) -> TypeView {
    let (wanted, stored) = (texts(&check.wanted), check.stored.as_deref().map(texts));
    let answered: Vec<AnsweredView> = check.answered.iter().map(answered).collect();
    TypeView {
        kind: check.kind.as_str(),
        right: check.is_right(),
        intent: wanted.clone(),
        provider: stored.clone(),
        wire: answered.clone(),
        wanted,
        stored,
        answered,
    }
}

fn answered(checked: &CheckedAnswer) -> AnsweredView {
    let answer: Option<&ServerAnswer> = checked.answer.as_ref().ok();
    AnsweredView {
        server: checked.server.clone(),
        state: checked.verdict.as_str(),
        values: answer.map(|answer| texts(&answer.values)).unwrap_or_default(),
        code: answer.map(|answer| answer.code.clone()),
        authoritative: answer.map(|answer| answer.is_authoritative),
        alias: answer.and_then(|answer| answer.alias.as_ref()).map(ToString::to_string),
        error: checked.answer.as_ref().err().cloned(),
    }
}

fn texts(values: &[gatepost_core::model::Str]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}
