//! Several providers side by side: what each is to bring about, when each is compared, and what became of it.
//!
//! Every provider runs its passes in a task of its own with a schedule of its own, so that one that is down or slow holds up
//! no other. A name that moves from one provider to another is deleted only when it is known to exist at the new one. Which
//! provider publishes a name is decided in `gatepost_core::publication::providers`, never here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatepost_core::model::Str;
use gatepost_core::plan::{Held, Plan, Sight};
use gatepost_core::publication::providers::PublishingProviders;
use gatepost_core::publication::{Desired, Record};
use tokio::task::JoinSet;

use super::publisher::{Publisher, PublisherPass, PublisherWork, RecordOrigins, changed_names, confirmation};
use super::schedule::{PassEnd, Schedule, ScheduleRules};
use super::{ChallengeRecords, Pass, ProviderReport};
use crate::apply::{Mode, Outcome, chance};
use crate::metrics::MetricSet;

/// Several providers, in order.
#[derive(Debug)]
pub struct PublisherSet {
    slots: Vec<PublisherSlot>,
    running: JoinSet<(usize, Publisher, PublisherPass)>,
}

/// What all providers together are to bring about.
#[derive(Clone, Copy)]
pub struct PublishedState<'a> {
    /// What ought to exist.
    pub desired: &'a Desired,
    /// Which provider publishes a name that no policy assigns.
    pub rule: &'a PublishingProviders,
    /// The TXT records of certificate orders.
    pub challenge_records: &'a ChallengeRecords,
    /// What could not be seen or is not known.
    pub sight: &'a Sight,
    /// The names whose holder depends on the records that exist (D27).
    pub contested: &'a BTreeSet<Str>,
    /// Names that were seen to lose their records.
    pub explained: &'a BTreeSet<Str>,
    /// Whether the plans of a provider are written.
    pub mode: &'a dyn Fn(&str) -> Mode,
    /// The word by which held deletes were confirmed.
    pub confirmed: Option<&'a str>,
}

/// One provider in the set.
#[derive(Debug)]
struct PublisherSlot {
    name: Str,
    only_looks: bool,
    /// `None` while a pass runs.
    idle: Option<Publisher>,
    schedule: Schedule,
    /// What it is to bring about now.
    work: Option<Arc<PublisherWork>>,
    /// What the running pass brings about.
    under_way: Option<Arc<PublisherWork>>,
    /// What its last pass brought about.
    done: Option<Arc<PublisherWork>>,
    known: KnownNames,
    origins: RecordOrigins,
    /// The last pass, without the steps that were reported as written.
    last: Option<Pass>,
    /// Whether the last pass was not reported yet.
    is_fresh: bool,
}

/// The names that are known to exist at a provider as they ought to.
#[derive(Clone, Debug, Default)]
pub struct KnownNames(BTreeSet<Str>);

impl KnownNames {
    /// Takes in the end of a pass. What was known before stays so where a provider cannot be read.
    pub fn learn(&mut self, work: &PublisherWork, pass: &Pass) {
        self.learn_of(work, &pass.plan, &pass.outcome, &pass.unread);
    }

    /// The same, of the parts of a pass.
    pub fn learn_of(&mut self, work: &PublisherWork, plan: &Plan, outcome: &Outcome, unread: &[String]) {
        let is_unwritten = |(i, _): &(usize, _)| !outcome.written.contains(i);
        let unwritten = plan.steps.iter().enumerate().filter(is_unwritten).map(|(_, step)| &step.name);
        let open: BTreeSet<&Str> = plan.held.iter().map(|held| &held.name).chain(unwritten).collect();
        if unread.is_empty() && !open.iter().any(|name| name.is_empty()) {
            let names = work.records.iter().chain(&work.covered).map(|record| &record.name);
            self.0.extend(names.filter(|name| !open.contains(name)).cloned());
        }
    }

    /// Forgets names that it does not publish any more.
    fn retain(&mut self, work: &PublisherWork) {
        let names: BTreeSet<&Str> = work.records.iter().chain(&work.covered).map(|record| &record.name).collect();
        self.0.retain(|name| names.contains(name));
    }
}

impl PublishedState<'_> {
    /// What one provider is to bring about. `others` are the rest, with the names that are known to exist there.
    pub fn work<'k>(
        &self,
        name: &str,
        origins: &RecordOrigins,
        others: impl Iterator<Item = (&'k Str, &'k KnownNames)>,
    ) -> PublisherWork {
        let is_here = |record: &&Record| record.provider.as_deref() == Some(name);
        let is_answered_here = |record: &&Record| self.rule.of(&record.name, None).is_some_and(|of| **of == *name);
        let of_orders = |records: &[Record]| records.iter().filter(is_answered_here).cloned().collect();
        let records: Vec<Record> = self.desired.records.iter().filter(is_here).cloned().collect();
        let here: BTreeSet<&Str> = records.iter().map(|record| &record.name).collect();
        let others: BTreeMap<&str, &KnownNames> = others.map(|(name, known)| (&**name, known)).collect();
        let (mut moving, mut moved) = (BTreeMap::new(), BTreeMap::new());
        for record in self.desired.records.iter().filter(|record| !here.contains(&record.name)) {
            let Some(provider) = &record.provider else { continue };
            let is_there = others.get(&**provider).is_some_and(|known| known.0.contains(&record.name));
            let names = if is_there { &mut moved } else { &mut moving };
            names.insert(record.name.clone(), provider.clone());
        }
        PublisherWork {
            covered: self.desired.covered.iter().filter(is_here).cloned().collect(),
            challenge_records: ChallengeRecords {
                challenges: of_orders(&self.challenge_records.challenges),
                retired: of_orders(&self.challenge_records.retired),
            },
            sight: self.sight.clone(),
            contested: self.contested.clone(),
            origins: origins.clone(),
            explained: self.explained.iter().chain(moved.keys()).cloned().collect(),
            moving,
            moved,
            mode: (self.mode)(name),
            confirmed: self.confirmed.map(str::to_owned),
            records,
        }
    }
}

impl PublisherSet {
    /// Providers that begin to work when they are told what to bring about.
    pub fn new(publishers: Vec<Publisher>, rules: ScheduleRules) -> PublisherSet {
        // Changes were gathered before they come here.
        let rules = ScheduleRules { debounce: Duration::ZERO, ..rules };
        let slots = publishers.into_iter().map(|publisher| {
            let mut schedule = Schedule::new(rules, Instant::now());
            schedule.began();
            PublisherSlot {
                name: publisher.name.clone(),
                only_looks: publisher.only_looks(),
                idle: Some(publisher),
                schedule,
                work: None,
                under_way: None,
                done: None,
                known: KnownNames::default(),
                origins: RecordOrigins::new(),
                last: None,
                is_fresh: false,
            }
        });
        PublisherSet { slots: slots.collect(), running: JoinSet::new() }
    }

    /// Takes what is to be brought about now, and begins with what is due.
    pub fn take(&mut self, state: PublishedState<'_>) {
        let known: Vec<(Str, KnownNames)> =
            self.slots.iter().map(|slot| (slot.name.clone(), slot.known.clone())).collect();
        for slot in &mut self.slots {
            let others = known.iter().filter(|(name, _)| *name != slot.name).map(|(name, known)| (name, known));
            let work = state.work(&slot.name, &slot.origins, others);
            slot.known.retain(&work);
            if slot.work.as_deref() != Some(&work) {
                slot.work = Some(Arc::new(work));
                slot.schedule.changed(Instant::now());
            }
        }
        self.start();
    }

    /// Completes when a pass of a provider ended, and starts those that are due. Cancel safe.
    pub async fn changed(&mut self) {
        loop {
            self.start();
            let idle = self.slots.iter().filter(|slot| slot.idle.is_some() && slot.work.is_some());
            let wait = idle.filter_map(|slot| slot.schedule.wait(Instant::now())).min();
            let due = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(ended) = self.running.join_next(), if !self.running.is_empty() => {
                    match ended {
                        Ok((i, publisher, ended)) => self.finish(i, publisher, ended),
                        // A pass that panicked is a defect, as it is with a single provider.
                        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                        Err(_) => {}
                    }
                    return;
                }
                () = due => {}
            }
        }
    }

    /// What the records of contested names were made for, at all providers.
    pub fn origins(&self) -> RecordOrigins {
        let mut all = RecordOrigins::new();
        for (name, origins) in self.slots.iter().flat_map(|slot| &slot.origins) {
            let known = all.entry(name.clone()).or_default();
            known.extend(origins.iter().cloned());
            known.sort();
            known.dedup();
        }
        all
    }

    /// Whether every provider has been compared with what is to be brought about now.
    pub fn is_settled(&self) -> bool {
        self.slots.iter().all(|slot| slot.idle.is_some() && slot.done == slot.work)
    }

    /// Puts what became of the providers into the report of a pass. A change that was written is reported once.
    pub fn report(&mut self, pass: &mut Pass) {
        let (mut all, mut digests) = (nothing(), Vec::new());
        for slot in &mut self.slots {
            let (mut report, shift) = (slot.report(), all.plan.steps.len());
            report.steps = shift..shift + slot.last.as_ref().map_or(0, |last| last.plan.steps.len());
            pass.providers.push(report);
            let Some(last) = &mut slot.last else { continue };
            digests.push((slot.name.clone(), last.plan.digest.clone()));
            all = beside(all, &slot.name, last);
            if !slot.is_fresh {
                all.outcome.repeated.extend(shift..all.plan.steps.len());
            }
            (last.notes, last.confirmed) = (Vec::new(), None);
            slot.drop_written();
        }
        all.plan.held.sort();
        all.plan.digest = combined_digest(digests.iter().map(|(name, digest)| (&**name, &**digest)));
        (pass.plan, pass.outcome, pass.unread) = (all.plan, all.outcome, all.unread);
        pass.notes.append(&mut all.notes);
        pass.confirmed = all.confirmed;
    }

    fn start(&mut self) {
        let now = Instant::now();
        for (i, slot) in self.slots.iter_mut().enumerate() {
            let Some(work) = slot.work.clone().filter(|_| slot.schedule.is_due(now)) else { continue };
            let Some(mut publisher) = slot.idle.take() else { continue };
            slot.schedule.began();
            slot.under_way = Some(work.clone());
            self.running.spawn(async move {
                let ended = publisher.pass(&work).await;
                (i, publisher, ended)
            });
        }
    }

    fn finish(&mut self, i: usize, publisher: Publisher, ended: PublisherPass) {
        let slot = &mut self.slots[i];
        slot.idle = Some(publisher);
        let work = slot.under_way.take();
        slot.origins = ended.origins.unwrap_or_else(|| std::mem::take(&mut slot.origins));
        let end = ended.pass.as_ref().map_or(PassEnd::Quiet, PassEnd::of);
        slot.schedule.ended(Instant::now(), end, None, chance());
        let (Some(work), Some(pass)) = (work, ended.pass) else { return };
        slot.known.learn(&work, &pass);
        slot.work.iter().for_each(|newest| slot.known.retain(newest));
        slot.done = Some(work);
        // Of two passes between two reports the first is not lost.
        slot.last = Some(match slot.last.take().filter(|_| slot.is_fresh) {
            Some(mut before) => {
                retain_steps(&mut before, true);
                before.followed_by(pass)
            }
            None => pass,
        });
        slot.is_fresh = true;
    }
}

impl PublisherSlot {
    /// What keeps names from being up to date.
    fn troubles(&self) -> impl Iterator<Item = String> {
        let last = self.last.iter();
        last.flat_map(|pass| {
            let failed = pass.outcome.failed.values().map(ToString::to_string);
            pass.unread.iter().cloned().chain(failed)
        })
    }

    fn report(&self) -> ProviderReport {
        let before = self.done.as_ref().map_or(&[][..], |done| &done.records);
        let after = self.work.as_ref().map_or(&[][..], |work| &work.records);
        let is_behind = self.done != self.work;
        let plan = self.last.as_ref().map(|pass| &pass.plan);
        let outcome = self.last.as_ref().map(|pass| &pass.outcome);
        let written = outcome.map_or(0, |outcome| outcome.written.len());
        ProviderReport {
            name: self.name.clone(),
            only_looks: self.only_looks,
            trouble: self
                .troubles()
                .next()
                .or_else(|| self.done.is_none().then(|| "it has not been read yet".to_owned())),
            zones: plan.map(|plan| plan.epochs.clone()).unwrap_or_default(),
            is_read: self.done.is_some() && self.last.as_ref().is_some_and(|pass| pass.unread.is_empty()),
            steps: 0..0,
            open: plan.map_or(0, |plan| plan.steps.len().saturating_sub(written)),
            held: plan.map_or(0, |plan| plan.held.len()),
            unconfirmed: plan.and_then(|plan| Some((plan.unconfirmed().count(), confirmation(plan, &self.name)?))),
            waiting: if is_behind { changed_names(before, after) } else { BTreeSet::new() },
        }
    }

    /// Keeps of the last pass what is still to be written.
    fn drop_written(&mut self) {
        self.is_fresh = false;
        self.last.iter_mut().for_each(|last| retain_steps(last, false));
    }
}

/// Keeps the steps that were written, or those that were not.
fn retain_steps(pass: &mut Pass, are_written: bool) {
    let (steps, outcome) = (std::mem::take(&mut pass.plan.steps), std::mem::take(&mut pass.outcome));
    for (i, mut step) in steps.into_iter().enumerate() {
        let (at, is_written) = (pass.plan.steps.len(), outcome.written.contains(&i));
        if is_written != are_written {
            continue;
        }
        step.after.clear();
        pass.plan.steps.push(step);
        match outcome.failed.get(&i) {
            _ if is_written => _ = pass.outcome.written.insert(at),
            Some(error) => _ = pass.outcome.failed.insert(at, error.clone()),
            None => _ = pass.outcome.skipped.insert(at),
        }
    }
}

/// Adds what is known of several providers.
pub fn add_metrics(metrics: &mut MetricSet, providers: &[ProviderReport]) {
    if providers.is_empty() {
        return;
    }
    let mut gauges = |name, help, value: fn(&ProviderReport) -> usize| {
        let values = providers.iter().map(|provider| (provider.name.clone(), value(provider)));
        metrics.whole_gauges((name, help), "provider", values);
    };
    gauges("provider_ready", "Whether everything at a provider could be read and written.", |provider| {
        usize::from(provider.is_ready())
    });
    gauges("provider_zones", "Zones of a provider that were read.", |provider| provider.zones.len());
    gauges("provider_steps_open", "Changes at a provider that are to be written.", |provider| provider.open);
    gauges("provider_held", "Changes at a provider that are held back.", |provider| provider.held);
}

/// The pass of a provider beside those of others; what is held and what could not be read names it.
pub fn beside(all: Pass, name: &str, next: &Pass) -> Pass {
    let named = |text: &str| format!("provider `{name}`: {text}");
    let of_provider = |held: &Held| Held { message: named(&held.message), provider: Some(name.into()), ..held.clone() };
    let (mut held, mut unread, mut epochs) = (all.plan.held.clone(), all.unread.clone(), all.plan.epochs.clone());
    held.extend(next.plan.held.iter().map(of_provider));
    unread.extend(next.unread.iter().map(|why| named(why)));
    epochs.extend(next.plan.epochs.iter().map(|(zone, epoch)| (zone.clone(), epoch.clone())));
    let plan = Plan { steps: next.plan.steps.clone(), ..Plan::default() };
    let (outcome, notes) = (next.outcome.clone(), next.notes.iter().map(|note| named(note)).collect());
    let next = Pass { plan, outcome, notes, confirmed: next.confirmed.clone(), ..nothing() };
    let mut all = all.followed_by(next);
    (all.plan.held, all.plan.epochs, all.unread) = (held, epochs, unread);
    all
}

/// Identifies the plans of several providers together.
pub fn combined_digest<'d>(digests: impl Iterator<Item = (&'d str, &'d str)>) -> String {
    let text: String = digests.map(|(name, digest)| format!("{name}={digest}\n")).collect();
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A pass in which nothing was done.
pub fn nothing() -> Pass {
    Pass {
        desired: Default::default(),
        touched: Default::default(),
        plan: Default::default(),
        outcome: Default::default(),
        unread: Vec::new(),
        retry_after: None,
        notes: Vec::new(),
        issuing: Vec::new(),
        news: Vec::new(),
        confirmed: None,
        providers: Vec::new(),
    }
}
