//! Settings of the planner: policy, registry, capabilities of the provider, and confirmations.

use std::collections::{BTreeMap, BTreeSet};

use super::PlanStep;
use super::layout::Layout;
use super::seal::SealKey;
use super::stamp::Instance;
use crate::model::Str;
use crate::publication::RecordType;

/// The settings of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSettings {
    /// What may be written at all.
    pub policy: Policy,
    /// How ownership is known.
    pub registry: Registry,
    /// Managed types; all others are never changed.
    pub managed: BTreeSet<RecordType>,
    /// What the provider can.
    pub capabilities: Capabilities,
    /// Whether the deletes held by safety rules are confirmed.
    pub confirm_deletes: bool,
    /// Whether the owner id alone proves enough to delete a record that this instance never wrote nor wanted.
    pub trust_unstamped: bool,
    /// Names whose unmanaged records are adopted.
    pub adopt: BTreeSet<Str>,
    /// Record sets deleted recently, by zone: the limit on deletes includes them.
    pub recent_deletes: BTreeMap<Str, usize>,
    /// Names that were seen to lose their records: an object changed or went while it was followed. An emptied source does not
    /// hold them (D33).
    pub explained: BTreeSet<Str>,
    /// Changes that had no effect before, by [`PlanStep::mark`].
    pub ineffective: BTreeSet<String>,
    /// Names that move to another provider and are not known to be there yet, with its name: they are kept here.
    pub moving: BTreeMap<Str, Str>,
    /// Names that another provider publishes now and is known to have, with its name: they go here.
    pub moved: BTreeMap<Str, Str>,
}

/// What may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Everything.
    #[default]
    Sync,
    /// No deletes.
    UpsertOnly,
    /// No deletes and no updates.
    CreateOnly,
}

/// How ownership of records is determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registry {
    /// By TXT records, as in external-dns. Boxed, because the other two variants are empty.
    Txt(Box<TxtRegistry>),
    /// Not at all: what is wanted is written, and nothing is ever deleted.
    Noop,
    /// The zone has no other writer: every record of a managed type is ours.
    WholeZone,
}

/// The TXT registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxtRegistry {
    /// Our owner id.
    pub owner: Str,
    /// The names of markers.
    pub layout: Layout,
    /// The key for sealed values.
    pub key: Option<SealKey>,
    /// Whether values are sealed when written; reading needs the key only.
    pub is_sealing: bool,
    /// Which instance we are.
    pub instance: Instance,
    /// The owner id whose records are adopted.
    pub migrate_from: Option<Str>,
    /// Whether records of another instance under our owner id are adopted.
    pub replaces_instance: bool,
}

/// What a provider can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether all steps of a zone can be written in one transaction.
    pub is_atomic: bool,
    /// Whether the provider supports alias records where a CNAME is not allowed.
    pub has_aliases: bool,
    /// Whether properties of records are kept.
    pub has_properties: bool,
    /// Whether set identifiers distinguish record sets of one name and type.
    pub has_set_identifiers: bool,
    /// The lowest TTL that is kept as it is written.
    pub min_ttl: u32,
}

impl PlanSettings {
    /// The usual settings with a registry.
    pub fn new(registry: Registry) -> Self {
        PlanSettings {
            policy: Policy::Sync,
            registry,
            managed: [RecordType::A, RecordType::Aaaa, RecordType::Cname].into(),
            capabilities: Capabilities::default(),
            confirm_deletes: false,
            trust_unstamped: false,
            adopt: BTreeSet::new(),
            recent_deletes: BTreeMap::new(),
            explained: BTreeSet::new(),
            ineffective: BTreeSet::new(),
            moving: BTreeMap::new(),
            moved: BTreeMap::new(),
        }
    }

    /// Whether a change had no effect before.
    pub(super) fn was_ineffective(&self, step: &PlanStep) -> bool {
        !self.ineffective.is_empty() && step.mark().is_some_and(|mark| self.ineffective.contains(&mark))
    }

    /// The TXT registry, if it is used.
    pub(super) fn txt(&self) -> Option<&TxtRegistry> {
        match &self.registry {
            Registry::Txt(registry) => Some(registry),
            _ => None,
        }
    }
}

impl TxtRegistry {
    /// A registry with plain values in the usual places. `owner` has neither comma nor quote, see [`TxtRegistry::is_owner`].
    pub fn new(owner: &str, instance: Instance) -> Self {
        TxtRegistry {
            owner: owner.into(),
            layout: Layout::default(),
            key: None,
            is_sealing: false,
            instance,
            migrate_from: None,
            replaces_instance: false,
        }
    }

    /// Whether a text can be an owner id: it comes back from the value it is written into.
    pub fn is_owner(text: &str) -> bool {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b',' | b'"' | b'\\'));
        is_plain && (1..=128).contains(&text.len())
    }
}

impl Policy {
    /// The value of `--policy`.
    pub fn as_str(self) -> &'static str {
        match self {
            Policy::Sync => "sync",
            Policy::UpsertOnly => "upsert-only",
            Policy::CreateOnly => "create-only",
        }
    }
}

impl Default for Capabilities {
    /// The minimum of every provider: single changes, no properties, no identifiers.
    fn default() -> Self {
        Capabilities {
            is_atomic: false,
            has_aliases: false,
            has_properties: false,
            has_set_identifiers: false,
            min_ttl: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_id_survives_the_value_it_stands_in() {
        assert!(TxtRegistry::is_owner("cluster-1"));
        for text in ["", "a,b", "a\"b", "a b", &"x".repeat(200)] {
            assert!(!TxtRegistry::is_owner(text), "{text}");
        }
    }
}
