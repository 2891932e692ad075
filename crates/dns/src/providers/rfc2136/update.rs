//! Sending updates: batch by batch, server by server, and halving a batch until the one bad record stands alone.

use domain::base::iana::Opcode;

use super::answer::{self, Reaction};
use super::batch;
use super::connection::Connection;
use super::message::{self, Prepared};
use super::{Rfc2136, Zone};
use crate::provider::{Error, Problem, Result, units};
use gatepost_core::plan::Step;

/// After this many single failures and no success the rest is not tried.
const PATIENCE: usize = 8;

/// The results of a write, under way.
struct Results {
    steps: Vec<Option<Result<()>>>,
    successes: usize,
    failures: usize,
}

impl Rfc2136 {
    /// Writes steps and says for each how it went.
    pub(super) async fn write_steps(&self, name: &str, steps: &[Step]) -> Vec<Result<()>> {
        let zone = match self.zone(name) {
            Ok(zone) => zone,
            Err(error) => return steps.iter().map(|_| Err(error.clone())).collect(),
        };
        let mut results = Results { steps: vec![None; steps.len()], successes: 0, failures: 0 };
        let prepared = self.prepare(zone, steps, &mut results);
        for batch in batch::batches(&prepared) {
            if let Err(stop) = self.write_batch(zone, batch, &mut results).await {
                results.abandon(&stop);
                break;
            }
        }
        results.finish(&zone.text)
    }

    fn prepare<'a>(&self, zone: &Zone, steps: &'a [Step], results: &mut Results) -> Vec<Prepared<'a>> {
        let mut prepared = Vec::new();
        for unit in units(steps) {
            match message::prepare(&unit, &zone.wire, self.min_ttl).and_then(fitting) {
                Ok(unit) => prepared.push(unit),
                Err(error) => results.put((unit.first, unit.steps.len()), &Err(error)),
            }
        }
        prepared
    }

    /// Writes a batch; where one record of it is at fault, finds that one. An error stops everything.
    async fn write_batch(&self, zone: &Zone, batch: &[Prepared<'_>], results: &mut Results) -> Result<()> {
        let mut waiting = vec![batch];
        while let Some(part) = waiting.pop() {
            match self.send(zone, part).await {
                Ok(()) => part.iter().for_each(|unit| results.succeed(unit)),
                Err(error) if !answer::may_be_one_record(&error) => {
                    part.iter().for_each(|unit| results.fail(unit, &error));
                    return Err(error);
                }
                Err(error) if part.len() == 1 => {
                    results.fail(&part[0], &error);
                    results.check_patience(&error)?;
                }
                Err(_) => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([second, first]);
                }
            }
        }
        Ok(())
    }

    /// Sends one message to the first server that takes it.
    async fn send(&self, zone: &Zone, units: &[Prepared<'_>]) -> Result<()> {
        let mut failure = Error::settings("rfc2136 has no server");
        let mut lost: Option<Error> = None;
        for (at, host) in self.servers() {
            let error = match self.attempt(host, zone, units).await {
                Ok(()) => {
                    self.answered(at);
                    return Ok(());
                }
                Err(error) => error.at(host).zone(&zone.text),
            };
            if answer::reaction(&error) == Reaction::Isolate {
                self.answered(at);
                // What looks like a hand edit may be our own change that an earlier server made and did not confirm.
                return Err(lost.filter(|_| matches!(error.problem, Problem::Stale(_))).unwrap_or(error));
            }
            if matches!(error.problem, Problem::Lost(_)) {
                lost.get_or_insert_with(|| error.clone());
            }
            failure = super::more_telling(failure, error);
        }
        Err(lost.unwrap_or(failure))
    }

    async fn attempt(&self, host: &str, zone: &Zone, units: &[Prepared<'_>]) -> Result<()> {
        let id = message::random_id()?;
        let mut builder = message::compose(id, &zone.wire, units)?;
        let transaction = self.signer.ask(&mut builder)?;
        let unreachable = |cause| Error::new(Problem::Unreachable(cause));
        let mut connection = Connection::open(host, self.timeout).await.map_err(unreachable)?;
        let lost = |cause| Error::new(Problem::Lost(cause));
        connection.send(&builder.finish()).await.map_err(lost)?;
        let bytes = connection.receive().await.map_err(lost)?;
        let mut answer = answer::parse(bytes, id, Opcode::UPDATE)?;
        transaction.verify(&mut answer)?;
        answer::update_failure(answer.header().rcode()).map_or(Ok(()), Err)
    }
}

impl Results {
    fn put(&mut self, (first, count): (usize, usize), result: &Result<()>) {
        self.steps.iter_mut().skip(first).take(count).for_each(|step| *step = Some(result.clone()));
    }

    fn succeed(&mut self, unit: &Prepared<'_>) {
        self.successes += 1;
        self.put(unit.steps, &Ok(()));
    }

    fn fail(&mut self, unit: &Prepared<'_>, error: &Error) {
        self.failures += 1;
        self.put(unit.steps, &Err(error.clone().record(&unit.subject)));
    }

    /// A server that says no to everything is not asked a thousand times.
    fn check_patience(&self, error: &Error) -> Result<()> {
        let hopeless = self.successes == 0 && self.failures >= PATIENCE;
        if hopeless { Err(error.clone()) } else { Ok(()) }
    }

    /// Marks what was not tried, because of this failure.
    fn abandon(&mut self, stop: &Error) {
        let left = Error { record: None, problem: Problem::NotTried(stop.problem.to_string()), ..stop.clone() };
        self.steps.iter_mut().filter(|step| step.is_none()).for_each(|step| *step = Some(Err(left.clone())));
    }

    fn finish(self, zone: &str) -> Vec<Result<()>> {
        let untried = || Err(Error::new(Problem::NotTried("no answer was recorded".into())));
        let named = |result: Result<()>| result.map_err(|error| error.zone(zone));
        self.steps.into_iter().map(|step| named(step.unwrap_or_else(untried))).collect()
    }
}

fn fitting(unit: Prepared<'_>) -> Result<Prepared<'_>> {
    let size = unit.size();
    if size <= batch::ROOM {
        return Ok(unit);
    }
    let cause = format!("it takes {size} bytes, and an update holds at most {}", batch::ROOM);
    Err(Error::new(Problem::Unwritable(cause)).record(&unit.subject))
}
