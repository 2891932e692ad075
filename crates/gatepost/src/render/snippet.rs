//! A diagnostic as rustc would show it: what, where, the line it stands in, what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use gatepost_core::diagnostic::{Diagnostic, SourcePosition};
use gatepost_core::reason::Severity;

use super::{Colour, WIDTH, folded, inert, inert_line};
use crate::source::Sources;

/// Lines longer than this are named, not shown.
const LONGEST_LINE: usize = 2_000;

/// Object, field and message in one line.
pub fn headline(diagnostic: &Diagnostic) -> String {
    let object = diagnostic.object.as_ref().map(ToString::to_string);
    let field = Some(diagnostic.field.to_string()).filter(|field| !field.is_empty());
    let subject: Vec<_> = [object, field].into_iter().flatten().collect();
    match subject.is_empty() {
        true => diagnostic.message.clone(),
        false => format!("{}: {}", subject.join(" "), diagnostic.message),
    }
}

/// What to do about a diagnostic: its help, and the command that fixes it.
pub fn advice(diagnostic: &Diagnostic) -> String {
    let help = diagnostic.help.as_deref().unwrap_or(diagnostic.reason.row().help);
    match &diagnostic.fix {
        Some(fix) => format!("help: {help}\nfix: {fix}"),
        None => format!("help: {help}"),
    }
}

/// A diagnostic with its snippets.
pub fn render(diagnostic: &Diagnostic, sources: &dyn Sources, colour: Colour) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let row = diagnostic.reason.row();
    let title = inert(&headline(diagnostic));
    let mut snippets = Vec::new();
    let shown = |place: &Option<SourcePosition>| place.as_ref().and_then(|place| SnippetLine::of(place, sources));
    snippets.extend(shown(&diagnostic.place).map(|line| (line, None)));
    for related in &diagnostic.related {
        let note = inert(&format!("{} {}: {}", related.object, related.field, related.note));
        snippets.extend(shown(&related.place).map(|line| (line, Some(note))));
    }
    let mut group = Group::with_title(level.primary_title(title).id(row.name));
    if let Some(place) = diagnostic.place.as_ref().filter(|place| SnippetLine::of(place, sources).is_none()) {
        let origin =
            Origin::path(inert_line(&place.source)).line(place.line as usize).char_column(place.column as usize);
        group = group.element(origin);
    }
    for (line, note) in &snippets {
        group = group.element(line.snippet(note.as_deref()));
    }
    for related in diagnostic.related.iter().filter(|r| r.place.is_none()) {
        let note = inert(&format!("{} {}: {}", related.object, related.field, related.note));
        group = group.element(Level::NOTE.message(note));
    }
    let help = inert(diagnostic.help.as_deref().unwrap_or(row.help));
    group = group.element(Level::HELP.message(help));
    if let Some(fix) = &diagnostic.fix {
        group = group.element(Level::HELP.with_name("fix").message(inert(fix)));
    }
    let text = renderer(colour).render(&[group]).to_string();
    text.lines().enumerate().flat_map(|(at, line)| fitting(line, at == 0)).collect::<Vec<_>>().join("\n")
}

fn renderer(colour: Colour) -> Renderer {
    match colour {
        Colour::On => Renderer::styled(),
        Colour::Off => Renderer::plain(),
    }
    .term_width(WIDTH)
}

/// A line in pieces that fit a terminal, if it is a sentence. A command stays in one piece, so that it can be copied.
fn fitting(line: &str, is_title: bool) -> Vec<String> {
    let is_sentence =
        is_title || ["= help", "= note", "help", "note"].iter().any(|start| plain(line).starts_with(start));
    if is_sentence { folded(line) } else { vec![line.to_owned()] }
}

/// The text of a line without colours and indent.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut is_escape = false;
    for c in line.chars() {
        match (is_escape, c) {
            (true, 'm') => is_escape = false,
            (true, _) => {}
            (false, '\u{1b}') => is_escape = true,
            (false, _) => text.push(c),
        }
    }
    text.trim_start().to_owned()
}

/// One line of a source, made inert, with what is meant in it.
struct SnippetLine {
    path: String,
    number: usize,
    text: String,
    span: std::ops::Range<usize>,
}

impl SnippetLine {
    fn of(place: &SourcePosition, sources: &dyn Sources) -> Option<SnippetLine> {
        let line = sources.line(&place.source, place.line).filter(|line| line.len() <= LONGEST_LINE)?;
        let column = place.column.saturating_sub(1) as usize;
        let at = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        let start = inert(&line[..at]).len();
        let text = inert(&line);
        let end = text.trim_end().len().max(start);
        Some(SnippetLine { path: inert_line(&place.source), number: place.line as usize, text, span: start..end })
    }

    fn snippet<'a>(&'a self, note: Option<&'a str>) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let kind = if note.is_some() { AnnotationKind::Context } else { AnnotationKind::Primary };
        let annotation = kind.span(self.span.clone());
        let annotation = match note {
            Some(note) => annotation.label(note),
            None => annotation,
        };
        Snippet::source(&*self.text).path(&*self.path).line_start(self.number).annotation(annotation)
    }
}
