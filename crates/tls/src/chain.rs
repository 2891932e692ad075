//! Certificate chains: what a leaf says, and whether a chain may replace the one that serves.
//!
//! Everything here comes from others, so sizes are bounded before anything is parsed. What is wrong is told in words that
//! name the part at fault.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gatepost_core::model::Str;
use gatepost_core::names::Hostname;
use gatepost_objects::pem;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

use crate::error::{Error, Result};
use crate::key::{KeyAlgorithm, PrivateKey};

/// The most bytes of a chain that are looked at.
pub const MAX_CHAIN: usize = 64 << 10;
/// The most certificates in a chain.
pub const MAX_LENGTH: usize = 10;

/// A chain that could be read: leaf first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// As it was given.
    pub pem: String,
    /// What the leaf says.
    pub leaf: Leaf,
    ders: Vec<Vec<u8>>,
}

/// What a leaf says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaf {
    /// Its names, sorted, in lower case.
    pub names: Vec<Str>,
    /// From when it is valid, in seconds since 1970.
    pub not_before: i64,
    /// Until when it is valid.
    pub not_after: i64,
    /// Who issued it.
    pub issuer: Str,
    /// Serial number, in hexadecimal digits.
    pub serial: Str,
    /// How renewal information is asked for (RFC 9773), where it names its issuer's key.
    pub renewal_id: Option<Str>,
    /// Its public key, as certificates hold it.
    pub public: Vec<u8>,
    /// Which key that is; nothing where it is of a kind that is not made here.
    pub algorithm: Option<KeyAlgorithm>,
}

impl Chain {
    /// Reads a chain from PEM. Only certificates may stand in it.
    pub fn read(text: &str) -> std::result::Result<Chain, String> {
        if text.len() > MAX_CHAIN {
            return Err(format!("the chain is larger than {} KiB", MAX_CHAIN >> 10));
        }
        let mut ders = Vec::new();
        for block in pem::blocks(text) {
            if block.label != "CERTIFICATE" {
                return Err("the chain holds something that is not a certificate".to_owned());
            }
            let der = block.bytes().ok_or("the chain holds a certificate that is not base64")?;
            ders.push(der);
            if ders.len() > MAX_LENGTH {
                return Err(format!("the chain has more than {MAX_LENGTH} certificates"));
            }
        }
        let first = ders.first().ok_or("there is no certificate in it")?;
        let leaf = Leaf::of(&parse(first)?);
        Ok(Chain { pem: text.to_owned(), leaf, ders })
    }

    /// Whether it may serve: it is for this key, for exactly these names, valid now, and every certificate is signed by the one
    /// behind it.
    pub fn verify(&self, key: &PrivateKey, names: &[Str], now: i64) -> Result<()> {
        self.judge(key, names, now).map_err(Error::rejected)
    }

    /// Whether it is the chain of this key.
    pub fn is_for(&self, key: &PrivateKey) -> bool {
        self.leaf.public == key.public()
    }

    fn judge(&self, key: &PrivateKey, names: &[Str], now: i64) -> std::result::Result<(), String> {
        if !self.is_for(key) {
            return Err("it is for another key".to_owned());
        }
        let held: BTreeSet<&Str> = self.leaf.names.iter().collect();
        let wanted: BTreeSet<&Str> = names.iter().collect();
        if let Some(missing) = wanted.difference(&held).next() {
            return Err(format!("`{missing}` was ordered and is not among its names"));
        }
        if let Some(extra) = held.difference(&wanted).next() {
            return Err(format!("`{extra}` is among its names and was not ordered"));
        }
        if self.leaf.not_after <= now {
            return Err("it has expired already".to_owned());
        }
        if self.leaf.not_before > now + CLOCK_SKEW {
            return Err("it is not valid yet; is the clock of this machine right?".to_owned());
        }
        self.check_order()
    }

    /// Every certificate must be signed by the one behind it, and the first must be no authority.
    fn check_order(&self) -> std::result::Result<(), String> {
        let parsed: Vec<X509Certificate<'_>> =
            self.ders.iter().map(|der| parse(der)).collect::<std::result::Result<_, _>>()?;
        if parsed[0].is_ca() {
            return Err("the first certificate of the chain is that of an authority".to_owned());
        }
        for (i, pair) in parsed.windows(2).enumerate() {
            let is_signed =
                pair[0].issuer() == pair[1].subject() && pair[0].verify_signature(Some(pair[1].public_key())).is_ok();
            if !is_signed {
                return Err(format!("certificate {} of the chain is not signed by the next one", i + 1));
            }
        }
        Ok(())
    }
}

/// How far the clock of an issuer may be ahead.
const CLOCK_SKEW: i64 = 300;

impl Leaf {
    /// Reads one certificate, as a handshake shows it.
    pub fn read(der: &[u8]) -> std::result::Result<Leaf, String> {
        if der.len() > MAX_CHAIN {
            return Err(format!("the certificate is larger than {} KiB", MAX_CHAIN >> 10));
        }
        parse(der).map(|certificate| Leaf::of(&certificate))
    }

    fn of(certificate: &X509Certificate<'_>) -> Leaf {
        let validity = certificate.validity();
        let serial: String = certificate.raw_serial().iter().map(|byte| format!("{byte:02x}")).collect();
        Leaf {
            names: names(certificate),
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
            issuer: certificate.issuer().to_string().into(),
            serial: serial.into(),
            renewal_id: renewal_id(certificate),
            public: certificate.public_key().raw.to_vec(),
            algorithm: algorithm(certificate),
        }
    }

    /// How long it is valid in all, in seconds; never negative.
    pub fn lifetime(&self) -> i64 {
        self.not_after.saturating_sub(self.not_before).max(0)
    }

    /// Whether one of its names stands for this one: itself, or a wildcard one label above (RFC 2818).
    pub fn covers(&self, name: &str) -> bool {
        let covers =
            |held: &Str| **held == *name || Hostname::parse(held).is_ok_and(|held| held.covers_in_certificate(name));
        self.names.iter().any(covers)
    }
}

fn parse(der: &[u8]) -> std::result::Result<X509Certificate<'_>, String> {
    let unreadable = || "the chain holds a certificate that cannot be read".to_owned();
    let (rest, certificate) = X509Certificate::from_der(der).map_err(|_| unreadable())?;
    if rest.is_empty() { Ok(certificate) } else { Err(unreadable()) }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<Str> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some(Str::from(name.to_ascii_lowercase())),
        _ => None,
    };
    let names: BTreeSet<Str> = names.value.general_names.iter().filter_map(name).collect();
    names.into_iter().collect()
}

fn algorithm(certificate: &X509Certificate<'_>) -> Option<KeyAlgorithm> {
    let bits = |key: &PublicKey<'_>| u16::try_from(key.key_size()).ok();
    match certificate.public_key().parsed().ok()? {
        key @ PublicKey::EC(_) => KeyAlgorithm::of(Some("ECDSA"), Some(&bits(&key)?.to_string())).ok(),
        key @ PublicKey::RSA(_) => KeyAlgorithm::of(Some("RSA"), Some(&bits(&key)?.to_string())).ok(),
        _ => None,
    }
}

/// The identifier of RFC 9773: the issuer's key and the serial number.
fn renewal_id(certificate: &X509Certificate<'_>) -> Option<Str> {
    let key = certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(authority) => authority.key_identifier.as_ref().map(|key| key.0),
        _ => None,
    })?;
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    Some(format!("{}.{}", encode(key), encode(certificate.raw_serial())).into())
}

#[cfg(test)]
mod tests;
