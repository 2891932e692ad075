//! Sending changes: compared with a fresh reading just before, and addressed by its ids.
//!
//! A batch is one transaction: after a failure that names no cause nothing was done, and the batch is halved. What a batch
//! did is noted in the reading, which is used for the next one unless it has become old.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use gatepost_core::plan::{PlanStep, Precondition, SetChange};
use gatepost_core::publication::RecordType;
use tokio::sync::Mutex;

use super::records::{self, SetKey, has_properties, set_key};
use super::wire::{ApiRecord, BatchBody, BatchResult};
use super::{Cloudflare, ZoneEntry, batch, pages};
use crate::provider::isolate::{self, Courier, Results, WriteOutcome};
use crate::provider::look::{self, Reading};
use crate::provider::{ProviderError, ProviderProblem, Result, Unit, units};

/// A reading that is older is made anew before the next batch.
const OLD: Duration = Duration::from_secs(10);

/// Records by set, as they were just read, with their values.
struct FreshRecords {
    sets: BTreeMap<SetKey, Vec<(ApiRecord, String)>>,
    read_at: Instant,
}

/// Carries changes of one zone to the service.
struct Batches<'a> {
    cloudflare: &'a Cloudflare,
    zone: ZoneEntry,
    zone_name: &'a str,
    /// The names that the changes are about.
    names: BTreeSet<String>,
    fresh: Mutex<Option<FreshRecords>>,
}

impl Cloudflare {
    /// Writes steps and says for each how it went.
    pub(super) async fn write_steps(&self, zone: &str, steps: &[PlanStep]) -> Vec<Result<()>> {
        let mut results = Results::new(steps.len());
        let entry = match self.entry(zone).await {
            Ok(entry) => entry,
            Err(error) => {
                results.abandon(&error);
                return results.finish(zone);
            }
        };
        let units = units(steps);
        let names = units.iter().flat_map(names_of).collect();
        let batches = Batches { cloudflare: self, zone: entry, zone_name: zone, names, fresh: Mutex::default() };
        for part in batch::parts(&units) {
            if let Err(stop) = isolate::write(&batches, part, &mut results).await {
                results.abandon(&stop);
                break;
            }
        }
        results.finish(zone)
    }

    /// The records of these names, with as few calls as that takes: name by name, or the whole zone.
    async fn look(&self, zone: &ZoneEntry, names: &BTreeSet<String>) -> Result<FreshRecords> {
        let read_at = Instant::now();
        let mut found = Vec::new();
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner).get(&zone.id).copied();
        if names.len() < pages.unwrap_or(1) {
            for name in names {
                let filter = format!("name.exact={}&", escaped(name));
                found
                    .extend(pages::read::<ApiRecord>(&self.client, &zone.path(), &filter, self.config.per_page).await?);
            }
        } else {
            found = self.records_of(zone).await?;
        }
        let mut fresh = FreshRecords { sets: BTreeMap::new(), read_at };
        found.into_iter().for_each(|record| fresh.put(record));
        Ok(fresh)
    }
}

impl Courier<Unit<'_>> for Batches<'_> {
    async fn send(&self, pieces: &[&Unit<'_>], results: &mut Results) -> WriteOutcome {
        match self.try_send(pieces, results).await {
            Ok(sent) => sent,
            Err(error) => WriteOutcome::Stop(error),
        }
    }
}

impl Batches<'_> {
    async fn try_send(&self, pieces: &[&Unit<'_>], results: &mut Results) -> Result<WriteOutcome> {
        let mut cached = self.fresh.lock().await;
        let mut fresh = match cached.take().filter(|fresh| fresh.read_at.elapsed() < OLD) {
            Some(fresh) => fresh,
            None => self.cloudflare.look(&self.zone, &self.names).await?,
        };
        let mut body = BatchBody::default();
        for piece in pieces {
            match obstacle(piece, &fresh, self.zone_name) {
                Some(problem) => results.put(*piece, Err(ProviderError::new(problem))),
                None => piece.changes().for_each(|change| batch::add(change, &fresh.records(change), &mut body)),
            }
        }
        if body.counts() != [0; 3] {
            match self.post(&body).await? {
                Ok(done) => fresh.note(done),
                Err(unclear) => return Ok(WriteOutcome::Unclear(unclear)),
            }
        }
        *cached = Some(fresh);
        Ok(WriteOutcome::Done)
    }

    /// Sends a batch. The inner error says that nothing was done, and that one change may be the cause.
    async fn post(&self, body: &BatchBody) -> Result<std::result::Result<BatchResult, ProviderError>> {
        let client = &self.cloudflare.client;
        let bytes = serde_json::to_vec(body).map_err(|error| ProviderError::protocol(error.to_string()).at(client))?;
        match client.post::<BatchResult>(&format!("{}/batch", self.zone.path()), bytes).await {
            Ok(answer) if answer.result.counts() == body.counts() => Ok(Ok(answer.result)),
            Ok(answer) => {
                let (sent, done) = (body.counts(), answer.result.counts());
                let cause = format!("deletes, patches and posts: {sent:?} were sent, the answer has {done:?}");
                Err(ProviderError::new(ProviderProblem::Lost(cause)).at(client))
            }
            Err(failure) if failure.may_be_one_change && failure.error.retry_after.is_none() => Ok(Err(*failure.error)),
            Err(failure) => Err(*failure.error),
        }
    }
}

impl FreshRecords {
    fn put(&mut self, record: ApiRecord) {
        let value = record.value();
        self.sets.entry(record.key()).or_default().push((record, value));
    }

    /// What a batch did.
    fn note(&mut self, done: BatchResult) {
        let changed = done.patches.iter().chain(&done.posts).map(|record| &record.id);
        let ids: BTreeSet<&String> = done.deletes.iter().map(|record| &record.id).chain(changed).collect();
        for records in self.sets.values_mut() {
            records.retain(|(record, _)| !ids.contains(&record.id));
        }
        self.sets.retain(|_, records| !records.is_empty());
        done.patches.into_iter().chain(done.posts).for_each(|record| self.put(record));
    }

    /// The types of the sets of a name.
    fn kinds(&self, name: &str) -> impl Iterator<Item = &str> {
        let from = self.sets.range((name.to_owned(), String::new())..);
        let all: Vec<&str> =
            from.take_while(|((other, _), _)| other == name).map(|((_, kind), _)| kind.as_str()).collect();
        all.into_iter()
    }

    /// The records of the set that a change is about.
    fn records(&self, change: &SetChange) -> Vec<ApiRecord> {
        let found = self.sets.get(&set_key(&change.name, change.kind.as_str()));
        found.into_iter().flatten().map(|(record, _)| record.clone()).collect()
    }
}

impl Reading for FreshRecords {
    fn values(&self, name: &str, kind: &str, _: Option<&str>) -> Option<Vec<Cow<'_, str>>> {
        let found = self.sets.get(&set_key(name, kind))?;
        Some(found.iter().map(|(_, value)| value.as_str().into()).collect())
    }

    fn is_used(&self, name: &str) -> bool {
        self.kinds(name).next().is_some()
    }
}

/// Why a unit is not sent: something changed since it was planned, or the service would never take it.
fn obstacle(unit: &Unit<'_>, fresh: &FreshRecords, zone: &str) -> Option<ProviderProblem> {
    let mut conditions = unit.steps.iter().flat_map(|step| step.preconditions());
    let broken = conditions.find_map(|condition| look::broken(&condition, fresh));
    let changed = broken.or_else(|| unit.changes().find_map(|change| other_settings(change, fresh)));
    let never = || unit.changes().find_map(|change| beside_alias(change, unit, fresh, zone));
    changed.map(ProviderProblem::Stale).or_else(|| never().map(ProviderProblem::Unwritable))
}

/// What a new CNAME would stand beside; at the top of a zone, where it is flattened, only addresses are in its way.
fn beside_alias(change: &SetChange, unit: &Unit<'_>, fresh: &FreshRecords, zone: &str) -> Option<String> {
    if change.kind != RecordType::Cname || change.old.is_some() {
        return None;
    }
    let goes = |kind: &str| {
        unit.changes().any(|other| other.name == change.name && other.kind.as_str() == kind && other.new.is_none())
    };
    let is_in_its_way = |kind: &&str| *change.name != *zone || matches!(*kind, "A" | "AAAA");
    let mut beside = fresh.kinds(&change.name).filter(|kind| !goes(kind)).filter(is_in_its_way);
    let kind = beside.next()?;
    Some(format!("`{}` has {kind} records, and Cloudflare takes no CNAME beside them", change.name))
}

/// Whether a set that can be proxied has another TTL or other properties than it had. Those of texts are nobody's concern.
fn other_settings(change: &SetChange, fresh: &FreshRecords) -> Option<String> {
    let (old, kind) = (change.old.as_ref()?, change.kind.as_str());
    let found = fresh.records(change);
    let set = records::set(&set_key(&change.name, kind), &found.iter().collect::<Vec<_>>());
    let is_other_ttl = old.ttl.is_some() && old.ttl != set.ttl;
    let is_other = has_properties(kind) && (is_other_ttl || old.properties != set.properties);
    is_other.then(|| format!("{} {kind} has another TTL, or other properties", change.name))
}

/// Every name that must be looked at for a unit.
fn names_of(unit: &Unit<'_>) -> BTreeSet<String> {
    let conditions = unit.steps.iter().flat_map(|step| step.preconditions());
    let guarded = conditions.map(|condition| match condition {
        Precondition::Absent { name, .. } | Precondition::Equals { name, .. } | Precondition::Unused { name } => name,
    });
    unit.changes().map(|change| change.name.clone()).chain(guarded).map(|name| name.to_string()).collect()
}

/// A name as it stands in a query.
fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~*".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
