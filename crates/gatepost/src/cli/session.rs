//! What every command that talks to a provider opens first: the line, the provider, and what earlier runs remember.
//!
//! Flags become values here, before anything is read or asked. Nothing here prints.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::incremental::{Delta, Engine};
use gatepost_core::model::Str;
use gatepost_core::plan::{Hold, Instance, Plan, Sight};
use gatepost_core::publication::Record;
use gatepost_core::publication::holders::ObservedNames;
use gatepost_core::snapshot::{Origin, Snapshot};
use gatepost_dns::embedded::DnsServer;
use gatepost_dns::provider::{Provider, Shared};
use gatepost_dns::providers::embedded::Embedded;

use super::Failure;
use super::flags::Publishing;
use super::flags::issuer::ChallengeSources;
use super::flags::issuing::IssuingFlags;
use super::flags::planning::PlanningFlags;
use super::flags::provider::{self, ProviderFlags};
use super::flags::providers::{self, NamedProvider};
use crate::apply::{Mode, Progress};
use crate::certificates::{self, Certificates};
use crate::controller::permit::Nowhere;
use crate::error::RunError;
use crate::progress::LongWork;
use crate::run::desired::{DesiredCache, DesiredUpdate};
use crate::run::publisher::Publisher;
use crate::run::publishers::{PublishedState, PublisherSet};
use crate::run::schedule::ScheduleRules;
use crate::run::{
    ChallengeRecords, Comparison, Decision, Pass, Pipeline, PlanInput, ReadObjects, ZoneCache, derived_zones,
};
use crate::source::Objects;
use crate::state::State;

/// A provider, and everything that is needed to publish through it.
pub(super) struct Session {
    /// What a pass goes by.
    pub(super) pipeline: Pipeline,
    /// Who publishes.
    pub(super) provider: Shared,
    /// What earlier runs remember.
    pub(super) state: State,
    /// What is to exist beside the records of hostnames.
    pub(super) challenge_records: ChallengeRecords,
    /// What ought to exist as of the last pass.
    pub(super) desired: DesiredCache,
    /// What is kept from pass to pass, for who makes many.
    pub(super) zones: ZoneCache,
    /// Names whose records changed while objects were followed, until that is written.
    pub(super) explained: ExplainedNames,
    /// The embedded server, where that is the provider.
    pub(super) local: Option<Local>,
    /// The certificates, where somebody issues them.
    pub(super) certificates: Option<Certificates>,
    /// The providers, where there are several; each is written beside the passes.
    pub(super) several: Option<SeveralProviders>,
}

/// Several providers beside the passes of a session.
pub(super) struct SeveralProviders {
    /// The providers.
    pub(super) set: PublisherSet,
    /// Whether records may be written to a provider now.
    pub(super) may_write: Box<dyn Fn(&str) -> bool + Send + Sync>,
    /// Whether a first pass has made everything.
    has_begun: bool,
    sight: Sight,
    contested: BTreeSet<Str>,
}

impl SeveralProviders {
    /// Providers that were opened.
    pub(super) fn new(
        publishers: Vec<Publisher>,
        rules: ScheduleRules,
        may_write: Box<dyn Fn(&str) -> bool + Send + Sync>,
    ) -> SeveralProviders {
        let set = PublisherSet::new(publishers, rules);
        SeveralProviders { set, may_write, has_begun: false, sight: Sight::default(), contested: BTreeSet::new() }
    }
}

/// Names that were seen to lose their records, by a change of an object after the first pass.
#[derive(Debug, Default)]
pub(super) struct ExplainedNames {
    names: BTreeMap<Str, Instant>,
    /// Whether a first pass has shown what there is at the start.
    has_begun: bool,
    /// How long it takes until a change is an explanation: it may belong to a greater one, such as a CRD that goes and takes
    /// its objects first.
    pub(super) settles_in: Duration,
}

/// More names are not remembered; what goes with them is held as if nobody had seen it.
const MOST_EXPLAINED: usize = 100_000;

impl ExplainedNames {
    fn note<'n>(&mut self, names: impl Iterator<Item = &'n Str>) {
        if std::mem::replace(&mut self.has_begun, true) {
            let now = Instant::now();
            self.names.extend(names.map(|name| (name.clone(), now)));
        }
        if self.names.len() > MOST_EXPLAINED {
            self.names.clear();
        }
    }

    /// The names whose change is an explanation by now.
    fn settled(&self) -> BTreeSet<Str> {
        let settled = self.names.iter().filter(|(_, at)| at.elapsed() >= self.settles_in);
        settled.map(|(name, _)| name.clone()).collect()
    }

    /// Forgets what needs no delete any more.
    fn finish(&mut self, pass: &Pass) {
        if self.names.is_empty() || !pass.unread.is_empty() {
            return;
        }
        let is_unwritten = |(i, _): &(usize, _)| !pass.outcome.written.contains(i);
        let unwritten = pass.plan.steps.iter().enumerate().filter(is_unwritten).map(|(_, step)| &step.name);
        let open: BTreeSet<&Str> = pass.plan.held.iter().map(|held| &held.name).chain(unwritten).collect();
        self.names.retain(|name, _| open.contains(name));
    }
}

/// The embedded server.
pub(super) struct Local {
    /// The server.
    pub(super) server: Arc<DnsServer>,
    embedded: Arc<Embedded>,
    /// The zones that are named; others are derived from hostnames.
    zones: Vec<Str>,
}

/// Where the embedded server runs while a command works on what it kept: nobody is to find it there.
pub(super) const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The flags of a session.
#[derive(Clone, Copy)]
pub(super) struct Flags<'a> {
    /// What is published.
    pub(super) publishing: &'a Publishing,
    /// Where.
    pub(super) provider: &'a ProviderFlags,
    /// What may be written.
    pub(super) planning: &'a PlanningFlags,
}

impl Flags<'_> {
    /// The providers, where there are several.
    pub(super) fn several(&self) -> Result<Vec<NamedProvider>, Failure> {
        self.publishing.further().with(self.provider, self.planning)
    }

    /// Whether a provider is named at all.
    pub(super) fn have_provider(&self) -> bool {
        self.provider.kind().is_some() || self.publishing.further().are_any()
    }
}

impl Session {
    /// Opens a provider of the network, or what an embedded server kept; nothing is asked of it yet. Who `writes` keeps what
    /// was done.
    pub(super) fn open(flags: Flags<'_>, writes: bool) -> Result<Session, Failure> {
        let is_embedded = flags.provider.is_embedded();
        if is_embedded && flags.provider.state_dir().is_none() {
            return Err(Failure::usage(
                "--provider embedded is a server inside `gatepost serve`: add --state-dir with the directory where it keeps its zones",
            ));
        }
        Session::with(flags, is_embedded.then_some(NOWHERE), writes)
    }

    /// Opens a provider; the embedded one answers at an address. Who `writes` keeps what was done.
    pub(super) fn with(flags: Flags<'_>, listen: Option<SocketAddr>, writes: bool) -> Result<Session, Failure> {
        if !flags.have_provider() {
            return Err(provider::unnamed());
        }
        // What cannot work leaves no directory behind.
        flags.several()?;
        Session::of(flags, listen, writes, State::open(flags.provider.state_dir(), writes)?, None)
    }

    /// The same with what is remembered; `instead` stands for a provider where none is named.
    pub(super) fn of(
        flags: Flags<'_>,
        listen: Option<SocketAddr>,
        writes: bool,
        state: State,
        instead: Option<Shared>,
    ) -> Result<Session, Failure> {
        let mut publishing = flags.publishing.settings()?;
        let named = flags.several()?;
        let instead = match named.is_empty() {
            true => instead,
            false => Some(Nowhere::shared()),
        };
        if !named.is_empty() {
            publishing.providers = providers::rule_of(&named);
        }
        let resolver = flags.publishing.resolver()?;
        flags.provider.check()?;
        let planning = flags.planning.settings(flags.provider.kind(), state.instance().clone())?;
        let local = match listen {
            Some(listen) => Some(Local::start(flags.provider, listen, writes)?),
            None => None,
        };
        let provider = match (&local, instead) {
            (Some(local), _) => local.embedded.clone() as Shared,
            (None, Some(instead)) => instead,
            (None, None) => flags.provider.open(flags.publishing.domains())?,
        };
        let scope = flags.publishing.scope();
        let (mode, health) = (flags.planning.mode(), state.health().clone());
        let pipeline = Pipeline { publishing, scope, planning, mode, confirmed: None, resolver, health };
        let (challenge_records, zones, desired) =
            (ChallengeRecords::default(), ZoneCache::default(), DesiredCache::default());
        let (explained, certificates, several) = (ExplainedNames::default(), None, None);
        Ok(Session {
            pipeline,
            provider,
            state,
            challenge_records,
            desired,
            zones,
            explained,
            local,
            certificates,
            several,
        })
    }

    /// Opens each of several providers; `guard` has the last word about its writes. Nothing is asked of them yet.
    pub(super) fn publishers(
        &self,
        flags: Flags<'_>,
        every: Duration,
        guard: impl Fn(&NamedProvider, Shared) -> Shared,
    ) -> Result<Vec<Publisher>, Failure> {
        let open = |named: NamedProvider| {
            let of_provider = |failure| named_failure(failure, &named.name);
            let domains =
                if named.zones.is_empty() { flags.publishing.domains() } else { &zone_texts(&named.zones)[..] };
            let provider = named.flags.open(domains).map_err(of_provider)?;
            let state = self.state.of_provider(&named.name)?;
            let planning =
                named.planning.settings(named.flags.kind(), state.instance().clone()).map_err(of_provider)?;
            let provider = guard(&named, provider);
            Ok(Publisher::new(named.name, provider, (planning, named.planning.mode()), state, every))
        };
        flags.several()?.into_iter().map(open).collect()
    }

    /// Takes the identity of this instance, where it was not known yet when the session was opened.
    pub(super) fn identify(&mut self, flags: Flags<'_>, instance: Instance) -> Result<(), Failure> {
        self.pipeline.planning = flags.planning.settings(flags.provider.kind(), instance.clone())?;
        self.state = std::mem::take(&mut self.state).of_instance(instance);
        Ok(())
    }

    /// What ought to exist against what does.
    pub(super) async fn decide(&self, objects: &Objects) -> Result<Decision, Failure> {
        let work = LongWork::begin("deciding which records ought to exist");
        let topology = objects.topology(&self.pipeline.scope);
        let seen = objects.seen(&topology);
        let desired = self.pipeline.desired(seen, &self.challenge_records, &Default::default());
        drop(work);
        let _work = LongWork::begin("reading the zones, and planning what to write");
        self.prepare(&desired.records).await?;
        Ok(self.pipeline.decide(self.plan_input(seen, &self.explained.settled()), desired).await)
    }

    /// What decides about the objects of this session as they change.
    pub(super) fn engine(&self, origin: Origin) -> Engine {
        Engine::new(self.pipeline.publishing.clone(), self.pipeline.scope.clone(), origin)
    }

    /// What ought to exist against what does, for who follows changes with an engine. Everything is made and compared only
    /// where the names that changed are not enough to tell.
    pub(super) async fn follow(
        &mut self,
        engine: &mut Engine,
        delta: Delta,
        problems: &[Diagnostic],
    ) -> Result<Decision, RunError> {
        let challenges = self.challenge_records.challenges.iter().map(|record| record.name.clone());
        let by_challenges = engine.set_existing_names(challenges);
        let by_probes = engine.set_health(&self.pipeline.health);
        let (mut desired, mut zones) = (std::mem::take(&mut self.desired), std::mem::take(&mut self.zones));
        zones.note(delta.names.iter().chain(&by_challenges.names).chain(&by_probes.names).cloned());
        self.explained.note(delta.names.iter());
        let deltas = [delta, by_challenges, by_probes];
        if let Some(several) = &mut self.several {
            let update = several.decide(&self.pipeline, engine, &deltas, problems, &mut desired);
            (self.desired, self.zones) = (desired, zones);
            return Ok(Decision::of(update, Plan::default()));
        }
        let decision = self.decide_change(engine, &deltas, problems, &mut desired, &mut zones).await;
        if decision.is_err() {
            zones.forget();
        }
        (self.desired, self.zones) = (desired, zones);
        decision
    }

    async fn decide_change(
        &self,
        engine: &mut Engine,
        deltas: &[Delta],
        problems: &[Diagnostic],
        desired: &mut DesiredCache,
        zones: &mut ZoneCache,
    ) -> Result<Decision, RunError> {
        let world = engine.world();
        let was_part = zones.may_plan_part() && self.pipeline.may_plan_part(world, &*self.provider);
        let mut whole = (!was_part && self.local.is_some()).then(|| self.pipeline.desired_in(world));
        match &whole {
            Some(whole) => self.prepare(&whole.records).await?,
            None => {
                let changed: Vec<Record> = zones.open().flat_map(|name| world.records(name)).collect();
                self.prepare(&changed).await?;
            }
        }
        if was_part {
            deltas.iter().for_each(|delta| desired.note(engine, delta));
        }
        let comparison = self.pipeline.catch_up(&*self.provider, zones).await;
        let observed = self.pipeline.observe_names(engine, problems, &comparison, zones, self.state.memory());
        let by_records = engine.set_observed(observed);
        zones.note(by_records.names.iter().cloned());
        if was_part {
            desired.note(engine, &by_records);
        }
        whole = whole.filter(|_| by_records.is_empty());
        let world = engine.world();
        let explained = self.explained.settled();
        let seen = ReadObjects { snapshot: world.snapshot(), topology: world.topology(), problems };
        let input = self.plan_input(seen, &explained);
        if matches!(comparison, Comparison::WithCache)
            && let Some(decision) = self.pipeline.decide_part(world, input, desired, zones)
        {
            return Ok(decision);
        }
        let whole = whole.unwrap_or_else(|| self.pipeline.desired_in(world));
        Ok(self.pipeline.decide_whole(input, comparison, whole, desired, zones).await)
    }

    async fn prepare(&self, records: &[Record]) -> Result<(), RunError> {
        match &self.local {
            Some(local) => local.prepare(records).await,
            None => Ok(()),
        }
    }

    fn plan_input<'a>(&'a self, seen: ReadObjects<'a>, explained: &'a BTreeSet<Str>) -> PlanInput<'a> {
        PlanInput {
            seen,
            challenge_records: &self.challenge_records,
            memory: self.state.memory(),
            explained,
            provider: &*self.provider,
        }
    }

    /// Opens the issuer that is named. Challenges are to be answered by the embedded server, or by those that the provider names.
    pub(super) async fn issue(&mut self, issuing: &IssuingFlags, flags: Flags<'_>) -> Result<(), Failure> {
        if let Some(most) = issuing.most_names() {
            self.pipeline.publishing.certificate_names = most;
        }
        self.certificates = issuing.open(self.places(flags)).await?;
        self.challenge_records = self.certificates.as_ref().map(Certificates::challenge_records).unwrap_or_default();
        Ok(())
    }

    /// Who is to answer challenges.
    pub(super) fn places(&self, flags: Flags<'_>) -> ChallengeSources {
        let servers = match &self.local {
            Some(local) => vec![local.server.address().to_string()],
            None => flags.provider.servers(),
        };
        let resolvers = flags.publishing.resolvers().to_vec();
        let (mut zones, mut several) = (flags.provider.zones(), None);
        let named = flags.several().unwrap_or_default();
        if !named.is_empty() {
            zones = named.iter().flat_map(|provider| provider.zones.clone()).collect();
            let servers = named.iter().map(|provider| (provider.name.clone(), provider.flags.servers()));
            several = Some((self.pipeline.publishing.providers.clone(), servers.collect()));
        }
        ChallengeSources { servers, zones, is_alone: self.local.is_some(), resolvers, several }
    }

    /// Lets orders advance behind a pass, and puts what became of them into its reports. Says whether another pass is needed at
    /// once, because other TXT values are wanted now.
    pub(super) async fn certify(&mut self, snapshot: &Snapshot, pass: &mut Pass) -> Result<bool, String> {
        let (Some(certificates), Mode::Act) = (&mut self.certificates, self.pipeline.mode) else {
            pass.touched.policies.extend(self.desired.reflect(|_| ()));
            return Ok(false);
        };
        // Several providers are written beside the passes.
        let is_written = self.several.as_ref().is_none_or(|several| several.set.is_settled());
        let forgotten = match pass.unread.is_empty() && pass.outcome.is_complete() && is_written {
            true => certificates.forget_retired().await,
            false => Ok(()),
        };
        let advanced = match forgotten {
            Ok(()) => {
                let mut wants = certificates::wants(&pass.desired.read(), snapshot);
                certificates::keep_held(&mut wants, pass.plan.unknown_names());
                certificates.advance(&wants, certificates::now()).await
            }
            failed => failed,
        };
        self.challenge_records = certificates.challenge_records();
        let round = certificates.round();
        pass.issuing.extend(round.states.iter().cloned());
        let states = &pass.issuing;
        let reflected = self.desired.reflect(|desired| certificates::reflect(desired, snapshot, states));
        pass.touched.policies.extend(reflected);
        advanced.map_err(|error| error.to_string())?;
        pass.news.extend(round.events.iter().cloned());
        Ok(round.needs_publishing)
    }

    /// Writes what was decided, and remembers it; says what could not be kept.
    pub(super) async fn write(&mut self, decision: Decision, progress: Progress<'_>) -> (Pass, Result<(), String>) {
        let mut pass = self.pipeline.write(decision, &*self.provider, &mut self.desired, progress).await;
        if let Some(several) = &mut self.several {
            let settled = self.explained.settled();
            several.publish(&self.pipeline, &self.challenge_records, &settled, &mut pass);
            if several.set.is_settled() {
                self.explained.finish(&pass);
            }
            return (pass, Ok(()));
        }
        self.zones.finish_pass(&pass, &self.challenge_records);
        self.explained.finish(&pass);
        // Each of several providers keeps what was done there.
        if self.pipeline.mode == Mode::Observe || self.pipeline.publishing.providers.are_several() {
            return (pass, Ok(()));
        }
        let kept = self.state.learn(&pass.plan, &pass.outcome).map_err(|error| error.to_string());
        let unkept = self.local.as_ref().and_then(|local| local.embedded.unkept());
        (pass, kept.and_then(|()| unkept.map_or(Ok(()), Err)))
    }
}

impl SeveralProviders {
    /// What ought to exist, as of these changes and of the records that the providers have.
    fn decide(
        &mut self,
        pipeline: &Pipeline,
        engine: &mut Engine,
        deltas: &[Delta],
        problems: &[Diagnostic],
        desired: &mut DesiredCache,
    ) -> DesiredUpdate {
        let observed = ObservedNames::new(self.set.origins(), Hold::any(engine.world().snapshot(), problems));
        let by_records = engine.set_observed(observed);
        let has_covered = engine.world().has_covered() || !desired.shared().read().covered.is_empty();
        let update = match self.has_begun && !has_covered {
            true => {
                deltas.iter().chain([&by_records]).for_each(|delta| desired.note(engine, delta));
                desired.part()
            }
            false => desired.whole(pipeline.desired_in(engine.world())),
        };
        self.has_begun = true;
        self.sight = desired.sight(engine.world().snapshot(), problems);
        self.contested = engine.contested_names();
        update
    }

    /// Hands what ought to exist to the providers, and puts what became of them into a pass.
    fn publish(
        &mut self,
        pipeline: &Pipeline,
        challenge_records: &ChallengeRecords,
        explained: &BTreeSet<Str>,
        pass: &mut Pass,
    ) {
        let may_write = &self.may_write;
        let mode = |name: &str| if may_write(name) { pipeline.mode } else { Mode::Observe };
        self.set.take(PublishedState {
            desired: &pass.desired.read(),
            rule: &pipeline.publishing.providers,
            challenge_records,
            sight: &self.sight,
            contested: &self.contested,
            explained,
            mode: &mode,
            confirmed: pipeline.confirmed.as_deref(),
        });
        self.set.report(pass);
    }
}

/// A failure of one of several providers, with its name.
fn named_failure(failure: Failure, name: &str) -> Failure {
    match failure {
        Failure::Usage(error) => Failure::Usage(error.context(format!("provider `{name}`"))),
        Failure::Unreadable(error) => Failure::Unreadable(error.context(format!("provider `{name}`"))),
        Failure::Unheard => Failure::Unheard,
    }
}

fn zone_texts(zones: &[Str]) -> Vec<String> {
    zones.iter().map(ToString::to_string).collect()
}

impl Local {
    fn start(flags: &ProviderFlags, listen: SocketAddr, keeps: bool) -> Result<Local, Failure> {
        let server = flags.embedded(listen, keeps)?;
        let embedded = Arc::new(provider::through(&server)?);
        Ok(Local { server, embedded, zones: flags.zones() })
    }

    /// Serves the zones that are named, or those of the hostnames; a zone that was served once stays.
    async fn prepare(&self, records: &[Record]) -> Result<(), RunError> {
        let mut zones = self.zones.clone();
        if zones.is_empty() {
            zones = self.embedded.zones().await.unwrap_or_default();
            zones.extend(derived_zones(records));
            zones.sort();
            zones.dedup();
        }
        self.embedded.serve(&zones).map_err(|error| RunError::usage(error.to_string()))
    }
}

/// Runs what waits for the network.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

#[cfg(test)]
mod tests;
