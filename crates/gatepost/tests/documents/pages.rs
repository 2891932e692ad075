//! Pages: console blocks say what they show, and YAML blocks with objects are such that `check` finds no error in them.

use std::path::{Path, PathBuf};

use gatepost_testkit::markdown::{self, Block};
use gatepost_testkit::program::{Program, words};
use gatepost_testkit::{Failed, Trial, transcript, tree};
use serde_json::Value;

/// Reasons that say that another object is not among the documents, as is natural for a part of a page.
const NOT_ALONE: [&str; 6] = [
    "parent-missing",
    "listener-set-parent-missing",
    "policy-target-missing",
    "backend-missing",
    "certificate-missing",
    // Settings stand beside the objects.
    "provider-not-found",
];

/// The pages for users; those of the reasons have tests of their own.
pub(crate) fn pages() -> Vec<PathBuf> {
    let root = tree::root();
    let mut pages: Vec<PathBuf> = ["README.md", "SECURITY.md"].map(|name| root.join(name)).into();
    for folder in ["docs", "examples"] {
        let files = tree::files(&root.join(folder)).into_iter();
        let ours = files.filter(|path| !path.starts_with(root.join("docs/diagnostics")));
        pages.extend(ours.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages
}

pub(crate) fn trials(program: &Program) -> Vec<Trial> {
    let mut trials = Vec::new();
    for path in pages() {
        let name = tree::below(&tree::root(), &path);
        let page = tree::text(&path).unwrap_or_default();
        let blocks = markdown::blocks(&page);
        if blocks.iter().any(transcript::is_run) {
            trials.push(console(&name, path, &page));
        }
        for block in blocks.into_iter().filter(holds_objects) {
            let (program, line) = (program.clone(), block.line + 1);
            trials.push(Trial::test(format!("{name}::yaml at line {line}"), move || check(&program, &block.text)));
        }
    }
    trials
}

fn console(name: &str, path: PathBuf, page: &str) -> Trial {
    let missing: Vec<String> = transcript::missing(page).into_iter().collect();
    let without = if missing.is_empty() { String::new() } else { format!(" (without {})", missing.join(", ")) };
    let bless = std::env::var_os("GATEPOST_BLESS").is_some();
    let program = Path::new(env!("CARGO_BIN_EXE_gatepost"));
    Trial::test(format!("{name}::console{without}"), move || Ok(transcript::judge(&path, program, bless)?))
}

pub(crate) fn holds_objects(block: &Block) -> bool {
    let has = |key: &str| block.text.lines().any(|line| line.starts_with(key));
    block.language == "yaml" && has("apiVersion:") && has("kind:")
}

fn check(program: &Program, documents: &str) -> Result<(), Failed> {
    let answer = program.run(&words("check --allow-empty -f - -o json"), documents)?;
    let said: Value = serde_json::from_str(&answer.output).map_err(|error| format!("{error}: {}", answer.errors))?;
    let all = said["diagnostics"].as_array().ok_or("no diagnostics")?;
    let is_wrong = |found: &&Value| {
        found["severity"] != "info" && !NOT_ALONE.contains(&found["reason"].as_str().unwrap_or_default())
    };
    let wrong: Vec<&Value> = all.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{documents}");
    Ok(())
}
