//! Writes plans; the only module that does.
//!
//! Steps are written in order; a step that depends on another is sent only after that one succeeded. Transient failures
//! are retried after a pause, or after the time that the server requests; if the result of a step is uncertain, the
//! zone is read first. Observe mode is enforced here and nowhere else. What a step means, and whether it is safe, was
//! decided before and is never decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::time::Duration;

use gatepost_core::plan::{Plan, PlanStep};
use gatepost_dns::provider::{Provider, ProviderError as Error};

mod check;

use check::{State, state};

/// Whether plans are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is written.
    Observe,
    /// The plan is written.
    Act,
}

/// The result of each step of a plan.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Written steps, by index.
    pub written: BTreeSet<usize>,
    /// Failed steps with the error, by index.
    pub failed: BTreeMap<usize, Error>,
    /// Steps that were not tried, because a step they depend on failed or because of observe mode.
    pub skipped: BTreeSet<usize>,
    /// Failed and skipped steps of an earlier pass, which were reported then.
    pub repeated: BTreeSet<usize>,
}

/// Called with the number of finished steps and of all steps.
pub type Progress<'a> = &'a mut (dyn FnMut(usize, usize) + Send);

/// Maximum attempts per step while the failure is transient.
const TRIES: u32 = 4;
/// The first pause between attempts; it doubles each time.
const PAUSE: Duration = Duration::from_millis(250);
/// Maximum pause of our own; a server may request more.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// If a server requests a longer pause, the step is not retried in this run.
const PATIENCE: Duration = Duration::from_secs(120);
/// Maximum steps in one call to a provider, so that progress can be reported between calls.
const BATCH: usize = 1000;

impl Outcome {
    /// Whether every step was written.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty()
    }

    /// Number of steps with a result.
    pub fn finished(&self) -> usize {
        self.written.len() + self.failed.len() + self.skipped.len()
    }

    fn is_blocked(&self, step: &PlanStep) -> bool {
        step.after.iter().any(|earlier| self.failed.contains_key(earlier) || self.skipped.contains(earlier))
    }
}

/// Writes a plan, unless in observe mode.
pub async fn apply(provider: &dyn Provider, plan: &Plan, mode: Mode, progress: Progress<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    if mode == Mode::Observe {
        outcome.skipped = (0..plan.steps.len()).collect();
        return outcome;
    }
    let mut next = 0;
    while next < plan.steps.len() {
        let end = batch_end(&plan.steps, next);
        write_batch(provider, plan, next..end, &mut outcome).await;
        progress(outcome.finished(), plan.steps.len());
        next = end;
    }
    outcome
}

/// The end of the steps from `first` on that belong to one zone and do not depend on each other.
fn batch_end(steps: &[PlanStep], first: usize) -> usize {
    let belongs =
        |i: &usize| steps[*i].zone == steps[first].zone && steps[*i].after.iter().all(|earlier| *earlier < first);
    let end = (first..steps.len()).take(BATCH).take_while(belongs).last().map_or(first + 1, |last| last + 1);
    // Steps of one group are never split.
    let is_same = |i: &usize| steps[*i].group == steps[end - 1].group && steps[*i].zone == steps[first].zone;
    (end..steps.len()).take_while(is_same).last().map_or(end, |last| last + 1)
}

async fn write_batch(provider: &dyn Provider, plan: &Plan, range: Range<usize>, outcome: &mut Outcome) {
    let (blocked, mut open): (Vec<usize>, Vec<usize>) = range.partition(|i| outcome.is_blocked(&plan.steps[*i]));
    outcome.skipped.extend(blocked);
    let mut pause = PAUSE;
    for attempt in 1..=TRIES {
        let failures = write_once(provider, plan, &open, outcome).await;
        let is_last = attempt == TRIES;
        let (again, lost): (Vec<_>, Vec<_>) =
            failures.into_iter().partition(|(_, error)| !is_last && may_be_tried_again(error));
        outcome.failed.extend(lost);
        if again.is_empty() {
            return;
        }
        tokio::time::sleep(wait(pause, again.iter().map(|(_, error)| error))).await;
        open = reopened(provider, plan, again, outcome).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Sends steps of one zone once, and returns those that failed.
async fn write_once(
    provider: &dyn Provider,
    plan: &Plan,
    open: &[usize],
    outcome: &mut Outcome,
) -> Vec<(usize, Error)> {
    let Some(zone) = open.first().map(|i| &plan.steps[*i].zone) else { return Vec::new() };
    let steps: Vec<PlanStep> = open.iter().map(|i| plan.steps[*i].clone()).collect();
    let results = provider.write(zone, &steps).await;
    let mut failures = Vec::new();
    for (i, result) in open.iter().copied().zip(results) {
        match result {
            Ok(()) => _ = outcome.written.insert(i),
            Err(error) => failures.push((i, error)),
        }
    }
    failures
}

/// Whether a failure is transient and the requested pause is short enough for this run.
fn may_be_tried_again(error: &Error) -> bool {
    error.is_transient() && error.retry_after().is_none_or(|wait| wait <= PATIENCE)
}

/// The steps to send again. If the result of a step is uncertain, the zone is read to find out.
async fn reopened(
    provider: &dyn Provider,
    plan: &Plan,
    failures: Vec<(usize, Error)>,
    outcome: &mut Outcome,
) -> Vec<usize> {
    let Some(zone) = failures.first().map(|(i, _)| &plan.steps[*i].zone) else { return Vec::new() };
    if !failures.iter().any(|(_, error)| error.needs_read()) {
        return failures.into_iter().map(|(i, _)| i).collect();
    }
    let content = match provider.read(zone).await {
        Ok(content) => content,
        Err(_) => {
            outcome.failed.extend(failures);
            return Vec::new();
        }
    };
    let mut open = Vec::new();
    for (i, error) in failures {
        match state(&plan.steps[i], &content) {
            State::Done => _ = outcome.written.insert(i),
            State::Open => open.push(i),
            State::Changed => _ = outcome.failed.insert(i, error),
        }
    }
    open
}

/// The time to wait. Our own pause or the one that a server requests, plus up to 100 % of random jitter.
fn wait<'e>(pause: Duration, errors: impl Iterator<Item = &'e Error>) -> Duration {
    let asked = errors.filter_map(Error::retry_after).max().unwrap_or_default();
    let least = pause.max(asked);
    least + least.mul_f64(chance())
}

/// A random number from 0 to 1.
pub fn chance() -> f64 {
    (RandomState::new().hash_one(0) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
