//! TLSPolicy.

use gatepost_core::model::{Meta, PolicyTarget, Reference, Str, TlsPolicy};
use gatepost_core::snapshot::Object;

use super::dns::wildcards;
use super::{duration, target};
use crate::fields::Fields;
use crate::references::nobody;
use crate::rules;
use crate::shapes::Shape;

/// Reads a TLSPolicy.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    root.require("spec");
    root.ignore(&["status"]);
    let mut policy = TlsPolicy {
        meta,
        target: PolicyTarget { object: nobody(), section: None },
        allow_wildcards: None,
        issuer: None,
        duration: None,
        renew_before: None,
        private_key: Vec::new(),
    };
    root.mapping("spec", |f| spec(f, &mut policy));
    Object::TlsPolicy(policy)
}

fn spec(f: &Fields<'_>, policy: &mut TlsPolicy) {
    policy.target = target(f);
    policy.allow_wildcards = wildcards(f);
    policy.issuer = f.mapping("issuerRef", issuer);
    policy.duration = duration(f, "duration");
    policy.renew_before = duration(f, "renewBefore");
    if let (Some(duration), Some(renew)) = (policy.duration, policy.renew_before)
        && renew >= duration
    {
        f.invalid("renewBefore", "is not shorter than `duration`; the certificate would be renewed without end");
    }
    policy.private_key = f.mapping("privateKey", private_key).unwrap_or_default();
}

/// What is set, as written.
fn private_key(f: &Fields<'_>) -> Vec<(Str, Str)> {
    let algorithm = rules::word(f, "algorithm", &["RSA", "ECDSA", "Ed25519"]);
    let size = f.number("size");
    if let Some(size) = size {
        fitting_size(f, algorithm.as_deref(), size);
    }
    let encoding = rules::word(f, "encoding", &["PKCS1", "PKCS8"]);
    let rotation = rules::word(f, "rotationPolicy", &["Never", "Always"]);
    let size = size.map(|size| size.to_string().into());
    let all =
        [("algorithm", algorithm), ("encoding", encoding), ("rotationPolicy", rotation), ("size", size)].into_iter();
    all.filter_map(|(key, value)| Some((key.into(), value?))).collect()
}

fn fitting_size(f: &Fields<'_>, algorithm: Option<&str>, size: i64) {
    match algorithm {
        None => f.invalid("size", "needs `algorithm` beside it"),
        Some("RSA") if !(2048..=8192).contains(&size) => {
            f.invalid("size", format!("is {size}; an RSA key has 2048 to 8192 bits"));
        }
        Some("ECDSA") if ![256, 384, 521].contains(&size) => {
            f.invalid("size", format!("is {size}; an ECDSA key has 256, 384 or 521 bits"));
        }
        Some("Ed25519") => f.invalid("size", "is set; keys of Ed25519 have one size only"),
        _ => {}
    }
}

/// cert-manager's defaults: an Issuer of its own group.
fn issuer(f: &Fields<'_>) -> Reference {
    Reference {
        group: f.shaped("group", Shape::Group).unwrap_or_else(|| "cert-manager.io".into()),
        kind: f.shaped("kind", Shape::Kind).unwrap_or_else(|| "Issuer".into()),
        namespace: None,
        name: f.required("name", Shape::ObjectName),
    }
}
