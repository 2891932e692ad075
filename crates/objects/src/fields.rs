//! A cursor over one object's fields: asks for what it knows, and tells about everything else.
//!
//! A field of the wrong type is reported and counts as absent; a field nobody asked for is reported when the cursor leaves
//! the mapping. Paths are chained on the stack and only written out where there is something to tell. A cursor never fails
//! and never decides what an absent field means.

use std::cell::RefCell;

use gatepost_core::diagnostic::FieldPath;
use gatepost_core::model::{Labels, SharedList, Str};
use gatepost_core::reason::{INVALID_FIELD, Reason, UNKNOWN_FIELD, UNKNOWN_VALUE};
use smallvec::SmallVec;

use crate::pool::Pooled;
use crate::shapes::Shape;
use crate::tree::{Mapping, Tree};

mod node;
mod problem_collector;
mod suggest;

pub(crate) use node::FieldValue;
pub(crate) use problem_collector::{ProblemCollector, ValuePath};
pub(crate) use suggest::closest;

/// How strictly fields are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Unknown fields and wrong types are told.
    Full,
    /// Wrong types are told; unknown fields belong to somebody else.
    Types,
    /// Nothing is told: what others wrote is taken as far as it can be understood.
    Silent,
    /// Nothing is told: an empty mapping stands in for something that could not be read, which has been told already.
    StandIn,
}

impl Strictness {
    fn tells(self) -> bool {
        matches!(self, Strictness::Full | Strictness::Types)
    }
}

/// A cursor over the fields of one mapping.
pub(crate) struct Fields<'a> {
    map: &'a Mapping<'a>,
    path: ValuePath<'a>,
    collector: &'a ProblemCollector,
    strictness: Strictness,
    /// What was asked for, in this order; some of it more than once.
    asked: RefCell<SmallVec<[&'static str; 24]>>,
}

impl<'a> Fields<'a> {
    /// A cursor at the top of an object.
    pub(crate) fn root(map: &'a Mapping<'a>, collector: &'a ProblemCollector, strictness: Strictness) -> Self {
        Fields { map, path: ValuePath::ROOT, collector, strictness, asked: RefCell::default() }
    }

    /// The value of a field, unless it is absent or empty. Counts as asked for.
    pub(crate) fn node<'s>(&'s self, key: &'static str) -> Option<FieldValue<'s>> {
        self.knows(key);
        let value = self.map.get(key).filter(|value| !value.is_null())?;
        Some(FieldValue { value, path: self.path.key(key), collector: self.collector, strictness: self.strictness })
    }

    /// Whether this mapping stands in for something that could not be read.
    pub(crate) fn is_stand_in(&self) -> bool {
        self.strictness == Strictness::StandIn
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
        self.node(key)?.text().map(|text| self.share(text))
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
        FieldValue { strictness: Strictness::Silent, ..node }.mapping(read)
    }

    /// A list; items that `read` makes nothing of are left out.
    pub(crate) fn list<T>(&self, key: &'static str, mut read: impl FnMut(FieldValue<'_>) -> Option<T>) -> Vec<T> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let items = node.items().unwrap_or_default();
        let each = |(i, value)| {
            let path = node.path.index(i);
            read(FieldValue { value, path, ..node })
        };
        items.iter().enumerate().filter_map(each).collect()
    }

    /// A list of mappings. An item that is none is reported and read as an empty one, so that items keep their numbers.
    pub(crate) fn mappings<T>(&self, key: &'static str, mut read: impl FnMut(&Fields<'_>) -> T) -> Vec<T> {
        self.list(key, |node| {
            let found = node.mapping(&mut read);
            found.or_else(|| {
                FieldValue { value: &Tree::Mapping(Mapping::default()), strictness: Strictness::StandIn, ..node }
                    .mapping(&mut read)
            })
        })
    }

    /// A list of texts. An item that is none is reported and read as an empty one, so that items keep their numbers.
    pub(crate) fn texts(&self, key: &'static str) -> Vec<Str> {
        self.list(key, |node| Some(self.share(node.text().unwrap_or_default())))
    }

    /// A text field of a certain shape; one of another shape is reported and used as it is. A field that is there and is no
    /// text is an empty one, never an absent one: absent often means "any".
    pub(crate) fn shaped(&self, key: &'static str, shape: Shape) -> Option<Str> {
        self.node(key).map(|node| self.share(node.shaped(shape).unwrap_or_default()))
    }

    /// A text of a certain shape that must be there.
    pub(crate) fn required(&self, key: &'static str, shape: Shape) -> Str {
        self.require(key);
        self.shaped(key, shape).unwrap_or_default()
    }

    /// A mapping from text to text.
    pub(crate) fn labels(&self, key: &'static str) -> Labels {
        let pairs = self.entries(key, |_, node| node.text().map(|text| self.share(text)));
        self.collector.labels(pairs.into_iter().collect())
    }

    /// A mapping with keys that nobody can know in advance.
    pub(crate) fn entries<T>(
        &self,
        key: &'static str,
        mut read: impl FnMut(&str, FieldValue<'_>) -> Option<T>,
    ) -> Vec<(Str, T)> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Tree::Mapping(map) = node.value else { return node.wrong("a mapping").unwrap_or_default() };
        let each = |(name, value): (&'_ str, &'_ Tree<'_>)| {
            let path = node.path.key(name);
            read(name, FieldValue { value, path, ..node }).map(|value| (self.share(name), value))
        };
        map.sorted().into_iter().filter_map(each).collect()
    }

    /// A text, shared with those of other objects.
    pub(crate) fn share(&self, text: &str) -> Str {
        self.collector.text(text)
    }

    /// A list, shared with those of other objects.
    pub(crate) fn share_list<T: Pooled>(&self, items: Vec<T>) -> SharedList<T> {
        self.collector.list(items)
    }

    /// Tells that a field must be there, if it is not.
    pub(crate) fn require(&self, key: &'static str) -> bool {
        let there = self.has(key);
        if !there {
            self.invalid(key, MISSING);
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
        FieldValue { value: &Tree::Null, path, collector: self.collector, strictness: self.strictness }
            .tell(reason, message);
    }

    /// Tells that a field further down breaks a rule.
    pub(crate) fn invalid_at(&self, field: FieldPath, message: impl AsRef<str>) {
        self.tell_at(INVALID_FIELD, field, message);
    }

    /// Tells something about a field further down; the message follows its name.
    pub(crate) fn tell_at(&self, reason: Reason, field: FieldPath, message: impl AsRef<str>) {
        if self.strictness.tells() {
            self.collector.push(reason, || field, |field| format!("`{field}` {}", message.as_ref()));
        }
    }

    /// Whether a field is there and is no list.
    pub(crate) fn is_no_list(&self, key: &'static str) -> bool {
        self.node(key).is_some_and(|node| node.value().as_list().is_none())
    }

    /// The way to this mapping.
    pub(crate) fn path(&self) -> &ValuePath<'a> {
        &self.path
    }

    /// Where problems go.
    pub(crate) fn collector(&self) -> &'a ProblemCollector {
        self.collector
    }

    /// Tells about the fields that were never asked for.
    pub(crate) fn finish(&self) {
        #[cfg(test)]
        self.collector
            .asked
            .borrow_mut()
            .extend(self.asked.borrow().iter().map(|key| self.path.key(key).field().to_string()));
        if self.strictness == Strictness::Full && self.map.keys().any(|key| !self.asked.borrow().contains(&key)) {
            self.tell_unknown();
        }
    }

    fn tell_unknown(&self) {
        let asked = self.asked.borrow();
        let absent: Vec<&str> = asked.iter().copied().filter(|known| !self.map.contains_key(known)).collect();
        let unknown = self.map.sorted().into_iter().map(|(key, _)| key).filter(|key| !asked.contains(key));
        for key in unknown {
            if self.collector.is_full() {
                self.tell(UNKNOWN_FIELD, key, "");
                continue;
            }
            let hint = closest(key, absent.iter().copied());
            let hint = hint.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
            self.tell(UNKNOWN_FIELD, key, format!("is not a field of {}{hint}", self.collector.object().kind));
        }
    }

    fn here(&self) -> FieldValue<'_> {
        FieldValue { value: &Tree::Null, path: self.path, collector: self.collector, strictness: self.strictness }
    }

    fn knows(&self, key: &'static str) {
        self.asked.borrow_mut().push(key);
    }
}

/// What is said about a field that must be there, behind its name.
pub(crate) const MISSING: &str = "is missing; it must be set";

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
