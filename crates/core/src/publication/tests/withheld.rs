//! Why a hostname gets nothing, and what the settings leave out.

use super::world::*;
use crate::model::*;
use crate::objects;
use crate::publication::domains::DomainFilter;
use crate::publication::settings::PublicationSettings;
use crate::reason;
use crate::selector::Selector;
use crate::snapshot::{Origin, Snapshot, Visibility};

fn edge() -> Gateway {
    gateway("infra/edge", vec![http("web", "*.example.com")])
}

fn web() -> Route {
    route("shop/web", "infra/edge", &["a.example.com"])
}

#[test]
fn the_candidate_that_has_the_name_speaks() {
    let mut private = http("private", "*.corp.test");
    private.allowed_routes.namespaces = Admission::Same;
    let edge = gateway("infra/edge", vec![http("web", "*.example.com"), private]);
    let found = plain(objects![edge, route("shop/web", "infra/edge", &["a.example.com", "x.corp.test"])]);
    assert_eq!(withheld(&found), ["x.corp.test namespace-not-allowed"]);
    let listener = found.withheld[0].listener.as_ref().map(ToString::to_string);
    assert_eq!(listener.as_deref(), Some("Gateway/infra/edge/private"));
}

#[test]
fn parents_that_lead_nowhere_are_named() {
    let table = [
        (parent("Gateway", "infra/none"), "parent-missing"),
        (parent("ListenerSet", "infra/none"), "parent-missing"),
        (ParentRef { section: Some("none".into()), ..parent("Gateway", "infra/edge") }, "section-not-found"),
        (ParentRef { port: Some(81), ..parent("Gateway", "infra/edge") }, "section-not-found"),
        (parent("Service", "infra/edge"), "parent-kind-unknown"),
    ];
    for (parent, reason) in table {
        let found = plain(objects![edge(), Route { parents: vec![parent].into(), ..web() }]);
        assert_eq!(withheld(&found), [format!("a.example.com {reason}")]);
    }
    let found = plain(objects![edge(), Route { parents: Default::default(), ..web() }]);
    assert_eq!(withheld(&found), ["a.example.com route-without-parent"]);
}

#[test]
fn a_name_that_is_published_elsewhere_is_not_withheld() {
    let mut web = web();
    crate::model::push(&mut web.parents, parent("Gateway", "infra/none"));
    assert!(plain(objects![edge(), web]).withheld.is_empty());
}

#[test]
fn conflicted_listeners_and_refused_sets_publish_nothing() {
    let twice =
        gateway("infra/edge", vec![http("a", "*.example.com"), http("b", "*.example.com"), http("c", "*.test")]);
    let found = plain(objects![twice, web()]);
    assert_eq!(withheld(&found), ["a.example.com listener-hostname-conflict"; 2]);
    let mut closed = edge();
    closed.allowed_listeners = Admission::None;
    let set = listener_set("shop/set", "infra/edge", vec![http("web", "*.shop.test")]);
    let inside = Route {
        parents: vec![parent("ListenerSet", "shop/set")].into(),
        ..route("shop/x", "infra/edge", &["x.shop.test"])
    };
    let found = plain(objects![closed, set.clone(), inside.clone()]);
    assert_eq!(withheld(&found), ["x.shop.test listener-set-not-attached"]);
    assert_eq!(records(&plain(objects![edge(), set, inside])), ["x.shop.test A 192.0.2.1"]);
}

#[test]
fn what_the_settings_leave_out_is_said() {
    let selector = |text: &str| Some(Selector::parse(text).unwrap());
    let open = PublicationSettings::default;
    let table = [
        PublicationSettings { gateway_name: Some("other".into()), ..open() },
        PublicationSettings { gateway_namespace: Some("other".into()), ..open() },
        PublicationSettings { gateway_label_filter: selector("a=b"), ..open() },
    ];
    for settings in table {
        let found = desired(objects![edge(), web()], &settings);
        assert_eq!(withheld(&found), ["a.example.com not-selected"]);
        assert_eq!(found.passed_over.len(), 1);
    }
    let by_class =
        desired(objects![edge(), web()], &PublicationSettings { gateway_classes: vec!["other".into()], ..open() });
    assert_eq!(withheld(&by_class), ["a.example.com gateway-class-not-ours"]);
    let table = [
        PublicationSettings { namespace: Some("other".into()), ..open() },
        PublicationSettings { label_filter: selector("a=b"), ..open() },
        PublicationSettings { annotation_filter: selector("a=b"), ..open() },
        PublicationSettings { sources: [RouteKind::Tcp].into(), ..open() },
    ];
    for settings in table {
        let found = desired(objects![edge(), web()], &settings);
        assert!(found.records.is_empty() && found.withheld.is_empty());
        assert_eq!(found.passed_over[0].object.to_string(), "HTTPRoute/shop/web");
    }
}

#[test]
fn domains_that_are_not_selected_get_nothing() {
    let settings =
        PublicationSettings { domains: DomainFilter::new(&["a.example.com"], &[]), ..PublicationSettings::default() };
    let web = route("shop/web", "infra/edge", &["a.example.com", "b.example.com"]);
    let found = desired(objects![edge(), web, dns("infra/dns", "Gateway", "edge")], &settings);
    assert_eq!(records(&found), ["a.example.com A 192.0.2.1"]);
    assert_eq!(withheld(&found), ["b.example.com domain-not-selected"]);
}

#[test]
fn challenges_of_cert_manager_are_passed_over() {
    let mut solver = web();
    solver.meta.labels.insert("acme.cert-manager.io/http01-solver".into(), "true".into());
    let found = plain(objects![edge(), solver]);
    assert_eq!((found.records.len(), found.passed_over.len()), (0, 1));
    let told = found.withheld.iter().map(|w| (w.reason, w.field.to_string()));
    let label = "metadata.labels[\"acme.cert-manager.io/http01-solver\"]".to_owned();
    assert_eq!(told.collect::<Vec<_>>(), [(reason::NOT_SELECTED, label)]);
}

#[test]
fn what_cannot_be_seen_is_held() {
    let seen = |kind: Kind, objects| {
        let mut snapshot = Snapshot::of(objects);
        snapshot.set_visibility(kind, Visibility::NotVisible("denied".into()));
        of_snapshot(&snapshot, &PublicationSettings::default())
    };
    let mut labelled = edge();
    labelled.listeners[0].allowed_routes.namespaces = Admission::Selector(Some(Selector::parse("a=b").unwrap()));
    let tables = [
        seen(Kind::Gateway, objects![web()]),
        seen(Kind::DnsPolicy, objects![edge(), web()]),
        seen(Kind::Namespace, objects![labelled, web()]),
    ];
    for found in tables {
        assert_eq!(withheld(&found), ["a.example.com kind-not-visible"]);
        assert!(found.withheld[0].holds());
    }
}

#[test]
fn a_class_that_is_missing_in_a_cluster_holds() {
    let mut snapshot = Snapshot::of(objects![edge(), web()]);
    snapshot.origin = Origin::Cluster;
    let found = of_snapshot(&snapshot, &PublicationSettings::default());
    assert_eq!(withheld(&found), ["a.example.com gateway-class-missing"]);
    assert!(found.withheld[0].holds());
}
