//! GitHub workflow annotations: one line per diagnostic.

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::reason::Severity;

/// The annotation of a diagnostic. Nothing in it can start a workflow command of its own, or act on a terminal.
pub fn annotation(diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let row = diagnostic.reason.row();
    let mut properties = Vec::new();
    if let Some(place) = &diagnostic.place {
        properties.push(format!("file={}", property(&place.source)));
        properties.push(format!("line={},col={}", place.line, place.column));
    }
    properties.push(format!("title={}", property(&format!("{} {}", row.code, row.name))));
    let text = format!("{}\n{}", super::snippet::headline(diagnostic), super::snippet::advice(diagnostic));
    format!("::{level} {}::{}", properties.join(","), data(&text))
}

fn data(text: &str) -> String {
    super::inert(text).replace('%', "%25").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_cannot_break_out_of_its_line() {
        assert_eq!(data("a\n::set-output name=x::y%"), "a%0A::set-output name=x::y%25");
        assert_eq!(property("a:b,c"), "a%3Ab%2Cc");
        assert_eq!(property("a\x1b[31m\r.yaml"), "a\\u{1b}[31m\\u{d}.yaml");
    }
}
