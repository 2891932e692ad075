//! Objects for tests, written by hand: one Gateway `infra/edge` with an open listener, and routes that it has accepted.

use crate::model::*;
use crate::snapshot::{Object, Snapshot};

/// A Gateway with one open HTTPS listener and the address 192.0.2.1.
pub(crate) fn gateway(namespace: &str, name: &str) -> Gateway {
    Gateway {
        meta: Meta::named(namespace, name),
        class: "any".into(),
        listeners: vec![listener("https", None)],
        wished_addresses: vec![],
        allowed_listeners: Admission::None,
        parameters: None,
        frontend: FrontendTls::default(),
        status: GatewayStatus { addresses: vec![address("192.0.2.1")], ..GatewayStatus::default() },
    }
}

/// An address.
pub(crate) fn address(value: &str) -> Address {
    Address { kind: "IPAddress".into(), value: value.into(), routability: None }
}

/// An HTTPS listener on port 443 that takes routes from everywhere.
pub(crate) fn listener(name: &str, hostname: Option<&str>) -> Listener {
    Listener {
        name: name.into(),
        hostname: hostname.map(WrittenHostname::new),
        port: 443,
        protocol: Protocol::Https,
        tls: None,
        allowed_routes: AllowedRoutes { namespaces: Admission::All, kinds: vec![] },
        has_filters: false,
    }
}

/// A ListenerSet, accepted with all its listeners.
pub(crate) fn listener_set(namespace: &str, name: &str, gateway_namespace: &str, gateway: &str) -> ListenerSet {
    let parent = Reference {
        group: GATEWAY_GROUP.into(),
        kind: "Gateway".into(),
        namespace: Some(gateway_namespace.into()),
        name: gateway.into(),
    };
    let accepted = vec![Condition::new("Accepted", true, "Accepted", "")];
    ListenerSet {
        kind: Kind::ListenerSet,
        meta: Meta::named(namespace, name),
        parent,
        listeners: vec![listener("extra", None)],
        conditions: accepted.clone().into(),
        listener_status: vec![ListenerStatus { name: "extra".into(), conditions: accepted.into() }],
    }
}

/// A route that `Gateway/infra/edge` has accepted.
pub(crate) fn route(kind: RouteKind, namespace: &str, name: &str, hostnames: &[&str]) -> Route {
    let mut route = Route {
        kind,
        meta: Meta::named(namespace, name),
        parents: Default::default(),
        hostnames: hostnames.iter().map(|text| WrittenHostname::new(text)).collect(),
        rules: Default::default(),
        status: Default::default(),
    };
    attach(&mut route, parent("Gateway", "infra", "edge"));
    route
}

/// A reference to a parent.
pub(crate) fn parent(kind: &str, namespace: &str, name: &str) -> ParentRef {
    let target = Reference {
        group: GATEWAY_GROUP.into(),
        kind: kind.into(),
        namespace: Some(namespace.into()),
        name: name.into(),
    };
    ParentRef { target, section: None, port: None }
}

/// Names a parent in spec and status, accepted.
pub(crate) fn attach(route: &mut Route, parent: ParentRef) {
    crate::model::push(&mut route.parents, parent.clone());
    let conditions = vec![Condition::new("Accepted", true, "Accepted", "")];
    route.status.push(ParentStatus { parent, controller: "example.com/gateway".into(), conditions: conditions.into() });
}

/// Gateways and routes together.
pub(crate) fn snapshot(gateways: &[Gateway], sets: &[ListenerSet], routes: &[Route]) -> Snapshot {
    let gateways = gateways.iter().cloned().map(Object::Gateway);
    let sets = sets.iter().cloned().map(Object::ListenerSet);
    Snapshot::of(gateways.chain(sets).chain(routes.iter().cloned().map(Object::Route)))
}
