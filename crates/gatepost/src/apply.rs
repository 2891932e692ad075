//! The one place that writes: a plan becomes an outcome.
//!
//! Steps are written in their order; one that waits for another is sent only after that one is there. Observe mode is enforced
//! here and nowhere else. What a step means, and whether it is safe, was decided before.

use std::collections::BTreeSet;
use std::time::Duration;

use gatepost_core::plan::{Plan, Step};
use gatepost_dns::provider::{Error, Provider};

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
    /// Steps that failed, with the error.
    pub failed: Vec<(usize, Error)>,
    /// Steps that were not tried, because one they wait for failed or because nothing is written.
    pub skipped: BTreeSet<usize>,
}

/// How often a step is tried while the failure may pass.
const TRIES: u32 = 4;
/// The first pause between tries; it doubles.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest pause, whatever the server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Outcome {
    /// Whether everything was done.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty()
    }
}

/// Writes a plan, unless only to observe.
pub async fn apply(provider: &dyn Provider, plan: &Plan, mode: Mode) -> Outcome {
    let mut outcome = Outcome::default();
    if mode == Mode::Observe {
        outcome.skipped = (0..plan.steps.len()).collect();
        return outcome;
    }
    let mut next = 0;
    while next < plan.steps.len() {
        let end = batch_end(&plan.steps, next);
        write_batch(provider, plan, next..end, &mut outcome).await;
        next = end;
    }
    outcome
}

/// Steps of one zone that do not wait for one another.
fn batch_end(steps: &[Step], first: usize) -> usize {
    let belongs =
        |i: &usize| steps[*i].zone == steps[first].zone && steps[*i].after.iter().all(|earlier| *earlier < first);
    // Steps of one group are never parted.
    let end = (first..steps.len()).take_while(belongs).last().map_or(first + 1, |last| last + 1);
    (end..steps.len())
        .take_while(|i| steps[*i].group == steps[end - 1].group && steps[*i].zone == steps[first].zone)
        .last()
        .map_or(end, |last| last + 1)
}

async fn write_batch(provider: &dyn Provider, plan: &Plan, range: std::ops::Range<usize>, outcome: &mut Outcome) {
    let failed: BTreeSet<usize> =
        outcome.failed.iter().map(|(i, _)| *i).chain(outcome.skipped.iter().copied()).collect();
    let (blocked, mut open): (Vec<usize>, Vec<usize>) =
        range.partition(|i| plan.steps[*i].after.iter().any(|earlier| failed.contains(earlier)));
    outcome.skipped.extend(blocked);
    let mut pause = PAUSE;
    for attempt in 1..=TRIES {
        let Some(zone) = open.first().map(|i| &plan.steps[*i].zone) else { return };
        let steps: Vec<Step> = open.iter().map(|i| plan.steps[*i].clone()).collect();
        let results = provider.write(zone, &steps).await;
        let mut again = Vec::new();
        let mut wait = pause;
        for (i, result) in open.iter().copied().zip(results) {
            match result {
                Ok(()) => _ = outcome.written.insert(i),
                Err(error) if error.is_transient() && !error.needs_read() && attempt < TRIES => {
                    wait = wait.max(error.retry_after().unwrap_or_default()).min(LONGEST_PAUSE);
                    again.push(i);
                }
                Err(error) => outcome.failed.push((i, error)),
            }
        }
        open = again;
        if open.is_empty() {
            return;
        }
        tokio::time::sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
