//! Objects that other programs render: `kustomize` or `kubectl kustomize`, and `helm template`.
//!
//! The programs are found on PATH, and run without a shell. How long they may take and how much they may write is bounded; a
//! program that fails is an error with what it said. What they write is read like a file. Without them, what directories say
//! about the files in them is gathered here ([`gatepost_objects::layout`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use gatepost_objects::layout::{Layout, TextFacts, joined};

use super::file::{self, Text};
use crate::cli::Input;
use crate::error::RunError;
use crate::progress::LongWork;

mod child;

use child::{ChildLimits, run};

/// The bounds of a program that renders. Kustomize may fetch what others keep.
const LIMITS: ChildLimits = ChildLimits { time: Duration::from_secs(120), output: 256 << 20, errors: 64 << 10 };
/// The longest name of a release.
const LONGEST_RELEASE: usize = 53;
/// The most directories that are watched for the sake of one that is rendered.
const MOST_WATCHED: usize = 1_000;

/// Adds what is rendered to the texts of files, and says what directories add to the objects of all of them.
pub fn read(input: &Input, texts: &mut Vec<Text>) -> Result<Layout, RunError> {
    let facts: Vec<TextFacts> = texts.iter().map(|text| TextFacts::of(&text.name, &text.bytes)).collect();
    let named = texts.iter().map(|text| &*text.name).zip(&facts);
    let by_name: BTreeMap<&str, &[u8]> = texts.iter().map(|text| (&*text.name, &*text.bytes)).collect();
    let mut layout = Layout::of(named, |name| by_name.get(name).map(|bytes| bytes.to_vec()));
    let rendered = self::texts(input)?;
    rendered.iter().for_each(|text| layout.add_rendered(text.name.as_str().into()));
    texts.extend(rendered);
    Ok(layout)
}

/// What `-k` and `--helm` render, in the order of the command line.
pub fn texts(input: &Input) -> Result<Vec<Text>, RunError> {
    let _work = (!input.kustomize.is_empty() || !input.helm.is_empty()).then(|| LongWork::begin("rendering"));
    let kustomized = input.kustomize.iter().map(|directory| kustomize(directory));
    let charts = input.helm.iter().map(|chart| helm(chart, input));
    kustomized.chain(charts).collect()
}

/// The directories and files whose changes concern the objects. Of those that are rendered also what a kustomization uses.
pub fn watched(input: &Input) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = input.files.iter().chain(&input.helm).chain(&input.values).cloned().collect();
    let mut open: Vec<PathBuf> = input.kustomize.clone();
    let mut seen = BTreeSet::new();
    while let Some(path) = open.pop() {
        if seen.len() >= MOST_WATCHED || !seen.insert(path.clone()) {
            continue;
        }
        let folder = path.display().to_string();
        for name in ["kustomization.yaml", "kustomization.yml", "Kustomization"] {
            let Ok(text) = file::read(&path.join(name)) else { continue };
            let facts = TextFacts::of(&text.name, &text.bytes);
            let used = facts.listed().iter().filter_map(|listed| joined(&folder, listed)).map(PathBuf::from);
            open.extend(used.filter(|path| path.exists()));
        }
        all.push(path);
    }
    all
}

fn kustomize(directory: &Path) -> Result<Text, RunError> {
    check_directory("-k", directory, None)?;
    let words: Vec<OsString> = match program("kustomize") {
        Some(program) => vec![program.into(), "build".into()],
        None => vec![
            program("kubectl").ok_or_else(|| missing("-k", "kustomize` or `kubectl", "kustomize build"))?.into(),
            "kustomize".into(),
        ],
    };
    let text = rendered("-k", directory, &words, &[as_path(directory)], "")?;
    Ok(Text { name: format!("-k {}", directory.display()), bytes: text })
}

fn helm(chart: &Path, input: &Input) -> Result<Text, RunError> {
    check_directory("--helm", chart, Some("Chart.yaml"))?;
    let program = program("helm").ok_or_else(|| missing("--helm", "helm", "helm template NAME"))?;
    let words = [program.into(), "template".into(), release(chart).into()];
    let mut more = vec![as_path(chart)];
    for values in &input.values {
        more.extend(["--values".into(), values.into()]);
    }
    if let Some(namespace) = &input.default_namespace {
        more.extend(["--namespace".into(), namespace.into()]);
    }
    let advice = "; if a chart that it depends on is missing, run `helm dependency build` first";
    let text = rendered("--helm", chart, &words, &more, advice)?;
    Ok(Text { name: format!("--helm {}", chart.display()), bytes: text })
}

/// What a program writes.
fn rendered(
    flag: &str,
    directory: &Path,
    words: &[OsString],
    more: &[OsString],
    advice: &str,
) -> Result<Vec<u8>, RunError> {
    let all: Vec<&OsStr> = words.iter().chain(more).map(OsString::as_os_str).collect();
    run(&all, &LIMITS).map_err(|error| {
        let directory = directory.display();
        RunError::Unreadable(anyhow!("{flag} {directory} cannot be rendered: {error}{advice}"))
    })
}

/// A path that no program takes for a flag.
fn as_path(path: &Path) -> OsString {
    if path.is_absolute() { path.into() } else { Path::new(".").join(path).into() }
}

/// The name that a chart is rendered under: that of its directory, as far as a release may have it.
fn release(chart: &Path) -> String {
    let name =
        chart.canonicalize().ok().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    let lower = name.unwrap_or_default().to_ascii_lowercase();
    let kept: String =
        lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(LONGEST_RELEASE).collect();
    let trimmed = kept.trim_matches('-');
    if trimmed.is_empty() { "release".to_owned() } else { trimmed.to_owned() }
}

fn check_directory(flag: &str, path: &Path, holds: Option<&str>) -> Result<(), RunError> {
    let path_text = path.display();
    if !path.is_dir() {
        return Err(RunError::Unreadable(anyhow!(
            "{flag} {path_text} is not a directory; name one, or read files with -f"
        )));
    }
    match holds.filter(|file| !path.join(file).is_file()) {
        Some(file) => {
            Err(RunError::Unreadable(anyhow!("{flag} {path_text} has no {file}; name the directory of a chart")))
        }
        None => Ok(()),
    }
}

/// A program on PATH.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let is_relative = |folder: &PathBuf| !folder.is_absolute();
    // A directory of the repository that is checked must not bring the program along.
    std::env::split_paths(&path)
        .filter(|folder| !is_relative(folder))
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn missing(flag: &str, programs: &str, instead: &str) -> RunError {
    RunError::Unreadable(anyhow!(
        "{flag} needs `{programs}` on PATH, and it is not there; install it, or render elsewhere: \
         `{instead} DIR | gatepost … -f -`"
    ))
}
