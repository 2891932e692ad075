//! Keeps the ConfigMap that the policies of `gatepost admission` read up to date with the HostnameGrants of a cluster.
//!
//! It is written by the leader alone, under the resource version that was read, and read again from time to time, so that what
//! others change there does not last. While grants are not known it stays as it is. A ConfigMap of that name without our label
//! is never written.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gatepost_core::model::Kind;
use gatepost_core::publication::PublicationSettings;
use gatepost_core::snapshot::{Snapshot, Visibility};
use gatepost_kube::Connection;
use gatepost_kube::objects::{make, stored};
use serde_json::{Value, json};

use super::permit::Permit;
use crate::admission::{AdmissionNames, LABEL, parameters};

/// How long the ConfigMap is taken to be as it was read or written.
const FRESH: Duration = Duration::from_secs(60);

/// The ConfigMap with the HostnameGrants.
pub struct GrantParameters {
    connection: Connection,
    permit: Permit,
    names: AdmissionNames,
    settings: PublicationSettings,
    /// What it holds, and since when that is known.
    known: Option<(BTreeMap<String, String>, Instant)>,
    /// What was logged last.
    trouble: Option<String>,
}

impl GrantParameters {
    /// The ConfigMap of these names, for a controller with these settings.
    pub fn new(connection: Connection, permit: Permit, names: AdmissionNames, settings: PublicationSettings) -> Self {
        GrantParameters { connection, permit, names, settings, known: None, trouble: None }
    }

    /// Writes the grants of a snapshot if the ConfigMap has others; whether it has them now.
    pub async fn keep(&mut self, snapshot: &Snapshot) -> bool {
        let kept = self.kept(snapshot).await;
        let trouble = kept.err();
        if let Some(why) = trouble.as_ref().filter(|why| self.trouble.as_ref() != Some(*why)) {
            let name = self.names.parameters();
            tracing::warn!(
                config_map = name,
                error = why,
                "the policies of `gatepost admission` do not have the present HostnameGrants"
            );
        }
        self.trouble = trouble;
        self.trouble.is_none()
    }

    async fn kept(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        if *snapshot.visibility(Kind::HostnameGrant) != Visibility::Complete {
            return Err("HostnameGrants could not be listed".to_owned());
        }
        let data = parameters(snapshot, &self.settings)?;
        if self.known.as_ref().is_some_and(|(known, at)| *known == data && at.elapsed() < FRESH) {
            return Ok(());
        }
        self.known = None;
        if let Some(why) = self.permit.refusal() {
            return Err(why);
        }
        self.write(&data).await?;
        self.known = Some((data, Instant::now()));
        Ok(())
    }

    async fn write(&self, data: &BTreeMap<String, String>) -> Result<(), String> {
        let folder = format!("/api/v1/namespaces/{}/configmaps", self.names.namespace);
        let name = self.names.parameters();
        let found = stored(&self.connection, &format!("{folder}/{name}")).await.map_err(|error| error.to_string())?;
        let Some(found) = found else {
            let made = make(&self.connection, &folder, &name, &self.names.object(data)).await;
            return made.map(drop).map_err(|error| error.to_string());
        };
        if found.value.pointer("/metadata/labels").and_then(|labels| labels.get(LABEL.0)?.as_str()) != Some(LABEL.1) {
            return Err(format!("somebody else made it: it lacks the label {}: {}", LABEL.0, LABEL.1));
        }
        match change(&found.value["data"], data) {
            None => Ok(()),
            Some(change) => {
                let changed = found.patch(&self.connection, &json!({ "data": change })).await;
                changed.map(drop).map_err(|error| error.to_string())
            }
        }
    }
}

/// What has to change in the data of a ConfigMap; a key that goes is null.
fn change(found: &Value, data: &BTreeMap<String, String>) -> Option<BTreeMap<String, Value>> {
    let none = serde_json::Map::new();
    let found = found.as_object().unwrap_or(&none);
    let gone = found.keys().filter(|key| !data.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let new = data.iter().filter(|(key, value)| found.get(*key).and_then(Value::as_str) != Some(value));
    let change: BTreeMap<_, _> = gone.chain(new.map(|(key, value)| (key.clone(), value.as_str().into()))).collect();
    (!change.is_empty()).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_changed() {
        let data = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
        assert_eq!(change(&json!({"a": "1", "b": "2"}), &data), None);
        let changed = change(&json!({"a": "0", "c": "3"}), &data);
        assert_eq!(serde_json::to_value(changed).unwrap_or_default(), json!({"a": "1", "b": "2", "c": null}));
        assert_eq!(change(&Value::Null, &data).map(|change| change.len()), Some(2));
    }
}
