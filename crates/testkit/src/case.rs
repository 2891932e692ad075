//! Golden cases: `tests/cases/<area>/<case>.yaml` with its expected output beside it in `<case>.out.yaml`.
//!
//! A case begins with a comment: the rule, and where the specification states it. Then may come a document of kind `Case`
//! with the commands to run (`status` unless told otherwise), then the objects. Every command runs twice, the second time
//! with the documents in another order, and must say the same. `GATEPOST_BLESS=1` rewrites what is expected.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde::Deserialize;

use crate::compact::Node;
use crate::program::{Program, words};
use crate::{reduce, tree};

/// The settings of a case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Always `Case`.
    pub kind: String,
    /// The commands, without `-f` and `-o`.
    #[serde(default = "only_status")]
    pub run: Vec<String>,
    /// Whether messages are compared too.
    #[serde(default)]
    pub messages: bool,
    /// Whether the order of the documents is part of the rule, so that it is left as it is.
    #[serde(default)]
    pub ordered: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { kind: "Case".into(), run: only_status(), messages: false, ordered: false }
    }
}

fn only_status() -> Vec<String> {
    vec!["status".into()]
}

/// A case as read.
#[derive(Debug)]
pub struct Case {
    path: PathBuf,
    text: String,
    settings: Settings,
}

/// Every case below `tests/cases`, each as a test. Seeded faults are not cases.
pub fn trials(program: &Program) -> Vec<Trial> {
    let root = tree::root().join("tests/cases");
    let bless = std::env::var_os("GATEPOST_BLESS").is_some();
    let is_case =
        |path: &PathBuf| path.extension().is_some_and(|e| e == "yaml") && !path.starts_with(root.join("faults"));
    let is_input = |path: &PathBuf| !path.to_string_lossy().ends_with(".out.yaml");
    let mut trials = vec![Trial::test("every output has its case", {
        let root = root.clone();
        move || no_strays(&root)
    })];
    for path in tree::files(&root).into_iter().filter(is_case).filter(is_input) {
        let name = tree::below(&root, &path).trim_end_matches(".yaml").replace('/', "::");
        let program = program.clone();
        trials.push(Trial::test(name, move || Ok(Case::read(&path)?.judge(&program, bless)?)));
    }
    trials
}

fn no_strays(root: &Path) -> Result<(), Failed> {
    for path in tree::files(root) {
        if let Some(case) = path.to_string_lossy().strip_suffix(".out.yaml")
            && !Path::new(&format!("{case}.yaml")).exists()
        {
            return Err(format!("{} has no case", path.display()).into());
        }
    }
    Ok(())
}

impl Case {
    /// Reads a case; one without a rule in front is refused.
    pub fn read(path: &Path) -> Result<Case, String> {
        let text = tree::text(path)?;
        if !text.starts_with("# ") {
            return Err(format!("{}: begins with no comment that states the rule", path.display()));
        }
        let first = text.split("\n---\n").next().unwrap_or_default();
        let settings = if first.lines().any(|line| line == "kind: Case") {
            serde_saphyr::from_str(first).map_err(|error| format!("{}: {error}", path.display()))?
        } else {
            Settings::default()
        };
        Ok(Case { path: path.to_path_buf(), text, settings })
    }

    /// Runs the case in both orders and compares, or rewrites what is expected.
    pub fn judge(&self, program: &Program, bless: bool) -> Result<(), String> {
        let said = self.say(program, &self.text)?;
        if !self.settings.ordered {
            let shuffled = self.say(program, &self.shuffled())?;
            same("in another order of documents", &said, &shuffled)?;
        }
        let expected = self.path.with_extension("out.yaml");
        if bless {
            return fs::write(&expected, said).map_err(|error| format!("{}: {error}", expected.display()));
        }
        same(&expected.display().to_string(), &tree::text(&expected)?, &said)
    }

    /// What all commands say about these documents.
    fn say(&self, program: &Program, text: &str) -> Result<String, String> {
        let mut sections = Vec::new();
        for command in &self.settings.run {
            let mut line = words(command);
            line.extend(["-f", "-", "-o", "json"].map(str::to_owned));
            let answer = program.run(&line, text)?;
            let node = reduce::answer(command, &answer, self.settings.messages)?;
            sections.push((command.clone(), node));
        }
        Ok(Node::Map(sections).render())
    }

    /// The documents in an order that depends on the name of the case alone.
    fn shuffled(&self) -> String {
        let mut documents: Vec<_> = self.text.split("\n---\n").collect();
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let mut seed = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        for last in (1..documents.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            documents.swap(last, usize::try_from(seed >> 33).unwrap_or(0) % (last + 1));
        }
        if documents.iter().eq(&self.text.split("\n---\n").collect::<Vec<_>>()) {
            documents.reverse();
        }
        documents.join("\n---\n")
    }
}

/// Compares two outputs; the message shows the first line that differs, and both texts whole.
fn same(what: &str, expected: &str, said: &str) -> Result<(), String> {
    if expected == said {
        return Ok(());
    }
    let differs = expected.lines().zip(said.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or_else(|| expected.lines().count().min(said.lines().count())) + 1;
    Err(format!("{what}: line {line} differs (GATEPOST_BLESS=1 rewrites)\n--- expected\n{expected}--- said\n{said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_loses_nothing() {
        let text = "# Rule.\na: 1\n---\nb: 2\n---\nc: 3\n---\nd: 4\n".to_owned();
        let case = Case { path: "some-case.yaml".into(), text: text.clone(), settings: Settings::default() };
        let mut before: Vec<_> = text.trim().split("\n---\n").collect();
        let shuffled = case.shuffled();
        let mut after: Vec<_> = shuffled.split("\n---\n").map(str::trim).collect();
        assert_ne!(before, after);
        before.sort_unstable();
        after.sort_unstable();
        assert_eq!(before, after);
    }
}
