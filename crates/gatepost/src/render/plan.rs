//! `plan` as text: one line per record and certificate with its because, a summary last.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use gatepost_core::model::Str;
use gatepost_core::publication::change::{Change, Differs};
use gatepost_core::publication::{Certificate, Desired, Record, Withheld};

use gatepost_core::plan::Plan;

use super::{Colour, folded, inert_line, snippet, steps};
use crate::source::Sources;

/// How many of the names that profile strict would change are shown.
const MOST_NAMES: usize = 5;

/// Writes a plan.
pub fn write(
    out: &mut dyn Write,
    desired: &Desired,
    change: Option<&Change>,
    plan: Option<&Plan>,
    sources: &dyn Sources,
    colour: Colour,
) -> std::io::Result<()> {
    let summary = plan.map_or_else(|| change.map_or_else(|| summary(desired), changed), steps::summary);
    if let Some(change) = change {
        write_change(out, change, colour)?;
    }
    match plan {
        Some(plan) => {
            steps::write(out, plan, None, colour)?;
            write_beside(out, desired, colour)?;
        }
        None if change.is_none() => write_desired(out, desired, colour)?,
        None => {}
    }
    for diagnostic in &desired.diagnostics {
        writeln!(out, "\n{}", snippet::render(diagnostic, sources, colour))?;
    }
    writeln!(out, "{summary}")
}

/// The counts of a plan in one line.
pub fn summary(desired: &Desired) -> String {
    format!(
        "{}, {}, {} withheld",
        counted(desired.records.len(), "record"),
        counted(desired.certificates.len(), "certificate"),
        counted(desired.withheld.iter().map(|w| (&w.route, &w.hostname)).collect::<BTreeSet<_>>().len(), "hostname"),
    )
}

/// The counts of a difference in one line.
pub fn changed(change: &Change) -> String {
    format!(
        "{} gained, {} lost, {} moved; {} and {} differ",
        counted(change.gained.len(), "name"),
        change.lost.len(),
        change.moved.len(),
        counted(change.records.len(), "record"),
        counted(change.certificates.len(), "certificate"),
    )
}

/// How many names profile strict would publish other records for, and the first of them.
pub fn under_strict(names: &BTreeSet<Str>) -> String {
    let first: Vec<&str> = names.iter().take(MOST_NAMES).map(|name| &**name).collect();
    let rest = match names.len() - first.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    match &first[..] {
        [] => "with --profile strict no record would change".to_owned(),
        _ => format!(
            "with --profile strict the records of {} would change: {}{rest}",
            counted(names.len(), "name"),
            first.join(", ")
        ),
    }
}

/// A record in one line.
pub fn record_line(record: &Record) -> String {
    let ttl = record.ttl.map(|ttl| format!(" ttl={ttl}")).unwrap_or_default();
    let set = record.set_identifier.as_ref().map(|set| format!(" set={set}")).unwrap_or_default();
    let properties: String = record.provider_specific.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let provider = record.provider.as_ref().map(|provider| format!(" provider={provider}")).unwrap_or_default();
    format!("{} {} {}{ttl}{set}{properties}{provider}", record.name, record.kind, record.targets.join(" "))
}

/// A certificate in one line.
pub fn certificate_line(certificate: &Certificate) -> String {
    let issuer = certificate.issuer.as_ref().map(|issuer| format!(" by {}", crate::view::plan::issuer(issuer)));
    format!("{} {}{}", certificate.secret, certificate.dns_names.join(" "), issuer.unwrap_or_default())
}

/// Why a record is wanted.
pub fn because(record: &Record) -> String {
    let source = match crate::view::plan::source(record.source) {
        "intersected" => String::new(),
        other => format!(" ({})", other.replace('-', " ")),
    };
    format!("{} on {}{source}", some(&record.routes), some(&record.listeners))
}

/// The first of several, and how many more.
fn some<T: ToString>(items: &[T]) -> String {
    match items {
        [] => "nobody".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{} and {} more", first.to_string(), rest.len()),
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn write_desired(out: &mut dyn Write, desired: &Desired, colour: Colour) -> std::io::Result<()> {
    for record in &desired.records {
        let why = colour.paint("2", &inert_line(&format!("because {}", because(record))));
        write_folded(out, &format!("  record       {}  {why}", inert_line(&record_line(record))))?;
    }
    write_beside(out, desired, colour)
}

/// What a plan shows beside records.
fn write_beside(out: &mut dyn Write, desired: &Desired, colour: Colour) -> std::io::Result<()> {
    for certificate in &desired.certificates {
        let why = colour.paint("2", &inert_line(&format!("because {}", some(&certificate.listeners))));
        write_folded(out, &format!("  certificate  {}  {why}", inert_line(&certificate_line(certificate))))?;
    }
    // A hostname that is withheld at several listeners for one reason is shown once.
    let mut shown = BTreeSet::new();
    for line in desired.withheld.iter().map(withheld_line) {
        if shown.insert(line.clone()) {
            write_folded(out, &format!("  {}     {}", colour.paint("33", "withheld"), inert_line(&line)))?;
        }
    }
    for policy in &desired.policies {
        for condition in &policy.conditions {
            let message = if condition.message.is_empty() { String::new() } else { format!(": {}", condition.message) };
            let line =
                format!("{} {} {} {}{message}", policy.policy, condition.kind, condition.status, condition.reason);
            write_folded(out, &format!("  policy       {}", inert_line(&line)))?;
        }
        for (reason, address) in policy.addresses.iter().filter_map(|a| Some((a.publication.reason()?, a))) {
            let line = format!("{} ({reason})", address.message());
            writeln!(out, "  {}      {}", colour.paint("33", "address"), inert_line(&line))?;
        }
    }
    Ok(())
}

/// Writes a line, on a terminal in pieces that fit it. Elsewhere it stays whole, so that programs find it.
fn write_folded(out: &mut dyn Write, line: &str) -> std::io::Result<()> {
    match std::io::stdout().is_terminal() {
        true => folded(line).iter().try_for_each(|line| writeln!(out, "{line}")),
        false => writeln!(out, "{line}"),
    }
}

/// A withheld hostname in one line.
pub fn withheld_line(withheld: &Withheld) -> String {
    let row = withheld.reason.row();
    format!("{} ({}): {} [{} {}]", withheld.hostname, withheld.route, withheld.message, row.code, row.name)
}

fn write_change(out: &mut dyn Write, change: &Change, colour: Colour) -> std::io::Result<()> {
    for name in &change.gained {
        writeln!(out, "  {} {}", colour.paint("32", "+ name"), inert_line(name))?;
    }
    for name in &change.lost {
        writeln!(out, "  {} {}", colour.paint("31", "- name"), inert_line(name))?;
    }
    for moved in &change.moved {
        let line = format!("{} from {} to {}", moved.name, some(&moved.from), some(&moved.to));
        writeln!(out, "  {} {}", colour.paint("33", "~ name"), inert_line(&line))?;
    }
    for differs in &change.records {
        write_pair(out, "record", differs, record_line, colour)?;
    }
    for differs in &change.certificates {
        write_pair(out, "certificate", differs, certificate_line, colour)?;
    }
    Ok(())
}

fn write_pair<T>(
    out: &mut dyn Write,
    what: &str,
    pair: &Differs<T>,
    line: impl Fn(&T) -> String,
    colour: Colour,
) -> std::io::Result<()> {
    if let Some(old) = &pair.old {
        writeln!(out, "  {} {}", colour.paint("31", &format!("- {what}")), inert_line(&line(old)))?;
    }
    if let Some(new) = &pair.new {
        writeln!(out, "  {} {}", colour.paint("32", &format!("+ {what}")), inert_line(&line(new)))?;
    }
    Ok(())
}
