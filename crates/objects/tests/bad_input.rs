//! Input that is broken, hostile or merely odd: each gets a clear answer, quickly, and harms nothing around it.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::model::Kind;
use gatepost_core::reason::{INVALID_HOSTNAME, OBJECT_UNREADABLE, SYNTAX_ERROR, UNKNOWN_VALUE, UNRENDERED_TEMPLATE};
use gatepost_core::snapshot::Object;
use gatepost_objects::{ParseLimits, ParseSettings, ParsedText, read};

const GOOD: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: good}\n";
/// Lines in front of a text that stands between two good documents.
const BEFORE: u32 = 4;

/// Reads a text in a bounded time. Alone each text here takes far less than two seconds; the bound leaves room for a debug
/// build on a machine that is busy with others.
fn reading(text: &[u8]) -> ParsedText {
    let start = Instant::now();
    let reading = read("input", text, &ParseSettings::default());
    let took = start.elapsed();
    assert!(took < Duration::from_secs(90), "took {took:?}");
    reading
}

/// Reads a text between two good documents, which must both survive.
fn between(text: &[u8]) -> ParsedText {
    let whole = [GOOD.as_bytes(), b"---\n", text, b"\n---\n", GOOD.as_bytes()].concat();
    let mut reading = reading(&whole);
    let good = |object: &Object| object.meta().key.name.as_ref() == "good";
    let (first, last) = (reading.objects.first().unwrap(), reading.objects.last().unwrap());
    assert!(reading.objects.len() >= 2 && good(&first.object) && good(&last.object));
    reading.objects.pop();
    reading.objects.remove(0);
    reading
}

/// The one syntax error in a text: line, column, message.
fn syntax_error(text: impl AsRef<[u8]>) -> (u32, u32, String) {
    let mut told = between(text.as_ref()).diagnostics;
    assert_eq!(told.len(), 1, "{told:?}");
    let Diagnostic { reason, place, message, .. } = told.remove(0);
    assert_eq!(reason, SYNTAX_ERROR, "{message}");
    let place = place.unwrap();
    (place.line - BEFORE, place.column, message)
}

fn assert_says(text: impl AsRef<[u8]>, line: u32, part: &str) {
    let (found, _, message) = syntax_error(text);
    assert!(found == line && message.contains(part), "{found}: {message}");
}

#[test]
fn alias_bombs() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..20 {
        let refs = vec![format!("*a{}", i - 1); 10].join(", ");
        text += &format!("a{i}: &a{i} [{refs}]\n");
    }
    assert_says(text, 5, "aliases");
}

#[test]
fn long_text_through_many_aliases() {
    assert_says(format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 5000].join(",")), 2, "aliases");
}

#[test]
fn merge_bombs() {
    let mut text = "a0: &a0 {k: v, l: w, m: x, n: y}\n".to_owned();
    for i in 1..60 {
        text += &format!("a{i}: &a{i}\n  <<: *a{}\n  k{i}: *a{}\n", i - 1, i - 1);
    }
    assert!(syntax_error(text).2.contains("aliases"));
}

#[test]
fn anchors_that_lead_nowhere_or_to_themselves() {
    assert_says("a: &a [*a]\n", 1, "contains it");
    assert_says("a: *b\n", 1, "anchor");
}

#[test]
fn deep_nesting() {
    for n in [200, 10_000, 1_000_000] {
        for text in [
            "[".repeat(n),
            "[".repeat(n) + &"]".repeat(n),
            "{\"a\":".repeat(n) + "1" + &"}".repeat(n),
            "{a: ".repeat(n) + "1" + &"}".repeat(n),
            "- ".repeat(n) + "1",
            "? ".repeat(n) + "1",
        ] {
            assert_says(text, 1, "too deep");
        }
    }
    let steps: String = (0..3000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    assert_says(steps, 101, "too deep");
}

#[test]
fn huge_scalars() {
    let huge = "x".repeat(100 << 20);
    assert_says(format!("a: {huge}"), 0, "bytes, at most 16777216 are read");
    let large = &huge[..15 << 20];
    for text in [
        format!("{{\"a\": \"{huge}\"}}"),
        format!("a: {large}"),
        format!("a: |\n  {large}"),
        format!("a: \"{large}\""),
        format!("#{large}\na: 1"),
    ] {
        assert_eq!(between(text.as_bytes()).diagnostics, []);
    }
    assert_eq!(syntax_error(format!("{large}: 1")).0, 1);
}

#[test]
fn huge_texts() {
    let limits = ParseLimits { text: 1000, ..ParseLimits::default() };
    let reading = read("input", &[b'#'; 1001], &ParseSettings { limits, ..ParseSettings::default() });
    assert!(reading.diagnostics[0].message.contains("at most 1000"), "{:?}", reading.diagnostics);
}

#[test]
fn very_many_things() {
    assert_eq!(between("---\n".repeat(1_000_000).as_bytes()).diagnostics, []);
    let documents = between("---\na: 1\n".repeat(10_000).as_bytes());
    assert_eq!(documents.passed_over["without apiVersion and kind"], 10_000);
    let keys: String = (0..100_000).map(|i| format!("k{i}: v\n")).collect();
    assert_eq!(between(keys.as_bytes()).diagnostics, []);
    let lists = between(("[".to_owned() + &"[],".repeat(300_000) + "1]").as_bytes());
    assert_eq!(lists.diagnostics[0].reason, OBJECT_UNREADABLE);
}

#[test]
fn very_many_problems_of_one_object() {
    let fields: String = (0..20_000).map(|i| format!("  nonsense{i}: 1\n")).collect();
    let text =
        format!("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: a}}\nspec:\n{fields}");
    let told = between(text.as_bytes()).diagnostics;
    assert_eq!(told.len(), 101);
    assert!(told[100].message.contains("19900 further problems"), "{}", told[100].message);
}

#[test]
fn bytes_that_are_no_text() {
    assert_says(b"a: 1\nb: \0\n", 2, "NUL");
    assert_says(b"a: 1\nb: \xC3\x28\n", 2, "not UTF-8");
    let utf16: Vec<u8> = "\u{feff}kind: Gateway".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let told = reading(&utf16).diagnostics;
    assert!(told[0].message.contains("UTF-16"), "{told:?}");
}

#[test]
fn byte_order_mark_and_windows_line_ends() {
    let text = format!("\u{feff}{GOOD}---\n{GOOD}").replace('\n', "\r\n");
    let reading = reading(text.as_bytes());
    assert_eq!((reading.objects.len(), reading.diagnostics.len()), (2, 0), "{:?}", reading.diagnostics);
    let json =
        reading_of_one("\u{feff}{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"a\"}}");
    assert_eq!(json.meta().key.name.as_ref(), "a");
}

fn reading_of_one(text: &str) -> Object {
    let mut reading = reading(text.as_bytes());
    assert_eq!(reading.diagnostics, []);
    reading.objects.remove(0).object
}

#[test]
fn syntax_that_is_wrong() {
    assert_says("a: 1\na: 2\n", 2, "`a` stands twice");
    assert_says("{\"a\": 1,\n\"a\": 2}", 2, "twice");
    assert_says("a:\n\tb: 1\n", 2, "tab");
    assert_says("a: [1, 2\n", 1, "bracket");
    assert_says("{\"a\": 1", 2, "`}` is missing");
    assert_says("{\"a\": \"1", 2, "control character");
    assert_says("a: \"1\n", 3, "quoted scalar");
    assert_says("a: b: c\n", 1, "");
    assert_says("a: 1e999\n", 1, "quotes");
}

#[test]
fn templates_that_are_not_rendered() {
    for (text, line) in [("{{ template \"x\" . }}\n", 1), ("a: 1\nb: {{ .Values.b }}\n", 2)] {
        let told = between(text.as_bytes()).diagnostics;
        let [Diagnostic { reason, place: Some(place), .. }] = &told[..] else { panic!("{told:?}") };
        assert_eq!((*reason, place.line - BEFORE), (UNRENDERED_TEMPLATE, line), "{text}");
    }
}

#[test]
fn half_a_file() {
    let text = format!(
        "{GOOD}---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:\n  name: \"b\"\nspec:\n  hostnames: [\"a.example\"]\n  rules:\n  - matches: [{{path: {{type: Exact, value: /x}}}}]\n"
    );
    for end in 0..text.len() {
        reading(&text.as_bytes()[..end]);
    }
    let json = "{\"apiVersion\": \"gateway.networking.k8s.io/v1\", \"kind\": \"Gateway\", \"metadata\": {\"name\": \"a\\u00e9\"}}";
    for end in 1..json.len() {
        assert_eq!(reading(&json.as_bytes()[..end]).diagnostics.len(), 1, "{end}");
    }
}

#[test]
fn documents_that_are_no_objects() {
    for (text, part) in
        [("- a\n", "is a list"), ("text\n", "is a text"), ("5\n", "the number 5"), ("yes\n", "the boolean true")]
    {
        let told = between(text.as_bytes()).diagnostics;
        assert_eq!(told[0].reason, OBJECT_UNREADABLE);
        assert!(told[0].message.contains(part), "{}", told[0].message);
    }
    for text in
        ["~\n", "null\n", "{}\n", "a: b\n", "apiVersion: apps/v1\nkind: Deployment\n", "kind: List\nitems: []\n"]
    {
        assert_eq!(between(text.as_bytes()).diagnostics, [], "{text}");
    }
}

#[test]
fn objects_without_a_name_or_type() {
    for (text, line, part) in [
        ("kind: HTTPRoute\n", 1, "`apiVersion` is missing"),
        ("apiVersion: v1\nkind: Secret\n", 1, "`metadata.name` of a Secret is missing"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: 5}\n", 3, "put it in quotes"),
        ("apiVersion: v1\nkind: Secret\nmetadata:\n  generateName: a-\n", 3, "generateName"),
        ("apiVersion: v1\nkind: Secret\nmetadata: 5\n", 3, "is missing"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: [a]}\n", 3, "is a list, text is expected"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: n}\n", 3, "put it in quotes"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: on}\n", 3, "is the boolean true"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: 0x1F}\n", 3, "is the number 31"),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: {b: c}}\n",
            3,
            "`metadata.namespace` of a Secret",
        ),
    ] {
        let told = between(text.as_bytes()).diagnostics;
        assert_eq!((told.len(), told[0].reason), (1, OBJECT_UNREADABLE), "{text}");
        assert!(told[0].message.contains(part), "{}", told[0].message);
        assert_eq!(told[0].place.as_ref().unwrap().line, BEFORE + line, "{text}");
    }
}

#[test]
fn kinds_and_versions_that_do_not_exist() {
    let misspelt =
        between(b"apiVersion: gateway.networking.k8s.io/v1\nkind: HttpRoute\nmetadata: {name: a}\n").diagnostics;
    assert!(misspelt[0].message.contains("did you mean `HTTPRoute`"), "{misspelt:?}");
    let text = "apiVersion: gateway.networking.k8s.io/v2\nkind: GatewayClass\nmetadata: {name: a}\nspec: {controllerName: a.b/c}\n";
    let reading = between(text.as_bytes());
    assert_eq!(reading.diagnostics[0].reason, UNKNOWN_VALUE);
    assert_eq!(reading.objects[0].object.object().kind, Kind::GatewayClass);
}

#[test]
fn long_hostnames() {
    let long = ["a"; 150].join(".") + ".";
    let text = format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: a}}\nspec:\n  hostnames: [{long}x]\n"
    );
    let told = between(text.as_bytes()).diagnostics;
    assert_eq!((told.len(), told[0].reason), (1, INVALID_HOSTNAME));
    assert!(told[0].message.contains("has 301 characters"), "{}", told[0].message);
    assert!(told[0].message.len() < 200);
}

#[test]
fn anchors_and_merges_that_are_fine() {
    let text = "x: &meta {labels: {a: b}}\napiVersion: v1\nkind: Namespace\nmetadata:\n  <<: *meta\n  name: &n web\n";
    let object = reading_of_one(text);
    assert_eq!(object.meta().labels.get("a").map(AsRef::as_ref), Some("b"));
}

#[test]
fn messages_never_quote_secrets() {
    let key = "c2VjcmV0LWJ5dGVz";
    for text in [
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\ndata:\n  tls.crt: {key}\n  tls.key: {key}\n"),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\ndata: {key}\ntype: {{{key}: 1}}\n"),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData:\n  tls.crt: a\n  tls.key: [{key}]\n"),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a, labels: {key}}}\ndata: {{tls.key: {key}"),
        format!("{{\"kind\": \"Secret\", \"apiVersion\": \"v1\", \"data\": {{\"tls.key\": \"{key}\" \"{key}\"}}}}"),
    ] {
        let reading = between(text.as_bytes());
        assert!(!format!("{reading:?}").contains(key), "{reading:?}");
        assert_eq!(reading.private.len(), 1, "{text}");
    }
}
