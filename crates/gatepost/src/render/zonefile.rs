//! Records as lines of a zone file, with full names, ready to be included in any zone that holds them.

use std::io::Write;

use gatepost_core::desired::{Desired, RecordType};

/// What a record without a TTL of its own gets.
const DEFAULT_TTL: u32 = 300;

/// Writes the records.
pub fn write(out: &mut dyn Write, desired: &Desired) -> std::io::Result<()> {
    writeln!(out, "; made by gatepost plan; records without a TTL of their own have {DEFAULT_TTL}")?;
    for record in &desired.records {
        for target in &record.targets {
            let data = match record.kind {
                RecordType::Cname => format!("{target}."),
                RecordType::Txt => format!("\"{}\"", quoted(target)),
                RecordType::A | RecordType::Aaaa => target.to_string(),
            };
            let ttl = record.ttl.unwrap_or(DEFAULT_TTL);
            writeln!(out, "{}. {ttl} IN {} {}", plain(&record.name), record.kind, plain_data(&data))?;
        }
    }
    Ok(())
}

/// A name in which nothing can end the line or begin a comment.
fn plain(name: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "*-_.".contains(c);
    name.chars().map(|c| if safe(c) { c.to_string() } else { format!("\\{:03}", (c as u32).min(255)) }).collect()
}

fn plain_data(data: &str) -> String {
    data.chars().filter(|c| !c.is_control()).collect()
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
