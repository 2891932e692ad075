//! A cursor over one object's fields: asks for what it knows, and tells about everything else.
//!
//! A field of the wrong type is reported and counts as absent; a field nobody asked for is reported when the cursor leaves
//! the mapping. Paths are chained on the stack and only written out where there is something to tell. A cursor never fails
//! and never decides what an absent field means.

use std::cell::{Cell, RefCell};

use gatepost_core::diagnostic::{Diagnostic, FieldPath};
use gatepost_core::model::{Labels, ObjectRef, Str};
use gatepost_core::reason::{INVALID_FIELD, Reason, UNKNOWN_FIELD, UNKNOWN_VALUE};
use serde_json::{Map, Value};

mod suggest;

use crate::shapes::Shape;
pub(crate) use suggest::closest;

/// The most that is told about one object; a text that is wrong everywhere is told so once.
const MAX_PROBLEMS: usize = 100;

/// Where the problems of one object go.
pub(crate) struct Sink {
    object: ObjectRef,
    diagnostics: RefCell<Vec<Diagnostic>>,
    left_out: Cell<usize>,
    wrong_types: Cell<usize>,
    /// Every field that was asked for.
    #[cfg(test)]
    asked: RefCell<std::collections::BTreeSet<String>>,
}

impl Sink {
    /// A sink for the problems of one object.
    pub(crate) fn new(object: ObjectRef) -> Self {
        Sink {
            object,
            diagnostics: RefCell::default(),
            left_out: Cell::new(0),
            wrong_types: Cell::new(0),
            #[cfg(test)]
            asked: RefCell::default(),
        }
    }

    /// Every field that was asked for so far.
    #[cfg(test)]
    pub(crate) fn asked(&self) -> std::collections::BTreeSet<String> {
        self.asked.borrow().clone()
    }

    /// The object that problems are told about.
    pub(crate) fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// Takes one problem.
    pub(crate) fn push(&self, diagnostic: Diagnostic) {
        let mut diagnostics = self.diagnostics.borrow_mut();
        if diagnostics.len() < MAX_PROBLEMS {
            diagnostics.push(diagnostic)
        } else {
            self.left_out.set(self.left_out.get() + 1)
        }
    }

    /// How many fields had a wrong type so far. A part of an object that must not be wider than it was meant to be compares
    /// this before and after.
    pub(crate) fn wrong_types(&self) -> usize {
        self.wrong_types.get()
    }

    /// Everything that was told.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut diagnostics = self.diagnostics.into_inner();
        if self.left_out.get() > 0 {
            let message = format!("{} has {} further problems that are not shown", self.object, self.left_out.get());
            diagnostics.push(Diagnostic::new(INVALID_FIELD, &self.object, FieldPath::root(), message));
        }
        diagnostics
    }
}

/// The way to a value, as a chain through the cursors that led to it.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The object itself.
    pub(crate) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    /// One step into a mapping.
    pub(crate) fn key<'s>(&'s self, key: &'s str) -> Path<'s> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// One step into a list.
    pub(crate) fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// The way, written out.
    pub(crate) fn field(&self) -> FieldPath {
        let above = self.parent.map_or_else(FieldPath::root, Path::field);
        match self.step {
            Step::Root => above,
            Step::Key(key) => above.key(key),
            Step::Index(index) => above.index(index),
        }
    }
}

/// How strictly fields are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Unknown fields and wrong types are told.
    Full,
    /// Wrong types are told; unknown fields belong to somebody else.
    Types,
    /// Nothing is told: what others wrote is taken as far as it can be understood.
    Silent,
}

/// One value and the way to it.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    value: &'a Value,
    path: Path<'a>,
    sink: &'a Sink,
    strictness: Strictness,
}

/// A cursor over the fields of one mapping.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: Path<'a>,
    sink: &'a Sink,
    strictness: Strictness,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Node<'a> {
    /// The value itself, for fields that may have several types.
    pub(crate) fn value(self) -> &'a Value {
        self.value
    }

    /// The text it holds.
    pub(crate) fn text(self) -> Option<&'a str> {
        match self.value {
            Value::String(text) => Some(text),
            _ => self.wrong("text"),
        }
    }

    /// The text it holds, which should have a certain shape; one of another shape is reported and used as it is.
    pub(crate) fn shaped(self, shape: Shape) -> Option<&'a str> {
        let text = self.text()?;
        if let Some(complaint) = shape.complaint(text) {
            self.invalid(format!("is \"{}\"; {complaint}", shortened(text)));
        }
        Some(text)
    }

    /// The yes or no it holds.
    pub(crate) fn flag(self) -> Option<bool> {
        match self.value {
            Value::Bool(flag) => Some(*flag),
            _ => self.wrong("true or false"),
        }
    }

    /// The whole number it holds.
    pub(crate) fn number(self) -> Option<i64> {
        match self.value {
            Value::Number(number) => {
                number.as_i64().or_else(|| whole(number.as_f64()?)).or_else(|| self.wrong("a whole number"))
            }
            _ => self.wrong("a whole number"),
        }
    }

    /// Reads the mapping it holds, and tells about the fields that `read` did not ask for.
    pub(crate) fn mapping<T>(self, read: impl FnOnce(&Fields<'_>) -> T) -> Option<T> {
        let Value::Object(map) = self.value else {
            return self.wrong("a mapping");
        };
        let Node { path, sink, strictness, .. } = self;
        let fields = Fields { map, path, sink, strictness, asked: RefCell::default() };
        let result = read(&fields);
        fields.finish();
        Some(result)
    }

    /// The items of the list it holds.
    pub(crate) fn items(self) -> Option<&'a [Value]> {
        match self.value {
            Value::Array(items) => Some(items),
            _ => self.wrong("a list"),
        }
    }

    /// Tells that this value breaks a rule.
    pub(crate) fn invalid(self, message: impl AsRef<str>) {
        self.tell(INVALID_FIELD, message);
    }

    /// Tells that this word is not among the known ones, if it is not.
    pub(crate) fn known(self, word: &str, known: &[&str]) {
        if !known.contains(&word) {
            self.tell(UNKNOWN_VALUE, unknown(word, known));
        }
    }

    /// Tells something about this value; the message follows the name of the field.
    pub(crate) fn tell(self, reason: Reason, message: impl AsRef<str>) {
        if self.strictness == Strictness::Silent {
            return;
        }
        let field = self.path.field();
        let message = format!("`{field}` {}", message.as_ref());
        self.sink.push(Diagnostic::new(reason, self.sink.object(), field, message));
    }

    /// Tells that the type is wrong; the field then counts as absent.
    fn wrong<T>(self, expected: &str) -> Option<T> {
        self.sink.wrong_types.set(self.sink.wrong_types.get() + 1);
        self.invalid(format!("is {}, {expected} is expected{}", self.found(), self.hint(expected)));
        None
    }

    /// What stands there; values of Secrets are never shown.
    fn found(self) -> String {
        match self.value {
            Value::Null => "empty".to_owned(),
            Value::Bool(_) | Value::Number(_) if self.is_secret() => "no text".to_owned(),
            Value::Bool(flag) => format!("the boolean {flag}"),
            Value::Number(number) => format!("the number {number}"),
            Value::String(text) if text.len() <= 40 && !self.is_secret() => {
                format!("the text \"{}\"", text.escape_debug())
            }
            Value::String(_) => "a text".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "a mapping".to_owned(),
        }
    }

    fn hint(self, expected: &str) -> &'static str {
        match (self.value, expected) {
            (Value::Bool(_), "text") => {
                "; YAML takes an unquoted yes, no, on, off, true or false for a boolean: put it in quotes"
            }
            (Value::Number(_), "text") => "; YAML takes an unquoted number for a number: put it in quotes",
            (Value::String(text), "a whole number") if text.parse::<i64>().is_ok() => "; remove the quotes",
            (Value::String(text), "true or false") if text.parse::<bool>().is_ok() => "; remove the quotes",
            _ => "",
        }
    }

    fn is_secret(self) -> bool {
        self.sink.object().kind == gatepost_core::model::Kind::Secret
    }
}

impl<'a> Fields<'a> {
    /// A cursor at the top of an object.
    pub(crate) fn root(map: &'a Map<String, Value>, sink: &'a Sink, strictness: Strictness) -> Self {
        Fields { map, path: Path::ROOT, sink, strictness, asked: RefCell::default() }
    }

    /// The value of a field, unless it is absent or empty. Counts as asked for.
    pub(crate) fn node<'s>(&'s self, key: &'static str) -> Option<Node<'s>> {
        self.knows(key);
        let value = self.map.get(key).filter(|value| !value.is_null())?;
        Some(Node { value, path: self.path.key(key), sink: self.sink, strictness: self.strictness })
    }

    /// Whether a field is there. Counts as asked for.
    pub(crate) fn has(&self, key: &'static str) -> bool {
        self.node(key).is_some()
    }

    /// Fields that are part of the API and of no interest here.
    pub(crate) fn ignore(&self, keys: &[&'static str]) {
        keys.iter().for_each(|key| self.knows(key));
    }

    /// A text field.
    pub(crate) fn text(&self, key: &'static str) -> Option<Str> {
        self.node(key)?.text().map(Str::from)
    }

    /// A yes-or-no field.
    pub(crate) fn flag(&self, key: &'static str) -> Option<bool> {
        self.node(key)?.flag()
    }

    /// A field with a whole number.
    pub(crate) fn number(&self, key: &'static str) -> Option<i64> {
        self.node(key)?.number()
    }

    /// A number that must lie in a range; one outside is reported and counts as absent.
    pub(crate) fn number_in(&self, key: &'static str, what: &str, from: i64, to: i64) -> Option<i64> {
        let node = self.node(key)?;
        let number = node.number()?;
        if (from..=to).contains(&number) {
            return Some(number);
        }
        node.invalid(format!("is {number}; {what} is {from} to {to}"));
        None
    }

    /// A port.
    pub(crate) fn port(&self, key: &'static str) -> Option<u16> {
        self.number_in(key, "a port", 1, 65535).and_then(|port| u16::try_from(port).ok())
    }

    /// A field that is a mapping.
    pub(crate) fn mapping<T>(&self, key: &'static str, read: impl FnOnce(&Fields<'_>) -> T) -> Option<T> {
        self.node(key)?.mapping(read)
    }

    /// A field that is a mapping that others wrote, about which nothing is told.
    pub(crate) fn silent_mapping<T>(&self, key: &'static str, read: impl FnOnce(&Fields<'_>) -> T) -> Option<T> {
        let node = self.node(key)?;
        Node { strictness: Strictness::Silent, ..node }.mapping(read)
    }

    /// A list; items that `read` makes nothing of are left out.
    pub(crate) fn list<T>(&self, key: &'static str, mut read: impl FnMut(Node<'_>) -> Option<T>) -> Vec<T> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let items = node.items().unwrap_or_default();
        let each = |(i, value)| {
            let path = node.path.index(i);
            read(Node { value, path, ..node })
        };
        items.iter().enumerate().filter_map(each).collect()
    }

    /// A list of mappings. An item that is none is reported and read as an empty one, so that items keep their numbers.
    pub(crate) fn mappings<T>(&self, key: &'static str, mut read: impl FnMut(&Fields<'_>) -> T) -> Vec<T> {
        self.list(key, |node| {
            let found = node.mapping(&mut read);
            found.or_else(|| {
                Node { value: &Value::Object(Map::new()), strictness: Strictness::Silent, ..node }.mapping(&mut read)
            })
        })
    }

    /// A list of texts. An item that is none is reported and read as an empty one, so that items keep their numbers.
    pub(crate) fn texts(&self, key: &'static str) -> Vec<Str> {
        self.list(key, |node| Some(node.text().unwrap_or_default().into()))
    }

    /// A text field of a certain shape; one of another shape is reported and used as it is. A field that is there and is no
    /// text is an empty one, never an absent one: absent often means "any".
    pub(crate) fn shaped(&self, key: &'static str, shape: Shape) -> Option<Str> {
        self.node(key).map(|node| node.shaped(shape).unwrap_or_default().into())
    }

    /// A text of a certain shape that must be there.
    pub(crate) fn required(&self, key: &'static str, shape: Shape) -> Str {
        self.require(key);
        self.shaped(key, shape).unwrap_or_default()
    }

    /// A mapping from text to text.
    pub(crate) fn labels(&self, key: &'static str) -> Labels {
        self.entries(key, |_, node| node.text().map(Str::from))
    }

    /// A mapping with keys that nobody can know in advance.
    pub(crate) fn entries<T>(
        &self,
        key: &'static str,
        mut read: impl FnMut(&str, Node<'_>) -> Option<T>,
    ) -> std::collections::BTreeMap<Str, T> {
        let Some(node) = self.node(key) else { return Default::default() };
        let Value::Object(map) = node.value else { return node.wrong("a mapping").unwrap_or_default() };
        let each = |(name, value): (&'_ String, &'_ Value)| {
            let path = node.path.key(name);
            read(name, Node { value, path, ..node }).map(|value| (Str::from(name.as_str()), value))
        };
        map.iter().filter_map(each).collect()
    }

    /// Tells that a field must be there, if it is not.
    pub(crate) fn require(&self, key: &'static str) -> bool {
        let there = self.has(key);
        if !there {
            self.invalid(key, "is missing; it must be set");
        }
        there
    }

    /// Tells that a field breaks a rule, whether it is there or not; the message follows the name of the field.
    pub(crate) fn invalid(&self, key: &str, message: impl AsRef<str>) {
        self.tell(INVALID_FIELD, key, message);
    }

    /// Tells that this mapping as a whole breaks a rule.
    pub(crate) fn invalid_here(&self, message: impl AsRef<str>) {
        self.here().invalid(message);
    }

    /// Tells that a field has a value that is not among the known ones.
    pub(crate) fn unknown_value(&self, key: &str, value: &str, known: &[&str]) {
        self.tell(UNKNOWN_VALUE, key, unknown(value, known));
    }

    /// Tells something about a field; the message follows its name.
    pub(crate) fn tell(&self, reason: Reason, key: &str, message: impl AsRef<str>) {
        let path = self.path.key(key);
        Node { value: &Value::Null, path, sink: self.sink, strictness: self.strictness }.tell(reason, message);
    }

    /// Tells that a field further down breaks a rule.
    pub(crate) fn invalid_at(&self, field: FieldPath, message: impl AsRef<str>) {
        self.tell_at(INVALID_FIELD, field, message);
    }

    /// Tells something about a field further down; the message follows its name.
    pub(crate) fn tell_at(&self, reason: Reason, field: FieldPath, message: impl AsRef<str>) {
        if self.strictness != Strictness::Silent {
            let message = format!("`{field}` {}", message.as_ref());
            self.sink.push(Diagnostic::new(reason, self.sink.object(), field, message));
        }
    }

    /// Whether a field is a list without entries.
    pub(crate) fn is_empty_list(&self, key: &'static str) -> bool {
        self.map.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty)
    }

    /// The way to this mapping.
    pub(crate) fn path(&self) -> &Path<'a> {
        &self.path
    }

    /// Where problems go.
    pub(crate) fn sink(&self) -> &'a Sink {
        self.sink
    }

    /// Tells about the fields that were never asked for.
    pub(crate) fn finish(&self) {
        #[cfg(test)]
        self.sink
            .asked
            .borrow_mut()
            .extend(self.asked.borrow().iter().map(|key| self.path.key(key).field().to_string()));
        if self.strictness != Strictness::Full {
            return;
        }
        let asked = self.asked.borrow();
        for key in self.map.keys().filter(|key| !asked.contains(&key.as_str())) {
            let near = closest(key, asked.iter().copied().filter(|known| !self.map.contains_key(*known)));
            let hint = near.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
            self.tell(UNKNOWN_FIELD, key, format!("is no field of a {}{hint}", self.sink.object().kind));
        }
    }

    fn here(&self) -> Node<'_> {
        Node { value: &Value::Null, path: self.path, sink: self.sink, strictness: self.strictness }
    }

    fn knows(&self, key: &'static str) {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&key) {
            asked.push(key);
        }
    }
}

fn unknown(value: &str, known: &[&str]) -> String {
    let hint = closest(value, known.iter().copied()).map(|k| format!("; did you mean `{k}`?")).unwrap_or_default();
    format!("is `{}`, known values are {}{hint}", shortened(value), known.join(", "))
}

/// A text as it may stand in a message: never longer than a line.
pub(crate) fn shortened(text: &str) -> String {
    let shown: String = text.chars().take(60).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", shown.escape_debug())
}

/// A float without fraction, as YAML's `80.0`.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}
