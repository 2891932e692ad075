//! What `/api/v1` and the page are answered from: a copy of the objects and decisions as of the end of a pass.
//!
//! The loop hands over what a pass came to, and a copy of the world while somebody looks; readers never wait for a pass or
//! hold one up. The copy shares the objects with the engine. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use gatepost_core::attachment::Topology;
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::explain::RecordWrites;
use gatepost_core::incremental::World;
use gatepost_core::lint::LintContext;
use gatepost_core::model::Str;
use gatepost_core::plan::{Held, PlanStep};
use gatepost_core::publication::Desired;
use gatepost_core::report::Report;
use gatepost_core::snapshot::Snapshot;
use gatepost_objects::rfc3339;
use gatepost_tls::certifier::IssuanceState;
use tokio::sync::{Notify, watch};

use crate::apply::Mode;
use crate::certificates::now;
use crate::run::desired::SharedDesired;
use crate::run::{Pass, ProviderReport};
use crate::view::steps::outcome_of;

mod activity;
mod answer;
mod csv;
mod names;
mod one_name;
pub mod openapi;
mod query;
mod report;
mod reviews;
mod visibility;

pub use activity::{ActivityEntry, ActivityLog};
pub use answer::{ApiAnswer, ApiReader, ServerFacts, answer};
pub use names::{NameRow, NamesIndex};
pub use report::{ReportAnswers, answers as report_answers};
pub use reviews::{ReviewRefusal, ReviewedUser, Reviews};
pub use visibility::Viewer;

/// Worlds of at most this many objects are copied after every pass; larger ones only while somebody looks.
const SMALL: usize = 2000;
/// Nobody looks any more after this many seconds without a request.
const WATCHED: i64 = 60;
/// How long a request waits for the copy of a large world, which the loop makes between two passes.
const PATIENCE: Duration = Duration::from_secs(5);
/// A pass of more steps is told without them.
const MOST_STEPS: usize = 1000;

/// What is known of the program as a whole.
#[derive(Clone, Debug)]
pub struct ProgramFacts {
    /// `serve` or `controller`.
    pub command: &'static str,
    /// The name of the provider, if there is one.
    pub provider: Option<String>,
    /// Whether plans are written.
    pub mode: Mode,
    /// Seconds after which everything is compared again; unset where that is not needed.
    pub interval: Option<u64>,
}

impl Default for ProgramFacts {
    fn default() -> Self {
        ProgramFacts { command: "serve", provider: None, mode: Mode::Observe, interval: None }
    }
}

/// The results of a pass that are answered.
#[derive(Debug, Default)]
pub struct PassFacts {
    /// Counts passes.
    pub generation: u64,
    /// When the pass ended, in seconds since 1970.
    pub ended: i64,
    /// The steps of the plan, unless there are very many.
    pub steps: Vec<PlanStep>,
    /// What became of each step.
    pub outcomes: Vec<StepOutcome>,
    /// The number of steps.
    pub step_count: usize,
    /// The names of steps that were not written.
    pub unwritten: BTreeMap<Str, BTreeMap<Option<Str>, RecordWrites>>,
    /// What is held, and why.
    pub held: Vec<Held>,
    /// The digest of the plan.
    pub digest: String,
    /// The words that confirm held deletes, each with its provider where there are several.
    pub confirmations: Vec<(Option<Str>, String)>,
    /// The zones that were read.
    pub zones: Vec<ReadZone>,
    /// The providers that could not be read completely, where there are several.
    pub unread_providers: BTreeSet<Str>,
    /// Errors of zones that could not be read.
    pub unread: Vec<String>,
    /// Notes for people.
    pub notes: Vec<String>,
    /// The state of the certificates.
    pub issuing: Vec<IssuanceState>,
    /// Problems of objects and texts.
    pub problems: Vec<Diagnostic>,
    desired: SharedDesired,
}

/// A zone that was read.
#[derive(Clone, Debug)]
pub struct ReadZone {
    /// The provider, where there are several; each may have a zone of this name.
    pub provider: Option<Str>,
    /// The name.
    pub name: Str,
    /// The version.
    pub version: Str,
}

/// What became of one step.
#[derive(Clone, Debug)]
pub struct StepOutcome {
    /// `written`, `failed` or `skipped`.
    pub word: &'static str,
    /// Why it failed.
    pub error: Option<String>,
    /// The provider, where there are several.
    pub provider: Option<Str>,
}

/// A copy of objects and decisions.
pub struct WorldCopy {
    /// The objects.
    pub snapshot: Snapshot,
    /// The evaluated Gateways, listeners and routes.
    pub topology: Topology,
    /// What ought to exist.
    pub desired: Desired,
    /// The pass after which the copy was made.
    pub pass: Arc<PassFacts>,
    report: OnceLock<Report>,
    namespaces: OnceLock<BTreeSet<String>>,
}

/// The state behind `/api/v1`, shared by the loop and the HTTP server.
pub struct ApiState {
    facts: RwLock<ProgramFacts>,
    pass: RwLock<Arc<PassFacts>>,
    world: watch::Sender<Option<Arc<WorldCopy>>>,
    generation: watch::Sender<u64>,
    names: tokio::sync::Mutex<Option<Arc<NamesIndex>>>,
    activity: Mutex<ActivityLog>,
    trouble: RwLock<Option<String>>,
    asked_at: AtomicU64,
    is_wanted: AtomicBool,
    wanted: Notify,
}

impl Default for ApiState {
    fn default() -> Self {
        ApiState {
            facts: RwLock::default(),
            pass: RwLock::default(),
            world: watch::Sender::new(None),
            generation: watch::Sender::new(0),
            names: tokio::sync::Mutex::default(),
            activity: Mutex::default(),
            trouble: RwLock::default(),
            asked_at: AtomicU64::new(0),
            is_wanted: AtomicBool::new(false),
            wanted: Notify::new(),
        }
    }
}

impl std::fmt::Debug for ApiState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiState").finish_non_exhaustive()
    }
}

impl ApiState {
    /// A state before the first pass.
    pub fn new(facts: ProgramFacts) -> Self {
        ApiState { facts: RwLock::new(facts), ..ApiState::default() }
    }

    /// Takes what a pass came to, and copies the world if that is cheap or somebody looks.
    pub fn record(&self, pass: &Pass, problems: &[Diagnostic], world: &World) {
        let generation = *self.generation.borrow() + 1;
        *write(&self.pass) = Arc::new(PassFacts::of(pass, problems, generation));
        *write(&self.trouble) = None;
        self.activity().take(pass);
        if world.snapshot().len() <= SMALL || self.is_watched() {
            self.copy(world);
        } else {
            self.world.send_replace(None);
        }
        self.generation.send_replace(generation);
    }

    /// Says why nothing could be read; what is known stays, and is known to be old.
    pub fn fail(&self, why: String) {
        *write(&self.trouble) = Some(why);
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Completes when a request waits for a copy of the world. Cancel safe.
    pub async fn wanted(&self) {
        while !self.is_wanted.load(Ordering::Acquire) || self.generation() == 0 {
            self.wanted.notified().await;
        }
    }

    /// Copies the world as of the last pass.
    pub fn copy(&self, world: &World) {
        let pass = read(&self.pass).clone();
        let desired = pass.desired.read().clone();
        let copy = WorldCopy {
            snapshot: world.snapshot().clone(),
            topology: world.topology().clone(),
            desired,
            pass,
            report: OnceLock::new(),
            namespaces: OnceLock::new(),
        };
        self.is_wanted.store(false, Ordering::Release);
        self.world.send_replace(Some(Arc::new(copy)));
    }

    /// Counts changes that readers may notice.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// The copy of the world; where there is none, the loop is asked for one. Nothing before the first pass, or where the
    /// loop does not get to it in time.
    async fn world(&self) -> Option<Arc<WorldCopy>> {
        self.asked_at.store(u64::try_from(now()).unwrap_or_default(), Ordering::Relaxed);
        let mut copies = self.world.subscribe();
        if let Some(world) = copies.borrow_and_update().clone() {
            return Some(world);
        }
        self.is_wanted.store(true, Ordering::Release);
        self.wanted.notify_one();
        let copy = tokio::time::timeout(PATIENCE, copies.wait_for(Option::is_some)).await.ok()?.ok()?;
        copy.clone()
    }

    fn is_watched(&self) -> bool {
        let asked = i64::try_from(self.asked_at.load(Ordering::Relaxed)).unwrap_or_default();
        self.is_wanted.load(Ordering::Acquire) || now() - asked < WATCHED
    }

    fn activity(&self) -> MutexGuard<'_, ActivityLog> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> Option<String> {
        read(&self.trouble).clone()
    }

    fn facts(&self) -> ProgramFacts {
        read(&self.facts).clone()
    }
}

impl PassFacts {
    fn of(pass: &Pass, problems: &[Diagnostic], generation: u64) -> Self {
        let plan = &pass.plan;
        let unread = pass.providers.iter().filter(|provider| !provider.is_read);
        let shown = if plan.steps.len() > MOST_STEPS { &[] } else { &plan.steps[..] };
        PassFacts {
            generation,
            ended: now(),
            steps: shown.to_vec(),
            outcomes: (0..shown.len()).map(|i| StepOutcome::of(i, pass)).collect(),
            step_count: plan.steps.len(),
            unwritten: unwritten(pass),
            held: plan.held.clone(),
            digest: plan.digest.clone(),
            confirmations: confirmations(pass),
            zones: read_zones(pass),
            unread_providers: unread.map(|provider| provider.name.clone()).collect(),
            unread: pass.unread.clone(),
            notes: pass.notes.clone(),
            issuing: pass.issuing.clone(),
            problems: problems.to_vec(),
            desired: pass.desired.clone(),
        }
    }

    /// What became of the changes of a name's records, at all providers.
    pub fn writes_of(&self, name: &str) -> RecordWrites {
        self.unwritten.get(name).into_iter().flat_map(BTreeMap::values).max().copied().unwrap_or_default()
    }

    /// What became of the changes of a name's records at one provider; none where there is only one.
    pub fn writes_at(&self, name: &str, provider: Option<&Str>) -> RecordWrites {
        self.unwritten.get(name).and_then(|of| of.get(&provider.cloned())).copied().unwrap_or_default()
    }

    /// Whether everything could be read at a provider; none where there is only one.
    pub fn is_read_at(&self, provider: Option<&Str>) -> bool {
        provider.map_or(self.unread.is_empty(), |provider| !self.unread_providers.contains(provider))
    }

    /// The zone of a name among those that were read at a provider; none where there is only one.
    pub fn zone_at(&self, name: &str, provider: Option<&Str>) -> Option<&ReadZone> {
        let is_in = |zone: &&ReadZone| gatepost_core::names::is_below(name, &zone.name) || name == &*zone.name;
        let zones = self.zones.iter().filter(|zone| zone.provider.as_ref() == provider);
        zones.filter(is_in).max_by_key(|zone| zone.name.len())
    }

    /// The zones of a name that these providers publish; at all providers where none does.
    pub fn zones_of(&self, name: &str, providers: &BTreeSet<Str>) -> Vec<&ReadZone> {
        let all: BTreeSet<Option<&Str>> = match providers.is_empty() {
            true => self.zones.iter().map(|zone| zone.provider.as_ref()).collect(),
            false => providers.iter().map(Some).collect(),
        };
        all.into_iter().filter_map(|provider| self.zone_at(name, provider)).collect()
    }
}

impl StepOutcome {
    /// The word and the error.
    pub fn told(&self) -> (&'static str, Option<String>) {
        (self.word, self.error.clone())
    }

    fn of(i: usize, pass: &Pass) -> Self {
        let error = pass.outcome.failed.get(&i).map(ToString::to_string);
        StepOutcome { word: outcome_of(i, &pass.outcome), error, provider: pass.provider_of_step(i).cloned() }
    }
}

impl WorldCopy {
    /// The input of rules.
    pub fn context(&self) -> LintContext<'_> {
        LintContext { snapshot: &self.snapshot, topology: &self.topology }
    }

    /// Every namespace that holds something of which an answer may tell.
    pub fn namespaces(&self) -> &BTreeSet<String> {
        self.namespaces.get_or_init(|| {
            let snapshot = &self.snapshot;
            let routes = snapshot.routes.keys().chain(snapshot.listener_sets.keys()).map(|object| &object.key);
            let policies = snapshot.dns_policies.keys().chain(snapshot.tls_policies.keys());
            let others = snapshot.gateways.keys().chain(policies).chain(snapshot.grants.keys());
            let held = snapshot.secrets.keys().chain(snapshot.services.keys()).chain(snapshot.config_maps.keys());
            let issued = self.desired.certificates.iter().map(|certificate| &certificate.secret);
            let keys = routes.chain(others).chain(held).chain(issued);
            let named = keys.map(|key| &key.namespace).chain(snapshot.namespaces.keys());
            named.filter(|namespace| !namespace.is_empty()).map(ToString::to_string).collect()
        })
    }

    /// The status of every object, made when it is first asked for.
    pub fn report(&self) -> &Report {
        self.report.get_or_init(|| {
            let mut report = Report::build(self.context(), Some(rfc3339(self.pass.ended).into()));
            report.add_policies(&self.desired.policies, &self.snapshot);
            report
        })
    }
}

/// The names of steps that were not written; failing is worse than not being tried.
fn unwritten(pass: &Pass) -> BTreeMap<Str, BTreeMap<Option<Str>, RecordWrites>> {
    let mut names: BTreeMap<Str, BTreeMap<Option<Str>, RecordWrites>> = BTreeMap::new();
    for (i, step) in pass.plan.steps.iter().enumerate().filter(|(i, _)| !pass.outcome.written.contains(i)) {
        let is_failed = pass.outcome.failed.contains_key(&i);
        let writes = if is_failed { RecordWrites::Failed } else { RecordWrites::Skipped };
        let of_name = names.entry(step.name.clone()).or_default();
        let known = of_name.entry(pass.provider_of_step(i).cloned()).or_default();
        *known = writes.max(*known);
    }
    names
}

/// The zones that a pass read, of each provider.
fn read_zones(pass: &Pass) -> Vec<ReadZone> {
    let of = |provider: Option<&Str>, zones: &BTreeMap<Str, Str>| -> Vec<ReadZone> {
        let zone = |(name, version): (&Str, &Str)| {
            let (name, version) = (name.clone(), version.clone());
            ReadZone { provider: provider.cloned(), name, version }
        };
        zones.iter().map(zone).collect()
    };
    match pass.providers.is_empty() {
        true => of(None, &pass.plan.epochs),
        false => pass.providers.iter().flat_map(|provider| of(Some(&provider.name), &provider.zones)).collect(),
    }
}

/// The words that confirm what a pass holds, of each provider.
fn confirmations(pass: &Pass) -> Vec<(Option<Str>, String)> {
    if pass.providers.is_empty() {
        return pass.plan.confirmation().map(|word| (None, word)).into_iter().collect();
    }
    let word =
        |provider: &ProviderReport| Some((Some(provider.name.clone()), provider.unconfirmed.as_ref()?.1.clone()));
    pass.providers.iter().filter_map(word).collect()
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::publishers::nothing;
    use crate::view::api::PlanStepsView;

    #[test]
    fn the_word_that_confirms_is_that_of_a_provider() {
        let report = |name: &str, word: Option<&str>| {
            let unconfirmed = word.map(|word| (2, word.to_owned()));
            ProviderReport { name: name.into(), unconfirmed, ..ProviderReport::default() }
        };
        let providers = vec![
            report("default", None),
            report("public", Some("07e92b002b611394-public")),
            report("private", Some("11e92b002b611394-private")),
        ];
        let pass = PassFacts::of(&Pass { providers, ..nothing() }, &[], 1);
        let view = serde_json::to_value(PlanStepsView::of(&pass, 0, 10)).unwrap_or_default();
        assert_eq!(view["confirmation"], "07e92b002b611394-public");
        assert_eq!(view["confirmations"][1]["provider"], "private");
        assert_eq!(view["confirmations"][1]["word"], "11e92b002b611394-private");
    }
}
