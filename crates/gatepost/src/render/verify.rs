//! `verify` as text: one line for a name that is right, and for any other what is wanted, what is stored and what each
//! server answers.

use std::collections::BTreeSet;
use std::io::Write;

use gatepost_core::plan::Plan;
use gatepost_core::reason::Reason;

use super::{Colour, explanation, inert_line, plan};
use crate::verify::{Check, CheckedAnswer, Handshake, TypeCheck, Verdict};

/// Writes what was found out.
pub fn write(out: &mut dyn Write, checks: &[Check], decided: Option<&Plan>, colour: Colour) -> std::io::Result<()> {
    for check in checks {
        match check.is_right() {
            true => write_right(out, check, colour)?,
            false => write_wrong(out, check, decided, colour)?,
        }
    }
    writeln!(out, "{}", summary(checks))
}

/// How many hostnames get nothing, so that nothing was compared.
pub fn write_withheld(out: &mut dyn Write, count: usize) -> std::io::Result<()> {
    match count {
        0 => Ok(()),
        1 => writeln!(out, "1 more hostname is withheld; `gatepost plan` says why"),
        _ => writeln!(out, "{count} more hostnames are withheld; `gatepost plan` says why"),
    }
}

/// The counts in one line.
pub fn summary(checks: &[Check]) -> String {
    let right = checks.iter().filter(|check| check.is_right()).count();
    let answers = checks.iter().flat_map(|check| &check.types).flat_map(|check| &check.answered);
    let servers: BTreeSet<&str> = answers.map(|answer| answer.server.as_str()).collect();
    let names = if checks.len() == 1 { "name is" } else { "names are" };
    let on = if servers.len() == 1 { "server" } else { "servers" };
    format!("{right} of {} {names} right on {} {on}", checks.len(), servers.len())
}

fn write_right(out: &mut dyn Write, check: &Check, colour: Colour) -> std::io::Result<()> {
    let sets: Vec<String> = wanted(check).map(|one| format!("{} {}", one.kind, one.wanted.join(" "))).collect();
    let until = check.tls.iter().filter_map(|handshake| handshake.leaf.as_ref().ok()).map(|leaf| leaf.not_after).min();
    let tls = until.map(|until| format!("  TLS until {}", explanation::date(until))).unwrap_or_default();
    let line = format!("{}{}  {}{tls}", check.name, asked(check), sets.join("  "));
    writeln!(out, "{} {}", colour.paint("32", "✓"), inert_line(&line))
}

fn write_wrong(out: &mut dyn Write, check: &Check, decided: Option<&Plan>, colour: Colour) -> std::io::Result<()> {
    writeln!(out, "{} {}{}", colour.paint("31", "✗"), inert_line(&check.name), inert_line(&asked(check)))?;
    let mut row =
        |head: &str, text: &str| writeln!(out, "    {} {}", colour.paint("1", &format!("{head:<9}")), inert_line(text));
    if wanted(check).next().is_none() {
        row("wanted", "nothing is to be published for it")?;
    }
    for withheld in &check.withheld {
        row("withheld", &plan::withheld_line(withheld))?;
    }
    for one in &check.types {
        if one.wanted.is_empty() && one.is_right() && check.unasked.is_none() {
            continue;
        }
        if !one.wanted.is_empty() {
            row("wanted", &format!("{} {}  because {}", one.kind, one.wanted.join(" "), because(check)))?;
        }
        if let Some(values) = &one.stored {
            row("stored", &format!("{} {}", one.kind, some(values)))?;
        }
        for answer in &one.answered {
            row("answered", &format!("{} {}", one.kind, answer_line(answer, one)))?;
        }
    }
    for handshake in &check.tls {
        row("tls", &tls_line(handshake))?;
    }
    if let Some(why) = &check.unasked {
        row("answered", &format!("no server was asked: {why}"))?;
    }
    let held = decided.iter().flat_map(|plan| &plan.held).filter(|held| held.name == check.name);
    let held: BTreeSet<(&str, Reason)> = held.map(|held| (held.message.as_str(), held.reason)).collect();
    for (message, reason) in held {
        let reason = reason.row();
        row("held", &format!("{message} [{} {}]", reason.code, reason.name))?;
        row("help", reason.help)?;
    }
    for advice in advice(check, decided) {
        row("help", &advice)?;
    }
    Ok(())
}

fn wanted(check: &Check) -> impl Iterator<Item = &TypeCheck> {
    check.types.iter().filter(|one| !one.wanted.is_empty())
}

fn asked(check: &Check) -> String {
    if check.asked == check.name { String::new() } else { format!(" (asked as {})", check.asked) }
}

fn because(check: &Check) -> String {
    match &check.routes[..] {
        [] => "a wildcard answers for it".to_owned(),
        [route] => route.to_string(),
        [route, rest @ ..] => format!("{route} and {} more", rest.len()),
    }
}

fn some<T: AsRef<str>>(values: &[T]) -> String {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    if values.is_empty() { "nothing".to_owned() } else { values.join(" ") }
}

fn answer_line(checked: &CheckedAnswer, check: &TypeCheck) -> String {
    let server = &checked.server;
    let answer = match &checked.answer {
        Ok(answer) => answer,
        Err(why) => return format!("{server} did not answer: {why}"),
    };
    match (checked.verdict, &answer.alias) {
        (Verdict::Unanswered, _) if !answer.is_authoritative && answer.code == "NOERROR" => {
            format!("{server} does not speak for the zone: the delegation is lame, or it is a resolver")
        }
        (Verdict::Unanswered, _) => format!("{server} answers {}", answer.code),
        (_, Some(alias)) => format!("{server} says that it is a CNAME for {alias}"),
        (Verdict::Right, _) if check.wanted.is_empty() => format!("{server} has none, as it should be"),
        (Verdict::Right, _) => format!("{server} says {}, as it should be", some(&answer.values)),
        (Verdict::Missing, _) if answer.code == "NXDOMAIN" => {
            format!("{server} says that there is no such name (NXDOMAIN)")
        }
        (Verdict::Missing, _) => format!("{server} has none"),
        (Verdict::Extra, _) => format!("{server} says {}, and none is wanted", some(&answer.values)),
        (Verdict::Differs, _) => format!("{server} says {}", some(&answer.values)),
    }
}

fn tls_line(handshake: &Handshake) -> String {
    let address = handshake.address;
    match (&handshake.leaf, &handshake.problem) {
        (Err(why), _) => format!("{address} shows no certificate: {why}"),
        (Ok(_), Some(problem)) => format!("{address} shows a certificate, but {problem}"),
        (Ok(leaf), None) => format!("{address} shows a good certificate, until {}", explanation::date(leaf.not_after)),
    }
}

/// What to do next, where that can be told from what was found.
fn advice(check: &Check, decided: Option<&Plan>) -> Vec<String> {
    let is_published = |one: &TypeCheck| one.stored.as_ref().is_some_and(|found| *found == one.wanted);
    let is_bad = |one: &TypeCheck| !one.wanted.is_empty() && !one.is_right();
    let bad: Vec<&TypeCheck> = check.types.iter().filter(|one| is_bad(one)).collect();
    let silent = check.types.iter().flat_map(|one| &one.answered).all(|answer| answer.verdict == Verdict::Unanswered);
    let mut told = Vec::new();
    if wanted(check).next().is_none() && check.withheld.is_empty() {
        told.push(format!("`gatepost explain {}` says what is missing", check.name));
    } else if bad.iter().any(|one| !is_published(one)) && !silent && decided.is_some_and(|plan| !plan.steps.is_empty())
    {
        told.push("it is not published yet: `gatepost apply` with the same flags writes it".to_owned());
    } else if !bad.is_empty() && bad.iter().all(|one| is_published(one)) && !silent {
        told.push(
            "the provider has it, so these servers lag behind: look at their transfers, or wait for them".to_owned(),
        );
    }
    told
}
