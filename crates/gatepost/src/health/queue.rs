//! When which address is probed, and what follows from the results.
//!
//! The probes of all addresses are spread evenly over the interval, and each is moved by a little chance. So many run at
//! once, and so many at one address. No clock is read, and nothing is connected to here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatepost_core::health::{HealthState, ObservedHealth, ProbeHistory, ProbeThresholds};
use gatepost_core::model::{Key, Str};

use super::probe::{ProbeFailure, ProbeSettings};

/// One address of a name under one policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbeSubject {
    /// The name.
    pub name: Str,
    /// The policy.
    pub policy: Key,
    /// The address, or a hostname.
    pub address: Str,
}

/// How and how often the addresses of a policy are probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProbe {
    /// How; or why no probe can be made.
    pub settings: Result<ProbeSettings, String>,
    /// How many results change the state.
    pub thresholds: ProbeThresholds,
    /// The time between two probes.
    pub interval: Duration,
}

/// Everything that is to be probed.
pub type ProbeTargets = Vec<(ProbeSubject, Arc<PolicyProbe>)>;

/// How many probes run at once.
#[derive(Clone, Copy, Debug)]
pub struct ProbeLimits {
    /// In all.
    pub all: usize,
    /// To one address.
    pub per_address: usize,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeNumbers {
    /// Probes that succeeded.
    pub succeeded: u64,
    /// Probes that failed.
    pub failed: u64,
    /// Probes that were not made, because that is not allowed or not possible.
    pub not_made: u64,
    /// Probes that were left out, because the one before was not done yet.
    pub left_out: u64,
    /// Times that an address became unhealthy, or healthy again.
    pub changes: u64,
    /// Addresses that are probed.
    pub targets: usize,
    /// Probes that run now.
    pub running: usize,
}

/// What the result of a probe changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeNews {
    /// Nothing.
    Nothing,
    /// What is told about an address.
    Calm,
    /// Perhaps which addresses are published.
    Urgent,
}

/// The probes that are due, wait and run.
#[derive(Debug)]
pub(super) struct ProbeQueue {
    limits: ProbeLimits,
    targets: BTreeMap<ProbeSubject, ProbeTarget>,
    due: BTreeSet<(Instant, ProbeSubject)>,
    /// Probes that are due and wait for others to end, by address.
    waiting: BTreeMap<Str, VecDeque<ProbeSubject>>,
    /// Numbers of probes that run, by address.
    running: BTreeMap<Str, usize>,
    /// The address that was served last: they take turns.
    last: Option<Str>,
    /// The part of the interval at which the next new target begins.
    phase: f64,
    observed: ObservedHealth,
    numbers: ProbeNumbers,
}

#[derive(Debug)]
struct ProbeTarget {
    probe: Arc<PolicyProbe>,
    history: ProbeHistory,
    /// When it was due, without the part that is left to chance.
    slot: Instant,
    /// When it is due, as it stands in the queue.
    due: Instant,
    /// Whether it waits or runs.
    is_busy: bool,
}

/// Multiples of the golden ratio spread evenly over a circle, however many there are.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// The part of an interval by which chance moves a probe.
const JITTER: f64 = 0.05;

impl ProbeQueue {
    pub(super) fn new(limits: ProbeLimits) -> Self {
        ProbeQueue {
            limits,
            targets: BTreeMap::new(),
            due: BTreeSet::new(),
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            last: None,
            phase: 0.0,
            observed: ObservedHealth::default(),
            numbers: ProbeNumbers::default(),
        }
    }

    /// What is known of all targets.
    pub(super) fn observed(&self) -> &ObservedHealth {
        &self.observed
    }

    /// What was done so far.
    pub(super) fn numbers(&self) -> ProbeNumbers {
        let running = self.running.values().sum();
        ProbeNumbers { targets: self.targets.len(), running, ..self.numbers }
    }

    /// Replaces the targets. `known` is what an earlier run or leader knew about new ones; `at` is in milliseconds since
    /// 1970.
    pub(super) fn replace(&mut self, targets: &ProbeTargets, known: &ObservedHealth, now: Instant, at: i64) {
        let mut before = std::mem::take(&mut self.targets);
        for (subject, probe) in targets {
            let target = match before.remove(subject) {
                Some(mut target) => {
                    if target.probe.settings != probe.settings {
                        target.history.restart();
                    }
                    if target.probe.interval > probe.interval {
                        // It must not be waited for the end of the longer interval.
                        self.due.remove(&(target.due, subject.clone()));
                        target.slot = target.slot.min(now + probe.interval);
                        target.due = target.slot;
                        self.due.insert((target.due, subject.clone()));
                    }
                    ProbeTarget { probe: probe.clone(), ..target }
                }
                None => self.begin(subject, probe, known, now, at),
            };
            self.targets.insert(subject.clone(), target);
        }
        for (subject, target) in before {
            self.due.remove(&(target.due, subject.clone()));
            if let Some(waiting) = self.waiting.get_mut(&subject.address) {
                waiting.retain(|other| *other != subject);
            }
        }
        self.observed = ObservedHealth::default();
        let all: Vec<ProbeSubject> = self.targets.keys().cloned().collect();
        all.iter().for_each(|subject| self.observe(subject));
    }

    fn begin(
        &mut self,
        subject: &ProbeSubject,
        probe: &Arc<PolicyProbe>,
        known: &ObservedHealth,
        now: Instant,
        at: i64,
    ) -> ProbeTarget {
        let known = known.of(&subject.name, &subject.policy, &subject.address);
        let history = known.map_or_else(|| ProbeHistory::new(at), |known| ProbeHistory::resuming(known.clone()));
        self.phase = (self.phase + GOLDEN).fract();
        let slot = now + probe.interval.mul_f64(self.phase);
        self.due.insert((slot, subject.clone()));
        ProbeTarget { probe: probe.clone(), history, slot, due: slot, is_busy: false }
    }

    /// Takes over what is known of a target, if anything is.
    fn observe(&mut self, subject: &ProbeSubject) {
        let Some(target) = self.targets.get(subject) else { return };
        let health = target.history.health();
        if health.state != HealthState::Unknown || !health.error.is_empty() {
            self.observed.set(&subject.name, &subject.policy, &subject.address, health.clone());
        }
    }

    /// When the next probe is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Has the probes wait that are due, and decides when the next one of each is. `chance` gives numbers from 0 to 1.
    pub(super) fn advance(&mut self, now: Instant, chance: &mut dyn FnMut() -> f64) {
        while let Some((due, _)) = self.due.first()
            && *due <= now
            && let Some((_, subject)) = self.due.pop_first()
        {
            let Some(target) = self.targets.get_mut(&subject) else { continue };
            let interval = target.probe.interval;
            // Slots that have passed, because the machine slept or had too much to do, are not made up for.
            target.slot = match target.slot + interval {
                slot if slot > now => slot,
                _ => now + interval,
            };
            target.due = target.slot + interval.mul_f64(JITTER * chance());
            self.due.insert((target.due, subject.clone()));
            if target.is_busy {
                self.numbers.left_out += 1;
                continue;
            }
            target.is_busy = true;
            self.waiting.entry(subject.address.clone()).or_default().push_back(subject);
        }
    }

    /// The next probe that may begin now, if one waits.
    pub(super) fn start(&mut self) -> Option<(ProbeSubject, Arc<PolicyProbe>)> {
        if self.running.values().sum::<usize>() >= self.limits.all {
            return None;
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        let is_free = |address: &&Str| self.running.get(*address).copied().unwrap_or(0) < self.limits.per_address;
        let after = self.waiting.keys().filter(is_free).find(|address| self.last.as_ref() < Some(*address));
        let address = after.or_else(|| self.waiting.keys().find(is_free))?.clone();
        let subject = self.waiting.get_mut(&address)?.pop_front()?;
        let probe = self.targets.get(&subject)?.probe.clone();
        *self.running.entry(address.clone()).or_default() += 1;
        self.last = Some(address);
        Some((subject, probe))
    }

    /// Takes the result of a probe.
    pub(super) fn finish(&mut self, subject: &ProbeSubject, result: Result<(), ProbeFailure>, at: i64) -> ProbeNews {
        if let Some(running) = self.running.get_mut(&subject.address) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(&subject.address);
            }
        }
        let counted = match &result {
            Ok(()) => &mut self.numbers.succeeded,
            Err(ProbeFailure::Failed(_)) => &mut self.numbers.failed,
            Err(ProbeFailure::NotMade(_)) => &mut self.numbers.not_made,
        };
        *counted += 1;
        let Some(target) = self.targets.get_mut(subject) else { return ProbeNews::Nothing };
        target.is_busy = false;
        let before = target.history.health().state;
        let has_changed = match &result {
            Ok(()) => target.history.observe(Ok(()), target.probe.thresholds, at),
            Err(ProbeFailure::Failed(error)) => target.history.observe(Err(error), target.probe.thresholds, at),
            Err(ProbeFailure::NotMade(why)) => target.history.refuse(why, at),
        };
        let after = target.history.health().state;
        let concerns_records = before != after && [before, after].contains(&HealthState::Unhealthy);
        if concerns_records {
            self.numbers.changes += 1;
        }
        if has_changed {
            self.observe(subject);
        }
        match (has_changed, concerns_records) {
            (_, true) => ProbeNews::Urgent,
            (true, false) => ProbeNews::Calm,
            (false, false) => ProbeNews::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
