//! Events about certificates on Gateways, ListenerSets and routes: issued certificates, and names without one.
//!
//! Names that are pending are only in the policy's status; an Event is written only for what somebody should look at.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::{Key, ObjectRef, Str};
use gatepost_core::publication::{Certificate, Desired, Record};
use gatepost_core::reason::{HOSTNAME_HELD, HOSTNAME_NOT_GRANTED};
use gatepost_kube::objects::EventNote;
use gatepost_tls::certifier::{IssuanceEventKind, IssuanceState};

use super::matters;
use crate::run::Pass;
use crate::run::desired::records_at;

/// The Events of a pass.
pub(super) fn notes(pass: &Pass, desired: &Desired) -> Vec<(ObjectRef, EventNote)> {
    let certificates: BTreeMap<&Key, &Certificate> =
        desired.certificates.iter().map(|certificate| (&certificate.secret, certificate)).collect();
    let mut notes = Vec::new();
    for news in pass.news.iter().filter(|news| news.what == IssuanceEventKind::Issued) {
        let text = format!("Secret {} {}", news.secret, news.text);
        let note = EventNote { is_warning: false, reason: "CertificateIssued".into(), action: "Certify", text };
        let owners = certificates.get(&news.secret).map(|certificate| owners(certificate)).unwrap_or_default();
        notes.extend(owners.into_iter().map(|owner| (owner, note.clone())));
    }
    for state in &pass.issuing {
        if let Some(certificate) = certificates.get(&state.secret) {
            notes.extend(missing(state, certificate, desired));
        }
    }
    notes
}

/// Events about names that a Secret may not have, because another namespace holds them or they are not granted, on the Gateway
/// or ListenerSet that refers to it.
pub(super) fn refused(desired: &Desired) -> impl Iterator<Item = (ObjectRef, EventNote)> {
    let is_refusal = |reason| [HOSTNAME_HELD, HOSTNAME_NOT_GRANTED].contains(&reason);
    let of_secrets = desired.diagnostics.iter().filter(move |diagnostic| is_refusal(diagnostic.reason));
    of_secrets.filter_map(|diagnostic| {
        let text = format!("{} ({}): {}", diagnostic.field, diagnostic.reason, diagnostic.message);
        let note = EventNote { is_warning: true, reason: "CertificateMissing".into(), action: "Certify", text };
        Some((diagnostic.object.clone()?, note))
    })
}

/// Events about names without a certificate, for reasons that need attention. One per reason on the Gateway, and one on
/// each route that has such a name.
fn missing(state: &IssuanceState, certificate: &Certificate, desired: &Desired) -> Vec<(ObjectRef, EventNote)> {
    let mut notes = Vec::new();
    let mut by_reason: BTreeMap<(&str, String), Vec<&Str>> = BTreeMap::new();
    for name in &state.wanted {
        if let Some((reason, why)) = state.obstacle(name).filter(|(reason, _)| matters(*reason)) {
            by_reason.entry((reason.name(), why)).or_default().push(name);
        }
    }
    for ((reason, why), names) in by_reason {
        let note = |names: &[&Str]| {
            let names: Vec<&str> = names.iter().take(10).map(|name| &***name).collect();
            let text = format!("Secret {} has no certificate for {} ({reason}): {why}", state.secret, names.join(", "));
            EventNote { is_warning: true, reason: "CertificateMissing".into(), action: "Certify", text }
        };
        notes.extend(owners(certificate).into_iter().map(|owner| (owner, note(&names))));
        for name in names {
            let routes = records_at(desired, name).iter().flat_map(routes);
            let routes: BTreeSet<ObjectRef> = routes.collect();
            notes.extend(routes.into_iter().map(|route| (route, note(&[name]))));
        }
    }
    notes
}

fn routes(record: &Record) -> Vec<ObjectRef> {
    record.routes.to_vec()
}

/// The Gateways and ListenerSets whose listeners refer to the Secret.
fn owners(certificate: &Certificate) -> BTreeSet<ObjectRef> {
    certificate.listeners.iter().map(|listener| listener.owner.clone()).collect()
}
