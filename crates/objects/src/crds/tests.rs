//! What a server demands of a CustomResourceDefinition, as far as it can be said without one.

use serde_json::{Value, json};

use super::*;

/// The keywords of a structural schema, as far as they are used.
const KEYWORDS: [&str; 21] = [
    "additionalProperties",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
    "nullable",
];

fn versions() -> Vec<Value> {
    definitions().into_iter().map(|definition| definition["spec"]["versions"][0].clone()).collect()
}

/// Calls `look` with every schema and the way to it.
fn walk(path: &str, schema: &Value, look: &mut dyn FnMut(&str, &Value)) {
    look(path, schema);
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{key}"), below, look);
    }
    if let Some(values) = schema.get("additionalProperties") {
        walk(&format!("{path}.*"), values, look);
    }
    if let Some(items) = schema.get("items") {
        walk(&format!("{path}[]"), items, look);
    }
}

fn each_schema(mut look: impl FnMut(&str, &Value)) {
    for version in versions() {
        walk("", &version["schema"]["openAPIV3Schema"], &mut look);
    }
}

#[test]
fn schemas_are_structural() {
    each_schema(|path, schema| {
        let keys: Vec<&String> = schema.as_object().unwrap().keys().collect();
        assert!(keys.iter().all(|key| KEYWORDS.contains(&key.as_str())), "{path}: {keys:?}");
        let kind = schema["type"].as_str().unwrap_or_else(|| panic!("{path} has no single type: {schema}"));
        assert_eq!(kind == "array", schema.get("items").is_some(), "{path}");
        assert!(schema.get("nullable").is_none(), "{path} may be null");
        for name in schema["required"].as_array().into_iter().flatten() {
            let property = &schema["properties"][name.as_str().unwrap()];
            assert!(property.is_object() && property.get("default").is_none(), "{path}.{name}");
        }
    });
}

#[test]
fn everything_is_bounded_and_described() {
    each_schema(|path, schema| {
        let own = path.starts_with(".spec") || path.starts_with(".status");
        let of = |kind: &str| own && schema["type"] == kind;
        let limited = schema.get("maxLength").or(schema.get("enum")).or(schema.get("format")).is_some();
        assert!(!of("string") || limited, "{path} may be of any length");
        assert!(!of("array") || schema.get("maxItems").is_some(), "{path} may have any number of items");
        let is_map = schema.get("additionalProperties").is_some();
        assert!(!own || !is_map || schema.get("maxProperties").is_some(), "{path} may have any number of keys");
        assert!(!of("integer") || schema.get("minimum").is_some(), "{path} may be negative");
        let described = schema["description"].as_str().is_some_and(|text| text.ends_with('.') && !text.contains('\n'));
        assert!(!own || described, "{path} is not described: {schema}");
    });
}

#[test]
fn rules_have_messages_and_point_at_fields_that_are_there() {
    let mut count = 0;
    each_schema(|path, schema| {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            count += 1;
            assert!(rule["rule"].is_string() && rule["message"].is_string(), "{path}: {rule}");
            if let Some(field) = rule.get("fieldPath").and_then(Value::as_str) {
                let field = field.trim_start_matches('.');
                assert!(schema["properties"].get(field).is_some(), "{path}: {rule}");
            }
        }
    });
    assert!(count >= 10, "{count}");
}

#[test]
fn columns_point_at_fields_that_are_there() {
    for version in versions() {
        let schema = &version["schema"]["openAPIV3Schema"];
        let columns = version["additionalPrinterColumns"].as_array().unwrap();
        for path in columns.iter().filter_map(|column| column["jsonPath"].as_str()) {
            let parts = path.trim_start_matches('.').split('.').filter(|_| !path.starts_with(".metadata"));
            if path.contains('[') {
                let member = path.rsplit_once("].").unwrap().1;
                let condition = &schema["properties"]["status"]["properties"]["conditions"]["items"]["properties"];
                assert!(path.starts_with(".status.conditions[") && condition.get(member).is_some(), "{path}");
                continue;
            }
            parts.fold(schema, |schema, part| {
                schema["properties"].get(part).unwrap_or_else(|| panic!("{path} leads nowhere"))
            });
        }
    }
}

#[test]
fn names_belong_together() {
    for definition in definitions() {
        let names = &definition["spec"]["names"];
        let (plural, kind) = (names["plural"].as_str().unwrap(), names["kind"].as_str().unwrap());
        assert_eq!(definition["metadata"]["name"], format!("{plural}.gatepost.dev"));
        assert_eq!(names["singular"], kind.to_ascii_lowercase());
        let known = gatepost_core::model::Kind::of("gatepost.dev", kind).is_some();
        assert!(known, "{kind} is not read");
    }
}

#[test]
fn yaml_says_the_same_as_json() {
    let text = yaml().unwrap();
    let documents = text.split("---\n").filter(|part| !part.is_empty());
    let read: Vec<Value> = documents.map(|document| serde_saphyr::from_str(document).unwrap()).collect();
    assert_eq!(read, definitions());
}

#[test]
fn statuses_are_written_as_the_schema_wants_them() {
    let condition = Condition {
        r#type: "Accepted".into(),
        status: ConditionStatus::True,
        observed_generation: Some(1),
        last_transition_time: "2026-03-01T10:00:00Z".into(),
        reason: "Accepted".into(),
        message: String::new(),
    };
    let hostname = HostnameStatus {
        hostname: "*.example.com".into(),
        listener: "Gateway/infra/edge/wild".into(),
        state: HostnameState::Skipped,
        reason: Some("wildcard".into()),
        message: None,
    };
    let counts = Some(Counts { served: 0, pending: 0, skipped: 1 });
    let status = PolicyStatus { conditions: vec![condition], counts, hostnames: vec![hostname], ..Default::default() };
    let written = serde_json::to_value(&status).unwrap();
    assert_eq!(written["conditions"][0]["observedGeneration"], 1);
    assert_eq!(written["hostnames"][0]["state"], "Skipped");
    assert_eq!(serde_json::from_value::<PolicyStatus>(written).unwrap(), status);
    assert_eq!(serde_json::to_value(PolicyStatus::default()).unwrap(), json!({}));
}
