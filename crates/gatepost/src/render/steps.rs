//! What a provider is to be told, and what became of it, as text: one line per record set, what is held behind it.

use std::io::Write;

use gatepost_core::plan::{Held, Plan, PlanStep, SetChange, Verb};
use gatepost_core::reason::Reason;
use gatepost_dns::provider::ProviderError;

use super::{Colour, inert_line};
use crate::apply::Outcome;

/// Of one reason not more than this many lines are shown.
const SHOWN: usize = 10;

/// The counts of a plan in one line.
pub fn summary(plan: &Plan) -> String {
    let verbs: Vec<Verb> = plan.steps.iter().flat_map(verbs).collect();
    let count = |verb: Verb| verbs.iter().filter(|other| **other == verb).count();
    let (creates, updates, deletes) = (count(Verb::Create), count(Verb::Update), count(Verb::Delete));
    let held = held_count(plan);
    if verbs.is_empty() {
        return format!("plan {}: nothing to write, {held}", plan.digest);
    }
    format!("plan {}: {creates} to create, {updates} to change, {deletes} to delete, {held}", plan.digest)
}

/// The counts of what was written in one line.
pub fn written(plan: &Plan, outcome: &Outcome) -> String {
    if plan.steps.is_empty() {
        return summary(plan);
    }
    let sets = |is_counted: &dyn Fn(usize) -> bool| -> usize {
        let counted = plan.steps.iter().enumerate().filter(|(i, _)| is_counted(*i));
        counted.map(|(_, step)| verbs(step).len()).sum()
    };
    let (done, all) = (sets(&|i| outcome.written.contains(&i)), sets(&|_| true));
    let what = if all == 1 { "change" } else { "changes" };
    let failed = match sets(&|i| outcome.failed.contains_key(&i)) {
        0 => String::new(),
        some => format!(", {some} failed"),
    };
    let skipped = match sets(&|i| outcome.skipped.contains(&i)) {
        0 => String::new(),
        some => format!(", {some} not tried"),
    };
    format!("plan {}: {done} of {all} {what} written{failed}{skipped}, {}", plan.digest, held_count(plan))
}

/// How many changes a safety brake holds.
pub fn braked(plan: &Plan) -> usize {
    plan.held.iter().filter(|held| held.is_brake()).count()
}

fn held_count(plan: &Plan) -> String {
    match braked(plan) {
        0 => format!("{} held", plan.held.len()),
        some => format!("{} held, {some} of them by a safety brake", plan.held.len()),
    }
}

/// What becomes of each record set of a step; one change where only a marker is written.
fn verbs(step: &PlanStep) -> Vec<Verb> {
    match &step.changes[..] {
        [] => vec![Verb::Update],
        changes => changes.iter().map(SetChange::verb).collect(),
    }
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
    let what = subject(held, held.kind.map_or("", |kind| kind.as_str()));
    let what = if what.is_empty() { "everything" } else { what.trim_end_matches(": ") };
    (what.to_owned(), format!("{} [{}]", held.message, held.reason))
}

fn write_step(
    out: &mut dyn Write,
    i: usize,
    step: &PlanStep,
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

fn ending(i: usize, step: &PlanStep, outcome: Option<&Outcome>, colour: Colour) -> String {
    let because = || colour.paint("2", &inert_line(&format!("because {}", step.because)));
    let Some(outcome) = outcome else { return because() };
    match outcome.failed.get(&i) {
        Some(error) => colour.paint("31", &inert_line(&format!("FAILED: {error}{}", rest(error)))),
        None if outcome.skipped.contains(&i) => {
            colour.paint("33", "not tried, because a change that it waits for failed")
        }
        None => because(),
    }
}

/// How long a server asks to be left alone.
fn rest(error: &ProviderError) -> String {
    error.retry_after().map(|wait| format!(" (it asks to be left alone for {} s)", wait.as_secs())).unwrap_or_default()
}

/// What is held, by reason: the brakes first, each reason with its help once.
fn write_held(out: &mut dyn Write, plan: &Plan, colour: Colour) -> std::io::Result<()> {
    let mut reasons: Vec<(bool, Reason)> = plan.held.iter().map(|held| (!held.is_brake(), held.reason)).collect();
    reasons.sort();
    reasons.dedup();
    for (_, reason) in reasons {
        let of_reason: Vec<&Held> = plan.held.iter().filter(|held| held.reason == reason).collect();
        let lines = held_lines(&of_reason);
        let row = reason.row();
        for line in lines.iter().take(SHOWN) {
            let line = format!("{line} [{} {}]", row.code, row.name);
            writeln!(out, "  {} {}", colour.paint("33", "! held"), inert_line(&line))?;
        }
        if lines.len() > SHOWN {
            writeln!(out, "         … and {} more of {}", lines.len() - SHOWN, row.name)?;
        }
        writeln!(out, "         {} {}", colour.paint("36", "help:"), row.help)?;
    }
    Ok(())
}

/// What is held for one reason; types of one name for which the same is said share a line.
fn held_lines(of_reason: &[&Held]) -> Vec<String> {
    let same = |a: &&Held, b: &&Held| (&a.name, a.verb, &a.message) == (&b.name, b.verb, &b.message);
    let line = |helds: &[&Held]| {
        let kinds: Vec<_> = helds.iter().filter_map(|held| held.kind).map(|kind| kind.as_str()).collect();
        format!("{}{}", subject(helds[0], &kinds.join(", ")), helds[0].message)
    };
    of_reason.chunk_by(same).map(line).collect()
}

/// What would have become of it, in front of why it does not.
fn subject(held: &Held, kinds: &str) -> String {
    let glyph = held.verb.map(|verb| format!("{} ", glyph(verb).0)).unwrap_or_default();
    match (&*held.name, kinds) {
        ("", _) => String::new(),
        (name, "") => format!("{name}: "),
        (name, kinds) => format!("{glyph}{name} {kinds}: "),
    }
}
