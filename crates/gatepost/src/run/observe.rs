//! Reads the zones of a provider, each completely or not at all.
//!
//! A provider that cannot list its zones is represented by one unreadable zone that contains every name, so that
//! nothing is planned for zones that were not read. Nothing is written here.

use std::time::Duration;

use futures_util::future::join_all;
use gatepost_core::model::Str;
use gatepost_core::plan::{Observed, Plan, ZoneContent, ZoneState};
use gatepost_core::reason;
use gatepost_dns::provider::{Provider, ProviderError as Error, Result};

use super::zone_cache::Given;

impl Reading {
    /// The zones.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }
}

/// Number of zones that are read concurrently.
const AT_ONCE: usize = 8;

/// The root zone, which contains every name and represents all zones.
const ALL: &str = ".";

/// What was read, and how long the provider asks to be left alone where a read failed.
#[derive(Debug, Default)]
pub struct Reading {
    /// The zones.
    pub(super) observed: Observed,
    /// The longest pause that was asked for.
    pub(super) retry_after: Option<Duration>,
}

/// Reads every zone; one that cannot be read completely is marked as unreadable. Zones in `given` were just read.
pub(super) async fn read(provider: &dyn Provider, given: Given) -> Reading {
    let mut zones: Vec<Str> = match provider.zones().await {
        Ok(zones) => zones,
        Err(error) => return Reading { observed: lost(&error), retry_after: error.retry_after() },
    };
    let (mut observed, mut retry_after) = (Observed::default(), None);
    zones.retain(|zone| !given.contains_key(zone));
    given.into_iter().for_each(|(zone, content)| observed.insert(&zone, ZoneState::Read(content)));
    for some in zones.chunks(AT_ONCE) {
        let calls = some.iter().map(|zone| provider.read(zone));
        for (zone, result) in some.iter().zip(join_all(calls).await) {
            retry_after = retry_after.max(result.as_ref().err().and_then(Error::retry_after));
            observed.insert(zone, state(result));
        }
    }
    Reading { observed, retry_after }
}

/// The observed state if the provider returns no zones.
pub(super) fn lost(error: &Error) -> Observed {
    let mut observed = Observed::default();
    observed.insert(ALL, ZoneState::Unreadable(error.to_string()));
    observed
}

/// Whether any zone was read.
pub(super) fn is_readable(observed: &Observed) -> bool {
    observed.zones().any(|(_, state)| matches!(state, ZoneState::Read(_)))
}

/// The errors of zones that could not be read, as text.
pub(super) fn unread(observed: &Observed) -> Vec<String> {
    let unread = observed.zones().filter_map(|(zone, state)| match state {
        ZoneState::Unreadable(why) if zone.is_empty() => Some(format!("the provider could not be read: {why}")),
        ZoneState::Unreadable(why) => Some(format!("zone {zone} could not be read: {why}")),
        ZoneState::Read(_) => None,
    });
    unread.collect()
}

/// Replaces messages about the root zone by the error of a provider that returned no zones.
pub(super) fn name_lost(plan: &mut Plan, observed: &Observed) {
    let Some(ZoneState::Unreadable(why)) = observed.zone("") else { return };
    for held in plan.held.iter_mut().filter(|held| held.reason == reason::ZONE_UNREADABLE) {
        held.zone = None;
        held.message = format!("the provider could not be read ({why}), so nothing is changed");
    }
}

fn state(result: Result<ZoneContent>) -> ZoneState {
    match result {
        Ok(content) => ZoneState::Read(content),
        Err(error) => ZoneState::Unreadable(error.to_string()),
    }
}
