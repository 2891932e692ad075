//! Sending updates: batch by batch, server by server.

use domain::base::iana::Opcode;
use gatepost_core::plan::PlanStep;

use super::answer::{self, Reaction};
use super::batch;
use super::message::{self, Prepared};
use super::{ConfiguredZone, Rfc2136};
use crate::provider::isolate::{self, Courier, Results, WriteOutcome};
use crate::provider::{ProviderError, ProviderProblem, Result, Unit, units};

/// Carries messages to the servers of one zone.
struct Updates<'a> {
    provider: &'a Rfc2136,
    zone: &'a ConfiguredZone,
}

impl Courier<Prepared<'_>> for Updates<'_> {
    async fn send(&self, pieces: &[&Prepared<'_>], _: &mut Results) -> WriteOutcome {
        match self.provider.send(self.zone, pieces).await {
            Ok(()) => WriteOutcome::Done,
            Err(error) if answer::may_be_one_record(&error) => WriteOutcome::Unclear(error),
            Err(error) => WriteOutcome::Stop(error),
        }
    }
}

impl Rfc2136 {
    /// Writes steps and says for each how it went.
    pub(super) async fn write_steps(&self, name: &str, steps: &[PlanStep]) -> Vec<Result<()>> {
        let zone = match self.zone(name) {
            Ok(zone) => zone,
            Err(error) => return steps.iter().map(|_| Err(error.clone())).collect(),
        };
        let mut results = Results::new(steps.len());
        let prepared = self.prepare(zone, steps, &mut results);
        let updates = Updates { provider: self, zone };
        for batch in batch::batches(&prepared) {
            if let Err(stop) = isolate::write(&updates, batch, &mut results).await {
                results.abandon(&stop);
                break;
            }
        }
        results.finish(&zone.text)
    }

    fn prepare<'a>(&self, zone: &ConfiguredZone, steps: &'a [PlanStep], results: &mut Results) -> Vec<Prepared<'a>> {
        let mut prepared = Vec::new();
        let mut waiting: Vec<Unit<'a>> = units(steps).into_iter().rev().collect();
        while let Some(unit) = waiting.pop() {
            match message::prepare(&unit, &zone.wire, self.min_ttl) {
                Ok(unit) if unit.size() <= batch::ROOM => prepared.push(unit),
                // A group that no message holds is written in two: better a name that blinks than one that never comes.
                Ok(_) if unit.steps.len() > 1 => waiting.extend(unit.halves().into_iter().rev()),
                Ok(large) => results.put(&unit, Err(too_large(&large))),
                Err(error) => results.put(&unit, Err(error)),
            }
        }
        prepared
    }

    /// Sends one message to the first server that takes it.
    async fn send(&self, zone: &ConfiguredZone, units: &[&Prepared<'_>]) -> Result<()> {
        let mut failure = ProviderError::settings("rfc2136 has no server");
        let mut lost: Option<ProviderError> = None;
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
                return Err(lost.filter(|_| matches!(error.problem, ProviderProblem::Stale(_))).unwrap_or(error));
            }
            if matches!(error.problem, ProviderProblem::Lost(_)) {
                lost.get_or_insert_with(|| error.clone());
            }
            failure = super::more_telling(failure, error);
        }
        Err(lost.unwrap_or(failure))
    }

    async fn attempt(&self, host: &str, zone: &ConfiguredZone, units: &[&Prepared<'_>]) -> Result<()> {
        let id = message::random_id()?;
        let mut builder = message::compose(id, &zone.wire, units)?;
        let transaction = self.signer.ask(&mut builder)?;
        let unreachable = |cause| ProviderError::new(ProviderProblem::Unreachable(cause));
        let mut connection = self.transport.open(host).await.map_err(unreachable)?;
        let lost = |cause| ProviderError::new(ProviderProblem::Lost(cause));
        connection.send(&builder.finish()).await.map_err(lost)?;
        let bytes = connection.receive().await.map_err(lost)?;
        let mut answer = answer::parse(bytes, id, Opcode::UPDATE)?;
        transaction.verify(&mut answer)?;
        answer::update_failure(answer.header().rcode()).map_or(Ok(()), Err)
    }
}

fn too_large(unit: &Prepared<'_>) -> ProviderError {
    let cause = format!("it takes {} bytes, and an update holds at most {}", unit.size(), batch::ROOM);
    ProviderError::new(ProviderProblem::Unwritable(cause))
}
