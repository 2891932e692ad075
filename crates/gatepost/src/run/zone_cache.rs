//! Zones cached from pass to pass, and the names at which they may differ from the desired state.
//!
//! Three sets of names may differ: those whose desired records changed, those that changed in the zone, and those that
//! the last pass left unfinished. Only these are compared, by the same planner. Everything is compared instead when a
//! decision needs all names (limits on deletes, owner conflicts, wildcards), when something failed or could not be
//! read, and once per interval, so that nothing depends on a server's change reports alone. Changes that went unnoticed
//! in between fail the preconditions of writes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use gatepost_core::model::Str;
use gatepost_core::plan::follow::{Part, PartialPlanner};
use gatepost_core::plan::{Observed, OwnedSets, Plan, PlanSettings, Sight, ZoneChange, ZoneContent};
use gatepost_core::publication::Record;
use gatepost_core::publication::holders::RecordOrigin;
use gatepost_dns::provider::{ChangesSince, Provider};

use super::{ChallengeRecords, Decision, Pass};

/// With more names or record sets than this, everything is compared.
const MOST: usize = 1000;

/// The cached zones and the names to compare.
#[derive(Debug, Default)]
pub struct ZoneCache {
    /// The interval after which everything is read again.
    every: Duration,
    /// The cached zones; if `None`, everything is read.
    zones: Option<PartialPlanner>,
    /// When zones were last read completely.
    read_at: Option<Instant>,
    /// When the provider last failed to return changes.
    ixfr_failed_at: Option<Instant>,
    /// The names that may differ.
    open: BTreeSet<Str>,
    /// Whether all cached names must be compared.
    is_whole: bool,
}

/// Zones that a provider returned completely when it was asked for changes.
pub(super) type Given = BTreeMap<Str, ZoneContent>;

impl ZoneCache {
    /// An empty cache; everything is read again after `every`.
    pub fn new(every: Duration) -> ZoneCache {
        ZoneCache { every, ..ZoneCache::default() }
    }

    /// Adds names whose records changed.
    pub fn note(&mut self, names: impl IntoIterator<Item = Str>) {
        self.open.extend(names);
        if self.open.len() > MOST {
            self.open.clear();
            self.is_whole = true;
        }
    }

    /// The names that may differ.
    pub fn open(&self) -> impl Iterator<Item = &Str> {
        self.open.iter()
    }

    /// Whether a comparison of single names may be possible.
    pub fn may_plan_part(&self) -> bool {
        self.zones.is_some() && !self.is_whole
    }

    /// Has everything compared next, with the cached zones if they are still known.
    pub fn compare_everything(&mut self) {
        self.is_whole = true;
    }

    /// Empties the cache, so that the next pass reads and compares everything.
    pub fn forget(&mut self) {
        self.zones = None;
    }

    /// Updates the cached zones; the error holds zones that the provider returned completely, which need not be read.
    pub(super) async fn catch_up(&mut self, provider: &dyn Provider) -> Result<(), Given> {
        let is_recent = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < self.every);
        if !is_recent(self.read_at) || is_recent(self.ixfr_failed_at) {
            return Err(Given::new());
        }
        let Some(zones) = self.known(provider).await else { return Err(Given::new()) };
        let calls = zones.iter().map(|(zone, epoch)| provider.since(zone, epoch));
        let answers = futures_util::future::join_all(calls).await;
        let (mut given, mut is_known) = (Given::new(), true);
        for ((zone, _), answer) in zones.iter().zip(answers) {
            match answer {
                Ok(ChangesSince::Same) => {}
                // Applying so many changes takes more memory than reading the zone.
                Ok(ChangesSince::Changed(changes)) if sets(&changes) > MOST => is_known = false,
                Ok(ChangesSince::Changed(changes)) => is_known &= self.advance(zone, changes),
                Ok(ChangesSince::Whole(content)) => _ = given.insert(zone.clone(), content),
                Ok(ChangesSince::Unknown) => is_known = false,
                Err(_) => (is_known, self.ixfr_failed_at) = (false, Some(Instant::now())),
            }
        }
        if is_known && given.is_empty() { Ok(()) } else { Err(given) }
    }

    /// The zones and their cached versions; `None` if the provider has other zones, or a version is not known.
    async fn known(&self, provider: &dyn Provider) -> Option<Vec<(Str, Str)>> {
        let epochs = self.zones.as_ref()?.epochs();
        let known: Option<Vec<(Str, Str)>> = epochs.map(|(zone, epoch)| Some((zone.clone(), epoch?.clone()))).collect();
        let mut zones = provider.zones().await.ok()?;
        zones.sort();
        known.filter(|known| known.iter().map(|(zone, _)| zone).eq(&zones))
    }

    fn advance(&mut self, zone: &str, changes: Vec<ZoneChange>) -> bool {
        let names = self.zones.as_mut().and_then(|zones| zones.advance(zone, changes));
        let is_fitting = names.is_some();
        self.note(names.unwrap_or_default());
        is_fitting
    }

    /// The objects that our records of these names were made for.
    pub(super) fn origins(&self, names: &BTreeSet<Str>, remembered: &OwnedSets) -> BTreeMap<Str, Vec<RecordOrigin>> {
        self.zones.as_ref().map(|zones| zones.origins(names, remembered)).unwrap_or_default()
    }

    /// The plan of the names that may differ; `None` if everything must be compared.
    pub(super) fn plan(
        &mut self,
        records: &dyn Fn(&str) -> Vec<Record>,
        kinds: &BTreeSet<String>,
        sight: &Sight,
        challenge_records: &ChallengeRecords,
        remembered: &OwnedSets,
        settings: &PlanSettings,
    ) -> Option<Plan> {
        self.note(challenge_records.names().cloned());
        let zones = self.zones.as_mut().filter(|_| !self.is_whole)?;
        zones.go_by(settings);
        let names: Vec<Str> = self.open.iter().cloned().collect();
        let part = Part {
            names: &names,
            records,
            challenges: &challenge_records.challenges,
            retired: &challenge_records.retired,
            kinds,
            holds: &sight.holds,
            unseen: &sight.unseen,
            remembered,
        };
        zones.plan(&part).filter(holds_only_names)
    }

    /// Takes the cached zones out of the cache.
    pub(super) fn take_zones(&mut self) -> Observed {
        self.zones.take().map(PartialPlanner::into_everything).unwrap_or_default()
    }

    /// Puts zones back that were taken out and not read since.
    pub(super) fn put_back(&mut self, decision: &mut Decision, settings: &PlanSettings) {
        let read_at = self.read_at;
        self.keep(decision, settings);
        self.read_at = read_at;
    }

    /// Caches the zones that were read, unless some could not be read. If a plan has very many steps, reading the zone
    /// again takes less memory than applying them as changes.
    pub(super) fn keep(&mut self, decision: &mut Decision, settings: &PlanSettings) {
        let observed = std::mem::take(&mut decision.observed);
        let is_much = decision.plan.steps.len() > MOST;
        let is_of_use = decision.unread.is_empty() && !is_much && !self.every.is_zero();
        self.zones = is_of_use.then(|| PartialPlanner::new(observed, settings));
        self.read_at = Some(Instant::now());
    }

    /// Records the result of a pass: unfinished names are compared again.
    pub fn finish_pass(&mut self, pass: &Pass, challenge_records: &ChallengeRecords) {
        let is_unwritten = |(i, _): &(usize, _)| !pass.outcome.written.contains(i);
        let unwritten = pass.plan.steps.iter().enumerate().filter(is_unwritten).map(|(_, step)| &step.name);
        let open: BTreeSet<Str> = pass.plan.held.iter().map(|held| &held.name).chain(unwritten).cloned().collect();
        self.is_whole = !holds_only_names(&pass.plan);
        self.open.clear();
        self.note(open);
        // An order may be finished and removed before the next pass; its name is compared once more.
        self.note(challenge_records.names().cloned());
        if !pass.outcome.failed.is_empty() || !pass.unread.is_empty() {
            self.zones = None;
        }
    }
}

/// Number of record sets in changes.
fn sets(changes: &[ZoneChange]) -> usize {
    changes.iter().map(|change| change.gone.len() + change.come.len()).sum()
}

/// Whether nothing is held except changes of single names.
fn holds_only_names(plan: &Plan) -> bool {
    !plan.is_braked() && plan.unconfirmed().next().is_none() && plan.held.iter().all(|held| !held.name.is_empty())
}
