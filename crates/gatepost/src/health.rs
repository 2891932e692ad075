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

use queue::ProbeQueue;

/// Probes that run to one address at once.
pub const PER_ADDRESS: usize = 16;
/// What becomes known is gathered for so long before a pass is asked for.
const GATHERED: Duration = Duration::from_millis(200);

/// More addresses that are not probed any more are forgotten.
const MOST_KNOWN: usize = 200_000;

/// Probes addresses until it is dropped.
#[derive(Debug)]
pub struct Prober {
    targets: watch::Sender<ProbeTargets>,
    shared: Arc<SharedHealth>,
    task: AbortHandle,
}

/// What the task and the passes share.
#[derive(Debug, Default)]
struct SharedHealth {
    latest: Mutex<LatestHealth>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct LatestHealth {
    observed: ObservedHealth,
    /// Since when something is known that no pass has taken.
    changed_at: Option<Instant>,
    numbers: ProbeNumbers,
}

impl SharedHealth {
    fn lock(&self) -> MutexGuard<'_, LatestHealth> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Prober {
    /// Starts a task without targets. `known` is what an earlier run or leader knew.
    pub fn start(client: ProbeClient, limits: ProbeLimits, known: ObservedHealth) -> Prober {
        let (targets, wanted) = watch::channel(ProbeTargets::new());
        let shared = Arc::new(SharedHealth::default());
        let task = tokio::spawn(run(client, limits, known, wanted, shared.clone()));
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

    /// Completes when something became known that no pass has taken. Cancel safe.
    pub async fn changed(&self) {
        loop {
            let changed_at = self.shared.lock().changed_at;
            match changed_at {
                Some(at) => return tokio::time::sleep_until((at + GATHERED).into()).await,
                None => self.shared.changed.notified().await,
            }
        }
    }

    /// What became known since the last call, with all that was known; `None` if nothing did.
    pub fn take_news(&self) -> Option<ObservedHealth> {
        let mut latest = self.shared.lock();
        latest.changed_at.take().map(|_| latest.observed.clone())
    }

    /// What was done so far.
    pub fn numbers(&self) -> ProbeNumbers {
        self.shared.lock().numbers
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    client: ProbeClient,
    limits: ProbeLimits,
    mut known: ObservedHealth,
    mut wanted: watch::Receiver<ProbeTargets>,
    shared: Arc<SharedHealth>,
) {
    let mut queue = ProbeQueue::new(limits);
    let mut running = JoinSet::new();
    let clock = Clock::start();
    loop {
        let due = queue.next_due();
        let has_news = tokio::select! {
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                // A target that goes and comes back is known as it was.
                if known.len() > MOST_KNOWN {
                    known = ObservedHealth::default();
                }
                known.extend(queue.observed());
                queue.replace(&wanted.borrow_and_update(), &known, Instant::now(), clock.milliseconds());
                false
            }
            Some(done) = running.join_next() => match done {
                Ok((subject, result)) => queue.finish(&subject, result, clock.milliseconds()),
                Err(_) => false,
            },
            () = until(due) => {
                queue.advance(Instant::now(), &mut chance);
                false
            }
        };
        while let Some((subject, probe)) = queue.start() {
            let client = client.clone();
            running.spawn(async move {
                let result = match &probe.settings {
                    Ok(settings) => client.probe(&subject.name, &subject.address, settings).await,
                    Err(why) => Err(ProbeFailure::NotMade(why.clone())),
                };
                (subject, result)
            });
        }
        let mut latest = shared.lock();
        latest.numbers = queue.numbers();
        if has_news {
            latest.observed.clone_from(queue.observed());
            latest.changed_at.get_or_insert_with(Instant::now);
            shared.changed.notify_one();
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
