//! Encrypted ownership values: gzip, then AES-256-GCM, then base64, as in external-dns.
//!
//! The nonce is derived from the key, the record name and the text, so that equal values have equal bytes without a source of
//! randomness, and two texts never share a nonce. A value under another key cannot be read and proves no owner.

use std::fmt;
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use ring::{aead, hmac};

/// Bytes of a key.
const KEY: usize = 32;

/// A value longer than this is not opened; what it holds is not read further either.
const LONGEST: usize = 8192;

/// A key for ownership values.
#[derive(Clone, PartialEq, Eq)]
pub struct SealKey([u8; KEY]);

/// The text is not a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoKey;

impl fmt::Display for NoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`--txt-encrypt-aes-key` takes 32 bytes, as they are or as base64")
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(…)")
    }
}

impl SealKey {
    /// Reads a key: 32 bytes as they are, or their base64.
    pub fn parse(text: &[u8]) -> Result<Self, NoKey> {
        if let Ok(raw) = <[u8; KEY]>::try_from(text) {
            return Ok(SealKey(raw));
        }
        let raw = STANDARD.decode(text).map_err(|_| NoKey)?;
        raw.try_into().map(SealKey).map_err(|_| NoKey)
    }

    /// Encrypts the text of the marker at a name.
    pub fn seal(&self, place: &str, text: &str) -> Option<String> {
        self.seal_with(self.nonce(place, text), text)
    }

    /// Opens a sealed text; nothing where it was not sealed under this key.
    pub fn open(&self, sealed: &str) -> Option<String> {
        if sealed.len() > LONGEST {
            return None;
        }
        let mut data = STANDARD.decode(sealed).ok()?;
        let nonce = aead::Nonce::try_assume_unique_for_key(data.get(..aead::NONCE_LEN)?).ok()?;
        let body = data.get_mut(aead::NONCE_LEN..)?;
        let packed = self.cipher()?.open_in_place(nonce, aead::Aad::empty(), body).ok()?;
        let mut text = String::new();
        GzDecoder::new(&*packed).take(LONGEST as u64).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn seal_with(&self, nonce: [u8; aead::NONCE_LEN], text: &str) -> Option<String> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(text.as_bytes()).ok()?;
        let mut body = packer.finish().ok()?;
        let once = aead::Nonce::assume_unique_for_key(nonce);
        self.cipher()?.seal_in_place_append_tag(once, aead::Aad::empty(), &mut body).ok()?;
        Some(STANDARD.encode([&nonce[..], &body].concat()))
    }

    fn cipher(&self) -> Option<aead::LessSafeKey> {
        aead::UnboundKey::new(&aead::AES_256_GCM, &self.0).ok().map(aead::LessSafeKey::new)
    }

    fn nonce(&self, place: &str, text: &str) -> [u8; aead::NONCE_LEN] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[b"nonce of an ownership value".as_slice(), &self.0].concat());
        let tag = hmac::sign(&key, format!("{place}\0{text}").as_bytes());
        let mut nonce = [0; aead::NONCE_LEN];
        nonce.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(byte: u8) -> SealKey {
        SealKey([byte; KEY])
    }

    #[test]
    fn keys_are_raw_or_base64() {
        let raw = [b'k'; KEY];
        assert_eq!(SealKey::parse(&raw), Ok(key(b'k')));
        assert_eq!(SealKey::parse(STANDARD.encode(raw).as_bytes()), Ok(key(b'k')));
        assert_eq!(SealKey::parse(b"short"), Err(NoKey));
        assert!(!format!("{:?}", key(b'k')).contains('k'));
    }

    #[test]
    fn another_key_reads_nothing() {
        let sealed = key(1).seal("a.example", "text").unwrap();
        assert_eq!(key(1).open(&sealed).as_deref(), Some("text"));
        assert_eq!(key(2).open(&sealed), None);
        for garbage in ["", "AAAA", "heritage=external-dns", &"A".repeat(20_000), &sealed[..sealed.len() - 4]] {
            assert_eq!(key(1).open(garbage), None);
        }
    }

    #[test]
    fn what_external_dns_sealed_is_opened() {
        let key = SealKey::parse(b"0123456789abcdef0123456789abcdef").unwrap();
        let sealed = "5BuT8tiaLTMKccBzTjPvh2l9OrHcgo4Lw5HeE0PhreDphFfzsiEsvdDeABpIimBzx2MdXTEqzOAzr3et16PYBognWr8gJ5SBXTkzVACG\
            Hpgg/j5EOG+t5WbKb82K0PUkXO337X/A4lhBuOlZba45UKA=";
        let text = "heritage=external-dns,external-dns/owner=o0,external-dns/resource=www.example.com";
        assert_eq!(key.open(sealed).as_deref(), Some(text));
    }

    #[test]
    fn a_value_is_always_sealed_to_the_same_bytes() {
        assert_eq!(key(1).seal("a", "text"), key(1).seal("a", "text"));
        assert_ne!(key(1).seal("a", "text"), key(1).seal("b", "text"));
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_opened(text in "\\PC{0,200}", place in "[a-z.]{0,20}") {
            let sealed = key(7).seal(&place, &text).unwrap();
            prop_assert_eq!(key(7).open(&sealed), Some(text));
        }
    }
}
