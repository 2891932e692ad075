//! `gatepost plan`: what ought to exist, and what is withheld and why.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gatepost_core::desired::change::Change;
use gatepost_core::desired::{self, Desired};
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::reason::Severity;

use super::flags::Publishing;
use super::{Ending, Failure, Input};
use crate::render::{Colour, markdown, plan, zonefile};
use crate::source::Objects;
use crate::view::diagnostic::DiagnosticView;
use crate::view::plan::PlanView;
use crate::view::write_json;

/// Show which records and certificates ought to exist, and which hostnames get nothing and why
///
/// Every attached hostname resolves to all addresses of its Gateway; a certificate holds exactly the names that its
/// listeners serve. With --diff, what changes against another set of files: names gained, lost, moved between Gateways, and
/// the records and certificates that follow.
#[derive(Args, Debug)]
pub(super) struct Plan {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    publishing: Publishing,
    /// Compare with the objects of another file or directory, such as the main branch
    #[arg(long, value_name = "OLD_PATH")]
    diff: Option<PathBuf>,
    /// Exit status 1 if --diff finds a difference
    #[arg(long, requires = "diff")]
    expect_no_changes: bool,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: Format,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum Format {
    /// For people: one line per record and certificate
    #[default]
    Text,
    /// For programs
    Json,
    /// For a pull request comment
    Markdown,
    /// Records as lines of a zone file
    Zonefile,
}

impl Plan {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let settings = self.publishing.settings()?;
        let objects = Objects::read(&self.input)?;
        let desired = self.desired(&objects, &settings);
        let change = match &self.diff {
            Some(path) => {
                let old = Objects::read(&Input { files: vec![path.clone()] })?;
                Some(Change::between(&self.desired(&old, &settings), &desired))
            }
            None => None,
        };
        self.write(out, &objects, &desired, change.as_ref())?;
        let changed = self.expect_no_changes && change.is_some_and(|change| !change.is_empty());
        Ok(if changed { Ending::No } else { Ending::Done })
    }

    fn desired(&self, objects: &Objects, settings: &desired::Settings) -> Desired {
        let topology = objects.topology(&self.publishing.scope());
        let mut desired = desired::build(objects.snapshot(), &topology, settings);
        let told: BTreeSet<_> = desired.diagnostics.iter().map(|d| (d.object.clone(), d.field.to_string())).collect();
        let is_new = |d: &&Diagnostic| !told.contains(&(d.object.clone(), d.field.to_string()));
        let unread = objects.problems().iter().filter(|d| d.severity <= Severity::Warning).filter(is_new).cloned();
        desired.diagnostics.extend(unread);
        desired.diagnostics.sort_by(|a, b| a.rank().cmp(&b.rank()));
        desired.diagnostics = objects.placed(std::mem::take(&mut desired.diagnostics));
        desired
    }

    fn write(
        &self,
        out: &mut dyn Write,
        objects: &Objects,
        desired: &Desired,
        change: Option<&Change>,
    ) -> Result<(), Failure> {
        match self.output {
            Format::Json => {
                let diagnostics = desired.diagnostics.iter().map(DiagnosticView::of).collect();
                write_json(out, &PlanView::of(desired, change, diagnostics))?;
            }
            Format::Text => plan::write(out, desired, change, objects, Colour::detect())?,
            Format::Markdown => markdown::write(out, desired, change)?,
            Format::Zonefile => zonefile::write(out, desired)?,
        }
        Ok(())
    }
}
