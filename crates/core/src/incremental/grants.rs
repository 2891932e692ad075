//! Indexes HostnameGrants again where they changed, and marks what depends on them. Nothing is decided here.
//!
//! Grants change rarely, and a claim does not tell which grants it depends on, so a changed grant marks all routes and
//! listeners, and the names and Secrets that it concerns.

use std::collections::BTreeSet;

use super::Engine;
use super::dirty::Dirty;
use crate::model::{Key, Str};
use crate::names::Hostname;
use crate::publication::{HostnameGrants, RouteNameClaim};

impl Engine {
    /// Indexes the grants again if one changed.
    pub(super) fn update_grants(&mut self, dirty: &mut Dirty) {
        if !std::mem::take(&mut dirty.grants) {
            return;
        }
        let after = HostnameGrants::of(&self.world.snapshot);
        let before = std::mem::replace(&mut self.hostname_grants, after);
        if before == self.hostname_grants {
            return;
        }
        let after = &self.hostname_grants;
        let claims = self.indexes.routes.all().filter_map(|id| self.indexes.routes.claims(id));
        let names: BTreeSet<&Hostname> =
            claims.flat_map(|claims| RouteNameClaim::all(claims)).map(|(name, _)| name).collect();
        let differs = |name: &&Hostname| before.covering(name) != after.covering(name);
        dirty.names.extend(names.into_iter().filter(differs).cloned());
        dirty.routes.extend(self.indexes.routes.all());
        self.mark_grants(dirty);
    }

    /// Marks what depends on grants besides routes and names: listeners, certificates and hidden names.
    pub(super) fn mark_grants(&mut self, dirty: &mut Dirty) {
        dirty.contexts.extend(self.group_numbers.numbers());
        dirty.secrets.extend(self.world.certificate_states.keys().cloned());
        self.hidden.touch_wildcards(&self.world.names);
    }

    /// Marks what depends on whether grants select a namespace, besides its routes.
    pub(super) fn mark_selected(&mut self, namespace: &Str, dirty: &mut Dirty) {
        if !self.hostname_grants.has_selectors() && !dirty.grants {
            return;
        }
        dirty.contexts.extend(self.group_numbers.numbers());
        let from = Key::new(namespace.clone(), "");
        let secrets = self.world.certificate_states.range(from..).map(|(secret, _)| secret);
        dirty.secrets.extend(secrets.take_while(|secret| secret.namespace == *namespace).cloned());
        self.hidden.touch_wildcards(&self.world.names);
    }
}
