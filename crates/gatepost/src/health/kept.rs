//! What is known of the health of addresses, as it is kept: in the state directory, and in the status of policies.

use gatepost_core::health::{AddressHealth, AddressPublication, AddressReport, HealthState, ObservedHealth};
use gatepost_core::model::{Key, Str};
use gatepost_objects::crds::{AddressState, AddressStatus};
use gatepost_objects::{rfc3339_millis, timestamp_millis};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The value of the `format` field.
const FORMAT: &str = "gatepost health";
/// Longer errors are cut off.
const LONGEST_ERROR: usize = 1000;

#[derive(Serialize, Deserialize)]
struct KeptHealth {
    format: String,
    version: u64,
    addresses: Vec<KeptAddress>,
}

#[derive(Serialize, Deserialize)]
struct KeptAddress {
    namespace: String,
    policy: String,
    #[serde(flatten)]
    address: AddressStatus,
}

/// The text of a file.
pub fn write(observed: &ObservedHealth) -> Result<Vec<u8>, serde_json::Error> {
    let addresses = observed.all().map(|(name, policy, address, health)| KeptAddress {
        namespace: policy.namespace.to_string(),
        policy: policy.name.to_string(),
        address: status_of(name, address, health, health.state != HealthState::Unhealthy),
    });
    serde_json::to_vec(&KeptHealth { format: FORMAT.to_owned(), version: 1, addresses: addresses.collect() })
}

/// Reads the text of a file.
pub fn read(bytes: &[u8]) -> Result<ObservedHealth, String> {
    let kept: KeptHealth = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if (kept.format.as_str(), kept.version) != (FORMAT, 1) {
        return Err(format!("it is `{}` version {}, and this program knows version 1", kept.format, kept.version));
    }
    let mut observed = ObservedHealth::default();
    for KeptAddress { namespace, policy, address } in kept.addresses {
        take(&mut observed, &Key::new(namespace, policy), &address);
    }
    Ok(observed)
}

/// Adds what the status of a policy says; entries that cannot be read are left out.
pub fn take_status(observed: &mut ObservedHealth, policy: &Key, status: &Value) {
    for entry in status["addresses"].as_array().into_iter().flatten() {
        if let Ok(entry) = serde_json::from_value::<AddressStatus>(entry.clone()) {
            take(observed, policy, &entry);
        }
    }
}

/// One address in the status of a policy.
pub fn status(report: &AddressReport) -> AddressStatus {
    let health =
        AddressHealth { state: report.state, since: report.since.unwrap_or_default(), error: report.error.clone() };
    let is_published = report.publication != AddressPublication::Removed;
    let status = status_of(&report.hostname, &report.address, &health, is_published);
    AddressStatus { since: report.since.and(status.since), ..status }
}

fn take(observed: &mut ObservedHealth, policy: &Key, entry: &AddressStatus) {
    let state = match entry.state {
        AddressState::Healthy => HealthState::Healthy,
        AddressState::Unhealthy => HealthState::Unhealthy,
        AddressState::Unknown => return,
    };
    let since = entry.since.as_deref().and_then(timestamp_millis).unwrap_or_default();
    let error = Str::from(entry.error.as_deref().unwrap_or_default());
    let (name, address) = (entry.hostname.as_str().into(), entry.address.as_str().into());
    observed.set(&name, policy, &address, AddressHealth { state, since, error });
}

fn status_of(name: &Str, address: &Str, health: &AddressHealth, published: bool) -> AddressStatus {
    let error: String = health.error.chars().take(LONGEST_ERROR).collect();
    AddressStatus {
        hostname: name.to_string(),
        address: address.to_string(),
        state: match health.state {
            HealthState::Healthy => AddressState::Healthy,
            HealthState::Unhealthy => AddressState::Unhealthy,
            HealthState::Unknown => AddressState::Unknown,
        },
        since: Some(rfc3339_millis(health.since)),
        published,
        error: (!error.is_empty()).then_some(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed() -> ObservedHealth {
        let mut observed = ObservedHealth::default();
        let policy = Key::new("infra", "dns");
        let health = |state, error: &str| AddressHealth { state, since: 1_772_359_205_250, error: error.into() };
        let name: Str = "a.test".into();
        observed.set(&name, &policy, &"192.0.2.1".into(), health(HealthState::Unhealthy, "status 500"));
        observed.set(&name, &policy, &"192.0.2.2".into(), health(HealthState::Healthy, ""));
        observed
    }

    #[test]
    fn what_is_known_survives_in_a_file_and_in_a_status() {
        assert_eq!(read(&write(&observed()).unwrap()).unwrap(), observed());
        let entries = observed();
        let entries = entries.all().map(|(name, _, address, health)| status_of(name, address, health, true));
        let status = serde_json::json!({"addresses": entries.collect::<Vec<_>>()});
        assert_eq!(status["addresses"][0]["since"], "2026-03-01T10:00:05.25Z");
        let mut found = ObservedHealth::default();
        take_status(&mut found, &Key::new("infra", "dns"), &status);
        assert_eq!(found, observed());
    }

    #[test]
    fn damage_is_told_and_a_strange_status_is_left_out() {
        assert!(read(b"{").is_err());
        assert!(read(br#"{"format": "x", "version": 1, "addresses": []}"#).unwrap_err().contains("`x`"));
        let mut found = ObservedHealth::default();
        let status = serde_json::json!({"addresses": [{"hostname": 1}, {"hostname": "a", "address": "b", "state": "Unknown", "published": true}]});
        take_status(&mut found, &Key::new("infra", "dns"), &status);
        assert_eq!(found, ObservedHealth::default());
    }
}
