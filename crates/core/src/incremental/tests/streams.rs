//! After every change, in any order, one by one or in bursts, the engine equals a full build.

use std::sync::{Arc, Weak};

use super::compare::{Look, assert_same, check_delta, check_patched, check_routing, from_scratch, of_engine};
use super::making::{self, Chance};
use crate::health::{AddressPublication, ObservedHealth};
use crate::incremental::{Delta, Engine};
use crate::model::{ObjectRef, Route};
use crate::publication::holders::ObservedNames;
use crate::publication::settings::Profile;
use crate::publication::{Desired, PresentState};
use crate::snapshot::{Change, Object, Snapshot};

/// Applies a delta to a desired state; the result of the external-dns profile is only built as a whole.
fn patch(engine: &Engine, delta: &Delta, kept: &mut Desired) {
    match engine.world().settings.profile {
        Profile::Strict => engine.patch(delta).apply(kept),
        Profile::ExternalDns => *kept = engine.world().desired(),
    }
}

/// A stream of changes: `filled` objects at once, then `steps` bursts of up to `burst` changes.
fn stream(seed: u64, filled: usize, steps: usize, burst: usize) {
    let mut chance = Chance(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let (settings, scope, origin) =
        (making::settings(&mut chance), making::scope(&mut chance), making::origin(&mut chance));
    let mut engine = Engine::new(settings.clone(), scope.clone(), origin);
    let mut snapshot = Snapshot::new();
    snapshot.origin = origin;
    let mut before = of_engine(engine.world(), Look::Quick);
    let (mut kept, mut existing, mut observed) = (before.desired.clone(), Vec::new(), ObservedNames::default());
    let mut health = ObservedHealth::default();
    for step in 0..=steps {
        // Diagnostics follow from the decisions, so they are compared only now and then.
        let look = if step == steps || step % 10 == 9 { Look::Close } else { Look::Quick };
        let changes: Vec<Change> = match step {
            0 => (0..filled).map(|_| Change::Upsert(making::object(&mut chance))).collect(),
            _ => (0..=chance.below(burst)).map(|_| making::change(&mut chance)).collect(),
        };
        changes.iter().for_each(|change| snapshot.apply(change.clone()));
        let delta = engine.apply(changes.clone());
        patch(&engine, &delta, &mut kept);
        if chance.one_in(2) {
            existing = making::existing_names(&mut chance);
        }
        let also = engine.set_existing_names(existing.clone());
        patch(&engine, &also, &mut kept);
        if chance.one_in(3) {
            observed = making::observed(&mut chance);
        }
        let seen = engine.set_observed(observed.clone());
        patch(&engine, &seen, &mut kept);
        if chance.one_in(3) {
            health = making::health(&mut chance);
        }
        let probed = engine.set_health(&health);
        patch(&engine, &probed, &mut kept);
        let beside = PresentState { names: &existing, observed: &observed, health: &health };
        let world = engine.world();
        assert_eq!(*world.snapshot(), snapshot);
        let (found, expected) = (of_engine(world, look), from_scratch(&snapshot, &scope, &settings, beside, look));
        assert_same(&found, &expected, &|| format!("seed {seed}, step {step}: {changes:#?} beside {beside:?}"));
        check_delta(&before.desired, &found.desired, &[&delta, &also, &seen, &probed]);
        check_patched(&kept, &found.desired, &|| format!("seed {seed}, step {step}: {changes:#?} beside {beside:?}"));
        if look == Look::Close {
            let requests: Vec<_> = (0..6).map(|_| making::request(&mut chance)).collect();
            check_routing(world, &scope, &requests);
        }
        before = found;
    }
}

/// Ten thousand short streams, in four parts that run side by side.
fn short_streams(part: u64) {
    (0..2_500).for_each(|seed| stream(part * 2_500 + seed, 10, 2, 2));
}

#[test]
fn short_streams_one() {
    short_streams(0);
}

#[test]
fn short_streams_two() {
    short_streams(1);
}

#[test]
fn short_streams_three() {
    short_streams(2);
}

#[test]
fn short_streams_four() {
    short_streams(3);
}

/// Compares after every change of a small world; returns the final desired state.
fn close_up(seed: u64, world: Vec<Object>, mut changes: impl FnMut(&mut Chance) -> Vec<Change>) -> Desired {
    let mut chance = Chance(seed);
    let settings = crate::publication::PublicationSettings::default();
    let mut engine = Engine::new(settings.clone(), Default::default(), Default::default());
    engine.apply(world.into_iter().map(Change::Upsert));
    let mut before = of_engine(engine.world(), Look::Close);
    let (mut kept, mut existing, mut observed) = (before.desired.clone(), Vec::new(), ObservedNames::default());
    let mut health = ObservedHealth::default();
    for step in 0..25 {
        let changes = changes(&mut chance);
        let delta = engine.apply(changes.clone());
        patch(&engine, &delta, &mut kept);
        if chance.one_in(2) {
            existing = making::existing_names(&mut chance);
        }
        let also = engine.set_existing_names(existing.clone());
        patch(&engine, &also, &mut kept);
        if chance.one_in(3) {
            observed = making::observed(&mut chance);
        }
        let seen = engine.set_observed(observed.clone());
        patch(&engine, &seen, &mut kept);
        if chance.one_in(3) {
            health = making::health(&mut chance);
        }
        let probed = engine.set_health(&health);
        patch(&engine, &probed, &mut kept);
        let beside = PresentState { names: &existing, observed: &observed, health: &health };
        let world = engine.world();
        let expected = from_scratch(world.snapshot(), &Default::default(), &settings, beside, Look::Close);
        let found = of_engine(world, Look::Close);
        assert_same(&found, &expected, &|| format!("seed {seed}, step {step}: {changes:#?} beside {beside:?}"));
        check_delta(&before.desired, &found.desired, &[&delta, &also, &seen, &probed]);
        check_patched(&kept, &found.desired, &|| format!("seed {seed}, step {step}: {changes:#?} beside {beside:?}"));
        before = found;
    }
    before.desired
}

/// The routes of a name are part of its records, also in the profile that compares everything after each change. That
/// profile knows no scope, and so publishes what the strict one does not.
#[test]
fn a_name_that_gets_another_route_is_told() {
    use crate::publication::settings::StatusMode;
    use crate::publication::tests::world::{gateway, http, route};
    let elsewhere = crate::attachment::Scope { classes: vec!["elsewhere".into()] };
    for (profile, scope) in [(Profile::Strict, Default::default()), (Profile::ExternalDns, elsewhere)] {
        let status = StatusMode::Compute;
        let settings = crate::publication::PublicationSettings { profile, status, ..Default::default() };
        let mut engine = Engine::new(settings, scope, Default::default());
        let own = route("a/r1", "a/edge", &["a.x.test", "b.x.test"]);
        let objects = [Object::Gateway(gateway("a/edge", vec![http("web", "*")])), Object::Route(own)];
        engine.apply(objects.map(Change::Upsert));
        let also = Object::Route(route("a/r2", "a/edge", &["b.x.test", "c.x.test"]));
        assert_eq!(engine.apply([Change::Upsert(also)]).names, ["b.x.test".into(), "c.x.test".into()], "{profile:?}");
    }
}

/// Routes that lose all connections are listed by Gateway, in whichever order the Gateways came.
#[test]
fn diagnostics_of_one_route_do_not_depend_on_the_order_of_gateways() {
    use crate::model::{Protocol, RouteKind, push};
    use crate::publication::tests::world::{gateway, http, parent, route};
    let edge = |name: &str| {
        let mut listener = http("raw", "*");
        listener.protocol = Protocol::Tcp;
        Change::Upsert(Object::Gateway(gateway(name, vec![listener])))
    };
    let tcp = |name: &str| {
        let mut route = Route { kind: RouteKind::Tcp, ..route(name, "a/one", &[]) };
        push(&mut route.parents, parent("Gateway", "a/two"));
        Change::Upsert(Object::Route(route))
    };
    let told = |changes: [Change; 4]| {
        let mut engine = Engine::new(Default::default(), Default::default(), Default::default());
        changes.into_iter().for_each(|change| _ = engine.apply([change]));
        engine.world().lint().diagnostics()
    };
    let (one, two) = ("a/one", "a/two");
    let expected = told([edge(one), edge(two), tcp("a/r1"), tcp("a/r2")]);
    assert_eq!(expected.iter().filter(|d| d.reason == crate::reason::ROUTE_LOSES_ALL).count(), 2);
    assert_eq!(told([edge(two), edge(one), tcp("a/r1"), tcp("a/r2")]), expected);
}

/// Routes of two kinds that share hostnames at two Gateways, of which one is told, in whichever order the Gateways came.
#[test]
fn a_shared_hostname_that_is_told_does_not_depend_on_the_order_of_gateways() {
    use crate::model::{RouteKind, push};
    use crate::publication::tests::world::{gateway, http, parent, route};
    let edge = |name: &str, host: &str| Change::Upsert(Object::Gateway(gateway(name, vec![http("web", host)])));
    let of_kind = |kind: RouteKind, name: &str| {
        let mut route = Route { kind, ..route(name, "a/one", &["*.test"]) };
        push(&mut route.parents, parent("Gateway", "a/two"));
        Change::Upsert(Object::Route(route))
    };
    let told = |gateways: [Change; 2]| {
        let mut engine = Engine::new(Default::default(), Default::default(), Default::default());
        let routes = [of_kind(RouteKind::Http, "a/r1"), of_kind(RouteKind::Grpc, "a/r2")];
        gateways.into_iter().chain(routes).for_each(|change| _ = engine.apply([change]));
        engine.world().lint().diagnostics()
    };
    let (one, two) = (edge("a/one", "*.x.test"), edge("a/two", "*.y.test"));
    let expected = told([one.clone(), two.clone()]);
    assert!(expected.iter().any(|d| d.reason == crate::reason::ROUTE_KINDS_SHARE_HOSTNAME));
    assert_eq!(told([two, one]), expected);
}

/// A ReferenceGrant that does not permit a reference, and is named as the one that nearly does, comes and goes.
#[test]
fn a_grant_that_permits_others_is_named_while_it_is_there() {
    use crate::model::{GATEWAY_GROUP, GrantFrom, GrantTo, Meta, ReferenceGrant};
    use crate::publication::tests::world::{gateway, http, https, listener_set, parent, route};
    let mut elsewhere = https("web", "*.x.test", "tls");
    elsewhere.tls.iter_mut().flat_map(|tls| &mut tls.certificates).for_each(|it| it.namespace = Some("b".into()));
    let from = GrantFrom { group: GATEWAY_GROUP.into(), kind: "Gateway".into(), namespace: "c".into() };
    let to = GrantTo { group: "".into(), kind: "Secret".into(), name: None };
    let grant = ReferenceGrant { meta: Meta::named("b", "g1"), from: vec![from], to: vec![to] };
    let of_gateway = gateway("a/edge", vec![elsewhere.clone()]);
    let with_set = gateway("a/edge", vec![http("plain", "*.y.test")]);
    let set = listener_set("a/more", "a/edge", vec![http("plain", "*.z.test"), elsewhere]);
    let route_of = |kind, name| {
        let parents = vec![parent(kind, name)].into();
        Object::Route(Route { parents, ..route("a/r1", "a/edge", &["a.x.test"]) })
    };
    let worlds = [
        vec![Object::Gateway(of_gateway), route_of("Gateway", "a/edge")],
        vec![Object::Gateway(with_set), Object::ListenerSet(set), route_of("ListenerSet", "a/more")],
    ];
    for world in worlds {
        let mut engine = Engine::new(Default::default(), Default::default(), Default::default());
        engine.apply(world.into_iter().map(Change::Upsert));
        let named = |engine: &Engine| {
            let diagnostics = engine.world().desired().diagnostics;
            let refused = diagnostics.iter().find(|d| d.reason == crate::reason::REFERENCE_NOT_PERMITTED);
            refused.expect("the reference stays refused").related.len()
        };
        assert_eq!(named(&engine), 0);
        let grant = Object::ReferenceGrant(grant.clone());
        let gone = Change::Delete(grant.object());
        engine.apply([Change::Upsert(grant)]);
        assert_eq!(named(&engine), 1);
        engine.apply([gone]);
        assert_eq!(named(&engine), 0);
    }
}

#[test]
fn wildcards_that_stand_for_names() {
    for seed in 3_000_000..3_000_080 {
        let desired = close_up(seed, making::wildcard_world(), |chance| {
            (0..=chance.below(2)).map(|_| making::route_change(chance)).collect()
        });
        assert!(desired.covered.len() + desired.records.len() > 0);
    }
}

/// Two names that are added at once below a covered name: the name is no longer covered.
#[test]
fn names_that_exist_at_once_take_a_covered_name_away() {
    let mut engine = Engine::new(Default::default(), Default::default(), Default::default());
    let route = crate::publication::tests::world::route("a/r1", "a/edge", &["a.x.test"]);
    let world = making::wildcard_world().into_iter().chain([Object::Route(route)]);
    engine.apply(world.map(Change::Upsert));
    assert!(engine.world().records("a.x.test").is_empty(), "the wildcard answers");
    let delta = engine.set_existing_names(["_acme-challenge.a.x.test".into(), "b.c.a.x.test".into()]);
    assert_eq!(delta.names, ["a.x.test".into()]);
    assert_eq!(engine.world().records("a.x.test").len(), 1);
    assert_eq!(engine.set_existing_names([]).names, ["a.x.test".into()]);
}

/// Policies that keep their names and change their values, over Secrets that several routes share.
#[test]
fn policies_that_change_their_mind() {
    for seed in 4_000_000..4_000_080 {
        let desired = close_up(seed, making::shared_secret_world(), |chance| vec![making::policy_change(chance)]);
        assert!(!desired.certificates.is_empty());
    }
}

/// Grants that come, change and go over names that two namespaces ask for, while labels of Namespaces change.
#[test]
fn grants_that_change_their_mind() {
    let mut published = 0;
    for seed in 6_000_000..6_000_080 {
        let desired = close_up(seed, making::granted_world(), |chance| vec![making::grant_change(chance)]);
        published += desired.records.len();
    }
    assert!(published > 80, "{published}");
}

#[test]
fn addresses_that_come_and_go() {
    let mut removed = 0;
    for seed in 5_000_000..5_000_080 {
        let desired = close_up(seed, making::probed_world(), |chance| vec![making::probed_change(chance)]);
        let addresses = desired.policies.iter().flat_map(|report| &report.addresses);
        removed += addresses.filter(|a| a.publication == AddressPublication::Removed).count();
    }
    assert!(removed > 3, "{removed}");
}

#[test]
fn long_streams_of_single_changes() {
    (0..20).for_each(|seed| stream(1_000_000 + seed, 0, 120, 1));
}

#[test]
fn large_worlds_in_bursts() {
    (0..12).for_each(|seed| stream(2_000_000 + seed, 150, 12, 12));
}

/// An existing route with only an irrelevant number changed.
fn touched(engine: &Engine, chance: &mut Chance, number: i64) -> Change {
    let routes: Vec<Arc<Route>> = engine.world().snapshot().routes.values().cloned().collect();
    let mut route: Route = (**chance.pick(&routes)).clone();
    route.meta.created = Some(1_000_000 + number);
    Change::Upsert(Object::Route(route))
}

/// Every replaced or deleted route is dropped from all maps.
#[test]
fn routes_that_were_are_not_kept() {
    for seed in 0..40 {
        let mut chance = Chance(5_000_000 + seed);
        let mut engine = Engine::new(Default::default(), Default::default(), Default::default());
        engine.apply(making::shared_secret_world().into_iter().map(Change::Upsert));
        engine.apply((0..100).map(|_| Change::Upsert(making::object(&mut chance))));
        for step in 0..60 {
            let before: Vec<(ObjectRef, Weak<Route>)> = engine
                .world()
                .snapshot()
                .routes
                .iter()
                .map(|(object, route)| (object.clone(), Arc::downgrade(route)))
                .collect();
            let change =
                if chance.one_in(2) { making::change(&mut chance) } else { touched(&engine, &mut chance, step) };
            engine.apply([change]);
            let world = engine.world();
            for (object, route) in before {
                let now = world.snapshot().routes.get(&object);
                let Some(kept) = route.upgrade() else { continue };
                assert_eq!(now, Some(&kept), "seed {seed}, step {step}: {object} is kept as it was");
            }
        }
    }
}
