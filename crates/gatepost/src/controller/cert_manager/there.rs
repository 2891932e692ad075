//! Lookups for one certificate: existing Certificate objects, its policy, and the listeners that refer to its Secret.
//!
//! Nothing is written or decided here.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::{Key, Kind, Listener, Str, TlsPolicy};
use gatepost_core::publication::{Certificate, Desired};
use gatepost_core::snapshot::{Snapshot, Visibility};
use gatepost_kube::mirror::MirrorSnapshot;
use gatepost_kube::objects::StoredObject;
use gatepost_tls::issuers::cert_manager::{is_ours, secret_of};
use serde_json::Value;

/// The existing Certificate objects, by key and by Secret.
pub(super) struct There<'a> {
    pub(super) objects: &'a BTreeMap<Key, StoredObject>,
    pub(super) by_secret: BTreeMap<Key, Vec<&'a StoredObject>>,
}

impl<'a> There<'a> {
    pub(super) fn of(copied: &'a MirrorSnapshot) -> There<'a> {
        let mut by_secret: BTreeMap<Key, Vec<&StoredObject>> = BTreeMap::new();
        for stored in copied.objects.values() {
            if let Some(secret) = secret_of(&stored.value) {
                by_secret.entry(secret).or_default().push(stored);
            }
        }
        There { objects: &copied.objects, by_secret }
    }

    /// Our object for a Secret, which has the same key.
    pub(super) fn ours(&self, secret: &Key) -> Option<&'a StoredObject> {
        self.objects.get(secret).filter(|stored| is_ours(&stored.value))
    }

    /// The objects that fill a Secret, and the one with its key.
    pub(super) fn concerned(&self, secret: &Key) -> Vec<&'a Value> {
        let fill = self.by_secret.get(secret).into_iter().flatten();
        fill.copied().chain(self.objects.get(secret)).map(|stored| &stored.value).collect()
    }
}

/// One certificate, and the objects that concern it.
pub(super) struct Case<'a> {
    pub(super) certificate: &'a Certificate,
    pub(super) desired: &'a Desired,
    /// Names whose records are kept because it is not known whether they ought to be gone.
    pub(super) held: &'a BTreeSet<Str>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) there: &'a There<'a>,
}

impl Case<'_> {
    pub(super) fn policy(&self) -> Option<&TlsPolicy> {
        let key = self.certificate.policy.as_ref()?;
        self.snapshot.tls_policies.get(key).map(|policy| &**policy)
    }

    /// The names that stay although they are not wanted; `current` are those of the object.
    pub(super) fn kept(&self, current: Option<&[Str]>) -> Vec<Str> {
        let kept = self.desired.kept_names.iter().filter(|kept| kept.secret == self.certificate.secret);
        let held = current.into_iter().flatten().filter(|name| self.held.contains(*name));
        kept.map(|kept| &kept.hostname).chain(held).cloned().collect()
    }
}

/// The Secrets that listeners refer to; `None` if not all listeners are visible.
pub(super) fn named(snapshot: &Snapshot) -> Option<BTreeSet<Key>> {
    let kinds = [Kind::Gateway, Kind::ListenerSet, Kind::XListenerSet];
    if kinds.iter().any(|kind| *snapshot.visibility(*kind) != Visibility::Complete) {
        return None;
    }
    let mut named = BTreeSet::new();
    let mut add = |namespace: &Str, listeners: &[Listener]| {
        let references = listeners.iter().flat_map(|listener| &listener.tls).flat_map(|tls| &tls.certificates);
        named.extend(references.map(|r| Key::new(r.namespace_or(namespace).clone(), r.name.clone())));
    };
    snapshot.gateways.values().for_each(|gateway| add(&gateway.meta.key.namespace, &gateway.listeners));
    snapshot.listener_sets.values().for_each(|set| add(&set.meta.key.namespace, &set.listeners));
    Some(named)
}
