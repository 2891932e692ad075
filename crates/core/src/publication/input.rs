//! What the stages of publication look at; values only, nothing is decided here.

use super::PublicationSettings;
use crate::attachment::Topology;
use crate::policy::Policies;
use crate::snapshot::Snapshot;

/// The objects, what attaches where, and the settings.
#[derive(Clone, Copy)]
pub(crate) struct PublicationInput<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) topology: &'a Topology,
    pub(crate) settings: &'a PublicationSettings,
}

/// The same with the policies, from which listener contexts are made.
#[derive(Clone, Copy)]
pub(crate) struct ListenerInput<'a> {
    pub(crate) base: PublicationInput<'a>,
    pub(crate) policies: &'a Policies,
}
