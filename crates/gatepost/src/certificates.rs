//! Certificates in the loop: what is wanted of them, what their orders need of DNS, and how that shows in reports.
//!
//! The loop asks for the TXT values of open orders before a pass and lets the orders advance behind it. Nothing here decides about
//! certificates, and nothing here writes DNS: values go the way of all records.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatepost_core::explain::{Publication, SecretContent};
use gatepost_core::model::{Key, Kind, OWN_GROUP, ObjectRef, Str};
use gatepost_core::policy::status::enforced;
use gatepost_core::policy::{HostnameReport, HostnameState};
use gatepost_core::publication::{Certificate, Desired};
use gatepost_core::reason;
use gatepost_core::snapshot::Snapshot;
use gatepost_tls::Error;
use gatepost_tls::budget::Forecast;
use gatepost_tls::certifier::{Certifier, IssuanceState, Round};
use gatepost_tls::decide::WantedCertificate;
use gatepost_tls::key::KeyAlgorithm;

use crate::run::ChallengeRecords;

pub mod cert_manager;
mod challenge_servers;

pub use challenge_servers::ChallengeServers;

/// The certificates of a run.
#[derive(Debug)]
pub struct Certificates {
    certifier: Certifier,
    challenge_servers: ChallengeServers,
    /// What the last round came to.
    round: Round,
    /// SecretContent for as long as nobody else may work on the same certificates.
    _lock: Option<File>,
}

/// After this many seconds certificates are looked at again where that failed altogether.
const LOOK_AGAIN: i64 = 60;

impl Certificates {
    /// Certificates that are made here.
    pub fn new(certifier: Certifier, challenge_servers: ChallengeServers) -> Self {
        Certificates { certifier, challenge_servers, round: Round::default(), _lock: None }
    }

    /// The same, and nobody else may work on these certificates while the lock is held.
    pub fn locked(self, lock: File) -> Self {
        Certificates { _lock: Some(lock), ..self }
    }

    /// The TXT values that orders need, and those that they needed once.
    pub fn challenge_records(&self) -> ChallengeRecords {
        ChallengeRecords { challenges: self.certifier.challenges(), retired: self.certifier.retired() }
    }

    /// The certificate to trust, where the issuer is an authority of its own.
    pub fn root(&self) -> Option<&str> {
        self.certifier.issuer().root()
    }

    /// What the last round came to.
    pub fn round(&self) -> &Round {
        &self.round
    }

    /// How long until an open order goes on; nothing where none is open.
    pub fn pause(&self) -> Option<Duration> {
        let open = self.round.states.iter().filter_map(|state| state.order.as_ref());
        let wake = open.map(|order| order.wake).min()?;
        let seconds = u64::try_from(wake.saturating_sub(now())).unwrap_or(0);
        Some(Duration::from_millis(200).max(Duration::from_secs(seconds)))
    }

    /// Names that have no certificate, with what is in their way, one line each.
    pub fn missing(&self) -> Vec<String> {
        let line = |state: &IssuanceState, name: &Str| {
            let (reason, why) = state.obstacle(name)?;
            let row = reason.row();
            Some(format!("certificate {} for {name}: {why} [{} {}]", state.secret, row.code, row.name))
        };
        let states = self.round.states.iter();
        states.flat_map(|state| state.wanted.iter().filter_map(move |name| line(state, name))).collect()
    }

    /// Notes that values of orders that are done are gone from their zones.
    pub async fn forget_retired(&mut self) -> Result<(), Error> {
        self.certifier.forget_retired().await
    }

    /// Lets the orders advance.
    pub async fn advance(&mut self, wants: &BTreeMap<Key, WantedCertificate>, now: i64) -> Result<(), Error> {
        match self.certifier.advance(wants, &self.challenge_servers, now).await {
            Ok(round) => self.round = round,
            Err(error) => {
                // What stands in the way of everything is looked at again, and not at once.
                self.round.wake = Some(now + LOOK_AGAIN);
                self.round.needs_publishing = false;
                return Err(error);
            }
        }
        Ok(())
    }

    /// What is known of every certificate, without asking anybody.
    pub async fn look(&mut self, desired: &Desired, snapshot: &Snapshot, now: i64) -> Result<&[IssuanceState], Error> {
        self.round.states = self.certifier.look(&wants(desired, snapshot), now).await?;
        Ok(&self.round.states)
    }

    /// What it would take to have all certificates.
    pub async fn forecast(&self, desired: &Desired, snapshot: &Snapshot, now: i64) -> Result<Forecast, Error> {
        self.certifier.forecast(&wants(desired, snapshot), now).await
    }
}

/// The seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// How long until a moment in seconds since 1970; no time where it is over.
pub fn until(moment: i64) -> Duration {
    Duration::from_secs(u64::try_from(moment.saturating_sub(now())).unwrap_or(0))
}

/// What each Secret is to hold, where this program makes it.
pub fn wants(desired: &Desired, snapshot: &Snapshot) -> BTreeMap<Key, WantedCertificate> {
    let made = desired.certificates.iter().filter(|certificate| is_own(certificate));
    made.map(|certificate| (certificate.secret.clone(), want(certificate, desired, snapshot))).collect()
}

/// Keeps names in certificates whose records a plan keeps: what was made for a route stays until its verdict is known.
pub fn keep_held(wants: &mut BTreeMap<Key, WantedCertificate>, held: BTreeSet<Str>) {
    let held = Arc::new(held);
    wants.values_mut().for_each(|want| want.held = held.clone());
}

/// Whether a certificate is made by this program: nobody else is named as its issuer.
pub fn is_own(certificate: &Certificate) -> bool {
    certificate.issuer.as_ref().is_none_or(|issuer| &*issuer.group == OWN_GROUP)
}

fn want(certificate: &Certificate, desired: &Desired, snapshot: &Snapshot) -> WantedCertificate {
    let policy = certificate.policy.as_ref().and_then(|key| snapshot.tls_policies.get(key));
    let kept = desired.kept_names.iter().filter(|kept| kept.secret == certificate.secret);
    let part = |name: &str| {
        let parts = policy.map(|policy| &policy.private_key[..]).unwrap_or_default();
        parts.iter().find(|(key, _)| &**key == name).map(|(_, value)| &**value)
    };
    WantedCertificate {
        names: certificate.dns_names.clone(),
        kept: kept.map(|kept| kept.hostname.clone()).collect(),
        held: Arc::default(),
        renew_before: policy.and_then(|policy| policy.renew_before),
        duration: policy.and_then(|policy| policy.duration),
        // Keys of other kinds cannot be made here; the report on the policy says so. Without a policy nobody asks for another key.
        algorithm: policy.and_then(|_| KeyAlgorithm::of(part("algorithm"), part("size")).ok()),
    }
}

/// Puts what became of certificates into the reports on TLSPolicies: a hostname is served when a certificate that holds it is
/// there, not when one is wanted.
pub fn reflect(desired: &mut Desired, snapshot: &Snapshot, states: &[IssuanceState]) {
    reflect_by(desired, snapshot, |secret, hostname| obstacle(secret, hostname, states));
}

/// The same where nothing is known of any certificate but these, and why.
pub fn withhold(
    desired: &mut Desired,
    snapshot: &Snapshot,
    states: &[IssuanceState],
    reason: reason::Reason,
    why: &str,
) {
    reflect_by(desired, snapshot, |secret, hostname| match state_of(secret, states) {
        Some(state) => state.obstacle(&hostname.hostname),
        None => issued_elsewhere(secret).or_else(|| Some((reason, why.to_owned()))),
    });
}

/// Why a name has no certificate: a row of the catalog, and words.
type Obstacle = Option<(reason::Reason, String)>;

fn reflect_by(
    desired: &mut Desired,
    snapshot: &Snapshot,
    obstacle: impl Fn(&Certificate, &HostnameReport) -> Obstacle,
) {
    let by_listener = secrets_by_listener(desired);
    for report in desired.policies.iter_mut().filter(|report| report.policy.kind == Kind::TlsPolicy) {
        let before = report.hostnames.clone();
        for hostname in report.hostnames.iter_mut().filter(|hostname| hostname.state == HostnameState::Served) {
            let secrets = by_listener.get(&hostname.listener.to_string());
            let obstacle = secrets.into_iter().flatten().find_map(|secret| obstacle(secret, hostname));
            if let Some((reason, message)) = obstacle {
                hostname.state = HostnameState::Pending(reason);
                hostname.message = message;
            }
        }
        if before != report.hostnames {
            let note = note(&report.policy, snapshot);
            let enforced = enforced(&report.hostnames, &note);
            let places = report.conditions.iter_mut().filter(|condition| condition.kind == enforced.kind);
            places.for_each(|condition| *condition = enforced.clone());
        }
    }
}

/// Puts what a store holds in the place of what Secrets among the objects hold.
pub fn overlay(published: &mut Publication, states: &[IssuanceState], hostname: &str) {
    for walk in &mut published.certificates {
        let Some(state) = states.iter().find(|state| state.secret == walk.secret) else { continue };
        walk.held = match (&state.held, &state.unusable) {
            (Some(leaf), _) => SecretContent::Certificate { covers: leaf.covers(hostname), not_after: leaf.not_after },
            (None, Some(why)) => SecretContent::Unusable(why.as_str().into()),
            (None, None) => SecretContent::Missing,
        };
    }
}

/// What is to be told of a policy beside its hostnames.
fn note(policy: &ObjectRef, snapshot: &Snapshot) -> String {
    let Some(policy) = snapshot.tls_policies.get(&policy.key) else { return String::new() };
    let part = |name: &str| policy.private_key.iter().find(|(key, _)| &**key == name).map(|(_, value)| &**value);
    KeyAlgorithm::of(part("algorithm"), part("size")).err().map(|error| error.to_string()).unwrap_or_default()
}

fn obstacle(secret: &Certificate, hostname: &HostnameReport, states: &[IssuanceState]) -> Obstacle {
    match state_of(secret, states) {
        Some(state) => state.obstacle(&hostname.hostname),
        None => issued_elsewhere(secret)
            .or_else(|| Some((reason::CERTIFICATE_PENDING, "its Secret has not been looked at yet".to_owned()))),
    }
}

fn state_of<'s>(certificate: &Certificate, states: &'s [IssuanceState]) -> Option<&'s IssuanceState> {
    states.iter().find(|state| state.secret == certificate.secret)
}

/// Says who issues a certificate that is not made by this program.
fn issued_elsewhere(secret: &Certificate) -> Obstacle {
    let issuer = secret.issuer.as_ref().filter(|_| !is_own(secret))?;
    let why = format!("{} {} is to issue it, which is not done from here", issuer.kind, issuer.name);
    Some((reason::ISSUER_UNUSABLE, why))
}

fn secrets_by_listener(desired: &Desired) -> BTreeMap<String, Vec<Certificate>> {
    let mut all: BTreeMap<String, Vec<Certificate>> = BTreeMap::new();
    for certificate in &desired.certificates {
        for listener in &certificate.listeners {
            all.entry(listener.to_string()).or_default().push(certificate.clone());
        }
    }
    all
}
