//! The health of addresses: what probes found out, and which addresses of a name are published because of it.
//!
//! An address leaves the records of a name after so many failed probes in a row, and returns after so many successful ones.
//! An address that was not probed is published. The last address of a record set never leaves: if all fail, those stay that
//! were published when the last one failed. Probes are made elsewhere; times are parameters.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Condition, Key, Str};
use crate::reason::{self, Reason};

/// What is known of the health of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HealthState {
    /// Neither enough probes succeeded nor failed.
    Unknown,
    /// The last probe succeeded, or too few failed since.
    Healthy,
    /// As many probes failed in a row as the policy says, and too few succeeded since.
    Unhealthy,
}

/// The health of one address of a name under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressHealth {
    /// The state.
    pub state: HealthState,
    /// When it became so, in milliseconds since 1970.
    pub since: i64,
    /// Why probes fail, or why none is made; empty if they succeed.
    pub error: Str,
}

/// How many results in a row change the state of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeThresholds {
    /// Failures until it is unhealthy.
    pub failures: u32,
    /// Successes until it is healthy again.
    pub successes: u32,
}

/// The results of the probes of one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeHistory {
    health: AddressHealth,
    failures: u32,
    successes: u32,
    /// When the error was last replaced.
    told_at: i64,
}

/// Another error of an address that stays unhealthy is taken over after so many milliseconds.
const ERROR_SPACING: i64 = 60_000;

impl HealthState {
    /// The text form in output.
    pub fn as_str(self) -> &'static str {
        match self {
            HealthState::Unknown => "Unknown",
            HealthState::Healthy => "Healthy",
            HealthState::Unhealthy => "Unhealthy",
        }
    }

    /// The state of a text form.
    pub fn parse(text: &str) -> Option<HealthState> {
        let all = [HealthState::Unknown, HealthState::Healthy, HealthState::Unhealthy];
        all.into_iter().find(|state| state.as_str() == text)
    }
}

impl ProbeHistory {
    /// An address that was not probed yet.
    pub fn new(at: i64) -> Self {
        ProbeHistory::resuming(AddressHealth { state: HealthState::Unknown, since: at, error: "".into() })
    }

    /// An address of which an earlier run or leader knew this.
    pub fn resuming(health: AddressHealth) -> Self {
        ProbeHistory { told_at: health.since, health, failures: 0, successes: 0 }
    }

    /// The health that follows from the results.
    pub fn health(&self) -> &AddressHealth {
        &self.health
    }

    /// Forgets the results in a row, not the state: they belong to another check than the one from now on.
    pub fn restart(&mut self) {
        (self.failures, self.successes) = (0, 0);
    }

    /// Takes the result of one probe; returns whether the health changed.
    pub fn observe(&mut self, result: Result<(), &str>, thresholds: ProbeThresholds, at: i64) -> bool {
        let state = self.count(result.is_ok(), thresholds);
        let error = result.err().unwrap_or_default();
        let has_changed = state != self.health.state;
        if has_changed {
            (self.health.state, self.health.since) = (state, at);
        }
        // A failure below the threshold is told only where nothing else is known.
        let is_told = match state {
            HealthState::Healthy => has_changed,
            HealthState::Unknown => self.health.error.is_empty(),
            HealthState::Unhealthy => !error.is_empty() && (has_changed || at - self.told_at >= ERROR_SPACING),
        };
        if is_told && *self.health.error != *error {
            (self.health.error, self.told_at) = (error.into(), at);
            return true;
        }
        has_changed
    }

    /// Takes note that no probe is made, and why; returns whether that is new. What was known before is not known any more.
    pub fn refuse(&mut self, why: &str, at: i64) -> bool {
        let refused = AddressHealth { state: HealthState::Unknown, since: at, error: why.into() };
        if self.health.state == HealthState::Unknown && self.health.error == refused.error {
            return false;
        }
        *self = ProbeHistory::resuming(refused);
        true
    }

    fn count(&mut self, is_success: bool, thresholds: ProbeThresholds) -> HealthState {
        (self.failures, self.successes) = match is_success {
            true => (0, self.successes.saturating_add(1)),
            false => (self.failures.saturating_add(1), 0),
        };
        match self.health.state {
            HealthState::Unknown if is_success => HealthState::Healthy,
            HealthState::Unhealthy if self.successes >= thresholds.successes.max(1) => HealthState::Healthy,
            _ if self.failures >= thresholds.failures.max(1) => HealthState::Unhealthy,
            state => state,
        }
    }
}

/// What probes found out about the addresses of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedHealth {
    names: BTreeMap<Str, BTreeMap<(Key, Str), AddressHealth>>,
}

impl ObservedHealth {
    /// Sets the health of an address of a name under a policy.
    pub fn set(&mut self, name: &Str, policy: &Key, address: &Str, health: AddressHealth) {
        self.names.entry(name.clone()).or_default().insert((policy.clone(), address.clone()), health);
    }

    /// The health of an address of a name under a policy.
    pub fn of(&self, name: &str, policy: &Key, address: &str) -> Option<&AddressHealth> {
        let known = self.names.get(name)?;
        known.iter().find(|((by, of), _)| by == policy && **of == *address).map(|(_, health)| health)
    }

    /// Everything that is known: name, policy, address and health.
    pub fn all(&self) -> impl Iterator<Item = (&Str, &Key, &Str, &AddressHealth)> {
        self.names.iter().flat_map(|(name, known)| {
            known.iter().map(move |((policy, address), health)| (name, policy, address, health))
        })
    }

    /// The number of addresses.
    pub fn len(&self) -> usize {
        self.names.values().map(BTreeMap::len).sum()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds everything that another observation knows; it wins.
    pub fn extend(&mut self, other: &ObservedHealth) {
        other.all().for_each(|(name, policy, address, health)| self.set(name, policy, address, health.clone()));
    }

    /// The names where two observations differ.
    pub(crate) fn differences<'a>(&'a self, other: &'a ObservedHealth) -> impl Iterator<Item = &'a Str> {
        let names: BTreeSet<&Str> = self.names.keys().chain(other.names.keys()).collect();
        names.into_iter().filter(|name| self.names.get(*name) != other.names.get(*name))
    }
}

/// What becomes of one address of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressPublication {
    /// It is published: nothing is known against it.
    Published,
    /// It is left out, because it is unhealthy.
    Removed,
    /// It is published although it is unhealthy, because no address is left that is not.
    Kept,
}

impl AddressPublication {
    /// Why it is not published, or published all the same.
    pub fn reason(self) -> Option<Reason> {
        match self {
            AddressPublication::Published => None,
            AddressPublication::Removed => Some(reason::ADDRESS_UNHEALTHY),
            AddressPublication::Kept => Some(reason::ALL_ADDRESSES_UNHEALTHY),
        }
    }
}

/// Since when an address is unhealthy, by all who ask for it; `None` if one of them has nothing against it.
pub fn unhealthy_since<'a>(known: impl IntoIterator<Item = Option<&'a AddressHealth>>) -> Option<i64> {
    let mut latest = None;
    for health in known {
        let health = health.filter(|health| health.state == HealthState::Unhealthy)?;
        latest = latest.max(Some(health.since));
    }
    latest
}

/// Decides about the addresses of one record set, each given by the time since which it is unhealthy. If all are, those stay
/// that became so last: the others had left before.
pub fn decide(unhealthy_since: &[Option<i64>]) -> Vec<AddressPublication> {
    let is_any_left = unhealthy_since.iter().any(Option::is_none);
    let last = unhealthy_since.iter().copied().max().flatten();
    let decide = |since: &Option<i64>| match since {
        None => AddressPublication::Published,
        Some(_) if is_any_left || *since != last => AddressPublication::Removed,
        Some(_) => AddressPublication::Kept,
    };
    unhealthy_since.iter().map(decide).collect()
}

/// The health of one address of a hostname, in the status of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressReport {
    /// The hostname.
    pub hostname: Str,
    /// The address, or the hostname that a CNAME names.
    pub address: Str,
    /// Its health.
    pub state: HealthState,
    /// Since when, in milliseconds since 1970; unset if nothing is known.
    pub since: Option<i64>,
    /// Why probes fail, or why none is made.
    pub error: Str,
    /// Whether it is published.
    pub publication: AddressPublication,
}

impl AddressReport {
    /// What is told about an address that is unhealthy.
    pub fn message(&self) -> String {
        let AddressReport { hostname, address, error, .. } = self;
        match self.publication {
            AddressPublication::Removed => {
                format!("`{address}` is not published for `{hostname}`, because its probes fail: {error}")
            }
            AddressPublication::Kept => format!(
                "`{address}` stays published for `{hostname}` although its probes fail, because no address of its type is left: {error}"
            ),
            AddressPublication::Published => format!("`{address}` is published for `{hostname}`"),
        }
    }
}

/// `SubResourcesHealthy` for the addresses of a policy's precise hostnames, and its hostnames that are not probed.
pub fn condition(addresses: &[AddressReport], unprobed: &[&Str]) -> Condition {
    let unhealthy = addresses.iter().filter(|report| report.state == HealthState::Unhealthy);
    let unknown = addresses.iter().filter(|report| report.state == HealthState::Unknown);
    let lost = addresses.chunk_by(|a, b| a.hostname == b.hostname);
    let lost = lost.filter(|same| same.iter().all(|report| report.state == HealthState::Unhealthy));
    let lost: Vec<&str> = lost.map(|same| &*same[0].hostname).collect();
    let unhealthy: Vec<String> = unhealthy.map(|report| format!("{} of {}", report.address, report.hostname)).collect();
    let (all, unknown) = (addresses.len(), unknown.count());
    let (status, word, mut message) = match (lost.is_empty(), unhealthy.is_empty(), unknown) {
        (false, ..) => {
            let names = crate::lint::listed(lost.into_iter());
            (
                "False",
                "AllUnhealthy",
                format!("every address of {names} fails its probes, so what was published last stays"),
            )
        }
        (true, false, _) => {
            let failing = crate::lint::listed(unhealthy.iter().map(String::as_str));
            ("False", "SomeUnhealthy", format!("{} of {all} addresses fail their probes: {failing}", unhealthy.len()))
        }
        (true, true, 0) if all > 0 => ("True", "AllHealthy", format!("all {all} addresses answer their probes")),
        _ if all == 0 => ("Unknown", "Unknown", "there is no address to probe".to_owned()),
        _ => ("Unknown", "Unknown", format!("{unknown} of {all} addresses were not probed yet")),
    };
    if !unprobed.is_empty() {
        let names = crate::lint::listed(unprobed.iter().map(|name| &***name));
        message.push_str(&format!("; wildcards, and names that only a wildcard answers for, are not probed: {names}"));
    }
    let mut condition = Condition::new("SubResourcesHealthy", status == "True", word, message.as_str());
    condition.status = status.into();
    condition
}

#[cfg(test)]
mod tests;
