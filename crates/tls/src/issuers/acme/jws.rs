//! Signed requests (RFC 7515 as RFC 8555 uses it): the account's key, its thumbprint, and the binding to an external account.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use ring::{hmac, pkcs8};
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// The key of an account: ECDSA on P-256.
pub(super) struct AccountKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

/// The key that an issuer gave somebody for one of his accounts there.
#[derive(Clone)]
pub struct ExternalAccount {
    /// `--acme-eab-kid`.
    pub id: String,
    key: hmac::Key,
}

/// Base64 as it stands in URLs.
pub(super) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl AccountKey {
    /// A new key, as the bytes that are kept.
    pub(super) fn generate() -> Result<pkcs8::Document> {
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| Error::settings("no account key could be made"))
    }

    /// A key from the bytes that were kept.
    pub(super) fn from_pkcs8(bytes: &[u8]) -> Result<AccountKey> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &random)
            .map_err(|_| Error::settings("the account key cannot be read"))?;
        Ok(AccountKey { pair, random })
    }

    /// The public half as JSON, its members in the order that thumbprints need (RFC 7638).
    fn public(&self) -> String {
        // An uncompressed point: one byte, then two coordinates of 32 bytes.
        let point = self.pair.public_key().as_ref();
        let (x, y) = (encode(&point[1..33]), encode(&point[33..65]));
        format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#)
    }

    /// What a challenge's token is joined with.
    pub(super) fn thumbprint(&self) -> String {
        encode(digest(&SHA256, self.public().as_bytes()))
    }

    /// The value of the TXT record that answers a dns-01 challenge.
    pub(super) fn dns_value(&self, token: &str) -> String {
        encode(digest(&SHA256, format!("{token}.{}", self.thumbprint()).as_bytes()))
    }

    /// A signed request. Without an account's address the key itself goes with it.
    pub(super) fn sign(&self, account: Option<&str>, nonce: &str, url: &str, payload: &str) -> Result<Vec<u8>> {
        let mut head = json!({"alg": "ES256", "nonce": nonce, "url": url});
        match account {
            Some(account) => head["kid"] = account.into(),
            None => head["jwk"] = self.jwk(),
        }
        let (head, payload) = (encode(head.to_string()), encode(payload));
        let signature = self.pair.sign(&self.random, format!("{head}.{payload}").as_bytes());
        let signature = encode(signature.map_err(|_| Error::settings("the account key cannot sign"))?);
        Ok(json!({"protected": head, "payload": payload, "signature": signature}).to_string().into_bytes())
    }

    fn jwk(&self) -> Value {
        // It was put together here, so it is JSON.
        serde_json::from_str(&self.public()).unwrap_or_default()
    }

    /// The binding of this key to an external account, for one address.
    pub(super) fn bind(&self, external: &ExternalAccount, url: &str) -> Value {
        let head = encode(json!({"alg": "HS256", "kid": external.id, "url": url}).to_string());
        let payload = encode(self.public());
        let signature = encode(hmac::sign(&external.key, format!("{head}.{payload}").as_bytes()));
        json!({"protected": head, "payload": payload, "signature": signature})
    }
}

impl ExternalAccount {
    /// An identifier, and its secret in base64, in whichever alphabet the issuer gave it.
    pub fn new(id: &str, secret: &str) -> Result<ExternalAccount> {
        let secret = secret.trim().trim_end_matches('=');
        let bytes = URL_SAFE_NO_PAD.decode(secret).or_else(|_| STANDARD_NO_PAD.decode(secret));
        // The cause would repeat a part of the secret.
        let bytes = bytes.map_err(|_| Error::settings("--acme-eab-hmac-file: there is not base64 in it"))?;
        if bytes.is_empty() || id.is_empty() {
            return Err(Error::settings(
                "--acme-eab-kid and --acme-eab-hmac-file belong together, and neither is empty",
            ));
        }
        Ok(ExternalAccount { id: id.to_owned(), key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) })
    }
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalAccount({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    #[test]
    fn requests_are_signed_by_the_key_that_they_name() {
        let key = AccountKey::from_pkcs8(AccountKey::generate().unwrap().as_ref()).unwrap();
        for account in [None, Some("https://ca.test/account/1")] {
            let request: Value =
                serde_json::from_slice(&key.sign(account, "n", "https://ca.test/x", "{}").unwrap()).unwrap();
            let part = |name: &str| request[name].as_str().unwrap().to_owned();
            let signed = format!("{}.{}", part("protected"), part("payload"));
            let signature = URL_SAFE_NO_PAD.decode(part("signature")).unwrap();
            let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key().as_ref());
            public.verify(signed.as_bytes(), &signature).unwrap();
            let head: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part("protected")).unwrap()).unwrap();
            assert_eq!(head["kid"].as_str(), account);
            assert_eq!(head["jwk"].is_object(), account.is_none());
        }
        assert_eq!(key.thumbprint().len(), 43);
    }

    #[test]
    fn external_secrets_are_read_in_both_alphabets_and_never_shown() {
        for secret in ["zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W\n", "ab+/abc=", "ab-_abcd"] {
            let account = ExternalAccount::new("kid-1", secret).unwrap();
            assert_eq!(format!("{account:?}"), "ExternalAccount(kid-1)");
        }
        let error = ExternalAccount::new("kid-1", "CANARY%%").unwrap_err().to_string();
        assert!(error.contains("--acme-eab-hmac-file") && !error.contains("CANARY"), "{error}");
        assert!(ExternalAccount::new("", "abcd").is_err() && ExternalAccount::new("kid", "").is_err());
    }
}
