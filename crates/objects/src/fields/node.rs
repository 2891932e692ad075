//! One value: what it holds, or what is told because it holds something else.

use std::cell::RefCell;

use gatepost_core::model::Kind;
use gatepost_core::reason::{INVALID_FIELD, Reason, UNKNOWN_VALUE};

use super::{Fields, ProblemCollector, Strictness, ValuePath, shortened, unknown};
use crate::shapes::Shape;
use crate::tree::Tree;

/// One value and the way to it.
#[derive(Clone, Copy)]
pub(crate) struct FieldValue<'a> {
    pub(super) value: &'a Tree<'a>,
    pub(super) path: ValuePath<'a>,
    pub(super) collector: &'a ProblemCollector,
    pub(super) strictness: Strictness,
}

impl<'a> FieldValue<'a> {
    /// The value itself, for fields that may have several types.
    pub(crate) fn value(self) -> &'a Tree<'a> {
        self.value
    }

    /// The text it holds.
    pub(crate) fn text(self) -> Option<&'a str> {
        match self.value {
            Tree::Text(text) => Some(text),
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
            Tree::Flag(flag) => Some(*flag),
            _ => self.wrong("true or false"),
        }
    }

    /// The whole number it holds.
    pub(crate) fn number(self) -> Option<i64> {
        match self.value {
            Tree::Number(number) => {
                number.as_i64().or_else(|| whole(number.as_f64()?)).or_else(|| self.wrong("a whole number"))
            }
            _ => self.wrong("a whole number"),
        }
    }

    /// Reads the mapping it holds, and tells about the fields that `read` did not ask for.
    pub(crate) fn mapping<T>(self, read: impl FnOnce(&Fields<'_>) -> T) -> Option<T> {
        let Tree::Mapping(map) = self.value else {
            return self.wrong("a mapping");
        };
        let FieldValue { path, collector, strictness, .. } = self;
        let fields = Fields { map, path, collector, strictness, asked: RefCell::default() };
        let result = read(&fields);
        fields.finish();
        Some(result)
    }

    /// The items of the list it holds.
    pub(crate) fn items(self) -> Option<&'a [Tree<'a>]> {
        match self.value {
            Tree::List(items) => Some(items),
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
        if !self.strictness.tells() {
            return;
        }
        self.collector.push(reason, || self.path.field(), |field| format!("`{field}` {}", message.as_ref()));
    }

    /// Tells that the type is wrong; the field then counts as absent.
    pub(super) fn wrong<T>(self, expected: &str) -> Option<T> {
        self.collector.wrong_types.set(self.collector.wrong_types.get() + 1);
        self.invalid(format!("is {}, {expected} is expected{}", self.found(), self.hint(expected)));
        None
    }

    /// What stands there; values of Secrets are never shown.
    fn found(self) -> String {
        match self.value {
            Tree::Null => "empty".to_owned(),
            Tree::Flag(_) | Tree::Number(_) if self.is_secret() => "no text".to_owned(),
            Tree::Flag(flag) => format!("the boolean {flag}"),
            Tree::Number(number) => format!("the number {number}"),
            Tree::Text(text) if text.len() <= 40 && !self.is_secret() => {
                format!("the text \"{}\"", text.escape_debug())
            }
            Tree::Text(_) => "a text".to_owned(),
            Tree::List(_) => "a list".to_owned(),
            Tree::Mapping(_) => "a mapping".to_owned(),
        }
    }

    fn hint(self, expected: &str) -> &'static str {
        match (self.value, expected) {
            (Tree::Flag(_), "text") => {
                "; YAML takes an unquoted y, n, yes, no, on, off, true or false for a boolean: put it in quotes"
            }
            (Tree::Number(_), "text") => "; YAML takes an unquoted number for a number: put it in quotes",
            (Tree::Text(text), "a whole number") if text.parse::<i64>().is_ok() => "; remove the quotes",
            (Tree::Text(text), "true or false") if text.parse::<bool>().is_ok() => "; remove the quotes",
            _ => "",
        }
    }

    fn is_secret(self) -> bool {
        self.collector.object().kind == Kind::Secret
    }
}

/// A float without fraction, as YAML's `80.0`.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}
