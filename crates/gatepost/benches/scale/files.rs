//! Files to plan: the whole process as people run it, and how much of it is reading and how much rules.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use gatepost_objects::{ParseSettings, collect};
use gatepost_worlds::{Size, Style};

use super::cost;
use super::rows::{Row, time};
use super::sizes::Folder;
use super::{Outcome, ours};

const ROUTES: usize = 10_000;
const ROUNDS: usize = 5;
/// How much of the process the rules may be.
const SHARE: f64 = 5.0;

/// What one run costs, in milliseconds.
#[derive(Clone, Copy)]
struct Costs {
    process: f64,
    reading: f64,
    rules: f64,
}

pub(super) fn rows() -> Outcome<Vec<Row>> {
    // JSON is read some five times as quickly, so that the same rules are a larger share of it: it is shown, and has no bar.
    Ok(vec![
        Row { bar: format!("rules ≤ {SHARE} %"), ..row(Style::Yaml)? },
        Row { met: None, ..row(Style::JsonLines)? },
    ])
}

fn row(style: Style) -> Outcome<Row> {
    let folder = Folder::write(&format!("files-{style:?}"), Size::platform(ROUTES), style)?;
    let mut least = Costs::of(folder.path())?;
    for _ in 1..ROUNDS {
        least = least.or_less(Costs::of(folder.path())?);
    }
    let share = 100.0 * least.rules / least.process;
    let rest = (least.process - least.reading - least.rules).max(0.0);
    Ok(Row {
        work: format!("files to plan, 10k routes, whole process: {}", style_name(style)),
        found: format!("rules {share:.1} %"),
        bar: "–".to_owned(),
        met: Some(share <= SHARE),
        theirs: "–".to_owned(),
        ours: format!(
            "{}: reading {}, rules {}, the rest {}; {:.0} MB",
            time(least.process),
            time(least.reading),
            time(least.rules),
            time(rest),
            folder.bytes as f64 / 1e6
        ),
        notes: Vec::new(),
    })
}

fn style_name(style: Style) -> &'static str {
    match style {
        Style::Yaml => "block YAML",
        Style::JsonLines | Style::JsonDocuments => "JSON",
    }
}

impl Costs {
    fn of(folder: &Path) -> Outcome<Costs> {
        let process = process(folder)?;
        let mut texts: Vec<(Arc<str>, Vec<u8>)> = Vec::new();
        for path in gatepost_testkit::tree::files(folder) {
            texts.push((path.to_string_lossy().into(), fs::read(&path)?));
        }
        let (reading, loaded) = cost::timed(|| collect(texts, &ParseSettings::default()));
        let (rules, _) = cost::timed(|| ours::strict(&loaded.snapshot));
        Ok(Costs { process, reading, rules })
    }

    fn or_less(self, other: Costs) -> Costs {
        Costs {
            process: self.process.min(other.process),
            reading: self.reading.min(other.reading),
            rules: self.rules.min(other.rules),
        }
    }
}

/// Runs the program once and takes its processor time, in milliseconds.
fn process(folder: &Path) -> Outcome<f64> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command.args(["plan", "-f"]).arg(folder).env_clear().stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut said = String::new();
    child.stdout.take().ok_or("no output")?.read_to_string(&mut said)?;
    // The program has closed its output and is not yet waited for, so that the system still knows what it used.
    let used = fs::read_to_string(format!("/proc/{}/schedstat", child.id()));
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("plan ended with {status}:\n{said}").into());
    }
    let nanoseconds: f64 = used?.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}
