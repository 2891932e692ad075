//! The pipeline: objects → topology → desired → plan → outcome. Commands that use a provider run it once, `serve` and
//! `controller` repeatedly.
//!
//! One pass runs the stages once, in order. No rule is written here: values are passed from one stage to the next, and
//! whatever could not be read or resolved is passed on as not known.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::external_dns;
use gatepost_core::health::ObservedHealth;
use gatepost_core::incremental::{Engine, World};
use gatepost_core::model::Str;
use gatepost_core::plan::{self, Hold, Intent, Observed, Plan, Sight};
use gatepost_core::publication::holders::ObservedNames;
use gatepost_core::publication::settings::Profile;
use gatepost_core::publication::{self, Desired, PresentState, Record, RecordType};
use gatepost_core::snapshot::Snapshot;
use gatepost_dns::provider::{self, Provider};
use gatepost_dns::resolve::Resolver;

use crate::apply::{self, Mode, Outcome, Progress};
use crate::state::Memory;

pub mod desired;
mod observe;
pub mod publisher;
pub mod publishers;
pub mod schedule;
mod targets;
mod zone_cache;

use desired::{DesiredCache, DesiredUpdate, SharedDesired, Touched};
pub use observe::Reading;
pub use zone_cache::ZoneCache;

/// The settings of a pass.
pub struct Pipeline {
    /// Settings of publication.
    pub publishing: publication::PublicationSettings,
    /// Which Gateways are evaluated.
    pub scope: Scope,
    /// Settings of the planner; capabilities are filled in from the provider.
    pub planning: plan::PlanSettings,
    /// Whether plans are written.
    pub mode: Mode,
    /// The digest by which held deletes of one plan were confirmed; it does not apply to any other plan.
    pub confirmed: Option<String>,
    /// Resolves the targets of CNAMEs that are not possible; without it nothing is resolved.
    pub resolver: Option<Resolver>,
    /// What probes found out about addresses.
    pub health: ObservedHealth,
}

/// The objects that a pass reads.
#[derive(Clone, Copy)]
pub struct ReadObjects<'a> {
    /// The objects.
    pub snapshot: &'a Snapshot,
    /// The topology of the snapshot.
    pub topology: &'a Topology,
    /// Problems found while reading the objects.
    pub problems: &'a [Diagnostic],
}

/// The TXT records of certificate orders, which exist in addition to the records of hostnames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChallengeRecords {
    /// Records that open orders need.
    pub challenges: Vec<Record>,
    /// Records of finished orders, to be deleted.
    pub retired: Vec<Record>,
}

impl ChallengeRecords {
    /// The names of all these records.
    pub fn names(&self) -> impl Iterator<Item = &Str> {
        self.challenges.iter().chain(&self.retired).map(|record| &record.name)
    }
}

/// A plan before it is written, and the states it was made from.
#[derive(Debug)]
pub struct Decision {
    /// The desired state, or the part of it that was made.
    pub desired: DesiredUpdate,
    /// The steps to write, and the held ones.
    pub plan: Plan,
    /// The observed zones; empty if only a part was compared, or if the zone cache keeps them.
    pub observed: Observed,
    /// Errors of zones that could not be read; empty if all were.
    pub unread: Vec<String>,
    /// How long the provider asks to be left alone, where a zone could not be read.
    pub retry_after: Option<Duration>,
    /// Notes for people.
    pub notes: Vec<String>,
    /// The digest by which its deletes were confirmed.
    pub confirmed: Option<String>,
}

/// The results of one pass.
#[derive(Debug)]
pub struct Pass {
    /// The desired state, which later passes update.
    pub desired: SharedDesired,
    /// The reports that may differ from those of the pass before.
    pub touched: Touched,
    /// The steps that were to be written, and the held ones.
    pub plan: Plan,
    /// The results of the steps.
    pub outcome: Outcome,
    /// Errors of zones that could not be read; empty if all were.
    pub unread: Vec<String>,
    /// How long the provider asks to be left alone, where a zone could not be read.
    pub retry_after: Option<Duration>,
    /// Notes for people.
    pub notes: Vec<String>,
    /// The state of the certificates that are issued here.
    pub issuing: Vec<gatepost_tls::certifier::IssuanceState>,
    /// The events of these certificates.
    pub news: Vec<gatepost_tls::certifier::IssuanceEvent>,
    /// The digest by which the deletes of the plan were confirmed.
    pub confirmed: Option<String>,
    /// The providers, where there are several; the plan and its results are those of all of them then.
    pub providers: Vec<ProviderReport>,
}

/// What is known of one of several providers.
#[derive(Clone, Debug, Default)]
pub struct ProviderReport {
    /// Its name.
    pub name: Str,
    /// Whether its settings forbid every write.
    pub only_looks: bool,
    /// The first error that keeps names there from being up to date.
    pub trouble: Option<String>,
    /// The zones that were read, with their versions.
    pub zones: BTreeMap<Str, Str>,
    /// Whether everything there could be read.
    pub is_read: bool,
    /// Which steps of the pass are changes there.
    pub steps: Range<usize>,
    /// Number of changes that are to be written.
    pub open: usize,
    /// Number of changes that are held.
    pub held: usize,
    /// Number of deletes that wait to be confirmed, and the word that confirms them.
    pub unconfirmed: Option<(usize, String)>,
    /// Names that have changed since it was compared.
    pub waiting: BTreeSet<Str>,
}

/// The providers at which nothing is written because their settings say so.
pub fn dry_run_notes(providers: &[ProviderReport]) -> impl Iterator<Item = String> {
    let only_look = providers.iter().filter(|provider| provider.only_looks);
    only_look.map(|provider| format!("provider `{}`: nothing is written there (dry-run)", provider.name))
}

/// The first error of each of several providers.
pub fn troubles(providers: &[ProviderReport]) -> Option<String> {
    let told = providers.iter().filter_map(|p| Some(format!("provider `{}`: {}", p.name, p.trouble.as_ref()?)));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

impl ProviderReport {
    /// Whether everything there could be read and written, and nothing has changed since.
    pub fn is_ready(&self) -> bool {
        self.trouble.is_none() && self.waiting.is_empty()
    }
}

impl Decision {
    /// A decision from zones that were read completely.
    pub fn of(desired: DesiredUpdate, plan: Plan) -> Decision {
        let (observed, unread, notes) = (Observed::default(), Vec::new(), Vec::new());
        Decision { desired, plan, observed, unread, retry_after: None, notes, confirmed: None }
    }
}

impl Pass {
    /// The provider of a step, where there are several.
    pub fn provider_of_step(&self, i: usize) -> Option<&Str> {
        self.providers.iter().find(|provider| provider.steps.contains(&i)).map(|provider| &provider.name)
    }

    /// The first error that keeps names from being up to date, or that of each of several providers.
    pub fn trouble(&self) -> Option<String> {
        if !self.providers.is_empty() {
            return troubles(&self.providers);
        }
        let failed = self.outcome.failed.values().next().map(ToString::to_string);
        self.unread.first().cloned().or(failed)
    }

    /// The number of deletes that wait to be confirmed and the word that confirms them, for each provider that has some.
    pub fn unconfirmed(&self) -> Vec<(usize, String)> {
        if !self.providers.is_empty() {
            return self.providers.iter().filter_map(|provider| provider.unconfirmed.clone()).collect();
        }
        self.plan.confirmation().map(|word| (self.plan.unconfirmed().count(), word)).into_iter().collect()
    }

    /// Merges this pass with the next one into one report.
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
        outcome.repeated.extend(next.outcome.repeated.into_iter().map(|i| i + shift));
        notes.extend(next.notes);
        news.extend(next.news);
        let plan = Plan { steps: plan.steps, ..next.plan };
        let confirmed = next.confirmed.or(self.confirmed);
        let Pass { desired, unread, retry_after, issuing, providers, .. } = next;
        let touched = self.touched.and(next.touched);
        Pass { desired, touched, plan, outcome, unread, retry_after, notes, issuing, news, confirmed, providers }
    }
}

impl Pipeline {
    /// The desired state of a snapshot, beside the records that were observed.
    pub fn desired(
        &self,
        seen: ReadObjects<'_>,
        challenge_records: &ChallengeRecords,
        observed: &ObservedNames,
    ) -> Desired {
        let names: Vec<Str> = challenge_records.challenges.iter().map(|record| record.name.clone()).collect();
        let beside = PresentState { names: &names, observed, health: &self.health };
        self.contended(publication::build_beside(seen.snapshot, seen.topology, &self.publishing, beside))
    }

    /// What the existing records of contested names were made for (D27); `None` where that decides nothing.
    fn observed_names(&self, input: PlanInput<'_>, observed: &Observed) -> Option<ObservedNames> {
        let seen = input.seen;
        let has_unread = Hold::any(seen.snapshot, seen.problems);
        let names = publication::contested_names(seen.snapshot, seen.topology, &self.publishing, has_unread);
        let origins = plan::origins(observed, &self.planning, &names, &input.memory.ours);
        (!origins.is_empty()).then(|| ObservedNames::new(origins, has_unread))
    }

    /// The desired state of an engine.
    pub fn desired_in(&self, world: &World) -> Desired {
        self.contended(world.desired())
    }

    fn contended(&self, mut desired: Desired) -> Desired {
        if self.publishing.profile == Profile::ExternalDns {
            desired.records = contenders(std::mem::take(&mut desired.records));
        }
        desired
    }

    /// Compares a desired state with the zones of the provider. It is made again where the records in them decide which
    /// namespace holds a name.
    pub async fn decide(&self, input: PlanInput<'_>, mut desired: Desired) -> Decision {
        let reading = observe::read(input.provider, Default::default()).await;
        if let Some(names) = self.observed_names(input, &reading.observed) {
            desired = self.desired(input.seen, input.challenge_records, &names);
        }
        let (desired, decision) = self.compare(input, desired, reading.observed).await;
        let retry_after = reading.retry_after;
        Decision { desired: DesiredUpdate::Whole(Box::new(desired)), retry_after, ..decision }
    }

    /// Reads what changed in the zones, or all of them.
    pub async fn catch_up(&self, provider: &dyn Provider, zones: &mut ZoneCache) -> Comparison {
        match zones.catch_up(provider).await {
            Ok(()) => Comparison::WithCache,
            Err(given) => {
                // The cached zones are not needed any more, and may be large.
                drop(zones.take_zones());
                Comparison::AfterReading(observe::read(provider, given).await)
            }
        }
    }

    /// What the existing records of contested names were made for (D27), from the zones that a comparison uses.
    pub fn observe_names(
        &self,
        engine: &Engine,
        problems: &[Diagnostic],
        comparison: &Comparison,
        zones: &ZoneCache,
        memory: &Memory,
    ) -> ObservedNames {
        let names = engine.contested_names();
        if names.is_empty() {
            return ObservedNames::default();
        }
        let origins = match comparison {
            Comparison::WithCache => zones.origins(&names, &memory.ours),
            Comparison::AfterReading(reading) => plan::origins(&reading.observed, &self.planning, &names, &memory.ours),
        };
        ObservedNames::new(origins, Hold::any(engine.world().snapshot(), problems))
    }

    /// Compares only the names that may differ; `None` if everything must be compared.
    pub fn decide_part(
        &self,
        world: &World,
        input: PlanInput<'_>,
        desired: &mut DesiredCache,
        zones: &mut ZoneCache,
    ) -> Option<Decision> {
        let plan = self.part(world, input, desired, zones)?;
        Some(Decision::of(desired.part(), plan))
    }

    /// Compares everything, and puts the zones into the cache.
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
                let (desired, mut decision) = self.compare(input, desired, zones.take_zones()).await;
                zones.put_back(&mut decision, &self.settings(input));
                (desired, decision)
            }
            Comparison::AfterReading(reading) => {
                let (desired, mut decision) = self.compare(input, desired, reading.observed).await;
                decision.retry_after = reading.retry_after;
                zones.keep(&mut decision, &self.settings(input));
                (desired, decision)
            }
        };
        Decision { desired: cache.whole(desired), ..decision }
    }

    /// Whether a plan of single names is enough. It is not for decisions that need all records: the choice of
    /// external-dns among records, resolved targets, confirmations, providers that adjust records, and wildcards that
    /// answer for names.
    pub fn may_plan_part(&self, world: &World, provider: &dyn Provider) -> bool {
        let is_plain =
            self.publishing.profile == Profile::Strict && self.resolver.is_none() && self.confirmed.is_none();
        is_plain && !provider.adjusts() && !world.has_covered()
    }

    /// The plan of the names that may differ; `None` if everything must be compared.
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
        let records = |name: &str| world.records(name);
        zones.plan(&records, &world.kinds(), &sight, input.challenge_records, &input.memory.ours, &self.settings(input))
    }

    fn settings(&self, input: PlanInput<'_>) -> plan::PlanSettings {
        let mut settings = self.planning.clone();
        settings.capabilities = input.provider.capabilities().plan;
        settings.recent_deletes = input.memory.recent_deletes();
        settings.explained.clone_from(input.explained);
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
        (desired, Decision { unread, retry_after: None, desired: nothing, plan, observed, notes, confirmed })
    }

    /// Writes a decision, unless in observe mode, and then publishes the desired state to its readers.
    pub async fn write(
        &self,
        decision: Decision,
        provider: &dyn Provider,
        cache: &mut DesiredCache,
        progress: Progress<'_>,
    ) -> Pass {
        let Decision { desired, plan, unread, retry_after, notes, confirmed, .. } = decision;
        let outcome = apply::apply(provider, &plan, self.mode, progress).await;
        let touched = cache.commit(desired);
        let desired = cache.shared().clone();
        let (issuing, news, providers) = (Vec::new(), Vec::new(), Vec::new());
        Pass { desired, touched, plan, outcome, unread, retry_after, notes, issuing, news, confirmed, providers }
    }
}

/// The zones that everything is compared with.
#[derive(Debug)]
pub enum Comparison {
    /// The cached zones.
    WithCache,
    /// Zones that were read now.
    AfterReading(Reading),
}

/// The input of a plan, apart from the desired and the observed state.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    /// The objects.
    pub seen: ReadObjects<'a>,
    /// The TXT records of certificate orders.
    pub challenge_records: &'a ChallengeRecords,
    /// What earlier runs remember.
    pub memory: &'a Memory,
    /// Names that were seen to lose their records.
    pub explained: &'a BTreeSet<Str>,
    /// The provider of the zones.
    pub provider: &'a dyn Provider,
}

/// The input of a plan, with the settings of the planner.
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
    /// Makes the plan. A provider that fails to adjust records counts as unreadable.
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

/// The records among which the planner may choose for each name. external-dns prefers the resource of the existing
/// record, else the smallest. Records that lost to another type, and records that are not valid, are removed.
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

/// The zones of these names if no zones are configured: the registered domain of each name.
pub fn derived_zones<'r>(records: impl IntoIterator<Item = &'r Record>) -> Vec<Str> {
    let mut zones: Vec<Str> = records.into_iter().filter_map(|record| zone_of(&record.name)).collect();
    zones.sort();
    zones.dedup();
    zones
}

/// The registered domain of a name by the Public Suffix List. A public suffix belongs to nobody who could serve it, so a name
/// that is one has no zone; a single label that is not on the list, such as `localhost`, is its own.
fn zone_of(name: &str) -> Option<Str> {
    let name = name.strip_prefix("*.").unwrap_or(name);
    let is_public = psl::suffix(name.as_bytes()).is_some_and(|suffix| suffix.is_known());
    psl::domain_str(name).or_else(|| Some(name).filter(|_| !is_public)).map(Str::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_served_in_the_zone_of_its_registered_domain_and_never_in_a_public_suffix() {
        for (name, zone) in [
            ("www.example.org", Some("example.org")),
            ("a.b.example.org", Some("example.org")),
            ("*.example.org", Some("example.org")),
            ("www.example.co.uk", Some("example.co.uk")),
            ("a.team.github.io", Some("team.github.io")),
            ("a.b.internal", Some("b.internal")),
            ("localhost", Some("localhost")),
            ("*.localhost", Some("localhost")),
            ("*.org", None),
            ("org", None),
            ("*.co.uk", None),
            ("github.io", None),
        ] {
            assert_eq!(zone_of(name).as_deref(), zone, "{name}");
        }
    }
}
