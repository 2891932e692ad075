//! What is told of certificates on Gateways, ListenerSets and routes: what was issued, and names that get none.
//!
//! Names that merely wait are in the policy's status; only what somebody should look at is an Event.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::{Key, ObjectRef, Str};
use gatepost_core::publication::{Certificate, Desired, Record};
use gatepost_kube::objects::EventNote;
use gatepost_tls::certifier::{IssuanceEventKind, IssuanceState};

use super::matters;
use crate::run::Pass;
use crate::run::desired::records_at;

/// What there is to tell.
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

/// Names that get no certificate, for a reason that somebody should know: on the Gateway once for each reason, and on the
/// routes that serve them.
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

/// The Gateways and ListenerSets whose listeners name the Secret.
fn owners(certificate: &Certificate) -> BTreeSet<ObjectRef> {
    certificate.listeners.iter().map(|listener| listener.owner.clone()).collect()
}
