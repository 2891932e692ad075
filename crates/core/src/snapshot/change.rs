//! Changes that a source reports: an object exists, an object is deleted, or a kind's visibility.
//!
//! A change is a fact and never a decision. It carries the whole object, so repeating a change, or applying only the
//! last of several, leads to the same snapshot.

use std::sync::Arc;

use super::{Object, Snapshot, Visibility};
use crate::model::{Kind, ObjectRef};

/// One change reported by a source.
// Nearly all changes carry an object, so boxing it would only add an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are upserts")]
pub enum Change {
    /// The object exists with this content.
    Upsert(Object),
    /// The object is deleted.
    Delete(ObjectRef),
    /// All objects of the kind were reported, or the kind cannot be listed, with the reason.
    Sight(Kind, Visibility),
}

impl Change {
    /// The changes that turn one snapshot into another of the same origin.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Vec<Change> {
        let mut all = Vec::new();
        differences(before.classes.iter(), after.classes.iter(), Object::GatewayClass, &mut all);
        differences(before.gateways.iter(), after.gateways.iter(), Object::Gateway, &mut all);
        differences(before.listener_sets.iter(), after.listener_sets.iter(), Object::ListenerSet, &mut all);
        differences(before.routes.iter(), after.routes.iter(), Object::Route, &mut all);
        differences(before.grants.iter(), after.grants.iter(), Object::ReferenceGrant, &mut all);
        differences(before.namespaces.iter(), after.namespaces.iter(), Object::Namespace, &mut all);
        differences(before.services.iter(), after.services.iter(), Object::Service, &mut all);
        differences(before.secrets.iter(), after.secrets.iter(), Object::Secret, &mut all);
        differences(before.config_maps.iter(), after.config_maps.iter(), Object::ConfigMap, &mut all);
        differences(before.dns_policies.iter(), after.dns_policies.iter(), Object::DnsPolicy, &mut all);
        differences(before.tls_policies.iter(), after.tls_policies.iter(), Object::TlsPolicy, &mut all);
        differences(before.hostname_grants.iter(), after.hostname_grants.iter(), Object::HostnameGrant, &mut all);
        let kinds = Kind::ALL.into_iter().filter(|kind| before.visibility(*kind) != after.visibility(*kind));
        all.extend(kinds.map(|kind| Change::Sight(kind, after.visibility(kind).clone())));
        all
    }
}

/// Merges two sorted maps and collects the differences.
fn differences<'a, K: Ord, T: Clone + Eq + 'a>(
    before: impl Iterator<Item = (K, &'a Arc<T>)>,
    after: impl Iterator<Item = (K, &'a Arc<T>)>,
    object: impl Fn(T) -> Object,
    into: &mut Vec<Change>,
) {
    let (mut old, mut new) = (before.peekable(), after.peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
        };
        let gone = if order.is_le() { old.next() } else { None };
        let there = if order.is_ge() { new.next() } else { None };
        match (gone, there) {
            (Some((_, a)), Some((_, b))) if a == b => {}
            (_, Some((_, object_now))) => into.push(Change::Upsert(object((**object_now).clone()))),
            (Some((_, before)), None) => into.push(Change::Delete(object((**before).clone()).object())),
            (None, None) => return,
        }
    }
}

impl Snapshot {
    /// Applies one change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Upsert(object) => {
                self.upsert(object);
            }
            Change::Delete(object) => {
                self.remove(&object);
            }
            Change::Sight(kind, visibility) => self.set_visibility(kind, visibility),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Meta, Service};

    #[test]
    fn what_lies_between_two_snapshots_leads_from_one_to_the_other() {
        let service = |name: &str, label: &str| {
            let mut meta = Meta::named("a", name);
            meta.labels.insert("l".into(), label.into());
            Object::Service(Service { meta, ports: Vec::new() })
        };
        let mut before = Snapshot::of([service("x", "1"), service("y", "1"), service("z", "1")]);
        let mut after = Snapshot::of([service("w", "1"), service("y", "2"), service("z", "1")]);
        after.set_visibility(Kind::Secret, Visibility::NotVisible("forbidden".into()));
        let changes = Change::between(&before, &after);
        assert_eq!(changes.len(), 4);
        changes.into_iter().for_each(|change| before.apply(change));
        assert_eq!(before, after);
        assert!(Change::between(&before, &after).is_empty());
    }

    #[test]
    fn changes_lead_to_the_same_snapshot_when_told_twice() {
        let service = Object::Service(Service { meta: Meta::named("a", "x"), ports: Vec::new() });
        let gone = Change::Delete(service.object());
        let hidden = Change::Sight(Kind::Secret, Visibility::NotVisible("forbidden".into()));
        let mut snapshot = Snapshot::new();
        for change in [Change::Upsert(service.clone()), Change::Upsert(service), hidden.clone(), hidden] {
            snapshot.apply(change);
        }
        assert_eq!(snapshot.len(), 1);
        assert_eq!(snapshot.visibility(Kind::Secret), &Visibility::NotVisible("forbidden".into()));
        snapshot.apply(gone.clone());
        snapshot.apply(gone);
        assert!(snapshot.is_empty());
    }
}
