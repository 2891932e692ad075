//! Label selectors: the object form of listeners and the text form of command lines.
//!
//! A selector only compares labels. Which object they belong to, and what a missing object means, is decided by the caller.

use std::fmt;

use crate::model::{Labels, Str};

mod text;

pub use text::SelectorError;

/// The label that the API server sets on every namespace: its name.
pub(crate) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// All requirements must hold; none at all matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// What must hold.
    pub requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Which label.
    pub key: Str,
    /// What about it.
    pub test: Test,
}

/// What is required of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// Present, with one of these values.
    In(Vec<Str>),
    /// Absent, or with none of these values.
    NotIn(Vec<Str>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// An unknown operator: never holds.
    Other(Str),
}

impl Selector {
    /// Reads the text form: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        text::parse(text)
    }

    /// Whether these labels satisfy every requirement.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.matches_with(|key| labels.get(key))
    }

    /// Whether the labels behind `lookup` satisfy every requirement.
    pub fn matches_with<'a>(&self, lookup: impl Fn(&str) -> Option<&'a Str>) -> bool {
        self.requirements.iter().all(|r| r.test.holds(lookup(&r.key)))
    }
}

impl Selector {
    /// Whether it depends on labels of a Namespace other than its name.
    pub(crate) fn asks_labels(&self) -> bool {
        self.requirements.iter().any(|requirement| &*requirement.key != NAME_LABEL)
    }
}

impl Test {
    fn holds(&self, value: Option<&Str>) -> bool {
        match self {
            Test::In(values) => value.is_some_and(|v| values.contains(v)),
            Test::NotIn(values) => value.is_none_or(|v| !values.contains(v)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Other(_) => false,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::In(values) if values.len() == 1 => write!(f, "{key}={}", values[0]),
            Test::In(values) => write!(f, "{key} in ({})", values.join(",")),
            Test::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", values[0]),
            Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Test::Exists => write!(f, "{key}"),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::Other(word) => write!(f, "{key} {word}"),
        }
    }
}
