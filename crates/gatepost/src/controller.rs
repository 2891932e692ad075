//! The line in a cluster: watches tell changes, changes lead to a pass, a pass to records, status, Events and a log.
//!
//! Changes are gathered for a moment and no pass follows another within a second, so that a route that flips a hundred times
//! is one write. Nothing is written by who does not lead, while somebody has frozen writing, or in observe mode, which is
//! the mode until a policy is set; all three are asked again with every single write ([`permit`]).

use std::time::{Duration, Instant};

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::engine::World;
use gatepost_kube::Connection;
use gatepost_kube::lease::{Campaign, Standing};
use gatepost_kube::watch::Watching;
use tokio::sync::watch;

use crate::apply::Mode;
use crate::cli::Failure;
use crate::run::Pass;

pub mod dnsendpoint;
pub mod permit;
mod report;
pub mod secrets;
mod told;
mod view;

pub use view::View;

/// What a controller works with.
pub struct Controller {
    /// The cluster.
    pub connection: Connection,
    /// What it tells.
    pub watching: Watching,
    /// What was told.
    pub view: View,
    /// Whether we lead; nothing in observe mode, which needs no leader.
    pub campaign: Option<Campaign>,
    /// What may be written at this moment.
    pub permit: permit::Permit,
    /// Who we are, in Events.
    pub identity: String,
    /// How often the provider is compared though nothing changed.
    pub interval: Duration,
    /// What is told over HTTP.
    pub board: crate::web::Shared,
}

/// How long changes are gathered.
const QUIET: Duration = Duration::from_millis(200);
/// The shortest time between two passes.
const SPACING: Duration = Duration::from_secs(1);
/// How often ages and rights are looked at again for health.
const TICK: Duration = Duration::from_secs(1);

/// What runs a pass: the session of the command line.
pub trait Passes {
    /// One pass over the line; who may not write only looks.
    fn pass(
        &mut self,
        world: &World,
        problems: &[Diagnostic],
        may_write: bool,
    ) -> impl Future<Output = Result<Pass, Failure>>;
    /// When the next pass is due though nothing changed, in seconds since 1970: an order goes on, a certificate is to be renewed.
    fn wake(&self) -> Option<i64>;
    /// Whether anything is to be written at all.
    fn mode(&self) -> Mode;
}

impl Controller {
    /// Runs until somebody asks the program to stop.
    pub async fn run(mut self, passes: &mut impl Passes, stop: impl Future<Output = ()>) -> Result<(), Failure> {
        tokio::pin!(stop);
        let mut reporter = report::Reporter::new(self.connection.clone(), self.identity.clone());
        let mut log = told::Log::default();
        let mut clock = Clock::new(self.interval);
        loop {
            tokio::select! {
                () = &mut stop => break,
                told = self.watching.next() => {
                    let Some(told) = told else { break };
                    self.take(told, &mut log, &mut clock);
                    while let Some(told) = self.watching.at_once() {
                        self.take(told, &mut log, &mut clock);
                    }
                }
                () = standing_changed(&mut self.campaign) => {
                    let standing = self.standing();
                    log.standing(&standing);
                    clock.dirty();
                }
                () = tokio::time::sleep(clock.wait()) => {}
            }
            log.frozen(self.permit.frozen().as_deref());
            if clock.is_due() && self.view.is_read() {
                clock.passed();
                let work = self.pass(passes, &mut reporter, &mut log);
                tokio::select! {
                    // What is under way is given up; every write has its precondition, and the next leader begins anew.
                    () = &mut stop => break,
                    done = work => done?,
                }
                clock.ended(passes.wake());
            }
            self.post(&log);
        }
        if let Some(campaign) = self.campaign.take() {
            campaign.end().await;
        }
        Ok(())
    }

    fn take(&mut self, told: gatepost_kube::watch::Told, log: &mut told::Log, clock: &mut Clock) {
        log.told(&told);
        if self.view.take(told) {
            clock.dirty();
        }
    }

    async fn pass(
        &mut self,
        passes: &mut impl Passes,
        reporter: &mut report::Reporter,
        log: &mut told::Log,
    ) -> Result<(), Failure> {
        let world = self.view.settle();
        let problems = self.view.problems();
        let refusal = self.permit.refusal();
        let pass = passes.pass(&world, &problems, refusal.is_none()).await?;
        log.pass(&pass, refusal.as_deref());
        if passes.mode() == Mode::Act && self.permit.refusal().is_none() {
            let troubles = reporter.report(&self.view, &pass, &self.permit).await;
            log.reported(&troubles);
        }
        let plan = crate::view::plan::PlanView::of(&pass.desired, None, Vec::new());
        let plan = plan.with(Some(&pass.plan), Some(&pass.outcome));
        self.board.write().unwrap_or_else(std::sync::PoisonError::into_inner).plan =
            serde_json::to_string_pretty(&plan).unwrap_or_default();
        Ok(())
    }

    fn standing(&mut self) -> Standing {
        self.campaign.as_mut().map(|campaign| campaign.standing.borrow_and_update().clone()).unwrap_or_default()
    }

    /// Tells over HTTP how things stand.
    fn post(&self, log: &told::Log) {
        let unready = log.unready(&self.view, &self.permit);
        let metrics = log.metrics(&self.view, &self.permit);
        let notes = log.notes(&self.view, &self.permit);
        let mut board = self.board.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        (board.unready, board.metrics, board.notes) = (unready, metrics, notes);
    }
}

/// Ends when the Lease tells something new; never without one.
async fn standing_changed(campaign: &mut Option<Campaign>) {
    let changed = async |standing: &mut watch::Receiver<Standing>| standing.changed().await;
    match campaign {
        Some(campaign) => {
            if changed(&mut campaign.standing).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        None => std::future::pending().await,
    }
}

/// When the next pass is due.
struct Clock {
    interval: Duration,
    /// Since when something is new.
    new_since: Option<Instant>,
    last: Option<Instant>,
    /// When something goes on by itself.
    wake: Option<Instant>,
}

impl Clock {
    fn new(interval: Duration) -> Clock {
        Clock { interval, new_since: Some(Instant::now()), last: None, wake: None }
    }

    fn dirty(&mut self) {
        self.new_since.get_or_insert_with(Instant::now);
    }

    fn passed(&mut self) {
        self.new_since = None;
    }

    fn ended(&mut self, wake: Option<i64>) {
        let now = Instant::now();
        let seconds = |wake: i64| u64::try_from(wake.saturating_sub(crate::certificates::now())).unwrap_or(0);
        // Clocks may be set, so nobody sleeps for longer than the interval.
        self.wake = wake.map(|wake| now + Duration::from_secs(seconds(wake)).min(self.interval));
        self.last = Some(now);
    }

    fn due(&self) -> Instant {
        let spaced = self.last.map(|last| last + SPACING);
        let gathered = self.new_since.map(|since| since + QUIET);
        let compared = self.last.map(|last| last + self.interval.max(SPACING));
        let wanted = [gathered, compared, self.wake].into_iter().flatten().min().unwrap_or_else(Instant::now);
        spaced.map_or(wanted, |spaced| wanted.max(spaced))
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.due()
    }

    /// How long to wait for the next look.
    fn wait(&self) -> Duration {
        self.due().saturating_duration_since(Instant::now()).clamp(Duration::from_millis(10), TICK)
    }
}
