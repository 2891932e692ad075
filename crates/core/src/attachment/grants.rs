//! ReferenceGrants: which references into another namespace are allowed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::*;
use crate::snapshot::Snapshot;

/// All grants, by their namespace, which is the one that they allow references into.
#[derive(Clone, Debug, Default)]
pub struct Grants(BTreeMap<Str, Vec<Arc<ReferenceGrant>>>);

/// The object that contains a reference.
#[derive(Clone, Copy, Debug)]
pub struct Referrer<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: &'a Str,
}

impl Grants {
    /// The grants of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut grants = Grants::default();
        for grant in snapshot.grants.values() {
            grants.0.entry(grant.meta.key.namespace.clone()).or_default().push(grant.clone());
        }
        grants
    }

    /// Reads the grants of one namespace again.
    pub(crate) fn refresh(&mut self, snapshot: &Snapshot, namespace: &Str) {
        let from = Key::new(namespace.clone(), "");
        let here = snapshot.grants.range(from..).take_while(|(key, _)| key.namespace == *namespace);
        let here: Vec<_> = here.map(|(_, grant)| grant.clone()).collect();
        match here.is_empty() {
            true => _ = self.0.remove(namespace),
            false => _ = self.0.insert(namespace.clone(), here),
        }
    }

    /// Whether a reference stays in its namespace or is granted. Existence of the target is never checked, so that
    /// nothing about another namespace is disclosed.
    pub fn permit(&self, referrer: Referrer<'_>, target: &Reference) -> bool {
        let namespace = target.namespace_or(referrer.namespace);
        namespace == referrer.namespace
            || self.0.get(namespace).is_some_and(|grants| grants.iter().any(|g| permits(g, referrer, target)))
    }
}

fn permits(grant: &ReferenceGrant, referrer: Referrer<'_>, target: &Reference) -> bool {
    let from = |f: &GrantFrom| {
        *f.group == *referrer.kind.group() && *f.kind == *referrer.kind.as_str() && f.namespace == *referrer.namespace
    };
    let to = |t: &GrantTo| {
        t.group == target.group && t.kind == target.kind && t.name.as_ref().is_none_or(|name| *name == target.name)
    };
    grant.meta.invalid.is_none() && grant.from.iter().any(from) && grant.to.iter().any(to)
}
