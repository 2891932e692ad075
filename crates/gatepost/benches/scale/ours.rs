//! Gatepost's side: objects in memory to what ought to exist, from scratch and change by change.

use gatepost_core::desired::settings::Profile;
use gatepost_core::desired::{self, Desired, Settings};
use gatepost_core::snapshot::{Change, Snapshot};
use gatepost_core::topology::{Scope, Topology};

/// Everything that ought to exist, certificates included.
pub(super) fn strict(snapshot: &Snapshot) -> Desired {
    let topology = Topology::build(snapshot, &Scope::default());
    desired::build(snapshot, &topology, &Settings::default())
}

/// What external-dns would publish.
pub(super) fn external_dns(snapshot: &Snapshot) -> Desired {
    let settings = Settings { profile: Profile::ExternalDns, gateway_listener_sets: true, ..Settings::default() };
    desired::build(snapshot, &Topology::default(), &settings)
}

/// A world that is kept up to date while changes come in.
pub(super) struct Kept {
    snapshot: Snapshot,
    desired: Desired,
}

impl Kept {
    pub(super) fn new(snapshot: Snapshot) -> Kept {
        let desired = strict(&snapshot);
        Kept { snapshot, desired }
    }

    /// Takes one change in; how many records there are then.
    pub(super) fn change(&mut self, change: Change) -> usize {
        self.snapshot.apply(change);
        self.desired = strict(&self.snapshot);
        self.desired.records.len()
    }
}
