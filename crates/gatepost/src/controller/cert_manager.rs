//! The issuer `cert-manager` in a cluster: writes Certificate objects and reads their state.
//!
//! This module connects the values of `tls` with the objects of `kube`, which do not depend on each other. There is one
//! object per Secret, written only if it differs from what is wanted; every write checks the permit and names the
//! resource version that was read. Objects and Secrets that somebody else created are reported and never changed. An
//! object is deleted when no listener has referred to its Secret for a while, or when another issuer fills the Secret,
//! never earlier; Secrets are only read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use gatepost_core::model::{Key, Kind, Str};
use gatepost_core::plan::Policy;
use gatepost_core::publication::{Certificate, Desired};
use gatepost_core::reason::{self, Reason};
use gatepost_core::snapshot::{Snapshot, Visibility};
use gatepost_kube::mirror::{Mirror, MirrorSnapshot, MirrorTimeouts};
use gatepost_kube::objects::StoredObject;
use gatepost_kube::resource::GroupVersionResource;
use gatepost_kube::{Connection, Error};
use gatepost_tls::certifier::{IssuanceEvent, IssuanceEventKind, IssuanceState, Round, Waiting};
use gatepost_tls::issuers::cert_manager::names::{NameChanges, NameDelays, RequestedNames};
use gatepost_tls::issuers::cert_manager::{
    IssuerRef, Judgement, OWNER, OWNER_LABEL, is_ours, judge, manifest, names_of, renewal_of, request_of, request_says,
    secret_of, trimmed,
};
use serde_json::Value;

use super::permit::Permit;
use crate::certificates::cert_manager::obstacle;
use crate::certificates::is_own;

mod secret;
mod there;
mod words;

use secret::Content;
use there::{Case, There, named};
use words::{advised, failed, soon, unseen};

/// Settings of the issuer.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether it issues certificates whose policy names no issuer.
    pub is_usual: bool,
    /// The issuer of certificates whose policy names none.
    pub issuer: Option<IssuerRef>,
    /// Delays of changed names.
    pub waits: NameDelays,
    /// Maximum number of names in a certificate.
    pub most_names: usize,
    /// Which kinds of writes are allowed.
    pub policy: Policy,
    /// Whether nothing is written.
    pub only_looks: bool,
}

/// The controller's connection to cert-manager.
#[derive(Debug)]
pub struct CertManager {
    connection: Connection,
    permit: Permit,
    settings: Settings,
    /// A mirror of the Certificate objects; started when the first certificate needs it.
    mirror: Option<Mirror>,
    names: NameChanges,
    looks: BTreeMap<Key, Look>,
    /// Whether objects of an earlier run were looked for.
    has_looked: bool,
}

/// The content of a Secret, at a resource version of its Certificate object.
#[derive(Debug)]
struct Look {
    version: String,
    at: Instant,
    content: Content,
}

/// The resource of Certificate objects.
pub const CERTIFICATES: GroupVersionResource =
    GroupVersionResource { group: "cert-manager.io", version: "v1", plural: "certificates" };
const REQUESTS: GroupVersionResource =
    GroupVersionResource { group: "cert-manager.io", version: "v1", plural: "certificaterequests" };
/// Maximum time that the first pass waits for the objects; later passes are started by their changes.
const FIRST_READ: Duration = Duration::from_secs(5);
/// How long the content of a Secret is cached while its Certificate object is unchanged.
const FRESH: Duration = Duration::from_secs(600);
/// The same without a Certificate object, where no event reports a change.
const FRESH_WITHOUT: Duration = Duration::from_secs(5);
/// Maximum number of objects written in one round, which bounds its duration.
const MOST_WRITES: usize = 100;
/// Maximum number of CertificateRequests read in one round.
const MOST_REQUESTS: usize = 20;

impl CertManager {
    /// Makes no request yet.
    pub fn new(connection: Connection, permit: Permit, settings: Settings) -> CertManager {
        let names = NameChanges::new(settings.waits);
        CertManager { connection, permit, settings, mirror: None, names, looks: BTreeMap::new(), has_looked: false }
    }

    /// Waits until Certificate objects change; forever while no certificate needs them.
    pub async fn changed(&mut self) {
        match &mut self.mirror {
            Some(mirror) => mirror.changed().await,
            None => std::future::pending().await,
        }
    }

    /// The part of a desired state that a round needs; empty if no certificate needs cert-manager.
    pub fn asked(&self, desired: &Desired) -> Desired {
        let is_asked =
            self.mirror.is_some() || self.settings.is_usual || desired.certificates.iter().any(|c| self.is_theirs(c));
        match is_asked {
            true => {
                let (certificates, kept_names) = (desired.certificates.clone(), desired.kept_names.clone());
                Desired { certificates, kept_names, ..Desired::default() }
            }
            false => Desired::default(),
        }
    }

    /// Creates, changes and deletes objects as far as permitted, and returns the state of every certificate. `held` are the
    /// names whose records are kept because it is not known whether they ought to be gone.
    pub async fn round(&mut self, desired: &Desired, held: &BTreeSet<Str>, snapshot: &Snapshot, now: i64) -> Round {
        let wanted: Vec<&Certificate> = desired.certificates.iter().filter(|c| self.is_theirs(c)).collect();
        let mut work = Work { round: Round::default(), writes: 0, requests: 0, now };
        let is_asked = self.mirror.is_some() || !wanted.is_empty() || self.settings.is_usual;
        if !is_asked && !self.is_anything_left().await {
            return work.round;
        }
        let copied = self.copied().await;
        if let Some((reason, why)) = unseen(&copied.sight) {
            let stuck =
                |certificate: &&Certificate| state(certificate, Content::default(), Some((reason, why.clone())), now);
            work.round.states = wanted.iter().map(stuck).collect();
            return work.round;
        }
        let there = There::of(&copied);
        for certificate in &wanted {
            let case = Case { certificate, desired, held, snapshot, there: &there };
            let state = self.process(&case, &mut work).await;
            work.round.states.push(state);
        }
        self.delete_unused(&wanted, desired, snapshot, &there, &mut work).await;
        self.names.forget_others(|secret| there.by_secret.contains_key(secret));
        let named: BTreeSet<&Key> = wanted.iter().map(|certificate| &certificate.secret).collect();
        self.looks.retain(|secret, _| named.contains(secret));
        work.round
    }

    /// Whether an earlier run left objects that must be deleted. Looked up once.
    async fn is_anything_left(&mut self) -> bool {
        if self.has_looked || self.settings.only_looks || self.settings.policy != Policy::Sync {
            return false;
        }
        let found = CERTIFICATES.has_labelled(&self.connection, OWNER_LABEL, OWNER).await;
        // Without permission to list objects, they cannot be deleted either, so any permanent error ends the search.
        self.has_looked = !found.as_ref().is_err_and(Error::is_transient);
        found.unwrap_or(false)
    }

    /// Whether cert-manager issues a certificate.
    fn is_theirs(&self, certificate: &Certificate) -> bool {
        match &certificate.issuer {
            Some(_) => !is_own(certificate),
            None => self.settings.is_usual,
        }
    }

    async fn copied(&mut self) -> MirrorSnapshot {
        let connection = &self.connection;
        let mirror = match &mut self.mirror {
            Some(mirror) => mirror,
            none => {
                let mirror = none.insert(Mirror::start(connection, CERTIFICATES, trimmed, MirrorTimeouts::default()));
                let _ = tokio::time::timeout(FIRST_READ, mirror.read()).await;
                mirror
            }
        };
        mirror.now()
    }

    /// Reads one Secret, and writes its Certificate object if that differs from what is wanted.
    async fn process(&mut self, case: &Case<'_>, work: &mut Work) -> IssuanceState {
        let secret = &case.certificate.secret;
        let found = case.there.ours(secret);
        let current = found.map(|found| names_of(&found.value));
        let kept: Vec<Str> = case.kept(current.as_deref());
        let asked = RequestedNames { wanted: &case.certificate.dns_names, kept: &kept, most: self.settings.most_names };
        let target = self.names.target(secret, asked, current.as_deref(), work.now);
        work.wake(target.wake);
        self.names.is_wanted(secret);
        let content = match self.look(secret, found).await {
            Ok(content) => content,
            Err(error) => {
                let why = format!("Secret {secret} cannot be read: {}", advised(&error));
                return state(
                    case.certificate,
                    Content::default(),
                    Some((reason::CERTIFICATE_NOT_STORED, why)),
                    work.now,
                );
            }
        };
        let named = Certificate { dns_names: target.names, ..case.certificate.clone() };
        let obstacle = match manifest(&named, case.policy(), self.settings.issuer.as_ref()) {
            Ok(body) => self.reconcile(case, &body, &content, work).await,
            Err(error) => Some((reason::ISSUER_UNUSABLE, error.to_string())),
        };
        let renewal = found.and_then(|found| renewal_of(&found.value));
        IssuanceState { renewal, ..state(case.certificate, content, obstacle, work.now) }
    }

    /// Writes what is needed and permitted, and returns why the certificate is not ready, if so.
    async fn reconcile(
        &mut self,
        case: &Case<'_>,
        body: &Value,
        content: &Content,
        work: &mut Work,
    ) -> Option<(Reason, String)> {
        let secret = &case.certificate.secret;
        let values = case.there.concerned(secret);
        let found = case.there.ours(secret);
        match (judge(body, &values, content.leaf.as_ref(), work.now), found) {
            (Judgement::Pending(why), found) => {
                let message = self.request(found, work).await;
                obstacle(Judgement::Pending(message.unwrap_or(why)))
            }
            (Judgement::Differs(fields), Some(found)) => Some(self.change(found, body, &fields, work).await),
            (Judgement::Missing, _) => Some(self.make(secret, body, content, work).await),
            (judgement, _) => obstacle(judgement),
        }
    }

    /// Creates an object. The mirror may be stale, so that Secret and objects are read again first: somebody may have
    /// created the Secret, or another object for it.
    async fn make(&mut self, secret: &Key, body: &Value, content: &Content, work: &mut Work) -> (Reason, String) {
        if let Some(stranger) = &content.stranger {
            return (reason::CERTIFICATE_FOREIGN, stranger.clone());
        }
        if let Some(why) = self.refusal(work) {
            return (reason::CERTIFICATE_PENDING, format!("its Certificate object is not made: {why}"));
        }
        let made = async {
            let stored = CERTIFICATES.list(&self.connection, &secret.namespace).await?;
            let values: Vec<&Value> = stored.iter().map(|stored| &stored.value).collect();
            let stranger = Content::read(&self.connection, secret).await?.stranger;
            match (judge(body, &values, None, work.now), stranger) {
                (Judgement::Missing, None) => CERTIFICATES.make(&self.connection, body).await.map(|()| None),
                (Judgement::Missing, Some(stranger)) => Ok(Some((reason::CERTIFICATE_FOREIGN, stranger))),
                (judgement, _) => Ok(Some(obstacle(judgement).unwrap_or_else(soon))),
            }
        };
        match made.await {
            Ok(Some(obstacle)) => obstacle,
            Ok(None) => {
                work.wrote(
                    secret,
                    IssuanceEventKind::Ordered,
                    format!("is asked of cert-manager for {}", names_of(body).join(", ")),
                );
                soon()
            }
            Err(error) => failed("made", &error),
        }
    }

    async fn change(
        &mut self,
        found: &StoredObject,
        body: &Value,
        fields: &[String],
        work: &mut Work,
    ) -> (Reason, String) {
        let fields = fields.join(", ");
        if self.settings.policy == Policy::CreateOnly {
            return (
                reason::KEPT_BY_POLICY,
                format!("`--policy create-only` leaves its Certificate object as it is: {fields}"),
            );
        }
        if let Some(why) = self.refusal(work) {
            return (reason::CERTIFICATE_PENDING, format!("its Certificate object is not changed ({fields}): {why}"));
        }
        let Some(secret) = secret_of(body) else { return soon() };
        match found.apply(&self.connection, body).await {
            Ok(()) => {
                work.wrote(
                    &secret,
                    IssuanceEventKind::Ordered,
                    format!("is asked of cert-manager anew ({fields}) for {}", names_of(body).join(", ")),
                );
                soon()
            }
            Err(error) => failed("changed", &error),
        }
    }

    /// Deletes our objects whose certificates cert-manager no longer issues.
    async fn delete_unused(
        &mut self,
        wanted: &[&Certificate],
        desired: &Desired,
        snapshot: &Snapshot,
        there: &There<'_>,
        work: &mut Work,
    ) {
        let wanted: BTreeSet<&Key> = wanted.iter().map(|certificate| &certificate.secret).collect();
        let ours = there.objects.values().filter(|stored| is_ours(&stored.value));
        let idle: Vec<(Key, &StoredObject)> =
            ours.filter_map(|stored| Some((secret_of(&stored.value)?, stored))).collect();
        let idle: Vec<_> = idle.into_iter().filter(|(secret, _)| !wanted.contains(secret)).collect();
        // If not all policies are visible, the issuer of a certificate is not known.
        let is_known = *snapshot.visibility(Kind::TlsPolicy) == Visibility::Complete;
        if idle.is_empty() || !is_known || self.settings.policy != Policy::Sync {
            return;
        }
        let named = named(snapshot);
        for (secret, stored) in idle {
            let is_elsewhere = desired.certificates.iter().any(|certificate| certificate.secret == secret);
            if self.may_delete(&secret, stored, is_elsewhere, named.as_ref(), work).await {
                self.remove(&secret, stored, work).await;
            }
        }
    }

    /// Whether an object may be deleted. If another issuer fills its Secret it may go at once, unless the Secret would
    /// be garbage-collected with it.
    async fn may_delete(
        &mut self,
        secret: &Key,
        stored: &StoredObject,
        is_elsewhere: bool,
        named: Option<&BTreeSet<Key>>,
        work: &mut Work,
    ) -> bool {
        if is_elsewhere {
            let uid = stored.value["metadata"]["uid"].as_str().unwrap_or_default();
            let content = Content::read(&self.connection, secret).await;
            return content.is_ok_and(|content| !content.owners.iter().any(|owner| owner == uid));
        }
        // If not all listeners are visible, one of them may still refer to the Secret.
        if named.is_none_or(|named| named.contains(secret)) {
            self.names.is_wanted(secret);
            return false;
        }
        match self.names.may_go(secret, work.now) {
            Ok(()) => true,
            Err(until) => {
                work.wake(Some(until));
                false
            }
        }
    }

    async fn remove(&mut self, secret: &Key, stored: &StoredObject, work: &mut Work) {
        if self.refusal(work).is_some() {
            return;
        }
        match stored.delete(&self.connection).await {
            Ok(()) => work.wrote(secret, IssuanceEventKind::LetGo, "is no longer asked of cert-manager".to_owned()),
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => tracing::warn!(secret = %secret, error = %error, "a Certificate could not be removed"),
        }
    }

    /// Why nothing may be written at the moment, if so.
    fn refusal(&self, work: &Work) -> Option<String> {
        if self.settings.only_looks {
            return Some("nothing is written in observe mode".to_owned());
        }
        let is_full = work.writes >= MOST_WRITES;
        self.permit.refusal().or_else(|| is_full.then(|| "others come first".to_owned()))
    }

    /// The content of a Secret; read again when its object changed, or after [`FRESH`].
    async fn look(&mut self, secret: &Key, found: Option<&StoredObject>) -> Result<Content, Error> {
        let version = found.map(StoredObject::version).unwrap_or_default();
        let fresh = if found.is_some() { FRESH } else { FRESH_WITHOUT };
        let known = self.looks.get(secret).filter(|look| look.version == version && look.at.elapsed() < fresh);
        if let Some(known) = known {
            return Ok(known.content.clone());
        }
        let content = Content::read(&self.connection, secret).await?;
        let look = Look { version: version.to_owned(), at: Instant::now(), content: content.clone() };
        self.looks.insert(secret.clone(), look);
        Ok(content)
    }

    /// The issuer's message on the current CertificateRequest.
    async fn request(&self, found: Option<&StoredObject>, work: &mut Work) -> Option<String> {
        let found = found.filter(|_| work.requests < MOST_REQUESTS)?;
        work.requests += 1;
        request_message(&self.connection, found).await
    }
}

/// The issuer's message on the current CertificateRequest of an object; `None` without permission to read it.
pub async fn request_message(connection: &Connection, found: &StoredObject) -> Option<String> {
    let key = request_of(&found.value)?;
    let request = REQUESTS.read(connection, &key).await.ok()??;
    request_says(&request.value).map(|words| format!("cert-manager says: {words}"))
}

/// The results and limits of a round.
struct Work {
    round: Round,
    writes: usize,
    requests: usize,
    now: i64,
}

impl Work {
    fn wake(&mut self, at: Option<i64>) {
        self.round.wake = [self.round.wake, at].into_iter().flatten().min();
    }

    fn wrote(&mut self, secret: &Key, what: IssuanceEventKind, text: String) {
        self.writes += 1;
        self.round.events.push(IssuanceEvent { secret: secret.clone(), what, text });
    }
}

fn state(certificate: &Certificate, content: Content, obstacle: Option<(Reason, String)>, now: i64) -> IssuanceState {
    IssuanceState {
        secret: certificate.secret.clone(),
        wanted: certificate.dns_names.clone(),
        held: content.leaf,
        unusable: content.unusable,
        order: None,
        renewal: None,
        waiting: obstacle.map(|(reason, why)| Waiting { until: now, reason, why }),
        failing: Vec::new(),
        now,
    }
}
