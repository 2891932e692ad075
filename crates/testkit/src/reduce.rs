//! From what a command prints to what matters of it: one line per object, listener and parent; nothing that was given.

use serde_json::Value;

use crate::compact::CompactNode;
use crate::program::{ProgramOutput, words};

mod plan;

/// The short form of an answer. Where no other format was asked for, anything but JSON on standard output is a failure of
/// the program.
pub(crate) fn answer(command: &str, answer: &ProgramOutput, messages: bool) -> Result<CompactNode, String> {
    if words(command).iter().any(|word| word == "-o") {
        return Ok(lines(answer));
    }
    let value: Value = serde_json::from_str(&answer.output).map_err(|error| {
        format!("`{command}` ended with {} and no JSON ({error}):\n{}{}", answer.exit, answer.output, answer.errors)
    })?;
    let mut entries = match command.split(' ').next().unwrap_or_default() {
        "status" => status(&value, messages),
        "route" => route(command, &value, messages),
        "check" => check(&value, messages),
        "plan" => plan::plan(&value, messages),
        "explain" if value["chains"].is_array() => explain(&value, messages),
        _ => generic(&value, messages),
    };
    if answer.exit != 0 {
        entries.push(("exit".into(), CompactNode::text(answer.exit.to_string())));
    }
    Ok(CompactNode::Map(entries))
}

type Entries = Vec<(String, CompactNode)>;

/// An answer in another format, as it is.
fn lines(answer: &ProgramOutput) -> CompactNode {
    let said = CompactNode::Block(answer.output.clone());
    match answer.exit {
        0 => said,
        exit => CompactNode::Map(vec![("said".into(), said), ("exit".into(), CompactNode::text(exit.to_string()))]),
    }
}

fn status(value: &Value, messages: bool) -> Entries {
    let mut lines: Entries = list(&value["items"]).iter().flat_map(|item| object_status(item, messages)).collect();
    lines.extend(check(value, messages));
    lines
}

/// The object's own line, then one per listener and one per parent.
fn object_status(item: &Value, messages: bool) -> Entries {
    let name = join(&[&item["kind"], &item["metadata"]["namespace"], &item["metadata"]["name"]]);
    let status = &item["status"];
    let mut own = conditions(&status["conditions"], messages);
    own.extend(count(status, "attachedListenerSets"));
    let mut lines = vec![(name.clone(), CompactNode::Map(own))];
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

fn listener(value: &Value, messages: bool) -> CompactNode {
    let mut entries = conditions(&value["conditions"], messages);
    entries.extend(count(value, "attachedRoutes"));
    let kinds = list(&value["supportedKinds"]).iter().map(|kind| CompactNode::text(text(&kind["kind"]))).collect();
    entries.push(("kinds".into(), CompactNode::List(kinds)));
    CompactNode::Map(entries)
}

fn parent(value: &Value, messages: bool) -> CompactNode {
    CompactNode::Map(conditions(&value["conditions"], messages))
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

/// `Accepted: True`, `Accepted: False NotAllowedByListeners`: the reason only where it says more than the type, and no
/// word about conflicts that there are none, nor that nothing is known of the data plane.
fn conditions(value: &Value, messages: bool) -> Entries {
    let is_unknown = |one: &&Value| one["type"] == "Programmed" && one["reason"] == "Pending";
    let told = list(value).iter().filter(|condition| condition["reason"] != "NoConflicts" && !is_unknown(condition));
    told.map(|one| (text(&one["type"]).to_owned(), CompactNode::text(condition(one, messages)))).collect()
}

fn condition(value: &Value, messages: bool) -> String {
    let mut said = text(&value["status"]).to_owned();
    if value["reason"] != value["type"] {
        said.push_str(&format!(" {}", text(&value["reason"])));
    }
    if let Some(generation) = value["observedGeneration"].as_u64() {
        said.push_str(&format!(" of generation {generation}"));
    }
    if messages && !text(&value["message"]).is_empty() {
        said.push_str(&format!(" ({})", text(&value["message"])));
    }
    said
}

fn count(value: &Value, key: &str) -> Option<(String, CompactNode)> {
    value[key].as_u64().filter(|count| *count > 0).map(|count| (key.to_owned(), CompactNode::text(count.to_string())))
}

/// The outcome first, then who serves, then what the filters changed.
fn route(command: &str, value: &Value, messages: bool) -> Entries {
    let mut entries = Entries::new();
    let plain = ["outcome", "status", "listener", "route", "rule", "location"];
    entries.extend(plain.iter().map(|key| ((*key).to_owned(), CompactNode::of(&value[*key]))));
    let backends = |key: &str| CompactNode::List(list(&value[key]).iter().map(|one| backend(command, one)).collect());
    entries.extend(["backends", "unavailable"].map(|key| (key.to_owned(), backends(key))));
    entries.extend(changes(command, value));
    if messages {
        entries.push(("because".into(), CompactNode::of(&value["because"])));
    }
    entries.retain(|entry| !entry.1.is_empty());
    entries
}

/// What the filters made of request and response: only what differs from what was given.
fn changes(command: &str, value: &Value) -> Entries {
    let mut request = value["request"].clone();
    if let Some(fields) = request.as_object_mut() {
        let url = command.rsplit(' ').next().unwrap_or_default().split_once("://").map_or("", |(_, rest)| rest);
        let (host, path) = url.split_at(url.find('/').unwrap_or(url.len()));
        let given = |key: &str, value: &Value| (key == "host" && value == host) || (key == "path" && value == path);
        fields.retain(|key, value| !given(key, value));
    }
    if let Some(headers) = request["headers"].as_object_mut() {
        headers.retain(|name, value| !command.contains(&format!("'{name}: {}'", text(value))));
    }
    let entries = [("request", CompactNode::of(&request)), ("response", CompactNode::of(&value["response"]))];
    entries.into_iter().filter(|entry| !entry.1.is_empty()).map(|(key, node)| (key.to_owned(), node)).collect()
}

/// `shop/web:8080`, with weight where it is not 1, with a reason where it cannot be used, with what only it gets.
fn backend(command: &str, value: &Value) -> CompactNode {
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
    let own = changes(command, value);
    if own.is_empty() { CompactNode::text(said) } else { CompactNode::Map(vec![(said, CompactNode::Map(own))]) }
}

fn check(value: &Value, messages: bool) -> Entries {
    let lines = list(&value["diagnostics"]).iter().map(|one| diagnostic(one, messages)).collect();
    let others = value["passedOver"].as_object().into_iter().flatten();
    let others = others.map(|(kind, count)| (kind.clone(), CompactNode::text(count.to_string()))).collect();
    let mut entries =
        vec![("diagnostics".to_owned(), CompactNode::List(lines)), ("passedOver".to_owned(), CompactNode::Map(others))];
    entries.retain(|entry| !entry.1.is_empty());
    entries
}

/// `error namespace-not-allowed HTTPRoute/shop/web spec.parentRefs[0]`.
fn diagnostic(value: &Value, messages: bool) -> CompactNode {
    let parts = ["severity", "reason", "object", "field"].map(|key| text(&value[key]));
    let mut said = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if messages {
        said.push_str(&format!(": {}", text(&value["message"])));
    }
    CompactNode::text(said)
}

/// One entry per chain: its links in one line, where it ends, or what breaks it.
fn explain(value: &Value, messages: bool) -> Entries {
    let mut entries: Entries =
        ["verdict", "attached", "published"].map(|key| (key.to_owned(), CompactNode::of(&value[key]))).into();
    let causes = list(&value["causes"]).iter().map(|one| diagnostic(one, messages)).collect();
    entries.push(("causes".into(), CompactNode::List(causes)));
    let requests = list(&value["requests"]).iter().map(|one| CompactNode::text(request(one))).collect();
    entries.push(("requests".into(), CompactNode::List(requests)));
    let chains = list(&value["chains"]).iter().map(|one| chain(one, messages)).collect();
    entries.push(("chains".into(), CompactNode::List(chains)));
    entries.push(("records".into(), plan::records(value)));
    let certificates = list(&value["certificates"]).iter().map(|one| CompactNode::text(certificate(one))).collect();
    entries.push(("certificates".into(), CompactNode::List(certificates)));
    let withheld = list(&value["withheld"]).iter().map(|one| plan::withheld(one, messages)).collect();
    entries.push(("withheld".into(), CompactNode::List(withheld)));
    for (key, name) in [("passedOver", "because"), ("annotated", "source")] {
        let objects = list(&value[key]).iter().map(|one| format!("{}: {}", text(&one["object"]), text(&one[name])));
        entries.push((key.to_owned(), CompactNode::List(objects.map(CompactNode::text).collect())));
    }
    let admitted =
        ["namespaces", "selector", "selected"].map(|key| (key.to_owned(), CompactNode::of(&value["grant"][key])));
    if value["grant"].is_object() {
        let by = format!("{} {}", text(&value["grant"]["grant"]), text(&value["grant"]["pattern"]));
        let mut grant: Entries = vec![("by".to_owned(), CompactNode::text(by))];
        grant.extend(admitted.into_iter().filter(|entry| !entry.1.is_empty()));
        entries.push(("grant".into(), CompactNode::Map(grant)));
    }
    entries.extend(["openListeners", "similar"].map(|key| (key.to_owned(), CompactNode::of(&value[key]))));
    entries.retain(|entry| !entry.1.is_empty());
    entries
}

/// `https://www.example.org/ at Gateway/infra/edge/https: forward to shop/web, fails`.
fn request(value: &Value) -> String {
    let to = [&value["backend"], &value["location"]].map(text).join("");
    let to = if to.is_empty() { to } else { format!(" to {to}") };
    let fails = if value["fails"].as_bool() == Some(true) { ", fails" } else { "" };
    format!("{} at {}: {}{to}{fails}", text(&value["url"]), text(&value["listener"]), text(&value["outcome"]))
}

/// `infra/edge-tls of Gateway/infra/edge/https: wanted, missing`.
fn certificate(value: &Value) -> String {
    let is = |key: &str| value[key].as_bool() == Some(true);
    let wanted = if is("wanted") { "wanted" } else { "not wanted" };
    let held = match text(&value["held"]) {
        "certificate" if is("covers") => "held",
        "certificate" => "held without the name",
        other => other,
    };
    format!("{} of {}: {wanted}, {held}", text(&value["secret"]), text(&value["listener"]))
}

fn chain(value: &Value, messages: bool) -> CompactNode {
    let links: Vec<_> = list(&value["links"]).iter().map(|link| text(&link["name"])).collect();
    let mut entries = vec![("links".to_owned(), CompactNode::text(links.join(" > ")))];
    entries.push(("intersected".into(), CompactNode::of(&value["intersected"])));
    if !value["broken"].is_null() {
        entries.push(("broken".into(), diagnostic(&value["broken"], messages)));
        entries.push(("fix".into(), CompactNode::of(&value["broken"]["fix"])));
    }
    if !value["withheld"].is_null() {
        entries.push(("withheld".into(), CompactNode::text(text(&value["withheld"]["reason"]))));
    }
    entries.push((
        "notes".into(),
        CompactNode::List(list(&value["notes"]).iter().map(|one| diagnostic(one, messages)).collect()),
    ));
    entries.retain(|entry| !entry.1.is_empty());
    CompactNode::Map(entries)
}

fn generic(value: &Value, messages: bool) -> Entries {
    match CompactNode::of(&without(value, messages)) {
        CompactNode::Map(entries) => entries,
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
