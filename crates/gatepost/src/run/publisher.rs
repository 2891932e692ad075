//! One of several providers: reads its zones, plans what it is to bring about, and writes that.
//!
//! Each has zones, memory and settings of its own, and never waits for another one. Which records it gets was decided
//! before; here they are compared with what exists, by the same planner as for a single provider.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatepost_core::model::Str;
use gatepost_core::plan::{self, Intent, Observed, Plan, PlanSettings, Sight};
use gatepost_core::publication::holders::RecordOrigin;
use gatepost_core::publication::{Desired, Record};
use gatepost_dns::provider::Shared;

use super::desired::DesiredUpdate;
use super::observe;
use super::{ChallengeRecords, Comparison, Decision, Pass, ZoneCache};
use crate::apply::{self, Mode, Progress};
use crate::state::State;

/// The objects that existing records were made for, by name.
pub type RecordOrigins = BTreeMap<Str, Vec<RecordOrigin>>;

/// One of several providers.
#[derive(Debug)]
pub struct Publisher {
    /// Its name.
    pub name: Str,
    provider: Shared,
    planning: PlanSettings,
    state: State,
    /// Whether anything may be written there at all.
    mode: Mode,
    zones: ZoneCache,
    /// The records of the last pass, to see which names changed.
    records: Vec<Record>,
    /// Whether the last pass could write.
    could_write: bool,
}

/// What a provider is to bring about.
#[derive(Clone, Debug, PartialEq)]
pub struct PublisherWork {
    /// Records that it publishes, sorted by name.
    pub records: Vec<Record>,
    /// Records that it need not publish, because a wildcard answers.
    pub covered: Vec<Record>,
    /// The TXT records of certificate orders in its zones.
    pub challenge_records: ChallengeRecords,
    /// What could not be seen or is not known.
    pub sight: Sight,
    /// The names whose holder depends on the records that exist (D27).
    pub contested: BTreeSet<Str>,
    /// What this provider said about them, as far as the decisions took it into account.
    pub origins: RecordOrigins,
    /// Names that it has to keep until another provider has them.
    pub moving: BTreeMap<Str, Str>,
    /// Names that another provider has instead.
    pub moved: BTreeMap<Str, Str>,
    /// Names that were seen to lose their records, or that another provider publishes.
    pub explained: BTreeSet<Str>,
    /// Whether its plan is written.
    pub mode: Mode,
    /// The word by which held deletes were confirmed.
    pub confirmed: Option<String>,
}

/// The results of one pass of a provider.
#[derive(Debug)]
pub struct PublisherPass {
    /// What its records of contested names were made for; not known where nothing could be read.
    pub origins: Option<RecordOrigins>,
    /// The pass; `None` where the decisions have to take the origins into account first.
    pub pass: Option<Pass>,
}

impl Publisher {
    /// A provider with what was remembered of it; its zones are read again after `every`.
    pub fn new(
        name: Str,
        provider: Shared,
        (planning, mode): (PlanSettings, Mode),
        state: State,
        every: Duration,
    ) -> Publisher {
        let (zones, records) = (ZoneCache::new(every), Vec::new());
        Publisher { name, provider, planning, state, mode, zones, records, could_write: false }
    }

    /// Whether its settings forbid every write.
    pub fn only_looks(&self) -> bool {
        self.mode == Mode::Observe
    }

    /// Whether a plan is written: only where the work and its own settings say so.
    pub fn mode_of(&self, work: &PublisherWork) -> Mode {
        if self.only_looks() { Mode::Observe } else { work.mode }
    }

    /// Runs one pass.
    pub async fn pass(&mut self, work: &PublisherWork) -> PublisherPass {
        let can_write = self.mode_of(work) == Mode::Act;
        // Somebody else may have written since: who begins to write compares everything.
        if can_write && !self.could_write {
            self.zones.forget();
        }
        self.could_write = can_write;
        let comparison = self.read().await;
        let origins = self.origins(&comparison, &work.contested);
        if origins.as_ref().is_some_and(|origins| *origins != work.origins) {
            self.keep(work, comparison);
            return PublisherPass { origins, pass: None };
        }
        let decision = self.decide(work, comparison).await;
        let (mut pass, kept) = self.write(work, decision, &mut |_, _| ()).await;
        pass.notes.extend(kept.err().map(|error| format!("--state-dir: this would not survive a restart: {error}")));
        PublisherPass { origins, pass: Some(pass) }
    }

    /// Reads what changed in the zones, or all of them.
    pub async fn read(&mut self) -> Comparison {
        match self.zones.catch_up(&*self.provider).await {
            Ok(()) => Comparison::WithCache,
            Err(given) => {
                drop(self.zones.take_zones());
                Comparison::AfterReading(observe::read(&*self.provider, given).await)
            }
        }
    }

    /// What the existing records of these names were made for; `None` where the provider could not be read.
    pub fn origins(&self, comparison: &Comparison, names: &BTreeSet<Str>) -> Option<RecordOrigins> {
        let remembered = &self.state.memory().ours;
        match comparison {
            _ if names.is_empty() => Some(RecordOrigins::new()),
            Comparison::WithCache => Some(self.zones.origins(names, remembered)),
            Comparison::AfterReading(reading) if !observe::unread(&reading.observed).is_empty() => None,
            Comparison::AfterReading(reading) => {
                Some(plan::origins(&reading.observed, &self.planning, names, remembered))
            }
        }
    }

    /// Keeps what was read until it is known what to bring about.
    fn keep(&mut self, work: &PublisherWork, comparison: Comparison) {
        if let Comparison::AfterReading(reading) = comparison {
            let nothing = Decision::of(DesiredUpdate::Part(Vec::new()), Plan::default());
            self.zones.keep(&mut Decision { observed: reading.observed, ..nothing }, &self.settings(work));
        }
        self.zones.compare_everything();
    }

    /// Compares what it is to bring about with what exists.
    pub async fn decide(&mut self, work: &PublisherWork, comparison: Comparison) -> Decision {
        let settings = self.settings(work);
        let changed = changed_names(&self.records, &work.records);
        self.zones.note(changed.into_iter().chain(work.moving.keys().cloned()));
        self.records.clone_from(&work.records);
        if let Some(plan) = matches!(comparison, Comparison::WithCache).then(|| self.part(work, &settings)).flatten() {
            return Decision::of(DesiredUpdate::Part(Vec::new()), plan);
        }
        match comparison {
            Comparison::WithCache => {
                let zones = self.zones.take_zones();
                let mut decision = self.whole(work, zones, &settings).await;
                self.zones.put_back(&mut decision, &settings);
                decision
            }
            Comparison::AfterReading(reading) => {
                let mut decision = self.whole(work, reading.observed, &settings).await;
                decision.retry_after = reading.retry_after;
                self.zones.keep(&mut decision, &settings);
                decision
            }
        }
    }

    /// The same again with what was read before, for other work.
    pub async fn decide_again(&mut self, work: &PublisherWork) -> Decision {
        self.zones.compare_everything();
        self.decide(work, Comparison::WithCache).await
    }

    /// Writes a decision and remembers it; says what could not be kept.
    pub async fn write(
        &mut self,
        work: &PublisherWork,
        decision: Decision,
        progress: Progress<'_>,
    ) -> (Pass, Result<(), String>) {
        let Decision { plan, unread, retry_after, notes, confirmed, .. } = decision;
        let outcome = apply::apply(&*self.provider, &plan, self.mode_of(work), progress).await;
        let pass = Pass {
            desired: Desired::default().into(),
            touched: Default::default(),
            plan,
            outcome,
            unread,
            retry_after,
            notes,
            issuing: Vec::new(),
            news: Vec::new(),
            confirmed,
            providers: Vec::new(),
        };
        self.zones.finish_pass(&pass, &work.challenge_records);
        let kept = match self.mode_of(work) {
            Mode::Observe => Ok(()),
            Mode::Act => self.state.learn(&pass.plan, &pass.outcome).map_err(|error| error.to_string()),
        };
        (pass, kept)
    }

    /// The plan of the names that may differ; `None` if everything must be compared.
    fn part(&mut self, work: &PublisherWork, settings: &PlanSettings) -> Option<Plan> {
        if self.provider.adjusts() || work.confirmed.is_some() || !work.covered.is_empty() {
            return None;
        }
        let routes = work.records.iter().flat_map(|record| &record.routes);
        let kinds = routes.map(|route| route.kind.as_str().to_ascii_lowercase()).collect();
        let records = |name: &str| {
            let first = work.records.partition_point(|record| &*record.name < name);
            work.records[first..].iter().take_while(|record| &*record.name == name).cloned().collect()
        };
        let remembered = &self.state.memory().ours;
        self.zones.plan(&records, &kinds, &work.sight, &work.challenge_records, remembered, settings)
    }

    async fn whole(&self, work: &PublisherWork, mut observed: Observed, settings: &PlanSettings) -> Decision {
        let mut adjusted = None;
        if self.provider.adjusts() && observe::is_readable(&observed) {
            let records = self.provider.adjust(work.records.clone()).await;
            let covered = match work.covered.is_empty() {
                true => Ok(Vec::new()),
                false => self.provider.adjust(work.covered.clone()).await,
            };
            match records.and_then(|records| Ok((records, covered?))) {
                Ok(both) => adjusted = Some(both),
                Err(error) => observed = observe::lost(&error),
            }
        }
        let (records, covered) = adjusted.as_ref().map_or((&work.records, &work.covered), |(a, b)| (a, b));
        let intent = Intent {
            records,
            covered,
            challenges: &work.challenge_records.challenges,
            retired: &work.challenge_records.retired,
            holds: &work.sight.holds,
            unseen: &work.sight.unseen,
            remembered: &self.state.memory().ours,
        };
        let mut plan = plan::decide(&intent, &observed, settings);
        let word = work.confirmed.as_deref().and_then(|word| word.strip_suffix(&*self.name)?.strip_suffix('-'));
        let is_confirmed = word.is_some_and(|digest| plan.is_confirmed_by(digest));
        if is_confirmed {
            let settings = PlanSettings { confirm_deletes: true, ..settings.clone() };
            plan = plan::decide(&intent, &observed, &settings);
        }
        observe::name_lost(&mut plan, &observed);
        let (unread, confirmed) = (observe::unread(&observed), work.confirmed.clone().filter(|_| is_confirmed));
        let desired = DesiredUpdate::Part(Vec::new());
        Decision { desired, plan, observed, unread, retry_after: None, notes: Vec::new(), confirmed }
    }

    fn settings(&self, work: &PublisherWork) -> PlanSettings {
        let (mut settings, memory) = (self.planning.clone(), self.state.memory());
        settings.capabilities = self.provider.capabilities().plan;
        settings.recent_deletes = memory.recent_deletes();
        settings.ineffective = memory.ineffective();
        settings.explained.clone_from(&work.explained);
        settings.moving.clone_from(&work.moving);
        settings.moved.clone_from(&work.moved);
        settings
    }
}

/// The word that confirms the deletes that a plan of a provider holds: that of another provider is another one.
pub fn confirmation(plan: &Plan, name: &str) -> Option<String> {
    plan.confirmation().map(|digest| format!("{digest}-{name}"))
}

/// The names at which two lists of records differ; both are sorted by name.
pub fn changed_names(before: &[Record], after: &[Record]) -> BTreeSet<Str> {
    fn by_name(records: &[Record]) -> BTreeMap<&Str, &[Record]> {
        records.chunk_by(|a, b| a.name == b.name).map(|same| (&same[0].name, same)).collect()
    }
    let (before, after) = (by_name(before), by_name(after));
    let differ = |name: &&&Str| before.get(**name) != after.get(**name);
    before.keys().chain(after.keys()).filter(differ).map(|name| (*name).clone()).collect()
}
