//! The line in a cluster: watches tell changes, changes lead to a pass, a pass to records, status, Events and a log.
//!
//! Changes are gathered for a moment and no pass follows another within a second, so that a route that flips a hundred times
//! is one write. Nothing is written by who does not lead, while somebody has frozen writing, or in observe mode, which is
//! the mode until a policy is set; all three are asked again with every single write ([`permit`]).

use std::time::{Duration, Instant};

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::incremental::World;
use gatepost_core::model::Str;
use gatepost_kube::Connection;
use gatepost_kube::lease::{Election, LeaderState};
use gatepost_kube::watch::ClusterWatch;
use tokio::sync::watch;

use crate::apply::Mode;
use crate::error::RunError;
use crate::run::Pass;

pub mod cert_manager;
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
    pub watching: ClusterWatch,
    /// What was told.
    pub view: View,
    /// Whether we lead; nothing in observe mode, which needs no leader.
    pub campaign: Option<Election>,
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
/// How often ages and rights are looked at again for health.
const TICK: Duration = Duration::from_secs(1);

/// What a pass is made on.
pub struct Occasion<'a> {
    /// The objects, and what was decided about them.
    pub world: &'a World,
    /// Names that have other records than at the last occasion.
    pub changed: Vec<Str>,
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
        let mut log = told::Log::new(self.campaign.as_ref().map(|campaign| campaign.lease.clone()));
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
                    // A renewal alone is no reason to compare anything.
                    if log.standing(&standing) {
                        clock.dirty();
                    }
                }
                () = passes.woken() => clock.dirty(),
                () = tokio::time::sleep(clock.wait()) => {}
            }
            if log.frozen(self.permit.frozen().as_deref()) {
                clock.dirty();
            }
            if clock.is_due() && self.view.is_read() {
                clock.passed();
                let work = self.pass(passes, &mut reporter, &mut log);
                let ending = tokio::select! {
                    // What is under way is given up; every write has its precondition, and the next leader begins anew.
                    () = &mut stop => break,
                    done = work => done?,
                };
                clock.ended(ending, passes.wake());
            }
            self.post(&log);
        }
        if let Some(campaign) = self.campaign.take() {
            campaign.end().await;
        }
        Ok(())
    }

    fn take(&mut self, told: gatepost_kube::watch::WatchEvent, log: &mut told::Log, clock: &mut Clock) {
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
    ) -> Result<PassEnd, RunError> {
        let changed = self.view.settle();
        let problems = self.view.problems();
        let refusal = self.permit.refusal();
        let (may_write, confirmed) = (refusal.is_none(), self.permit.confirmed());
        let occasion = Occasion { world: self.view.world(), changed, problems: &problems, may_write, confirmed };
        let pass = passes.pass(occasion).await?;
        log.pass(&pass, refusal.as_deref());
        if let (Some(word), Some(campaign)) = (&pass.confirmed, &self.campaign)
            && refusal.is_none()
            && pass.outcome.is_complete()
        {
            campaign.used(word);
        }
        if passes.mode() == Mode::Act && self.permit.refusal().is_none() {
            let troubles = reporter.report(&self.view, &pass, &self.permit).await;
            log.reported(&troubles);
        }
        let ending = PassEnd::of(&pass);
        crate::web::tell(&self.board, pass).await;
        Ok(ending)
    }

    fn standing(&mut self) -> LeaderState {
        self.campaign.as_mut().map(|campaign| campaign.leader_state.borrow_and_update().clone()).unwrap_or_default()
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
async fn standing_changed(campaign: &mut Option<Election>) {
    let changed = async |standing: &mut watch::Receiver<LeaderState>| standing.changed().await;
    match campaign {
        Some(campaign) => {
            if changed(&mut campaign.leader_state).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        None => std::future::pending().await,
    }
}

/// How a pass ended, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassEnd {
    /// Nothing was to be done.
    Quiet,
    /// Something was written: what waited for it is due once it was seen.
    Wrote,
    /// Something could not be read or written; the provider may have asked for some time.
    Failed(Option<Duration>),
}

impl PassEnd {
    fn of(pass: &Pass) -> PassEnd {
        let asked = pass.outcome.failed.values().filter_map(gatepost_dns::provider::ProviderError::retry_after).max();
        match (pass.unread.is_empty() && pass.outcome.failed.is_empty(), pass.outcome.written.is_empty()) {
            (false, _) => PassEnd::Failed(asked),
            (true, false) => PassEnd::Wrote,
            (true, true) => PassEnd::Quiet,
        }
    }
}

/// The first pause after a pass that failed; it doubles, up to the interval.
const PAUSE: Duration = Duration::from_secs(2);

/// When the next pass is due.
struct Clock {
    interval: Duration,
    /// Since when something is new.
    new_since: Option<Instant>,
    last: Option<Instant>,
    /// When to look again though nothing is new.
    again: Option<Instant>,
    pause: Duration,
    /// When something goes on by itself.
    wake: Option<Instant>,
}

impl Clock {
    fn new(interval: Duration) -> Clock {
        let interval = interval.max(SPACING);
        Clock { interval, new_since: Some(Instant::now()), last: None, again: None, pause: PAUSE, wake: None }
    }

    fn dirty(&mut self) {
        self.new_since.get_or_insert_with(Instant::now);
    }

    fn passed(&mut self) {
        self.new_since = None;
    }

    fn ended(&mut self, ending: PassEnd, wake: Option<i64>) {
        let now = Instant::now();
        self.last = Some(now);
        let wait = match ending {
            PassEnd::Quiet => self.interval,
            PassEnd::Wrote => SPACING,
            PassEnd::Failed(asked) => self.pause.min(self.interval).max(asked.unwrap_or_default()),
        };
        self.pause = if let PassEnd::Failed(_) = ending { (self.pause * 2).min(self.interval) } else { PAUSE };
        self.again = Some(now + wait);
        let seconds = |wake: i64| u64::try_from(wake.saturating_sub(crate::certificates::now())).unwrap_or(0);
        // Clocks may be set, so nobody sleeps for longer than the interval.
        self.wake = wake.map(|wake| now + Duration::from_secs(seconds(wake)).min(self.interval));
    }

    fn due(&self) -> Instant {
        let spaced = self.last.map(|last| last + SPACING);
        let gathered = self.new_since.map(|since| since + QUIET);
        let wanted = [gathered, self.again, self.wake].into_iter().flatten().min().unwrap_or_else(Instant::now);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// How long after its last pass a clock waits, in seconds.
    fn waits(clock: &Clock) -> u64 {
        (clock.due() - clock.last.unwrap()).as_secs()
    }

    #[test]
    fn a_pass_is_followed_by_another_as_soon_as_it_asks_for_one() {
        let mut clock = Clock::new(Duration::from_secs(60));
        assert!(!clock.is_due() && clock.due() <= Instant::now() + QUIET, "changes are gathered first");
        clock.passed();
        clock.ended(PassEnd::Quiet, None);
        assert_eq!(waits(&clock), 60);
        clock.ended(PassEnd::Wrote, None);
        assert_eq!(waits(&clock), 1);
        let failures: Vec<u64> = (0..7)
            .map(|_| {
                clock.ended(PassEnd::Failed(None), None);
                waits(&clock)
            })
            .collect();
        assert_eq!(failures, [2, 4, 8, 16, 32, 60, 60]);
        clock.ended(PassEnd::Failed(Some(Duration::from_secs(300))), None);
        assert_eq!(waits(&clock), 300);
        clock.dirty();
        assert_eq!(waits(&clock), 1, "what is new does not wait for the provider");
    }
}
