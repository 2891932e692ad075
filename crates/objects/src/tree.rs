//! One document's text becomes a tree of plain values, within bounds.
//!
//! JSON goes through serde_json, everything else through serde-saphyr. Both are held to the same number of nodes and amount
//! of text, counted after aliases and merges are expanded, so that no document can ask for more than it is worth. Duplicate
//! keys are errors in both. Error messages never quote the text: it may hold a private key.

use serde::de::DeserializeSeed;
use serde_json::{Map, Value};

use self::growth::{Grow, Meter, MeteredTree};

mod growth;
mod value;
mod wording;

pub(crate) use self::value::{Mapping, Tree};

/// The most nodes one document may expand to.
const MAX_NODES: usize = 8_000_000;
/// The most nodes one YAML document may have; it is read ten times slower than JSON.
const MAX_YAML_NODES: usize = 2_000_000;
/// The most text, in bytes, that one document may expand to.
const MAX_TEXT: usize = 512 << 20;
/// How deep a YAML document may nest; serde_json has a bound of its own (128).
const MAX_DEPTH: usize = 100;
/// How often aliases may be used in one document.
const MAX_ALIASES: usize = 10_000;
/// How many merges (`<<`) one document may have, those inside aliases counted each time.
const MAX_MERGES: usize = 2_000;
/// How many events the aliases of one document may expand to.
const MAX_REPLAYED_EVENTS: usize = 100_000;
/// How much text the aliases of a document may repeat.
const MAX_REPEATED_TEXT: usize = 16 << 20;

/// A document that is neither YAML nor JSON. Line and column count from 1 within the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) message: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A value of a document and where in the document it stands.
pub(crate) struct Grown<'t> {
    pub(crate) value: Tree<'t>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Reads every value of a document: one for YAML, one or more for JSON. Each is handed on before the next is read, so that a
/// long stream is never in memory as a whole. What could be read before an error is kept.
pub(crate) fn grow<'t>(text: &'t str, mut take: impl FnMut(Grown<'t>)) -> Option<Broken> {
    if looks_like_flow(text) {
        let (any, error) = json_stream(text, &mut take);
        if error.is_none() || any || looks_like_json(text) {
            return error;
        }
    }
    match yaml(text) {
        Ok(value) => take(Grown { value, start: 0, end: text.len() }),
        Err(broken) => return Some(broken),
    }
    None
}

/// Reads a text that is one mapping, such as a settings file; says what is wrong and where.
pub fn mapping(text: &str) -> Result<Map<String, Value>, String> {
    let mut values = Vec::new();
    if let Some(broken) = grow(text, |grown| values.push(grown)) {
        return Err(format!("line {}, column {}: {}", broken.line, broken.column, broken.message));
    }
    match (values.pop().map(|grown| grown.value), values.is_empty()) {
        (None | Some(Tree::Null), true) => Ok(Map::new()),
        (Some(Tree::Mapping(mapping)), true) => Ok(mapping.into()),
        _ => Err("it must be one mapping of keys to values".to_owned()),
    }
}

/// Whether a document is to be read by the rules of JSON first.
pub(crate) fn looks_like_flow(text: &str) -> bool {
    body(text).starts_with(['{', '['])
}

/// What stands behind `---` and comments at the start of a document.
fn body(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let after = match rest.strip_prefix("---") {
            Some(after) => after,
            None if rest.starts_with('#') => rest.split_once('\n').map_or("", |(_, after)| after),
            None => return rest,
        };
        rest = after.trim_start();
    }
}

/// Whether a text means to be JSON, so that JSON's error is the one to show. `{{` begins a template, not JSON.
fn looks_like_json(text: &str) -> bool {
    body(text).get(1..).is_some_and(|inner| inner.trim_start().starts_with(['"', '[']) || inner.trim_start().is_empty())
}

/// Whether there was any value, and what ended the stream before its end.
fn json_stream<'t>(text: &'t str, take: &mut impl FnMut(Grown<'t>)) -> (bool, Option<Broken>) {
    let base = text.len() - body(text).len();
    let mut stream = serde_json::Deserializer::from_str(&text[base..]).into_iter::<MeteredTree<'t>>();
    let mut any = false;
    loop {
        let before = base + stream.byte_offset();
        match stream.next() {
            None => return (any, None),
            Some(Ok(MeteredTree(value))) => {
                let start = before + (text[before..].len() - text[before..].trim_start().len());
                take(Grown { value, start, end: base + stream.byte_offset() });
                any = true;
            }
            Some(Err(error)) => return (any, Some(json_error(&error, &text[..base]))),
        }
    }
}

fn json_error(error: &serde_json::Error, before: &str) -> Broken {
    let (line, column) = (number(error.line()), number(error.column()).max(1));
    let lines_before = number(before.matches('\n').count());
    let indent = if line == 1 { number(before.rsplit('\n').next().map_or(0, |l| l.chars().count())) } else { 0 };
    Broken { message: wording::json(error), line: lines_before + line.max(1), column: indent + column }
}

fn yaml(text: &str) -> Result<Tree<'_>, Broken> {
    let meter = Meter::with_text(text.len() + MAX_REPEATED_TEXT);
    let grow = Grow { meter: &meter };
    serde_saphyr::with_deserializer_from_str_with_options(text, options(), |reader| grow.deserialize(reader))
        .map_err(|error| yaml_error(&error))
}

fn yaml_error(error: &serde_saphyr::Error) -> Broken {
    let error = error.without_snippet();
    let (line, column) = error.location().map_or((1, 1), |at| (small(at.line()), small(at.column())));
    Broken { message: wording::yaml(error), line: line.max(1), column: column.max(1) }
}

/// How YAML is read: as kubectl does, and never without bounds.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_events: 4 * MAX_YAML_NODES,
            max_nodes: MAX_YAML_NODES,
            max_documents: 2,
            max_aliases: MAX_ALIASES,
            max_merge_keys: MAX_MERGES,
            max_recorded_anchor_events: MAX_REPLAYED_EVENTS,
            max_total_scalar_bytes: MAX_TEXT,
            enforce_alias_anchor_ratio: false,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED_EVENTS, max_replay_stack_depth: 32 },
        legacy_octal_numbers: true,
        emit_comments: false,
        with_snippet: false,
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn small(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values(text: &str) -> Vec<Value> {
        let mut values = Vec::new();
        assert_eq!(grow(text, |grown| values.push(Value::from(grown.value))), None, "{text:?}");
        values
    }

    fn broken(text: &str) -> Broken {
        grow(text, |_| {}).unwrap_or_else(|| panic!("{text:?} should not be readable"))
    }

    #[test]
    fn yaml_means_what_kubectl_makes_of_it() {
        let tree = json!({"v": true, "o": 493, "t": "a", "x": null, "n": 1.5});
        assert_eq!(values("v: yes\no: 0755\nt: a\nx:\nn: 1.5\n"), [tree]);
        assert_eq!(values("base: &b {a: 1}\nuse:\n  <<: *b\n  c: 2\n")[0]["use"], json!({"a": 1, "c": 2}));
    }

    #[test]
    fn json_values_may_follow_each_other() {
        let text = "---\n{\"a\": 1}\n {\"b\": [2]}\n";
        assert_eq!(values(text), [json!({"a": 1}), json!({"b": [2]})]);
        let mut grown = Vec::new();
        grow(text, |value| grown.push(value));
        assert_eq!(&text[grown[1].start..grown[1].end], "{\"b\": [2]}");
        assert_eq!(values("{a: b}"), [json!({"a": "b"})]);
    }

    #[test]
    fn errors_have_positions_and_no_quotes() {
        for (text, line, column) in [
            ("a: 1\nb: [1,\nc: 2\n", 2, 4),
            ("a: 1\na: 2\n", 2, 1),
            ("{\"a\": 1,\n \"a\": 2}", 2, 4),
            ("---\n{\"a\": }", 2, 7),
            ("a:\n\tb: 1\n", 2, 2),
        ] {
            let error = broken(text);
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error:?}");
        }
    }
}
