//! Conditions, as read and as made.

use super::Str;

/// One condition of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type, such as `Accepted`.
    pub kind: Str,
    /// `True`, `False` or `Unknown`.
    pub status: Str,
    /// CamelCase reason.
    pub reason: Str,
    /// For people.
    pub message: Str,
    /// The generation it speaks of.
    pub observed_generation: Option<i64>,
    /// When the status last flipped, as written.
    pub last_transition: Option<Str>,
}

impl Condition {
    /// A condition of our own; times and generations are stamped by who writes it.
    pub fn new(kind: &str, status: bool, reason: &str, message: impl Into<Str>) -> Self {
        let status = if status { "True" } else { "False" };
        Condition {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
            last_transition: None,
        }
    }

    /// Whether it holds.
    pub fn is_true(&self) -> bool {
        &*self.status == "True"
    }
}

/// The first condition of a type.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| &*c.kind == kind)
}
