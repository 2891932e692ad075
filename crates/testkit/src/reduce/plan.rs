//! `plan` and what `explain` shares with it: one line per record, certificate, withheld hostname and policy.

use serde_json::Value;

use super::{Entries, check, conditions, list, text};
use crate::compact::CompactNode;

/// The difference alone where one was asked for, else everything that ought to exist.
pub(super) fn plan(value: &Value, messages: bool) -> Entries {
    let mut entries = Entries::new();
    if value["diff"].is_object() {
        entries.extend(diff(&value["diff"]));
    } else {
        entries.push(("records".into(), records(value)));
        entries.push(("certificates".into(), items(&value["certificates"], certificate)));
        entries.push(("withheld".into(), items(&value["withheld"], |one| withheld(one, messages))));
        let policies = list(&value["policies"]).iter().map(|one| (text(&one["policy"]).into(), policy(one, messages)));
        entries.push(("policies".into(), CompactNode::Map(policies.collect())));
        let others = list(&value["passedOver"]).iter();
        let others = others.map(|one| (text(&one["object"]).to_owned(), CompactNode::text(text(&one["because"]))));
        entries.push(("passedOver".into(), CompactNode::Map(others.collect())));
    }
    entries.extend(check(value, messages));
    entries.retain(|entry| !entry.1.is_empty());
    if entries.is_empty() {
        entries.push(("nothing".into(), CompactNode::text("at all")));
    }
    entries
}

/// `www.example.org A 192.0.2.1 ttl=300  # routes on listeners`.
pub(super) fn records(value: &Value) -> CompactNode {
    items(&value["records"], record)
}

fn record(value: &Value) -> CompactNode {
    let source = match text(&value["source"]) {
        "intersected" => String::new(),
        other => format!(" ({})", other.replace('-', " ")),
    };
    let because = format!("{} on {}{source}", joined(&value["routes"], ", "), joined(&value["listeners"], ", "));
    CompactNode::Noted(record_line(value), because)
}

fn record_line(value: &Value) -> String {
    let mut line = format!("{} {}", text(&value["name"]), text(&value["type"]));
    for target in list(&value["targets"]) {
        // An empty target is one that must be seen.
        line.push_str(&format!(" {}", if text(target).is_empty() { "''" } else { text(target) }));
    }
    if let Some(ttl) = value["ttl"].as_u64() {
        line.push_str(&format!(" ttl={ttl}"));
    }
    if let Some(set) = value["setIdentifier"].as_str() {
        line.push_str(&format!(" set={set}"));
    }
    for property in list(&value["providerSpecific"]) {
        line.push_str(&format!(" {}={}", text(&property["name"]), text(&property["value"])));
    }
    if let Some(provider) = value["provider"].as_str() {
        line.push_str(&format!(" provider={provider}"));
    }
    line
}

/// `infra/edge-tls www.example.org by ClusterIssuer/main  # routes on listeners under a policy`.
fn certificate(value: &Value) -> CompactNode {
    let policy = value["policy"].as_str().map(|policy| format!(" under {policy}")).unwrap_or_default();
    let because = format!("{} on {}{policy}", joined(&value["routes"], ", "), joined(&value["listeners"], ", "));
    CompactNode::Noted(certificate_line(value), because)
}

fn certificate_line(value: &Value) -> String {
    let issuer = value["issuer"].as_str().map(|issuer| format!(" by {issuer}")).unwrap_or_default();
    format!("{} {}{issuer}", text(&value["secret"]), joined(&value["dnsNames"], " "))
}

/// `www.example.org HTTPRoute/shop/web no-common-hostname  # listener; object and field to look at`.
pub(super) fn withheld(value: &Value, messages: bool) -> CompactNode {
    let mut line = ["hostname", "route", "reason"].map(|key| text(&value[key])).join(" ");
    if messages {
        line.push_str(&format!(": {}", text(&value["message"])));
    }
    let object = if value["object"] == value["route"] { "" } else { text(&value["object"]) };
    let place = [object, text(&value["field"])].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let place = if place.is_empty() { String::new() } else { format!("see {}", place.join(" ")) };
    let parts = [text(&value["listener"]), &place];
    CompactNode::Noted(line, parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "))
}

/// Conditions, then the hostnames by what became of them.
fn policy(value: &Value, messages: bool) -> CompactNode {
    let mut entries = conditions(&value["conditions"], messages);
    let of_state = |state: &str| {
        let mut found: Vec<_> = list(&value["hostnames"]).iter().filter(|one| one["state"] == state).collect();
        found.dedup_by_key(|one| text(&one["hostname"]));
        found.into_iter().map(|one| CompactNode::text(hostname(one))).collect()
    };
    entries.extend(["served", "pending"].map(|state| (state.to_owned(), CompactNode::List(of_state(state)))));
    let skipped = list(&value["hostnames"]).iter().filter(|one| one["state"] == "skipped");
    entries.push(("skipped".into(), CompactNode::List(skipped.map(|one| skipped_hostname(value, one)).collect())));
    entries.retain(|entry| !entry.1.is_empty());
    CompactNode::Map(entries)
}

fn hostname(value: &Value) -> String {
    let parts = [text(&value["hostname"]), text(&value["reason"])];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A skipped hostname, with the word that the policy's own list has for it.
fn skipped_hostname(policy: &Value, value: &Value) -> CompactNode {
    let is_same = |one: &&Value| ["hostname", "listener", "route"].iter().all(|key| one[*key] == value[*key]);
    let word = list(&policy["skipped"]).iter().find(is_same).map(|one| format!(" ({})", text(&one["reason"])));
    let because = format!("{} on {}", text(&value["route"]), text(&value["listener"]));
    CompactNode::Noted(format!("{}{}", hostname(value), word.unwrap_or_default()), because)
}

fn diff(value: &Value) -> Entries {
    let mut entries: Entries = ["gained", "lost"].map(|key| (key.to_owned(), CompactNode::of(&value[key]))).into();
    let moved = list(&value["moved"]).iter().map(|one| {
        let (from, to) = (joined(&one["from"], ", "), joined(&one["to"], ", "));
        CompactNode::text(format!("{} from {from} to {to}", text(&one["hostname"])))
    });
    entries.push(("moved".into(), CompactNode::List(moved.collect())));
    entries.push(("records".into(), items(&value["records"], |one| differs(one, record_line))));
    entries.push(("certificates".into(), items(&value["certificates"], |one| differs(one, certificate_line))));
    entries
}

fn differs(value: &Value, line: impl Fn(&Value) -> String) -> CompactNode {
    let side = |key: &str| (!value[key].is_null()).then(|| (key.to_owned(), CompactNode::text(line(&value[key]))));
    CompactNode::Map(["old", "new"].into_iter().filter_map(side).collect())
}

fn items(value: &Value, line: impl Fn(&Value) -> CompactNode) -> CompactNode {
    CompactNode::List(list(value).iter().map(line).collect())
}

fn joined(value: &Value, between: &str) -> String {
    list(value).iter().map(text).collect::<Vec<_>>().join(between)
}
