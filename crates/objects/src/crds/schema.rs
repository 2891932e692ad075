//! From the JSON Schema of a Rust type to the structural OpenAPI schema that a CustomResourceDefinition takes.
//!
//! A structural schema has one type per node, no references, and few keywords. An optional field may be left out and is never
//! null, as everywhere in the Gateway API: a null that is kept would count as set in the rules.

use serde_json::{Map, Value};

/// Formats that a server knows; others would only earn a warning.
const FORMATS: [&str; 3] = ["int32", "int64", "date-time"];

/// Rewrites a schema and everything below it.
pub(super) fn structural(mut schema: Value) -> Value {
    rewrite(&mut schema);
    schema
}

fn rewrite(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.retain(|key, _| !["$schema", "title", "$defs"].contains(&key.as_str()));
    without_null(map);
    words(map);
    text(map);
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(rewrite);
    }
    for key in ["items", "additionalProperties"] {
        map.get_mut(key).into_iter().for_each(rewrite);
    }
}

/// Takes away that a value may be null.
fn without_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(any)) = map.get_mut("anyOf") {
        any.retain(|one| one.get("type") != Some(&"null".into()));
        if let [Value::Object(only)] = &mut any[..] {
            let only = std::mem::take(only);
            map.remove("anyOf");
            let own = std::mem::replace(map, only);
            map.extend(own);
        }
    }
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &mut types[..] {
            let only = only.take();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = map.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
}

/// One list of words instead of one schema for each.
fn words(map: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = map.get("oneOf") else { return };
    let words: Option<Vec<Value>> = variants.iter().map(|variant| variant.get("const").cloned()).collect();
    if let Some(words) = words {
        map.remove("oneOf");
        map.insert("type".to_owned(), "string".into());
        map.insert("enum".to_owned(), words.into());
    }
}

/// Descriptions in one line for each paragraph, and only known formats.
fn text(map: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = map.get_mut("description") {
        let paragraphs: Vec<String> = description.split("\n\n").map(|p| p.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
    let unknown = |format: &Value| format.as_str().is_none_or(|format| !FORMATS.contains(&format));
    if map.get("format").is_some_and(unknown) {
        map.remove("format");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::structural;

    #[test]
    fn optional_is_not_nullable() {
        for (before, after) in [
            (json!({"type": ["string", "null"]}), json!({"type": "string"})),
            (json!({"type": ["string", "null"], "enum": ["a", null]}), json!({"type": "string", "enum": ["a"]})),
            (
                json!({"description": "own", "anyOf": [{"type": "object", "description": "x"}, {"type": "null"}]}),
                json!({"description": "own", "type": "object"}),
            ),
            (json!({"type": "integer", "format": "uint16", "default": null}), json!({"type": "integer"})),
            (
                json!({"oneOf": [{"const": "A", "type": "string"}, {"const": "B", "type": "string"}]}),
                json!({"type": "string", "enum": ["A", "B"]}),
            ),
            (json!({"description": "a\nb\n\nc\nd"}), json!({"description": "a b\n\nc d"})),
        ] {
            assert_eq!(structural(before.clone()), after, "{before}");
        }
    }
}
