//! What `serve` shows: everything once for a newcomer, then what changes.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;

use gatepost_core::explain::{Explanation, Publication};
use gatepost_core::lint::LintContext;
use gatepost_core::names::Hostname;
use gatepost_core::reason::Severity;

use crate::apply::Mode;
use crate::cli::{Failure, Input, explain};
use crate::render::{Colour, explanation, inert, inert_line, plan, steps};
use crate::run::{Pass, Pipeline};
use crate::source::Objects;

/// At most this many names that do not work are explained at the start.
const EXPLAINED: usize = 5;

/// What was shown last, so that nothing is shown twice.
pub(super) struct Screen {
    /// The flags that name the objects.
    objects: String,
    /// Where they are.
    places: String,
    mode: Mode,
    held: Vec<String>,
}

impl Screen {
    /// An empty screen, for these files.
    pub(super) fn new(input: &Input, mode: Mode) -> Self {
        let given =
            [("-f", &input.files), ("-k", &input.kustomize), ("--helm", &input.helm), ("--values", &input.values)];
        let words =
            given.iter().flat_map(|(flag, paths)| paths.iter().map(move |path| format!("{flag} {}", path.display())));
        let places = input.files.iter().chain(&input.kustomize).chain(&input.helm);
        let places: Vec<_> = places.map(|path| path.display().to_string()).collect();
        Screen { objects: words.collect::<Vec<_>>().join(" "), places: places.join(" or "), mode, held: Vec::new() }
    }

    /// What a newcomer sees: what is published, what is not and why, and what to try next.
    pub(super) fn greet(
        &mut self,
        out: &mut dyn Write,
        pipeline: &Pipeline,
        objects: &Objects,
        pass: &Pass,
        server: Option<&str>,
        page: Option<SocketAddr>,
    ) -> Result<(), Failure> {
        self.tell(out, pass, true)?;
        let topology = objects.topology(&pipeline.scope);
        let world = LintContext { snapshot: objects.snapshot(), topology: &topology };
        let mut shown = BTreeSet::new();
        let desired = pass.desired.read();
        let bad = desired.withheld.iter().filter(|w| w.reason.row().severity <= Severity::Warning);
        for withheld in bad {
            let Ok(name) = Hostname::parse(&withheld.hostname) else { continue };
            if shown.len() < EXPLAINED && shown.insert(name.clone()) {
                let mut explained = Explanation::of(world, &name);
                let mut published = Publication::of(world, &desired, &mut explained);
                explain::place(objects, &mut explained, &mut published);
                write!(out, "\n{}", explanation::render(&explained, &published, Colour::detect()))?;
            }
        }
        self.advise(out, pass, server, shown.first())?;
        if let Some(page) = page {
            writeln!(out, "\nlook: http://{page}/")?;
            out.flush()?;
        }
        Ok(())
    }

    fn advise(
        &self,
        out: &mut dyn Write,
        pass: &Pass,
        server: Option<&str>,
        broken: Option<&Hostname>,
    ) -> Result<(), Failure> {
        writeln!(out, "\ntry:")?;
        let desired = pass.desired.read();
        if let Some(record) = desired.records.iter().find(|record| !record.name.starts_with('*')) {
            let at = server.and_then(|server| server.rsplit_once(':'));
            let at = at.map(|(host, port)| format!("@{} -p {port} ", host.trim_matches(['[', ']'])));
            writeln!(out, "  dig {}{} {}", at.unwrap_or_default(), inert_line(&record.name), record.kind)?;
        }
        if let Some(server) = server.filter(|server| server.parse::<SocketAddr>().is_ok()) {
            writeln!(out, "  gatepost verify {} --server {server}", self.objects)?;
        }
        if let Some(name) = broken {
            writeln!(out, "  gatepost explain {name} {}", self.objects)?;
        }
        writeln!(out, "  edit a file below {} and watch this screen", self.places)?;
        out.flush()?;
        Ok(())
    }

    /// What a pass did. A pass that nobody caused is silent unless it did something or something else is held than before.
    pub(super) fn tell(&mut self, out: &mut dyn Write, pass: &Pass, is_new: bool) -> Result<(), Failure> {
        let held: Vec<String> =
            pass.plan.held.iter().map(|held| held.message.clone()).chain(pass.notes.clone()).collect();
        let is_news = is_new || !pass.plan.steps.is_empty() || held != self.held;
        self.held = held;
        if is_news {
            let outcome = (self.mode == Mode::Act).then_some(&pass.outcome);
            steps::write(out, &pass.plan, outcome, Colour::detect())?;
            if outcome.is_none() {
                writeln!(out, "nothing was written (--dry-run)")?;
            }
            for note in &pass.notes {
                writeln!(out, "  note: {}", inert(note))?;
            }
            writeln!(out, "{}", plan::summary(&pass.desired.read()))?;
            out.flush()?;
        }
        Ok(())
    }
}
