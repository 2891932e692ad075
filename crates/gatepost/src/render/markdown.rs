//! `plan` for a pull request comment. Names and messages are inert: no mention, link, HTML or table can break out of them.

use std::io::Write;

use gatepost_core::publication::Desired;
use gatepost_core::publication::change::{Change, Differs};

use gatepost_core::plan::Plan;

use super::{plan, steps};

/// At most this many rows of each table, so that a comment stays within what hosting sites take.
const MOST: usize = 200;

/// Lets a bot find its comment again and edit it in place.
const MARKER: &str = "<!-- gatepost-plan -->";

/// Writes a plan.
pub fn write(
    out: &mut dyn Write,
    desired: &Desired,
    change: Option<&Change>,
    decided: Option<&Plan>,
) -> std::io::Result<()> {
    writeln!(out, "{MARKER}")?;
    match (change, decided) {
        (Some(change), _) => write_change(out, change)?,
        (None, None) => write_desired(out, desired)?,
        (None, Some(_)) => {}
    }
    if let Some(decided) = decided {
        write_steps(out, decided)?;
    }
    write_withheld(out, desired)
}

/// A text as inline code in a cell of a table. In inline code nothing has a meaning, neither mentions nor HTML, so that only
/// its end and the end of the cell have to be kept out: a backslash before a bar must not take the bar's own away.
pub fn code(text: &str) -> String {
    let safe = super::inert_line(text).replace('`', "'");
    let safe = if safe.contains('|') { safe.replace('\\', "\\\\").replace('|', "\\|") } else { safe };
    format!("`{safe}`")
}

fn write_desired(out: &mut dyn Write, desired: &Desired) -> std::io::Result<()> {
    writeln!(out, "### Gatepost: {}\n", plan::summary(desired))?;
    let records: Vec<_> = desired.records.iter().map(|r| [plan::record_line(r), plan::because(r)]).collect();
    table(out, ["record", "because"], &records)?;
    let certificates = desired.certificates.iter();
    let listeners = |c: &gatepost_core::publication::Certificate| {
        c.listeners.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let rows: Vec<_> = certificates.map(|c| [plan::certificate_line(c), listeners(c)]).collect();
    table(out, ["certificate", "because"], &rows)
}

fn write_change(out: &mut dyn Write, change: &Change) -> std::io::Result<()> {
    writeln!(out, "### Gatepost: {}\n", plan::changed(change))?;
    let mut rows: Vec<[String; 2]> = Vec::new();
    rows.extend(change.gained.iter().map(|name| ["gained".to_owned(), name.to_string()]));
    rows.extend(change.lost.iter().map(|name| ["lost".to_owned(), name.to_string()]));
    for moved in &change.moved {
        let list = |owners: &[gatepost_core::model::ObjectRef]| {
            owners.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        rows.push(["moved".to_owned(), format!("{} from {} to {}", moved.name, list(&moved.from), list(&moved.to))]);
    }
    table(out, ["name", ""], &rows)?;
    let records: Vec<_> = change.records.iter().map(|d| pair(d, plan::record_line)).collect();
    table(out, ["record before", "after"], &records)?;
    let certificates: Vec<_> = change.certificates.iter().map(|d| pair(d, plan::certificate_line)).collect();
    table(out, ["certificate before", "after"], &certificates)
}

fn write_steps(out: &mut dyn Write, plan: &Plan) -> std::io::Result<()> {
    writeln!(out, "### Gatepost: {}\n", steps::summary(plan))?;
    let changes = plan.steps.iter().flat_map(|step| step.changes.iter().map(move |change| (step, change)));
    let rows: Vec<_> = changes.map(|(step, change)| [steps::change_line(change), step.because.clone()]).collect();
    table(out, ["change", "because"], &rows)?;
    let held: Vec<_> = plan.held.iter().map(steps::held_line).map(|(left, right)| [left, right]).collect();
    table(out, ["held", "because"], &held)
}

fn write_withheld(out: &mut dyn Write, desired: &Desired) -> std::io::Result<()> {
    let rows: Vec<_> = desired
        .withheld
        .iter()
        .map(|w| [format!("{} ({})", w.hostname, w.route), format!("{} [{}]", w.message, w.reason)])
        .collect();
    table(out, ["withheld", "because"], &rows)
}

fn pair<T>(differs: &Differs<T>, line: impl Fn(&T) -> String) -> [String; 2] {
    let side = |side: &Option<T>| side.as_ref().map(&line).unwrap_or_default();
    [side(&differs.old), side(&differs.new)]
}

fn table(out: &mut dyn Write, heads: [&str; 2], rows: &[[String; 2]]) -> std::io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "| {} | {} |\n| --- | --- |", heads[0], heads[1])?;
    let cell = |text: &String| if text.is_empty() { String::new() } else { code(text) };
    for [left, right] in rows.iter().take(MOST) {
        writeln!(out, "| {} | {} |", cell(left), cell(right))?;
    }
    if rows.len() > MOST {
        writeln!(out, "\n… and {} more.", rows.len() - MOST)?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_inline_code() {
        assert_eq!(code("a`b|c\n@team <b>"), r"`a'b\|c\\n@team <b>`");
        assert_eq!(code(r"a\|b"), r"`a\\\|b`");
        assert_eq!(code(r"a\b"), r"`a\b`");
    }
}
