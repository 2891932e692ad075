//! One writer among several replicas, by a Lease.
//!
//! A replica leads while it keeps renewing the Lease, and stops by its own clock well before others may take over by theirs:
//! no clock is compared with another machine's. Every write to the Lease carries the version that was read, so that of two
//! that reach for it one loses. Each term has a fencing token, which a provider can demand as a precondition: whoever wakes up
//! late writes with a token that is no longer current.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use http::Method;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::connection::Connection;
use crate::error::{Error, Problem, Result};

/// The annotation of the Lease that stops all writes, with a reason as its value; with a dot and the name of a provider behind
/// it, the writes to that one.
pub const FREEZE: &str = "gatepost.dev/freeze";

/// The annotation of the Lease that confirms held deletes; its value is the confirmation word of those deletes.
pub const CONFIRM: &str = "gatepost.dev/confirm-deletes";

/// Which Lease this process competes for, under which identity and with which timing.
#[derive(Clone, Debug)]
pub struct ElectionSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Identity of this process, unique among replicas.
    pub identity: String,
    /// How long others wait for a renewal before they take over.
    pub duration: Duration,
    /// How often the Lease is looked at.
    pub every: Duration,
}

/// A text that identifies one term: `term=3,holder=a,since=2026-03-01T10:00:05.000000Z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencingToken(String);

impl FencingToken {
    /// The text, as it is written into preconditions and logs.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for FencingToken {
    fn from(text: &str) -> Self {
        FencingToken(text.to_owned())
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One period of leadership of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Identifies this term and no other.
    pub fencing_token: FencingToken,
    /// When it ends unless it is renewed.
    pub until: Instant,
}

/// Whether this process leads, who holds the Lease, and what its annotations ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderState {
    /// Our term, if we lead.
    pub term: Option<Term>,
    /// Who holds the Lease, as far as is known.
    pub holder: String,
    /// Why nothing is to be written, where somebody froze writing.
    pub frozen: Option<String>,
    /// Why nothing is to be written to single providers, by their names.
    pub frozen_providers: BTreeMap<String, String>,
    /// The word by which somebody has confirmed held deletes.
    pub confirmed: Option<String>,
    /// Why the Lease could not be renewed.
    pub trouble: Option<Error>,
}

impl LeaderState {
    /// The names of the providers to which nothing is to be written, as text.
    pub fn frozen_note(&self) -> Option<String> {
        let names: Vec<&str> = self.frozen_providers.keys().map(String::as_str).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Whether we lead at this moment.
    pub fn leads(&self) -> bool {
        self.term.as_ref().is_some_and(|term| Instant::now() < term.until)
    }
}

/// A running leader election. Ending it releases the Lease.
#[derive(Debug)]
pub struct Election {
    /// The current state.
    pub leader_state: watch::Receiver<LeaderState>,
    /// The Lease, as `kubectl` takes it: `lease/gatepost -n gatepost`.
    pub lease: String,
    used: watch::Sender<Option<(String, Instant)>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl ElectionSettings {
    /// The usual times.
    pub fn new(namespace: &str, name: &str, identity: &str) -> ElectionSettings {
        let (namespace, name, identity) = (namespace.to_owned(), name.to_owned(), identity.to_owned());
        ElectionSettings { namespace, name, identity, duration: Duration::from_secs(15), every: Duration::from_secs(2) }
    }

    /// Starts the task that acquires and renews the Lease.
    pub fn start(self, connection: &Connection) -> Election {
        let (tell, leader_state) = watch::channel(LeaderState::default());
        let (stop, stopped) = oneshot::channel();
        let (used, is_used) = watch::channel(None);
        let lease = format!("lease/{} -n {}", self.name, self.namespace);
        let runner =
            ElectionTask { connection: connection.clone(), settings: self, seen: None, since: None, used: is_used };
        Election { leader_state, lease, used, stop: Some(stop), task: tokio::spawn(runner.run(tell, stopped)) }
    }
}

impl Election {
    /// What a word confirmed was done. It is taken off the Lease, but not at once: other replicas whose provider is their own
    /// are to see it as well.
    pub fn used(&self, word: &str) {
        self.used.send_if_modified(|used| {
            let is_new = used.as_ref().is_none_or(|(known, _)| known != word);
            if is_new {
                *used = Some((word.to_owned(), Instant::now()));
            }
            is_new
        });
    }

    /// Gives the Lease up, so that another replica takes over at once.
    pub async fn end(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = tokio::time::timeout(Duration::from_secs(3), &mut self.task).await;
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct ElectionTask {
    connection: Connection,
    settings: ElectionSettings,
    /// The Lease of somebody else as it was last seen, and since when by our clock.
    seen: Option<(String, Instant)>,
    /// When our term began, as written in the Lease.
    since: Option<String>,
    /// The word that was used up, and when.
    used: watch::Receiver<Option<(String, Instant)>>,
}

impl ElectionTask {
    async fn run(mut self, tell: watch::Sender<LeaderState>, mut stopped: oneshot::Receiver<()>) {
        loop {
            let (before, asked) = (tell.borrow().clone(), Instant::now());
            let leader_state = self.look(&before, asked).await;
            tell.send_replace(leader_state);
            tokio::select! {
                _ = &mut stopped => break,
                () = sleep(self.pause(asked)) => {}
            }
        }
        let leads = tell.borrow().leads();
        tell.send_replace(LeaderState::default());
        if leads {
            let _ = self.release().await;
        }
    }

    /// How long to wait for the next look. A server that answers late is asked the sooner, so that the answer comes within the term.
    fn pause(&self, asked: Instant) -> Duration {
        let every = self.settings.every;
        every.saturating_sub(asked.elapsed()).max(every / 4)
    }

    /// Looks at the Lease, renews or takes it.
    async fn look(&mut self, before: &LeaderState, asked: Instant) -> LeaderState {
        match self.round(asked).await {
            Ok(leader_state) => leader_state,
            // Somebody else wrote in between; the next look tells who.
            Err(error) if error.is_conflict() => LeaderState { term: None, trouble: None, ..before.clone() },
            Err(error) => {
                let term = before.term.clone().filter(|term| asked < term.until);
                LeaderState { term, trouble: Some(error), ..before.clone() }
            }
        }
    }

    async fn round(&mut self, asked: Instant) -> Result<LeaderState> {
        let lease = match self.connection.get(&self.path()).await {
            Ok(lease) => lease,
            Err(error) if error.is_not_found() => return self.create(asked).await,
            Err(error) => return Err(error),
        };
        let (frozen, confirmed) = (annotation(&lease, FREEZE), annotation(&lease, CONFIRM));
        let frozen_providers = annotations_of_providers(&lease);
        let holder = lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_ours = holder == self.settings.identity;
        if is_ours || holder.is_empty() || self.is_over(&lease, asked) {
            let term = self.take(lease, is_ours, asked).await?;
            let holder = self.settings.identity.clone();
            return Ok(LeaderState { term: Some(term), holder, frozen, frozen_providers, confirmed, trouble: None });
        }
        self.since = None;
        Ok(LeaderState { term: None, holder, frozen, frozen_providers, confirmed, trouble: None })
    }

    /// Whether somebody else has let the Lease lie for its whole duration, by our clock.
    fn is_over(&mut self, lease: &Value, now: Instant) -> bool {
        let version = lease.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        let seconds = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64).unwrap_or(15);
        match &self.seen {
            Some((seen, since)) if seen == version => {
                now.duration_since(*since) > Duration::from_secs(seconds.min(3600))
            }
            _ => {
                self.seen = Some((version.to_owned(), now));
                false
            }
        }
    }

    /// Renews our Lease, or takes one that is free.
    async fn take(&mut self, mut lease: Value, is_ours: bool, asked: Instant) -> Result<Term> {
        let now = moment();
        let spec = &mut lease["spec"];
        let transitions = spec["leaseTransitions"].as_u64().unwrap_or_default();
        let is_renewal = is_ours && self.since.is_some();
        if !is_renewal {
            self.since = Some(now.clone());
            spec["acquireTime"] = now.clone().into();
            spec["leaseTransitions"] = (transitions + 1).into();
        }
        spec["holderIdentity"] = self.settings.identity.clone().into();
        spec["leaseDurationSeconds"] = self.settings.duration.as_secs().max(1).into();
        spec["renewTime"] = now.into();
        self.take_off_used(&mut lease, asked);
        let written = self.connection.send(Method::PUT, &self.path(), &lease).await;
        if written.is_err() && !is_renewal {
            self.since = None;
        }
        Ok(self.term(&written?, asked))
    }

    /// Takes a word off that was used up a while ago; another word stays.
    fn take_off_used(&self, lease: &mut Value, now: Instant) {
        let used = self.used.borrow().clone();
        let Some((word, _)) = used.filter(|(_, since)| now > *since + self.settings.duration) else { return };
        let annotations = lease.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        if let Some(annotations) = annotations.filter(|all| all.get(CONFIRM).is_some_and(|value| *value == word)) {
            annotations.remove(CONFIRM);
        }
    }

    async fn create(&mut self, asked: Instant) -> Result<LeaderState> {
        let now = moment();
        let spec = json!({
            "holderIdentity": self.settings.identity, "leaseDurationSeconds": self.settings.duration.as_secs().max(1),
            "acquireTime": now, "renewTime": now, "leaseTransitions": 1,
        });
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
            "metadata": {"namespace": self.settings.namespace, "name": self.settings.name},
        });
        let written = self.connection.send(Method::POST, &self.folder(), &lease).await;
        let written = written.map_err(|error| self.without_namespace(error))?;
        self.since = Some(now);
        let holder = self.settings.identity.clone();
        Ok(LeaderState { term: Some(self.term(&written, asked)), holder, ..LeaderState::default() })
    }

    /// The failure to make a Lease, with what to do where its namespace is missing.
    fn without_namespace(&self, error: Error) -> Error {
        let Problem::NotFound(_) = &error.problem else { return error };
        let namespace = &self.settings.namespace;
        let message = format!(
            "namespace {namespace} of the Lease does not exist; create it with `kubectl create namespace {namespace}`, \
             or name another with --controller-namespace"
        );
        Error { problem: Problem::NotFound(message), ..error }
    }

    /// The term that a Lease gives us. It ends by our clock when others still have a third of their time to wait.
    fn term(&self, lease: &Value, asked: Instant) -> Term {
        let number = lease.pointer("/spec/leaseTransitions").and_then(Value::as_u64).unwrap_or_default();
        let since = self.since.as_deref().unwrap_or_default();
        let fencing_token = FencingToken(format!("term={number},holder={},since={since}", self.settings.identity));
        Term { fencing_token, until: asked + self.settings.duration * 2 / 3 }
    }

    async fn release(&mut self) -> Result<()> {
        let mut lease = self.connection.get(&self.path()).await?;
        if lease.pointer("/spec/holderIdentity").and_then(Value::as_str) != Some(&self.settings.identity) {
            return Ok(());
        }
        lease["spec"]["holderIdentity"] = "".into();
        lease["spec"]["leaseDurationSeconds"] = 1.into();
        self.connection.send(Method::PUT, &self.path(), &lease).await.map(drop)
    }

    fn folder(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.settings.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.folder(), self.settings.name)
    }
}

/// An annotation of the Lease, without blanks around it; nothing where it is not there.
fn annotation(lease: &Value, name: &str) -> Option<String> {
    let value = lease.pointer("/metadata/annotations")?.get(name)?.as_str()?;
    Some(value.trim().to_owned())
}

/// The annotations that stop writes to one provider, by the name behind the dot.
fn annotations_of_providers(lease: &Value) -> BTreeMap<String, String> {
    let all = lease.pointer("/metadata/annotations").and_then(Value::as_object);
    let named = all.into_iter().flatten().filter_map(|(key, value)| {
        let name = key.strip_prefix(FREEZE)?.strip_prefix('.')?;
        Some((name.to_owned(), value.as_str()?.trim().to_owned()))
    });
    named.collect()
}

/// This moment as Kubernetes writes it, to the microsecond.
pub(crate) fn moment() -> String {
    let now = Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
