//! Writing many pieces when one of them may be bad: together first, then in halves, until the bad one stands alone.
//!
//! Order is kept: what comes first is tried first. A server that says no to everything is not asked a thousand times, but
//! a few bad pieces in front never keep the others from being tried.

use std::future::Future;
use std::ops::Range;

use super::{ProviderError, ProviderProblem, Result};

/// After this many single failures and no success, pieces further on are tried before going on.
const PATIENCE: usize = 8;

/// So many pieces further on are tried.
const PROBES: usize = 8;

/// Something that is written whole or not at all.
pub(crate) trait Piece: Sync {
    /// Which steps it is made of.
    fn steps(&self) -> Range<usize>;
    /// What it is about, for messages.
    fn subject(&self) -> String;
}

/// What carries pieces to a server.
pub(crate) trait Courier<P: Piece>: Sync {
    /// Sends pieces together. It may settle some of them in the results without sending them.
    fn send(&self, pieces: &[&P], results: &mut Results) -> impl Future<Output = WriteOutcome> + Send;
}

/// How it went with all pieces that are not settled.
pub(crate) enum WriteOutcome {
    /// All were written.
    Done,
    /// None was written, and one of them may be the cause.
    Unclear(ProviderError),
    /// Nothing more can be written now.
    Stop(ProviderError),
}

/// The results of all steps of a write, under way.
pub(crate) struct Results(Vec<Option<Result<()>>>);

impl Results {
    /// For this many steps.
    pub(crate) fn new(steps: usize) -> Results {
        Results(vec![None; steps])
    }

    /// Settles a piece.
    pub(crate) fn put(&mut self, piece: &impl Piece, result: Result<()>) {
        let result = result.map_err(|error| error.record(piece.subject()));
        let steps = piece.steps();
        self.0.iter_mut().take(steps.end).skip(steps.start).for_each(|step| *step = Some(result.clone()));
    }

    /// Marks everything that is not settled as not tried, because of this failure.
    pub(crate) fn abandon(&mut self, stop: &ProviderError) {
        let left = ProviderError {
            record: None,
            problem: ProviderProblem::NotTried(stop.problem.to_string()),
            ..stop.clone()
        };
        self.0.iter_mut().filter(|step| step.is_none()).for_each(|step| *step = Some(Err(left.clone())));
    }

    /// One result per step.
    pub(crate) fn finish(self, zone: &str) -> Vec<Result<()>> {
        let untried = || Err(ProviderError::new(ProviderProblem::NotTried("no answer was recorded".into())));
        let named = |result: Result<()>| result.map_err(|error| error.zone(zone));
        self.0.into_iter().map(|step| named(step.unwrap_or_else(untried))).collect()
    }

    fn is_open(&self, piece: &impl Piece) -> bool {
        self.0.get(piece.steps().start).is_some_and(Option::is_none)
    }

    fn open<'p, P: Piece>(&self, pieces: &[&'p P]) -> Vec<&'p P> {
        pieces.iter().copied().filter(|piece| self.is_open(*piece)).collect()
    }

    fn put_all<P: Piece>(&mut self, pieces: &[&P], result: &Result<()>) {
        pieces.iter().for_each(|piece| self.put(*piece, result.clone()));
    }
}

/// Writes a batch and settles every piece of it. An error means that nothing more can be written now.
pub(crate) async fn write<P: Piece>(courier: &impl Courier<P>, batch: &[P], results: &mut Results) -> Result<()> {
    let mut waiting: Vec<Vec<&P>> = vec![batch.iter().collect()];
    let (mut successes, mut failures) = (0, 0);
    while let Some(part) = waiting.pop() {
        let sent = courier.send(&part, results).await;
        let left = results.open(&part);
        match (sent, left.as_slice()) {
            (WriteOutcome::Done, left) => {
                successes += left.len();
                results.put_all(left, &Ok(()));
            }
            (WriteOutcome::Stop(error), left) => {
                results.put_all(left, &Err(error.clone()));
                return Err(error);
            }
            (WriteOutcome::Unclear(_), []) => {}
            (WriteOutcome::Unclear(error), [one]) => {
                failures += 1;
                results.put(*one, Err(error.clone()));
                if successes == 0 && failures == PATIENCE {
                    let rest: Vec<&P> = waiting.drain(..).rev().flatten().collect();
                    successes += probe(courier, &rest, results).await?;
                    waiting.push(results.open(&rest));
                    if successes == 0 {
                        results.put_all(&results.open(&rest), &Err(not_tried(&error)));
                        return Ok(());
                    }
                }
            }
            (WriteOutcome::Unclear(_), many) => {
                let (first, second) = many.split_at(many.len() / 2);
                waiting.extend([second.to_vec(), first.to_vec()]);
            }
        }
        waiting.retain(|part| !part.is_empty());
    }
    Ok(())
}

/// Tries single pieces from all over the rest until one is written; says how many were.
async fn probe<P: Piece>(courier: &impl Courier<P>, rest: &[&P], results: &mut Results) -> Result<usize> {
    for number in 0..PROBES.min(rest.len()) {
        // Spread evenly, the last one included.
        let piece = rest[(number + 1) * rest.len() / PROBES.min(rest.len()) - 1];
        match courier.send(&[piece], results).await {
            WriteOutcome::Done if results.is_open(piece) => {
                results.put(piece, Ok(()));
                return Ok(1);
            }
            WriteOutcome::Done => {}
            WriteOutcome::Unclear(error) => results.put(piece, Err(error)),
            WriteOutcome::Stop(error) => {
                results.put(piece, Err(error.clone()));
                return Err(error);
            }
        }
    }
    Ok(0)
}

fn not_tried(error: &ProviderError) -> ProviderError {
    let cause = format!("everything that was tried failed, at last with {}", error.problem);
    ProviderError { record: None, problem: ProviderProblem::NotTried(cause), ..error.clone() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    struct One(usize);

    impl Piece for One {
        fn steps(&self) -> Range<usize> {
            self.0..self.0 + 1
        }

        fn subject(&self) -> String {
            self.0.to_string()
        }
    }

    /// Fails whenever a bad piece is among those sent.
    struct Picky {
        bad: BTreeSet<usize>,
        sent: AtomicUsize,
    }

    impl Courier<One> for Picky {
        async fn send(&self, pieces: &[&One], _: &mut Results) -> WriteOutcome {
            self.sent.fetch_add(1, Ordering::Relaxed);
            let bad = pieces.iter().any(|piece| self.bad.contains(&piece.0));
            if bad { WriteOutcome::Unclear(ProviderError::protocol("bad")) } else { WriteOutcome::Done }
        }
    }

    /// Which of so many were written, and with how many messages.
    fn run(count: usize, bad: impl IntoIterator<Item = usize>) -> (Vec<usize>, usize) {
        let picky = Picky { bad: bad.into_iter().collect(), sent: AtomicUsize::new(0) };
        let batch: Vec<One> = (0..count).map(One).collect();
        let mut results = Results::new(count);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(write(&picky, &batch, &mut results)).unwrap();
        let results = results.finish("zone");
        ((0..count).filter(|at| results[*at].is_ok()).collect(), picky.sent.into_inner())
    }

    #[test]
    fn one_bad_piece_stands_alone() {
        let (written, sent) = run(200, [77]);
        assert_eq!((written.len(), written.contains(&77)), (199, false));
        assert!(sent <= 18, "{sent}");
    }

    #[test]
    fn bad_pieces_in_front_stop_nothing() {
        let (written, _) = run(200, 0..50);
        assert_eq!(written, (50..200).collect::<Vec<_>>());
    }

    #[test]
    fn a_server_that_refuses_everything_is_left_alone() {
        let (written, sent) = run(1000, 0..1000);
        assert!(written.is_empty());
        assert!(sent < 50, "{sent}");
    }

    proptest! {
        #[test]
        fn what_is_good_is_written(count in 0..120usize, bad in proptest::collection::btree_set(0..120usize, 0..8)) {
            let expected: Vec<usize> = (0..count).filter(|at| !bad.contains(at)).collect();
            prop_assert_eq!(run(count, bad).0, expected);
        }
    }
}
