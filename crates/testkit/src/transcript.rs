//! Console blocks of documents: their commands are run in a shell, and what they say is compared with what the page shows.
//!
//! A page is run from its first block to its last in one shell, in a folder of its own with a copy of `examples/` and
//! `charts/`. A block of any language whose heading ends with `file PATH` is written to that file first. A console block
//! headed `not run: REASON` is left out, one headed `needs PROGRAM…` only where a program is missing; `cluster` stands for an
//! API server of the page's own and kubectl.
//! In the expected output `…` stands for any text of a line, and a line `…` for any lines.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::markdown::{self, Block};
use crate::scratch::Scratch;
use crate::servers::helm::Helm;
use crate::servers::kube::{self, ADMIN, Cluster, Setup};
use crate::{servers, tree};

/// Heads a console block that nobody runs, with the reason behind it.
pub const NOT_RUN: &str = "not run: ";

/// Heads a console block that needs programs which a machine may lack.
pub const NEEDS: &str = "needs ";

/// The need for an API server.
const CLUSTER: &str = "cluster";

/// The need for Helm, which tests build.
const HELM: &str = "helm";

/// Heads a block that is the content of a file.
pub const FILE: &str = "file ";

/// Ports as pages show them; each run has free ones instead.
const PORTS: [&str; 4] = ["5354", "5355", "8054", "8055"];

/// No page may run longer, in seconds.
const LONGEST: &str = "120";

/// A command and the lines that it says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// The block it stands in.
    block: usize,
    command: String,
    expected: Vec<String>,
}

/// Whether a console block is run.
pub fn is_run(block: &Block) -> bool {
    block.language == "console" && !block.info.starts_with(NOT_RUN)
}

/// What a block needs.
fn needs(block: &Block) -> impl Iterator<Item = &str> {
    block.info.strip_prefix(NEEDS).unwrap_or_default().split_whitespace()
}

/// Whether this machine lacks what a block may need; never where `CI` is set, so that a missing program fails there.
fn lacks(need: &str) -> bool {
    let is_there = || match need {
        CLUSTER => kube::is_wanted(),
        HELM => Helm::find().is_ok(),
        program => servers::find(program).is_some(),
    };
    std::env::var_os("CI").is_none() && !is_there()
}

/// What blocks of a page need and this machine lacks; these blocks are left out.
pub fn missing(page: &str) -> BTreeSet<String> {
    let blocks = markdown::blocks(page);
    blocks.iter().filter(|block| is_run(block)).flat_map(needs).filter(|need| lacks(need)).map(str::to_owned).collect()
}

/// Whether a console block is run on this machine.
fn is_run_here(block: &Block) -> bool {
    is_run(block) && !needs(block).any(lacks)
}

/// Runs a page and compares, or rewrites what it shows.
pub fn judge(path: &Path, program: &Path, bless: bool) -> Result<(), String> {
    let page = tree::text(path)?;
    let blocks = markdown::blocks(&page);
    let steps = steps(&blocks)?;
    let said = run(&blocks, &steps, program)?;
    let wrong: Vec<usize> = (0..steps.len()).filter(|&at| !agrees(&steps[at].expected, &said[at])).collect();
    if bless && !wrong.is_empty() {
        let text = rewritten(&page, &blocks, &steps, &said);
        return fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    let mut report = String::new();
    for at in wrong {
        let (step, line) = (&steps[at], blocks[steps[at].block].line + 1);
        let place = format!("{}: in the block at line {line}", path.display());
        let (shown, said) = (step.expected.join("\n"), said[at].join("\n"));
        let _ = writeln!(report, "{place}\n$ {}\n--- the page shows\n{shown}\n--- said\n{said}", step.command);
    }
    if report.is_empty() { Ok(()) } else { Err(report + "(GATEPOST_BLESS=1 rewrites)") }
}

fn steps(blocks: &[Block]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for (number, block) in blocks.iter().enumerate().filter(|(_, block)| is_run_here(block)) {
        let mut goes_on = false;
        for line in block.text.lines() {
            match (line.strip_prefix("$ "), steps.last_mut().filter(|step| step.block == number)) {
                (_, Some(step)) if goes_on => step.command += &format!("\n{line}"),
                (Some(command), _) => {
                    steps.push(Step { block: number, command: command.to_owned(), expected: Vec::new() });
                }
                (None, Some(step)) => {
                    step.expected.push(line.to_owned());
                    continue;
                }
                (None, None) => return Err(format!("line {}: a console block begins with `$ `", block.line + 2)),
            }
            goes_on = line.ends_with('\\');
        }
    }
    Ok(steps)
}

/// What each step says, line by line; standard error included.
fn run(blocks: &[Block], steps: &[Step], program: &Path) -> Result<Vec<Vec<String>>, String> {
    let scratch = Scratch::new()?;
    let folder = scratch.path().join("work");
    for name in ["examples", "charts"] {
        copy(&tree::root().join(name), &folder.join(name))?;
    }
    let tools = scratch.path().join("bin");
    fs::create_dir_all(&tools).map_err(|error| error.to_string())?;
    let needed: BTreeSet<&str> = steps.iter().flat_map(|step| needs(&blocks[step.block])).collect();
    let link = |name: &str, program: &Path| {
        std::os::unix::fs::symlink(program, tools.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    for name in ["gatepost", "kubectl-gatepost"] {
        link(name, program)?;
    }
    if needed.contains(HELM) {
        link(HELM, Helm::find().map_err(|error| error.to_string())?.program())?;
    }
    let cluster = needed.contains(CLUSTER).then(|| Cluster::start(&Setup::default())).transpose();
    let cluster = cluster.map_err(|error| format!("no cluster: {error}"))?;
    if let Some(cluster) = &cluster {
        link("kubectl", &cluster.kubectl_program())?;
    }
    let ports = Ports::new()?;
    for block in blocks {
        if let Some(path) = block.info.strip_prefix(FILE) {
            scratch.file(&format!("work/{path}"), &ports.real(&block.text))?;
        }
    }
    let path = format!("{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", tools.display());
    let mut shell = Command::new("timeout");
    shell.args([LONGEST, "bash", "-c", &script(steps, &ports)]).current_dir(&folder).stdin(Stdio::null());
    shell.env_clear().envs([("PATH", &*path), ("NO_COLOR", "1"), ("LC_ALL", "C.UTF-8"), ("HOME", "..")]);
    shell.envs(cluster.iter().map(|cluster| ("KUBECONFIG", cluster.kubeconfig(ADMIN))));
    let done = shell.output().map_err(|error| format!("bash: {error}"))?;
    let text = ports.shown(&String::from_utf8_lossy(&done.stdout));
    let parts: Vec<&str> = text.split("\n@@step@@\n").skip(1).collect();
    if parts.len() != steps.len() {
        return Err(format!(
            "the shell ended within {LONGEST} s after {} of {} commands:\n{text}",
            parts.len(),
            steps.len()
        ));
    }
    Ok(parts.into_iter().map(|part| part.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()).collect())
}

/// One script for all steps; what runs in the background ends with it.
fn script(steps: &[Step], ports: &Ports) -> String {
    let mut script = "exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT TERM\nstatus=0\n".to_owned();
    for step in steps {
        let command = ports.real(&step.command);
        let _ = write!(script, "printf '\\n@@step@@\\n'\n(exit $status)\n{command}\nstatus=$?\n");
    }
    script
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    for path in tree::files(from) {
        let target: PathBuf = to.join(tree::below(from, &path));
        let made = fs::create_dir_all(target.parent().unwrap_or(to)).and_then(|()| fs::copy(&path, &target));
        made.map_err(|error| format!("{}: {error}", target.display()))?;
    }
    Ok(())
}

/// Free ports in place of those that pages show.
struct Ports(Vec<(&'static str, String)>);

impl Ports {
    fn new() -> Result<Ports, String> {
        let free = |shown: &'static str| servers::free_address().map(|address| (shown, address.port().to_string()));
        PORTS.into_iter().map(free).collect::<Result<_, _>>().map(Ports).map_err(|error| error.to_string())
    }

    fn real(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(shown, real))
    }

    fn shown(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(real, shown))
    }
}

/// Whether the lines are as expected.
fn agrees<T: AsRef<str>>(expected: &[T], said: &[String]) -> bool {
    match expected.split_first() {
        None => said.is_empty(),
        Some((line, rest)) if line.as_ref() == "…" => (0..=said.len()).any(|skipped| agrees(rest, &said[skipped..])),
        Some((line, rest)) => {
            said.split_first().is_some_and(|(first, others)| fits(line.as_ref(), first) && agrees(rest, others))
        }
    }
}

/// Whether a line is as expected, where `…` stands for any text.
fn fits(expected: &str, said: &str) -> bool {
    let Some((head, tail)) = expected.split_once('…') else { return expected == said };
    let Some(rest) = said.strip_prefix(head) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| fits(tail, &rest[at..]))
}

/// The page with what was said in place of what it shows, where the two differ.
fn rewritten(page: &str, blocks: &[Block], steps: &[Step], said: &[Vec<String>]) -> String {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    for number in (0..blocks.len()).rev().filter(|&number| is_run_here(&blocks[number])) {
        let block = &blocks[number];
        let mut new = Vec::new();
        for (step, said) in steps.iter().zip(said).filter(|(step, _)| step.block == number) {
            new.extend(format!("$ {}", step.command).lines().map(str::to_owned));
            new.extend(if agrees(&step.expected, said) { step.expected.clone() } else { said.clone() });
        }
        let indented = |line: String| if line.is_empty() { line } else { " ".repeat(block.indent) + &line };
        let first = block.line + 1;
        lines.splice(first..first + block.text.lines().count(), new.into_iter().map(indented));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn dots_stand_for_text_and_for_lines() {
        assert!(agrees(&["plan …: 1", "…", "end"], &said(&["plan 3f: 1", "a", "b", "end"])));
        assert!(agrees(&["…"], &said(&[])));
        assert!(!agrees(&["plan …: 1"], &said(&["plan 3f: 2"])));
        assert!(!agrees::<&str>(&[], &said(&["more"])));
        assert!(!agrees(&["less"], &said(&[])));
    }

    #[test]
    fn a_command_has_the_lines_behind_it_and_may_go_on() {
        let page = "```console\n$ a \\\n  b\nc\n$ d\n```\n```console not run: no\n$ e\n```\n";
        let found = steps(&markdown::blocks(page)).unwrap_or_default();
        let step =
            |command: &str, expected: &[&str]| Step { block: 0, command: command.into(), expected: said(expected) };
        assert_eq!(found, [step("a \\\n  b", &["c"]), step("d", &[])]);
        assert!(steps(&markdown::blocks("```console\nno command\n```\n")).is_err());
    }

    #[test]
    fn a_page_is_rewritten_where_it_differs() {
        let page = "x\n\n  ```console\n  $ a\n  …\n  $ b\n  old\n  ```\ny\n";
        let blocks = markdown::blocks(page);
        let steps = steps(&blocks).unwrap_or_default();
        let new = rewritten(page, &blocks, &steps, &[said(&["1", "2"]), said(&["new"])]);
        assert_eq!(new, page.replace("old", "new"));
    }
}
