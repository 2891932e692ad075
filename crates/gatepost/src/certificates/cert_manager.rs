//! What is asked of cert-manager, for those who explain: what Certificate objects say about Secrets. Nothing is written.

use gatepost_core::model::{self, Key, Kind, Material};
use gatepost_core::publication::{Certificate, Desired};
use gatepost_core::reason::{self, Reason};
use gatepost_core::snapshot::{Snapshot, Visibility};
use gatepost_tls::certifier::{IssuanceState, Waiting};
use gatepost_tls::chain::Leaf;
use gatepost_tls::issuers::cert_manager::{IssuerRef, Judgement, judge, manifest, renewal_of, secret_of};
use serde_json::Value;

use super::is_own;

/// A Certificate object, and what its issuer says of the request that is worked on.
#[derive(Clone, Debug)]
pub struct CertificateObject {
    /// The object.
    pub object: Value,
    /// What keeps its request from being done.
    pub said: Option<String>,
}

/// What is known of these Secrets, where cert-manager fills them or is to.
pub fn states(
    secrets: &[Key],
    desired: &Desired,
    snapshot: &Snapshot,
    found: &[CertificateObject],
    now: i64,
) -> Vec<IssuanceState> {
    let wanted = desired.certificates.iter().filter(|certificate| secrets.contains(&certificate.secret));
    let of_secret = |certificate: &Certificate| -> Vec<&CertificateObject> {
        found.iter().filter(|found| secret_of(&found.object).as_ref() == Some(&certificate.secret)).collect()
    };
    let with_objects = wanted.map(|certificate| (certificate, of_secret(certificate)));
    let theirs = with_objects.filter(|(certificate, found)| !found.is_empty() || !is_own(certificate));
    theirs.map(|(certificate, found)| state(certificate, snapshot, &found, now)).collect()
}

/// What a judgement means for the names of a Secret; nothing where they are served.
pub fn obstacle(judgement: Judgement) -> Option<(Reason, String)> {
    match judgement {
        Judgement::Ready { .. } => None,
        Judgement::Missing => {
            Some((reason::CERTIFICATE_PENDING, "there is no Certificate object for it yet".to_owned()))
        }
        Judgement::Foreign(who) => Some((reason::CERTIFICATE_FOREIGN, format!("{who} looks after this Secret"))),
        Judgement::Differs(fields) => {
            let why = format!("its Certificate object is to be changed: {}", fields.join(", "));
            Some((reason::CERTIFICATE_PENDING, why))
        }
        Judgement::Pending(why) => Some((reason::CERTIFICATE_PENDING, why)),
        Judgement::Failed(why) => Some((reason::CERTIFICATE_ORDER_FAILED, why)),
    }
}

fn state(certificate: &Certificate, snapshot: &Snapshot, found: &[&CertificateObject], now: i64) -> IssuanceState {
    let (held, unusable) = held(&certificate.secret, snapshot);
    let obstacle = stands(certificate, snapshot, found, held.as_ref(), now);
    IssuanceState {
        secret: certificate.secret.clone(),
        wanted: certificate.dns_names.clone(),
        renewal: found.first().and_then(|found| renewal_of(&found.object)),
        held,
        unusable,
        order: None,
        waiting: obstacle.map(|(reason, why)| Waiting { until: now, reason, why }),
        failing: Vec::new(),
        now,
    }
}

/// What stands in the way. Who the controller asks where no policy says so is read from the object: only it knows.
fn stands(
    certificate: &Certificate,
    snapshot: &Snapshot,
    found: &[&CertificateObject],
    held: Option<&Leaf>,
    now: i64,
) -> Option<(Reason, String)> {
    let policy = certificate.policy.as_ref().and_then(|key| snapshot.tls_policies.get(key));
    let usual = found.first().map(|found| issuer(&found.object));
    let body = match manifest(certificate, policy.map(|policy| &**policy), usual.as_ref()) {
        Ok(body) => body,
        Err(error) => return Some((reason::ISSUER_UNUSABLE, error.to_string())),
    };
    let objects: Vec<&Value> = found.iter().map(|found| &found.object).collect();
    let said = found.iter().find_map(|found| found.said.as_ref());
    match (judge(&body, &objects, held, now), said) {
        (Judgement::Pending(_), Some(said)) => Some((reason::CERTIFICATE_PENDING, said.clone())),
        (judgement, _) => obstacle(judgement),
    }
}

fn issuer(object: &Value) -> IssuerRef {
    let text = |key: &str, other: &str| object["spec"]["issuerRef"][key].as_str().unwrap_or(other).into();
    IssuerRef { group: text("group", "cert-manager.io"), kind: text("kind", "Issuer"), name: text("name", "") }
}

/// What a Secret among the objects holds, or why that is not known.
fn held(secret: &Key, snapshot: &Snapshot) -> (Option<Leaf>, Option<String>) {
    match (snapshot.secrets.get(secret).map(|secret| &secret.certificate), snapshot.visibility(Kind::Secret)) {
        (Some(Material::Present(certificate)), _) => (Some(leaf(certificate)), None),
        (Some(Material::Malformed(why)), _) => (None, Some(why.to_string())),
        (Some(Material::Missing), _) => (None, Some("it has no `tls.crt`".to_owned())),
        (None, Visibility::NotVisible(why)) => (None, Some(format!("Secrets are not visible: {why}"))),
        (None, Visibility::Complete) => (None, None),
    }
}

fn leaf(certificate: &model::Certificate) -> Leaf {
    Leaf {
        names: certificate.dns_names.clone(),
        not_before: certificate.not_before,
        not_after: certificate.not_after,
        issuer: certificate.issuer.clone(),
        ..Leaf::default()
    }
}
