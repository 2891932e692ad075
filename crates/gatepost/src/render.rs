//! How answers look: terminal text, SARIF, GitHub annotations.
//!
//! Everything that comes from objects is made inert before it reaches a terminal: control characters are shown, never sent.

use std::ffi::OsStr;
use std::io::IsTerminal;

pub mod certificates;
pub mod explanation;
pub mod github;
pub mod markdown;
pub mod plan;
pub mod reason;
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
    inert(text).replace('\n', "\\n").replace('\t', "\\t")
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
    fn escapes_are_shown_and_not_sent() {
        assert_eq!(inert("a\x1b[31mb\u{202e}c\nd"), "a\\u{1b}[31mb\\u{202e}c\nd");
        assert_eq!(inert_line("a\r\nb\tc"), "a\\u{d}\\nb\\tc");
    }
}
