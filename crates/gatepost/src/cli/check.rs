//! `gatepost check`: what is wrong, with file and line.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::reason::Severity;
use serde::Serialize;

use super::flags::providers::FurtherProviders;
use super::rbac::Features;
use super::{Ending, Failure, Input};

use crate::render::{Colour, github, inert_line, junit, sarif, snippet};
use crate::source::Objects;
use crate::view::diagnostic::DiagnosticView;
use crate::view::write_json;

mod findings;
mod pre;

use findings::{Baseline, Findings};

/// Check objects and attachment: what is wrong, where, and what to change
///
/// Finds what a cluster would refuse, listeners that conflict, routes that do not attach, hostnames that nobody serves,
/// references that lead nowhere. Exit status 1 if there is an error; with --strict also for warnings.
#[derive(Args, Debug)]
pub(super) struct Check {
    #[command(flatten)]
    input: Input,
    /// Only what concerns objects of this namespace, or no object in particular
    #[arg(short = 'n', long)]
    namespace: Option<String>,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: CheckFormat,
    /// Warnings lead to exit status 1, too
    #[arg(long, env = "GATEPOST_STRICT")]
    strict: bool,
    /// Files without any object that is read here are no error
    #[arg(long, env = "GATEPOST_ALLOW_EMPTY")]
    allow_empty: bool,
    /// Instead ask a cluster whether these credentials have every right that a controller needs; exit status 1 if one is missing
    #[arg(long, conflicts_with_all = ["files", "kustomize", "helm"])]
    pre: bool,
    /// Severity of a reason: error, warning, info or ignore; may be repeated
    #[arg(long, value_name = "REASON=SEVERITY", value_parser = findings::severity, env = "GATEPOST_SEVERITY", value_delimiter = ',')]
    severity: Vec<findings::SeverityRule>,
    /// File with known findings, which are counted and not shown
    #[arg(long, value_name = "FILE", env = "GATEPOST_BASELINE")]
    baseline: Option<PathBuf>,
    /// Write the findings to this file, for --baseline, and end with exit status 0
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    write_baseline: Option<PathBuf>,
    #[command(flatten)]
    features: Features,
    #[command(flatten)]
    further: FurtherProviders,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum CheckFormat {
    /// For people: snippets as rustc shows them
    #[default]
    Text,
    /// For programs
    Json,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// For GitHub workflows: annotations
    Github,
    /// For CI servers: JUnit XML
    Junit,
}

/// Version of the JSON shape; it grows only where a field changes its meaning or goes.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckView {
    schema_version: u32,
    diagnostics: Vec<DiagnosticView>,
    errors: usize,
    warnings: usize,
    infos: usize,
    suppressed: usize,
    objects: usize,
    passed_over: std::collections::BTreeMap<String, usize>,
}

impl Check {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        if self.pre {
            return pre::run(&self.input.cluster, &self.features, matches!(self.output, CheckFormat::Json), out);
        }
        let objects = Objects::read_for(&self.input, self.namespace.as_deref())?;
        if !self.allow_empty && self.input.has_files() && objects.count() == 0 && objects.problems().is_empty() {
            return Err(Failure::Unreadable(nothing_to_check(&objects)));
        }
        let topology = objects.topology(&Default::default());
        let mut diagnostics = objects.diagnostics(&topology, &self.further.rule());
        if let Some(namespace) = &self.namespace {
            diagnostics.retain(|d| d.object.as_ref().is_none_or(|object| **object.namespace() == **namespace));
        }
        let baseline = self.baseline.as_deref().map(Baseline::read).transpose()?;
        let Findings { shown: diagnostics, suppressed } =
            Findings::of(diagnostics, objects.snapshot(), &self.severity, baseline.as_ref());
        let diagnostics = objects.placed(diagnostics);
        if let Some(path) = &self.write_baseline {
            Baseline::of(&diagnostics).write(path)?;
            writeln!(
                out,
                "{} findings are in the baseline {}",
                diagnostics.len(),
                inert_line(&path.display().to_string())
            )?;
            return Ok(Ending::Done);
        }
        let checked = Checked { objects: &objects, diagnostics: &diagnostics, suppressed };
        match self.output {
            CheckFormat::Text => checked.write_text(out)?,
            CheckFormat::Json => write_json(out, &checked.view())?,
            CheckFormat::Sarif => write_json(out, &sarif::log(&diagnostics))?,
            CheckFormat::Github => {
                diagnostics.iter().try_for_each(|d| writeln!(out, "{}", github::annotation(d)))?;
            }
            CheckFormat::Junit => write!(out, "{}", junit::report(&diagnostics, self.strict))?,
        }
        let worst = if self.strict { Severity::Warning } else { Severity::Error };
        let bad = diagnostics.iter().any(|d| d.severity <= worst);
        // The process ends here: the system takes all memory back at once, much faster than object by object.
        std::mem::forget((objects, topology, diagnostics));
        Ok(if bad { Ending::No } else { Ending::Done })
    }
}

/// Why an empty input is a failure: a check of nothing succeeds even where the path is wrong.
fn nothing_to_check(objects: &Objects) -> anyhow::Error {
    let others: usize = objects.passed_over().values().sum();
    anyhow::anyhow!(
        "the files hold no objects to check ({others} of other kinds); correct the path, or give --allow-empty"
    )
}

/// What a check found.
struct Checked<'a> {
    objects: &'a Objects,
    diagnostics: &'a [Diagnostic],
    suppressed: usize,
}

impl Checked<'_> {
    fn view(&self) -> CheckView {
        CheckView {
            schema_version: SCHEMA_VERSION,
            diagnostics: self.diagnostics.iter().map(DiagnosticView::of).collect(),
            errors: count(self.diagnostics, Severity::Error),
            warnings: count(self.diagnostics, Severity::Warning),
            infos: count(self.diagnostics, Severity::Info),
            suppressed: self.suppressed,
            objects: self.objects.count(),
            passed_over: self.objects.passed_over().clone(),
        }
    }

    fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let colour = Colour::detect();
        for diagnostic in self.diagnostics {
            writeln!(out, "{}\n", snippet::render(diagnostic, self.objects, colour))?;
        }
        writeln!(out, "{}", self.summary())
    }

    fn summary(&self) -> String {
        let (errors, warnings) = (count(self.diagnostics, Severity::Error), count(self.diagnostics, Severity::Warning));
        let infos = count(self.diagnostics, Severity::Info);
        let passed_over: usize = self.objects.passed_over().values().sum();
        let mark = if errors == 0 { "✓" } else { "✗" };
        let other = match passed_over {
            0 => String::new(),
            n => format!(", {n} of other kinds passed over"),
        };
        let suppressed = match self.suppressed {
            0 => String::new(),
            n => format!(", {n} suppressed"),
        };
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let objects = self.objects.count();
        format!(
            "{mark} {errors} error{}, {warnings} warning{}, {infos} note{}{suppressed} in {objects} object{}{other}",
            plural(errors),
            plural(warnings),
            plural(infos),
            plural(objects)
        )
    }
}

fn count(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|d| d.severity == severity).count()
}
