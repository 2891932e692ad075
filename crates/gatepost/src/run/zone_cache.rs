//! What is kept from pass to pass: zones as they were read, and the names at which they may differ from what is wanted.
//!
//! Who follows changes knows three sorts of names that may differ: those whose records are now others, those that somebody
//! changed in the zone, and those that the last pass left open. Only these are compared, by the same planner. Whatever
//! only the whole can tell — brakes, twins, wildcards, anything unreadable or failed — is asked of the whole, and so is
//! everything once in an interval, so that nothing rests on what a server says about itself. What could have changed
//! unnoticed in between meets the preconditions of every write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use gatepost_core::incremental::World;
use gatepost_core::model::Str;
use gatepost_core::plan::follow::{Part, PartialPlanner};
use gatepost_core::plan::{Observed, Plan, PlanSettings, RecordKey, Sight, ZoneChange, ZoneContent};
use gatepost_dns::provider::{ChangesSince, Provider};

use super::{ChallengeRecords, Decision, Pass};

/// More names or record sets than this are compared by comparing everything.
const MOST: usize = 1000;

/// What is kept from pass to pass.
#[derive(Debug, Default)]
pub struct ZoneCache {
    /// After this long everything is read again.
    every: Duration,
    /// The zones; where there are none, everything is read.
    zones: Option<PartialPlanner>,
    /// When zones were read whole.
    read_at: Option<Instant>,
    /// Since when the provider does not say what changed, though it was asked.
    ixfr_failed_at: Option<Instant>,
    /// The names that may differ.
    open: BTreeSet<Str>,
    /// Whether all that is kept is to be compared, not only names.
    is_whole: bool,
}

/// Zones that a provider gave as a whole when it was asked for changes.
pub type Given = BTreeMap<Str, ZoneContent>;

impl ZoneCache {
    /// Nothing is kept yet; everything is to be read again after some time.
    pub fn new(every: Duration) -> ZoneCache {
        ZoneCache { every, ..ZoneCache::default() }
    }

    /// Takes in names whose records are others than before.
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

    /// Whether everything that is needed to compare only names may be there.
    pub fn may_plan_part(&self) -> bool {
        self.zones.is_some() && !self.is_whole
    }

    /// Has everything read and compared at the next pass.
    pub fn forget(&mut self) {
        self.zones = None;
    }

    /// Brings what is kept to this moment; says whether it is. What a provider gave as a whole meanwhile need not be read.
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
                // To take in very many changes takes more room than to read the zone.
                Ok(ChangesSince::Changed(changes)) if sets(&changes) > MOST => is_known = false,
                Ok(ChangesSince::Changed(changes)) => is_known &= self.advance(zone, changes),
                Ok(ChangesSince::Whole(content)) => _ = given.insert(zone.clone(), content),
                Ok(ChangesSince::Unknown) => is_known = false,
                Err(_) => (is_known, self.ixfr_failed_at) = (false, Some(Instant::now())),
            }
        }
        if is_known && given.is_empty() { Ok(()) } else { Err(given) }
    }

    /// The zones and the states in which they are known; nothing where there are others, or one could not be read.
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

    /// The plan of the names that are open; nothing where everything is to be compared.
    pub(super) fn plan(
        &mut self,
        world: &World,
        sight: &Sight,
        challenge_records: &ChallengeRecords,
        remembered: &BTreeSet<RecordKey>,
        settings: &PlanSettings,
    ) -> Option<Plan> {
        self.note(challenge_records.names().cloned());
        let zones = self.zones.as_mut().filter(|_| !self.is_whole)?;
        zones.go_by(settings);
        let (names, kinds): (Vec<Str>, _) = (self.open.iter().cloned().collect(), world.kinds());
        let part = Part {
            names: &names,
            records: &|name| world.records(name),
            challenges: &challenge_records.challenges,
            retired: &challenge_records.retired,
            kinds: &kinds,
            holds: &sight.holds,
            unseen: &sight.unseen,
            remembered,
        };
        zones.plan(&part).filter(is_at_ease)
    }

    /// Everything that is kept, as it would be read now. Nothing is kept from there on.
    pub(super) fn give_away(&mut self) -> Observed {
        self.zones.take().map(PartialPlanner::into_everything).unwrap_or_default()
    }

    /// Keeps what was given away, which was not read since.
    pub(super) fn take_back(&mut self, decision: &mut Decision, settings: &PlanSettings) {
        let read_at = self.read_at;
        self.keep(decision, settings);
        self.read_at = read_at;
    }

    /// Keeps what was read; nothing where some of it was not. Where very much is to be written it takes less room to read the
    /// zone again than to be told of all that.
    pub(super) fn keep(&mut self, decision: &mut Decision, settings: &PlanSettings) {
        let observed = std::mem::take(&mut decision.observed);
        let is_much = decision.plan.steps.len() > MOST;
        let is_of_use = decision.unread.is_empty() && !is_much && !self.every.is_zero();
        self.zones = is_of_use.then(|| PartialPlanner::new(observed, settings));
        self.read_at = Some(Instant::now());
    }

    /// Notes how a pass ended: what it left open is compared again.
    pub fn settle(&mut self, pass: &Pass, challenge_records: &ChallengeRecords) {
        let is_unwritten = |(i, _): &(usize, _)| !pass.outcome.written.contains(i);
        let unwritten = pass.plan.steps.iter().enumerate().filter(is_unwritten).map(|(_, step)| &step.name);
        let open: BTreeSet<Str> = pass.plan.held.iter().map(|held| &held.name).chain(unwritten).cloned().collect();
        self.is_whole = !is_at_ease(&pass.plan);
        self.open.clear();
        self.note(open);
        // An order may be done and forgotten by the next pass; its name is looked at once more.
        self.note(challenge_records.names().cloned());
        if !pass.outcome.failed.is_empty() || !pass.unread.is_empty() {
            self.zones = None;
        }
    }
}

/// How many record sets changes are about.
fn sets(changes: &[ZoneChange]) -> usize {
    changes.iter().map(|change| change.gone.len() + change.come.len()).sum()
}

/// Whether no brake holds anything, and nothing is held that is not about a name.
fn is_at_ease(plan: &Plan) -> bool {
    !plan.is_braked() && plan.unconfirmed().next().is_none() && plan.held.iter().all(|held| !held.name.is_empty())
}
