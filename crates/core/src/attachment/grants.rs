//! ReferenceGrants: who may refer into another namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::*;
use crate::snapshot::Snapshot;

/// All grants, by the namespace they open.
#[derive(Clone, Debug, Default)]
pub struct Grants(BTreeMap<Str, Vec<Arc<ReferenceGrant>>>);

/// Who refers.
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

    /// Whether the reference stays in its namespace or a grant permits it. Whether the target exists is never looked at, so
    /// that nothing about a foreign namespace is disclosed.
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
    grant.from.iter().any(from) && grant.to.iter().any(to)
}
