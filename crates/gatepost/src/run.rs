//! The line: objects → topology → desired → plan → outcome. Every command that talks to a provider runs it once, `serve`
//! and `controller` again and again.
//!
//! One pass is one straight line. Nothing here decides what is right: it carries values from one stage to the next, and
//! whatever could not be read or resolved goes on as something that is not known.

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::external_dns;
use gatepost_core::incremental::World;
use gatepost_core::model::Str;
use gatepost_core::plan::{self, Intent, Observed, Plan, Sight};
use gatepost_core::publication::settings::Profile;
use gatepost_core::publication::{self, Desired, Record, RecordType};
use gatepost_core::snapshot::Snapshot;
use gatepost_dns::provider::{self, Provider};
use gatepost_dns::resolve::Resolver;

use crate::apply::{self, Mode, Outcome, Progress};
use crate::state::Memory;

pub mod desired;
mod observe;
pub mod schedule;
mod targets;
mod zone_cache;

use desired::{DesiredCache, DesiredUpdate, SharedDesired, Touched};
pub use zone_cache::{Given, ZoneCache};

/// What a pass goes by.
pub struct Pipeline {
    /// What is published.
    pub publishing: publication::PublicationSettings,
    /// Whose Gateways are looked at.
    pub scope: Scope,
    /// What may be written; what the provider can is filled in from the provider.
    pub planning: plan::PlanSettings,
    /// Whether anything is written.
    pub mode: Mode,
    /// The word by which somebody has confirmed what one plan holds; it says nothing about any other.
    pub confirmed: Option<String>,
    /// Finds addresses where no CNAME may stand; nothing is resolved without one.
    pub resolver: Option<Resolver>,
}

/// What a pass looks at.
#[derive(Clone, Copy)]
pub struct ReadObjects<'a> {
    /// The objects.
    pub snapshot: &'a Snapshot,
    /// What was decided about them.
    pub topology: &'a Topology,
    /// What was odd about reading them.
    pub problems: &'a [Diagnostic],
}

/// What is to exist beside the records of hostnames: the TXT values of certificate orders.
#[derive(Clone, Debug, Default)]
pub struct ChallengeRecords {
    /// Values that open orders need.
    pub challenges: Vec<Record>,
    /// Values that were put there for orders that are done.
    pub retired: Vec<Record>,
}

impl ChallengeRecords {
    /// The names that have such values, or had them.
    pub fn names(&self) -> impl Iterator<Item = &Str> {
        self.challenges.iter().chain(&self.retired).map(|record| &record.name)
    }
}

/// What is to be written, before it is.
#[derive(Debug)]
pub struct Decision {
    /// What ought to exist, as far as it was made.
    pub desired: DesiredUpdate,
    /// What is to be written, and what is held.
    pub plan: Plan,
    /// What exists; empty where only a part was looked at, or somebody keeps it.
    pub observed: Observed,
    /// What could not be read, in words; empty where everything was.
    pub unread: Vec<String>,
    /// What somebody may want to know beside it.
    pub notes: Vec<String>,
    /// The word by which its deletes were confirmed.
    pub confirmed: Option<String>,
}

/// What one pass came to.
#[derive(Debug)]
pub struct Pass {
    /// What ought to exist; it is brought up to date by later passes.
    pub desired: SharedDesired,
    /// Whose reports may differ from those of the pass before.
    pub touched: Touched,
    /// What was to be written, and what is held.
    pub plan: Plan,
    /// What was written.
    pub outcome: Outcome,
    /// What could not be read, in words; empty where everything was.
    pub unread: Vec<String>,
    /// What somebody may want to know beside it.
    pub notes: Vec<String>,
    /// What is known of the certificates that are issued here.
    pub issuing: Vec<gatepost_tls::certifier::IssuanceState>,
    /// What happened to them.
    pub news: Vec<gatepost_tls::certifier::IssuanceEvent>,
    /// The word by which the deletes of the plan were confirmed.
    pub confirmed: Option<String>,
}

impl Decision {
    /// A decision from zones that are known to be read.
    fn of(desired: DesiredUpdate, plan: Plan) -> Decision {
        let (observed, unread, notes) = (Observed::default(), Vec::new(), Vec::new());
        Decision { desired, plan, observed, unread, notes, confirmed: None }
    }
}

impl Pass {
    /// This pass and the one that came right behind it, told as one.
    pub fn followed_by(self, next: Pass) -> Pass {
        let (mut plan, mut outcome, mut notes, mut news) = (self.plan, self.outcome, self.notes, self.news);
        let shift = plan.steps.len();
        let groups = plan.steps.iter().map(|step| step.group + 1).max().unwrap_or(0);
        plan.steps.extend(next.plan.steps.into_iter().map(|mut step| {
            step.group += groups;
            step.after.iter_mut().for_each(|earlier| *earlier += shift);
            step
        }));
        outcome.written.extend(next.outcome.written.into_iter().map(|i| i + shift));
        outcome.failed.extend(next.outcome.failed.into_iter().map(|(i, error)| (i + shift, error)));
        outcome.skipped.extend(next.outcome.skipped.into_iter().map(|i| i + shift));
        notes.extend(next.notes);
        news.extend(next.news);
        let plan = Plan { steps: plan.steps, ..next.plan };
        let confirmed = next.confirmed.or(self.confirmed);
        let Pass { desired, unread, issuing, .. } = next;
        let touched = self.touched.and(next.touched);
        Pass { desired, touched, plan, outcome, unread, notes, issuing, news, confirmed }
    }
}

impl Pipeline {
    /// What ought to exist.
    pub fn desired(&self, seen: ReadObjects<'_>, challenge_records: &ChallengeRecords) -> Desired {
        let others: Vec<Str> = challenge_records.challenges.iter().map(|record| record.name.clone()).collect();
        self.contended(publication::build_beside(seen.snapshot, seen.topology, &self.publishing, &others))
    }

    /// The same, where the engine has it already.
    pub fn desired_in(&self, world: &World) -> Desired {
        self.contended(world.desired())
    }

    fn contended(&self, mut desired: Desired) -> Desired {
        if self.publishing.profile == Profile::ExternalDns {
            desired.records = contenders(std::mem::take(&mut desired.records));
        }
        desired
    }

    /// Compares what ought to exist with what does.
    pub async fn decide(&self, input: PlanInput<'_>, desired: Desired) -> Decision {
        let observed = observe::read(input.provider, Default::default()).await;
        let (desired, decision) = self.compare(input, desired, observed).await;
        Decision { desired: DesiredUpdate::Whole(Box::new(desired)), ..decision }
    }

    /// Compares what may differ, for who follows changes; says what is to be compared where that is not enough.
    pub async fn decide_part(
        &self,
        world: &World,
        input: PlanInput<'_>,
        desired: &mut DesiredCache,
        zones: &mut ZoneCache,
    ) -> Result<Decision, Comparison> {
        match zones.catch_up(input.provider).await {
            Ok(()) => match self.part(world, input, desired, zones) {
                Some(plan) => Ok(Decision::of(desired.part(), plan)),
                None => Err(Comparison::WithCache),
            },
            Err(given) => Err(Comparison::AfterReading(given)),
        }
    }

    /// Compares everything, and keeps what was read for who follows changes.
    pub async fn decide_whole(
        &self,
        input: PlanInput<'_>,
        comparison: Comparison,
        desired: Desired,
        cache: &mut DesiredCache,
        zones: &mut ZoneCache,
    ) -> Decision {
        let (desired, decision) = match comparison {
            Comparison::WithCache => {
                let (desired, mut decision) = self.compare(input, desired, zones.give_away()).await;
                zones.take_back(&mut decision, &self.settings(input));
                (desired, decision)
            }
            Comparison::AfterReading(given) => {
                // What was kept is of no use any more, and there may be very much of it.
                drop(zones.give_away());
                let observed = observe::read(input.provider, given).await;
                let (desired, mut decision) = self.compare(input, desired, observed).await;
                zones.keep(&mut decision, &self.settings(input));
                (desired, decision)
            }
        };
        Decision { desired: cache.whole(desired), ..decision }
    }

    /// Whether nothing comes into play that only the whole can tell: which of several records external-dns prefers, what a
    /// resolver found, what a confirmation is for, how a provider adjusts records among one another, and where a
    /// wildcard stands for names.
    pub fn may_plan_part(&self, world: &World, provider: &dyn Provider) -> bool {
        let is_plain =
            self.publishing.profile == Profile::Strict && self.resolver.is_none() && self.confirmed.is_none();
        is_plain && !provider.adjusts() && !world.has_covered()
    }

    /// The plan of what may differ; nothing where everything is to be compared.
    fn part(
        &self,
        world: &World,
        input: PlanInput<'_>,
        desired: &mut DesiredCache,
        zones: &mut ZoneCache,
    ) -> Option<Plan> {
        if !self.may_plan_part(world, input.provider) {
            return None;
        }
        let sight = desired.sight.sight(input.seen.snapshot, input.seen.problems);
        zones.plan(world, &sight, input.challenge_records, &input.memory.ours, &self.settings(input))
    }

    fn settings(&self, input: PlanInput<'_>) -> plan::PlanSettings {
        let mut settings = self.planning.clone();
        settings.capabilities = input.provider.capabilities().plan;
        settings.recent_deletes = input.memory.recent_deletes();
        settings.ineffective = input.memory.ineffective();
        settings
    }

    async fn compare(&self, input: PlanInput<'_>, desired: Desired, observed: Observed) -> (Desired, Decision) {
        let settings = self.settings(input);
        let question = PlanRequest { input, settings: &settings };
        let mut decision = question.answer(desired, observed).await;
        let stuck = targets::stuck(&decision.plan);
        if let (Some(resolver), false) = (&self.resolver, stuck.is_empty()) {
            let observed = std::mem::take(&mut decision.observed);
            let mut desired = std::mem::take(&mut decision.desired);
            let notes = targets::resolve(resolver, &stuck, &mut desired).await;
            decision = question.answer(desired, observed).await;
            decision.notes = notes;
        }
        let confirmed = self.confirmed.clone().filter(|word| decision.plan.is_confirmed_by(word));
        if confirmed.is_some() {
            let settings = plan::PlanSettings { confirm_deletes: true, ..settings.clone() };
            let PlanResult { desired, observed, notes, .. } = decision;
            decision = PlanRequest { settings: &settings, ..question }.answer(desired, observed).await;
            decision.notes = notes;
        }
        let PlanResult { desired, plan, observed, notes } = decision;
        if let (Some(resolver), true, []) = (&self.resolver, stuck.is_empty(), &observe::unread(&observed)[..]) {
            resolver.resolve(&Default::default(), std::time::Instant::now()).await;
        }
        let (unread, nothing) = (observe::unread(&observed), DesiredUpdate::Part(Vec::new()));
        (desired, Decision { unread, desired: nothing, plan, observed, notes, confirmed })
    }

    /// Writes what was decided, unless only to observe, and shows then what ought to exist.
    pub async fn write(
        &self,
        decision: Decision,
        provider: &dyn Provider,
        cache: &mut DesiredCache,
        progress: Progress<'_>,
    ) -> Pass {
        let Decision { desired, plan, unread, notes, confirmed, .. } = decision;
        let outcome = apply::apply(provider, &plan, self.mode, progress).await;
        let touched = cache.commit(desired);
        let desired = cache.shared().clone();
        Pass { desired, touched, plan, outcome, unread, notes, issuing: Vec::new(), news: Vec::new(), confirmed }
    }
}

/// Against what everything is compared.
#[derive(Debug)]
pub enum Comparison {
    /// Zones as they are kept.
    WithCache,
    /// Zones as they are read now, apart from those that were just given.
    AfterReading(Given),
}

/// What a plan is made from, apart from what ought to exist and what does.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    /// The objects.
    pub seen: ReadObjects<'a>,
    /// What is to exist beside the records of hostnames.
    pub challenge_records: &'a ChallengeRecords,
    /// What earlier runs remember.
    pub memory: &'a Memory,
    /// Who publishes.
    pub provider: &'a dyn Provider,
}

/// The same, and what may be written.
#[derive(Clone, Copy)]
struct PlanRequest<'a> {
    input: PlanInput<'a>,
    settings: &'a plan::PlanSettings,
}

struct PlanResult {
    desired: Desired,
    plan: Plan,
    observed: Observed,
    notes: Vec<String>,
}

impl PlanRequest<'_> {
    /// The plan. A provider that cannot say how it would keep records counts as one that could not be read.
    async fn answer(&self, desired: Desired, mut observed: Observed) -> PlanResult {
        let mut adjusted = None;
        if self.input.provider.adjusts() && observe::is_readable(&observed) {
            match self.adjusted(&desired).await {
                Ok(records) => adjusted = Some(records),
                Err(error) => observed = observe::lost(&error),
            }
        }
        let (records, covered) =
            adjusted.as_ref().map_or((&desired.records, &desired.covered), |(records, covered)| (records, covered));
        let PlanInput { seen, challenge_records, memory, .. } = self.input;
        let sight = Sight::of(seen.snapshot, &desired, seen.problems);
        let intent = Intent {
            records,
            covered,
            challenges: &challenge_records.challenges,
            retired: &challenge_records.retired,
            holds: &sight.holds,
            unseen: &sight.unseen,
            remembered: &memory.ours,
        };
        let mut plan = plan::decide(&intent, &observed, self.settings);
        observe::name_lost(&mut plan, &observed);
        PlanResult { desired, plan, observed, notes: Vec::new() }
    }

    async fn adjusted(&self, desired: &Desired) -> provider::Result<(Vec<Record>, Vec<Record>)> {
        let records = self.input.provider.adjust(desired.records.clone()).await?;
        let covered = match desired.covered.is_empty() {
            true => Vec::new(),
            false => self.input.provider.adjust(desired.covered.clone()).await?,
        };
        Ok((records, covered))
    }
}

/// Of records that compete for a name those among which the planner may choose: external-dns prefers the object that a record
/// was made for, else the least. Types that lose to another type, and what could never stand, are no choice.
fn contenders(records: Vec<Record>) -> Vec<Record> {
    let settled = external_dns::settle(records);
    let may_stand = |record: &Record| match record.kind {
        RecordType::Cname => matches!(&record.targets[..], [target] if !target.is_empty()),
        _ => !record.targets.is_empty(),
    };
    let others = settled.lost.into_iter().filter(|lost| lost.to == lost.record.kind && may_stand(&lost.record));
    let mut records: Vec<Record> = settled.records.into_iter().chain(others.map(|lost| lost.record)).collect();
    records.sort_by(|a, b| a.rank().cmp(&b.rank()));
    records
}

/// The zones that hold these names where none are named: the last two labels of each.
pub fn derived_zones<'r>(records: impl IntoIterator<Item = &'r Record>) -> Vec<Str> {
    let mut zones: Vec<Str> = records.into_iter().map(|record| zone_of(&record.name)).collect();
    zones.sort();
    zones.dedup();
    zones
}

fn zone_of(name: &str) -> Str {
    let labels: Vec<_> = name.split('.').filter(|label| *label != "*").collect();
    labels[labels.len().saturating_sub(2)..].join(".").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_served_in_the_zone_of_its_last_two_labels() {
        for (name, zone) in [
            ("www.example.org", "example.org"),
            ("a.b.example.org", "example.org"),
            ("*.example.org", "example.org"),
            ("localhost", "localhost"),
            ("*.org", "org"),
        ] {
            assert_eq!(&*zone_of(name), zone, "{name}");
        }
    }
}
