//! A tree of plain values, whose texts stay in the text they were read from wherever they stand there as they are.
//!
//! Nothing is judged here, and no tree outlives its text.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree<'t> {
    /// Nothing.
    Null,
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(Cow<'t, str>),
    /// A list.
    List(Vec<Tree<'t>>),
    /// A mapping from texts to values.
    Mapping(Mapping<'t>),
}

/// Keys with their values, as they stand in the text; no key stands there twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mapping<'t> {
    entries: Vec<(Cow<'t, str>, Tree<'t>)>,
}

impl<'t> Tree<'t> {
    /// Whether it is nothing.
    pub(crate) fn is_null(&self) -> bool {
        *self == Tree::Null
    }

    /// The text that it is.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Tree::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The mapping that it is.
    pub(crate) fn as_mapping(&self) -> Option<&Mapping<'t>> {
        match self {
            Tree::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// The list that it is.
    pub(crate) fn as_list(&self) -> Option<&[Tree<'t>]> {
        match self {
            Tree::List(items) => Some(items),
            _ => None,
        }
    }

    /// A value of the mapping that it is.
    pub(crate) fn get(&self, key: &str) -> Option<&Tree<'t>> {
        self.as_mapping()?.get(key)
    }

    /// What stands at the end of some keys.
    pub(crate) fn at(&self, keys: &[&str]) -> Option<&Tree<'t>> {
        keys.iter().try_fold(self, |tree, key| tree.get(key))
    }

    /// A number; nothing where it is none that JSON has.
    pub(super) fn float(number: f64) -> Tree<'t> {
        Number::from_f64(number).map_or(Tree::Null, Tree::Number)
    }
}

impl<'t> Mapping<'t> {
    /// The mapping of some entries, whose keys must differ.
    pub(super) fn of(entries: Vec<(Cow<'t, str>, Tree<'t>)>) -> Self {
        Mapping { entries }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Tree<'t>> {
        self.find(key).map(|(_, value)| value)
    }

    /// Where a key stands, and its value. Objects have a handful of keys in one mapping, among which looking is quickest.
    pub(crate) fn find(&self, key: &str) -> Option<(usize, &Tree<'t>)> {
        self.entries.iter().enumerate().find(|(_, (k, _))| **k == *key).map(|(at, (_, value))| (at, value))
    }

    /// Whether there is a key.
    pub(crate) fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// All keys, as they stand in the text.
    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|(key, _)| &**key)
    }

    /// All entries, by key.
    pub(crate) fn sorted(&self) -> Vec<(&str, &Tree<'t>)> {
        let mut entries: Vec<_> = self.entries.iter().map(|(key, value)| (&**key, value)).collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        entries
    }
}

impl<'v> From<&'v Value> for Tree<'v> {
    fn from(value: &'v Value) -> Self {
        match value {
            Value::Null => Tree::Null,
            Value::Bool(flag) => Tree::Flag(*flag),
            Value::Number(number) => Tree::Number(number.clone()),
            Value::String(text) => Tree::Text(Cow::Borrowed(text)),
            Value::Array(items) => Tree::List(items.iter().map(Tree::from).collect()),
            Value::Object(map) => Tree::Mapping(map.into()),
        }
    }
}

impl<'v> From<&'v Map<String, Value>> for Mapping<'v> {
    fn from(map: &'v Map<String, Value>) -> Self {
        Mapping::of(map.iter().map(|(key, value)| (Cow::Borrowed(&**key), value.into())).collect())
    }
}

impl From<Tree<'_>> for Value {
    fn from(tree: Tree<'_>) -> Self {
        match tree {
            Tree::Null => Value::Null,
            Tree::Flag(flag) => Value::Bool(flag),
            Tree::Number(number) => Value::Number(number),
            Tree::Text(text) => Value::String(text.into_owned()),
            Tree::List(items) => Value::Array(items.into_iter().map(Value::from).collect()),
            Tree::Mapping(mapping) => Value::Object(mapping.into()),
        }
    }
}

impl From<Mapping<'_>> for Map<String, Value> {
    fn from(mapping: Mapping<'_>) -> Self {
        mapping.entries.into_iter().map(|(key, value)| (key.into_owned(), value.into())).collect()
    }
}
