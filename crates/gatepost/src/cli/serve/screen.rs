//! What `serve` shows: everything once for a newcomer, then what changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::SocketAddr;
use std::time::SystemTime;

use gatepost_core::explain::{Explanation, Publication};
use gatepost_core::lint::LintContext;
use gatepost_core::model::Str;
use gatepost_core::names::Hostname;
use gatepost_core::publication::Record;
use gatepost_core::reason::Severity;

use crate::apply::Mode;
use crate::cli::{Failure, Input, explain};
use crate::render::{Colour, explanation, inert, inert_line, plan, steps};
use crate::run::{Pass, Pipeline};
use crate::source::Objects;
use crate::source::file_cache::ChangedFile;

/// At most this many names that do not work are explained at the start.
const EXPLAINED: usize = 5;

/// At most this many changed files are named.
const FILES: usize = 5;

/// What was shown last, so that nothing is shown twice.
pub(super) struct Screen {
    /// The flags that name the objects.
    objects: String,
    /// Where they are.
    places: String,
    mode: Mode,
    /// The server that answers for each of several providers, and for the only one, which has no name.
    servers: BTreeMap<Option<Str>, String>,
    /// Whether it was said how to ask for a name.
    has_question: bool,
    held: Vec<String>,
    /// Whether the files could not be read at the last attempt.
    is_blind: bool,
}

impl Screen {
    /// An empty screen, for these files.
    pub(super) fn new(input: &Input, mode: Mode, servers: BTreeMap<Option<Str>, String>) -> Self {
        let given =
            [("-f", &input.files), ("-k", &input.kustomize), ("--helm", &input.helm), ("--values", &input.values)];
        let words =
            given.iter().flat_map(|(flag, paths)| paths.iter().map(move |path| format!("{flag} {}", path.display())));
        let places = input.files.iter().chain(&input.kustomize).chain(&input.helm);
        let places: Vec<_> = places.map(|path| path.display().to_string()).collect();
        Screen {
            objects: words.collect::<Vec<_>>().join(" "),
            places: places.join(" or "),
            mode,
            servers,
            has_question: false,
            held: Vec::new(),
            is_blind: false,
        }
    }

    /// What a newcomer sees: what is published, what is not and why, and what to try next.
    pub(super) fn greet(
        &mut self,
        out: &mut dyn Write,
        pipeline: &Pipeline,
        objects: &Objects,
        pass: &Pass,
        page: Option<SocketAddr>,
    ) -> Result<(), Failure> {
        self.tell(out, pass, true, None)?;
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
        self.advise(out, pass, shown.first())?;
        if let Some(page) = page {
            writeln!(out, "\nlook: http://{page}/")?;
            out.flush()?;
        }
        Ok(())
    }

    fn advise(&mut self, out: &mut dyn Write, pass: &Pass, broken: Option<&Hostname>) -> Result<(), Failure> {
        writeln!(out, "\ntry:")?;
        if let Some(question) = self.question(pass) {
            writeln!(out, "  {question}")?;
        }
        let server = self.servers.get(&None).filter(|_| pass.providers.is_empty());
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

    /// A command that asks for a name, at the server that answers; of a name that a provider has which was read.
    fn question(&mut self, pass: &Pass) -> Option<String> {
        let desired = pass.desired.read();
        let is_read = |record: &Record| match &record.provider {
            Some(name) => pass.providers.iter().any(|provider| provider.name == *name && provider.trouble.is_none()),
            None => pass.unread.is_empty(),
        };
        let record = desired.records.iter().find(|record| !record.name.starts_with('*') && is_read(record))?;
        let at = self.servers.get(&record.provider).and_then(|server| server.rsplit_once(':'));
        let at = at.map(|(host, port)| format!("@{} -p {port} ", host.trim_matches(['[', ']'])));
        self.has_question = true;
        Some(format!("dig {}{} {}", at.unwrap_or_default(), inert_line(&record.name), record.kind))
    }

    /// What a pass did, below the time and the files that changed. A pass that nobody caused is silent unless it did something or
    /// something else is held than before.
    pub(super) fn tell(
        &mut self,
        out: &mut dyn Write,
        pass: &Pass,
        is_new: bool,
        files: Option<&[ChangedFile]>,
    ) -> Result<(), Failure> {
        let held: Vec<String> =
            pass.plan.held.iter().map(|held| held.message.clone()).chain(pass.notes.clone()).collect();
        let is_news = is_new || !pass.plan.steps.is_empty() || held != self.held;
        self.held = held;
        if is_news {
            if let Some(files) = files {
                let again = if std::mem::take(&mut self.is_blind) { "the files are readable again; " } else { "" };
                writeln!(out, "{} {again}{}", clock(), inert_line(&changed(files)))?;
            }
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
        // Several providers are read beside the passes, so the greeting may come before any of them was.
        let is_later = files.is_some() && !pass.providers.is_empty();
        if is_later
            && !self.has_question
            && let Some(question) = self.question(pass)
        {
            writeln!(out, "try: {question}")?;
            out.flush()?;
        }
        Ok(())
    }

    /// That nothing can be done, because the files cannot be read or compared.
    pub(super) fn fail(&mut self, out: &mut dyn Write, why: &str) -> Result<(), Failure> {
        self.is_blind = true;
        writeln!(out, "{} nothing changed: {}", clock(), inert(why))?;
        out.flush()?;
        Ok(())
    }
}

/// The files that changed, in one line.
fn changed(files: &[ChangedFile]) -> String {
    let shown = files.iter().take(FILES).map(|file| format!("{} {}", file.path.display(), file.change));
    let more = files.len().saturating_sub(FILES);
    let more = (more > 0).then(|| format!("{more} more files changed"));
    let all: Vec<String> = shown.chain(more).collect();
    if all.is_empty() { "compared again".to_owned() } else { all.join(", ") }
}

/// The time of day, in UTC.
fn clock() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{:02}:{:02}:{:02} UTC", now / 3600 % 24, now / 60 % 60, now % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_named_and_the_others_counted() {
        let file = |i: usize| ChangedFile { path: format!("{i}.yaml").into(), change: "changed" };
        let files: Vec<ChangedFile> = (0..7).map(file).collect();
        assert_eq!(changed(&files[..2]), "0.yaml changed, 1.yaml changed");
        assert!(changed(&files).ends_with("4.yaml changed, 2 more files changed"));
        assert_eq!(changed(&[]), "compared again");
    }
}
