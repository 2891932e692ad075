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
pub enum Algorithm {
    /// ECDSA on P-256.
    #[default]
    P256,
    /// ECDSA on P-384.
    P384,
}

/// The most bytes of a key's PEM that are looked at.
pub const MAX_KEY: usize = 16 << 10;

impl Algorithm {
    /// What `spec.privateKey` of a TLSPolicy asks for: `algorithm` and `size`.
    pub fn of(algorithm: Option<&str>, size: Option<&str>) -> Result<Algorithm> {
        match (algorithm.unwrap_or("ECDSA"), size) {
            ("ECDSA", None | Some("256")) => Ok(Algorithm::P256),
            ("ECDSA", Some("384")) => Ok(Algorithm::P384),
            (other, size) => Err(Error::settings(format!(
                "spec.privateKey: {other} {} keys are not made here; use ECDSA with size 256 or 384",
                size.unwrap_or_default()
            ))),
        }
    }
}

impl PrivateKey {
    /// A new key.
    pub fn generate(algorithm: Algorithm) -> Result<Self> {
        let algorithm = match algorithm {
            Algorithm::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            Algorithm::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
        };
        // The cause is left out: nothing about a key is worth the risk of showing it.
        let key = KeyPair::generate_for(algorithm).map_err(|_| Error::settings("no key could be made"))?;
        Ok(PrivateKey(key))
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
        for algorithm in [Algorithm::P256, Algorithm::P384] {
            let key = PrivateKey::generate(algorithm).unwrap();
            let again = PrivateKey::from_pem(&key.to_secret_pem()).unwrap();
            assert_eq!(key.public(), again.public());
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
        assert_eq!(Algorithm::of(None, None).unwrap(), Algorithm::P256);
        assert_eq!(Algorithm::of(Some("ECDSA"), Some("384")).unwrap(), Algorithm::P384);
        let error = Algorithm::of(Some("RSA"), Some("2048")).unwrap_err().to_string();
        assert!(error.contains("spec.privateKey: RSA 2048"), "{error}");
    }
}
