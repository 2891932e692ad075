//! Which findings of a check are shown: severities of reasons, annotations of objects, and the baseline of known findings.
//!
//! What is suppressed is counted, so that nobody takes a check for one that found nothing.

use std::collections::BTreeSet;
use std::path::Path;

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::lint::closest;
use gatepost_core::lint::suppression::Suppressions;
use gatepost_core::reason::{Reason, Severity};
use gatepost_core::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::cli::Failure;

/// The largest baseline that is read.
const LARGEST: u64 = 64 << 20;
/// Version of the shape of a baseline.
const VERSION: u32 = 1;

/// The severity of a reason; without one its findings are not shown.
pub(super) type SeverityRule = (Reason, Option<Severity>);

/// Reads `REASON=SEVERITY`.
pub(super) fn severity(text: &str) -> Result<SeverityRule, String> {
    let (name, word) = text.split_once('=').ok_or("write REASON=SEVERITY, such as unknown-field=warning")?;
    let reason = Reason::find(name.trim()).ok_or_else(|| match closest(name, Reason::all().map(Reason::name)) {
        Some(near) => format!("`{name}` is not a reason; did you mean `{near}`?"),
        None => format!("`{name}` is not a reason; `gatepost check -o json` shows the names"),
    })?;
    let severity = match word.trim() {
        "error" => Some(Severity::Error),
        "warning" => Some(Severity::Warning),
        "info" => Some(Severity::Info),
        "ignore" => None,
        other => return Err(format!("`{other}` is not a severity; use error, warning, info or ignore")),
    };
    Ok((reason, severity))
}

/// The findings of a check.
pub(super) struct Findings {
    /// Those that are shown, most severe first.
    pub(super) shown: Vec<Diagnostic>,
    /// How many others there are.
    pub(super) suppressed: usize,
}

impl Findings {
    /// Decides which of all findings are shown.
    pub(super) fn of(
        mut all: Vec<Diagnostic>,
        snapshot: &Snapshot,
        severities: &[SeverityRule],
        baseline: Option<&Baseline>,
    ) -> Findings {
        let suppressions = Suppressions::of(snapshot);
        all.extend(suppressions.problems.iter().cloned());
        let found = all.len();
        all.retain(|d| !suppressions.covers(d) && !baseline.is_some_and(|baseline| baseline.covers(d)));
        for diagnostic in &mut all {
            // The last rule wins, as it does for other flags.
            let rule = severities.iter().rfind(|(reason, _)| *reason == diagnostic.reason);
            diagnostic.severity = rule.and_then(|(_, severity)| *severity).unwrap_or(diagnostic.severity);
        }
        let is_ignored = |d: &Diagnostic| {
            let rule = severities.iter().rfind(|(reason, _)| *reason == d.reason);
            matches!(rule, Some((_, None)))
        };
        all.retain(|d| !is_ignored(d));
        all.sort_by(|a, b| a.rank().cmp(&b.rank()));
        Findings { suppressed: found - all.len(), shown: all }
    }
}

/// Known findings: a finding of the same reason, object and field is not shown.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Baseline {
    schema_version: u32,
    findings: BTreeSet<KnownFinding>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
struct KnownFinding {
    reason: String,
    /// The object, or the file where there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    file: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    field: String,
}

impl KnownFinding {
    fn of(diagnostic: &Diagnostic) -> KnownFinding {
        let object = diagnostic.object.as_ref().map(ToString::to_string);
        let file = diagnostic.place.as_ref().filter(|_| object.is_none()).map(|place| place.source.to_string());
        KnownFinding { reason: diagnostic.reason.name().to_owned(), object, file, field: diagnostic.field.to_string() }
    }
}

impl Baseline {
    /// The baseline of these findings.
    pub(super) fn of(diagnostics: &[Diagnostic]) -> Baseline {
        Baseline { schema_version: VERSION, findings: diagnostics.iter().map(KnownFinding::of).collect() }
    }

    /// Reads a baseline that was written before.
    pub(super) fn read(path: &Path) -> Result<Baseline, Failure> {
        let failed = |error: String| Failure::usage(format!("--baseline {}: {error}", path.display()));
        let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
        if size > LARGEST {
            return Err(failed("is larger than 64 MiB".to_owned()));
        }
        let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let read: Baseline = serde_json::from_slice(&text)
            .map_err(|error| failed(format!("{error}; write it anew with --write-baseline")))?;
        match read.schema_version {
            VERSION => Ok(read),
            other => {
                Err(failed(format!("has the version {other}, expected {VERSION}; write it anew with --write-baseline")))
            }
        }
    }

    /// Writes the baseline.
    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |error: String| Failure::usage(format!("--write-baseline {}: {error}", path.display()));
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.to_string()))?;
        std::fs::write(path, text + "\n").map_err(|error| failed(error.to_string()))
    }

    fn covers(&self, diagnostic: &Diagnostic) -> bool {
        self.findings.contains(&KnownFinding::of(diagnostic))
    }
}
