//! The list of names as a table for spreadsheets: CSV as in RFC 4180, one name in a line.
//!
//! A cell never begins with a sign that a spreadsheet takes for a formula.

use gatepost_objects::rfc3339;

use super::NameRow;

const HEADS: [&str; 12] = [
    "hostname",
    "health",
    "verdict",
    "records",
    "certificateEnds",
    "zone",
    "namespaces",
    "gateways",
    "routes",
    "code",
    "reason",
    "message",
];

/// The table of some rows.
pub(super) fn table(rows: Vec<&NameRow>) -> String {
    let mut text = HEADS.join(",") + "\r\n";
    for row in rows {
        let join = |values: &std::collections::BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(" ");
        let records = row.records.iter().map(|(kind, targets)| format!("{} {}", kind.as_str(), targets.join(" ")));
        let cause = row.cause.as_ref();
        let cells = [
            row.hostname.clone(),
            row.health.as_str().to_owned(),
            row.verdict.as_str().to_owned(),
            records.collect::<Vec<_>>().join("; "),
            row.not_after.map(rfc3339).unwrap_or_default(),
            row.zone.as_deref().unwrap_or_default().to_owned(),
            join(&row.namespaces),
            join(&row.gateways),
            join(&row.routes),
            cause.map_or("", |cause| cause.code).to_owned(),
            cause.map_or("", |cause| cause.reason).to_owned(),
            cause.map_or("", |cause| &*cause.message).to_owned(),
        ];
        text.push_str(&cells.map(|cell| quoted(&cell)).join(","));
        text.push_str("\r\n");
    }
    text
}

fn quoted(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let cell = if is_formula { format!("'{cell}") } else { cell.to_owned() };
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        assert_eq!(quoted("a b"), "a b");
        assert_eq!(quoted("a,\"b\"\nc"), "\"a,\"\"b\"\"\nc\"");
        assert_eq!(quoted("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(quoted("*.example.org"), "*.example.org");
    }
}
