//! The JSON of the API. Numbers may come as integers or floats; what is not known is passed over.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::provider::http::null_is_default;

/// What every answer is wrapped in.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<T> {
    pub(super) success: bool,
    #[serde(default = "Vec::new", deserialize_with = "null_is_default")]
    pub(super) errors: Vec<ApiProblem>,
    #[serde(default = "Option::default")]
    pub(super) result: Option<T>,
    #[serde(default)]
    pub(super) result_info: Option<PageInfo>,
}

/// One problem of several.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ApiProblem {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) error_chain: Vec<ApiProblem>,
}

/// Which page an answer is.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct PageInfo {
    #[serde(default)]
    pub(super) page: Option<usize>,
    #[serde(default)]
    pub(super) count: Option<usize>,
    #[serde(default)]
    pub(super) total_count: Option<usize>,
}

/// A zone.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ApiZone {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    plan: Value,
}

/// A record: one value of a record set.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct ApiRecord {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) content: String,
    #[serde(default)]
    pub(super) ttl: f64,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) proxied: bool,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) comment: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) tags: Vec<String>,
    #[serde(default)]
    pub(super) priority: Option<f64>,
    #[serde(default)]
    pub(super) data: Option<Value>,
}

/// Something with an id, in a list that comes in pages.
pub(super) trait Listed: serde::de::DeserializeOwned + Send {
    /// What tells it from all others.
    fn id(&self) -> &str;
}

/// Changes that are made together: deletes first, then patches, then posts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct BatchBody {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) deletes: Vec<RecordId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) patches: Vec<RecordBody>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) posts: Vec<RecordBody>,
}

/// What a batch did.
#[derive(Debug, Default, Deserialize)]
pub(super) struct BatchResult {
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) deletes: Vec<RecordId>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) patches: Vec<ApiRecord>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) posts: Vec<ApiRecord>,
}

/// Which record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordId {
    pub(super) id: String,
}

/// A record as it is to be; what is left out stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RecordBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) content: String,
    pub(super) ttl: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proxied: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tags: Option<Vec<String>>,
}

impl ApiZone {
    /// Whether it is on a plan that is paid for, as far as it says.
    pub(super) fn is_paid(&self) -> bool {
        let name = self.plan.get("legacy_id").and_then(Value::as_str).unwrap_or("free");
        name != "free"
    }
}

impl Listed for ApiZone {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Listed for ApiRecord {
    fn id(&self) -> &str {
        &self.id
    }
}

impl BatchBody {
    /// How many deletes, patches and posts it has.
    pub(super) fn counts(&self) -> [usize; 3] {
        [self.deletes.len(), self.patches.len(), self.posts.len()]
    }
}

impl BatchResult {
    /// How many deletes, patches and posts were done.
    pub(super) fn counts(&self) -> [usize; 3] {
        [self.deletes.len(), self.patches.len(), self.posts.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_all_their_forms() {
        let text = r#"{"success":true,"errors":null,"messages":[],"result":[{"id":"1","name":"a.test","type":"A",
            "content":"192.0.2.1","ttl":1.0,"proxied":true,"comment":null,"tags":null,"meta":{}},
            {"id":"2","name":"a.test","type":"MX","content":"mail.test","ttl":300,"priority":10}],
            "result_info":{"page":1,"per_page":100,"count":2,"total_count":2,"total_pages":1}}"#;
        let answer: Envelope<Vec<ApiRecord>> = serde_json::from_str(text).unwrap();
        let records = answer.result.unwrap();
        assert!(answer.success && records[0].proxied && records[0].ttl == 1.0 && records[1].priority == Some(10.0));
        let text = r#"{"success":false,"errors":[{"code":1004,"message":"DNS Validation Error",
            "error_chain":[{"code":9005,"message":"Content for A record is invalid"}]}],"result":null}"#;
        let answer: Envelope<Vec<ApiRecord>> = serde_json::from_str(text).unwrap();
        assert!(!answer.success && answer.result.is_none() && answer.errors[0].error_chain[0].code == 9005);
        assert!(serde_json::from_str::<Envelope<Vec<ApiRecord>>>(r#"{"result":[]}"#).is_err());
    }
}
