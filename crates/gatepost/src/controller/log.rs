//! Log lines, readiness and metrics of a controller.
//!
//! A line is logged when a state begins, and not again while it lasts. Label values of metrics come from short fixed
//! lists, never from objects. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatepost_core::model::{Kind, ObjectRef};
use gatepost_core::plan::Verb;
use gatepost_core::publication::Withheld;
use gatepost_core::reason::KIND_NOT_WATCHED;
use gatepost_core::snapshot::{Change, Visibility};
use gatepost_kube::Error;
use gatepost_kube::lease::{CONFIRM, LeaderState};
use gatepost_kube::watch::WatchEvent;
use tracing::{error, info, warn};

use super::View;
use super::permit::Permit;
use super::report::QueueNumbers;
use crate::health::{self, AddressCounts, ProbeNumbers};
use crate::metrics::MetricSet;
use crate::run::{Pass, ProviderReport, dry_run_notes, publishers, troubles};

mod issuance;

use issuance::IssuanceLog;

/// A kind without any event for longer than this is noted in `/readyz`; bookmarks arrive every minute.
const OLD: Duration = Duration::from_secs(150);

/// The states that were already logged, so that none is logged twice.
#[derive(Default)]
pub(super) struct Log {
    /// The Lease, as an argument of `kubectl`.
    lease: String,
    /// Whether we lead, why writing is frozen, and which digest is confirmed.
    leader_state: Option<(bool, Option<String>, Option<String>)>,
    /// The deletes that wait to be confirmed, with the word that confirms them, for each provider that has some.
    unconfirmed: Vec<(usize, String)>,
    /// The providers, where there are several.
    providers: Vec<ProviderReport>,
    frozen: Option<String>,
    /// Log lines about withheld hostnames, by route.
    withheld: BTreeMap<ObjectRef, BTreeSet<String>>,
    held: BTreeSet<String>,
    unwritten: BTreeSet<String>,
    unread: Vec<String>,
    failed: Option<String>,
    reports: Vec<String>,
    numbers: Numbers,
    issuance: IssuanceLog,
    /// What was done about health checks.
    probes: ProbeNumbers,
    addresses: AddressCounts,
    /// Log lines about unhealthy addresses.
    unhealthy: BTreeSet<String>,
}

/// Counters and gauges.
#[derive(Default)]
struct Numbers {
    passes: u64,
    written: [u64; 3],
    failures: u64,
    troubles: u64,
    reports: QueueNumbers,
    records: usize,
    certificates: usize,
    withheld: usize,
    held: usize,
    zones: usize,
}

impl Log {
    pub(super) fn new(lease: Option<String>) -> Log {
        Log { lease: lease.unwrap_or_default(), ..Log::default() }
    }

    pub(super) fn event(&mut self, event: &WatchEvent) {
        match event {
            WatchEvent::Change(Change::Sight(kind, Visibility::NotVisible(why)), _) => {
                warn!(kind = kind.as_str(), why = &**why, "kind is not visible");
            }
            WatchEvent::Change(Change::Sight(kind, Visibility::Complete), _) => {
                info!(kind = kind.as_str(), "kind is visible")
            }
            WatchEvent::Installed(kind, None) => info!(kind = kind.as_str(), "kind is not installed"),
            WatchEvent::Installed(kind, Some(version)) => {
                info!(kind = kind.as_str(), version = &**version, "kind is installed")
            }
            WatchEvent::Watch(kind, Some(error)) => {
                let reason = KIND_NOT_WATCHED.name();
                warn!(kind = kind.as_str(), reason, error = %error, "kind may be listed and not watched; it is listed again and again");
            }
            WatchEvent::Watch(kind, None) => info!(kind = kind.as_str(), "kind is watched again"),
            WatchEvent::Trouble(kind, trouble) => {
                self.numbers.troubles += 1;
                warn!(kind = kind.map(Kind::as_str), error = %trouble, "the API server refuses or fails; it is asked again");
            }
            WatchEvent::Change(..) | WatchEvent::Heard(_) => {}
        }
    }

    /// Logs a changed leader state; returns whether a change affects what is written.
    pub(super) fn leader_state(&mut self, leader_state: &LeaderState) -> bool {
        let leads = leader_state.leads();
        let frozen = [leader_state.frozen.clone(), leader_state.frozen_note()]
            .into_iter()
            .flatten()
            .reduce(|a, b| a + "; " + &b);
        let now = (leads, frozen, leader_state.confirmed.clone());
        let before = self.leader_state.replace(now.clone());
        if before.as_ref().map(|(led, ..)| *led) != Some(leads) {
            match leads {
                true => info!(term = leader_state.term.as_ref().map(|term| term.fencing_token.as_str()), "leading"),
                false => info!(holder = leader_state.holder, "not leading"),
            }
        }
        if let Some(trouble) = &leader_state.trouble {
            warn!(error = %trouble, "the Lease could not be read or renewed");
        }
        before != Some(now)
    }

    /// Logs whether writing is frozen; returns whether that changed.
    pub(super) fn frozen(&mut self, why: Option<&str>) -> bool {
        let is_new = self.frozen.as_deref() != why;
        if is_new {
            self.frozen = why.map(str::to_owned);
            match why {
                Some(why) => warn!(why, "writing is frozen"),
                None => info!("writing is no longer frozen"),
            }
        }
        is_new
    }

    pub(super) fn pass(&mut self, pass: &Pass, refusal: Option<&str>) {
        self.numbers.take(pass);
        self.issuance.take(pass);
        self.log_unhealthy(pass);
        self.unread = pass.unread.clone();
        self.providers.clone_from(&pass.providers);
        self.failed = pass.outcome.failed.values().next().map(|error| error.to_string());
        let mut unwritten = BTreeSet::new();
        for (i, step) in pass.plan.steps.iter().enumerate() {
            let (zone, name, because) = (&*step.zone, &*step.name, &*step.because);
            let verb = word(step.verb);
            let changes: Vec<_> = step.changes.iter().map(crate::render::steps::change_line).collect();
            let changes = changes.join("; ");
            match pass.outcome.failed.get(&i) {
                _ if pass.outcome.written.contains(&i) => info!(zone, name, verb, changes, because, "written"),
                Some(_) if pass.outcome.repeated.contains(&i) => {}
                Some(error) => error!(zone, name, verb, changes, because, error = %error, "failed"),
                None => {
                    let line = format!("{zone} {name} {changes}");
                    if !self.unwritten.contains(&line) {
                        let why = refusal.unwrap_or("observe mode");
                        info!(zone, name, verb, changes, because, why, "not written");
                    }
                    unwritten.insert(line);
                }
            }
        }
        self.unwritten = unwritten;
        self.log_held(pass);
        self.log_unconfirmed(pass);
    }

    /// Takes what was done about health checks.
    pub(super) fn probed(&mut self, probes: ProbeNumbers) {
        self.probes = probes;
    }

    /// Logs addresses that are left out, or kept although their probes fail.
    fn log_unhealthy(&mut self, pass: &Pass) {
        let desired = pass.desired.read();
        self.addresses = health::count_addresses(&desired);
        let mut unhealthy = BTreeSet::new();
        for report in &desired.policies {
            for address in &report.addresses {
                let Some(reason) = address.publication.reason() else { continue };
                let message = address.message();
                let line = format!("{} {reason} {} {}", report.policy, address.hostname, address.address);
                if !self.unhealthy.contains(&line) {
                    warn!(policy = %report.policy, reason = reason.name(), message, "address is unhealthy");
                }
                unhealthy.insert(line);
            }
        }
        self.unhealthy = unhealthy;
    }

    /// Logs deletes that wait for confirmation, once per digest.
    fn log_unconfirmed(&mut self, pass: &Pass) {
        if let Some(word) = &pass.confirmed {
            info!(word, "held deletes are confirmed");
        }
        let now = pass.unconfirmed();
        if self.unconfirmed != now {
            self.unconfirmed = now;
            self.confirmation_notes().for_each(|note| warn!(detail = note, "deletes wait to be confirmed"));
        }
    }

    /// The deletes that wait for confirmation, and the command that confirms them.
    fn confirmation_notes(&self) -> impl Iterator<Item = String> {
        self.unconfirmed.iter().map(|(count, word)| {
            let what = if *count == 1 { "1 delete is".to_owned() } else { format!("{count} deletes are") };
            let command = format!("kubectl annotate --overwrite {} {CONFIRM}={word}", self.lease);
            format!("{what} held until confirmed; look at /plan.json, and if they are meant: {command}")
        })
    }

    /// A note if the confirmation on the Lease matches none of the held deletes.
    fn outdated_confirmation(&self, permit: &Permit) -> Option<String> {
        let word = permit.confirmed()?;
        let is_meant = |(_, held): &(usize, String)| word.len() >= 8 && held.starts_with(&word.to_ascii_lowercase());
        let row = gatepost_core::reason::PLAN_STALE.row();
        (!self.unconfirmed.iter().any(is_meant)).then(|| {
            format!(
                "the annotation {CONFIRM}={word} is for other deletes than are held now, and does nothing [{} {}]",
                row.code, row.name
            )
        })
    }

    /// Logs withheld hostnames and held changes, each once while it lasts.
    fn log_held(&mut self, pass: &Pass) {
        self.log_withheld(pass);
        let mut now = BTreeSet::new();
        for held in &pass.plan.held {
            let line = format!("{} {} {}", held.name, held.reason, held.message);
            if !self.held.contains(&line) {
                let object = held.object.as_ref().map(ToString::to_string);
                warn!(name = &*held.name, reason = held.reason.name(), object, detail = held.message, "held");
            }
            now.insert(line);
        }
        self.held = now;
    }

    /// Logs withheld hostnames; checks only the routes that a pass touched.
    fn log_withheld(&mut self, pass: &Pass) {
        let desired = pass.desired.read();
        let before = match pass.touched.everything {
            true => std::mem::take(&mut self.withheld),
            false => pass.touched.withheld.iter().filter_map(|route| self.withheld.remove_entry(route)).collect(),
        };
        let of_route = |route: &ObjectRef| {
            let (first, last) = (
                desired.withheld.partition_point(|withheld| withheld.route < *route),
                desired.withheld.partition_point(|withheld| withheld.route <= *route),
            );
            &desired.withheld[first..last]
        };
        let touched: Vec<&[Withheld]> = match pass.touched.everything {
            true => vec![&desired.withheld[..]],
            false => pass.touched.withheld.iter().map(of_route).collect(),
        };
        for withheld in touched.into_iter().flatten() {
            let line = format!("{} {} {}", withheld.hostname, withheld.reason, withheld.message);
            if !before.get(&withheld.route).is_some_and(|lines| lines.contains(&line)) {
                let (route, hostname) = (withheld.route.to_string(), &*withheld.hostname);
                info!(route, hostname, reason = withheld.reason.name(), field = %withheld.field, detail = withheld.message, "withheld");
            }
            self.withheld.entry(withheld.route.clone()).or_default().insert(line);
        }
    }

    /// Takes the errors of status and Events, and the numbers of their queue.
    pub(super) fn reported(&mut self, troubles: &[Error], reports: QueueNumbers) {
        let before = std::mem::replace(&mut self.numbers.reports, reports);
        if reports.dropped > before.dropped {
            warn!(count = reports.dropped - before.dropped, "too many status and Events wait; the oldest are dropped");
        }
        // What failed is told until something else was written.
        if reports.ended > before.ended {
            self.reports = troubles.iter().map(ToString::to_string).take(10).collect();
        }
        for trouble in troubles {
            warn!(error = %trouble, "status or event could not be written");
        }
    }

    /// Why names may not be up to date; `None` if all is well. A standby replica is ready.
    pub(super) fn unready(&self, view: &View, permit: &Permit) -> Option<String> {
        if let Some(kind) = view.unread() {
            return Some(format!("{kind} objects have not been read yet"));
        }
        if self.numbers.passes == 0 {
            return Some("the first pass has not ended yet".to_owned());
        }
        if !self.providers.is_empty() {
            return troubles(&self.providers);
        }
        let unread = self.unread.first().cloned();
        let failed = self.failed.clone().filter(|_| permit.leads());
        unread.or(failed)
    }

    /// Notes for people that do not affect readiness.
    pub(super) fn notes(&self, view: &View, permit: &Permit) -> Vec<String> {
        let mut notes: Vec<String> = permit.refusal().into_iter().collect();
        notes.extend(permit.frozen_providers());
        notes.extend(dry_run_notes(&self.providers));
        notes.extend(self.confirmation_notes());
        notes.extend(self.outdated_confirmation(permit));
        notes.extend(view.hidden().into_iter().map(|(kind, why)| format!("{kind} objects are not visible: {why}")));
        let row = KIND_NOT_WATCHED.row();
        let unwatched = view.unwatched().iter();
        notes.extend(
            unwatched.map(|(kind, why)| {
                format!("{kind} objects are listed, not watched: {why} [{} {}]", row.code, row.name)
            }),
        );
        let old = view.ages().into_iter().filter(|(_, age)| *age > OLD);
        notes.extend(old.map(|(kind, age)| format!("{kind} objects were last heard of {} s ago", age.as_secs())));
        notes.extend(view.absent().iter().map(|kind| format!("{kind} is not installed")));
        notes.extend(self.issuance.notes().iter().cloned());
        notes.extend(self.reports.iter().map(|trouble| format!("not reported: {trouble}")));
        notes
    }

    /// The metrics as OpenMetrics text.
    pub(super) fn metrics(&self, view: &View, permit: &Permit) -> String {
        let mut metrics = MetricSet::default();
        self.add_state(&mut metrics, permit);
        self.add_work(&mut metrics);
        self.issuance.add_metrics(&mut metrics);
        health::add_metrics(&mut metrics, self.probes, self.addresses);
        let hidden = view.hidden().into_iter().map(|(kind, _)| (kind, 1));
        metrics.whole_gauges(("kind_hidden", "Kinds whose objects are not visible."), "kind", hidden);
        let tenths = |age: Duration| (age.as_secs_f64() * 10.0).round() / 10.0;
        let ages = view.ages().into_iter().map(|(kind, age)| (kind, tenths(age)));
        metrics.gauges(("kind_age_seconds", "Seconds since a kind was last heard of."), "kind", ages);
        metrics.into_text()
    }

    /// Adds gauges of the current state.
    fn add_state(&self, metrics: &mut MetricSet, permit: &Permit) {
        let (numbers, unconfirmed) = (&self.numbers, self.unconfirmed.iter().map(|(count, _)| count).sum());
        metrics.gauge("records", "Record sets that ought to exist.", numbers.records);
        metrics.gauge("certificates", "Certificates that ought to exist.", numbers.certificates);
        metrics.gauge("withheld", "Hostnames that get nothing.", numbers.withheld);
        metrics.gauge("held", "Changes that are held back.", numbers.held);
        metrics.gauge("unconfirmed_deletes", "Deletes that wait to be confirmed.", unconfirmed);
        metrics.gauge("zones", "Zones that were read.", numbers.zones);
        metrics.gauge("zones_unreadable", "Zones that could not be read.", self.unread.len());
        publishers::add_metrics(metrics, &self.providers);
        metrics.gauge("leader", "Whether this replica leads.", usize::from(permit.leads()));
        metrics.gauge("reports_waiting", "Status and Events that wait to be written.", numbers.reports.waiting);
        metrics.gauge("frozen", "Whether writing is frozen.", usize::from(permit.frozen().is_some()));
    }

    /// Adds counters since the start.
    fn add_work(&self, metrics: &mut MetricSet) {
        let numbers = &self.numbers;
        metrics.counter("passes", "Passes since the start.", numbers.passes);
        let verbs = [Verb::Create, Verb::Update, Verb::Delete];
        let written = verbs.map(|verb| (word(verb), numbers.written[verb as usize]));
        metrics.counters(("steps", "Changes written since the start."), "verb", written);
        metrics.counter("step_failures", "Changes that failed since the start.", numbers.failures);
        let help = "Status and Events that were dropped since the start, because too many waited.";
        metrics.counter("reports_dropped", help, numbers.reports.dropped);
        metrics.counter("api_troubles", "Failed requests to the API server since the start.", numbers.troubles);
    }
}

impl Numbers {
    fn take(&mut self, pass: &Pass) {
        self.passes += 1;
        for step in pass.outcome.written.iter().filter_map(|i| pass.plan.steps.get(*i)) {
            self.written[step.verb as usize] += 1;
        }
        let is_new = |i: &&usize| !pass.outcome.repeated.contains(i);
        self.failures += pass.outcome.failed.keys().filter(is_new).count() as u64;
        let desired = pass.desired.read();
        (self.records, self.certificates) = (desired.records.len(), desired.certificates.len());
        (self.withheld, self.held) = (desired.withheld.len(), pass.plan.held.len());
        self.zones = pass.plan.epochs.len();
    }
}

fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "create",
        Verb::Update => "update",
        Verb::Delete => "delete",
    }
}
