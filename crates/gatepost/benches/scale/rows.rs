//! The rows of the table: what was done, what each program took, the ratio, and the bar beside it.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Outcome, peer};

/// One row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    /// What was done.
    pub(super) work: String,
    /// The ratio, or whatever else the bar is about.
    pub(super) found: String,
    /// What it ought to be.
    pub(super) bar: String,
    /// Whether it is; unset where there is no bar.
    pub(super) met: Option<bool>,
    /// What external-dns took.
    pub(super) theirs: String,
    /// What Gatepost took.
    pub(super) ours: String,
    /// Lines for the document that stand in no table of bars: the section they belong to, and the line.
    #[serde(default)]
    pub(super) notes: Vec<(String, String)>,
}

impl Row {
    /// A row for people who wait for it.
    pub(super) fn line(&self) -> String {
        let met = self.verdict();
        format!(
            "{:<58} {:>12}  bar {:<28} {met:<8} theirs {:<22} ours {}",
            self.work, self.found, self.bar, self.theirs, self.ours
        )
    }

    /// A row of the document.
    pub(super) fn markdown(&self) -> String {
        let met = self.verdict();
        format!("| {} | {} | {} | {met} | {} | {} |", self.work, self.found, self.bar, self.theirs, self.ours)
    }

    fn verdict(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "not met",
            None => "",
        }
    }
}

/// Keeps the rows of a part until the document is written.
pub(super) fn keep(part: &str, rows: &[Row]) -> Outcome<()> {
    let path = kept(part);
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    Ok(fs::write(path, serde_json::to_string_pretty(rows)?)?)
}

/// The rows of a part, where it has run.
pub(super) fn recall(part: &str) -> Option<Vec<Row>> {
    serde_json::from_str(&fs::read_to_string(kept(part)).ok()?).ok()
}

fn kept(part: &str) -> PathBuf {
    peer::root().join("target/bench").join(format!("{part}.json"))
}

/// A time in the unit that suits it; given in milliseconds.
pub(super) fn time(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms >= 1000.0 => format!("{:.2} s", ms / 1e3),
        ms if ms >= 1.0 => format!("{ms:.1} ms"),
        ms if ms >= 1e-3 => format!("{:.1} µs", ms * 1e3),
        ms => format!("{:.0} ns", ms * 1e6),
    }
}

pub(super) fn times(ratio: f64) -> String {
    if ratio >= 10.0 { format!("{ratio:.0} ×") } else { format!("{ratio:.1} ×") }
}
