//! How answers look: terminal text, SARIF, GitHub annotations.
//!
//! Everything that comes from objects is made inert before it reaches a terminal: control characters are shown, never sent.

use std::io::IsTerminal;

pub mod explanation;
pub mod github;
pub mod markdown;
pub mod plan;
pub mod reason;
pub mod sarif;
pub mod snippet;
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
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if wanted && std::io::stdout().is_terminal() { Colour::On } else { Colour::Off }
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

/// Marks that reverse the direction of text and so can disguise it.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_shown_and_not_sent() {
        assert_eq!(inert("a\x1b[31mb\u{202e}c\nd"), "a\\u{1b}[31mb\\u{202e}c\nd");
    }
}
