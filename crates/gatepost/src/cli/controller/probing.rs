//! Health checks of a controller: the leader probes, begins with what the leader before it knew, and leaves what it knows
//! in the status of policies.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use gatepost_core::health::ObservedHealth;
use gatepost_core::model::Key;
use gatepost_core::snapshot::Snapshot;
use gatepost_kube::{Connection, Error};

use crate::cli::flags::probing::ProbingFlags;
use crate::health::{self, ProbeHeaders, ProbeNumbers, Prober, SecretHeaders, headers, kept};
use crate::run::Pipeline;
use crate::run::desired::SharedDesired;

/// What a controller does about health checks.
pub(super) struct HealthChecks {
    connection: Connection,
    flags: ProbingFlags,
    /// The task that probes, while this replica leads.
    prober: Option<Prober>,
    /// Secrets with headers, with the time when they were read.
    secrets: BTreeMap<Key, (Instant, SecretHeaders)>,
}

/// How often the status of policies is asked for again, and after which pause.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// A Secret with headers is read again after so long.
const SECRET_AGE: Duration = Duration::from_secs(60);

impl HealthChecks {
    pub(super) fn new(connection: Connection, flags: ProbingFlags) -> Self {
        HealthChecks { connection, flags, prober: None, secrets: BTreeMap::new() }
    }

    /// Brings what is known of addresses up to date before a pass. Fails if it is not known what the leader before knew:
    /// then nothing may be written.
    pub(super) async fn prepare(
        &mut self,
        pipeline: &mut Pipeline,
        snapshot: &Snapshot,
        leads: bool,
    ) -> Result<(), Error> {
        if !leads {
            self.prober = None;
            pipeline.health = self.stored(snapshot).await?;
            return Ok(());
        }
        match &self.prober {
            Some(prober) => {
                if let Some(health) = prober.take_news() {
                    pipeline.health = health;
                }
            }
            None => {
                pipeline.health = self.stored(snapshot).await?;
                self.prober = Some(self.flags.start(pipeline));
            }
        }
        Ok(())
    }

    /// What the status of policies with a health check says; asked for several times if the API server does not answer.
    async fn stored(&self, snapshot: &Snapshot) -> Result<ObservedHealth, Error> {
        let mut tries = 0;
        loop {
            match self.statuses(snapshot).await {
                Err(error) if tries < TRIES && error.is_transient() => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                    tracing::debug!(error = %error, "the status of a policy is asked for again");
                }
                result => return result,
            }
        }
    }

    async fn statuses(&self, snapshot: &Snapshot) -> Result<ObservedHealth, Error> {
        let mut observed = ObservedHealth::default();
        for (key, policy) in snapshot.dns_policies.iter().filter(|(_, policy)| policy.health_check.is_some()) {
            let path = format!("/apis/gatepost.dev/v1alpha1/namespaces/{}/dnspolicies/{}", key.namespace, key.name);
            match self.connection.get(&path).await {
                Ok(object) => kept::take_status(&mut observed, &policy.meta.key, &object["status"]),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(observed)
    }

    /// Has the addresses probed that policies report now.
    pub(super) async fn aim(&mut self, desired: &SharedDesired, snapshot: &Snapshot) {
        if self.prober.is_none() {
            return;
        }
        let headers = self.headers(snapshot).await;
        if let Some(prober) = &self.prober {
            prober.aim(health::targets(&desired.read(), snapshot, &headers));
        }
    }

    /// The headers in the Secrets that policies name.
    async fn headers(&mut self, snapshot: &Snapshot) -> ProbeHeaders {
        let wanted: BTreeSet<Key> = health::header_secrets(snapshot).collect();
        self.secrets.retain(|key, _| wanted.contains(key));
        for key in wanted {
            let is_fresh = self.secrets.get(&key).is_some_and(|(at, _)| at.elapsed() < SECRET_AGE);
            if !is_fresh {
                let found = self.secret(&key).await;
                self.secrets.insert(key.clone(), (Instant::now(), found));
            }
        }
        self.secrets.iter().map(|(key, (_, headers))| (key.clone(), headers.clone())).collect()
    }

    async fn secret(&self, key: &Key) -> SecretHeaders {
        let path = format!("/api/v1/namespaces/{}/secrets/{}", key.namespace, key.name);
        let secret = self.connection.get(&path).await.map_err(|error| {
            format!("Secret {key} cannot be read: {error}; grant `get` on this Secret to the controller")
        })?;
        headers::of_secret(&secret).map_err(|error| format!("Secret {key}: {error}"))
    }

    /// Completes when something became known. Cancel safe.
    pub(super) async fn changed(&self) {
        match &self.prober {
            Some(prober) => prober.changed().await,
            None => std::future::pending().await,
        }
    }

    /// What was done so far.
    pub(super) fn numbers(&self) -> ProbeNumbers {
        self.prober.as_ref().map(Prober::numbers).unwrap_or_default()
    }
}
