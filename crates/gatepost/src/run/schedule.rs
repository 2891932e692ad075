//! When the next pass is due, for `serve` and `controller`.
//!
//! Changes are collected for a moment; passes are spaced; everything is compared once per interval; failures are
//! retried with growing pauses, and not before the time that a provider requests; certificate orders start passes. No
//! clock is read here: callers pass the current time.

use std::time::{Duration, Instant};

use super::Pass;

/// The intervals of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleRules {
    /// How long changes are collected.
    pub debounce: Duration,
    /// Minimum time between the end of a pass and one that a change starts.
    pub change_spacing: Duration,
    /// Minimum time between the end of a pass and one without a change.
    pub spacing: Duration,
    /// How often everything is compared without a change; `None` if nothing can change unnoticed.
    pub interval: Option<Duration>,
    /// Time between a pass that wrote something and the next one; `None` means the interval.
    pub after_write: Option<Duration>,
    /// The first pause after a failed pass; it doubles with each further failure.
    pub first_retry: Duration,
    /// Maximum pause after failures.
    pub longest_retry: Duration,
    /// Maximum time to sleep until an order continues, because the system clock may be changed.
    pub longest_wake: Duration,
    /// Maximum random extension of a wait, as a fraction of it, so that instances started together spread out.
    pub spread: f64,
}

/// A provider is not left alone for longer, whatever it asks for: nothing would be published meanwhile.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);

/// How a pass ended, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassEnd {
    /// Nothing had to be done.
    Quiet,
    /// Something was written; steps that depended on it are due.
    Wrote,
    /// Something could not be read or written; holds the pause that the provider requested.
    Failed(Option<Duration>),
}

/// When the next pass is due.
#[derive(Debug)]
pub struct Schedule {
    rules: ScheduleRules,
    /// Time of the first change since the last pass.
    changed_at: Option<Instant>,
    ended_at: Option<Instant>,
    /// When to compare again without a change.
    again_at: Option<Instant>,
    /// When a certificate order continues.
    wake_at: Option<Instant>,
    /// Until when the provider asked to be left alone.
    asked_until: Option<Instant>,
    /// The pause after the next failure.
    retry: Duration,
    /// The waits that the last pass asked for.
    waits: [Option<Duration>; 2],
}

impl PassEnd {
    /// How a pass ended.
    pub fn of(pass: &Pass) -> PassEnd {
        // Several providers have a schedule each.
        if !pass.providers.is_empty() {
            return PassEnd::Quiet;
        }
        let asked = pass.outcome.failed.values().filter_map(gatepost_dns::provider::ProviderError::retry_after);
        let asked = asked.chain(pass.retry_after).max();
        match (pass.unread.is_empty() && pass.outcome.failed.is_empty(), pass.outcome.written.is_empty()) {
            (false, _) => PassEnd::Failed(asked),
            (true, false) => PassEnd::Wrote,
            (true, true) => PassEnd::Quiet,
        }
    }
}

impl Schedule {
    /// The first pass is due once changes were gathered.
    pub fn new(rules: ScheduleRules, now: Instant) -> Schedule {
        let retry = rules.first_retry;
        Schedule {
            rules,
            changed_at: Some(now),
            ended_at: None,
            again_at: None,
            wake_at: None,
            asked_until: None,
            retry,
            waits: [None; 2],
        }
    }

    /// Records a change.
    pub fn changed(&mut self, now: Instant) {
        self.changed_at.get_or_insert(now);
    }

    /// Records the start of a pass, which includes all changes so far.
    pub fn began(&mut self) {
        self.changed_at = None;
    }

    /// Records the end of a pass; an order continues after `wake`. `chance` is a random number from 0 to 1.
    pub fn ended(&mut self, now: Instant, end: PassEnd, wake: Option<Duration>, chance: f64) {
        let rules = &self.rules;
        self.asked_until = match end {
            PassEnd::Failed(asked) => asked.map(|asked| now + asked.min(LONGEST_ASKED)),
            PassEnd::Quiet | PassEnd::Wrote => None,
        };
        let wait = match end {
            PassEnd::Quiet => rules.interval,
            PassEnd::Wrote => rules.after_write.or(rules.interval),
            PassEnd::Failed(asked) => {
                Some(self.retry.min(rules.longest_retry).max(asked.unwrap_or_default().min(LONGEST_ASKED)))
            }
        };
        self.retry = match end {
            PassEnd::Failed(_) => (self.retry * 2).min(rules.longest_retry),
            PassEnd::Quiet | PassEnd::Wrote => rules.first_retry,
        };
        let wake = wake.map(|wake| wake.min(rules.longest_wake));
        let spread = |wait: Duration| wait + wait.mul_f64(rules.spread * chance);
        self.waits = [wait.map(spread), wake.map(spread)];
        self.repeat(now);
    }

    /// Records that a pass could not start. The next one is due after the wait that the last one asked for.
    pub fn repeat(&mut self, now: Instant) {
        self.ended_at = Some(now);
        [self.again_at, self.wake_at] = self.waits.map(|wait| wait.map(|wait| now + wait));
    }

    /// When the next pass is due; `None` if only a change can start one.
    pub fn due(&self) -> Option<Instant> {
        let spaced = |due: Instant, spacing: Duration| self.ended_at.map_or(due, |ended| due.max(ended + spacing));
        let changed = self.changed_at.map(|at| spaced(at + self.rules.debounce, self.rules.change_spacing));
        let others = [self.again_at, self.wake_at].into_iter().flatten().min();
        let others = others.map(|due| spaced(due, self.rules.spacing));
        let due = [changed, others].into_iter().flatten().min()?;
        Some(self.asked_until.map_or(due, |until| due.max(until)))
    }

    /// Whether a pass is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// The time until the next pass is due; `None` if only a change can start one.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        self.due().map(|due| due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);

    fn rules() -> ScheduleRules {
        ScheduleRules {
            debounce: Duration::from_millis(200),
            change_spacing: SECOND,
            spacing: SECOND,
            interval: Some(MINUTE),
            after_write: Some(SECOND),
            first_retry: 2 * SECOND,
            longest_retry: MINUTE,
            longest_wake: MINUTE,
            spread: 0.0,
        }
    }

    /// A schedule whose first pass ended like this, and the time of its end.
    fn after(rules: ScheduleRules, end: PassEnd, wake: Option<Duration>) -> (Schedule, Instant) {
        let start = Instant::now();
        let mut schedule = Schedule::new(rules, start);
        schedule.began();
        schedule.ended(start, end, wake, 0.5);
        (schedule, start)
    }

    fn wait(rules: ScheduleRules, end: PassEnd, wake: Option<Duration>) -> Option<Duration> {
        let (schedule, start) = after(rules, end, wake);
        schedule.wait(start)
    }

    #[test]
    fn changes_are_gathered_and_do_not_put_off_what_is_due() {
        let start = Instant::now();
        let mut schedule = Schedule::new(rules(), start);
        assert!(!schedule.is_due(start), "changes are gathered first");
        schedule.changed(start + Duration::from_millis(150));
        assert!(schedule.is_due(start + Duration::from_millis(200)), "from the first one on");
    }

    #[test]
    fn a_pass_is_followed_by_another_as_soon_as_it_asks_for_one() {
        assert_eq!(wait(rules(), PassEnd::Quiet, None), Some(MINUTE));
        assert_eq!(wait(rules(), PassEnd::Wrote, None), Some(SECOND));
        assert_eq!(wait(ScheduleRules { after_write: None, ..rules() }, PassEnd::Wrote, None), Some(MINUTE));
        let never = ScheduleRules { interval: None, after_write: None, ..rules() };
        assert_eq!(wait(never, PassEnd::Quiet, None), None);
        assert_eq!(wait(never, PassEnd::Quiet, Some(5 * SECOND)), Some(5 * SECOND));
    }

    #[test]
    fn what_failed_is_tried_again_with_growing_pauses_but_not_before_it_is_welcome() {
        let (mut schedule, start) = after(rules(), PassEnd::Quiet, None);
        let mut fail = |asked| {
            schedule.ended(start, PassEnd::Failed(asked), None, 0.0);
            schedule.wait(start).unwrap().as_secs()
        };
        let pauses: Vec<u64> = (0..7).map(|_| fail(None)).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(fail(Some(5 * MINUTE)), 300);
        schedule.changed(start);
        assert_eq!(schedule.wait(start), Some(5 * MINUTE), "what is new waits as long as the provider asks");
        schedule.ended(start, PassEnd::Failed(Some(100_000 * MINUTE)), None, 0.0);
        assert_eq!(schedule.wait(start), Some(60 * MINUTE), "and no longer than an hour");
        schedule.ended(start, PassEnd::Failed(None), None, 0.0);
        schedule.changed(start);
        assert_eq!(schedule.wait(start), Some(SECOND), "what is new does not wait for a retry");
        schedule.ended(start, PassEnd::Quiet, None, 0.0);
        schedule.ended(start, PassEnd::Failed(None), None, 0.0);
        schedule.began();
        assert_eq!(schedule.wait(start), Some(2 * SECOND), "a pass that succeeds forgets the pauses");
    }

    #[test]
    fn passes_keep_a_distance() {
        assert_eq!(wait(rules(), PassEnd::Quiet, Some(Duration::ZERO)), Some(SECOND));
        let at_once = ScheduleRules { debounce: Duration::ZERO, change_spacing: Duration::ZERO, ..rules() };
        let (mut schedule, start) = after(at_once, PassEnd::Quiet, Some(Duration::ZERO));
        assert_eq!(schedule.wait(start), Some(SECOND));
        schedule.changed(start);
        assert!(schedule.is_due(start), "a file that changed is read at once");
    }

    #[test]
    fn orders_wake_the_loop_and_clocks_may_be_set() {
        assert_eq!(wait(rules(), PassEnd::Quiet, Some(9 * SECOND)), Some(9 * SECOND));
        let never = ScheduleRules { interval: None, ..rules() };
        assert_eq!(wait(never, PassEnd::Quiet, Some(100 * MINUTE)), Some(MINUTE));
    }

    #[test]
    fn waits_are_spread_and_repeated_where_nothing_could_be_read() {
        let (mut schedule, start) = after(ScheduleRules { spread: 0.1, ..rules() }, PassEnd::Quiet, None);
        assert_eq!(schedule.wait(start), Some(Duration::from_secs(63)));
        schedule.changed(start + SECOND);
        schedule.began();
        schedule.repeat(start + SECOND);
        assert_eq!(schedule.wait(start + SECOND), Some(Duration::from_secs(63)));
    }
}
