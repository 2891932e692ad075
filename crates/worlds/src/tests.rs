//! Worlds are what they say they are: read by the border without complaint, and judged by the rules as their status tells.

use std::collections::BTreeMap;

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::model::{ObjectRef, RouteKind, condition};
use gatepost_core::snapshot::Snapshot;
use gatepost_objects::{Loaded, ParseSettings, collect};

use super::*;

fn world(size: Size) -> World {
    World::new(size).unwrap()
}

fn read(world: &World, style: Style) -> Loaded {
    let texts = files(world, style).map(|file| (file.name.into(), file.text.into_bytes()));
    collect(texts, &ParseSettings::default())
}

fn all_kinds() -> Vec<(RouteKind, u32)> {
    RouteKind::ALL.map(|kind| (kind, 1)).to_vec()
}

/// Worlds of every shape.
fn sizes() -> Vec<Size> {
    let base = Size { kinds: all_kinds(), listeners: 8, refused: 0.2, policies: 0.5, ..Size::routes(400) };
    vec![
        Size::routes(0),
        Size::routes(120),
        Size::platform(300),
        base.clone(),
        Size { selectors: true, https: true, sections: 0.5, ..base.clone() },
        Size { listeners: 130, gateways: 3, wildcards: 0.3, addresses: Addresses::Dual, domains: 20, ..base.clone() },
        Size { listeners: 200, parents: 4, hostnames: 3, shared: 0.5, addresses: Addresses::Hostname, ..base.clone() },
        Size { listeners: 100, sets: Some(40), parents: 32, selectors: true, namespaces: Some(3), ..base },
    ]
}

#[test]
fn a_size_gives_the_same_bytes() {
    let texts = |seed| {
        let world = world(Size { seed, ..Size::platform(60) });
        world.documents(Style::Yaml).collect::<Vec<_>>()
    };
    assert_eq!(texts(1), texts(1));
    assert_ne!(texts(1), texts(2));
}

#[test]
fn both_styles_say_the_same_and_the_border_has_no_complaint() {
    for size in sizes() {
        let world = world(size.clone());
        let (yaml, json) = (read(&world, Style::Yaml), read(&world, Style::JsonLines));
        assert_eq!(yaml.snapshot.routes.len(), size.routes);
        assert_eq!(yaml.snapshot, json.snapshot);
        assert_eq!(read(&world, Style::JsonDocuments).snapshot, json.snapshot);
        assert_eq!(yaml.diagnostics, [], "{size:?}");
        assert_eq!(json.diagnostics, [], "{size:?}");
        assert_eq!(values::snapshot(&world), json.snapshot);
    }
}

#[test]
fn the_rules_judge_as_the_status_tells() {
    for size in sizes().into_iter().filter(|size| size.status) {
        let snapshot = values::snapshot(&world(size.clone()));
        let topology = Topology::build(&snapshot, &Scope::default());
        compare_routes(&topology);
        let refused = topology.routes.values().filter(|route| route.parents[0].attached.is_empty()).count();
        assert_eq!(refused > 0, size.refused > 0.0, "{size:?}");
        let refused_sets = topology.sets.values().filter(|set| set.refused.is_some()).count();
        assert_eq!(refused_sets > 0, size.refused > 0.0 && size.sets_per_gateway() > 0, "{size:?}");
    }
}

fn compare_routes(topology: &Topology) {
    for (object, route) in topology.routes.iter() {
        for (at, parent) in route.parents.iter().enumerate() {
            let told = route.route.status.iter().find(|status| status.parent == route.route.parents[at]);
            let accepted =
                told.and_then(|status| condition(&status.conditions, "Accepted")).is_some_and(|c| c.is_true());
            assert_eq!(!parent.attached.is_empty(), accepted, "{object} {:?} {:?}", parent.refused, parent.target);
        }
        let resolved = route
            .route
            .status
            .iter()
            .all(|status| condition(&status.conditions, "ResolvedRefs").is_none_or(|c| c.is_true()));
        assert_eq!(route.backends.is_empty(), resolved, "{object}");
    }
}

#[test]
fn listeners_are_judged_as_their_status_tells_and_know_how_many_routes_they_have() {
    for size in sizes().into_iter().filter(|size| size.status) {
        let world = world(size);
        let topology = Topology::build(&values::snapshot(&world), &Scope::default());
        let told = listener_statuses(&world);
        for (id, listener) in topology.listener_ids() {
            let key = listener.key();
            let (attached, accepted) = told[&(key.owner.clone(), key.section.to_string())];
            assert_eq!((topology.attached_routes(id) as u64, listener.is_serving()), (attached, accepted), "{key}");
        }
        assert_eq!(told.len(), topology.listener_ids().count());
    }
}

/// How many routes each listener is said to have, and whether it is said to be accepted.
fn listener_statuses(world: &World) -> BTreeMap<(ObjectRef, String), (u64, bool)> {
    let mut told = BTreeMap::new();
    for document in world.documents(Style::JsonLines) {
        let value: serde_json::Value = serde_json::from_str(&document.text).unwrap();
        for listener in value["status"]["listeners"].as_array().into_iter().flatten() {
            let name = listener["name"].as_str().unwrap().to_owned();
            let attached = listener["attachedRoutes"].as_u64().unwrap();
            told.insert((document.object.clone(), name), (attached, listener["conditions"][0]["status"] == "True"));
        }
    }
    told
}

#[test]
fn shares_are_kept() {
    let size = Size { wildcards: 0.2, listeners: 10, refused: 0.1, ..Size::routes(4000) };
    let snapshot = values::snapshot(&world(size));
    let wildcards = snapshot.routes.values().filter(|route| route.hostnames[0].text().starts_with("*.")).count();
    assert!((700..900).contains(&wildcards), "{wildcards}");
    let topology = Topology::build(&snapshot, &Scope::default());
    let wrong = topology.routes.values().filter(|r| r.parents[0].attached.is_empty() || !r.backends.is_empty()).count();
    assert!((320..480).contains(&wrong), "{wrong}");
}

#[test]
fn a_stream_repeats_itself_and_shows_every_event() {
    let world = world(Size::platform(200));
    let take = |seed| world.stream(seed, &Event::USUAL).take(400).collect::<Vec<_>>();
    assert_eq!(take(1), take(1));
    assert_ne!(take(1), take(2));
    for (event, _) in Event::USUAL {
        assert!(take(1).iter().any(|step| step.event == event && !step.told.is_empty()), "{event:?}");
    }
}

#[test]
fn changes_of_a_stream_pass_the_border_and_change_something() {
    let world = world(Size::platform(60));
    let mut reader = values::WorldReader::default();
    let mut snapshot = Snapshot::of(reader.objects(&world));
    let mut changed = 0;
    for step in world.stream(3, &Event::USUAL).take(150) {
        for told in &step.told {
            let before = snapshot.clone();
            snapshot.apply(reader.change(told).unwrap_or_else(|| panic!("{told:?}")));
            changed += usize::from(snapshot != before);
            let line: serde_json::Value = serde_json::from_str(&told.line()).unwrap();
            assert!(line["object"]["kind"].is_string(), "{line}");
        }
    }
    assert!(changed > 150, "{changed}");
}

#[test]
fn an_empty_world_has_a_stream_as_well() {
    let world = world(Size::routes(0));
    assert_eq!(world.stream(1, &Event::USUAL).take(100).count(), 100);
    assert_eq!(world.stream(1, &[]).next(), None);
}
