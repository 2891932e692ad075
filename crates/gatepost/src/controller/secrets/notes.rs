//! Notes about certificates, in Secrets of the controller's own namespace: one Secret per page.
//!
//! A leader writes its fencing token to a page before reading it, and every write names the resource version that was
//! read, so that late writes of an earlier leader are refused. A leader that loses a page this way must not continue
//! with its outdated notes, so the notebook reports that it is [lost](SecretNotebook::is_lost). The contents of pages
//! are not interpreted here.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use gatepost_core::model::Key;
use gatepost_kube::objects::{StoredObject, make, stored};
use gatepost_kube::{Connection, Error as KubeError};
use gatepost_tls::issuers::cert_manager::{OWNER, OWNER_LABEL};
use gatepost_tls::store::StateStore;
use gatepost_tls::{Call, Error, Result};
use serde_json::{Value, json};

use super::super::permit::{Permit, TERM};
use super::{failed, folder, path, words};

/// The type of Secrets with a page.
const TYPE: &str = "gatepost.dev/notes";
/// The key of the page in the data, compressed with gzip.
const FIELD: &str = "page.json.gz";
/// A Secret holds at most 1 MiB; the rest is for metadata.
const MOST_PACKED: usize = 1_000_000;
/// Maximum size of an uncompressed page, in bytes.
const MOST: u64 = 64 << 20;

/// Pages of notes in Secrets.
pub struct SecretNotebook {
    connection: Connection,
    permit: Permit,
    namespace: String,
    /// Prefix of the Secrets' names.
    prefix: String,
    /// Our fencing token; without one the notebook is read-only.
    term: Option<String>,
    /// The pages as of the last read or write; `None` for a page that does not exist.
    pages: Mutex<BTreeMap<String, Option<StoredObject>>>,
    lost: AtomicBool,
}

impl SecretNotebook {
    /// The notebook in a namespace, for one term of leadership, or read-only.
    pub fn new(
        connection: Connection,
        permit: Permit,
        namespace: &str,
        prefix: &str,
        term: Option<String>,
    ) -> SecretNotebook {
        let (namespace, prefix) = (namespace.to_owned(), prefix.to_owned());
        let (pages, lost) = (Mutex::default(), AtomicBool::new(false));
        SecretNotebook { connection, permit, namespace, prefix, term, pages, lost }
    }

    /// Whether somebody else wrote a page since it was read, so that our copy is outdated.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn secret(&self, page: &str) -> Key {
        Key::new(self.namespace.as_str(), format!("{}-{page}", self.prefix))
    }

    async fn load(&self, page: &str) -> Result<Option<String>> {
        let secret = self.secret(page);
        let found =
            stored(&self.connection, &path(&secret)).await.map_err(|error| failed("be read", &secret, &error))?;
        let found = match found {
            Some(found) => Some(self.fence(&secret, found).await?),
            None => None,
        };
        let text = found.as_ref().map(|found| unpack(&secret, &found.value)).transpose()?;
        self.note(page, found);
        Ok(text)
    }

    /// Writes our fencing token to a page, so that leaders of earlier terms cannot write it any more.
    async fn fence(&self, secret: &Key, found: StoredObject) -> Result<StoredObject> {
        check(secret, &found.value)?;
        let Some(term) = &self.term else { return Ok(found) };
        if found.value.pointer("/metadata/annotations").and_then(|all| all.get(TERM)) == Some(&term.as_str().into()) {
            return Ok(found);
        }
        self.permitted(secret)?;
        let change = json!({"metadata": {"annotations": {TERM: term}}});
        found.patch(&self.connection, &change).await.map_err(|error| failed("be written", secret, &error))
    }

    async fn save(&self, page: &str, text: &str) -> Result<()> {
        let secret = self.secret(page);
        self.permitted(&secret)?;
        if self.is_lost() {
            return Err(Error::storage("be written", words(&secret), "somebody else wrote it; it is read again"));
        }
        let data = json!({FIELD: pack(&secret, text)?});
        match self.put(page, &secret, data).await {
            Ok(found) => {
                self.note(page, Some(found));
                Ok(())
            }
            Err(error) => {
                if error.is_conflict() {
                    self.lost.store(true, Ordering::Relaxed);
                }
                Err(failed("be written", &secret, &error))
            }
        }
    }

    async fn put(&self, page: &str, secret: &Key, data: Value) -> std::result::Result<StoredObject, KubeError> {
        let known = self.pages().get(page).cloned().flatten();
        if let Some(known) = known {
            match known.patch(&self.connection, &json!({"data": data})).await {
                // Somebody deleted it. Nothing is lost, because its content is known here.
                Err(error) if error.is_not_found() => {}
                done => return done,
            }
        }
        make(&self.connection, &folder(&secret.namespace), &secret.name, &self.object(secret, data)).await
    }

    fn object(&self, secret: &Key, data: Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": TYPE, "data": data,
            "metadata": {
                "namespace": &*secret.namespace, "name": &*secret.name,
                "labels": {OWNER_LABEL: OWNER}, "annotations": {TERM: self.term},
            },
        })
    }

    fn permitted(&self, secret: &Key) -> Result<()> {
        let only_read = || self.term.is_none().then(|| "it is only read here".to_owned());
        match self.permit.refusal().or_else(only_read) {
            Some(why) => Err(Error::storage("be written", words(secret), why)),
            None => Ok(()),
        }
    }

    fn note(&self, page: &str, found: Option<StoredObject>) {
        self.pages().insert(page.to_owned(), found.map(StoredObject::emptied));
    }

    fn pages(&self) -> MutexGuard<'_, BTreeMap<String, Option<StoredObject>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateStore for SecretNotebook {
    fn read<'a>(&'a self, page: &'a str) -> Call<'a, Result<Option<String>>> {
        Box::pin(self.load(page))
    }

    fn write<'a>(&'a self, page: &'a str, text: &'a str) -> Call<'a, Result<()>> {
        Box::pin(self.save(page, text))
    }
}

impl fmt::Debug for SecretNotebook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.secret("*").to_string();
        f.debug_struct("SecretNotebook").field("secrets", &place).field("term", &self.term).finish_non_exhaustive()
    }
}

/// Refuses a page that somebody else created.
fn check(secret: &Key, value: &Value) -> Result<()> {
    match value["type"].as_str() {
        Some(TYPE) => Ok(()),
        other => {
            let kind = other.unwrap_or("Opaque");
            let why =
                format!("it has the type {kind} and not {TYPE}: remove it, or give the controller another --lease");
            Err(Error::storage("be used", words(secret), why))
        }
    }
}

fn pack(secret: &Key, text: &str) -> Result<String> {
    let broken = |why: String| Error::storage("be written", words(secret), why);
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(text.as_bytes()).and_then(|()| packer.finish());
    let packed = packed.map_err(|error| broken(error.to_string()))?;
    if packed.len() > MOST_PACKED {
        let size = packed.len() >> 10;
        return Err(broken(format!("the notes have {size} KiB, more than a Secret takes: fewer certificates fit")));
    }
    Ok(STANDARD.encode(packed))
}

fn unpack(secret: &Key, value: &Value) -> Result<String> {
    let broken = |why: &str| Error::storage("be read", words(secret), format!("{why}; remove it to begin anew"));
    let encoded = value["data"][FIELD].as_str().ok_or_else(|| broken("it has no page"))?;
    let packed = STANDARD.decode(encoded).map_err(|_| broken("its page is not base64"))?;
    let mut text = String::new();
    let read = GzDecoder::new(&packed[..]).take(MOST).read_to_string(&mut text);
    read.map_err(|_| broken("its page is damaged"))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_survives_and_one_that_is_too_large_is_refused_without_being_quoted() {
        let secret = Key::new("gatepost", "gatepost-certificates");
        let text = r#"{"orders": {}}"#;
        let value = json!({"data": {FIELD: pack(&secret, text).unwrap()}});
        assert_eq!(unpack(&secret, &value).unwrap(), text);
        // Random text, which does not compress.
        let mut noise = String::new();
        for i in 0_u64..200_000 {
            noise += &format!("{:x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        let error = pack(&secret, &noise).unwrap_err().to_string();
        assert!(error.contains("gatepost/gatepost-certificates") && error.len() < 300, "{error}");
    }

    #[test]
    fn what_is_no_page_is_told_without_being_quoted() {
        let secret = Key::new("gatepost", "gatepost-certificates");
        for data in [json!({}), json!({FIELD: "CANARY!"}), json!({FIELD: "Q0FOQVJZ"})] {
            let error = unpack(&secret, &json!({"data": data})).unwrap_err().to_string();
            assert!(!error.contains("CANARY") && !error.contains("Q0FO") && error.contains("remove it"), "{error}");
        }
        let error = check(&secret, &json!({"type": "Opaque"})).unwrap_err().to_string();
        assert!(error.contains("Opaque"), "{error}");
    }
}
