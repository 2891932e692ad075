//! The catalog of reasons, one row each.
//!
//! The kebab-case name of a row is its identity and never changes. Status, diagnostic and explanation are renderings of the same
//! row, and `docs/diagnostics/<name>.md` is its document. Nothing is decided here.

use std::fmt;

mod catalog;

pub use catalog::*;

/// How bad it is. Ordered worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something does not work, or a cluster would refuse it.
    Error,
    /// It works, and probably not as meant.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// The text form in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A row of the catalog.
#[derive(Debug)]
pub struct ReasonRow {
    /// Identity: `namespace-not-allowed`.
    pub name: &'static str,
    /// Number: `GP0204`.
    pub code: &'static str,
    /// Usual severity.
    pub severity: Severity,
    /// Whether something is not known, rather than known to be refused. What is published is then kept.
    pub is_unknown: bool,
    /// Condition type and reason it shows as in a status; empty where it shows in none.
    pub condition: (&'static str, &'static str),
    /// One sentence: what is so.
    pub summary: &'static str,
    /// One sentence: what to do.
    pub help: &'static str,
}

/// A reason: one row of [`CATALOG`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(pub(crate) u16);

impl Reason {
    /// Its row.
    pub fn row(self) -> &'static ReasonRow {
        &CATALOG[usize::from(self.0)]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it says that something is not known: it then creates nothing and deletes nothing.
    pub fn is_unknown(self) -> bool {
        self.row().is_unknown
    }

    /// Every reason, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Reason> {
        (0..CATALOG.len() as u16).map(Reason)
    }

    /// The reason with this name or number, in any case.
    pub fn find(text: &str) -> Option<Reason> {
        Reason::all().find(|r| r.name().eq_ignore_ascii_case(text) || r.row().code.eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
