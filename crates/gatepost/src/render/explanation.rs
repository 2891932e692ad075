//! `explain` as text: one screen, the first broken link first.

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::explain::{Chain, Explanation, Link};

use super::{Colour, inert};

/// How many chains are shown in full.
const SHOWN: usize = 5;

/// The explanation of a hostname up to attachment.
pub fn render(explanation: &Explanation, colour: Colour) -> String {
    let name = &explanation.hostname;
    let mut lines = Vec::new();
    if explanation.works() {
        lines.push(colour.paint("32", &format!("✓ {name} is attached")));
        for chain in explanation.chains.iter().filter(|c| c.works()).take(SHOWN) {
            lines.push(format!("  {}", path(chain, colour)));
            lines.extend(chain.notes.iter().flat_map(|note| said(note, colour)));
        }
    } else if explanation.chains.is_empty() {
        lines.extend(nobody(explanation, colour));
    } else {
        lines.push(colour.paint("31", &format!("✗ {name} does not work")));
    }
    let broken: Vec<_> = explanation.chains.iter().filter(|c| !c.works()).collect();
    if explanation.works() && !broken.is_empty() {
        lines.push(format!(
            "  {} further {} not attach:",
            broken.len(),
            if broken.len() == 1 { "way does" } else { "ways do" }
        ));
    }
    for chain in broken.iter().take(SHOWN) {
        lines.extend(chain.broken.iter().flat_map(|d| said(d, colour)));
        lines.push(format!("    {}", path(chain, colour)));
    }
    if broken.len() > SHOWN {
        lines.push(format!("  … and {} more; -o json shows all", broken.len() - SHOWN));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn nobody(explanation: &Explanation, colour: Colour) -> Vec<String> {
    let name = &explanation.hostname;
    let mut lines = vec![colour.paint("31", &format!("✗ {name} does not work: no route asks for it"))];
    match explanation.open_listeners.first() {
        Some(listener) => lines.push(format!("  {listener} would serve it: attach a route with this hostname")),
        None => lines.push("  no listener would serve it either: it needs a listener and a route".to_owned()),
    }
    if !explanation.similar.is_empty() {
        lines.push(inert(&format!("  similar names in use: {}", explanation.similar.join(", "))));
    }
    lines
}

/// Object, field and message of a diagnostic, with what to do.
fn said(diagnostic: &Diagnostic, colour: Colour) -> Vec<String> {
    let row = diagnostic.reason.row();
    let code = colour.paint("2", &format!("[{} {}]", row.code, row.name));
    let mut lines = vec![format!("  {} {code}", inert(&super::snippet::headline(diagnostic)))];
    for related in &diagnostic.related {
        lines.push(inert(&format!(
            "    see {} {}: {}{}",
            related.object,
            related.field,
            related.note,
            at(related.place.as_ref())
        )));
    }
    if let Some(place) = &diagnostic.place {
        lines.push(inert(&format!("    at {}:{}:{}", place.source, place.line, place.column)));
    }
    match (&diagnostic.fix, &diagnostic.help) {
        (Some(fix), _) => lines.push(format!("    {} {}", colour.paint("1", "fix:"), inert(fix))),
        (None, help) => {
            lines.push(format!("    {} {}", colour.paint("1", "help:"), inert(help.as_deref().unwrap_or(row.help))))
        }
    }
    lines
}

fn at(place: Option<&gatepost_core::diagnostic::Place>) -> String {
    place.map(|p| format!(" ({}:{}:{})", p.source, p.line, p.column)).unwrap_or_default()
}

fn path(chain: &Chain, colour: Colour) -> String {
    let links: Vec<_> = chain.links.iter().map(|link| shown(link, colour)).collect();
    let tail = chain.intersected.as_ref().map(|name| format!(" → {name}")).unwrap_or_default();
    inert_path(&format!("{}{tail}", links.join(" → ")), colour)
}

/// Colours are ours; what comes from objects is inert already where it was put in.
fn inert_path(text: &str, colour: Colour) -> String {
    if colour == Colour::On { text.to_owned() } else { inert(text) }
}

fn shown(link: &Link, colour: Colour) -> String {
    let mark = if link.holds { colour.paint("32", "✓") } else { colour.paint("31", "✗") };
    let detail = link.detail.as_ref().map(|d| format!(" ({d})")).unwrap_or_default();
    format!("{} {mark}", inert(&format!("{}{detail}", link.name)))
}
