//! `embedded`: an authority of this program's own, for clusters without a public name and for trying things out.
//!
//! Its key is made once and kept in the notebook; its root is the same after every restart, and may be given to clients to
//! trust. It signs whatever it is asked for: what may be asked for was decided before.

use std::fmt;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer as Signer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SubjectPublicKeyInfo,
};
use serde::{Deserialize, Serialize};

use crate::Call;
use crate::budget::RateLimits;
use crate::chain::Chain;
use crate::error::{Error, Result};
use crate::history::{DAY, HOUR};
use crate::issuer::{Issuer, Progress};
use crate::key::{KeyAlgorithm, PrivateKey};
use crate::order::{Order, OrderStep};
use crate::store::StateStore;

/// The page of the notebook that it is kept on.
const PAGE: &str = "authority";
/// How long the root is valid.
const ROOT_LIFETIME: i64 = 3650 * DAY;
/// How long a leaf is valid where nobody says otherwise.
const LEAF_LIFETIME: i64 = 90 * DAY;
/// A root that ends sooner is replaced by a new one.
const ROOT_REST: i64 = 180 * DAY;

/// The authority.
pub struct EmbeddedCa {
    root: String,
    until: i64,
    signer: Signer<'static, KeyPair>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedAuthority {
    version: u32,
    root: String,
    secret_key: String,
}

impl EmbeddedCa {
    /// The authority that is kept in the notebook, or a new one.
    pub async fn open(state_store: &dyn StateStore, now: i64) -> Result<EmbeddedCa> {
        let page = match state_store.read(PAGE).await? {
            Some(text) => Some(SavedAuthority::read(&text)?),
            None => None,
        };
        if let Some(page) = &page {
            let authority = EmbeddedCa::of(page)?;
            if authority.until > now + ROOT_REST {
                return Ok(authority);
            }
        }
        let page = SavedAuthority::make(now)?;
        let text = serde_json::to_string(&page).map_err(|_| Error::settings("the authority cannot be written"))?;
        state_store.write(PAGE, &text).await?;
        EmbeddedCa::of(&page)
    }

    fn of(page: &SavedAuthority) -> Result<EmbeddedCa> {
        let damaged = || Error::storage("be read", format!("{PAGE}.json"), "root or key are damaged");
        let key = KeyPair::from_pem(&page.secret_key).map_err(|_| damaged())?;
        let root = Chain::read(&page.root).map_err(|_| damaged())?;
        let signer = Signer::from_ca_cert_pem(&page.root, key).map_err(|_| damaged())?;
        Ok(EmbeddedCa { root: page.root.clone(), until: root.leaf.not_after, signer })
    }

    fn sign(&self, order: &Order, now: i64) -> Result<String> {
        let key = order.key()?;
        let broken = |error: rcgen::Error| Error::settings(format!("no certificate could be made: {error}"));
        let mut leaf = CertificateParams::new(order.names.clone()).map_err(broken)?;
        leaf.distinguished_name = DistinguishedName::new();
        leaf.use_authority_key_identifier_extension = true;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let asked = order.duration.and_then(|asked| i64::try_from(asked).ok()).filter(|asked| *asked >= HOUR);
        // A clock that is a little behind must be able to use it at once.
        let until = now.saturating_add(asked.unwrap_or(LEAF_LIFETIME)).min(self.until);
        set_validity(&mut leaf, now - HOUR, until);
        let public = SubjectPublicKeyInfo::from_der(&key.public()).map_err(broken)?;
        let signed = leaf.signed_by(&public, &self.signer).map_err(broken)?;
        Ok(signed.pem())
    }
}

impl SavedAuthority {
    fn read(text: &str) -> Result<SavedAuthority> {
        // The cause would repeat parts of the text.
        let damaged =
            || Error::storage("be read", format!("{PAGE}.json"), "it is damaged; remove it for a new authority");
        let page: SavedAuthority = serde_json::from_str(text).map_err(|_| damaged())?;
        if page.version == 1 { Ok(page) } else { Err(damaged()) }
    }

    fn make(now: i64) -> Result<SavedAuthority> {
        let broken = |error: rcgen::Error| Error::settings(format!("no authority could be made: {error}"));
        let key = PrivateKey::generate(KeyAlgorithm::P256)?;
        let mut root = CertificateParams::new(Vec::<String>::new()).map_err(broken)?;
        let digest = ring::digest::digest(&ring::digest::SHA256, key.pair().der_bytes());
        let mark: String = digest.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        root.distinguished_name = DistinguishedName::new();
        root.distinguished_name.push(DnType::CommonName, format!("Gatepost local authority {mark}"));
        root.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        root.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_validity(&mut root, now - HOUR, now.saturating_add(ROOT_LIFETIME));
        let signed = root.self_signed(key.pair()).map_err(broken)?;
        Ok(SavedAuthority { version: 1, root: signed.pem(), secret_key: key.to_secret_pem() })
    }
}

/// Sets from when and until when a certificate is valid; years outside of 1970 to 9999 become these.
fn set_validity(parameters: &mut CertificateParams, from: i64, until: i64) {
    let beginning = rcgen::date_time_ymd(1970, 1, 1);
    let at = |seconds: i64| beginning + Duration::from_secs(seconds.clamp(0, 253_402_300_799).unsigned_abs());
    parameters.not_before = at(from);
    parameters.not_after = at(until);
}

impl Issuer for EmbeddedCa {
    fn kind(&self) -> &'static str {
        "embedded"
    }

    fn limits(&self) -> RateLimits {
        RateLimits::default()
    }

    fn advance<'a>(&'a self, order: &'a mut Order, _published: bool, now: i64) -> Call<'a, Result<Progress>> {
        Box::pin(async move {
            order.chain = Some(self.sign(order, now)?);
            order.step = OrderStep::Issued;
            Ok(Progress::Issued)
        })
    }

    fn root(&self) -> Option<&str> {
        Some(&self.root)
    }
}

impl fmt::Debug for EmbeddedCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedCa").field("until", &self.until).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
