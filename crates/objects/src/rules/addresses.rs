//! Rules about `spec.addresses` of a Gateway.

use gatepost_core::diagnostic::FieldPath;
use gatepost_core::model::Address;
use gatepost_core::names::{Hostname, is_ip};

use crate::fields::{Fields, shortened};
use crate::rules;
use crate::shapes::{Shape, is_subdomain};

const KINDS: &[&str] = &["IPAddress", "Hostname", "NamedAddress"];

/// Checks all addresses that a Gateway asks for.
pub(crate) fn check(spec: &Fields<'_>, addresses: &[Address]) {
    rules::at_most(spec, "addresses", addresses.len(), 16);
    unique(spec, addresses);
    for (i, address) in addresses.iter().enumerate() {
        let path = spec.path().key("addresses").field().index(i);
        kind(spec, &path, address);
        value(spec, &path, address);
        routability(spec, &path, address);
    }
}

fn unique(spec: &Fields<'_>, addresses: &[Address]) {
    let named: Vec<String> =
        addresses.iter().map(|a| if compared(a) { format!("{} {}", a.kind, a.value) } else { String::new() }).collect();
    rules::unique(spec, "addresses", Some("value"), named.iter(), "address");
}

fn compared(address: &Address) -> bool {
    !address.value.is_empty() && matches!(&*address.kind, "IPAddress" | "Hostname")
}

fn kind(spec: &Fields<'_>, path: &FieldPath, address: &Address) {
    let known = KINDS.contains(&&*address.kind) || Shape::DomainPath.complaint(&address.kind).is_none();
    if !known {
        let message =
            format!("is `{}`, known values are {} and domain/word", shortened(&address.kind), KINDS.join(", "));
        spec.tell_at(gatepost_core::reason::UNKNOWN_VALUE, path.key("type"), message);
    }
}

fn value(spec: &Fields<'_>, path: &FieldPath, address: &Address) {
    let shown = shortened(&address.value);
    match &*address.kind {
        _ if address.value.is_empty() => {}
        "IPAddress" if address.value.contains('[') || !is_ip(&address.value) => {
            let message = format!("is \"{shown}\", which is not an IP address; write one, or set `type: Hostname`");
            spec.invalid_at(path.key("value"), message);
        }
        "Hostname" => {
            if let Err(error) = Hostname::parse(&address.value) {
                spec.invalid_at(path.key("value"), format!("is \"{shown}\", which {error}"));
            }
        }
        _ => {}
    }
}

fn routability(spec: &Fields<'_>, path: &FieldPath, address: &Address) {
    let Some(word) = address.routability.as_deref() else { return };
    let own = word.split_once('/').is_some_and(|(domain, rest)| {
        !rest.is_empty() && is_subdomain(domain) && domain != "k8s.io" && !domain.ends_with(".k8s.io")
    });
    if word != "Cluster" && !own {
        let message =
            format!("is \"{}\"; it is `Cluster`, or a domain other than k8s.io, a `/` and a word", shortened(word));
        spec.invalid_at(path.key("routability"), message);
    }
}
