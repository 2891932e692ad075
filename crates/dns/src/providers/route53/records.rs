//! Record sets of the API as those of the planner, and back.
//!
//! The API writes bytes of names and texts with octal escapes, zone files with decimal ones. Everything that a record set has
//! beside TTL and values becomes properties, so that a delete can name it exactly as it was read.

use gatepost_core::model::Str;
use gatepost_core::plan::{Content, RecordSet, SetChange};

use super::wire::{FIELDS, WireAlias, WireSet};
use crate::provider::data;

/// Whether a record is an alias record.
pub(super) const ALIAS: &str = "alias";
/// Whether an alias is withdrawn while its target is unhealthy.
pub(super) const HEALTH: &str = "aws/evaluate-target-health";
/// The hosted zone of the target of an alias.
pub(super) const TARGET_ZONE: &str = "aws/target-hosted-zone";

/// The TTL of records that ask for none; that of external-dns.
pub(super) const USUAL_TTL: u32 = 300;

/// Name, type and identifier of a record set.
pub(super) type WireKey = (String, String, Option<String>);

impl WireSet {
    /// What tells it from all others of its zone.
    pub(super) fn key(&self) -> WireKey {
        (plain_name(&self.name), self.kind.to_ascii_uppercase(), self.set_identifier.clone())
    }

    /// The same for the planner.
    pub(super) fn to_record_set(&self) -> RecordSet {
        let values = match &self.alias {
            Some(alias) => vec![plain_name(&alias.name)],
            None => self.values.iter().map(|value| plain_value(&self.kind, value)).collect(),
        };
        let mut set = RecordSet::new(&plain_name(&self.name), &self.kind, self.ttl, values);
        set.set_identifier = self.set_identifier.as_deref().filter(|id| !id.is_empty()).map(Str::from);
        set.properties = self.properties();
        set
    }

    fn properties(&self) -> Vec<(Str, Str)> {
        let pair = |name: &str, value: &str| (Str::from(name), Str::from(value));
        let mut all: Vec<(Str, Str)> = self.fields.iter().map(|(name, value)| pair(name, value)).collect();
        if let Some(alias) = &self.alias {
            all.push(pair(ALIAS, "true"));
            all.push(pair(HEALTH, &alias.evaluates_health.to_string()));
            all.push(pair(TARGET_ZONE, &alias.zone_id));
        }
        all.sort();
        all
    }

    /// The record set that a change makes.
    pub(super) fn new(change: &SetChange, content: &Content) -> WireSet {
        let kind = change.kind.as_str();
        let property = |name: &str| property(&content.properties, name);
        let mut set = WireSet {
            name: format!("{}.", change.name),
            kind: kind.to_owned(),
            set_identifier: change.set_identifier.as_ref().map(Str::to_string),
            ..WireSet::default()
        };
        let fields = FIELDS.iter().filter_map(|field| Some((field.property, property(field.property)?.to_owned())));
        set.fields = fields.collect();
        let zone_id = property(TARGET_ZONE).filter(|_| kind != "TXT" && property(ALIAS) == Some("true"));
        if let (Some(zone_id), Some(target)) = (zone_id, content.values.first()) {
            let evaluates_health = property(HEALTH) == Some("true");
            set.alias = Some(WireAlias { zone_id: zone_id.to_owned(), name: format!("{target}."), evaluates_health });
        } else {
            set.ttl = Some(content.ttl.unwrap_or(USUAL_TTL));
            set.values = content.values.iter().map(|value| wire_value(kind, value)).collect();
        }
        set
    }
}

/// The value of a property.
pub(super) fn property<'p>(properties: &'p [(Str, Str)], name: &str) -> Option<&'p str> {
    properties.iter().find(|(known, _)| &**known == name).map(|(_, value)| &**value)
}

/// A name in lower case, without a dot at its end, with what can be seen in it as it is.
pub(super) fn plain_name(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.strip_suffix('.').unwrap_or(text);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        match octal(&rest.as_bytes()[at..]) {
            Some(byte) if byte.is_ascii_graphic() && !matches!(byte, b'.' | b'\\') => {
                out.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            _ => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out.to_ascii_lowercase()
}

fn plain_value(kind: &str, value: &str) -> String {
    if matches!(kind, "TXT" | "SPF") {
        respelled(value, |byte| format!("\\{byte:03}"), octal)
    } else {
        value.to_owned()
    }
}

fn wire_value(kind: &str, value: &str) -> String {
    let value = data::tidy(kind, value).unwrap_or_else(|_| value.to_owned());
    if kind == "TXT" { respelled(&value, |byte| format!("\\{byte:03o}"), decimal) } else { value }
}

/// A text in quotes with its escapes read one way and written another; what can be seen is not escaped.
fn respelled(text: &str, write: impl Fn(u8) -> String, read: impl Fn(&[u8]) -> Option<u8>) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let (meant, is_escaped, length) = match (read(&bytes[at..]), bytes.get(at + 1)) {
            (Some(meant), _) => (meant, true, 4),
            (None, Some(&next)) if byte == b'\\' => (next, true, 2),
            _ => (byte, false, 1),
        };
        match meant {
            b'"' | b'\\' if is_escaped => out.extend(['\\', char::from(meant)]),
            b' '..=b'~' => out.push(char::from(meant)),
            _ => out.push_str(&write(meant)),
        }
        at += length;
    }
    out
}

/// A backslash and three octal digits.
fn octal(bytes: &[u8]) -> Option<u8> {
    escape(bytes, 8)
}

/// A backslash and three decimal digits.
fn decimal(bytes: &[u8]) -> Option<u8> {
    escape(bytes, 10)
}

fn escape(bytes: &[u8], base: u32) -> Option<u8> {
    let [b'\\', a, b, c, ..] = bytes else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(base);
    u8::try_from((digit(a)? * base + digit(b)?) * base + digit(c)?).ok()
}

#[cfg(test)]
mod tests {
    use gatepost_core::publication::RecordType;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_with_escapes() {
        let rows = [
            ("\\052.Example.com.", "*.example.com"),
            ("a\\056b.example.com.", "a\\056b.example.com"),
            ("\\100x.example.com.", "@x.example.com"),
            ("\\344.example.com", "\\344.example.com"),
            ("\\09.example.com", "\\09.example.com"),
            ("\\", "\\"),
        ];
        for (text, expected) in rows {
            assert_eq!(plain_name(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_with_escapes() {
        let rows = [
            ("\"a\\\"b\" \"c\\\\\"", "\"a\\\"b\" \"c\\\\\""),
            ("\"\\101\\377\\000\"", "\"A\\255\\000\""),
            ("\"\\042\\134\"", "\"\\\"\\\\\""),
        ];
        for (wire, plain) in rows {
            assert_eq!(plain_value("TXT", wire), plain, "{wire}");
        }
        assert_eq!(wire_value("TXT", "\"A\\255\\065\""), "\"A\\377A\"");
        assert_eq!(wire_value("TXT", "heritage=x"), "\"heritage=x\"");
    }

    #[test]
    fn a_set_survives_the_planner() {
        let alias = Some(WireAlias { zone_id: "Z1".to_owned(), name: "lb.test.".to_owned(), evaluates_health: true });
        let fields = [("aws/weight", "10".to_owned()), ("aws/health-check-id", "h".to_owned())].into();
        let plain = WireSet { name: "a.test.".to_owned(), kind: "A".to_owned(), ..WireSet::default() };
        let sets = [
            WireSet { ttl: Some(60), values: vec!["192.0.2.1".to_owned(), "192.0.2.2".to_owned()], ..plain.clone() },
            WireSet { alias, fields, set_identifier: Some("one".to_owned()), ..plain.clone() },
            WireSet { kind: "TXT".to_owned(), ttl: Some(0), values: vec!["\"\\303\\244\"".to_owned()], ..plain },
        ];
        for set in sets {
            let read = set.to_record_set();
            let kind = read.made().unwrap();
            let RecordSet { name, set_identifier, ttl, values, properties, .. } = read;
            let content = Content { ttl, values, properties };
            let change = SetChange { name, kind, set_identifier, old: None, new: Some(content.clone()) };
            assert_eq!(WireSet::new(&change, &content), set);
        }
        // A marker has the routing of its record, and is no alias.
        let properties = vec![(ALIAS.into(), "true".into()), (TARGET_ZONE.into(), "Z1".into())];
        let content = Content { ttl: None, values: vec!["\"x\"".into()], properties };
        let change =
            SetChange { name: "a.test".into(), kind: RecordType::Txt, set_identifier: None, old: None, new: None };
        let marker = WireSet::new(&change, &content);
        assert_eq!((marker.alias, marker.ttl, marker.values.len()), (None, Some(USUAL_TTL), 1));
    }

    proptest! {
        #[test]
        fn bytes_survive_both_spellings(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
            let plain = gatepost_core::plan::text::quoted(&bytes);
            let wire = wire_value("TXT", &plain);
            prop_assert_eq!(plain_value("TXT", &wire), plain);
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            plain_name(&text);
            plain_value("TXT", &text);
            wire_value("TXT", &text);
        }
    }
}
