//! `gatepost report`: the page with its data in one file.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gatepost_core::attachment::Topology;
use gatepost_core::publication;
use gatepost_core::publication::settings::Profile;

use super::flags::Publishing;
use super::{Ending, Failure, Input};
use crate::api;
use crate::render::{inert_line, report};
use crate::source::{Objects, is_unreadable};

/// Write the page with its data into one file, to be kept by CI
///
/// `gatepost report -f manifests/ --out report.html` shows what `serve` shows of the same files: all names, each with its
/// chain and the broken link, the graph, certificates, and what every reason means. The file needs no server and loads
/// nothing; no zone is asked, so what is stored there is not known.
#[derive(Args, Debug)]
pub(super) struct ReportFile {
    #[command(flatten)]
    input: Input,
    /// The file to write; `-` for standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    publishing: Publishing,
}

impl ReportFile {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let settings = self.publishing.settings()?;
        if settings.profile != Profile::Strict {
            return Err(Failure::usage("a report explains names by the rules of the Gateway API: leave out --profile"));
        }
        let objects = Objects::read_for(&self.input, self.publishing.namespace())?;
        super::warn_unreadable(&objects);
        let topology = Topology::build(objects.snapshot(), &self.publishing.scope());
        let desired = publication::build(objects.snapshot(), &topology, &settings);
        let problems = objects.placed(objects.problems().to_vec());
        let is_whole = !problems.iter().any(is_unreadable);
        let found = api::report_answers(objects.snapshot().clone(), topology, desired, problems);
        let found = found.map_err(|error| Failure::usage(error.to_string()))?;
        let document = report::document("Gatepost report", &found.answers);
        let document = document.ok_or_else(|| Failure::usage("the page is not part of this program"))?;
        if self.out.as_os_str() == "-" {
            out.write_all(document.as_bytes())?;
        } else {
            let name = self.out.display().to_string();
            let written = std::fs::write(&self.out, document);
            written.map_err(|error| Failure::usage(format!("--out {name}: {error}")))?;
            writeln!(out, "{}: {} names, {} wrong", inert_line(&name), found.names, found.wrong)?;
        }
        Ok(if is_whole { Ending::Done } else { Ending::Incomplete })
    }
}
