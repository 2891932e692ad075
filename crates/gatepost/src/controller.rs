//! The pipeline in a cluster: watch events start passes, which write records, status, Events and log lines.
//!
//! Changes are collected for a moment, and passes are at least a second apart, so that a route that changes a hundred
//! times is written once. A controller writes nothing if it is not the leader, while writing is frozen, or in observe
//! mode, which is the default until a policy is set; each single write checks all three ([`permit`]).

use std::time::{Duration, Instant};

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::incremental::{Delta, Engine};
use gatepost_kube::Connection;
use gatepost_kube::lease::{Election, LeaderState};
use gatepost_kube::watch::ClusterWatch;
use tokio::sync::watch;

use crate::apply::Mode;
use crate::certificates;
use crate::error::RunError;
use crate::health::ProbeNumbers;
use crate::run::Pass;
use crate::run::schedule::{PassEnd, Schedule, ScheduleRules};

pub mod admission;
pub mod cert_manager;
pub mod dnsendpoint;
mod log;
pub mod permit;
mod report;
pub mod secrets;
mod view;

pub use view::View;

/// The parts that a controller works with.
pub struct Controller {
    /// The cluster.
    pub connection: Connection,
    /// The source of watch events.
    pub watching: ClusterWatch,
    /// The state built from the watch events.
    pub view: View,
    /// The leader election; `None` in observe mode, which needs no leader.
    pub election: Option<Election>,
    /// Whether writes are allowed at the moment.
    pub permit: permit::Permit,
    /// Our name in Events.
    pub identity: String,
    /// How often zones are compared even if nothing changed.
    pub interval: Duration,
    /// The state that HTTP endpoints read.
    pub board: crate::web::SharedHttpState,
}

/// How long changes are collected.
const QUIET: Duration = Duration::from_millis(200);
/// Minimum time between two passes.
const SPACING: Duration = Duration::from_secs(1);
/// The first pause after a failed pass; it doubles, up to the interval.
const PAUSE: Duration = Duration::from_secs(2);
/// How often ages and permissions are checked for the health endpoint.
const TICK: Duration = Duration::from_secs(1);

/// The input of a pass.
pub struct Occasion<'a> {
    /// The objects, and the decisions about them.
    pub engine: &'a mut Engine,
    /// What changed since the last pass.
    pub delta: Delta,
    /// Problems of the objects.
    pub problems: &'a [Diagnostic],
    /// Whether the pass may write.
    pub may_write: bool,
    /// The digest by which held deletes were confirmed.
    pub confirmed: Option<String>,
}

/// Runs passes; implemented by the session of the command line.
pub trait Passes {
    /// Runs one pass.
    fn pass(&mut self, occasion: Occasion<'_>) -> impl Future<Output = Result<Pass, RunError>>;
    /// Completes when something changed that watches do not report. Cancel safe.
    fn woken(&mut self) -> impl Future<Output = ()>;
    /// Time of the next pass without a change, in seconds since 1970: an order continues, or a certificate is renewed.
    fn wake(&self) -> Option<i64>;
    /// Whether plans are written.
    fn mode(&self) -> Mode;
    /// What was done about health checks so far.
    fn probes(&self) -> ProbeNumbers;
}

impl Controller {
    /// Runs until `stop` completes.
    pub async fn run(mut self, passes: &mut impl Passes, stop: impl Future<Output = ()>) -> Result<(), RunError> {
        tokio::pin!(stop);
        let mut reporter = report::Reporter::start(&self.connection, &self.identity, &self.permit);
        let api = crate::web::api_of(&self.board);
        let mut log = log::Log::new(self.election.as_ref().map(|election| election.lease.clone()));
        let mut schedule = Schedule::new(rules(self.interval), Instant::now());
        loop {
            tokio::select! {
                () = &mut stop => break,
                event = self.watching.next() => {
                    let Some(event) = event else { break };
                    self.take(event, &mut log, &mut schedule);
                    while let Some(event) = self.watching.at_once() {
                        self.take(event, &mut log, &mut schedule);
                    }
                }
                () = leader_state_changed(&mut self.election) => {
                    let leader_state = self.leader_state();
                    // The renewal of the Lease alone needs no pass.
                    if log.leader_state(&leader_state) {
                        schedule.changed(Instant::now());
                    }
                }
                () = passes.woken() => schedule.changed(Instant::now()),
                () = tokio::time::sleep(pause(&schedule)) => {}
                () = api.wanted() => api.copy(self.view.world()),
            }
            if log.frozen(self.permit.frozen().as_deref()) {
                schedule.changed(Instant::now());
            }
            if schedule.is_due(Instant::now()) && self.view.is_read() {
                schedule.began();
                let work = self.pass(passes, &mut reporter, &mut log);
                let ending = tokio::select! {
                    // Cancels the running pass; every write has its precondition, and the next leader starts from a new
                    // read.
                    () = &mut stop => break,
                    done = work => done?,
                };
                schedule.ended(Instant::now(), ending, passes.wake().map(certificates::until), 0.0);
            }
            log.reported(&reporter.take_errors(), reporter.numbers());
            log.probed(passes.probes());
            self.update_http_state(&log);
        }
        if let Some(election) = self.election.take() {
            election.end().await;
        }
        Ok(())
    }

    fn take(&mut self, event: gatepost_kube::watch::WatchEvent, log: &mut log::Log, schedule: &mut Schedule) {
        log.event(&event);
        if self.view.take(event) {
            schedule.changed(Instant::now());
        }
    }

    async fn pass(
        &mut self,
        passes: &mut impl Passes,
        reporter: &mut report::Reporter,
        log: &mut log::Log,
    ) -> Result<PassEnd, RunError> {
        let problems = self.view.problems();
        let refusal = self.permit.refusal();
        let (may_write, confirmed) = (refusal.is_none(), self.permit.confirmed());
        let (engine, delta) = self.view.apply_pending();
        let occasion = Occasion { engine, delta, problems: &problems, may_write, confirmed };
        let pass = passes.pass(occasion).await?;
        log.pass(&pass, refusal.as_deref());
        reporter.note(&pass);
        if let (Some(word), Some(election)) = (&pass.confirmed, &self.election)
            && refusal.is_none()
            && pass.outcome.is_complete()
        {
            election.used(word);
        }
        if passes.mode() == Mode::Act && self.permit.refusal().is_none() {
            reporter.report(&self.view, &pass);
        }
        let ending = PassEnd::of(&pass);
        crate::web::tell(&self.board, pass, &problems, self.view.world()).await;
        Ok(ending)
    }

    fn leader_state(&mut self) -> LeaderState {
        self.election.as_mut().map(|election| election.leader_state.borrow_and_update().clone()).unwrap_or_default()
    }

    /// Publishes readiness, metrics and notes for the HTTP endpoints.
    fn update_http_state(&self, log: &log::Log) {
        let unready = log.unready(&self.view, &self.permit);
        let metrics = log.metrics(&self.view, &self.permit);
        let notes = log.notes(&self.view, &self.permit);
        let oldest = self.view.ages().into_iter().map(|(_, age)| age).max();
        let seconds = oldest.map(|age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
        let mut board = self.board.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        (board.unready, board.metrics, board.notes) = (unready, metrics, notes);
        board.seen_at = seconds.map(|seconds| certificates::now() - seconds);
    }
}

/// Completes when the leader state changes; never without an election.
async fn leader_state_changed(election: &mut Option<Election>) {
    let changed = async |leader_state: &mut watch::Receiver<LeaderState>| leader_state.changed().await;
    match election {
        Some(election) => {
            if changed(&mut election.leader_state).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        None => std::future::pending().await,
    }
}

/// The schedule of a controller. Each write is followed by another pass, for steps that depended on it.
pub fn rules(interval: Duration) -> ScheduleRules {
    let interval = interval.max(SPACING);
    ScheduleRules {
        debounce: QUIET,
        change_spacing: SPACING,
        spacing: SPACING,
        interval: Some(interval),
        after_write: Some(SPACING),
        first_retry: PAUSE,
        longest_retry: interval,
        longest_wake: interval,
        spread: 0.0,
    }
}

/// The time until the next check, at most [`TICK`].
fn pause(schedule: &Schedule) -> Duration {
    let wait = schedule.wait(Instant::now()).unwrap_or(TICK);
    wait.clamp(Duration::from_millis(10), TICK)
}
