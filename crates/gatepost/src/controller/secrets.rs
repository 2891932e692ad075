//! Stores key pairs, and notes about certificates, in Secrets.
//!
//! This module connects the traits of `tls` with the objects of `kube`, which do not depend on each other. Every write
//! checks the permit and names the resource version that was read, so that the API server refuses late writes of a
//! paused leader. A Secret that somebody else created is read and never written; no Secret is ever deleted. The content
//! of a Secret never gets into an error or a log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost_core::model::Key;
use gatepost_kube::objects::{StoredObject, make, stored};
use gatepost_kube::{Connection, Error as KubeError};
use gatepost_tls::chain::MAX_CHAIN;
use gatepost_tls::issuers::cert_manager::{OWNER, OWNER_LABEL};
use gatepost_tls::key::MAX_KEY;
use gatepost_tls::store::{Store, StoredPair, TlsKeyPair};
use gatepost_tls::{Call, Error, Result};
use serde_json::{Value, json};

use super::cert_manager::CERTIFICATES;
use super::permit::Permit;

mod notes;

pub use notes::SecretNotebook;

/// Key pairs in Secrets of type `kubernetes.io/tls`.
pub struct SecretStore {
    connection: Connection,
    permit: Permit,
    /// The issuer's name, written to the Secret as an annotation.
    issuer: &'static str,
    /// The root certificate, if the issuer is a CA of its own.
    root: Option<String>,
    seen: Mutex<BTreeMap<Key, Seen>>,
}

/// A Secret as of the last read.
struct Seen {
    at: Instant,
    /// Its resource version; `None` if it does not exist. The content is not stored twice.
    stored: Option<StoredObject>,
    kept: Option<StoredPair>,
}

/// The type of Secrets with a key pair.
const TYPE: &str = "kubernetes.io/tls";
/// The annotation in which cert-manager names the Certificate object of a Secret.
const FILLED_FOR: &str = "cert-manager.io/certificate-name";
/// The annotation with the issuer's name.
const ISSUER: &str = "gatepost.dev/issuer";
/// How long the content of a Secret is cached; writes name the resource version that was read anyway.
const FRESH: Duration = Duration::from_secs(5);
/// Additional caching time per existing Secret, which bounds the rate of reads.
const FRESH_EACH: Duration = Duration::from_millis(20);

impl SecretStore {
    /// A store for Secrets in all namespaces that may be written.
    pub fn new(connection: Connection, permit: Permit, issuer: &'static str, root: Option<&str>) -> SecretStore {
        SecretStore { connection, permit, issuer, root: root.map(str::to_owned), seen: Mutex::default() }
    }

    async fn load(&self, secret: &Key) -> Result<Option<StoredPair>> {
        if let Some(kept) = self.remembered(secret) {
            return Ok(kept);
        }
        let found = stored(&self.connection, &path(secret)).await.map_err(|error| failed("be read", secret, &error))?;
        let kept = match &found {
            Some(found) => {
                let filler = self.filler(secret, &found.value).await;
                Some(kept(secret, &found.value, filler))
            }
            None => None,
        };
        self.note(secret, found, kept.clone());
        Ok(kept)
    }

    async fn save(&self, secret: &Key, pair: &TlsKeyPair) -> Result<()> {
        // The resource version is needed for the precondition of the write.
        let keeper = self.load(secret).await?.and_then(|kept| kept.keeper);
        if let Some(why) = keeper.or_else(|| self.permit.refusal()) {
            return Err(Error::storage("be written", words(secret), why));
        }
        let known = self.seen().get(secret).and_then(|seen| seen.stored.clone());
        let written = match &known {
            Some(known) => known.patch(&self.connection, &self.content(pair)).await,
            None => make(&self.connection, &folder(&secret.namespace), &secret.name, &self.object(secret, pair)).await,
        };
        match written {
            Ok(found) => {
                self.note(secret, Some(found), Some(StoredPair { pair: Ok(pair.clone()), keeper: None }));
                Ok(())
            }
            Err(error) => {
                self.seen().remove(secret);
                Err(failed("be written", secret, &error))
            }
        }
    }

    /// The Certificate object for which cert-manager fills a Secret; `None` if it does not exist.
    async fn filler<'v>(&self, secret: &Key, value: &'v Value) -> Option<&'v str> {
        let name = value["metadata"]["annotations"][FILLED_FOR].as_str()?;
        let found = CERTIFICATES.read(&self.connection, &Key::new(&*secret.namespace, name)).await;
        // Without permission to read the object, it is assumed to exist.
        if matches!(found, Ok(None)) { None } else { Some(name) }
    }

    /// The cached content of a Secret, if it is recent.
    fn remembered(&self, secret: &Key) -> Option<Option<StoredPair>> {
        let seen = self.seen();
        let fresh = FRESH + FRESH_EACH * u32::try_from(seen.len()).unwrap_or(u32::MAX);
        seen.get(secret).filter(|seen| seen.at.elapsed() < fresh).map(|seen| seen.kept.clone())
    }

    fn note(&self, secret: &Key, found: Option<StoredObject>, kept: Option<StoredPair>) {
        let stored = found.map(StoredObject::emptied);
        self.seen().insert(secret.clone(), Seen { at: Instant::now(), stored, kept });
    }

    /// The fields that we write to a Secret.
    fn content(&self, pair: &TlsKeyPair) -> Value {
        json!({
            "metadata": {"annotations": {ISSUER: self.issuer, FILLED_FOR: null}},
            "data": {
                "tls.crt": STANDARD.encode(&pair.chain), "tls.key": STANDARD.encode(&pair.secret_key),
                "ca.crt": self.root.as_ref().map(|root| STANDARD.encode(root)),
            },
        })
    }

    fn object(&self, secret: &Key, pair: &TlsKeyPair) -> Value {
        let mut object = self.content(pair);
        object["apiVersion"] = "v1".into();
        object["kind"] = "Secret".into();
        object["type"] = TYPE.into();
        object["metadata"]["namespace"] = (&*secret.namespace).into();
        object["metadata"]["name"] = (&*secret.name).into();
        object["metadata"]["labels"] = json!({OWNER_LABEL: OWNER});
        object["metadata"]["annotations"] = json!({ISSUER: self.issuer});
        if self.root.is_none() {
            object["data"].as_object_mut().map(|data| data.remove("ca.crt"));
        }
        object
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<Key, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for SecretStore {
    fn read<'a>(&'a self, secret: &'a Key) -> Call<'a, Result<Option<StoredPair>>> {
        Box::pin(self.load(secret))
    }

    fn write<'a>(&'a self, secret: &'a Key, pair: &'a TlsKeyPair) -> Call<'a, Result<()>> {
        Box::pin(self.save(secret, pair))
    }
}

impl fmt::Debug for SecretStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretStore").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// The content of a Secret, and its keeper.
fn kept(secret: &Key, value: &Value, filler: Option<&str>) -> StoredPair {
    let chain = text(value, "tls.crt", MAX_CHAIN);
    let pair = chain.and_then(|chain| Ok(TlsKeyPair { chain, secret_key: text(value, "tls.key", MAX_KEY)? }));
    StoredPair { pair, keeper: keeper(secret, value, filler) }
}

/// Who else manages a Secret, and what to do about it; `None` if it is ours. `filler` is the Certificate object for
/// which cert-manager fills it.
fn keeper(secret: &Key, value: &Value, filler: Option<&str>) -> Option<String> {
    let kind = value["type"].as_str().unwrap_or("Opaque");
    let label = value.pointer("/metadata/labels").and_then(|labels| labels.get(OWNER_LABEL)).and_then(Value::as_str);
    if label != Some(OWNER) {
        let fix = format!("give it the label {OWNER_LABEL}={OWNER} to have it replaced, or name another Secret");
        return Some(format!("Secret {secret} was made by somebody else: {fix}"));
    }
    // Our label is also present if cert-manager fills the Secret for us.
    if let Some(name) = filler {
        let fix = format!(
            "remove that Certificate, and where this controller may not read Certificates, then the annotation \
             {FILLED_FOR} of the Secret"
        );
        return Some(format!("cert-manager fills Secret {secret} for Certificate {name}: {fix}"));
    }
    if kind != TYPE {
        return Some(format!(
            "Secret {secret} has the type {kind}, which cannot be changed: delete it, or name another"
        ));
    }
    let is_fixed = value["immutable"].as_bool().unwrap_or_default();
    is_fixed.then(|| format!("Secret {secret} is immutable: delete it, or name another"))
}

/// A text in the data of a Secret, at most `most` bytes; empty if the key does not exist.
fn text(value: &Value, key: &str, most: usize) -> std::result::Result<String, String> {
    let encoded = value["data"][key].as_str().unwrap_or_default();
    if encoded.len() > most / 3 * 4 + 4 {
        return Err(format!("{key} is larger than {} KiB", most >> 10));
    }
    let bytes = STANDARD.decode(encoded).map_err(|_| format!("{key} is not base64"))?;
    String::from_utf8(bytes).map_err(|_| format!("{key} is not text"))
}

fn folder(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/secrets")
}

fn path(secret: &Key) -> String {
    format!("{}/{}", folder(&secret.namespace), secret.name)
}

fn words(secret: &Key) -> String {
    format!("Secret {secret}")
}

fn failed(verb: &'static str, secret: &Key, error: &KubeError) -> Error {
    let cause = match error.is_conflict() {
        true => "somebody else wrote it in between; it is looked at again".to_owned(),
        false => error.to_string(),
    };
    Error { retry_after: error.retry_after, ..Error::storage(verb, words(secret), cause) }
}

#[cfg(test)]
mod tests;
