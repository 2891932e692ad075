//! Certificates, and what is remembered about them, in Secrets.
//!
//! Here the traits of `tls` meet the objects of `kube`, which never see each other. Every write asks the permit and names the
//! version that was read, so that what a paused leader sends late is refused by the API server itself. A Secret that somebody
//! else made is read and never written; no Secret is ever deleted. Nothing of what a Secret holds gets into an error or a log.

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
    /// Which issuer makes them, for who looks at a Secret.
    issuer: &'static str,
    /// The certificate to trust, where the issuer is an authority of its own.
    root: Option<String>,
    seen: Mutex<BTreeMap<Key, Seen>>,
}

/// A Secret as it was last read.
struct Seen {
    at: Instant,
    /// Its version; nothing where there is none. What it holds is not kept twice.
    stored: Option<StoredObject>,
    kept: Option<StoredPair>,
}

/// The type of a Secret with a key pair.
const TYPE: &str = "kubernetes.io/tls";
/// The annotation with which cert-manager says for which object it fills a Secret.
const FILLED_FOR: &str = "cert-manager.io/certificate-name";
/// The annotation that says who issues.
const ISSUER: &str = "gatepost.dev/issuer";
/// For so long it is not asked again what a Secret holds; what is written names the version that was read anyway.
const FRESH: Duration = Duration::from_secs(5);
/// The same for each Secret that there is, so that many are not asked for all the time.
const FRESH_EACH: Duration = Duration::from_millis(20);

impl SecretStore {
    /// Secrets of all namespaces that may be written to.
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
        // What is known of it is needed to name the version that is replaced.
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

    /// The Certificate object for which cert-manager fills a Secret; nothing where that is gone, or was never there.
    async fn filler<'v>(&self, secret: &Key, value: &'v Value) -> Option<&'v str> {
        let name = value["metadata"]["annotations"][FILLED_FOR].as_str()?;
        let found = CERTIFICATES.read(&self.connection, &Key::new(&*secret.namespace, name)).await;
        // Who may not look does not know that it is gone.
        if matches!(found, Ok(None)) { None } else { Some(name) }
    }

    /// What the Secret held a moment ago.
    fn remembered(&self, secret: &Key) -> Option<Option<StoredPair>> {
        let seen = self.seen();
        let fresh = FRESH + FRESH_EACH * u32::try_from(seen.len()).unwrap_or(u32::MAX);
        seen.get(secret).filter(|seen| seen.at.elapsed() < fresh).map(|seen| seen.kept.clone())
    }

    fn note(&self, secret: &Key, found: Option<StoredObject>, kept: Option<StoredPair>) {
        let stored = found.map(StoredObject::emptied);
        self.seen().insert(secret.clone(), Seen { at: Instant::now(), stored, kept });
    }

    /// What a Secret of ours is to say.
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

/// What a Secret holds, and whose it is.
fn kept(secret: &Key, value: &Value, filler: Option<&str>) -> StoredPair {
    let chain = text(value, "tls.crt", MAX_CHAIN);
    let pair = chain.and_then(|chain| Ok(TlsKeyPair { chain, secret_key: text(value, "tls.key", MAX_KEY)? }));
    StoredPair { pair, keeper: keeper(secret, value, filler) }
}

/// Who else looks after a Secret, and what to do about that; nothing where it is ours. `filler` is the Certificate object for which
/// cert-manager fills it.
fn keeper(secret: &Key, value: &Value, filler: Option<&str>) -> Option<String> {
    let kind = value["type"].as_str().unwrap_or("Opaque");
    let label = value.pointer("/metadata/labels").and_then(|labels| labels.get(OWNER_LABEL)).and_then(Value::as_str);
    if label != Some(OWNER) {
        let fix = format!("give it the label {OWNER_LABEL}={OWNER} to have it replaced, or name another Secret");
        return Some(format!("Secret {secret} was made by somebody else: {fix}"));
    }
    // Our label is there as well where cert-manager fills it for us.
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

/// A text of at most so many bytes in the data of a Secret; nothing there is an empty one.
fn text(value: &Value, key: &str, most: usize) -> std::result::Result<String, String> {
    let encoded = value["data"][key].as_str().unwrap_or_default();
    if encoded.len() > most / 3 * 4 + 4 {
        return Err(format!("{key} is larger than {} KiB", most >> 10));
    }
    let bytes = STANDARD.decode(encoded).map_err(|_| format!("{key} is no base64"))?;
    String::from_utf8(bytes).map_err(|_| format!("{key} is no text"))
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
