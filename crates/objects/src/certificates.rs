//! Certificates in Secrets and ConfigMaps: names, dates and issuer, read from PEM.
//!
//! A private key is looked at only to see that one is there. No byte of it gets into a value, an error or a debug output.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost_core::model::{Certificate, Material, Str};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use crate::fields::Fields;
use crate::pem::{Block, blocks};
use crate::tree::Tree;

/// The most bytes of PEM that are looked at; a chain is a few kilobytes.
const MAX_PEM: usize = 64 << 10;

/// What stands under one key of a Secret. Has no debug output on purpose.
pub(crate) enum PemEntry {
    /// Nothing.
    Missing,
    /// Something that is not base64 or no text.
    Unreadable(&'static str),
    /// Text.
    Text(String),
}

impl PemEntry {
    /// An entry of `stringData`, or else of `data`.
    pub(crate) fn of_secret(root: &Fields<'_>, name: &str) -> PemEntry {
        let plain = root.node("stringData").and_then(|node| node.value().get(name)?.as_text());
        if let Some(text) = plain {
            return if text.len() > MAX_PEM {
                PemEntry::Unreadable(TOO_LARGE)
            } else {
                PemEntry::Text(text.to_owned())
            };
        }
        match root.node("data").and_then(|node| node.value().get(name)) {
            None | Some(Tree::Null) => PemEntry::Missing,
            Some(Tree::Text(encoded)) => decoded(encoded),
            Some(_) => PemEntry::Unreadable("is not text"),
        }
    }

    /// The certificates it holds.
    pub(crate) fn certificates(&self, name: &str) -> Material {
        match self {
            PemEntry::Missing => Material::Missing,
            PemEntry::Unreadable(why) => Material::Malformed(format!("`{name}` {why}").into()),
            PemEntry::Text(pem) => {
                read(pem).map_or_else(|why| Material::Malformed(format!("`{name}` {why}").into()), Material::Present)
            }
        }
    }

    /// Whether it looks like a private key.
    pub(crate) fn private_key(&self) -> Result<(), String> {
        let text = match self {
            PemEntry::Missing => return Err("`tls.key` is missing".to_owned()),
            PemEntry::Unreadable(why) => return Err(format!("`tls.key` {why}")),
            PemEntry::Text(text) => text,
        };
        let is_key = |block: Block<'_>| block.label.ends_with("PRIVATE KEY") && block.bytes().is_some();
        if blocks(text).any(is_key) { Ok(()) } else { Err("`tls.key` holds no PEM private key".to_owned()) }
    }
}

const TOO_LARGE: &str = "is larger than 64 KiB";

/// The certificates under one key of a ConfigMap.
pub(crate) fn of_config_map(root: &Fields<'_>, name: &str) -> Material {
    match root.node("data").and_then(|node| node.value().get(name)) {
        None | Some(Tree::Null) => Material::Missing,
        Some(Tree::Text(pem)) if pem.len() > MAX_PEM => PemEntry::Unreadable(TOO_LARGE).certificates(name),
        Some(Tree::Text(pem)) => PemEntry::Text(pem.clone().into_owned()).certificates(name),
        Some(_) => PemEntry::Unreadable("is not text").certificates(name),
    }
}

fn decoded(encoded: &str) -> PemEntry {
    if encoded.len() > MAX_PEM * 2 {
        return PemEntry::Unreadable(TOO_LARGE);
    }
    let compact: Vec<u8> = encoded.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let Ok(bytes) = STANDARD.decode(compact) else { return PemEntry::Unreadable("is not base64") };
    match String::from_utf8(bytes) {
        Ok(text) if text.len() <= MAX_PEM => PemEntry::Text(text),
        Ok(_) => PemEntry::Unreadable(TOO_LARGE),
        Err(_) => PemEntry::Unreadable("holds no PEM"),
    }
}

/// What is known of the first certificate; the others of the chain must be readable too.
fn read(pem: &str) -> Result<Certificate, &'static str> {
    if pem.trim().is_empty() {
        return Err("is empty");
    }
    let mut first = None;
    for block in blocks(pem).filter(|block| block.label == "CERTIFICATE") {
        let der = block.bytes().ok_or("has a certificate that is not base64")?;
        let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| "has a certificate that cannot be read")?;
        first.get_or_insert_with(|| facts(&certificate));
    }
    first.ok_or("holds no PEM certificate")
}

fn facts(certificate: &X509Certificate<'_>) -> Certificate {
    let validity = certificate.validity();
    Certificate {
        dns_names: dns_names(certificate),
        not_before: validity.not_before.timestamp(),
        not_after: validity.not_after.timestamp(),
        issuer: certificate.issuer().to_string().into(),
    }
}

fn dns_names(certificate: &X509Certificate<'_>) -> Vec<Str> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some(Str::from(*name)),
        _ => None,
    };
    names.value.general_names.iter().filter_map(name).collect()
}
