//! TLSPolicy.

use gatepost_core::model::{Meta, PolicyTarget, Reference, TlsPolicy};
use gatepost_core::snapshot::Object;

use super::dns::wildcards;
use super::{duration, plain, target};
use crate::fields::Fields;
use crate::references::nobody;
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
    let settings = f.entries("privateKey", |_, node| plain(node.value()));
    policy.private_key = settings.into_iter().collect();
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
