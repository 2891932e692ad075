//! The one place that writes: a plan becomes an outcome.
//!
//! Steps are written in their order; one that waits for another is sent only after that one is there. A failure that may pass
//! is tried again after a pause, or after as long as the server asks for; where it is not certain what became of a step, the
//! zone is read first. Observe mode is enforced here and nowhere else. What a step means, and whether it is safe, was
//! decided before.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::time::Duration;

use gatepost_core::plan::{Plan, PlanStep};
use gatepost_dns::provider::{Provider, ProviderError as Error};

mod check;

use check::{State, state};

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Observe,
    /// What the plan says.
    Act,
}

/// What became of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Steps that were written, by position.
    pub written: BTreeSet<usize>,
    /// Steps that failed, with the error, sorted by position.
    pub failed: BTreeMap<usize, Error>,
    /// Steps that were not tried, because one they wait for failed or because nothing is written.
    pub skipped: BTreeSet<usize>,
}

/// Is told how many of how many steps are done.
pub type Progress<'a> = &'a mut (dyn FnMut(usize, usize) + Send);

/// How often a step is tried while the failure may pass.
const TRIES: u32 = 4;
/// The first pause between tries; it doubles.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest pause of our own.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Who asks for more than this is not tried again in this run.
const PATIENCE: Duration = Duration::from_secs(120);
/// Steps in one call to a provider, so that there is progress to tell.
const BATCH: usize = 1000;

impl Outcome {
    /// Whether everything was done.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty()
    }

    /// How many steps are settled, one way or another.
    pub fn settled(&self) -> usize {
        self.written.len() + self.failed.len() + self.skipped.len()
    }

    fn is_blocked(&self, step: &PlanStep) -> bool {
        step.after.iter().any(|earlier| self.failed.contains_key(earlier) || self.skipped.contains(earlier))
    }
}

/// Writes a plan, unless only to observe.
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
        progress(outcome.settled(), plan.steps.len());
        next = end;
    }
    outcome
}

/// The end of the steps from `first` on that are of one zone and do not wait for one another.
fn batch_end(steps: &[PlanStep], first: usize) -> usize {
    let belongs =
        |i: &usize| steps[*i].zone == steps[first].zone && steps[*i].after.iter().all(|earlier| *earlier < first);
    let end = (first..steps.len()).take(BATCH).take_while(belongs).last().map_or(first + 1, |last| last + 1);
    // Steps of one group are never parted.
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

/// Sends steps of one zone once; gives back those that failed.
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

/// Whether a failure may pass within the time of this run.
fn may_be_tried_again(error: &Error) -> bool {
    error.is_transient() && error.retry_after().is_none_or(|wait| wait <= PATIENCE)
}

/// The steps that are to be sent again. Where it is not certain what became of one, the zone says so.
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

/// How long to wait: our own pause or what a server asks for, and up to as much again, so that many do not come at once.
fn wait<'e>(pause: Duration, errors: impl Iterator<Item = &'e Error>) -> Duration {
    let asked = errors.filter_map(Error::retry_after).max().unwrap_or_default();
    let least = pause.max(asked);
    least + least.mul_f64(chance())
}

/// A number from 0 to 1 that nobody knows before.
pub fn chance() -> f64 {
    (RandomState::new().hash_one(0) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
