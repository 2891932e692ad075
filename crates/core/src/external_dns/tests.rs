//! The profile as a whole, one rule per test, on objects written by hand.

use super::fixtures::*;
use super::publish;
use crate::model::*;
use crate::publication::domains::DomainFilter;
use crate::publication::settings::{ALPHA_PREFIX, GA_PREFIX, PublicationSettings, StatusMode};
use crate::publication::{Desired, NameSource};
use crate::reason;
use crate::selector::Selector;
use crate::snapshot::Object;

fn lines(desired: &Desired) -> Vec<String> {
    let line = |r: &crate::publication::Record| {
        let ttl = r.ttl.map_or(String::new(), |ttl| format!(" ttl={ttl}"));
        let set = r.set_identifier.as_ref().map_or(String::new(), |set| format!(" set={set}"));
        let properties: String = r.provider_specific.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!("{} {} {}{ttl}{set}{properties}", r.name, r.kind, r.targets.join(","))
    };
    desired.records.iter().map(line).collect()
}

fn reasons(desired: &Desired) -> Vec<String> {
    desired.withheld.iter().map(|w| format!("{} {} {} {}", w.hostname, w.reason, w.object, w.field)).collect()
}

fn run(gateways: &[Gateway], sets: &[ListenerSet], routes: &[Route], settings: &PublicationSettings) -> Desired {
    publish(&snapshot(gateways, sets, routes), settings)
}

fn with_hosts(hosts: &[Option<&str>]) -> Gateway {
    let mut edge = gateway("infra", "edge");
    edge.listeners = hosts.iter().enumerate().map(|(i, host)| listener(&format!("l{i}"), *host)).collect();
    edge
}

fn http(name: &str, hostnames: &[&str]) -> Route {
    route(RouteKind::Http, "shop", name, hostnames)
}

fn annotated(mut route: Route, pairs: &[(&str, &str)]) -> Route {
    annotate(&mut route.meta, pairs);
    route
}

fn annotate(meta: &mut Meta, pairs: &[(&str, &str)]) {
    for (name, value) in pairs {
        meta.annotations.insert(format!("{GA_PREFIX}{name}").into(), (*value).into());
    }
}

fn with_addresses(addresses: &[&str]) -> Gateway {
    let mut edge = gateway("infra", "edge");
    edge.status.addresses = addresses.iter().map(|value| address(value)).collect();
    edge
}

fn with_sets() -> PublicationSettings {
    PublicationSettings { gateway_listener_sets: true, ..PublicationSettings::default() }
}

#[test]
fn a_record_says_who_asks_for_it_and_who_serves_it() {
    let desired = run(
        &[with_hosts(&[Some("*.example.com")])],
        &[],
        &[http("web", &["www.example.com"])],
        &PublicationSettings::default(),
    );
    let record = &desired.records[0];
    assert_eq!(lines(&desired), ["www.example.com A 192.0.2.1"]);
    assert_eq!(record.routes[0].to_string(), "HTTPRoute/shop/web");
    assert_eq!(record.listeners[0].to_string(), "Gateway/infra/edge/l0");
    assert_eq!(record.source, NameSource::Intersected);
    assert!(desired.withheld.is_empty());
}

#[test]
fn hostnames_are_intersected_with_every_listener() {
    type Row<'a> = (&'a [Option<&'a str>], &'a [&'a str], &'a [&'a str]);
    let table: [Row; 8] = [
        (&[None], &["a.test", "b.test"], &["a.test", "b.test"]),
        (&[Some("*.test")], &["a.test", "b.other"], &["a.test"]),
        (&[Some("a.test")], &["*.test"], &["a.test"]),
        (&[Some("*.a.test"), Some("x.test")], &["*.test"], &["*.a.test", "x.test"]),
        (&[Some("*.test"), Some("*.other")], &[], &["*.other", "*.test"]),
        (&[None, Some("a.test")], &["*.test"], &["*.test", "a.test"]),
        (&[None], &["A.Test", "y.test."], &["a.test", "y.test"]),
        (&[None], &[], &[]),
    ];
    for (hosts, names, expected) in table {
        let desired = run(&[with_hosts(hosts)], &[], &[http("web", names)], &PublicationSettings::default());
        let got: Vec<&str> = desired.records.iter().map(|record| &*record.name).collect();
        assert_eq!(got, expected, "{hosts:?} {names:?}");
    }
}

#[test]
fn a_name_from_an_annotation_must_meet_the_listener_alone() {
    let web = annotated(http("web", &["a.test"]), &[("hostname", "b.test, c.other")]);
    let desired = run(&[with_hosts(&[Some("*.test")])], &[], &[web], &PublicationSettings::default());
    assert_eq!(lines(&desired), ["a.test A 192.0.2.1", "b.test A 192.0.2.1"]);
    assert_eq!(desired.records[1].source, NameSource::Annotation);
    assert_eq!(
        reasons(&desired),
        ["c.other no-common-hostname HTTPRoute/shop/web metadata.annotations[\"external-dns.kubernetes.io/hostname\"]"]
    );
}

#[test]
fn a_route_without_hostnames_brings_the_listener_in_beside_its_annotation() {
    let web = annotated(http("web", &[]), &[("hostname", "a.test")]);
    let desired = run(&[with_hosts(&[Some("*.test")])], &[], &[web], &PublicationSettings::default());
    assert_eq!(lines(&desired), ["*.test A 192.0.2.1", "a.test A 192.0.2.1"]);
}

#[test]
fn targets_are_split_by_type() {
    let edge = with_addresses(&["192.0.2.2", "2001:db8::1", "lb.example.net.", "192.0.2.1", "192.0.2.1"]);
    let desired = run(&[edge], &[], &[http("web", &["a.test"])], &PublicationSettings::default());
    assert_eq!(
        lines(&desired),
        ["a.test A 192.0.2.1,192.0.2.2", "a.test AAAA 2001:db8::1", "a.test CNAME lb.example.net"]
    );
    assert_eq!(desired.diagnostics[0].reason, reason::TYPE_CLASH);
}

#[test]
fn several_names_as_addresses_make_one_cname_and_a_warning() {
    let edge = with_addresses(&["b.example.net", "a.example.net"]);
    let desired = run(&[edge], &[], &[http("web", &["a.test"])], &PublicationSettings::default());
    assert_eq!(lines(&desired), ["a.test CNAME a.example.net,b.example.net"]);
    assert_eq!(desired.diagnostics[0].reason, reason::SEVERAL_CNAME_TARGETS);
}

#[test]
fn annotations_of_the_route_shape_its_records() {
    let pairs =
        [("ttl", "1h30m"), ("set-identifier", "blue"), ("alias", "true"), ("aws-weight", "10"), ("record-type", "ptr")];
    let desired = run(
        &[gateway("infra", "edge")],
        &[],
        &[annotated(http("web", &["a.test"]), &pairs)],
        &PublicationSettings::default(),
    );
    assert_eq!(lines(&desired), ["a.test A 192.0.2.1 ttl=5400 set=blue alias=true aws/weight=10 record-type=ptr"]);
}

#[test]
fn the_target_of_a_gateway_replaces_its_addresses() {
    let mut edge = gateway("infra", "edge");
    annotate(&mut edge.meta, &[("target", "lb.example.net., 192.0.2.9"), ("ttl", "60"), ("alias", "true")]);
    let desired = run(&[edge], &[], &[http("web", &["a.test"])], &PublicationSettings::default());
    assert_eq!(lines(&desired), ["a.test A 192.0.2.9", "a.test CNAME lb.example.net"]);
}

#[test]
fn strategies_decide_between_route_gateway_and_addresses() {
    let table: [(&str, Option<&str>, Option<&str>, &str); 10] = [
        ("", Some("4.4.4.4"), Some("5.5.5.5"), "4.4.4.4"),
        ("", None, Some("5.5.5.5"), "5.5.5.5"),
        ("", None, None, "192.0.2.1"),
        ("nonsense", Some("4.4.4.4"), Some("5.5.5.5"), "4.4.4.4"),
        ("route-only", None, Some("5.5.5.5"), "192.0.2.1"),
        ("gateway-only", Some("4.4.4.4"), Some("5.5.5.5"), "5.5.5.5"),
        ("gateway-only", Some("4.4.4.4"), None, "192.0.2.1"),
        ("merge", Some("4.4.4.4"), Some("5.5.5.5"), "4.4.4.4,5.5.5.5"),
        ("merge", Some("4.4.4.4"), Some("4.4.4.4"), "4.4.4.4"),
        ("merge", Some(""), Some(""), "192.0.2.1"),
    ];
    for (strategy, own, theirs, expected) in table {
        let mut edge = gateway("infra", "edge");
        theirs.iter().for_each(|target| annotate(&mut edge.meta, &[("target", target)]));
        let mut web = http("web", &["a.test"]);
        own.iter().for_each(|target| annotate(&mut web.meta, &[("target", target)]));
        if !strategy.is_empty() {
            annotate(&mut web.meta, &[("target-strategy", strategy)]);
        }
        let desired = run(&[edge], &[], &[web], &PublicationSettings::default());
        assert_eq!(lines(&desired), [format!("a.test A {expected}")], "{strategy} {own:?} {theirs:?}");
    }
}

#[test]
fn targets_of_a_route_need_no_address() {
    let web = annotated(http("web", &["a.test"]), &[("target", "4.4.4.4")]);
    let desired = run(&[with_addresses(&[])], &[], &[web], &PublicationSettings::default());
    assert_eq!(lines(&desired), ["a.test A 4.4.4.4"]);
}

#[test]
fn one_source_unites_targets_and_the_oldest_route_decides_the_rest() {
    let mut old = annotated(http("old", &["a.test"]), &[("alias", "true")]);
    let mut new = annotated(http("a-new", &["a.test"]), &[("aws-weight", "1")]);
    (old.meta.created, new.meta.created) = (Some(1), Some(2));
    attach(&mut new, parent("Gateway", "infra", "second"));
    let mut second = gateway("infra", "second");
    second.status.addresses = vec![address("192.0.2.2")];
    let desired = run(&[gateway("infra", "edge"), second], &[], &[new, old], &PublicationSettings::default());
    assert_eq!(lines(&desired), ["a.test A 192.0.2.1,192.0.2.2 alias=true"]);
    let routes: Vec<String> = desired.records[0].routes.iter().map(ObjectRef::to_string).collect();
    assert_eq!(routes, ["HTTPRoute/shop/old", "HTTPRoute/shop/a-new"]);
}

#[test]
fn ttl_and_set_identifier_keep_records_apart_unless_they_are_the_same_set() {
    let other = |name, ttl| annotated(http(name, &["a.test"]), &[("ttl", ttl)]);
    let mut second = gateway("infra", "second");
    second.status.addresses = vec![address("192.0.2.2")];
    let mut far = other("far", "90");
    (far.parents, far.status) = Default::default();
    attach(&mut far, parent("Gateway", "infra", "second"));
    let routes =
        [other("a", "60"), other("b", "70"), far, annotated(http("blue", &["a.test"]), &[("set-identifier", "blue")])];
    let desired = run(&[gateway("infra", "edge"), second], &[], &routes, &PublicationSettings::default());
    assert_eq!(
        lines(&desired),
        ["a.test A 192.0.2.1 ttl=60", "a.test A 192.0.2.2 ttl=90", "a.test A 192.0.2.1 set=blue"]
    );
}

#[test]
fn sources_are_not_united_but_duplicates_go() {
    let mut second = gateway("infra", "second");
    second.status.addresses = vec![address("192.0.2.2")];
    let same = route(RouteKind::Grpc, "shop", "same", &["a.test"]);
    let mut other = route(RouteKind::Grpc, "shop", "other", &["b.test"]);
    attach(&mut other, parent("Gateway", "infra", "second"));
    let desired = run(
        &[gateway("infra", "edge"), second],
        &[],
        &[http("web", &["a.test", "b.test"]), same, other],
        &PublicationSettings::default(),
    );
    assert_eq!(lines(&desired), ["a.test A 192.0.2.1", "b.test A 192.0.2.1", "b.test A 192.0.2.1,192.0.2.2"]);
    assert_eq!(desired.records[0].routes.len(), 2);
}

#[test]
fn the_answer_does_not_depend_on_the_order_of_objects() {
    let mut routes =
        vec![http("b", &["a.test"]), annotated(http("a", &["a.test"]), &[("alias", "true")]), http("c", &["*.test"])];
    let edge = with_hosts(&[Some("*.test"), None]);
    let first = run(std::slice::from_ref(&edge), &[], &routes, &PublicationSettings::default());
    routes.reverse();
    assert_eq!(run(&[edge], &[], &routes, &PublicationSettings::default()), first);
}

#[test]
fn a_status_for_another_section_of_a_named_parent_counts() {
    let mut web = http("web", &["a.test"]);
    crate::model::items(&mut web.parents)[0].section = Some("l0".into());
    web.status[0].parent.section = Some("l1".into());
    let edge = with_hosts(&[Some("*.other"), Some("*.test")]);
    let desired = run(&[edge], &[], &[web], &PublicationSettings::default());
    assert_eq!(desired.records[0].listeners[0].to_string(), "Gateway/infra/edge/l1");
}

#[test]
fn nobody_asks_how_old_an_acceptance_is() {
    let mut web = http("web", &["a.test"]);
    web.meta.generation = Some(7);
    crate::model::items(&mut web.status[0].conditions)[0].observed_generation = Some(1);
    assert_eq!(run(&[gateway("infra", "edge")], &[], &[web], &PublicationSettings::default()).records.len(), 1);
}

#[test]
fn a_listener_set_brings_its_own_listeners_and_targets() {
    let mut edge = with_hosts(&[Some("*.edge.test")]);
    edge.allowed_listeners = Admission::All;
    annotate(&mut edge.meta, &[("target", "edge.example.net")]);
    let mut set = listener_set("shop", "extra", "infra", "edge");
    let mut web = http("web", &["a.test"]);
    (web.parents, web.status) = Default::default();
    attach(&mut web, parent("ListenerSet", "shop", "extra"));
    let ask = |set: &ListenerSet, settings: &PublicationSettings| {
        run(std::slice::from_ref(&edge), std::slice::from_ref(set), std::slice::from_ref(&web), settings)
    };
    assert_eq!(lines(&ask(&set, &with_sets())), ["a.test CNAME edge.example.net"]);
    annotate(&mut set.meta, &[("target", "192.0.2.3")]);
    assert_eq!(lines(&ask(&set, &with_sets())), ["a.test A 192.0.2.3"]);
    let off = ask(&set, &PublicationSettings::default());
    assert_eq!(reasons(&off), ["a.test not-selected HTTPRoute/shop/web spec.parentRefs[0]"]);
    assert!(off.records.is_empty());
}

#[test]
fn a_listener_set_must_be_admitted_and_accepted_with_its_listener() {
    type Break = fn(&mut Gateway, &mut ListenerSet);
    let table: [(Break, &str); 6] = [
        (
            |g, _| g.allowed_listeners = Admission::None,
            "listener-set-not-allowed Gateway/infra/edge spec.allowedListeners.namespaces",
        ),
        (
            |g, _| g.allowed_listeners = Admission::Same,
            "listener-set-not-allowed Gateway/infra/edge spec.allowedListeners.namespaces",
        ),
        (|_, s| s.parent.name = "gone".into(), "listener-set-parent-missing ListenerSet/shop/extra spec.parentRef"),
        (
            |_, s| s.conditions = Conditions::default(),
            "listener-set-not-attached ListenerSet/shop/extra status.conditions",
        ),
        (|_, s| s.listener_status.clear(), "listener-refused ListenerSet/shop/extra status.listeners"),
        (
            |_, s| s.listener_status[0].conditions[0].status = "False".into(),
            "listener-refused ListenerSet/shop/extra status.listeners",
        ),
    ];
    for (change, expected) in table {
        let (mut edge, mut set) = (gateway("infra", "edge"), listener_set("shop", "extra", "infra", "edge"));
        edge.allowed_listeners = Admission::All;
        change(&mut edge, &mut set);
        let mut web = http("web", &["a.test"]);
        (web.parents, web.status) = Default::default();
        attach(&mut web, parent("ListenerSet", "shop", "extra"));
        let desired = run(&[edge], &[set], &[web], &with_sets());
        assert_eq!(reasons(&desired), [format!("a.test {expected}")]);
    }
}

#[test]
fn every_hostname_that_gets_nothing_has_its_first_reason() {
    type Break = fn(&mut Gateway, &mut Route, &mut PublicationSettings);
    let table: [(Break, &str); 18] = [
        (|_, r, _| r.parents = Default::default(), "a.test route-without-parent HTTPRoute/shop/web spec.parentRefs"),
        (|_, r, _| r.status = RouteStatus::default(), "a.test status-missing HTTPRoute/shop/web spec.parentRefs[0]"),
        (
            |_, r, _| crate::model::items(&mut r.parents)[0].target.name = "x".into(),
            "a.test status-missing HTTPRoute/shop/web spec.parentRefs[0]",
        ),
        (
            |_, r, _| crate::model::items(&mut r.status[0].conditions)[0].status = "False".into(),
            "a.test status-refused HTTPRoute/shop/web status.parents[0].conditions",
        ),
        (
            |_, r, _| r.status[0].conditions = Default::default(),
            "a.test status-refused HTTPRoute/shop/web status.parents[0].conditions",
        ),
        (
            |_, r, _| {
                crate::model::items(&mut r.parents)[0].target.kind = "Service".into();
                r.status[0].parent.target.kind = "Service".into();
            },
            "a.test parent-kind-unknown HTTPRoute/shop/web spec.parentRefs[0]",
        ),
        (|g, _, _| g.meta.key.name = "x".into(), "a.test parent-missing HTTPRoute/shop/web spec.parentRefs[0]"),
        (|_, _, s| s.gateway_name = Some("x".into()), "a.test not-selected HTTPRoute/shop/web spec.parentRefs[0]"),
        (|_, _, s| s.gateway_namespace = Some("x".into()), "a.test not-selected HTTPRoute/shop/web spec.parentRefs[0]"),
        (
            |_, r, _| r.status[0].parent.section = Some("x".into()),
            "a.test section-not-found HTTPRoute/shop/web spec.parentRefs[0].sectionName",
        ),
        (
            |_, r, _| r.status[0].parent.port = Some(80),
            "a.test section-not-found HTTPRoute/shop/web spec.parentRefs[0].port",
        ),
        (
            |g, _, _| g.listeners[0].protocol = Protocol::Tls,
            "a.test route-kind-not-allowed HTTPRoute/shop/web spec.parentRefs[0]",
        ),
        (
            |g, _, _| g.listeners[0].allowed_routes.namespaces = Admission::Same,
            "a.test namespace-not-allowed Gateway/infra/edge spec.listeners[0].allowedRoutes.namespaces",
        ),
        (
            |g, _, _| g.listeners[0].allowed_routes.kinds = vec![(GATEWAY_GROUP.into(), "TLSRoute".into())],
            "a.test route-kind-not-allowed Gateway/infra/edge spec.listeners[0].allowedRoutes.kinds",
        ),
        (
            |g, _, _| g.listeners[0].hostname = Some(WrittenHostname::new("b.test")),
            "a.test no-common-hostname HTTPRoute/shop/web spec.hostnames[0]",
        ),
        (|g, _, _| g.status.addresses.clear(), "a.test gateway-without-address Gateway/infra/edge status.addresses"),
        (
            |_, r, _| r.hostnames = vec![WrittenHostname::new("a_b.test")].into(),
            "a_b.test invalid-hostname HTTPRoute/shop/web spec.hostnames[0]",
        ),
        (|_, r, _| r.hostnames = ShortVec::new(), "* no-name HTTPRoute/shop/web spec.hostnames"),
    ];
    for (change, expected) in table {
        let (mut edge, mut web, mut settings) =
            (gateway("infra", "edge"), http("web", &["a.test"]), PublicationSettings::default());
        change(&mut edge, &mut web, &mut settings);
        let desired = run(&[edge], &[], &[web], &settings);
        assert_eq!(reasons(&desired), [expected]);
        assert!(desired.records.is_empty(), "{expected}");
    }
}

#[test]
fn the_claim_that_came_furthest_is_the_one_to_explain() {
    let mut web = http("web", &["a.test"]);
    attach(&mut web, parent("Gateway", "infra", "gone"));
    let desired = run(&[with_hosts(&[None, Some("b.test")])], &[], &[web.clone()], &PublicationSettings::default());
    assert_eq!(desired.records.len(), 1);
    let mut edge = with_hosts(&[Some("b.test"), Some("c.test")]);
    edge.listeners[1].allowed_routes.namespaces = Admission::Same;
    let desired = run(&[edge], &[], &[web], &PublicationSettings::default());
    assert_eq!(desired.withheld[0].listener.as_ref().map(|l| l.to_string()).as_deref(), Some("Gateway/infra/edge/l0"));
    assert_eq!(desired.withheld[0].message, "`a.test` and `b.test` of Gateway/infra/edge/l0 have nothing in common");
}

#[test]
fn a_hostname_source_that_leaves_nothing_is_told() {
    let web = annotated(http("web", &["a.test"]), &[("gateway-hostname-source", "annotation-only")]);
    let desired = run(&[gateway("infra", "edge")], &[], &[web], &PublicationSettings::default());
    assert_eq!(reasons(&desired), ["a.test not-selected HTTPRoute/shop/web spec.hostnames[0]"]);
}

#[test]
fn filtered_routes_are_passed_over_and_not_withheld() {
    let settings = PublicationSettings {
        label_filter: Some(Selector::parse("tier=web").unwrap()),
        ..PublicationSettings::default()
    };
    let desired = run(&[gateway("infra", "edge")], &[], &[http("web", &["a.test"])], &settings);
    assert!(desired.records.is_empty() && desired.withheld.is_empty());
    assert_eq!(desired.passed_over[0].because, "its labels do not match `--label-filter tier=web`");
}

#[test]
fn the_controller_annotation_takes_objects_away() {
    for (on_route, on_gateway) in [(true, false), (false, true)] {
        let (mut edge, mut web) = (gateway("infra", "edge"), http("web", &["a.test"]));
        let pairs = [("controller", "other")];
        if on_route {
            annotate(&mut web.meta, &pairs);
        }
        if on_gateway {
            annotate(&mut edge.meta, &pairs);
        }
        let desired = run(&[edge], &[], &[web], &PublicationSettings::default());
        assert!(desired.records.is_empty());
        assert_eq!(desired.passed_over.len(), 1);
    }
}

#[test]
fn selectors_need_the_namespace_among_the_objects() {
    let mut edge = gateway("infra", "edge");
    edge.listeners[0].allowed_routes.namespaces = Admission::Selector(Some(Selector::parse("dns=on").unwrap()));
    let mut world = snapshot(&[edge], &[], &[http("web", &["a.test"])]);
    let without = publish(&world, &PublicationSettings::default());
    assert!(without.withheld[0].message.ends_with("the Namespace is not among the objects"));
    let mut shop = Namespace { meta: Meta::named("", "shop") };
    shop.meta.labels.insert("dns".into(), "on".into());
    world.upsert(Object::Namespace(shop));
    assert_eq!(publish(&world, &PublicationSettings::default()).records.len(), 1);
}

#[test]
fn domains_outside_the_filter_are_withheld() {
    let settings =
        PublicationSettings { domains: DomainFilter::new(&["a.test"], &[]), ..PublicationSettings::default() };
    let desired = run(&[gateway("infra", "edge")], &[], &[http("web", &["x.a.test", "x.b.test"])], &settings);
    assert_eq!(lines(&desired), ["x.a.test A 192.0.2.1"]);
    assert_eq!(desired.withheld[0].reason, reason::DOMAIN_NOT_SELECTED);
}

#[test]
fn both_prefixes_are_read_or_the_one_that_is_given() {
    let mut web = http("web", &["a.test"]);
    web.meta.annotations.insert(format!("{ALPHA_PREFIX}ttl").into(), "60".into());
    let given = PublicationSettings { annotation_prefixes: vec![GA_PREFIX.into()], ..PublicationSettings::default() };
    let edge = [gateway("infra", "edge")];
    assert_eq!(run(&edge, &[], &[web.clone()], &PublicationSettings::default()).records[0].ttl, Some(60));
    assert_eq!(run(&edge, &[], &[web], &given).records[0].ttl, None);
}

#[test]
fn without_status_the_specs_can_be_asked_instead() {
    let mut web = http("web", &["a.test"]);
    web.status = RouteStatus::default();
    let settings = PublicationSettings { status: StatusMode::Compute, ..PublicationSettings::default() };
    assert_eq!(run(&[gateway("infra", "edge")], &[], &[web], &settings).records.len(), 1);
}

#[test]
fn a_given_address_wins() {
    let mut settings = PublicationSettings::default();
    settings.gateway_addresses.insert(Key::new("infra", "edge"), vec!["192.0.2.77".into()]);
    let desired = run(&[gateway("infra", "edge")], &[], &[http("web", &["a.test"])], &settings);
    assert_eq!(lines(&desired), ["a.test A 192.0.2.77"]);
}

#[test]
fn an_experimental_listener_set_is_not_a_parent() {
    let mut set = listener_set("shop", "extra", "infra", "edge");
    set.kind = Kind::XListenerSet;
    let mut edge = gateway("infra", "edge");
    edge.allowed_listeners = Admission::All;
    let mut web = http("web", &["a.test"]);
    (web.parents, web.status) = Default::default();
    attach(&mut web, parent("ListenerSet", "shop", "extra"));
    assert!(run(&[edge], &[set], &[web], &with_sets()).records.is_empty());
}
