//! Which namespaces HostnameGrants let have a name, in records and certificates (D28).

use std::collections::{BTreeMap, BTreeSet};

use super::world::*;
use crate::attachment::{Scope, Topology};
use crate::model::*;
use crate::names::Hostname;
use crate::objects;
use crate::publication::hostname_grants::HostnameGrants;
use crate::publication::{Desired, NameSource, PublicationSettings, build};
use crate::snapshot::{Object, Snapshot, Visibility};

fn aged(mut route: Route, created: i64) -> Route {
    route.meta.created = Some(created);
    route
}

fn required() -> PublicationSettings {
    PublicationSettings { require_grants: true, ..PublicationSettings::default() }
}

fn of(snapshot: &Snapshot) -> Desired {
    build(snapshot, &Topology::build(snapshot, &Scope::default()), &PublicationSettings::default())
}

/// The platform's Gateway, which takes routes from everywhere.
fn edge() -> Gateway {
    gateway("infra/edge", vec![http("http", "*"), https("web", "*", "edge-tls")])
}

/// A Gateway of a namespace of its own.
fn own(namespace: &str, address: &str) -> Gateway {
    let listeners = vec![http("http", "*"), https("web", "*", "own-tls")];
    at(gateway(&format!("{namespace}/own"), listeners), &[address])
}

#[test]
fn the_most_specific_pattern_decides_and_of_equal_ones_the_oldest() {
    let old = |mut grant: HostnameGrant| {
        grant.meta.created = Some(1);
        grant
    };
    let grants = objects![
        grant("suffix", &["*.example.org"], &["a"]),
        grant("deep", &["*.shop.example.org"], &["b"]),
        grant("name", &["www.shop.example.org", "example.org"], &["c"]),
        grant("younger", &["*.shop.example.org", "pay.example.org"], &["d"]),
        old(grant("older", &["pay.example.org"], &["e"])),
    ];
    let grants = HostnameGrants::of(&Snapshot::of(grants));
    for (name, expected) in [
        ("example.org", Some("name")),
        ("www.example.org", Some("suffix")),
        ("a.b.example.org", Some("suffix")),
        ("*.example.org", Some("suffix")),
        ("*.b.example.org", Some("suffix")),
        ("shop.example.org", Some("suffix")),
        ("*.shop.example.org", Some("deep")),
        ("a.shop.example.org", Some("deep")),
        ("www.shop.example.org", Some("name")),
        ("*.www.shop.example.org", Some("deep")),
        ("pay.example.org", Some("older")),
        ("*.org", None),
        ("example.com", None),
        ("xexample.org", None),
    ] {
        let found = grants.covering(&Hostname::parse(name).unwrap());
        assert_eq!(found.map(|found| &*found.grant.meta.key.name), expected, "{name}");
    }
    let conflicts: Vec<String> = grants
        .conflicts()
        .iter()
        .map(|c| format!("{} {} {}", c.younger.grant.meta.key, c.younger.text(), c.older.grant.meta.key))
        .collect();
    assert_eq!(conflicts, ["younger *.shop.example.org deep", "younger pay.example.org older"]);
}

/// Three teams with twenty names on one Gateway, and grants of every kind.
fn three_teams() -> Vec<Object> {
    let names = |namespace: &str, names: &[&str]| -> Vec<Object> {
        let route = |(i, name): (usize, &&str)| {
            Object::Route(aged(route(&format!("{namespace}/r{i}"), "infra/edge", &[name]), 100))
        };
        names.iter().enumerate().map(route).collect()
    };
    let mut all = objects![
        edge(),
        namespace("shop", "retail"),
        namespace("news", "media"),
        namespace("evil", "guests"),
        grant("shop", &["shop.example.org", "*.shop.example.org"], &["shop"]),
        selecting(grant("media", &["*.media.example.org"], &[]), "team=media"),
        grant("shared", &["*.shared.example.org"], &["shop", "news"]),
        grant("pay", &["pay.shared.example.org"], &["shop"]),
    ];
    all.extend(names(
        "shop",
        &[
            "shop.example.org",
            "a.shop.example.org",
            "*.b.shop.example.org",
            "x.shared.example.org",
            "pay.shared.example.org",
            "free1.example.org",
            "c.media.example.org",
        ],
    ));
    all.extend(names(
        "news",
        &[
            "a.media.example.org",
            "b.media.example.org",
            "*.media.example.org",
            "y.shared.example.org",
            "pay.shared.example.org",
            "free2.example.org",
            "b.shop.example.org",
        ],
    ));
    all.extend(names(
        "evil",
        &[
            "www.shop.example.org",
            "shop.example.org",
            "*.shop.example.org",
            "d.media.example.org",
            "z.shared.example.org",
            "free3.example.org",
            "media.example.org",
        ],
    ));
    all
}

fn by_name(desired: &Desired) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for record in desired.records.iter().filter(|record| record.source != NameSource::HiddenFromWildcard) {
        found
            .entry(record.name.to_string())
            .or_default()
            .extend(record.routes.iter().map(|r| r.namespace().to_string()));
    }
    found
}

#[test]
fn of_twenty_names_each_is_published_for_the_namespaces_that_may_have_it() {
    let published = by_name(&plain(three_teams()));
    let expected = [
        ("*.b.shop.example.org", &["shop"][..]),
        ("*.media.example.org", &["news"]),
        ("a.media.example.org", &["news"]),
        ("a.shop.example.org", &["shop"]),
        ("b.media.example.org", &["news"]),
        ("free1.example.org", &["shop"]),
        ("free2.example.org", &["news"]),
        ("free3.example.org", &["evil"]),
        ("media.example.org", &["evil"]),
        ("pay.shared.example.org", &["shop"]),
        ("shop.example.org", &["shop"]),
        ("x.shared.example.org", &["shop"]),
        ("y.shared.example.org", &["news"]),
    ];
    let expected: BTreeMap<String, BTreeSet<String>> = expected
        .iter()
        .map(|(name, namespaces)| (name.to_string(), namespaces.iter().map(ToString::to_string).collect()))
        .collect();
    assert_eq!(published, expected);
    let desired = plain(three_teams());
    assert_eq!(
        withheld(&desired),
        [
            "www.shop.example.org hostname-not-granted",
            "shop.example.org hostname-not-granted",
            "*.shop.example.org hostname-not-granted",
            "d.media.example.org hostname-not-granted",
            "z.shared.example.org hostname-not-granted",
            "pay.shared.example.org hostname-not-granted",
            "b.shop.example.org hostname-not-granted",
            "c.media.example.org hostname-not-granted",
        ]
        .map(|text| [text, text])
        .concat(),
        "each at both listeners"
    );
    let certified: BTreeSet<&str> =
        desired.certificates.iter().flat_map(|c| &c.dns_names).map(|name| &**name).collect();
    let precise: BTreeSet<&str> = published.keys().map(String::as_str).filter(|name| !name.starts_with('*')).collect();
    assert_eq!(certified, precise, "certificates go by the same rule");
}

#[test]
fn with_required_grants_names_without_one_are_withheld() {
    let desired = desired(three_teams(), &required());
    let free: Vec<String> = by_name(&desired).into_keys().filter(|name| name.starts_with("free")).collect();
    assert_eq!(free, Vec::<String>::new());
    let told = desired.withheld.iter().find(|w| &*w.hostname == "free1.example.org").unwrap();
    assert_eq!(told.reason.name(), "hostname-not-granted");
    assert!(told.message.contains("--require-grants"), "{}", told.message);
    assert!(!desired.certificates.iter().flat_map(|c| &c.dns_names).any(|name| name.starts_with("free")));
}

#[test]
fn a_grant_overrides_age() {
    let world = || {
        objects![
            edge(),
            own("evil", "203.0.113.66"),
            aged(route("evil/old", "evil/own", &["www.example.org"]), 1),
            aged(route("shop/web", "infra/edge", &["www.example.org"]), 100),
        ]
    };
    assert_eq!(records(&plain(world())), ["www.example.org A 203.0.113.66"], "without a grant the oldest");
    let mut granted = world();
    granted.extend(objects![grant("shop", &["www.example.org"], &["shop"])]);
    let desired = plain(granted);
    assert_eq!(records(&desired), ["www.example.org A 192.0.2.1"]);
    assert_eq!(certificates(&desired), ["infra/edge-tls www.example.org"]);
}

#[test]
fn namespaces_of_one_grant_hold_its_names_together() {
    let world = || {
        objects![
            own("a", "192.0.2.11"),
            own("b", "192.0.2.12"),
            aged(route("a/web", "a/own", &["www.example.org"]), 1),
            aged(annotated(route("b/web", "b/own", &["www.example.org"]), "ttl", "60"), 2),
        ]
    };
    let apart = plain(world());
    assert_eq!(records(&apart), ["www.example.org A 192.0.2.11"]);
    assert_eq!(certificates(&apart), ["a/own-tls www.example.org"]);
    let mut granted = world();
    granted.extend(objects![grant("both", &["*.example.org"], &["a", "b"])]);
    let together = plain(granted);
    assert_eq!(records(&together), ["www.example.org A 192.0.2.11 192.0.2.12"]);
    assert_eq!(together.records[0].ttl, Some(60));
    assert_eq!(certificates(&together), ["a/own-tls www.example.org", "b/own-tls www.example.org"]);
    assert!(together.withheld.is_empty(), "{:?}", withheld(&together));
}

#[test]
fn a_wildcard_in_a_certificate_needs_a_grant_for_the_wildcard() {
    let allowing = || TlsPolicy { allow_wildcards: Some(true), ..tls("evil/tls", "Gateway", "own") };
    let decide = |grants: Vec<Object>| {
        let mut all = objects![
            own("evil", "203.0.113.66"),
            allowing(),
            aged(route("evil/any", "evil/own", &["*.example.org"]), 1),
        ];
        all.extend(grants);
        plain(all)
    };
    let world = |grants: Vec<Object>| certificates(&decide(grants));
    assert_eq!(world(vec![]), ["evil/own-tls *.example.org"]);
    assert_eq!(world(objects![grant("g", &["*.example.org"], &["shop"])]), Vec::<String>::new());
    // Nobody has asked for the name yet, and a certificate would be valid for it.
    let refused = decide(objects![grant("secret", &["pay.example.org"], &["shop"])]);
    assert_eq!(certificates(&refused), Vec::<String>::new());
    let told: String = refused.diagnostics.iter().map(|diagnostic| &*diagnostic.message).collect();
    assert!(told.contains("`*.example.org`"), "{told}");
    for hidden in ["pay", "secret", "shop"] {
        assert!(!told.contains(hidden), "{hidden} is told: {told}");
    }
    assert_eq!(world(objects![grant("g", &["a.pay.example.org"], &["shop"])]), ["evil/own-tls *.example.org"]);
    assert_eq!(world(objects![grant("g", &["pay.example.org"], &["evil"])]), ["evil/own-tls *.example.org"]);
    let both = objects![grant("g", &["pay.example.org"], &["shop"]), grant("w", &["*.example.org"], &["evil"])];
    assert_eq!(world(both), ["evil/own-tls *.example.org"]);
}

#[test]
fn a_listeners_own_wildcard_needs_a_grant_for_its_owner() {
    let world = |grants: Vec<Object>| {
        let edge = gateway("infra/edge", vec![https("web", "*.example.org", "edge-tls")]);
        let mut all = objects![
            edge,
            dns("infra/dns", "Gateway", "edge"),
            TlsPolicy { allow_wildcards: Some(true), ..tls("infra/tls", "Gateway", "edge") },
            route("shop/web", "infra/edge", &["a.example.org"]),
        ];
        all.extend(grants);
        let desired = plain(all);
        (records(&desired), certificates(&desired))
    };
    let (wild, precise) = ("*.example.org A 192.0.2.1", "a.example.org A 192.0.2.1");
    let wildcard = (vec![wild.to_owned()], vec!["infra/edge-tls *.example.org".to_owned()]);
    let name = (vec![precise.to_owned()], vec!["infra/edge-tls a.example.org".to_owned()]);
    let shop = || grant("shop", &["a.example.org"], &["shop"]);
    assert_eq!(world(vec![]), wildcard);
    assert_eq!(world(objects![shop(), grant("w", &["*.example.org"], &["other"])]), name);
    assert_eq!(world(objects![shop(), grant("w", &["*.example.org"], &["infra"])]), wildcard);
}

#[test]
fn namespaces_of_one_grant_admit_each_others_wildcard_certificates() {
    let world = |namespaces: &[&str]| {
        certificates(&plain(objects![
            own("a", "192.0.2.11"),
            own("b", "192.0.2.12"),
            TlsPolicy { allow_wildcards: Some(true), ..tls("a/tls", "Gateway", "own") },
            route("a/any", "a/own", &["*.example.org"]),
            route("b/web", "b/own", &["www.example.org"]),
            grant("wild", &["*.example.org"], &["a"]),
            grant("www", &["www.example.org"], namespaces),
        ]))
    };
    assert_eq!(world(&["a", "b"]), ["a/own-tls *.example.org", "b/own-tls www.example.org"]);
    assert_eq!(world(&["b"]), ["b/own-tls www.example.org"]);
}

#[test]
fn a_routed_wildcard_takes_no_name_below_it_that_others_are_granted() {
    let world = |grants: Vec<Object>| {
        let mut all = objects![
            edge(),
            route("news/any", "infra/edge", &["*.example.org"]),
            at(gateway("shop/own", vec![http("http", "*")]), &["192.0.2.9"]),
            route("shop/web", "shop/own", &["a.pay.example.org"]),
        ];
        all.extend(grants);
        let desired = plain(all);
        desired.records.iter().map(|record| record.name.to_string()).collect::<Vec<_>>()
    };
    let all = ["*.a.pay.example.org", "*.example.org", "*.pay.example.org", "a.pay.example.org", "pay.example.org"];
    assert_eq!(world(vec![]), all);
    let shop = objects![grant("shop", &["pay.example.org", "*.pay.example.org"], &["shop"])];
    assert_eq!(world(shop), ["*.example.org", "a.pay.example.org"]);
}

#[test]
fn grants_that_are_not_known_hold_what_is_there() {
    let world = || {
        Snapshot::of(objects![
            edge(),
            route("shop/web", "infra/edge", &["www.example.org", "other.example.net"]),
            selecting(grant("shop", &["*.example.org"], &[]), "team=shop"),
            namespace("shop", "shop"),
        ])
    };
    let is_held = |desired: &Desired, name: &str, reason: &str| {
        let withheld = desired.withheld.iter().find(|w| &*w.hostname == name);
        let kept = desired.kept_names.iter().any(|kept| &*kept.hostname == name);
        assert!(withheld.is_some_and(|w| w.reason.name() == reason && w.holds()), "{name}: {:?}", desired.withheld);
        assert!(kept, "{name} stays in its certificate");
        assert!(!desired.records.iter().any(|record| &*record.name == name), "{name} is not created");
    };
    assert_eq!(of(&world()).withheld, []);
    for (kind, names) in
        [(Kind::HostnameGrant, &["www.example.org", "other.example.net"][..]), (Kind::Namespace, &["www.example.org"])]
    {
        let mut hidden = world();
        hidden.set_visibility(kind, Visibility::NotVisible("forbidden".into()));
        names.iter().for_each(|name| is_held(&of(&hidden), name, "kind-not-visible"));
    }
    let mut invalid = grant("shop", &["*.example.org"], &["shop"]);
    let field = crate::diagnostic::FieldPath::of("spec.namespaces");
    invalid.meta.invalid =
        Some(Box::new(InvalidField { reason: crate::reason::INVALID_FIELD, field, message: "is wrong".to_owned() }));
    let mut broken = world();
    broken.upsert(Object::HostnameGrant(invalid));
    is_held(&of(&broken), "www.example.org", "invalid-field");
    assert!(records(&of(&broken)).contains(&"other.example.net A 192.0.2.1".to_owned()));
    // A hostname that cannot be read could be any.
    broken.upsert(Object::HostnameGrant(grant("shop", &["-bad-.example.org"], &["shop"])));
    is_held(&of(&broken), "other.example.net", "invalid-field");
    // A more specific grant that is valid decides.
    broken.upsert(Object::HostnameGrant(grant("exact", &["other.example.net"], &["shop"])));
    assert!(records(&of(&broken)).contains(&"other.example.net A 192.0.2.1".to_owned()));
}

#[test]
fn a_certain_refusal_waits_for_no_verdict() {
    let mut edge = edge();
    edge.status.conditions = vec![Condition::new("Accepted", true, "Accepted", "")].into();
    let mut pending = route("evil/web", "infra/edge", &["www.example.org"]);
    let status = ParentStatus {
        parent: pending.parents[0].clone(),
        controller: "example.test/controller".into(),
        conditions: vec![Condition::new("Accepted", false, "Pending", "wait")].into(),
    };
    pending.status = vec![status].into();
    let mut all = objects![edge, pending];
    let before = plain(all.clone());
    assert!(before.withheld.iter().all(|w| w.holds()) && !before.kept_names.is_empty(), "{:?}", before.withheld);
    all.extend(objects![grant("shop", &["www.example.org"], &["shop"])]);
    let after = plain(all);
    assert!(after.withheld.iter().all(|w| w.reason.name() == "hostname-not-granted"), "{:?}", after.withheld);
    assert!(after.kept_names.is_empty(), "{:?}", after.kept_names);
}

#[test]
fn the_external_dns_profile_knows_no_grants() {
    let settings = PublicationSettings {
        profile: crate::publication::settings::Profile::ExternalDns,
        ..PublicationSettings::default()
    };
    let mut all = objects![edge(), route("evil/web", "infra/edge", &["www.example.org"])];
    let before = desired(all.clone(), &settings);
    all.extend(objects![grant("shop", &["www.example.org"], &["shop"])]);
    assert_eq!(desired(all, &settings), before);
}
