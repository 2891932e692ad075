//! Gatepost's side: objects in memory to what ought to exist, from scratch and change by change.

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::incremental::Engine;
use gatepost_core::publication::settings::Profile;
use gatepost_core::publication::{self, Desired, PublicationSettings};
use gatepost_core::snapshot::{Change, Object, Origin, Snapshot};

/// Everything that ought to exist, certificates included.
pub(super) fn strict(snapshot: &Snapshot) -> Desired {
    let topology = Topology::build(snapshot, &Scope::default());
    publication::build(snapshot, &topology, &PublicationSettings::default())
}

/// What external-dns would publish.
pub(super) fn external_dns(snapshot: &Snapshot) -> Desired {
    let settings = PublicationSettings {
        profile: Profile::ExternalDns,
        gateway_listener_sets: true,
        ..PublicationSettings::default()
    };
    publication::build(snapshot, &Topology::default(), &settings)
}

/// A world that is kept up to date while changes come in.
pub(super) struct Kept(Engine);

impl Kept {
    /// Takes all objects in at once.
    pub(super) fn new(objects: impl IntoIterator<Item = Object>) -> Kept {
        let mut engine = Engine::new(PublicationSettings::default(), Scope::default(), Origin::Files);
        engine.apply(objects.into_iter().map(Change::Upsert));
        Kept(engine)
    }

    /// Takes one change in, and asks for the records and certificates of whatever is different then; how many there are.
    pub(super) fn change(&mut self, change: Change) -> usize {
        let delta = self.0.apply([change]);
        let world = self.0.world();
        let records: usize = delta.names.iter().map(|name| world.records(name).len()).sum();
        records + delta.certificates.iter().filter(|secret| world.certificate(secret).is_some()).count()
    }

    /// Whether it is what a computation from scratch gives of the same objects.
    pub(super) fn is_right(&self) -> bool {
        let world = self.0.world();
        world.desired() == strict(world.snapshot())
    }
}
