//! How answers look: terminal text, SARIF, GitHub annotations.
//!
//! Everything that comes from objects is made inert before it reaches a terminal: control characters are shown, never sent.

use std::ffi::OsStr;
use std::io::IsTerminal;

pub mod certificates;
pub mod chart;
pub mod explanation;
pub mod github;
pub mod junit;
pub mod markdown;
pub mod plan;
pub mod reason;
pub mod report;
pub mod sarif;
pub mod snippet;
pub mod steps;
pub mod verify;
pub mod zonefile;

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// With colours.
    On,
    /// Without.
    Off,
}

impl Colour {
    /// Colours only on a terminal, and not with `NO_COLOR`.
    pub fn detect() -> Self {
        Colour::choose(std::env::var_os("NO_COLOR").as_deref(), std::io::stdout().is_terminal())
    }

    fn choose(no_color: Option<&OsStr>, is_terminal: bool) -> Self {
        let is_wanted = no_color.is_none_or(OsStr::is_empty);
        if is_wanted && is_terminal { Colour::On } else { Colour::Off }
    }

    /// A text in a colour of the terminal's palette.
    pub fn paint(self, code: &str, text: &str) -> String {
        match self {
            Colour::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Off => text.to_owned(),
        }
    }
}

/// A text without control characters: they are shown as escapes, line breaks and tabs excepted.
pub fn inert(text: &str) -> String {
    // Nearly every text is plain ASCII, and a plan has hundreds of thousands of them.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return text.to_owned();
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && c != '\n' && c != '\t') || is_direction_mark(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// The same on one line: line breaks and tabs are shown as escapes, too.
pub fn inert_line(text: &str) -> String {
    let safe = inert(text);
    if safe.contains(['\n', '\t']) { safe.replace('\n', "\\n").replace('\t', "\\t") } else { safe }
}

/// The width of a terminal that text is made for.
const WIDTH: usize = 80;

/// A line in pieces that fit a terminal; further ones are indented by four more. Words are never cut.
pub fn folded(line: &str) -> Vec<String> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let further = " ".repeat(indent + 4);
    let mut lines = vec![line[..indent].to_owned()];
    let mut is_first = true;
    for word in line[indent..].split(' ') {
        let Some(last) = lines.last_mut() else { continue };
        let fits = is_first || width(last) + 1 + width(word) <= WIDTH;
        match (fits, is_first) {
            (true, true) => last.push_str(word),
            (true, false) => last.extend([" ", word]),
            (false, _) => lines.push(format!("{further}{word}")),
        }
        is_first = false;
    }
    lines
}

/// The columns of a text, without the escapes of its colours.
fn width(text: &str) -> usize {
    let mut columns = 0;
    let mut is_escape = false;
    for c in text.chars() {
        match (is_escape, c) {
            (true, 'm') => is_escape = false,
            (true, _) => {}
            (false, '\u{1b}') => is_escape = true,
            (false, _) => columns += 1,
        }
    }
    columns
}

/// Marks that reverse the direction of text and so can disguise it.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_need_a_terminal_and_nobody_against_them() {
        let table = [(None, true, Colour::On), (Some(""), true, Colour::On), (Some("1"), true, Colour::Off)];
        for (no_color, is_terminal, expected) in table {
            assert_eq!(Colour::choose(no_color.map(OsStr::new), is_terminal), expected);
            assert_eq!(Colour::choose(no_color.map(OsStr::new), false), Colour::Off);
        }
    }

    #[test]
    fn long_lines_are_folded_between_words() {
        let words = ["word"; 20].join(" ");
        let lines = folded(&format!("  {words}"));
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.len() <= 80) && lines[1].starts_with("      word"), "{lines:?}");
        assert_eq!(folded("DNS          a b"), ["DNS          a b"]);
        let coloured = Colour::On.paint("31", &"x".repeat(76));
        assert_eq!(folded(&format!("{coloured} yyy")).len(), 1);
        assert_eq!(folded(&"x".repeat(100)).len(), 1);
    }

    #[test]
    fn escapes_are_shown_and_not_sent() {
        assert_eq!(inert("a\x1b[31mb\u{202e}c\nd"), "a\\u{1b}[31mb\\u{202e}c\nd");
        assert_eq!(inert_line("a\r\nb\tc"), "a\\u{d}\\nb\\tc");
    }
}
