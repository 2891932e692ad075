//! Finds the place of a field in the text it was read from.
//!
//! Positions are not kept while objects are read; when somebody wants to see one, the document is walked again, event by
//! event and for all wanted fields at once. JSON is walked as the YAML that it is. Nothing here judges the text: where it
//! cannot be walked, there is no position.

use std::collections::BTreeMap;
use std::ops::Range;

use gatepost_core::diagnostic::{FieldPath, Segment, SourcePosition};
use gatepost_core::reason::{Reason, UNKNOWN_FIELD};
use serde_saphyr::granit_parser::{self, Event, Parser};

use crate::parse::{DocumentOrigin, join};

/// Deeper than any document that can be read.
const DEEPEST: usize = 160;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// Bytes in the whole text.
    pub bytes: Range<usize>,
}

/// Where a field stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Its key; items of lists have none.
    pub key: Option<Span>,
    /// Its value; of a mapping or list only the beginning.
    pub value: Span,
    /// Whether the value is a plain one, neither mapping nor list.
    pub is_scalar: bool,
    /// Whether it is the field itself, or the nearest one above it that exists.
    pub is_whole: bool,
}

/// Which part of a field is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldPart {
    /// The key: the field should not be there at all.
    Key,
    /// The value, where that is a plain one.
    Value,
}

impl FieldPart {
    /// The part that a reason speaks of.
    pub(crate) fn of(reason: Reason) -> FieldPart {
        if reason == UNKNOWN_FIELD { FieldPart::Key } else { FieldPart::Value }
    }
}

impl Located {
    /// The part to point at: a plain value, or else the key.
    pub fn best(&self) -> &Span {
        self.part(FieldPart::Value)
    }

    pub(crate) fn part(&self, mark: FieldPart) -> &Span {
        let wants_key = mark == FieldPart::Key || !self.is_scalar || !self.is_whole;
        self.key.as_ref().filter(|_| wants_key).unwrap_or(&self.value)
    }
}

/// Finds one field of an object in the text it was read from.
pub fn locate(text: &[u8], origin: &DocumentOrigin, field: &FieldPath) -> Option<Located> {
    locate_all(text, origin, std::slice::from_ref(field)).pop().flatten()
}

/// Finds several fields of one object in one walk.
pub fn locate_all(text: &[u8], origin: &DocumentOrigin, fields: &[FieldPath]) -> Vec<Option<Located>> {
    let wanted: Vec<FieldPath> = fields.iter().map(|field| join(&origin.prefix, field)).collect();
    match text.get(origin.bytes.clone()).and_then(|bytes| std::str::from_utf8(bytes).ok()) {
        Some(document) => walk(document, origin, &wanted),
        None => vec![None; fields.len()],
    }
}

/// The places of several fields of one document; those that cannot be found are at its beginning. Paths count from the document.
pub(crate) fn place_all(
    document: &str,
    origin: &DocumentOrigin,
    wanted: &[(FieldPath, FieldPart)],
) -> Vec<SourcePosition> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let paths: Vec<FieldPath> = wanted.iter().map(|(path, _)| path.clone()).collect();
    let found = walk(document, origin, &paths);
    let place = |(located, (_, mark)): (Option<Located>, &(FieldPath, FieldPart))| {
        let at = located.as_ref().map_or((origin.line, origin.column), |l| (l.part(*mark).line, l.part(*mark).column));
        SourcePosition { source: origin.source.clone(), line: at.0, column: at.1 }
    };
    found.into_iter().zip(wanted).map(place).collect()
}

fn walk(document: &str, origin: &DocumentOrigin, wanted: &[FieldPath]) -> Vec<Option<Located>> {
    let options = granit_parser::options! {
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
        emit_comments: false,
    };
    let mut walker = Walker { origin, wanted, found: vec![None; wanted.len()], frames: Vec::new() };
    for event in Parser::new_from_str_with_options(document, options) {
        let Ok((event, span)) = event else { break };
        walker.event(&event, span);
    }
    walker.found
}

/// One mapping or list on the way, and the paths that go on inside it, by their next step.
struct OpenContainer<'a> {
    keys: BTreeMap<&'a str, Vec<usize>>,
    items: BTreeMap<usize, Vec<usize>>,
    step: CursorPosition,
    /// The paths that go through the key that was just read.
    through_key: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CursorPosition {
    /// In a mapping, before a key.
    Key,
    /// In a mapping, before the value of a key.
    Value,
    /// In a list, before an item.
    Item(usize),
}

struct Walker<'a> {
    origin: &'a DocumentOrigin,
    wanted: &'a [FieldPath],
    found: Vec<Option<Located>>,
    frames: Vec<OpenContainer<'a>>,
}

impl Walker<'_> {
    fn event(&mut self, event: &Event<'_>, span: granit_parser::Span) {
        match event {
            Event::Scalar(text, ..) => {
                self.node(Some(text), span);
                self.advance();
            }
            Event::Alias(_) => {
                self.node(None, span);
                self.advance();
            }
            Event::MappingStart(..) => self.enter(span, CursorPosition::Key),
            Event::SequenceStart(..) => self.enter(span, CursorPosition::Item(0)),
            Event::MappingEnd | Event::SequenceEnd => {
                self.frames.pop();
                self.advance();
            }
            _ => {}
        }
    }

    fn enter(&mut self, span: granit_parser::Span, step: CursorPosition) {
        let paths = self.node(None, span);
        let depth = self.frames.len();
        let mut frame = OpenContainer { keys: BTreeMap::new(), items: BTreeMap::new(), step, through_key: Vec::new() };
        for path in paths {
            match self.wanted[path].segments().get(depth) {
                Some(Segment::Key(key)) => frame.keys.entry(key).or_default().push(path),
                Some(Segment::Index(index)) => frame.items.entry(*index).or_default().push(path),
                None => {}
            }
        }
        self.frames.push(frame);
    }

    /// A node has ended; the next one has another part to play.
    fn advance(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        frame.step = match frame.step {
            CursorPosition::Key => CursorPosition::Value,
            CursorPosition::Value => CursorPosition::Key,
            CursorPosition::Item(i) => CursorPosition::Item(i + 1),
        };
    }

    /// Notes a node for the paths that lead to it, and says which these are.
    fn node(&mut self, text: Option<&str>, span: granit_parser::Span) -> Vec<usize> {
        let span = self.span(span);
        let is_scalar = text.is_some();
        let all = self.wanted.len();
        let Some(frame) = self.frames.last_mut() else {
            return self.note((0..all).collect(), None, &span, is_scalar);
        };
        match frame.step {
            CursorPosition::Item(i) => {
                let paths = frame.items.remove(&i).unwrap_or_default();
                self.note(paths, None, &span, is_scalar)
            }
            CursorPosition::Value => {
                let paths = std::mem::take(&mut frame.through_key);
                let key = paths.first().and_then(|path| self.found[*path].as_ref()?.key.clone());
                self.note(paths, key, &span, is_scalar)
            }
            CursorPosition::Key => {
                frame.through_key = text.and_then(|text| frame.keys.remove(text)).unwrap_or_default();
                let paths = frame.through_key.clone();
                self.note(paths, Some(span.clone()), &span, true);
                Vec::new()
            }
        }
    }

    fn note(&mut self, paths: Vec<usize>, key: Option<Span>, value: &Span, is_scalar: bool) -> Vec<usize> {
        let depth = self.frames.len();
        for path in &paths {
            let is_whole = self.wanted[*path].segments().len() == depth;
            self.found[*path] = Some(Located { key: key.clone(), value: value.clone(), is_scalar, is_whole });
        }
        paths
    }

    fn span(&self, span: granit_parser::Span) -> Span {
        let start = span.start.byte_offset().unwrap_or(0);
        let end = span.end.byte_offset().unwrap_or(start).max(start);
        let column = span.start.col() + if span.start.line() <= 1 { self.origin.column as usize } else { 1 };
        Span {
            line: self.origin.line.saturating_add(number(span.start.line().saturating_sub(1))),
            column: number(column),
            bytes: self.origin.bytes.start + start..self.origin.bytes.start + end,
        }
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "a: 1\n---\n# note\nspec:\n  listeners:\n  - name: web\n    port: 70000\n  - {name: \"b\", port: 1}\n  base: &x {k: 1}\n  use: *x\n";

    fn origin(text: &str, start: usize) -> DocumentOrigin {
        let line = 1 + number(text[..start].matches('\n').count());
        DocumentOrigin { source: "f".into(), bytes: start..text.len(), line, column: 1, prefix: FieldPath::root() }
    }

    fn at(text: &str, origin: &DocumentOrigin, field: &str) -> (u32, u32, String, bool) {
        let located = locate(text.as_bytes(), origin, &FieldPath::of(field)).unwrap();
        let span = located.best();
        (span.line, span.column, text[span.bytes.clone()].to_owned(), located.is_whole)
    }

    #[test]
    fn fields_of_yaml() {
        let origin = origin(YAML, 5);
        for (field, line, column, text, whole) in [
            ("spec", 4, 1, "spec", true),
            ("spec.listeners[0].port", 7, 11, "70000", true),
            ("spec.listeners[1].port", 8, 23, "1", true),
            ("spec.listeners[1].name", 8, 12, "\"b\"", true),
            ("spec.listeners", 5, 3, "listeners", true),
            ("spec.listeners[0].hostname", 6, 5, "", false),
            ("spec.listeners[7]", 5, 3, "listeners", false),
            ("spec.use.k", 10, 3, "use", false),
        ] {
            let (l, c, t, w) = at(YAML, &origin, field);
            assert_eq!((l, c, w), (line, column, whole), "{field}");
            assert!(text.is_empty() || t == text, "{field}: {t}");
        }
    }

    #[test]
    fn fields_of_json_and_of_lists() {
        let json = "  {\"items\": [1,\n\t{\"spec\": {\"port\": 5}}]}";
        let mut origin = DocumentOrigin { column: 3, bytes: 2..json.len(), ..origin(json, 0) };
        assert_eq!(at(json, &origin, "items"), (1, 4, "\"items\"".to_owned(), true));
        origin.prefix = FieldPath::of("items[1]");
        assert_eq!(at(json, &origin, "spec.port"), (2, 20, "5".to_owned(), true));
    }

    #[test]
    fn keys_that_should_not_be_there() {
        let origin = origin(YAML, 5);
        let found = locate(YAML.as_bytes(), &origin, &FieldPath::of("spec.listeners[0].port")).unwrap();
        assert_eq!(&YAML[found.part(FieldPart::Key).bytes.clone()], "port");
    }

    #[test]
    fn what_cannot_be_walked_has_no_place() {
        assert_eq!(locate(b"", &DocumentOrigin { bytes: 5..9, ..origin("", 0) }, &FieldPath::root()), None);
        assert_eq!(locate(b"@", &origin("@", 0), &FieldPath::of("a")), None);
    }
}
