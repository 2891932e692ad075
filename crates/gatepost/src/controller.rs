//! The line in a cluster: watches tell changes, changes lead to a pass, a pass to records, status, Events and a log.
//!
//! Changes are gathered for a moment and no pass follows another within a second, so that a route that flips a hundred times
//! is one write. Nothing is written by who does not lead, while somebody has frozen writing, or in observe mode, which is
//! the mode until a policy is set; all three are asked again with every single write ([`permit`]).

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
use crate::run::Pass;
use crate::run::schedule::{PassEnd, Schedule, ScheduleRules};

pub mod cert_manager;
pub mod dnsendpoint;
mod log;
pub mod permit;
mod report;
pub mod secrets;
mod view;

pub use view::View;

/// What a controller works with.
pub struct Controller {
    /// The cluster.
    pub connection: Connection,
    /// What it tells.
    pub watching: ClusterWatch,
    /// What was told.
    pub view: View,
    /// Whether we lead; nothing in observe mode, which needs no leader.
    pub election: Option<Election>,
    /// What may be written at this moment.
    pub permit: permit::Permit,
    /// Who we are, in Events.
    pub identity: String,
    /// How often the provider is compared though nothing changed.
    pub interval: Duration,
    /// What is told over HTTP.
    pub board: crate::web::SharedHttpState,
}

/// How long changes are gathered.
const QUIET: Duration = Duration::from_millis(200);
/// The shortest time between two passes.
const SPACING: Duration = Duration::from_secs(1);
/// The first pause after a pass that failed; it doubles, up to the interval.
const PAUSE: Duration = Duration::from_secs(2);
/// How often ages and rights are looked at again for health.
const TICK: Duration = Duration::from_secs(1);

/// What a pass is made on.
pub struct Occasion<'a> {
    /// The objects, and what was decided about them.
    pub engine: &'a mut Engine,
    /// What differs from the last occasion.
    pub delta: Delta,
    /// What is odd about them.
    pub problems: &'a [Diagnostic],
    /// Who may not write only looks.
    pub may_write: bool,
    /// The word for held deletes that may go.
    pub confirmed: Option<String>,
}

/// What runs a pass: the session of the command line.
pub trait Passes {
    /// One pass over the line.
    fn pass(&mut self, occasion: Occasion<'_>) -> impl Future<Output = Result<Pass, RunError>>;
    /// Ends when something changed that the watches do not tell of; may be given up and asked again.
    fn woken(&mut self) -> impl Future<Output = ()>;
    /// When the next pass is due though nothing changed, in seconds since 1970: an order goes on, a certificate is to be renewed.
    fn wake(&self) -> Option<i64>;
    /// Whether anything is to be written at all.
    fn mode(&self) -> Mode;
}

impl Controller {
    /// Runs until somebody asks the program to stop.
    pub async fn run(mut self, passes: &mut impl Passes, stop: impl Future<Output = ()>) -> Result<(), RunError> {
        tokio::pin!(stop);
        let mut reporter = report::Reporter::new(self.connection.clone(), self.identity.clone());
        let mut log = log::Log::new(self.election.as_ref().map(|election| election.lease.clone()));
        let mut schedule = Schedule::new(rules(self.interval), Instant::now());
        loop {
            tokio::select! {
                () = &mut stop => break,
                told = self.watching.next() => {
                    let Some(told) = told else { break };
                    self.take(told, &mut log, &mut schedule);
                    while let Some(told) = self.watching.at_once() {
                        self.take(told, &mut log, &mut schedule);
                    }
                }
                () = leader_state_changed(&mut self.election) => {
                    let leader_state = self.leader_state();
                    // A renewal alone is no reason to compare anything.
                    if log.leader_state(&leader_state) {
                        schedule.changed(Instant::now());
                    }
                }
                () = passes.woken() => schedule.changed(Instant::now()),
                () = tokio::time::sleep(pause(&schedule)) => {}
            }
            if log.frozen(self.permit.frozen().as_deref()) {
                schedule.changed(Instant::now());
            }
            if schedule.is_due(Instant::now()) && self.view.is_read() {
                schedule.began();
                let work = self.pass(passes, &mut reporter, &mut log);
                let ending = tokio::select! {
                    // What is under way is given up; every write has its precondition, and the next leader begins anew.
                    () = &mut stop => break,
                    done = work => done?,
                };
                schedule.ended(Instant::now(), ending, passes.wake().map(certificates::until), 0.0);
            }
            self.post(&log);
        }
        if let Some(election) = self.election.take() {
            election.end().await;
        }
        Ok(())
    }

    fn take(&mut self, told: gatepost_kube::watch::WatchEvent, log: &mut log::Log, schedule: &mut Schedule) {
        log.told(&told);
        if self.view.take(told) {
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
        let (engine, delta) = self.view.settle();
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
            let troubles = reporter.report(&self.view, &pass, &self.permit).await;
            log.reported(&troubles);
        }
        let ending = PassEnd::of(&pass);
        crate::web::tell(&self.board, pass).await;
        Ok(ending)
    }

    fn leader_state(&mut self) -> LeaderState {
        self.election.as_mut().map(|election| election.leader_state.borrow_and_update().clone()).unwrap_or_default()
    }

    /// Tells over HTTP how things stand.
    fn post(&self, log: &log::Log) {
        let unready = log.unready(&self.view, &self.permit);
        let metrics = log.metrics(&self.view, &self.permit);
        let notes = log.notes(&self.view, &self.permit);
        let mut board = self.board.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        (board.unready, board.metrics, board.notes) = (unready, metrics, notes);
    }
}

/// Ends when the Lease tells something new; never without one.
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

/// When passes are due: after every write another one looks whether what waited for it can go on.
fn rules(interval: Duration) -> ScheduleRules {
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

/// How long to wait for the next look.
fn pause(schedule: &Schedule) -> Duration {
    let wait = schedule.wait(Instant::now()).unwrap_or(TICK);
    wait.clamp(Duration::from_millis(10), TICK)
}
