//! The objects of every golden case, told to the engine in any order and in bursts: it says what the from-scratch path says.

use std::path::{Path, PathBuf};

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::incremental::Engine;
use gatepost_core::lint::LintContext;
use gatepost_core::publication::settings::{Profile, Publish};
use gatepost_core::publication::{self, PublicationSettings};
use gatepost_core::snapshot::{Change, FileFacts, Snapshot};
use gatepost_objects::collect;
use gatepost_testkit::tree;

/// Chance that repeats itself: splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) as usize % limit.max(1)
    }

    fn shuffled<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
        items
    }
}

fn cases(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the cases are there") {
        let path = entry.expect("a folder can be read").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if path.is_dir() {
            cases(&path, into);
        } else if name.ends_with(".yaml") && !name.ends_with(".out.yaml") {
            into.push(path);
        }
    }
}

fn settings() -> Vec<PublicationSettings> {
    let governed = PublicationSettings { publish: Publish::Governed, ..PublicationSettings::default() };
    let external = PublicationSettings {
        profile: Profile::ExternalDns,
        gateway_listener_sets: true,
        ..PublicationSettings::default()
    };
    vec![PublicationSettings::default(), governed, external]
}

fn compare(engine: &Engine, settings: &PublicationSettings, path: &Path) {
    let world = engine.world();
    let topology = Topology::build(world.snapshot(), &Scope::default());
    let expected = publication::build(world.snapshot(), &topology, settings);
    assert_eq!(world.desired(), expected, "{}", path.display());
    let told = LintContext { snapshot: world.snapshot(), topology: &topology }.diagnostics();
    assert_eq!(world.lint().diagnostics(), told, "{}", path.display());
}

/// Tells the objects in any order and in bursts, takes a third of them back, and tells those again.
fn follow(snapshot: &Snapshot, settings: &PublicationSettings, path: &Path, chance: &mut Chance) {
    let mut engine = Engine::new(settings.clone(), Scope::default(), snapshot.origin);
    let mut changes = chance.shuffled(Change::between(&Snapshot::new(), snapshot));
    while !changes.is_empty() {
        let burst = changes.len().min(1 + chance.below(4));
        engine.apply(changes.drain(..burst));
        compare(&engine, settings, path);
    }
    let all = chance.shuffled(Change::between(&Snapshot::new(), snapshot));
    let third: Vec<Change> = all.into_iter().step_by(3).collect();
    for change in &third {
        if let Change::Upsert(object) = change {
            engine.apply([Change::Delete(object.object())]);
            compare(&engine, settings, path);
        }
    }
    engine.apply(third);
    compare(&engine, settings, path);
    assert_eq!(engine.world().snapshot(), snapshot);
}

#[test]
fn every_golden_case_in_any_order() {
    let mut paths = Vec::new();
    cases(&tree::root().join("tests/cases"), &mut paths);
    paths.sort();
    assert!(paths.len() > 200, "{}", paths.len());
    let mut chance = Chance(1);
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let loaded = collect([(path.display().to_string().into(), bytes)], &gatepost_objects::ParseSettings::default());
        // Changes carry objects, and no facts about the files that they come from.
        let mut snapshot = loaded.snapshot;
        snapshot.file_facts = FileFacts::default();
        settings().iter().for_each(|settings| follow(&snapshot, settings, &path, &mut chance));
    }
}
