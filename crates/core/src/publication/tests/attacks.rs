//! Attacks from a namespace of its own: whatever an attacker creates there, the names that others hold keep their values and
//! certificates, and an object of the attacker says why it gets nothing.

use std::collections::BTreeMap;

use super::world::*;
use crate::attachment::{Scope, Topology};
use crate::model::*;
use crate::names::Hostname;
use crate::objects;
use crate::publication::holders::{ObservedNames, RecordOrigin};
use crate::publication::{Desired, NameSource, PresentState, PublicationSettings, Record, build_beside};
use crate::snapshot::{Object, Snapshot};

const NAME: &str = "www.example.org";
const EVIL: &str = "203.0.113.66";

fn desired(objects: &[Object], observed: &ObservedNames) -> Desired {
    let snapshot = Snapshot::of(objects.iter().cloned());
    let topology = Topology::build(&snapshot, &Scope::default());
    build_beside(
        &snapshot,
        &topology,
        &PublicationSettings::default(),
        PresentState { names: &[], observed, health: &Default::default() },
    )
}

/// What the records of a desired state are marked with once they are written.
fn written(desired: &Desired) -> ObservedNames {
    let mut origins: BTreeMap<Str, Vec<RecordOrigin>> = BTreeMap::new();
    for record in &desired.records {
        let route = &record.routes[0];
        let origin = RecordOrigin { namespace: route.namespace().clone(), kind: Some(route.kind) };
        origins.entry(record.name.clone()).or_default().push(origin);
    }
    ObservedNames::new(origins, false)
}

/// The values of a record, without who asks for it.
fn values(record: &Record) -> String {
    let Record { name, kind, targets, ttl, set_identifier, provider_specific, .. } = record;
    format!("{name} {kind} {targets:?} {ttl:?} {set_identifier:?} {provider_specific:?}")
}

/// Fails if a name of `before` has other values in `after`, or a certificate outside the attacker's namespace lost names.
/// A name that no route claims, and that only a routed wildcard serves, belongs to whoever claims it first.
fn assert_untouched(before: &Desired, after: &Desired, attacker: &str, what: &str) {
    let claimed = before.records.iter().filter(|record| record.source != NameSource::HiddenFromWildcard);
    let names: Vec<&Str> = claimed.map(|record| &record.name).collect();
    let of = |desired: &Desired| -> Vec<String> {
        desired.records.iter().filter(|record| names.contains(&&record.name)).map(values).collect()
    };
    assert_eq!(of(before), of(after), "{what}");
    for certificate in &before.certificates {
        let now = after.certificates.iter().find(|found| found.secret == certificate.secret);
        let now = now.map(|found| &found.dns_names[..]).unwrap_or_default();
        assert!(certificate.dns_names.iter().all(|name| now.contains(name)), "{what}: {}", certificate.secret);
    }
    for certificate in after.certificates.iter().filter(|found| *found.secret.namespace == *attacker) {
        assert!(!certificate.dns_names.iter().any(|name| names.contains(&name)), "{what}: {}", certificate.secret);
    }
}

fn aged(mut route: Route, created: i64) -> Route {
    route.meta.created = Some(created);
    route
}

/// A platform with a Gateway for all, a second one, and Routes of two teams.
fn platform() -> Vec<Object> {
    let edge = gateway("infra/edge", vec![http("http", "*"), https("web", "*.example.org", "edge-tls")]);
    let west = at(gateway("infra/west", vec![http("http", "*")]), &["192.0.2.2"]);
    let wide = at(gateway("wide/edge", vec![http("http", "*.wide.test")]), &["192.0.2.3"]);
    objects![
        edge,
        west,
        wide,
        dns("wide/dns", "Gateway", "edge"),
        aged(route("shop/web", "infra/edge", &[NAME, "api.example.org", "example.org"]), 100),
        aged(route("news/web", "infra/west", &["news.example.org"]), 100),
        aged(route("news/wide", "wide/edge", &["a.wide.test"]), 100),
    ]
}

fn own() -> Gateway {
    let listeners = vec![http("http", "*"), https("web", "*", "own-tls")];
    let mut own = at(gateway("evil/own", listeners), &[EVIL]);
    own.meta.created = Some(1);
    own
}

fn at_set(name: &str, created: i64) -> Route {
    let mut route = aged(route("evil/web", "infra/edge", &[name]), created);
    route.parents = Default::default();
    crate::model::push(&mut route.parents, parent("ListenerSet", "evil/set"));
    route
}

fn set(hostname: &str) -> ListenerSet {
    listener_set("evil/set", "infra/edge", vec![https("grab", hostname, "set-tls")])
}

fn shared(created: i64) -> Route {
    aged(route("evil/web", "infra/edge", &[NAME]), created)
}

/// Every attack: what it is, the attacker's objects, and the reason that one of them gets.
fn attacks() -> Vec<(&'static str, Vec<Object>, &'static str)> {
    let grab = |created| aged(route("evil/web", "evil/own", &[NAME]), created);
    let allowing = || TlsPolicy { allow_wildcards: Some(true), ..tls("evil/tls", "Gateway", "own") };
    let cname = || at(own(), &["evil.example.net"]);
    let named = |name: &str| objects![own(), aged(route("evil/web", "evil/own", &[name]), 1)];
    let target = |value: &str| objects![annotated(shared(1), "target", value)];
    let held = "hostname-held";
    vec![
        ("a younger Route at a Gateway of its own", objects![own(), grab(500)], held),
        ("an older Route that was edited", objects![own(), grab(1)], held),
        ("a Gateway that is a CNAME", objects![cname(), grab(1)], held),
        (
            "a Route at another Gateway of the platform",
            objects![aged(route("evil/web", "infra/west", &[NAME]), 1)],
            held,
        ),
        ("a target", target(EVIL), held),
        ("a CNAME target", target("evil.example.net"), held),
        ("a loopback target", target("127.0.0.1"), "target-not-permitted"),
        ("a metadata target", target("169.254.169.254"), "target-not-permitted"),
        ("a mapped metadata target", target("::ffff:169.254.169.254"), "target-not-permitted"),
        ("a TTL", objects![annotated(shared(1), "ttl", "1")], held),
        ("a set identifier", objects![annotated(shared(1), "set-identifier", "evil")], held),
        ("provider properties", objects![annotated(shared(1), "aws-weight", "255")], held),
        ("an alias", objects![annotated(shared(1), "alias", "true")], held),
        (
            "a hostname annotation",
            objects![own(), annotated(aged(route("evil/web", "evil/own", &["evil.test"]), 1), "hostname", NAME)],
            held,
        ),
        ("a ListenerSet at the platform's Gateway", objects![set(NAME), at_set(NAME, 1)], held),
        (
            "a ListenerSet for the wildcard",
            objects![set("*.example.org"), at_set(NAME, 1)],
            "listener-set-no-listeners",
        ),
        (
            "a wildcard certificate",
            objects![own(), allowing(), aged(route("evil/web", "evil/own", &["*.example.org"]), 1)],
            held,
        ),
        ("a TLSPolicy of its own", objects![own(), allowing(), grab(1)], held),
        (
            "a DNSPolicy of its own",
            objects![own(), DnsPolicy { ttl: Some(1), ..dns("evil/dns", "Gateway", "own") }, grab(1)],
            held,
        ),
        ("the apex", named("example.org"), held),
        ("a second name of the victim", named("api.example.org"), held),
        ("a name of another team", named("news.example.org"), held),
        ("a name that a wildcard record answers for", named("a.wide.test"), held),
        ("a trailing dot", named("www.example.org."), "invalid-hostname"),
        ("upper case", named("WWW.example.org"), held),
        ("a Unicode look-alike", named("www.exаmple.org"), "invalid-hostname"),
        ("a GRPCRoute", objects![own(), Route { kind: RouteKind::Grpc, ..grab(1) }], held),
        (
            "a namespace that sorts first",
            objects![at(gateway("a/own", vec![http("http", "*")]), &[EVIL]), aged(route("a/web", "a/own", &[NAME]), 1)],
            held,
        ),
    ]
}

#[test]
fn no_attack_changes_what_others_hold() {
    let before = desired(&platform(), &ObservedNames::default());
    assert!(before.covered.iter().any(|record| &*record.name == "a.wide.test"), "{:?}", records(&before));
    let observed = written(&before);
    let mut silent = Vec::new();
    for (what, attack, reason) in attacks() {
        let attacker = if what == "a namespace that sorts first" { "a" } else { "evil" };
        let mut objects = platform();
        objects.extend(attack);
        let after = desired(&objects, &observed);
        assert_untouched(&before, &after, attacker, what);
        let wide = after.answer("a.wide.test");
        assert!(wide.iter().all(|record| record.targets[..] == ["192.0.2.3".into()]), "{what}: {:?}", records(&after));
        let withheld = after.withheld.iter().map(|withheld| (&withheld.object, withheld.reason));
        let diagnosed = after.diagnostics.iter().filter_map(|d| Some((d.object.as_ref()?, d.reason)));
        let told: Vec<_> = withheld.chain(diagnosed).filter(|(object, _)| **object.namespace() == *attacker).collect();
        if !told.iter().any(|(_, found)| found.name() == reason) {
            silent.push(format!("{what}: {told:?}"));
        }
        // The order of objects decides nothing, nor does what was there before.
        objects.reverse();
        assert_eq!(desired(&objects, &observed), after, "{what}");
    }
    assert!(silent.is_empty(), "{silent:#?}");
}

/// A reproducible random generator: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 33) as usize % limit
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

const HOSTS: [&str; 7] = ["x.test", "a.x.test", "b.x.test", "c.b.x.test", "*.x.test", "*.b.x.test", "y.test"];

/// Some objects of one namespace.
fn objects_of(namespace: &str, random: &mut Random) -> Vec<Object> {
    let own = format!("{namespace}/own");
    let parents = ["infra/edge", "infra/west", &own];
    let address = format!("198.51.100.{}", 1 + random.below(200));
    let addresses = [address.as_str(), "lb.example.net"];
    let listeners = vec![http("l1", random.pick(&["*", "*.x.test", "a.x.test"])), https("l2", "*", "own-tls")];
    let mut objects = objects![at(gateway(&own, listeners), &[addresses[random.below(2)]])];
    for number in 0..=random.below(4) {
        let hosts = [random.pick(&HOSTS), random.pick(&HOSTS)];
        let name = format!("{namespace}/r{number}");
        let mut route =
            aged(route(&name, parents[random.below(3)], &hosts[..=random.below(2)]), random.below(5) as i64);
        if random.below(3) == 0 {
            let (note, value) =
                [("target", EVIL), ("target", "e.example.net"), ("ttl", "7"), ("set-identifier", "s")][random.below(4)];
            route = annotated(route, note, value);
        }
        objects.extend(objects![route]);
    }
    if random.below(3) == 0 {
        objects.extend(objects![dns(&format!("{namespace}/dns"), "Gateway", "own")]);
    }
    objects
}

/// Some HostnameGrants for the two namespaces that were there first, sometimes for both.
fn grants(random: &mut Random) -> Vec<Object> {
    let mut objects = Vec::new();
    for number in 0..=random.below(3) {
        let hosts = [random.pick(&HOSTS), random.pick(&HOSTS)];
        let namespaces = ["a", "b"];
        let namespaces = [&namespaces[..1], &namespaces[1..], &namespaces][random.below(3)];
        objects.extend(objects![grant(&format!("g{number}"), &hosts[..=random.below(2)], namespaces)]);
    }
    objects
}

/// Fails if a namespace has a name that the grants, compared by plain loops, give only to others.
fn assert_granted(objects: &[Object], desired: &Desired, what: &str) {
    let grants = objects.iter().filter_map(|object| match object {
        Object::HostnameGrant(grant) => Some(grant),
        _ => None,
    });
    let patterns: Vec<(&Hostname, &HostnameGrant)> = grants
        .flat_map(|grant| grant.hostnames.iter().map(move |hostname| (hostname.name().expect("a hostname"), grant)))
        .collect();
    let may_have = |name: &Str, namespace: &Str| {
        let name = Hostname::parse(name).expect("a hostname");
        let covering = patterns.iter().filter(|(pattern, _)| pattern.contains(&name));
        // The first of equal ones is the oldest: they are as old, and sorted by name.
        let closest =
            covering.reduce(|best, next| if next.0.specificity() > best.0.specificity() { next } else { best });
        closest.is_none_or(|(_, grant)| grant.namespaces.names.contains(namespace))
    };
    for record in desired.records.iter().filter(|record| record.source != NameSource::ListenerWildcard) {
        for route in &record.routes {
            assert!(may_have(&record.name, route.namespace()), "{what}: {} for {route}", record.name);
        }
    }
    for certificate in &desired.certificates {
        for name in &certificate.dns_names {
            let mut namespaces =
                certificate.routes.iter().map(ObjectRef::namespace).chain([&certificate.secret.namespace]);
            assert!(namespaces.any(|namespace| may_have(name, namespace)), "{what}: {name} in {}", certificate.secret);
        }
    }
}

#[test]
fn objects_of_one_namespace_change_no_value_of_a_name_that_another_holds() {
    for is_granted in [false, true] {
        let refused = attacked_worlds(is_granted);
        assert!(refused > 1000, "{refused}");
    }
}

/// Lets a namespace attack random worlds, with or without HostnameGrants; returns how many of its hostnames are refused.
fn attacked_worlds(is_granted: bool) -> usize {
    let reason = if is_granted { "hostname-not-granted" } else { "hostname-held" };
    let mut refused = 0;
    for seed in 0..3_000 {
        let mut random = Random(seed);
        let edge = gateway("infra/edge", vec![http("l1", "*"), https("l2", "*.x.test", "edge-tls")]);
        let west = at(gateway("infra/west", vec![http("l1", "*.x.test")]), &["192.0.2.2"]);
        let mut objects = objects![edge, west];
        for namespace in ["a", "b"] {
            objects.extend(objects_of(namespace, &mut random));
        }
        if is_granted {
            objects.extend(grants(&mut random));
        }
        // What is there has settled: the records are written with their markers.
        let before = desired(&objects, &written(&desired(&objects, &ObservedNames::default())));
        let observed = written(&before);
        assert_eq!(desired(&objects, &observed), before, "seed {seed}: writing the records changes nothing");
        let attacker = random.pick(&["0", "a-b", "z"]);
        objects.extend(objects_of(attacker, &mut random));
        let after = desired(&objects, &observed);
        assert_untouched(&before, &after, attacker, &format!("seed {seed}"));
        assert_granted(&objects, &after, &format!("seed {seed}"));
        refused += after.withheld.iter().filter(|withheld| withheld.reason.name() == reason).count();
    }
    refused
}
