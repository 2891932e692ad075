//! The inputs of the publication stages; values only, nothing is decided here.

use super::PublicationSettings;
use super::hostname_grants::{GrantRefusal, GrantRules, HostnameGrants};
use crate::attachment::{ListenerState, Topology};
use crate::names::Hostname;
use crate::policy::Policies;
use crate::snapshot::Snapshot;

/// The snapshot, its topology and the settings.
#[derive(Clone, Copy)]
pub(crate) struct PublicationInput<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) topology: &'a Topology,
    pub(crate) settings: &'a PublicationSettings,
    pub(crate) grants: &'a HostnameGrants,
}

impl<'a> PublicationInput<'a> {
    /// Which namespaces may have which names.
    pub(crate) fn grant_rules(self) -> GrantRules<'a> {
        GrantRules { snapshot: self.snapshot, grants: self.grants, is_required: self.settings.require_grants }
    }

    /// Whether a listener's own wildcard may be published and certified where a policy allows it. The owner of the listener
    /// asks for it, whichever routes attach.
    pub(super) fn may_have_wildcard(self, listener: &ListenerState, wildcard: &Hostname) -> bool {
        wildcard.is_wildcard()
            && self.settings.domains.admits(wildcard.as_str())
            && self.grant_rules().certain_refusal(wildcard, &listener.owner.meta().key.namespace).is_none()
    }

    /// Why it is not known whether names may be published at a listener: HostnameGrants could not be seen, or those for its
    /// own wildcard are not known.
    pub(super) fn unknown_grants(self, listener: &ListenerState, has_wildcard: bool) -> Option<GrantRefusal> {
        let rules = self.grant_rules();
        let wildcard = Some(&listener.hostname).filter(|name| has_wildcard && name.is_wildcard());
        let of_wildcard = || rules.refusal(wildcard?, &listener.owner.meta().key.namespace);
        rules.unseen().or_else(|| of_wildcard().filter(|refusal| refusal.reason.is_unknown()))
    }
}

/// The same and the policies: the input of listener contexts.
#[derive(Clone, Copy)]
pub(crate) struct ListenerInput<'a> {
    pub(crate) base: PublicationInput<'a>,
    pub(crate) policies: &'a Policies,
}
