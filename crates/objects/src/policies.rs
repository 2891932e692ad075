//! DNSPolicy, TLSPolicy and HostnameGrant of gatepost.dev.

use gatepost_core::model::{GATEWAY_GROUP, PolicyTarget, Reference};

use crate::fields::Fields;
use crate::rules;
use crate::shapes::Shape;
use crate::times::seconds;

mod dns;
mod grant;
mod tls;

pub(crate) use dns::read as dns;
pub(crate) use grant::read as grant;
pub(crate) use tls::read as tls;

/// Reads `targetRef`. A section that cannot be read is one that nobody has: an absent one would mean the whole object.
fn target(f: &Fields<'_>) -> PolicyTarget {
    f.require("targetRef");
    let target = f.mapping("targetRef", |f| {
        let group = rules::word(f, "group", &[GATEWAY_GROUP]).unwrap_or_else(|| GATEWAY_GROUP.into());
        let kind = f.required("kind", Shape::Kind);
        if !kind.is_empty() {
            rules::word(f, "kind", &["Gateway", "ListenerSet"]);
        }
        let object = Reference { group, kind, namespace: None, name: f.required("name", Shape::ObjectName) };
        PolicyTarget { object, section: f.shaped("sectionName", Shape::Subdomain) }
    });
    target.unwrap_or_else(|| PolicyTarget { object: crate::references::nobody(), section: None })
}

/// Reads a duration such as `5m` or `2160h` as seconds.
fn duration(f: &Fields<'_>, key: &'static str) -> Option<u64> {
    let node = f.node(key)?;
    let text = node.shaped(Shape::Duration)?;
    let found = seconds(text);
    if found == Some(0) {
        node.invalid("is less than a second");
    }
    found
}

#[cfg(test)]
mod tests;
