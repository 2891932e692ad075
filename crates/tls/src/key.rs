//! Private keys: made, kept as PEM, and never shown.
//!
//! The type has no debug output beyond its name, no display and no serialization; who wants the bytes has to ask for the PEM by
//! name, and only the store and the order file do.

use std::fmt;

use rcgen::{CertificateParams, DistinguishedName, KeyPair, PublicKeyData};

use crate::error::{Error, Result};

/// A private key with its public half.
pub struct PrivateKey(KeyPair);

/// Which keys are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAlgorithm {
    /// ECDSA on P-256.
    #[default]
    P256,
    /// ECDSA on P-384.
    P384,
    /// RSA, for clients that know nothing else: 2048, 3072 or 4096 bits.
    Rsa(u16),
}

/// The most bytes of a key's PEM that are looked at.
pub const MAX_KEY: usize = 16 << 10;

impl KeyAlgorithm {
    /// What `spec.privateKey` of a TLSPolicy asks for: `algorithm` and `size`.
    pub fn of(algorithm: Option<&str>, size: Option<&str>) -> Result<KeyAlgorithm> {
        match (algorithm.unwrap_or("ECDSA"), size) {
            ("ECDSA", None | Some("256")) => Ok(KeyAlgorithm::P256),
            ("ECDSA", Some("384")) => Ok(KeyAlgorithm::P384),
            ("RSA", None | Some("2048")) => Ok(KeyAlgorithm::Rsa(2048)),
            ("RSA", Some("3072")) => Ok(KeyAlgorithm::Rsa(3072)),
            ("RSA", Some("4096")) => Ok(KeyAlgorithm::Rsa(4096)),
            (other, size) => Err(Error::settings(format!(
                "spec.privateKey: {other} {} keys are not made here; use ECDSA with size 256 or 384, or RSA with 2048, 3072 or 4096",
                size.unwrap_or_default()
            ))),
        }
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyAlgorithm::P256 => f.write_str("ECDSA 256"),
            KeyAlgorithm::P384 => f.write_str("ECDSA 384"),
            KeyAlgorithm::Rsa(bits) => write!(f, "RSA {bits}"),
        }
    }
}

impl PrivateKey {
    /// A new key. One of RSA takes a while.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self> {
        // Causes are left out: nothing about a key is worth the risk of showing it.
        let made = match algorithm {
            KeyAlgorithm::P256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).ok(),
            KeyAlgorithm::P384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).ok(),
            KeyAlgorithm::Rsa(bits) => rsa_key(bits),
        };
        made.map(PrivateKey).ok_or_else(|| Error::settings("no key could be made"))
    }

    /// The same on a thread of its own, so that nobody waits who could go on.
    pub async fn generate_aside(algorithm: KeyAlgorithm) -> Result<Self> {
        let made = tokio::task::spawn_blocking(move || PrivateKey::generate(algorithm)).await;
        made.unwrap_or_else(|_| Err(Error::settings("no key could be made")))
    }

    /// A key from its PEM.
    pub fn from_pem(pem: &str) -> Result<Self> {
        if pem.len() > MAX_KEY {
            return Err(Error::rejected(format!("the private key is larger than {} KiB", MAX_KEY >> 10)));
        }
        KeyPair::from_pem(pem).map(PrivateKey).map_err(|_| Error::rejected("the private key cannot be read"))
    }

    /// The secret itself.
    pub fn to_secret_pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// The public half, as certificates hold it.
    pub fn public(&self) -> Vec<u8> {
        self.0.subject_public_key_info()
    }

    /// A request for a certificate of these names, in DER. The names stand in the alternative names alone.
    pub fn request(&self, names: &[String]) -> Result<Vec<u8>> {
        let broken = |error: rcgen::Error| Error::settings(format!("no request could be made: {error}"));
        let mut parameters = CertificateParams::new(names).map_err(broken)?;
        parameters.distinguished_name = DistinguishedName::new();
        Ok(parameters.serialize_request(&self.0).map_err(broken)?.der().to_vec())
    }

    pub(crate) fn pair(&self) -> &KeyPair {
        &self.0
    }
}

/// An RSA key. Numbers are found by the `rsa` crate; whatever is signed with it is signed by ring.
fn rsa_key(bits: u16) -> Option<KeyPair> {
    let key = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, usize::from(bits)).ok()?;
    let der = rsa::pkcs8::EncodePrivateKey::to_pkcs8_der(&key).ok()?;
    KeyPair::try_from(der.as_bytes()).ok()
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_pem_and_is_never_shown() {
        for algorithm in [KeyAlgorithm::P256, KeyAlgorithm::P384, KeyAlgorithm::Rsa(2048)] {
            let key = PrivateKey::generate(algorithm).unwrap();
            let again = PrivateKey::from_pem(&key.to_secret_pem()).unwrap();
            assert_eq!(key.public(), again.public());
            assert!(key.request(&["a.test".to_owned()]).is_ok(), "it signs");
            assert_eq!(format!("{key:?}"), "PrivateKey(..)");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_repeated() {
        let canary = "-----BEGIN PRIVATE KEY-----\nQ0FOQVJZ\n-----END PRIVATE KEY-----\n";
        for text in [canary.to_owned(), "CANARY".to_owned(), "CANARY".repeat(100_000)] {
            let error = format!("{0:?} {0}", PrivateKey::from_pem(&text).unwrap_err());
            assert!(!error.contains("CANARY") && !error.contains("Q0FO"), "{error}");
        }
    }

    #[test]
    fn keys_that_are_not_made_here_are_named() {
        assert_eq!(KeyAlgorithm::of(None, None).unwrap(), KeyAlgorithm::P256);
        assert_eq!(KeyAlgorithm::of(Some("ECDSA"), Some("384")).unwrap(), KeyAlgorithm::P384);
        assert_eq!(KeyAlgorithm::of(Some("RSA"), None).unwrap(), KeyAlgorithm::Rsa(2048));
        assert_eq!(KeyAlgorithm::of(Some("RSA"), Some("4096")).unwrap(), KeyAlgorithm::Rsa(4096));
        let error = KeyAlgorithm::of(Some("RSA"), Some("8192")).unwrap_err().to_string();
        assert!(error.contains("spec.privateKey: RSA 8192"), "{error}");
    }
}
