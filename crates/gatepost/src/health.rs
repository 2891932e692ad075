//! Health checks: a task that probes the addresses of names, beside the passes.
//!
//! It takes its targets from what policies report, and what it finds out enters the next pass as evidence. Which addresses
//! are published is decided in core.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gatepost_core::health::{AddressReport, HealthState, ObservedHealth, ProbeThresholds};
use gatepost_core::model::{HealthCheck, Key, Kind};
use gatepost_core::publication::Desired;
use gatepost_core::snapshot::Snapshot;
use hyper::header::{HeaderName, HeaderValue};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::apply::chance;
use crate::metrics::MetricSet;

pub mod headers;
pub mod kept;
mod probe;
mod queue;

pub use probe::{ProbeClient, ProbeFailure, ProbeProtocol, ProbeSettings};
pub use queue::{PolicyProbe, ProbeLimits, ProbeNumbers, ProbeSubject, ProbeTargets};

use queue::{ProbeNews, ProbeQueue};

/// Probes that run to one address at once.
pub const PER_ADDRESS: usize = 16;
/// What becomes known is gathered for so long before a pass is asked for.
const GATHERED: Duration = Duration::from_millis(200);
/// The same for what changes no record: that an address is healthy of which nothing was known, or another error.
const GATHERED_CALM: Duration = Duration::from_secs(3);
/// More addresses that are not probed any more are forgotten.
const MOST_KNOWN: usize = 200_000;

/// Probes addresses until it is dropped.
#[derive(Debug)]
pub struct Prober {
    targets: watch::Sender<ProbeTargets>,
    shared: Arc<SharedQueue>,
    task: AbortHandle,
}

/// What the task and the passes share.
#[derive(Debug)]
struct SharedQueue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Debug)]
struct QueueState {
    queue: ProbeQueue,
    /// When a pass is asked for, because something is known that no pass has taken.
    news_due: Option<Instant>,
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what became known.
    fn tell(&self, news: ProbeNews) {
        let gathered = match news {
            ProbeNews::Nothing => return,
            ProbeNews::Calm => GATHERED_CALM,
            ProbeNews::Urgent => GATHERED,
        };
        let due = Instant::now() + gathered;
        let mut state = self.lock();
        state.news_due = Some(state.news_due.map_or(due, |before| before.min(due)));
        self.changed.notify_one();
    }
}

impl Prober {
    /// Starts a task without targets. `known` is what an earlier run or leader knew.
    pub fn start(client: ProbeClient, limits: ProbeLimits, known: ObservedHealth) -> Prober {
        let (targets, wanted) = watch::channel(ProbeTargets::new());
        let state = QueueState { queue: ProbeQueue::new(limits), news_due: None };
        let shared = Arc::new(SharedQueue { state: Mutex::new(state), changed: Notify::new() });
        let task = tokio::spawn(run(client, known, wanted, shared.clone()));
        Prober { targets, shared, task: task.abort_handle() }
    }

    /// Replaces the targets.
    pub fn aim(&self, targets: ProbeTargets) {
        self.targets.send_if_modified(|before| {
            let is_other = *before != targets;
            if is_other {
                *before = targets;
            }
            is_other
        });
    }

    /// Completes when a pass is to take what became known. Cancel safe.
    pub async fn changed(&self) {
        loop {
            let due = self.shared.lock().news_due;
            tokio::select! {
                () = until(due) => return,
                // It may be due sooner now.
                () = self.shared.changed.notified() => {}
            }
        }
    }

    /// All that is known, if something of it is new since the last call.
    pub fn take_news(&self) -> Option<ObservedHealth> {
        let mut state = self.shared.lock();
        state.news_due.take().map(|_| state.queue.observed().clone())
    }

    /// What was done so far.
    pub fn numbers(&self) -> ProbeNumbers {
        self.shared.lock().queue.numbers()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    client: ProbeClient,
    mut known: ObservedHealth,
    mut wanted: watch::Receiver<ProbeTargets>,
    shared: Arc<SharedQueue>,
) {
    let mut running = JoinSet::new();
    let clock = Clock::start();
    loop {
        let due = shared.lock().queue.next_due();
        tokio::select! {
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                let queue = &mut shared.lock().queue;
                // A target that goes and comes back is known as it was.
                if known.len() > MOST_KNOWN {
                    known = ObservedHealth::default();
                }
                known.extend(queue.observed());
                queue.replace(&wanted.borrow_and_update(), &known, Instant::now(), clock.milliseconds());
            }
            Some(done) = running.join_next() => if let Ok((subject, result)) = done {
                let news = shared.lock().queue.finish(&subject, result, clock.milliseconds());
                shared.tell(news);
            },
            () = until(due) => shared.lock().queue.advance(Instant::now(), &mut chance),
        }
        let mut state = shared.lock();
        while let Some((subject, probe)) = state.queue.start() {
            let client = client.clone();
            running.spawn(async move {
                let result = match &probe.settings {
                    Ok(settings) => client.probe(&subject.name, &subject.address, settings).await,
                    Err(why) => Err(ProbeFailure::NotMade(why.clone())),
                };
                (subject, result)
            });
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// The time of day at the start, which goes on evenly whatever becomes of the system's clock.
struct Clock {
    began: Instant,
    at: i64,
}

impl Clock {
    fn start() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { began: Instant::now(), at: i64::try_from(since.as_millis()).unwrap_or_default() }
    }

    fn milliseconds(&self) -> i64 {
        self.at.saturating_add(i64::try_from(self.began.elapsed().as_millis()).unwrap_or_default())
    }
}

/// The headers in a Secret, or why there are none.
pub type SecretHeaders = Result<Vec<(HeaderName, HeaderValue)>, String>;

/// The headers in the Secrets that policies name.
pub type ProbeHeaders = BTreeMap<Key, SecretHeaders>;

/// What the policies of a desired state have probed.
pub fn targets(desired: &Desired, snapshot: &Snapshot, headers: &ProbeHeaders) -> ProbeTargets {
    let mut targets = ProbeTargets::new();
    for report in desired.policies.iter().filter(|report| report.policy.kind == Kind::DnsPolicy) {
        let key = &report.policy.key;
        let policy = snapshot.dns_policies.get(key);
        let Some(check) = policy.and_then(|policy| policy.health_check.as_ref()) else { continue };
        let probe = Arc::new(policy_probe(check, key, headers));
        let subject = |address: &AddressReport| ProbeSubject {
            name: address.hostname.clone(),
            policy: key.clone(),
            address: address.address.clone(),
        };
        targets.extend(report.addresses.iter().map(|address| (subject(address), probe.clone())));
    }
    targets
}

/// The Secrets with headers that policies with health checks name.
pub fn header_secrets(snapshot: &Snapshot) -> impl Iterator<Item = Key> {
    snapshot.dns_policies.values().filter_map(|policy| {
        let name = policy.health_check.as_ref()?.headers.clone()?;
        Some(Key::new(policy.meta.key.namespace.clone(), name))
    })
}

fn policy_probe(check: &HealthCheck, policy: &Key, headers: &ProbeHeaders) -> PolicyProbe {
    let secret = check.headers.as_ref().map(|name| Key::new(policy.namespace.clone(), name.clone()));
    let headers = match &secret {
        None => Ok(Vec::new()),
        Some(secret) => {
            headers.get(secret).cloned().unwrap_or_else(|| Err(format!("Secret {secret} was not read yet")))
        }
    };
    let protocol = match &*check.protocol {
        "TCP" => ProbeProtocol::Tcp,
        "HTTP" => ProbeProtocol::Http,
        _ => ProbeProtocol::Https,
    };
    let settings = |headers| ProbeSettings {
        protocol,
        port: check.port,
        path: check.path.to_string(),
        timeout: Duration::from_secs(check.timeout.into()),
        statuses: check.expected_statuses.clone(),
        skips_verification: check.skips_verification,
        headers,
    };
    PolicyProbe {
        settings: headers.map(settings),
        thresholds: ProbeThresholds { failures: check.failure_threshold, successes: check.success_threshold },
        interval: Duration::from_secs(check.interval.into()),
    }
}

/// Numbers of addresses that are probed, by their state.
pub type AddressCounts = [(&'static str, usize); 3];

/// Counts the addresses that are probed.
pub fn count_addresses(desired: &Desired) -> AddressCounts {
    let addresses = || desired.policies.iter().flat_map(|report| &report.addresses);
    let states = [HealthState::Healthy, HealthState::Unhealthy, HealthState::Unknown];
    states.map(|state| (state.as_str(), addresses().filter(|address| address.state == state).count()))
}

/// Adds the numbers of probes, and of what they found out.
pub fn add_metrics(metrics: &mut MetricSet, numbers: ProbeNumbers, counts: AddressCounts) {
    let addresses = ("probe_addresses", "Addresses of hostnames that are probed, by what is known of their health.");
    metrics.whole_gauges(addresses, "state", counts);
    let results = [("success", numbers.succeeded), ("failure", numbers.failed), ("not-made", numbers.not_made)];
    metrics.counters(("probes", "Probes of addresses, by result."), "result", results);
    let changes = "Times that an address became unhealthy, or healthy again.";
    metrics.counter("probe_changes", changes, numbers.changes);
    let left_out = "Probes that were left out, because the one before was not done yet.";
    metrics.counter("probes_left_out", left_out, numbers.left_out);
    metrics.gauge("probes_running", "Probes that run now.", numbers.running);
}
