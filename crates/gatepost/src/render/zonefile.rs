//! Records as lines of a zone file, with full names, ready to be included in any zone that holds them.
//!
//! What a zone file cannot hold is left out and said in a comment; nothing that others wrote can end a line, begin a comment
//! or name a directive.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use gatepost_core::publication::{Desired, Record, RecordType};

/// What a record without a TTL of its own gets.
const DEFAULT_TTL: u32 = 300;

/// The longest piece of text that a record holds.
const LONGEST_TEXT: usize = 255;

/// Writes the records.
pub fn write(out: &mut dyn Write, desired: &Desired) -> std::io::Result<()> {
    writeln!(out, "; made by gatepost plan; records without a TTL of their own have {DEFAULT_TTL}")?;
    for record in &desired.records {
        for target in record.targets.iter() {
            writeln!(out, "{}", line(record, target))?;
        }
    }
    Ok(())
}

fn line(record: &Record, target: &str) -> String {
    let (owner, ttl) = (absolute(&record.name), record.ttl.unwrap_or(DEFAULT_TTL));
    match (owner, data(record.kind, target)) {
        (Some(owner), Some(data)) => format!("{owner} {ttl} IN {} {data}", record.kind),
        _ => format!("; left out: {} {} {}", escaped(&record.name), record.kind, escaped(target)),
    }
}

/// What stands behind the type, where the target can stand there.
fn data(kind: RecordType, target: &str) -> Option<String> {
    match kind {
        RecordType::A => target.parse::<Ipv4Addr>().ok().map(|address| address.to_string()),
        RecordType::Aaaa => target.parse::<Ipv6Addr>().ok().map(|address| address.to_string()),
        RecordType::Cname => absolute(target),
        RecordType::Txt => Some(texts(target)),
    }
}

/// A full name, if it is one: labels of 1 to 63 bytes, 253 in all.
fn absolute(name: &str) -> Option<String> {
    let is_label = |label: &str| (1..=63).contains(&label.len());
    (name.len() <= 253 && name.split('.').all(is_label)).then(|| format!("{}.", escaped(name)))
}

/// A text in which nothing has a meaning: every other byte as `\DDD`.
fn escaped(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"*-_.".contains(&byte);
    let shown = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("\\{byte:03}") };
    name.bytes().map(shown).collect()
}

/// Quoted texts, each no longer than a record can hold.
fn texts(text: &str) -> String {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    let shown = |byte: &u8| if is_plain(*byte) { char::from(*byte).to_string() } else { format!("\\{byte:03}") };
    let quoted = |piece: &[u8]| format!("\"{}\"", piece.iter().map(shown).collect::<String>());
    let pieces: Vec<_> = text.as_bytes().chunks(LONGEST_TEXT).map(quoted).collect();
    if pieces.is_empty() { "\"\"".to_owned() } else { pieces.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_core::publication::NameSource;

    fn shown(name: &str, kind: RecordType, target: &str) -> String {
        let record = Record {
            name: name.into(),
            kind,
            targets: [target.into()].into(),
            ttl: Some(60),
            set_identifier: None,
            provider_specific: vec![],
            routes: Default::default(),
            listeners: Default::default(),
            source: NameSource::Intersected,
            provider: None,
        };
        line(&record, target)
    }

    #[test]
    fn names_are_full_and_inert() {
        use RecordType::{A, Aaaa, Cname, Txt};
        let table = [
            ("*.a.test", A, "192.0.2.1", "*.a.test. 60 IN A 192.0.2.1"),
            ("a.test", Aaaa, "2001:DB8::1", "a.test. 60 IN AAAA 2001:db8::1"),
            ("a.test", Cname, "_x.lb.test", "a.test. 60 IN CNAME _x.lb.test."),
            ("a.test", Cname, "a;b @\n$", r"a.test. 60 IN CNAME a\059b\032\064\010\036."),
            ("b\u{fc}.test", A, "192.0.2.1", r"b\195\188.test. 60 IN A 192.0.2.1"),
            ("a.test", Txt, "x=\"y\" \\ \n", r#"a.test. 60 IN TXT "x=\034y\034 \092 \010""#),
            ("a.test", Txt, "", "a.test. 60 IN TXT \"\""),
            ("a.test", Cname, "", "; left out: a.test CNAME "),
            ("a..test", A, "192.0.2.1", "; left out: a..test A 192.0.2.1"),
            ("a.test", Aaaa, "fe80::1%eth0", r"; left out: a.test AAAA fe80\058\0581\037eth0"),
        ];
        for (name, kind, target, expected) in table {
            assert_eq!(shown(name, kind, target), expected);
        }
    }

    #[test]
    fn long_texts_are_parted() {
        let said = shown("a.test", RecordType::Txt, &"x".repeat(256));
        assert!(said.ends_with(&format!("\"{}\" \"x\"", "x".repeat(255))), "{said}");
    }
}
