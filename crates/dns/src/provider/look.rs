//! Preconditions, compared with a fresh reading: for services that check none themselves.
//!
//! A gap between the reading and the write remains, which only the service could close.

use std::borrow::Cow;

use gatepost_core::plan::Precondition;

use super::data;

/// What a fresh reading found.
pub(crate) trait Reading {
    /// The values of a record set; nothing where there is none.
    fn values(&self, name: &str, kind: &str, set_identifier: Option<&str>) -> Option<Vec<Cow<'_, str>>>;

    /// Whether a name, in lower case, has record sets of any type.
    fn is_used(&self, name: &str) -> bool;
}

/// Why a precondition does not hold.
pub(crate) fn broken(condition: &Precondition, reading: &impl Reading) -> Option<String> {
    match condition {
        Precondition::Unused { name } => reading.is_used(name).then(|| format!("{name} is in use")),
        Precondition::Absent { name, kind, set_identifier } => {
            let found = reading.values(name, kind.as_str(), set_identifier.as_deref());
            found.map(|_| format!("{name} {kind} exists and was absent"))
        }
        Precondition::Equals { name, kind, set_identifier, values } => {
            let values: Vec<&str> = values.iter().map(|value| &**value).collect();
            match reading.values(name, kind.as_str(), set_identifier.as_deref()) {
                None => Some(format!("{name} {kind} is gone")),
                Some(found)
                    if same(kind.as_str(), &found.iter().map(|value| &**value).collect::<Vec<_>>(), &values) =>
                {
                    None
                }
                Some(_) => Some(format!("{name} {kind} has other values")),
            }
        }
    }
}

/// Whether two lists of values mean the same, whatever their order and spelling.
pub(crate) fn same(kind: &str, ours: &[&str], theirs: &[&str]) -> bool {
    let all = |values: &[&str]| {
        let mut values: Vec<String> = values.iter().map(|value| spelled(kind, value)).collect();
        values.sort();
        values.dedup();
        values
    };
    all(ours) == all(theirs)
}

/// One spelling for all that mean the same.
pub(crate) fn spelled(kind: &str, value: &str) -> String {
    let value = data::tidy(kind, value).unwrap_or_else(|_| value.to_owned());
    if kind == "TXT" { value } else { value.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_is_no_difference() {
        let rows = [
            ("A", &["192.0.2.2", "192.0.2.1"][..], &["192.0.2.1", "192.0.2.2"][..], true),
            ("A", &["192.0.2.1"], &["192.0.2.1", "192.0.2.2"], false),
            ("AAAA", &["2001:DB8::1"], &["2001:db8:0::1"], true),
            ("CNAME", &["Edge.Example.net."], &["edge.example.net"], true),
            ("TXT", &["\"Abc\""], &["Abc"], true),
            ("TXT", &["\"Abc\""], &["\"abc\""], false),
            ("ODD", &["x"], &["x"], true),
        ];
        for (kind, ours, theirs, expected) in rows {
            assert_eq!(same(kind, ours, theirs), expected, "{kind} {ours:?} {theirs:?}");
        }
    }
}
