//! Seeded faults: `tests/cases/faults/<name>/`, manifests with one planted mistake and `expect.yaml`, which says what the
//! program must name. A person who reads three lines must know what to open and what to change there. A line that is folded to
//! fit a terminal counts once.

use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use serde::Deserialize;

use crate::program::{Program, words};
use crate::tree;

/// How many lines a person reads.
const LINES: usize = 3;

/// `expect.yaml`: what to run, and what its first lines must name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The command, without `-f`.
    pub run: String,
    /// The object to open.
    pub object: String,
    /// The field to change.
    pub field: String,
    /// The exit status.
    #[serde(default = "no")]
    pub exit: i32,
}

/// "The answer is no."
fn no() -> i32 {
    1
}

/// Every folder below `tests/cases/faults`, each as a test.
pub fn trials(program: &Program) -> Vec<Trial> {
    let folders = tree::entries(&tree::root().join("tests/cases/faults"));
    folders.into_iter().map(|folder| trial(program.clone(), folder)).collect()
}

fn trial(program: Program, folder: PathBuf) -> Trial {
    let name = format!("faults::{}", folder.file_name().unwrap_or_default().to_string_lossy());
    Trial::test(name, move || Ok(judge(&program, &folder)?))
}

/// Runs the command on the manifests and looks for object and field in its first lines.
pub fn judge(program: &Program, folder: &Path) -> Result<(), String> {
    let text = tree::text(&folder.join("expect.yaml"))?;
    let expected: Expectation = serde_saphyr::from_str(&text).map_err(|error| format!("expect.yaml: {error}"))?;
    if !text.starts_with("# ") {
        return Err("expect.yaml: begins with no comment that says what is planted".into());
    }
    let answer = program.run_in(folder, &command(&expected, folder), "")?;
    let first: Vec<_> = unfolded(&answer.output).into_iter().take(LINES).collect();
    let names = |what: &str| first.iter().any(|line| line.contains(what));
    if answer.exit == expected.exit && names(&expected.object) && names(&expected.field) {
        return Ok(());
    }
    Err(format!("{expected:?}, but it ended with {} and said\n{}{}", answer.exit, answer.output, answer.errors))
}

/// Lines without the folds, each of which is indented by four more than its line.
pub(crate) fn unfolded(text: &str) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        match lines.last_mut() {
            Some(last) if indent(line) == indent(last) + 4 => last.extend([" ", line.trim_start()]),
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

fn command(expected: &Expectation, folder: &Path) -> Vec<String> {
    let mut line = words(&expected.run);
    for manifest in tree::entries(folder).iter().filter(|path| !path.ends_with("expect.yaml")) {
        line.extend(["-f".to_owned(), tree::below(folder, manifest)]);
    }
    line
}
