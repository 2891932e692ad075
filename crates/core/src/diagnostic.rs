//! Diagnostics for users: a reason, an object, a field, and what to do next.
//!
//! A diagnostic is data. It is rendered elsewhere (text, JSON, SARIF, conditions).

use std::fmt;

use crate::model::{ObjectRef, Str};
use crate::reason::{self, Reason, Severity};

/// A message about an object or a text, for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which row of the catalog.
    pub reason: Reason,
    /// How bad; the catalog's severity unless a caller knows better.
    pub severity: Severity,
    /// The object concerned; unset for text that is not an object.
    pub object: Option<ObjectRef>,
    /// The field to edit.
    pub field: FieldPath,
    /// The problem and its cause.
    pub message: String,
    /// What to do, if more specific than the help of the catalog.
    pub help: Option<String>,
    /// One command that fixes it.
    pub fix: Option<String>,
    /// The position in the source, if known.
    pub place: Option<SourcePosition>,
    /// Other places that belong to it.
    pub related: Vec<Related>,
}

/// Another object that matters to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Which object.
    pub object: ObjectRef,
    /// Which field of it.
    pub field: FieldPath,
    /// What about it.
    pub note: String,
    /// The position in the source, if known.
    pub place: Option<SourcePosition>,
}

/// A position in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// File name, or `-` for standard input.
    pub source: Str,
    /// Line, counted from 1.
    pub line: u32,
    /// Column, counted from 1.
    pub column: u32,
}

impl Diagnostic {
    /// A diagnostic on a field of an object.
    pub fn new(reason: Reason, object: &ObjectRef, field: FieldPath, message: impl Into<String>) -> Self {
        Diagnostic {
            reason,
            severity: reason.row().severity,
            object: Some(object.clone()),
            field,
            message: message.into(),
            help: None,
            fix: None,
            place: None,
            related: Vec::new(),
        }
    }

    /// A diagnostic about text that is not an object.
    pub fn of_text(reason: Reason, place: SourcePosition, message: impl Into<String>) -> Self {
        Diagnostic {
            reason,
            severity: reason.row().severity,
            object: None,
            field: FieldPath::root(),
            message: message.into(),
            help: None,
            fix: None,
            place: Some(place),
            related: Vec::new(),
        }
    }

    /// Sets what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds another object that matters.
    pub fn related(mut self, object: &ObjectRef, field: FieldPath, note: impl Into<String>) -> Self {
        self.related.push(Related { object: object.clone(), field, note: note.into(), place: None });
        self
    }

    /// The order in which diagnostics are shown: worst first, causes before what follows from them, then by object and field.
    pub fn rank(&self) -> (Severity, bool, Option<&ObjectRef>, &FieldPath, Reason) {
        (self.severity, CONSEQUENCES.contains(&self.reason), self.object.as_ref(), &self.field, self.reason)
    }
}

/// Reasons that follow from another diagnostic, which states the fix.
const CONSEQUENCES: [Reason; 4] = [
    reason::GATEWAY_NOT_ACCEPTED,
    reason::LISTENER_SET_NO_LISTENERS,
    reason::LISTENER_SET_NOT_ATTACHED,
    reason::LISTENER_REFUSED,
];

/// The way to a field of an object: `spec.listeners[2].hostname`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<Segment>);

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// An entry of a mapping.
    Key(Str),
    /// An item of a list.
    Index(usize),
}

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        FieldPath::default()
    }

    /// Reads `spec.listeners[2].hostname`, or `metadata.annotations["a.b/c"]`. Meant for constants; anything odd becomes a key.
    pub fn of(text: &str) -> Self {
        let mut path = FieldPath::root();
        let mut rest = text;
        while !rest.is_empty() {
            let (segment, after) = first_segment(rest);
            path.0.push(segment);
            rest = after.strip_prefix('.').unwrap_or(after);
        }
        path
    }

    /// One step into a mapping.
    pub fn key(&self, key: impl Into<Str>) -> Self {
        let mut path = self.clone();
        path.0.push(Segment::Key(key.into()));
        path
    }

    /// One step into a list.
    pub fn index(&self, index: usize) -> Self {
        let mut path = self.clone();
        path.0.push(Segment::Index(index));
        path
    }

    /// Whether it is this field or lies below it.
    pub fn is_within(&self, other: &FieldPath) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The steps.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }
}

impl From<&[Segment]> for FieldPath {
    fn from(segments: &[Segment]) -> Self {
        FieldPath(segments.to_vec())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if key.contains(['.', '/', '[', '"']) => write!(f, "[\"{key}\"]")?,
                Segment::Key(key) if i == 0 => write!(f, "{key}")?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

fn first_segment(text: &str) -> (Segment, &str) {
    if let Some(inner) = text.strip_prefix("[\"") {
        let end = inner.find("\"]").unwrap_or(inner.len());
        return (Segment::Key(inner[..end].into()), inner.get(end + 2..).unwrap_or_default());
    }
    if let Some(inner) = text.strip_prefix('[')
        && let Some((digits, after)) = inner.split_once(']')
        && let Ok(index) = digits.parse()
    {
        return (Segment::Index(index), after);
    }
    let end = text.char_indices().skip(1).find(|(_, c)| ".[".contains(*c)).map_or(text.len(), |(i, _)| i);
    (Segment::Key(text[..end].into()), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_they_are_printed() {
        for text in
            ["", "spec", "spec.listeners[2].hostname", "metadata.annotations[\"a.io/b\"]", "spec.rules[0].matches[1]"]
        {
            assert_eq!(FieldPath::of(text).to_string(), text);
        }
        assert_eq!(FieldPath::of("spec").key("listeners").index(2), FieldPath::of("spec.listeners[2]"));
    }
}
