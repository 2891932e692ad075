//! Signed requests and replies (TSIG, RFC 8945).
//!
//! A key proves who asks for a transfer. Whatever else comes signed is answered signed, as secondaries expect.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::base::iana::{Rtype, TsigRcode};
use domain::base::message::RecordSection;
use domain::base::message_builder::{AdditionalBuilder, RecordSectionBuilder};
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, MessageBuilder, ParsedName, ToName};
use domain::rdata::Soa;
use domain::rdata::tsig::Time48;
use domain::tsig::{self, KeyStore, ServerTransaction};

use super::name::Name;

/// How a key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TsigAlgorithm {
    /// HMAC with SHA-256.
    Sha256,
    /// HMAC with SHA-384.
    Sha384,
    /// HMAC with SHA-512.
    Sha512,
}

/// A secret shared with a secondary.
#[derive(Clone)]
pub struct Key {
    name: Name,
    key: Arc<tsig::Key>,
}

/// Why something is no key. The secret is never repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The name is not a domain name.
    #[error("the TSIG key name is wrong: {0}")]
    Name(#[from] super::name::NameError),
    /// The algorithm is not one of ours.
    #[error("the TSIG algorithm `{0}` is not known; hmac-sha256, hmac-sha384 and hmac-sha512 are")]
    TsigAlgorithm(String),
    /// The secret is not base64, or is empty.
    #[error("the secret of the TSIG key `{0}` is not base64 of at least one byte")]
    Secret(String),
}

impl FromStr for TsigAlgorithm {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<TsigAlgorithm, KeyError> {
        match text.trim_end_matches('.').to_ascii_lowercase().as_str() {
            "hmac-sha256" => Ok(TsigAlgorithm::Sha256),
            "hmac-sha384" => Ok(TsigAlgorithm::Sha384),
            "hmac-sha512" => Ok(TsigAlgorithm::Sha512),
            _ => Err(KeyError::TsigAlgorithm(text.to_owned())),
        }
    }
}

impl Key {
    /// A key from its name, algorithm and secret in base64.
    pub fn new(name: &str, algorithm: TsigAlgorithm, secret: &str) -> Result<Key, KeyError> {
        let refuse = || KeyError::Secret(name.to_owned());
        let bytes = STANDARD.decode(secret.trim()).ok().filter(|bytes| !bytes.is_empty()).ok_or_else(refuse)?;
        let own = Name::parse(name)?;
        let algorithm = match algorithm {
            TsigAlgorithm::Sha256 => tsig::Algorithm::Sha256,
            TsigAlgorithm::Sha384 => tsig::Algorithm::Sha384,
            TsigAlgorithm::Sha512 => tsig::Algorithm::Sha512,
        };
        let wire = domain::base::Name::from_octets(own.as_wire()).map_err(|_| refuse())?;
        let key = tsig::Key::new(algorithm, &bytes, wire.try_to_name().map_err(|_| refuse())?, None, None)
            .map_err(|_| refuse())?;
        Ok(Key { name: own, key: Arc::new(key) })
    }

    /// The name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The key as the signer wants it.
    pub(crate) fn signer(&self) -> Arc<tsig::Key> {
        self.key.clone()
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({}, secret)", self.name)
    }
}

/// A verified request that waits for its signed reply.
pub(crate) type Transaction = ServerTransaction<Arc<tsig::Key>>;

/// All keys by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys(BTreeMap<Name, Key>);

impl Keys {
    pub(crate) fn new(keys: &[Key]) -> Keys {
        Keys(keys.iter().map(|key| (key.name.clone(), key.clone())).collect())
    }

    pub(crate) fn find(&self, name: &Name) -> Option<&Key> {
        self.0.get(name)
    }

    /// Checks a signed request, or says what to answer to it.
    pub(crate) fn verify(&self, packet: &[u8], now: u64) -> Result<Transaction, Vec<u8>> {
        let Ok(mut message) = Message::from_octets(packet.to_vec()) else { return Err(Vec::new()) };
        match ServerTransaction::request(self, &mut message, time(now)) {
            Ok(Some(transaction)) => Ok(transaction),
            Ok(None) => Err(Vec::new()),
            Err(error) => Err(refusal(error, packet)),
        }
    }
}

impl KeyStore for Keys {
    type Key = Arc<tsig::Key>;

    fn get_key<N: ToName>(&self, name: &N, algorithm: tsig::Algorithm) -> Option<Self::Key> {
        let name = name.to_vec();
        let name = Name::from_lower(&name.as_slice().to_ascii_lowercase());
        self.find(&name).map(Key::signer).filter(|key| key.algorithm() == algorithm)
    }
}

/// The answer to a request whose signature is wrong; empty if it deserves none.
fn refusal(error: tsig::ServerError<Arc<tsig::Key>>, packet: &[u8]) -> Vec<u8> {
    let wrong_signature = error.error() == TsigRcode::FORMERR;
    let Ok(message) = Message::from_octets(packet) else { return Vec::new() };
    let Ok(builder) = error.build_message(&message, MessageBuilder::new_vec()) else { return Vec::new() };
    let signed = builder.counts().arcount() > 0;
    let mut reply = builder.finish();
    // A wrong signature is BADSIG; the codec writes FORMERR there. The error stands before two bytes of length.
    let at = reply.len().saturating_sub(4);
    if let Some(field) = reply.get_mut(at..at + 2).filter(|_| wrong_signature && signed) {
        field.copy_from_slice(&16u16.to_be_bytes());
    }
    reply
}

/// Signs a finished reply.
pub(crate) fn sign(reply: &[u8], transaction: Transaction, now: u64) -> Option<Vec<u8>> {
    let mut builder = copy(reply)?;
    transaction.answer(&mut builder, time(now)).ok()?;
    Some(builder.finish())
}

/// The time as signatures have it.
pub(crate) fn time(now: u64) -> Time48 {
    Time48::from_u64(now & 0xffff_ffff_ffff)
}

/// Copies a message record by record, names uncompressed, so that a signature can be added.
fn copy(bytes: &[u8]) -> Option<AdditionalBuilder<Vec<u8>>> {
    let message = Message::from_octets(bytes).ok()?;
    let mut builder = MessageBuilder::new_vec();
    *builder.header_mut() = message.header();
    let mut builder = builder.question();
    for question in message.question() {
        builder.push(question.ok()?).ok()?;
    }
    let mut builder = builder.answer();
    copy_section(message.answer().ok()?, &mut builder)?;
    let mut builder = builder.authority();
    copy_section(message.authority().ok()?, &mut builder)?;
    let mut builder = builder.additional();
    copy_section(message.additional().ok()?, &mut builder)?;
    Some(builder)
}

/// Of the data we write only that of a start of authority is compressed.
fn copy_section(section: RecordSection<'_, &[u8]>, to: &mut impl RecordSectionBuilder<Vec<u8>>) -> Option<()> {
    for record in section {
        let record = record.ok()?;
        if record.rtype() == Rtype::SOA {
            to.push(record.into_record::<Soa<ParsedName<&[u8]>>>().ok()??).ok()?;
        } else {
            to.push(record.into_record::<UnknownRecordData<&[u8]>>().ok()??).ok()?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked_and_kept_secret() {
        let key = Key::new("Transfer.Key", TsigAlgorithm::Sha256, "c2VjcmV0").unwrap();
        assert_eq!(format!("{key:?}"), "Key(transfer.key., secret)");
        assert!(matches!(Key::new("k", TsigAlgorithm::Sha256, "not base64!"), Err(KeyError::Secret(_))));
        assert!(matches!(Key::new("k", TsigAlgorithm::Sha256, ""), Err(KeyError::Secret(_))));
        assert!(matches!(Key::new("a..b", TsigAlgorithm::Sha256, "c2VjcmV0"), Err(KeyError::Name(_))));
        assert_eq!("HMAC-SHA512.".parse(), Ok(TsigAlgorithm::Sha512));
        assert!("hmac-md5".parse::<TsigAlgorithm>().is_err());
    }
}
