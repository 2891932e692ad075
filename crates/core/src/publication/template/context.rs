//! A route as input of templates, with the field names of Go and with those of JSON.
//!
//! With Go names, an absent map entry has no value and is not an error; with JSON names, every absent entry is an
//! error. Fields that are not part of the model (UID, resource version, owners) are absent.

use gtmpl_ng::Value;

use super::TemplateParts;
use crate::model::{BackendRef, Condition, GATEWAY_GROUP, Labels, ParentRef, ParentStatus, Route, Rule, Str};
use crate::publication::annotations::look_up;

/// Which field names are used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Go,
    Json,
}

/// The route with Go names.
pub(super) fn typed(route: &Route, prefixes: &[Str], parts: TemplateParts) -> Value {
    let names = Names::Go;
    let meta = metadata(names, route, prefixes);
    let version = [("Kind", kind(route)), ("APIVersion", api_version(route))];
    let spec = spec(names, route, parts);
    let mut fields = meta.clone();
    fields.extend(version.clone());
    for (method, field) in [("GetName", 0), ("GetNamespace", 1), ("GetLabels", 2), ("GetAnnotations", 3)] {
        fields.push((method, meta[field].1.clone()));
    }
    fields.push(("ObjectMeta", object(meta)));
    fields.push(("TypeMeta", object(version.into())));
    fields.push(("Spec", spec));
    fields.push(("Status", status(names, route, parts)));
    object(fields)
}

/// The route with JSON names.
pub(super) fn json(route: &Route, prefixes: &[Str], parts: TemplateParts) -> Value {
    let names = Names::Json;
    let meta = metadata(names, route, prefixes);
    let (spec, status) = (spec(names, route, parts), status(names, route, parts));
    let whole = vec![
        ("apiVersion", api_version(route)),
        ("kind", kind(route)),
        ("metadata", object(meta.clone())),
        ("spec", spec.clone()),
        ("status", status.clone()),
    ];
    object(vec![
        ("Name", text(&route.meta.key.name)),
        ("Namespace", text(&route.meta.key.namespace)),
        ("Kind", kind(route)),
        ("APIVersion", api_version(route)),
        ("Labels", map(names, &route.meta.labels)),
        ("Annotations", annotations(names, route, prefixes)),
        ("Metadata", object(meta)),
        ("Spec", spec),
        ("Status", status),
        ("Object", object(whole)),
    ])
}

type Fields = Vec<(&'static str, Value)>;

/// Metadata; name, namespace, labels and annotations come first, in this order.
fn metadata(names: Names, route: &Route, prefixes: &[Str]) -> Fields {
    let meta = &route.meta;
    let generation = meta.generation.map_or(Value::from(0), Value::from);
    let mut fields = vec![
        (names.of("Name", "name"), text(&meta.key.name)),
        (names.of("Namespace", "namespace"), text(&meta.key.namespace)),
        (names.of("Labels", "labels"), map(names, &meta.labels)),
        (names.of("Annotations", "annotations"), annotations(names, route, prefixes)),
        (names.of("Generation", "generation"), generation),
    ];
    if names == Names::Json {
        let is_empty = |value: &Value| matches!(value, Value::Object(entries) if entries.is_empty());
        fields.retain(|(name, value)| !is_empty(value) && (*name != "generation" || meta.generation.is_some()));
    }
    fields
}

fn spec(names: Names, route: &Route, parts: TemplateParts) -> Value {
    let parents = list(route.parents.iter().map(|parent| parent_ref(names, parent)));
    let mut fields = vec![(names.of("ParentRefs", "parentRefs"), parents.clone())];
    if route.kind.has_hostnames() && (names == Names::Go || !route.hostnames.is_empty()) {
        let hostnames = list(route.hostnames.iter().map(|hostname| text(hostname.text())));
        fields.push((names.of("Hostnames", "hostnames"), hostnames));
    }
    if names == Names::Go {
        fields.push(("CommonRouteSpec", object(vec![("ParentRefs", parents)])));
    }
    if parts.rules {
        fields.push((names.of("Rules", "rules"), list(route.rules.iter().map(|rule| self::rule(names, rule)))));
    }
    object(fields)
}

fn rule(names: Names, rule: &Rule) -> Value {
    let backends = list(rule.backends.iter().map(|backend| backend_ref(names, backend)));
    let mut fields = vec![(names.of("BackendRefs", "backendRefs"), backends)];
    optional(names, &mut fields, names.of("Name", "name"), rule.name.as_ref().map(text));
    object(fields)
}

fn backend_ref(names: Names, backend: &BackendRef) -> Value {
    let target = &backend.target;
    let mut fields = vec![
        (names.of("Group", "group"), text(&target.group)),
        (names.of("Kind", "kind"), text(&target.kind)),
        (names.of("Name", "name"), text(&target.name)),
        (names.of("Weight", "weight"), Value::from(backend.weight)),
    ];
    optional(names, &mut fields, names.of("Namespace", "namespace"), target.namespace.as_ref().map(text));
    optional(names, &mut fields, names.of("Port", "port"), backend.port.map(Value::from));
    object(fields)
}

fn parent_ref(names: Names, parent: &ParentRef) -> Value {
    let target = &parent.target;
    let mut fields = vec![
        (names.of("Group", "group"), text(&target.group)),
        (names.of("Kind", "kind"), text(&target.kind)),
        (names.of("Name", "name"), text(&target.name)),
    ];
    optional(names, &mut fields, names.of("Namespace", "namespace"), target.namespace.as_ref().map(text));
    optional(names, &mut fields, names.of("SectionName", "sectionName"), parent.section.as_ref().map(text));
    optional(names, &mut fields, names.of("Port", "port"), parent.port.map(Value::from));
    object(fields)
}

fn status(names: Names, route: &Route, parts: TemplateParts) -> Value {
    if !parts.status {
        return object(Vec::new());
    }
    let parents = list(route.status.iter().map(|status| parent_status(names, status)));
    let mut fields = vec![(names.of("Parents", "parents"), parents.clone())];
    if names == Names::Go {
        fields.push(("RouteStatus", object(vec![("Parents", parents)])));
    }
    object(fields)
}

fn parent_status(names: Names, status: &ParentStatus) -> Value {
    object(vec![
        (names.of("ParentRef", "parentRef"), parent_ref(names, &status.parent)),
        (names.of("ControllerName", "controllerName"), text(&status.controller)),
        (names.of("Conditions", "conditions"), list(status.conditions.iter().map(|c| condition(names, c)))),
    ])
}

fn condition(names: Names, condition: &Condition) -> Value {
    object(vec![
        (names.of("Type", "type"), text(&condition.kind)),
        (names.of("Status", "status"), text(&condition.status)),
        (names.of("Reason", "reason"), text(&condition.reason)),
        (names.of("Message", "message"), text(&condition.message)),
    ])
}

fn kind(route: &Route) -> Value {
    route.kind.as_str().into()
}

/// The API version in which external-dns reads this kind.
fn api_version(route: &Route) -> Value {
    format!("{GATEWAY_GROUP}/{}", route.kind.external_dns_version()).into()
}

/// The annotations; one with a later prefix is also present with the first.
fn annotations(names: Names, route: &Route, prefixes: &[Str]) -> Value {
    let own = &route.meta.annotations;
    let mut all = own.clone();
    if let Some((first, others)) = prefixes.split_first() {
        let named =
            |key: &Str| others.iter().find_map(|prefix| key.strip_prefix(&**prefix)).map(|n| format!("{first}{n}"));
        for key in own.keys().filter_map(named) {
            if let Some(value) = look_up(own, &key, prefixes) {
                all.insert(key.into(), value.clone());
            }
        }
    }
    map(names, &all)
}

impl Names {
    fn of(self, go: &'static str, json: &'static str) -> &'static str {
        if self == Names::Go { go } else { json }
    }
}

/// An optional field: without a value with Go names, absent with JSON names.
fn optional(names: Names, fields: &mut Fields, name: &'static str, value: Option<Value>) {
    match value {
        Some(value) => fields.push((name, value)),
        None if names == Names::Go => fields.push((name, Value::Nil)),
        None => {}
    }
}

/// A map of strings; whether a missing key is an error depends on the names.
fn map(names: Names, labels: &Labels) -> Value {
    let entries = labels.iter().map(|(key, value)| (key.to_string(), text(value))).collect();
    if names == Names::Go { Value::Map(entries) } else { Value::Object(entries) }
}

fn object(fields: Fields) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn list(items: impl Iterator<Item = Value>) -> Value {
    Value::Array(items.collect())
}

fn text(text: &Str) -> Value {
    Value::String(text.to_string())
}
