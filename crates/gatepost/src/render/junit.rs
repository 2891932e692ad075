//! JUnit XML, as CI servers read it: one test case per finding, or one that succeeds where there is none.

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::reason::Severity;

use super::inert;
use super::snippet::{advice, headline};

/// The whole report. Warnings are failures where `is_strict`.
pub fn report(diagnostics: &[Diagnostic], is_strict: bool) -> String {
    let is_failure = |d: &Diagnostic| d.severity == Severity::Error || (is_strict && d.severity == Severity::Warning);
    let cases: String = match diagnostics {
        [] => "  <testcase classname=\"gatepost\" name=\"check\"/>\n".to_owned(),
        some => some.iter().map(|d| case(d, is_failure(d))).collect(),
    };
    let (tests, failures) = (diagnostics.len().max(1), diagnostics.iter().filter(|d| is_failure(d)).count());
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"gatepost check\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">\n{cases}</testsuite>\n"
    )
}

fn case(diagnostic: &Diagnostic, is_failure: bool) -> String {
    let row = diagnostic.reason.row();
    let object = diagnostic.object.as_ref().map(ToString::to_string);
    let place = diagnostic.place.as_ref();
    let subject = object.or_else(|| place.map(|place| place.source.to_string())).unwrap_or_default();
    let field = diagnostic.field.to_string();
    let name = [row.name, &subject, &field].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let attributes = match place {
        Some(place) => format!(" file=\"{}\" line=\"{}\"", escaped(&place.source), place.line),
        None => String::new(),
    };
    let position = place.map(|place| format!("{}:{}:{}\n", place.source, place.line, place.column)).unwrap_or_default();
    let text = format!("{position}{}\n{}", headline(diagnostic), advice(diagnostic));
    let body = match is_failure {
        true => format!(
            "<failure type=\"{}\" message=\"{}\">{}</failure>",
            escaped(row.code),
            escaped(&headline(diagnostic)),
            escaped(&text)
        ),
        false => format!("<system-out>{}: {}</system-out>", diagnostic.severity, escaped(&text)),
    };
    format!(
        "  <testcase classname=\"{}\" name=\"{}\"{attributes}>{body}</testcase>\n",
        escaped(row.name),
        escaped(&name)
    )
}

/// A text in XML. Control characters are shown as escapes; XML has no way to write them.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in inert(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' => safe.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_break_out_of_their_element() {
        assert_eq!(escaped("a<b>&\"\x1b\n"), "a&lt;b&gt;&amp;&quot;\\u{1b}&#10;");
    }

    #[test]
    fn nothing_found_is_one_test_that_succeeds() {
        let text = report(&[], true);
        assert!(text.contains("tests=\"1\" failures=\"0\"") && text.contains("name=\"check\"/>"), "{text}");
    }
}
