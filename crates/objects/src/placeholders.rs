//! Values that another program fills in before an object reaches a cluster: `${DOMAIN}` of Flux, `{{ … }}` of Helm, `_` of a patch.

use gatepost_core::diagnostic::{FieldPath, Segment};

use crate::tree::Tree;

/// Words that people write where a value is to be filled in.
const WORDS: [&str; 4] = ["PLACEHOLDER", "REPLACE", "CHANGEME", "CHANGE_ME"];

/// Whether the value of a field is a placeholder.
pub(crate) fn is_at(object: &Tree<'_>, field: &FieldPath) -> bool {
    let mut value = object;
    for segment in field.segments() {
        let next = match segment {
            Segment::Key(key) => value.get(key),
            Segment::Index(index) => value.as_list().and_then(|items| items.get(*index)),
        };
        match next {
            Some(next) => value = next,
            None => return false,
        }
    }
    value.as_text().is_some_and(is_placeholder)
}

/// Whether a text stands for another one.
fn is_placeholder(text: &str) -> bool {
    let holds = |open: &str, close: &str| text.split_once(open).is_some_and(|(_, rest)| rest.contains(close));
    let is_loud = !text.bytes().any(|b| b.is_ascii_lowercase());
    text == "_"
        || holds("${", "}")
        || holds("{{", "}}")
        || (text.starts_with('<') && text.ends_with('>'))
        || (is_loud && WORDS.iter().any(|word| text.contains(word)))
}

/// The line, counted from 0, on which a template begins; nothing where a text is none.
pub(crate) fn template(text: &str) -> Option<u32> {
    let at = memchr::memmem::find(text.as_bytes(), b"{{").filter(|at| text[*at..].contains("}}"))?;
    u32::try_from(memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_known_from_values() {
        for text in ["_", "shop.${DOMAIN}", "{{ .Values.host }}", "<hostname>", "REPLACE_ME", "PLACEHOLDER"] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in
            ["SHOP.example.org", "a_b", "a{b", "ReplaceFullPth", "replaced-by", "shop.example.org:8080", "", "10.0.0.1"]
        {
            assert!(!is_placeholder(text), "{text}");
        }
    }

    #[test]
    fn a_template_is_known_from_its_braces() {
        assert_eq!(template("a: 1\nb: {{ c }}\n"), Some(1));
        assert_eq!(template("a: {b: {c: 1}}\n"), None);
        assert_eq!(template("a: {{\n"), None);
    }
}
