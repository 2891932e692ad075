//! Status that a Gateway implementation wrote, and whether it is trusted.

use super::world::*;
use crate::model::*;
use crate::objects;
use crate::publication::Desired;
use crate::publication::settings::{PublicationSettings, StatusMode};

fn accepted(status: bool) -> Vec<Condition> {
    vec![Condition::new("Accepted", status, if status { "Accepted" } else { "Invalid" }, "because")]
}

fn speaking() -> Gateway {
    let mut edge = gateway("infra/edge", vec![https("web", "*.example.com", "edge-tls")]);
    edge.status.conditions = accepted(true).into();
    edge
}

fn with_status(mut route: Route, status: bool) -> Route {
    let parent = route.parents[0].clone();
    route.status.push(ParentStatus {
        parent,
        controller: "example.test/gateway".into(),
        conditions: accepted(status).into(),
    });
    route
}

fn web() -> Route {
    route("shop/web", "infra/edge", &["a.example.com"])
}

fn outcome(found: &Desired) -> String {
    if found.records.is_empty() { withheld(found).join(",") } else { "published".to_owned() }
}

fn by(mode: StatusMode, gateway: Gateway, route: Route) -> Desired {
    desired(objects![gateway, route], &PublicationSettings { status: mode, ..PublicationSettings::default() })
}

#[test]
fn auto_believes_a_gateway_that_speaks() {
    let silent = gateway("infra/edge", vec![https("web", "*.example.com", "edge-tls")]);
    let mut refused = speaking();
    refused.status.conditions = accepted(false).into();
    let table = [
        (silent.clone(), web(), "published"),
        (silent, with_status(web(), false), "published"),
        (speaking(), web(), "a.example.com status-missing"),
        (speaking(), with_status(web(), true), "published"),
        (speaking(), with_status(web(), false), "a.example.com status-refused"),
        (refused, with_status(web(), true), "a.example.com status-refused"),
    ];
    for (gateway, route, expected) in table {
        let found = by(StatusMode::Auto, gateway, route);
        assert_eq!(outcome(&found), expected);
        assert!(found.withheld.iter().all(|w| w.holds()));
    }
}

#[test]
fn trust_and_compute_take_one_side_only() {
    let silent = gateway("infra/edge", vec![https("web", "*.example.com", "edge-tls")]);
    assert_eq!(outcome(&by(StatusMode::Trust, silent, web())), "a.example.com status-missing");
    assert_eq!(outcome(&by(StatusMode::Compute, speaking(), with_status(web(), false))), "published");
}

#[test]
fn an_old_generation_decides_nothing() {
    let mut route = with_status(web(), true);
    route.meta.generation = Some(2);
    crate::model::items(&mut route.status[0].conditions)[0].observed_generation = Some(1);
    assert_eq!(outcome(&by(StatusMode::Auto, speaking(), route)), "a.example.com status-stale");
}

#[test]
fn a_listener_may_refuse_too() {
    let mut gateway = speaking();
    gateway.status.listeners = vec![ListenerStatus { name: "web".into(), conditions: accepted(false).into() }];
    let found = by(StatusMode::Auto, gateway, with_status(web(), true));
    assert_eq!(outcome(&found), "a.example.com status-refused");
    assert_eq!(found.withheld[0].field.to_string(), "status.listeners[0].conditions");
}

#[test]
fn acceptance_against_the_rules_is_a_contradiction() {
    let mut gateway = speaking();
    gateway.listeners[0].allowed_routes.namespaces = Admission::Same;
    let found = by(StatusMode::Auto, gateway.clone(), with_status(web(), true));
    assert_eq!(outcome(&found), "a.example.com status-disagrees");
    let found = by(StatusMode::Auto, gateway, with_status(web(), false));
    assert_eq!(outcome(&found), "a.example.com namespace-not-allowed");
    assert!(!found.withheld[0].holds());
}

#[test]
fn only_the_controller_of_the_class_counts() {
    let class = GatewayClass {
        meta: Meta::named("", "any"),
        controller: "other.test/gateway".into(),
        features: vec![],
        conditions: Default::default(),
    };
    let found = plain(objects![class, speaking(), with_status(web(), true)]);
    assert_eq!(outcome(&found), "a.example.com status-missing");
}

#[test]
fn one_accepted_parent_ref_is_enough() {
    let mut route = with_status(web(), false);
    let section = ParentRef { section: Some("web".into()), ..route.parents[0].clone() };
    crate::model::push(&mut route.parents, section.clone());
    let controller = "example.test/gateway".into();
    route.status.push(ParentStatus { parent: section, controller, conditions: accepted(true).into() });
    assert_eq!(outcome(&by(StatusMode::Auto, speaking(), route)), "published");
}

#[test]
fn a_missing_secret_keeps_no_certificate_from_being_made() {
    let waiting = |reason: &str| {
        let mut gateway = speaking();
        let mut conditions = accepted(true);
        conditions.push(Condition::new("ResolvedRefs", false, reason, ""));
        gateway.status.listeners = vec![ListenerStatus { name: "web".into(), conditions: conditions.into() }];
        by(StatusMode::Auto, gateway, with_status(web(), false))
    };
    let missing = waiting("InvalidCertificateRef");
    assert_eq!(outcome(&missing), "a.example.com status-refused");
    assert_eq!(certificates(&missing), ["infra/edge-tls a.example.com"]);
    assert!(waiting("RefNotPermitted").certificates.is_empty());
}
