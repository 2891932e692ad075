//! Every answer of `/api/v1` has the shape that the OpenAPI document promises, and no field beside it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::api::write_many;
use crate::Served;

/// What a value has that a schema does not allow.
struct Validation<'a> {
    document: &'a Value,
}

impl<'a> Validation<'a> {
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(path) => self.document.pointer(path.trim_start_matches('#')).unwrap_or_else(|| panic!("no {path}")),
            None => schema,
        }
    }

    /// The first problem, with its place.
    fn problem(&self, value: &Value, schema: &'a Value, at: &str) -> Option<String> {
        let schema = self.resolved(schema);
        for choice in ["anyOf", "oneOf"] {
            if let Some(schemas) = schema[choice].as_array() {
                let problems: Vec<_> = schemas.iter().map(|one| self.problem(value, one, at)).collect();
                if problems.iter().all(Option::is_some) {
                    return problems.into_iter().flatten().next();
                }
            }
        }
        if let Some(kinds) = kinds(schema)
            && !kinds.contains(&kind_of(value))
            && !(kinds.contains(&"number") && kind_of(value) == "integer")
        {
            return Some(format!("{at} is {} and not one of {kinds:?}", kind_of(value)));
        }
        if let Some(words) = schema["enum"].as_array().filter(|words| !words.contains(value)) {
            return Some(format!("{at} is {value} and not one of {words:?}"));
        }
        match value {
            Value::Array(items) => {
                let of_items = schema.get("items");
                items.iter().zip(0..).find_map(|(item, i)| self.problem(item, of_items?, &format!("{at}[{i}]")))
            }
            Value::Object(fields) => {
                if schema.get("properties").is_none() && schema.get("additionalProperties").is_none() {
                    return None;
                }
                let missing = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                if let Some(name) = missing.into_iter().find(|name| !fields.contains_key(*name)) {
                    return Some(format!("{at} has no {name}"));
                }
                fields.iter().find_map(|(name, field)| {
                    let known = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
                    match known {
                        Some(known) => self.problem(field, known, &format!("{at}.{name}")),
                        None => Some(format!("{at}.{name} is not described")),
                    }
                })
            }
            _ => None,
        }
    }
}

fn kinds(schema: &Value) -> Option<Vec<&str>> {
    match &schema["type"] {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A path of the document with names in place of its parameters.
fn examples(path: &str) -> Vec<String> {
    let names = ["www.example.org", "blog.example.org", "sale.example.net", "not.there.example.org"];
    let objects = ["HTTPRoute/blog/pages", "Gateway/infra/edge", "ListenerSet/shop/campaign"];
    match path.trim_start_matches("/api/v1/") {
        "route" => ["http%3A%2F%2Fwww.example.org%2Fcart", "http%3A%2F%2Fother.example.org%2F"]
            .iter()
            .map(|url| format!("route?gateway=infra%2Fedge&port=80&url={url}"))
            .collect(),
        path if path.contains("{hostname}") => names.iter().map(|name| path.replace("{hostname}", name)).collect(),
        path if path.starts_with("objects/") => objects.iter().map(|object| format!("objects/{object}")).collect(),
        path => vec![path.replace("{reason}", "GP0204")],
    }
}

#[test]
fn every_answer_is_as_the_document_says() {
    let served = Served::start_in(&Served::folder("api-openapi"), &[], write_many);
    let document = served.api("openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let validation = Validation { document: &document };
    let mut checked = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let content = operations["get"]["responses"]["200"]["content"].as_object().unwrap();
        let (kind, content) = content.iter().next().unwrap();
        if kind != "application/json" {
            continue;
        }
        for example in examples(path) {
            let answer = served.api(&example);
            assert_eq!(validation.problem(&answer, &content["schema"], &example), None);
            checked.insert(example);
        }
    }
    assert!(checked.len() > 15, "{checked:?}");
    let names = validation.resolved(
        &document["paths"]["/api/v1/names"]["get"]["responses"]["200"]["content"]["application/json"]["schema"],
    );
    let wrong = serde_json::json!({"generation": "1"});
    assert!(validation.problem(&wrong, names, "names").is_some());
}

#[test]
fn pictures_and_tables_are_served() {
    let served = Served::start_in(&Served::folder("api-pictures"), &[], write_many);
    let ask = |path: &str| served.get(&format!("/api/v1/{path}"), "localhost");
    let picture = ask("names/blog.example.org/chain.svg");
    assert!(picture.contains("content-type: image/svg+xml") && picture.contains("GP0204 namespace-not-allowed"));
    assert!(ask("names/blog.example.org/chain.mmd").contains("flowchart LR"));
    let table = ask("names.csv?health=wrong&sort=name");
    let lines: Vec<&str> = table.split_once("\r\n\r\n").unwrap().1.lines().collect();
    assert!(table.contains("content-type: text/csv") && lines[0].starts_with("hostname,health,"), "{table}");
    assert!(lines.iter().any(|line| line.starts_with("lost.example.org,wrong,requests-fail,")), "{table}");
    assert_eq!(served.api("names?health=wrong")["matching"], lines.len() - 1);
}

#[test]
fn the_graph_has_every_link_of_the_chains() {
    let served = Served::start_in(&Served::folder("api-flow"), &[], write_many);
    let flow = served.api("flow");
    let nodes: BTreeSet<&str> =
        flow["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect();
    for name in ["www.example.org", "sale.example.net", "vault.example.org"] {
        let chains = served.api(&format!("names/{name}"))["chains"].clone();
        for link in chains.as_array().unwrap().iter().flat_map(|chain| chain["links"].as_array().unwrap()) {
            assert!(nodes.contains(link["name"].as_str().unwrap()), "{link} is not in {nodes:?}");
        }
    }
    let edges = flow["edges"].as_array().unwrap();
    let to_blog: Vec<_> = edges.iter().filter(|edge| edge["to"] == "HTTPRoute/blog/pages").collect();
    assert!(to_blog.iter().any(|edge| edge["state"] == "not-permitted"), "{to_blog:?}");
    let only = served.api("flow?namespace=blog");
    assert_eq!(only["routes"], 1);
    assert!(served.get("/api/v1/flow?gateway=edge", "localhost").starts_with("HTTP/1.1 400"));
}

/// Above 200 nodes the routes of a listener are one node, which counts those that are not attached.
#[test]
fn a_large_graph_is_drawn_together() {
    let write = |folder: &std::path::Path| {
        write_many(folder);
        let route = |i: usize| {
            format!(
                "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{namespace: shop, name: r{i}}}\n\
                 spec: {{parentRefs: [{{name: edge, namespace: infra, sectionName: http}}], hostnames: [r{i}.example.org]}}\n"
            )
        };
        std::fs::write(folder.join("large.yaml"), (0..250).map(route).collect::<String>()).unwrap();
    };
    let served = Served::start_in(&Served::folder("api-large"), &[], write);
    let flow = served.api("flow");
    assert_eq!(flow["isCollapsed"], true);
    let nodes = flow["nodes"].as_array().unwrap();
    let routes =
        nodes.iter().find(|node| node["id"] == "Gateway/infra/edge/http/…").unwrap_or_else(|| panic!("{flow:#}"));
    assert!(routes["count"].as_u64().unwrap() >= 250 && routes["broken"].as_u64().unwrap() >= 1, "{routes}");
    assert!(nodes.len() < 200 && !nodes.iter().any(|node| node["kind"] == "HTTPRoute"));
}
