//! A world that is larger than those of the other tests: change by change it is what it is from scratch.
//!
//! Some mistakes only show where tables are deep and a certificate has no room for most of its names.

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::incremental::Engine;
use gatepost_core::publication::{self, PublicationSettings};
use gatepost_core::snapshot::{Change, Origin};
use gatepost_worlds::values::WorldReader;
use gatepost_worlds::{Event, Size, World};

const ROUTES: usize = 20_000;
const CHANGES: usize = 100;

#[track_caller]
fn is_right(engine: &Engine) {
    let world = engine.world();
    let topology = Topology::build(world.snapshot(), &Scope::default());
    let scratch = publication::build(world.snapshot(), &topology, &PublicationSettings::default());
    assert!(scratch.records.len() > ROUTES / 2, "most routes have records");
    assert!(world.desired() == scratch, "the engine and the computation from scratch disagree");
}

#[test]
fn a_large_world_is_what_it_is_from_scratch() {
    let world = World::new(Size { routes: ROUTES, https: true, ..Size::default() }).expect("the size is possible");
    let mut reader = WorldReader::default();
    let mut engine = Engine::new(PublicationSettings::default(), Scope::default(), Origin::Files);
    engine.apply(reader.objects(&world).map(Change::Upsert));
    is_right(&engine);
    for step in world.stream(1, &Event::USUAL).take(CHANGES) {
        engine.apply(step.told.iter().filter_map(|told| reader.change(told)));
    }
    is_right(&engine);
}
