//! Which names a route asks for.

use super::world::*;
use crate::model::*;
use crate::objects;
use crate::publication::settings::PublicationSettings;
use crate::publication::template::Template;
use crate::publication::{Desired, NameSource};

fn edge() -> Gateway {
    gateway("infra/edge", vec![http("web", "*.example.com")])
}

fn sources(desired: &Desired) -> Vec<(String, NameSource)> {
    desired.records.iter().map(|record| (record.name.to_string(), record.source)).collect()
}

fn templated() -> PublicationSettings {
    let template = Template::parse(&["{{.Name}}.example.com"]).unwrap();
    PublicationSettings { fqdn_template: template, ..PublicationSettings::default() }
}

#[test]
fn the_listener_is_the_last_resort() {
    let annotated = annotated(route("shop/web", "infra/edge", &[]), "hostname", "b.example.com,b.test");
    let found = plain(objects![edge(), annotated]);
    assert_eq!(sources(&found), [("b.example.com".into(), NameSource::Annotation)]);
    assert_eq!(withheld(&found), ["b.test no-common-hostname"]);
    let bare = || route("shop/web", "infra/edge", &[]);
    let found = desired(objects![edge(), bare()], &templated());
    assert_eq!(sources(&found), [("web.example.com".into(), NameSource::Template)]);
    let found = plain(objects![edge(), bare()]);
    assert_eq!(sources(&found), [("*.example.com".into(), NameSource::Intersected)]);
}

#[test]
fn the_template_is_added_only_where_it_is_combined() {
    let named = || route("shop/web", "infra/edge", &["a.example.com"]);
    assert_eq!(sources(&desired(objects![edge(), named()], &templated())).len(), 1);
    let combined = PublicationSettings { combine_fqdn_annotation: true, ..templated() };
    let found = desired(objects![edge(), named()], &combined);
    assert_eq!(
        sources(&found),
        [("a.example.com".into(), NameSource::Intersected), ("web.example.com".into(), NameSource::Template)]
    );
}

#[test]
fn a_route_says_which_hostnames_count() {
    let route = annotated(route("shop/web", "infra/edge", &["a.example.com"]), "hostname", "b.example.com.");
    let only = |word: &str| plain(objects![edge(), annotated(route.clone(), "gateway-hostname-source", word)]);
    assert_eq!(sources(&only("annotation-only")), [("b.example.com".into(), NameSource::Annotation)]);
    assert_eq!(sources(&only("defined-hosts-only")), [("a.example.com".into(), NameSource::Intersected)]);
    assert_eq!(sources(&only("")).len(), 2);
}

#[test]
fn a_route_may_keep_all_its_hostnames_out() {
    let route =
        annotated(route("shop/web", "infra/edge", &["a.example.com"]), "gateway-hostname-source", "annotation-only");
    let found = plain(objects![edge(), route]);
    assert_eq!((records(&found).len(), withheld(&found)), (0, vec!["a.example.com not-selected".to_owned()]));
}

#[test]
fn texts_that_are_no_hostnames_are_told_one_by_one() {
    let route = annotated(route("shop/web", "infra/edge", &["a.example.com", "a_b"]), "hostname", "http://x");
    let found = plain(objects![edge(), route]);
    assert_eq!(records(&found), ["a.example.com A 192.0.2.1"]);
    assert_eq!(withheld(&found), ["a_b invalid-hostname", "http://x invalid-hostname"]);
    assert_eq!(found.withheld[0].field.to_string(), "spec.hostnames[1]");
    assert!(found.withheld[1].field.to_string().contains("hostname"));
}

#[test]
fn names_through_two_listeners_are_one_record() {
    let edge = gateway("infra/edge", vec![http("a", "*.example.com"), http("b", "*")]);
    let found = plain(objects![edge, route("shop/web", "infra/edge", &["a.example.com"])]);
    assert_eq!(records(&found), ["a.example.com A 192.0.2.1"]);
    assert_eq!(found.records[0].listeners.len(), 2);
}
