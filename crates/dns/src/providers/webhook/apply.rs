//! Sending changes: compared with a fresh reading just before, and judged by a fresh reading after a failure.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use gatepost_core::plan::{PlanStep, SetChange, Verb};

use super::Webhook;
use super::client::Body;
use super::endpoint::{Changes, Endpoint, Key};
use super::filter::WebhookDomains;
use crate::provider::isolate::{self, Courier, Results, WriteOutcome};
use crate::provider::look::{self, Reading};
use crate::provider::{ProviderError, ProviderProblem, Result, Unit, units};

/// Units in one question.
const BATCH: usize = 1000;

/// What the webhook has, by key.
type Present = BTreeMap<Key, Endpoint>;

impl Reading for Present {
    fn values(&self, name: &str, kind: &str, set_identifier: Option<&str>) -> Option<Vec<Cow<'_, str>>> {
        let found = self.get(&key_of(name, kind, set_identifier))?;
        Some(found.targets.iter().map(|target| target.as_str().into()).collect())
    }

    fn is_used(&self, name: &str) -> bool {
        self.keys().any(|(other, ..)| other == name)
    }
}

/// Carries changes of one zone to the webhook.
struct Questions<'a> {
    webhook: &'a Webhook,
    zone: &'a str,
    /// Whether something was sent that may have been carried out in part.
    tried: AtomicBool,
}

impl Courier<Unit<'_>> for Questions<'_> {
    async fn send(&self, pieces: &[&Unit<'_>], results: &mut Results) -> WriteOutcome {
        match self.try_send(pieces, results).await {
            Ok(sent) => sent,
            Err(error) => WriteOutcome::Stop(error),
        }
    }
}

impl Questions<'_> {
    async fn try_send(&self, pieces: &[&Unit<'_>], results: &mut Results) -> Result<WriteOutcome> {
        let tried = self.tried.load(Ordering::Relaxed);
        let unsure = |error: ProviderError| match tried {
            false => error,
            true => ProviderError { problem: ProviderProblem::Lost(error.problem.to_string()), ..error },
        };
        let present = self.webhook.present(self.zone).await.map_err(unsure)?;
        let filter = self.webhook.filter().await?;
        let mut ready: Vec<&Unit<'_>> = Vec::new();
        for piece in pieces {
            match settled(piece, &present, filter, tried) {
                Some(result) => results.put(*piece, result),
                None => ready.push(piece),
            }
        }
        if ready.is_empty() {
            return Ok(WriteOutcome::Done);
        }
        self.tried.store(true, Ordering::Relaxed);
        self.webhook.post(&ready, &present).await
    }
}

impl Webhook {
    /// Writes steps and says for each how it went.
    pub(super) async fn write_steps(&self, zone: &str, steps: &[PlanStep]) -> Vec<Result<()>> {
        let mut results = Results::new(steps.len());
        for batch in units(steps).chunks(BATCH) {
            let questions = Questions { webhook: self, zone, tried: AtomicBool::new(false) };
            if let Err(stop) = isolate::write(&questions, batch, &mut results).await {
                results.abandon(&stop);
                break;
            }
        }
        results.finish(zone)
    }

    async fn present(&self, zone: &str) -> Result<Present> {
        let endpoints = self.endpoints_of(zone).await?;
        Ok(endpoints.into_iter().map(|endpoint| (endpoint.key(), endpoint)).collect())
    }

    async fn post(&self, units: &[&Unit<'_>], present: &Present) -> Result<WriteOutcome> {
        let mut changes = Changes::default();
        units.iter().flat_map(|unit| unit.changes()).for_each(|change| add(change, present, &mut changes));
        let body = serde_json::to_vec(&changes).map_err(|error| self.client.wrong(error.to_string()))?;
        let answer = self.client.ask("POST", "records", Body::Json(body)).await?;
        match answer.expect(204) {
            Ok(()) => Ok(WriteOutcome::Done),
            Err(error) if answer.may_be_one_change() && error.retry_after.is_none() => Ok(WriteOutcome::Unclear(error)),
            Err(error) => Err(error),
        }
    }
}

/// The result of a unit that is not to be sent: it is done already, or something changed meanwhile.
fn settled(unit: &Unit<'_>, present: &Present, filter: &WebhookDomains, tried: bool) -> Option<Result<()>> {
    let is_done = tried && unit.changes().all(|change| is_new(change, present));
    if is_done { Some(Ok(())) } else { obstacle(unit, present, filter).map(Err) }
}

/// Puts a change where it belongs. The old side is what the webhook itself said, labels included.
fn add(change: &SetChange, present: &Present, changes: &mut Changes) {
    let old = present.get(&key_of(&change.name, change.kind.as_str(), change.set_identifier.as_deref())).cloned();
    match (change.verb(), old, Endpoint::of_new(change)) {
        (Verb::Create, _, Some(new)) => changes.create.push(new),
        (Verb::Update, Some(old), Some(new)) => {
            changes.update_old.push(old);
            changes.update_new.push(new);
        }
        (Verb::Delete, Some(old), _) => changes.delete.push(old),
        // The preconditions hold, so that an old side is there; and no side is ever empty.
        _ => {}
    }
}

/// What stands in the way of a unit.
fn obstacle(unit: &Unit<'_>, present: &Present, filter: &WebhookDomains) -> Option<ProviderError> {
    if let Some(change) = unit.changes().find(|change| !filter.admits(&change.name)) {
        let cause = format!("{} is outside of the domains that the webhook takes", change.name);
        return Some(ProviderError::new(ProviderProblem::Unwritable(cause)));
    }
    let mut conditions = unit.steps.iter().flat_map(|step| step.preconditions());
    conditions
        .find_map(|condition| look::broken(&condition, present))
        .map(|cause| ProviderError::new(ProviderProblem::Stale(cause)))
}

/// Whether a change has been made.
fn is_new(change: &SetChange, present: &Present) -> bool {
    let found = present.get(&key_of(&change.name, change.kind.as_str(), change.set_identifier.as_deref()));
    match (found, &change.new) {
        (None, None) => true,
        (Some(found), Some(new)) => {
            let values: Vec<&str> = new.values.iter().map(|value| &**value).collect();
            let targets: Vec<&str> = found.targets.iter().map(String::as_str).collect();
            look::same(change.kind.as_str(), &targets, &values) && new.ttl.is_none_or(|ttl| found.ttl() == Some(ttl))
        }
        _ => false,
    }
}

fn key_of(name: &str, kind: &str, id: Option<&str>) -> Key {
    (name.to_ascii_lowercase(), kind.to_ascii_uppercase(), id.unwrap_or_default().to_owned())
}
