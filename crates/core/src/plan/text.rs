//! TXT values in the syntax of zone files: quoted character-strings, several where one is too short for the text.
//!
//! The quoted form keeps every byte, so that values of other owners are written back as they were read. The meaning of a
//! value is not known here.

/// The most bytes that one character-string holds.
const LONGEST: usize = 255;

/// The bytes of a TXT value: all its character-strings joined. A value without quotes is taken literally.
pub fn content(value: &str) -> Vec<u8> {
    let value = value.trim();
    if !value.starts_with('"') {
        return value.as_bytes().to_vec();
    }
    joined(value.as_bytes()).unwrap_or_else(|| value.trim_matches('"').as_bytes().to_vec())
}

/// The value that holds these bytes, in as many character-strings as it takes.
pub fn quoted(content: &[u8]) -> String {
    if content.is_empty() {
        return "\"\"".to_owned();
    }
    let strings = content.chunks(LONGEST).map(|chunk| format!("\"{}\"", escaped(chunk)));
    strings.collect::<Vec<_>>().join(" ")
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\{other:03}")),
        }
    }
    text
}

/// The bytes of quoted strings; nothing where a quote or an escape is broken.
fn joined(value: &[u8]) -> Option<Vec<u8>> {
    let mut found = Vec::with_capacity(value.len());
    let mut rest = value;
    loop {
        rest = rest.trim_ascii_start();
        match rest {
            [] => return Some(found),
            [b'"', inner @ ..] => rest = one_string(inner, &mut found)?,
            _ => return None,
        }
    }
}

/// Reads up to the closing quote and returns the rest.
fn one_string<'a>(mut rest: &'a [u8], found: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', after @ ..] => {
                let number = [a, b, c].iter().fold(0_u16, |sum, digit| sum * 10 + u16::from(**digit - b'0'));
                found.push(u8::try_from(number).ok()?);
                rest = after;
            }
            [b'\\', literal, after @ ..] | [literal, after @ ..] => {
                found.push(*literal);
                rest = after;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_read_with_and_without_quotes() {
        let table: [(&str, &[u8]); 8] = [
            ("\"v=spf1 -all\"", b"v=spf1 -all"),
            ("v=spf1 -all", b"v=spf1 -all"),
            ("\"ab\" \"cd\"", b"abcd"),
            ("\"a\\\"b\\\\c\\065\"", b"a\"b\\cA"),
            ("\"\"", b""),
            ("\"broken", b"broken"),
            ("\"a\"b", b"a\"b"),
            ("\"\\999\"", b"\\999"),
        ];
        for (value, expected) in table {
            assert_eq!(content(value), expected, "{value}");
        }
    }

    #[test]
    fn long_texts_are_split() {
        assert_eq!(quoted(&[b'x'; 256]), format!("\"{}\" \"x\"", "x".repeat(255)));
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(content(&quoted(&bytes)), bytes);
        }

        #[test]
        fn any_text_is_read(text in "\\PC{0,80}|[\"\\\\0-9a ]{0,40}") {
            let bytes = content(&text);
            prop_assert_eq!(content(&quoted(&bytes)), bytes);
        }
    }
}
