//! Sending changes: exact deletes and creates, which the service takes together or not at all.
//!
//! What a batch did is noted in the reading, so that the next one goes on from there. A batch that is refused did nothing; it
//! is halved until the change at fault stands alone. After an answer that did not come the reading is thrown away.

use std::sync::Arc;

use gatepost_core::plan::PlanStep;

use super::batch::{self, WireBatch, ZoneSets};
use super::client::AwsQuestion;
use super::wire;
use super::{Route53, ZoneEntry};
use crate::provider::isolate::{self, Courier, Results, WriteOutcome};
use crate::provider::{ProviderError, ProviderProblem, Result, Unit, units};

/// Carries changes of one zone to the service.
struct ZoneChanges<'a> {
    route53: &'a Route53,
    zone: ZoneEntry,
}

impl Route53 {
    /// Writes steps and says for each how it went.
    pub(super) async fn write_steps(&self, zone: &str, steps: &[PlanStep]) -> Vec<Result<()>> {
        let mut results = Results::new(steps.len());
        let zone_entry = match self.entry(zone).await {
            Ok(entry) => entry,
            Err(error) => {
                results.abandon(&error);
                return results.finish(zone);
            }
        };
        let units = units(steps);
        let changes = ZoneChanges { route53: self, zone: zone_entry };
        for part in batch::parts(&units, self.config.batch) {
            if let Err(stop) = isolate::write(&changes, part, &mut results).await {
                results.abandon(&stop);
                break;
            }
        }
        results.finish(zone)
    }
}

impl Courier<Unit<'_>> for ZoneChanges<'_> {
    async fn send(&self, pieces: &[&Unit<'_>], results: &mut Results) -> WriteOutcome {
        match self.try_send(pieces, results).await {
            Ok(sent) => sent,
            Err(error) => WriteOutcome::Stop(error),
        }
    }
}

impl ZoneChanges<'_> {
    async fn try_send(&self, pieces: &[&Unit<'_>], results: &mut Results) -> Result<WriteOutcome> {
        let present = self.present().await?;
        let mut batch = WireBatch::default();
        for piece in pieces {
            if let Err(problem) = batch.add(piece, &present, self.route53.config.batch) {
                results.put(*piece, Err(ProviderError::new(problem)));
            }
        }
        drop(present);
        let changes = batch.changes();
        if changes.is_empty() {
            return Ok(WriteOutcome::Done);
        }
        let path = format!("/2013-04-01/hostedzone/{}/rrset/", self.zone.id);
        let body = Some(wire::batch_body(&changes));
        let question = AwsQuestion { path: &path, query: &[], body, is_write: true };
        match self.route53.client.ask(question, wire::change_taken).await {
            Ok(()) => {
                self.route53.note(&self.zone.id, batch);
                Ok(WriteOutcome::Done)
            }
            Err(failure) if failure.may_be_one_change => Ok(WriteOutcome::Unclear(*failure.error)),
            Err(failure) => {
                if matches!(failure.error.problem, ProviderProblem::Lost(_)) {
                    self.route53.forget(&self.zone.id);
                }
                Err(*failure.error)
            }
        }
    }

    /// The zone as it was read last.
    async fn present(&self) -> Result<Arc<ZoneSets>> {
        match self.route53.content_of(&self.zone.id) {
            Some(known) => Ok(known),
            None => self.route53.read_sets(&self.zone).await,
        }
    }
}
