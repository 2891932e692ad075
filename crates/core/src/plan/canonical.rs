//! The canonical form of names and values, so that different spellings of a provider are not taken for changes.
//!
//! Canonical forms serve comparison only. Steps and preconditions contain what was read.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::observed::RecordKind;
use super::text;
use crate::model::Str;
use crate::publication::RecordType;

/// A name: lower case, no dot at the end, the star of a wildcard as a star.
pub(super) fn name(text: &str) -> Str {
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    text.strip_prefix("\\052").map_or_else(|| text.as_str().into(), |rest| format!("*{rest}").into())
}

/// A value of a type.
pub(super) fn value(kind: &RecordKind, text: &str) -> Str {
    let text = text.trim();
    match kind {
        RecordKind::Made(RecordType::A) => text.parse::<Ipv4Addr>().map_or_else(|_| text.into(), |ip| as_text(&ip)),
        RecordKind::Made(RecordType::Aaaa) => {
            text.parse::<Ipv6Addr>().map_or_else(|_| text.to_ascii_lowercase().into(), |ip| as_text(&ip))
        }
        RecordKind::Made(RecordType::Cname) => name(text),
        RecordKind::Made(RecordType::Txt) => text::quoted(&text::content(text)).into(),
        RecordKind::Other(_) => text.into(),
    }
}

/// Values of a type, each once.
pub(super) fn values<'a>(kind: &RecordKind, values: impl IntoIterator<Item = &'a Str>) -> BTreeSet<Str> {
    values.into_iter().map(|text| value(kind, text)).collect()
}

/// Whether a text is a valid value of a type.
pub(super) fn is_valid(kind: RecordType, text: &str) -> bool {
    match kind {
        RecordType::A => text.parse::<Ipv4Addr>().is_ok(),
        RecordType::Aaaa => text.parse::<Ipv6Addr>().is_ok(),
        RecordType::Cname => is_name(&name(text)),
        RecordType::Txt => true,
    }
}

/// Whether a canonical text fits into the DNS as a name.
pub(super) fn is_name(text: &str) -> bool {
    (1..=253).contains(&text.len()) && text.split('.').all(|label| (1..=63).contains(&label.len()))
}

fn as_text(value: &impl ToString) -> Str {
    value.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_the_same_has_one_form() {
        let table = [
            ("A", "192.0.2.1", " 192.0.2.1 "),
            ("AAAA", "2001:db8::1", "2001:DB8:0:0:0:0:0:1"),
            ("CNAME", "edge.example.net", "Edge.Example.NET."),
            ("TXT", "\"ab\"", "\"a\" \"b\""),
            ("TXT", "\"ab\"", "ab"),
        ];
        for (kind, canonical, written) in table {
            assert_eq!(&*value(&kind.into(), written), canonical);
        }
        assert_eq!(&*name("\\052.Example.com."), "*.example.com");
    }
}
