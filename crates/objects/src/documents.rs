//! Takes a text apart into documents, the way kubectl does: at lines that begin with `---`.
//!
//! Works on bytes and by lines only; whether a document means anything is decided elsewhere. Positions always count from the
//! start of the whole text.

use std::ops::Range;

/// One document of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// Where it stands in the text.
    pub(crate) bytes: Range<usize>,
    /// The line it begins on, counted from 1.
    pub(crate) line: u32,
}

/// What a line means for the documents around it.
enum LineKind {
    /// `---`: a document begins here.
    Start,
    /// `...`: a document ends here.
    End,
    /// `%YAML`: belongs to the document that the next `---` begins.
    Directive,
    /// Nothing but space or a comment.
    Blank,
    /// Anything else.
    Content,
}

/// The documents of a text that hold more than space and comments.
pub(crate) fn split(text: &[u8]) -> Vec<Document> {
    let mut splitter = Splitter { documents: Vec::new(), start: 0, line: 1, has_content: false, has_directive: false };
    let mut position = if text.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    splitter.start = position;
    let mut number = 1;
    while position < text.len() {
        let end = memchr::memchr(b'\n', &text[position..]).map_or(text.len(), |at| position + at + 1);
        splitter.line(&text[position..end], position..end, number);
        position = end;
        number = number.saturating_add(1);
    }
    splitter.cut(text.len());
    splitter.documents
}

struct Splitter {
    documents: Vec<Document>,
    start: usize,
    line: u32,
    has_content: bool,
    has_directive: bool,
}

impl Splitter {
    fn line(&mut self, text: &[u8], bytes: Range<usize>, number: u32) {
        match meaning(text) {
            LineKind::Start => {
                if !self.has_directive {
                    self.cut(bytes.start);
                    self.restart(bytes.start, number);
                }
                self.has_directive = false;
                self.has_content = has_text(&text[3..]);
            }
            LineKind::End => {
                self.cut(bytes.start);
                self.restart(bytes.end, number.saturating_add(1));
            }
            LineKind::Blank => {}
            LineKind::Directive => self.has_directive = !self.has_content,
            LineKind::Content => self.has_content = true,
        }
    }

    fn cut(&mut self, end: usize) {
        if self.has_content {
            self.documents.push(Document { bytes: self.start..end, line: self.line });
        }
    }

    fn restart(&mut self, start: usize, line: u32) {
        (self.start, self.line, self.has_content, self.has_directive) = (start, line, false, false);
    }
}

fn meaning(line: &[u8]) -> LineKind {
    match line {
        [b'-', b'-', b'-', rest @ ..] if begins_with_space(rest) => LineKind::Start,
        [b'.', b'.', b'.', rest @ ..] if begins_with_space(rest) => LineKind::End,
        [b'%', ..] => LineKind::Directive,
        _ if has_text(line) => LineKind::Content,
        _ => LineKind::Blank,
    }
}

fn begins_with_space(rest: &[u8]) -> bool {
    rest.first().is_none_or(|b| b" \t\r\n".contains(b))
}

/// Whether a line holds more than space and a comment.
fn has_text(line: &[u8]) -> bool {
    line.iter().find(|b| !b" \t\r\n".contains(b)).is_some_and(|b| *b != b'#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(&str, u32)> {
        split(text.as_bytes()).into_iter().map(|d| (&text[d.bytes], d.line)).collect()
    }

    #[test]
    fn separators_cut_and_comments_stay() {
        assert_eq!(parts("a: 1\n---\nb: 2\n"), [("a: 1\n", 1), ("---\nb: 2\n", 2)]);
        assert_eq!(parts("# note\n---\n# more\na: 1\n"), [("---\n# more\na: 1\n", 2)]);
        assert_eq!(parts("%YAML 1.2\n---\na: 1\n...\n# end\n"), [("%YAML 1.2\n---\na: 1\n", 1)]);
        assert_eq!(parts("--- {a: 1}\n--- # c\nb: 2"), [("--- {a: 1}\n", 1), ("--- # c\nb: 2", 2)]);
    }

    #[test]
    fn nothing_is_no_document() {
        assert_eq!(parts("---\n---\n---\na: 1"), [("---\na: 1", 3)]);
        for text in ["", "\n\n", "---\n---\n", "# only a comment", "\u{feff}", "---\r\n...\r\n"] {
            assert!(parts(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn marks_inside_a_document_do_not_cut() {
        assert_eq!(parts("-----BEGIN\n").len(), 1);
        assert_eq!(parts("a: |\n  ---\n  b\n").len(), 1);
        assert_eq!(parts("\u{feff}a: 1\r\n---\r\nb: 1\r\n"), [("a: 1\r\n", 1), ("---\r\nb: 1\r\n", 2)]);
    }
}
