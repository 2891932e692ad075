//! Records of the API as record sets of the planner.
//!
//! The API stores one value per record, each with its own TTL and properties. A set whose records disagree has no TTL, or a
//! property with several values, so that it never equals what is wanted and is made even.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::Str;
use gatepost_core::plan::RecordSet;
use gatepost_core::publication::RecordType;
use serde_json::Value;

use super::wire::ApiRecord;

/// Whether a record is proxied.
pub(super) const PROXIED: &str = "cloudflare/proxied";
/// The comment of a record.
pub(super) const COMMENT: &str = "cloudflare/record-comment";
/// The tags of a record, with commas between them.
pub(super) const TAGS: &str = "cloudflare/tags";

/// The TTL that means automatic.
pub(super) const AUTOMATIC: u32 = 1;

/// The name and type of a record set.
pub(super) type SetKey = (String, String);

impl ApiRecord {
    /// The set that it belongs to.
    pub(super) fn key(&self) -> SetKey {
        set_key(&self.name, &self.kind)
    }

    /// Its TTL.
    pub(super) fn seconds(&self) -> u32 {
        // Values outside are none that the API keeps; the conversion is within bounds for all others.
        self.ttl as u32
    }

    /// Its value as a zone file has it.
    pub(super) fn value(&self) -> String {
        let of = |key: &str| self.data.as_ref().and_then(|data| data.get(key)).and_then(text);
        let of_srv = || Some(format!("{} {} {} {}", of("priority")?, of("weight")?, of("port")?, of("target")?));
        match (&*self.kind, self.priority) {
            ("SRV", _) => of_srv().unwrap_or_else(|| self.content.clone()),
            ("MX" | "URI", Some(priority)) => format!("{priority} {}", self.content),
            _ => self.content.clone(),
        }
    }

    /// Its tags as one text.
    pub(super) fn tag_list(&self) -> String {
        let tags: BTreeSet<&str> = self.tags.iter().map(String::as_str).collect();
        tags.into_iter().collect::<Vec<_>>().join(",")
    }
}

/// The key of a set.
pub(super) fn set_key(name: &str, kind: &str) -> SetKey {
    (name.trim_end_matches('.').to_ascii_lowercase(), kind.to_ascii_uppercase())
}

/// Whether records of a type have properties that are kept: those that can be proxied.
pub(super) fn has_properties(kind: &str) -> bool {
    [RecordType::A, RecordType::Aaaa, RecordType::Cname].iter().any(|known| known.as_str() == kind)
}

/// All record sets.
pub(super) fn sets(records: &[ApiRecord]) -> Vec<RecordSet> {
    let mut by_key = BTreeMap::<SetKey, Vec<&ApiRecord>>::new();
    for record in records {
        by_key.entry(record.key()).or_default().push(record);
    }
    by_key.iter().map(|(key, records)| set(key, records)).collect()
}

/// One record set of at least one record.
pub(super) fn set((name, kind): &SetKey, records: &[&ApiRecord]) -> RecordSet {
    let ttls: BTreeSet<u32> = records.iter().map(|record| record.seconds()).collect();
    let ttl = ttls.first().copied().filter(|_| ttls.len() == 1);
    let mut set = RecordSet::new(name, kind, ttl, records.iter().map(|record| record.value()));
    if has_properties(kind) {
        set.properties = properties(records);
    }
    set
}

/// The properties of a set: none that is empty or false, unless records disagree.
fn properties(records: &[&ApiRecord]) -> Vec<(Str, Str)> {
    let of = |name: &'static str, value: fn(&ApiRecord) -> String| {
        let values: BTreeSet<String> = records.iter().map(|record| value(record)).collect();
        let is_even = values.len() == 1;
        let told = values.into_iter().filter(move |value| !is_even || !(value.is_empty() || value == "false"));
        told.map(move |value| (Str::from(name), Str::from(value))).collect::<Vec<_>>()
    };
    let mut all = of(PROXIED, |record| record.proxied.to_string());
    all.extend(of(COMMENT, |record| record.comment.clone()));
    all.extend(of(TAGS, ApiRecord::tag_list));
    all.sort();
    all
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(value: Value) -> ApiRecord {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn values_of_all_types() {
        let srv = json!({"priority": 1, "weight": 2, "port": 5060, "target": "sip.test"});
        let rows = [
            (json!({"id": "1", "name": "a", "type": "A", "content": "192.0.2.1"}), "192.0.2.1"),
            (json!({"id": "1", "name": "a", "type": "MX", "content": "mail.test", "priority": 10}), "10 mail.test"),
            (json!({"id": "1", "name": "a", "type": "SRV", "content": "odd", "data": srv}), "1 2 5060 sip.test"),
            (json!({"id": "1", "name": "a", "type": "TXT", "content": "\"v=spf1\" \"-all\""}), "\"v=spf1\" \"-all\""),
        ];
        for (value, expected) in rows {
            assert_eq!(record(value).value(), expected);
        }
    }

    #[test]
    fn records_that_disagree_equal_nothing_that_is_wanted() {
        let one = |id: u32, ttl: u32, proxied: bool, comment: &str| {
            let content = format!("192.0.2.{id}");
            record(json!({"id": id.to_string(), "name": "A.test", "type": "A", "content": content, "ttl": ttl,
                "proxied": proxied, "comment": comment, "tags": ["b:2", "a:1"]}))
        };
        let even = sets(&[one(1, 300, false, ""), one(2, 300, false, "")]);
        let tags = (Str::from(TAGS), Str::from("a:1,b:2"));
        assert_eq!((even[0].ttl, even[0].properties.clone(), even[0].values.len()), (Some(300), vec![tags.clone()], 2));
        let odd = sets(&[one(1, 300, false, ""), one(2, 1, true, "by hand")]);
        let pair = |name: &str, value: &str| (Str::from(name), Str::from(value));
        let expected =
            vec![pair(PROXIED, "false"), pair(PROXIED, "true"), pair(COMMENT, ""), pair(COMMENT, "by hand"), tags];
        assert_eq!((odd[0].ttl, odd[0].properties.clone()), (None, expected));
    }
}
