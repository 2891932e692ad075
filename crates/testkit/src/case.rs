//! Golden cases: `tests/cases/<area>/<case>.yaml` with its expected output beside it in `<case>.out.yaml`.
//!
//! A case begins with a comment: the rule, and where the specification states it. Then may come a document of kind `GoldenCase`
//! with the commands to run (`status` unless told otherwise), then the objects, then steps that change them ([`steps`]).
//! Every command runs twice, the second time with the documents in another order, and must say the same.
//! `GATEPOST_BLESS=1` rewrites what is expected.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde::Deserialize;

use crate::compact::CompactNode;
use crate::program::{Program, words};
use crate::scratch::Scratch;
use crate::{reduce, tree};

mod steps;

use steps::Stage;

/// The word that stands in a command for a file with the documents of the step before.
const BEFORE: &str = "BEFORE";

/// The settings of a case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseSettings {
    /// Always `GoldenCase`.
    pub kind: String,
    /// The commands, without `-f`, and without `-o` where JSON is to be compared.
    #[serde(default = "only_status")]
    pub run: Vec<String>,
    /// Whether messages are compared too.
    #[serde(default)]
    pub messages: bool,
    /// Whether the order of the documents is part of the rule, so that it is left as it is.
    #[serde(default)]
    pub ordered: bool,
}

impl Default for CaseSettings {
    fn default() -> Self {
        CaseSettings { kind: "Case".into(), run: only_status(), messages: false, ordered: false }
    }
}

fn only_status() -> Vec<String> {
    vec!["status".into()]
}

/// A case as read.
#[derive(Debug)]
pub struct GoldenCase {
    path: PathBuf,
    settings: CaseSettings,
    stages: Vec<Stage>,
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
        trials.push(Trial::test(name, move || Ok(GoldenCase::read(&path)?.judge(&program, bless)?)));
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

impl GoldenCase {
    /// Reads a case; one without a rule in front is refused.
    pub fn read(path: &Path) -> Result<GoldenCase, String> {
        GoldenCase::parse(path, &tree::text(path)?).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    fn parse(path: &Path, text: &str) -> Result<GoldenCase, String> {
        if !text.starts_with("# ") {
            return Err("begins with no comment that states the rule".into());
        }
        let mut documents: Vec<&str> = text.split("\n---\n").collect();
        let is_settings = documents[0].lines().any(|line| line == "kind: Case");
        let settings = if is_settings { steps::read(documents.remove(0))? } else { CaseSettings::default() };
        let stages = steps::stages(&documents)?;
        Ok(GoldenCase { path: path.to_path_buf(), settings, stages })
    }

    /// Runs the case in both orders and compares, or rewrites what is expected.
    pub fn judge(&self, program: &Program, bless: bool) -> Result<(), String> {
        let said = self.say(program, Stage::text)?;
        if !self.settings.ordered {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let shuffled = self.say(program, |stage| stage.shuffled(&name))?;
            same("in another order of documents", &said, &shuffled)?;
        }
        let expected = self.path.with_extension("out.yaml");
        if bless {
            return fs::write(&expected, said).map_err(|error| format!("{}: {error}", expected.display()));
        }
        same(&expected.display().to_string(), &tree::text(&expected)?, &said)
    }

    /// What all commands say about the documents of all steps.
    fn say(&self, program: &Program, text: impl Fn(&Stage) -> String) -> Result<String, String> {
        let mut sections = Vec::new();
        let mut before = String::new();
        for stage in &self.stages {
            let now = text(stage);
            let said = self.say_stage(program, stage, &now, &before)?;
            match &stage.title {
                Some(title) => sections.push((title.clone(), CompactNode::Map(said))),
                None => sections.extend(said),
            }
            before = now;
        }
        Ok(CompactNode::Map(sections).render())
    }

    fn say_stage(
        &self,
        program: &Program,
        stage: &Stage,
        now: &str,
        before: &str,
    ) -> Result<Vec<(String, CompactNode)>, String> {
        let run = stage.run.as_ref().unwrap_or(&self.settings.run);
        let mut sections = Vec::new();
        for command in run {
            let mut line = words(command);
            line.extend(["-f", "-"].map(str::to_owned));
            if !line.iter().any(|word| word == "-o") {
                line.extend(["-o", "json"].map(str::to_owned));
            }
            let scratch = Scratch::new()?;
            for word in line.iter_mut().filter(|word| *word == BEFORE) {
                *word = scratch.file("before.yaml", before)?;
            }
            let answer = program.run(&line, now)?;
            let said = reduce::answer(command, &answer, self.settings.messages)?;
            sections.push((command.clone(), shortened(&sections, command, said)));
        }
        Ok(sections)
    }
}

/// An answer, or which command gave the very same before; plans are long.
fn shortened(before: &[(String, CompactNode)], command: &str, said: CompactNode) -> CompactNode {
    match before.iter().find(|(_, known)| command.starts_with("plan ") && *known == said) {
        Some((command, _)) => CompactNode::text(format!("the same as {command}")),
        None => said,
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
