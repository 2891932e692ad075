//! The JSON of the protocol: endpoints and changes.

use std::collections::BTreeMap;

use gatepost_core::model::Str;
use gatepost_core::plan::{RecordSet, SetChange};
use gatepost_core::publication::{Record, RecordType};
use serde::{Deserialize, Serialize};

use crate::provider::http::null_is_default;

/// One set of records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The name, in any case, with or without a dot at the end.
    pub dns_name: String,
    /// Values.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub targets: Vec<String>,
    /// The type.
    pub record_type: String,
    /// Tells sets of one name and type apart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub set_identifier: String,
    /// TTL in seconds; 0 is none.
    #[serde(default, rename = "recordTTL", skip_serializing_if = "is_zero")]
    pub record_ttl: i64,
    /// Labels of the registry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub labels: BTreeMap<String, String>,
    /// Properties for the provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub provider_specific: Vec<Property>,
}

/// A property for the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Property {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its value.
    #[serde(default)]
    pub value: String,
}

/// What is to change. Old and new sides belong together by their place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// What is made.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub create: Vec<Endpoint>,
    /// What is there before a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub update_old: Vec<Endpoint>,
    /// What is there after a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub update_new: Vec<Endpoint>,
    /// What goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub delete: Vec<Endpoint>,
}

/// What tells an endpoint from all others: name, type, set identifier.
pub(super) type Key = (String, String, String);

impl Endpoint {
    /// The name as it is compared: lower case, without a dot at the end.
    pub fn name(&self) -> String {
        self.dns_name.strip_suffix('.').unwrap_or(&self.dns_name).to_ascii_lowercase()
    }

    /// The TTL, where there is one.
    pub fn ttl(&self) -> Option<u32> {
        u32::try_from(self.record_ttl).ok().filter(|ttl| *ttl > 0)
    }

    pub(super) fn key(&self) -> Key {
        (self.name(), self.record_type.to_ascii_uppercase(), self.set_identifier.clone())
    }

    pub(super) fn properties(&self) -> Vec<(Str, Str)> {
        let mut all: Vec<(Str, Str)> =
            self.provider_specific.iter().map(|one| (one.name.as_str().into(), one.value.as_str().into())).collect();
        all.sort();
        all
    }

    /// The same as the planner knows it.
    pub(super) fn to_set(&self) -> RecordSet {
        let values = self.targets.iter().map(String::as_str);
        let mut set = RecordSet::new(&self.dns_name, &self.record_type, self.ttl(), values);
        set.set_identifier = Some(self.set_identifier.as_str().into()).filter(|id: &Str| !id.is_empty());
        set.properties = self.properties();
        set
    }

    /// What the planner read, as an endpoint.
    pub(super) fn of_set(set: &RecordSet) -> Endpoint {
        Endpoint {
            dns_name: set.name.to_string(),
            targets: texts(&set.values),
            record_type: set.kind.as_str().to_owned(),
            set_identifier: set.set_identifier.as_deref().unwrap_or_default().to_owned(),
            record_ttl: i64::from(set.ttl.unwrap_or_default()),
            labels: BTreeMap::new(),
            provider_specific: properties(&set.properties),
        }
    }

    /// A desired record, as an endpoint.
    pub(super) fn of_record(record: &Record) -> Endpoint {
        Endpoint {
            dns_name: record.name.to_string(),
            targets: texts(&record.targets),
            record_type: record.kind.as_str().to_owned(),
            set_identifier: record.set_identifier.as_deref().unwrap_or_default().to_owned(),
            record_ttl: i64::from(record.ttl.unwrap_or_default()),
            labels: BTreeMap::new(),
            provider_specific: properties(&record.provider_specific),
        }
    }

    /// The new side of a change.
    pub(super) fn of_new(change: &SetChange) -> Option<Endpoint> {
        let new = change.new.as_ref()?;
        Some(Endpoint {
            dns_name: change.name.to_string(),
            targets: texts(&new.values),
            record_type: change.kind.as_str().to_owned(),
            set_identifier: change.set_identifier.as_deref().unwrap_or_default().to_owned(),
            record_ttl: i64::from(new.ttl.unwrap_or_default()),
            labels: BTreeMap::new(),
            provider_specific: properties(&new.properties),
        })
    }

    /// The type, where it is one that is made here.
    pub(super) fn made(&self) -> Option<RecordType> {
        const ALL: [RecordType; 4] = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
        ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(&self.record_type))
    }
}

/// A list of endpoints. `null` is what Go makes of an empty list.
pub(super) fn parse_list(body: &[u8]) -> Result<Vec<Endpoint>, String> {
    let list: Option<Vec<Endpoint>> = serde_json::from_slice(body)
        .map_err(|error| format!("it is not a list of endpoints: {error}{}", opening(body)))?;
    let list = list.unwrap_or_default();
    match list.iter().find(|endpoint| endpoint.dns_name.is_empty() || endpoint.record_type.is_empty()) {
        None => Ok(list),
        Some(broken) => Err(format!("an endpoint has no name or no type: {broken:?}")),
    }
}

/// How a body begins, for messages.
pub(super) fn opening(body: &[u8]) -> String {
    let text: String =
        String::from_utf8_lossy(body.get(..80).unwrap_or(body)).chars().filter(|c| !c.is_control()).collect();
    if text.is_empty() { "; the body is empty".to_owned() } else { format!("; it begins with `{text}`") }
}

fn texts(values: &[Str]) -> Vec<String> {
    values.iter().map(|value| value.to_string()).collect()
}

fn properties(all: &[(Str, Str)]) -> Vec<Property> {
    all.iter().map(|(name, value)| Property { name: name.to_string(), value: value.to_string() }).collect()
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spelling_of_the_protocol() {
        let text = r#"[{"dnsName":"www.example.com","targets":["192.0.2.1"],"recordType":"A","setIdentifier":"blue","recordTTL":300,"labels":{"owner":"me"},"providerSpecific":[{"name":"alias","value":"true"}]}]"#;
        let list = parse_list(text.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&list).unwrap(), text);
        let set = list[0].to_set();
        assert_eq!((set.ttl, set.set_identifier.as_deref()), (Some(300), Some("blue")));
        assert_eq!(Endpoint { labels: list[0].labels.clone(), ..Endpoint::of_set(&set) }, list[0]);
        let bare = Endpoint { dns_name: "a".into(), record_type: "A".into(), ..Endpoint::default() };
        assert_eq!(serde_json::to_string(&bare).unwrap(), r#"{"dnsName":"a","recordType":"A"}"#);
        assert_eq!(serde_json::to_string(&Changes::default()).unwrap(), "{}");
    }

    #[test]
    fn empty_lists_and_broken_ones() {
        for good in ["[]", "null", " [ ] "] {
            assert_eq!(parse_list(good.as_bytes()), Ok(Vec::new()), "{good}");
        }
        let half = r#"[{"dnsName":"a.example","recordType":"A","targets":["192.0.2.1"]},{"dnsNa"#;
        for bad in
            ["", "<html>", "{}", "[{}]", r#"[{"dnsName":"a"}]"#, r#"[{"dnsName":"","recordType":"A"}]"#, "[] []", half]
        {
            assert!(parse_list(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
