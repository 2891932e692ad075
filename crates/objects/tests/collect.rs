//! Many texts, one snapshot: lists, duplicates, places, and what may be shown.
#![allow(clippy::unwrap_used)]

use gatepost_core::diagnostic::{Diagnostic, FieldPath};
use gatepost_core::model::{Kind, ObjectRef, RouteKind, Str};
use gatepost_core::reason::{DUPLICATE_OBJECT, INVALID_FIELD};
use gatepost_objects::{Loaded, ParseSettings, collect};

fn load(texts: &[(&str, &str)]) -> Loaded {
    collect(texts.iter().map(|(name, text)| (Str::from(*name), text.as_bytes().to_vec())), &ParseSettings::default())
}

fn at(diagnostic: &Diagnostic) -> (String, u32, u32) {
    let place = diagnostic.place.as_ref().unwrap();
    (place.source.to_string(), place.line, place.column)
}

const ROUTE: &str = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  hostnames:\n  - www.example.com\n";

#[test]
fn texts_become_one_snapshot() {
    let namespace = "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"shop\"}}";
    let loaded =
        load(&[("a.yaml", ROUTE), ("b.json", namespace), ("c.yaml", "apiVersion: apps/v1\nkind: Deployment\n")]);
    assert_eq!((loaded.snapshot.routes.len(), loaded.snapshot.namespaces.len()), (1, 1));
    assert_eq!(loaded.passed_over["apps/v1/Deployment"], 1);
    assert_eq!(loaded.diagnostics, []);
}

#[test]
fn two_objects_of_one_name_are_told_at_both_places() {
    let later = ROUTE.replace("www", "later");
    let loaded = load(&[("a.yaml", ROUTE), ("b.yaml", &format!("# note\n---\n{later}"))]);
    let [first, second] = &loaded.diagnostics[..] else { panic!("{:?}", loaded.diagnostics) };
    assert_eq!((first.reason, second.reason), (DUPLICATE_OBJECT, DUPLICATE_OBJECT));
    assert_eq!((at(first), at(second)), (("a.yaml".to_owned(), 4, 9), ("b.yaml".to_owned(), 6, 9)));
    assert_eq!(second.related[0].place, first.place);
    let route = loaded.snapshot.routes.values().next().unwrap();
    assert_eq!(route.hostnames[0].text().as_ref(), "later.example.com");
    let object = route.object();
    assert_eq!(loaded.origin(&object).unwrap().source.as_ref(), "b.yaml");
}

#[test]
fn lists_are_taken_apart() {
    let item = "{\"apiVersion\": \"gateway.networking.k8s.io/v1\", \"kind\": \"HTTPRoute\", \"metadata\": {\"name\": \"NAME\"},\n  \"spec\": {\"rules\": [{\"backendRefs\": [{\"name\": \"s\", \"port\": PORT}]}]}}";
    let items: Vec<String> =
        [("a", "1"), ("b", "0")].iter().map(|(n, p)| item.replace("NAME", n).replace("PORT", p)).collect();
    let text = format!("{{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n{}\n]}}", items.join(",\n"));
    let loaded = load(&[("list.json", &text)]);
    assert_eq!(loaded.snapshot.routes.len(), 2);
    let [problem] = &loaded.diagnostics[..] else { panic!("{:?}", loaded.diagnostics) };
    assert_eq!((problem.reason, at(problem).1), (INVALID_FIELD, 5));
    assert_eq!(problem.field.to_string(), "spec.rules[0].backendRefs[0].port");
    let typed = "apiVersion: v1\nkind: NamespaceList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n";
    assert_eq!(load(&[("t", typed)]).snapshot.namespaces.len(), 2);
    let nested =
        "kind: List\nitems:\n- kind: List\n  items:\n  - {apiVersion: v1, kind: Namespace, metadata: {name: a}}\n";
    assert_eq!(load(&[("n", nested)]).snapshot.namespaces.len(), 1);
}

#[test]
fn places_are_found_afterwards() {
    let text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\n{ROUTE}");
    let loaded = load(&[("a.yaml", &text)]);
    let object = ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web");
    let place = loaded.place(&object, &FieldPath::of("spec.hostnames[0]")).unwrap();
    assert_eq!((place.line, place.column), (12, 5));
    let above = loaded.place(&object, &FieldPath::of("spec.parentRefs[3].name")).unwrap();
    assert_eq!((above.line, above.column), (10, 1));
    assert_eq!(loaded.place(&ObjectRef::new(Kind::Gateway, "a", "b"), &FieldPath::root()), None);
    let mut told = [Diagnostic::new(INVALID_FIELD, &object, FieldPath::of("metadata.name"), "x").related(
        &object,
        FieldPath::of("spec"),
        "y",
    )];
    loaded.fill_places(&mut told);
    assert_eq!((at(&told[0]).1, told[0].related[0].place.as_ref().unwrap().line), (8, 10));
}

#[test]
fn lines_can_be_shown_except_those_of_secrets() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {tls.key: private}\n";
    let loaded = load(&[("a.yaml", &format!("{ROUTE}---\n{secret}---\n{ROUTE}"))]);
    let text = loaded.text("a.yaml").unwrap();
    assert_eq!(text.line(1).as_deref(), Some("apiVersion: gateway.networking.k8s.io/v1"));
    assert_eq!((text.line(0), text.line(13), text.line(99)), (None, None, None));
    assert_eq!(text.line(15).as_deref(), Some("apiVersion: gateway.networking.k8s.io/v1"));
    assert!(!format!("{loaded:?}").contains("private"));
}

#[test]
fn values_that_follow_each_other_have_places() {
    let service = |name: &str| format!(r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{name}"}}}}"#);
    let text = format!("# ä\n---\n{}{}\n\n  {}\n{}", service("a"), service("b"), service("c"), service("d"));
    let loaded = load(&[("f", &text)]);
    let column = u32::try_from(1 + service("a").find("\"a\"").unwrap()).unwrap();
    let length = u32::try_from(service("a").len()).unwrap();
    for (name, line, column) in [("a", 3, column), ("b", 3, column + length), ("c", 5, column + 2), ("d", 6, column)] {
        let object = ObjectRef::new(Kind::Service, "default", name);
        let place = loaded.place(&object, &FieldPath::of("metadata.name")).unwrap();
        assert_eq!((place.line, place.column), (line, column), "{name}");
    }
}

#[test]
fn items_of_a_typed_list_inherit_their_type() {
    let text = r#"{"apiVersion":"v1","kind":"ServiceList","items":[{"metadata":{"name":"a"}},{"kind":"Pod"},null]}"#;
    let loaded = load(&[("f", text)]);
    assert_eq!(loaded.snapshot.services.len(), 1);
    assert_eq!(loaded.diagnostics, []);
}

#[test]
fn lines_between_two_secrets_are_shown() {
    let object = |kind: &str| format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: a}}}}\n---\n");
    let text = [object("Service"), object("Secret"), object("ConfigMap"), object("Secret")].concat();
    let loaded = load(&[("f", &text)]);
    let shown = |line: &u32| loaded.text("f").and_then(|text| text.line(*line)).is_some();
    assert_eq!((1..=7).filter(shown).collect::<Vec<_>>(), [1, 4, 5]);
}
