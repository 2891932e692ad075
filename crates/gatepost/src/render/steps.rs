//! What a provider is to be told, and what became of it, as text: one line per record set, what is held behind it.

use std::io::Write;

use gatepost_core::plan::{Held, Plan, SetChange, Step, Verb};
use gatepost_core::reason::Reason;

use super::{Colour, inert_line};
use crate::apply::Outcome;

/// Of one reason not more than this many lines are shown.
const SHOWN: usize = 10;

/// The counts of a plan in one line.
pub fn summary(plan: &Plan) -> String {
    let count = |verb: Verb| plan.steps.iter().filter(|step| step.verb == verb).count();
    let counts = format!(
        "{} to create, {} to change, {} to delete, {} held",
        count(Verb::Create),
        count(Verb::Update),
        count(Verb::Delete),
        plan.held.len()
    );
    format!("plan {}: {counts}", plan.digest)
}

/// The counts of what was written in one line.
pub fn written(plan: &Plan, outcome: &Outcome) -> String {
    let (done, all) = (outcome.written.len(), plan.steps.len());
    let what = if all == 1 { "change" } else { "changes" };
    let failed = match outcome.failed.len() {
        0 => String::new(),
        some => format!(", {some} failed"),
    };
    let skipped = match outcome.skipped.len() {
        0 => String::new(),
        some => format!(", {some} not tried"),
    };
    format!("plan {}: {done} of {all} {what} written{failed}{skipped}, {} held", plan.digest, plan.held.len())
}

/// Writes the steps, with what became of them where they were written, and what is held.
pub fn write(out: &mut dyn Write, plan: &Plan, outcome: Option<&Outcome>, colour: Colour) -> std::io::Result<()> {
    for (i, step) in plan.steps.iter().enumerate() {
        write_step(out, i, step, outcome, colour)?;
    }
    write_held(out, plan, colour)
}

/// A change in one line, with its sign in front.
pub fn change_line(change: &SetChange) -> String {
    format!("{} {}", glyph(change.verb()).0, line(change))
}

/// What is held, and why.
pub fn held_line(held: &Held) -> (String, String) {
    let what = subject(held);
    let what = if what.is_empty() { "everything" } else { what.trim_end_matches(": ") };
    (what.to_owned(), format!("{} [{}]", held.message, held.reason))
}

fn write_step(
    out: &mut dyn Write,
    i: usize,
    step: &Step,
    outcome: Option<&Outcome>,
    colour: Colour,
) -> std::io::Result<()> {
    let end = ending(i, step, outcome, colour);
    if step.changes.is_empty() {
        return writeln!(out, "  {} {} (its marker)  {end}", colour.paint("33", "~"), inert_line(&step.name));
    }
    for change in &step.changes {
        let (glyph, code) = glyph(change.verb());
        writeln!(out, "  {} {}  {end}", colour.paint(code, glyph), inert_line(&line(change)))?;
    }
    Ok(())
}

/// A record set in one line: what is to be there, else what goes.
fn line(change: &SetChange) -> String {
    let content = change.new.as_ref().or(change.old.as_ref());
    let values = content.map(|content| content.values.join(" ")).unwrap_or_default();
    let ttl = change.new.as_ref().and_then(|content| content.ttl).map(|ttl| format!(" ttl={ttl}"));
    let set = change.set_identifier.as_ref().map(|set| format!(" set={set}"));
    format!("{} {} {values}{}{}", change.name, change.kind, ttl.unwrap_or_default(), set.unwrap_or_default())
}

fn glyph(verb: Verb) -> (&'static str, &'static str) {
    match verb {
        Verb::Create => ("+", "32"),
        Verb::Update => ("~", "33"),
        Verb::Delete => ("-", "31"),
    }
}

fn ending(i: usize, step: &Step, outcome: Option<&Outcome>, colour: Colour) -> String {
    let because = || colour.paint("2", &inert_line(&format!("because {}", step.because)));
    let Some(outcome) = outcome else { return because() };
    match outcome.failed.get(&i) {
        Some(error) => colour.paint("31", &inert_line(&format!("FAILED: {error}"))),
        None if outcome.skipped.contains(&i) => {
            colour.paint("33", "not tried, because a change that it waits for failed")
        }
        None => because(),
    }
}

/// What is held, by reason: the brakes first, each reason with its help once.
fn write_held(out: &mut dyn Write, plan: &Plan, colour: Colour) -> std::io::Result<()> {
    let mut reasons: Vec<(bool, Reason)> = plan.held.iter().map(|held| (!held.is_brake(), held.reason)).collect();
    reasons.sort();
    reasons.dedup();
    for (_, reason) in reasons {
        let of_reason: Vec<&Held> = plan.held.iter().filter(|held| held.reason == reason).collect();
        let row = reason.row();
        for held in of_reason.iter().take(SHOWN) {
            let line = format!("{}{} [{} {}]", subject(held), held.message, row.code, row.name);
            writeln!(out, "  {} {}", colour.paint("33", "! held"), inert_line(&line))?;
        }
        if of_reason.len() > SHOWN {
            writeln!(out, "         … and {} more of {}", of_reason.len() - SHOWN, row.name)?;
        }
        writeln!(out, "         {} {}", colour.paint("36", "help:"), row.help)?;
    }
    Ok(())
}

/// What would have become of it, in front of why it does not.
fn subject(held: &Held) -> String {
    let glyph = held.verb.map_or("", |verb| glyph(verb).0);
    match (&*held.name, held.kind) {
        ("", _) => String::new(),
        (name, Some(kind)) => format!("{glyph} {name} {kind}: "),
        (name, None) => format!("{name}: "),
    }
}
