//! From what a command prints to what matters of it: one line per object, listener and parent; nothing that was given.

use serde_json::Value;

use crate::compact::Node;
use crate::program::Answer;

/// The short form of an answer. Anything but JSON on standard output is a failure of the program.
pub(crate) fn answer(command: &str, answer: &Answer, messages: bool) -> Result<Node, String> {
    let value: Value = serde_json::from_str(&answer.output).map_err(|error| {
        format!("`{command}` ended with {} and no JSON ({error}):\n{}{}", answer.exit, answer.output, answer.errors)
    })?;
    let mut entries = match command.split(' ').next().unwrap_or_default() {
        "status" => status(&value, messages),
        "route" => route(&value, messages),
        "check" => check(&value, messages),
        _ => generic(&value, messages),
    };
    if answer.exit != 0 {
        entries.push(("exit".into(), Node::text(answer.exit.to_string())));
    }
    Ok(Node::Map(entries))
}

type Entries = Vec<(String, Node)>;

fn status(value: &Value, messages: bool) -> Entries {
    list(&value["items"]).iter().flat_map(|item| object_status(item, messages)).collect()
}

/// The object's own line, then one per listener and one per parent.
fn object_status(item: &Value, messages: bool) -> Entries {
    let name = join(&[&item["kind"], &item["metadata"]["namespace"], &item["metadata"]["name"]]);
    let status = &item["status"];
    let mut own = conditions(&status["conditions"], messages);
    own.extend(count(status, "attachedListenerSets"));
    let mut lines = vec![(name.clone(), Node::Map(own))];
    lines.extend(
        list(&status["listeners"])
            .iter()
            .map(|one| (format!("{name}/{}", text(&one["name"])), listener(one, messages))),
    );
    let parents = list(&status["parents"]);
    let several = parents.iter().any(|parent| parent["controllerName"] != parents[0]["controllerName"]);
    lines.extend(parents.iter().map(|one| (format!("{name} -> {}", parent_name(one, several)), parent(one, messages))));
    lines.retain(|line| !line.1.is_empty());
    lines
}

fn listener(value: &Value, messages: bool) -> Node {
    let mut entries = conditions(&value["conditions"], messages);
    entries.extend(count(value, "attachedRoutes"));
    let kinds = list(&value["supportedKinds"]).iter().map(|kind| Node::text(text(&kind["kind"]))).collect();
    entries.push(("kinds".into(), Node::List(kinds)));
    Node::Map(entries)
}

fn parent(value: &Value, messages: bool) -> Node {
    Node::Map(conditions(&value["conditions"], messages))
}

/// The parent as the route names it; with its controller where several speak about one route.
fn parent_name(value: &Value, several: bool) -> String {
    let parent = &value["parentRef"];
    let mut name = join(&[&parent["kind"], &parent["namespace"], &parent["name"], &parent["sectionName"]]);
    if let Some(port) = parent["port"].as_u64() {
        name.push_str(&format!(" port {port}"));
    }
    if several {
        name.push_str(&format!(" by {}", text(&value["controllerName"])));
    }
    name
}

/// `Accepted: True`, `Accepted: False NotAllowedByListeners`: the reason only where it says more than the type.
fn conditions(value: &Value, messages: bool) -> Entries {
    let line = |condition: &Value| {
        let kind = text(&condition["type"]);
        let reason = text(&condition["reason"]);
        let plain = reason == kind || reason == "NoConflicts";
        let mut said = text(&condition["status"]).to_owned();
        if !plain {
            said.push_str(&format!(" {reason}"));
        }
        if messages && !text(&condition["message"]).is_empty() {
            said.push_str(&format!(" ({})", text(&condition["message"])));
        }
        (kind.to_owned(), Node::text(said))
    };
    list(value).iter().map(line).collect()
}

fn count(value: &Value, key: &str) -> Option<(String, Node)> {
    value[key].as_u64().filter(|count| *count > 0).map(|count| (key.to_owned(), Node::text(count.to_string())))
}

/// The outcome first, then who serves, then what the filters changed.
fn route(value: &Value, messages: bool) -> Entries {
    let mut entries = Entries::new();
    let plain = ["outcome", "status", "listener", "route", "rule", "location"];
    entries.extend(plain.iter().map(|key| ((*key).to_owned(), Node::of(&value[*key]))));
    entries.push(("backends".into(), Node::List(list(&value["backends"]).iter().map(backend).collect())));
    entries.push(("unavailable".into(), Node::List(list(&value["unavailable"]).iter().map(backend).collect())));
    entries.extend(["request", "response"].iter().map(|key| ((*key).to_owned(), Node::of(&value[*key]))));
    if messages {
        entries.push(("because".into(), Node::of(&value["because"])));
    }
    entries.retain(|entry| !entry.1.is_empty());
    entries
}

/// `shop/web:8080`, with weight where it is not 1, with a reason where it cannot be used, with what only it gets.
fn backend(value: &Value) -> Node {
    let mut said = text(&value["backend"]).to_owned();
    if let Some(port) = value["port"].as_u64() {
        said.push_str(&format!(":{port}"));
    }
    if let Some(weight) = value["weight"].as_u64().filter(|weight| *weight != 1) {
        said.push_str(&format!(" weight {weight}"));
    }
    if !text(&value["reason"]).is_empty() {
        said.push_str(&format!(" {}", text(&value["reason"])));
    }
    let own = Node::Map(
        ["request", "response"]
            .iter()
            .map(|key| ((*key).to_owned(), Node::of(&value[*key])))
            .filter(|e| !e.1.is_empty())
            .collect(),
    );
    if own.is_empty() { Node::text(said) } else { Node::Map(vec![(said, own)]) }
}

/// One line per diagnostic: `error namespace-not-allowed HTTPRoute/shop/web spec.parentRefs[0]`.
fn check(value: &Value, messages: bool) -> Entries {
    let line = |one: &Value| {
        let mut said = ["severity", "reason", "object", "field"].map(|key| text(&one[key])).join(" ");
        if messages {
            said.push_str(&format!(": {}", text(&one["message"])));
        }
        Node::text(said.trim_end())
    };
    vec![("diagnostics".to_owned(), Node::List(list(&value["diagnostics"]).iter().map(line).collect()))]
}

fn generic(value: &Value, messages: bool) -> Entries {
    match Node::of(&without(value, messages)) {
        Node::Map(entries) => entries,
        other => vec![("answer".into(), other)],
    }
}

/// The value without places, which move with every edit, and without messages unless they are asked for.
fn without(value: &Value, messages: bool) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| without(item, messages)).collect(),
        Value::Object(map) => {
            let dropped = |key: &str| {
                matches!(key, "place" | "places" | "position") || (!messages && matches!(key, "message" | "help"))
            };
            map.iter()
                .filter(|(key, _)| !dropped(key))
                .map(|(key, value)| (key.clone(), without(value, messages)))
                .collect()
        }
        other => other.clone(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn join(parts: &[&Value]) -> String {
    parts.iter().map(|part| text(part)).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}
