//! The inputs of the publication stages; values only, nothing is decided here.

use super::PublicationSettings;
use crate::attachment::Topology;
use crate::policy::Policies;
use crate::snapshot::Snapshot;

/// The snapshot, its topology and the settings.
#[derive(Clone, Copy)]
pub(crate) struct PublicationInput<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) topology: &'a Topology,
    pub(crate) settings: &'a PublicationSettings,
}

/// The same and the policies: the input of listener contexts.
#[derive(Clone, Copy)]
pub(crate) struct ListenerInput<'a> {
    pub(crate) base: PublicationInput<'a>,
    pub(crate) policies: &'a Policies,
}
