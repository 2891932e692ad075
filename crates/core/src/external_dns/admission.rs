//! Whether a listener accepts a route by protocol, port, namespace and kind, as external-dns decides it.
//!
//! Hostnames are not compared here. A namespace that is not among the objects is never admitted by a selector.

use crate::attachment::listeners::kinds_of_protocol;
use crate::model::{Admission, GATEWAY_GROUP, Listener, Namespace, Protocol, RouteKind, Str};
use crate::selector::{Selector, Test};
use crate::snapshot::Snapshot;

/// The route's side of the question.
#[derive(Clone, Copy)]
pub(super) struct CandidateRoute<'a> {
    /// Its kind.
    pub(super) kind: RouteKind,
    /// Its namespace.
    pub(super) namespace: &'a Str,
    /// That namespace, where it is among the objects.
    pub(super) labels: Option<&'a Namespace>,
}

/// What a listener objects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Objection {
    /// The protocol does not support routes of this kind.
    Protocol,
    /// The parentRef asks for another port.
    Port,
    /// Routes from this namespace.
    Namespace,
    /// Routes of this kind.
    Kind,
}

/// The first check of a listener in namespace `owner` that a route fails.
pub(super) fn objection(
    listener: &Listener,
    owner: &Str,
    route: CandidateRoute,
    port: Option<u16>,
) -> Option<Objection> {
    if !carries(&listener.protocol, route.kind) {
        Some(Objection::Protocol)
    } else if port.is_some_and(|port| port != listener.port) {
        Some(Objection::Port)
    } else if !takes_namespace(&listener.allowed_routes.namespaces, owner, route.namespace, route.labels) {
        Some(Objection::Namespace)
    } else if !takes_kind(listener, route.kind) {
        Some(Objection::Kind)
    } else {
        None
    }
}

/// Whether an object in `owner` admits objects in `namespace`.
pub(super) fn admits(admission: &Admission, owner: &Str, namespace: &Str, snapshot: &Snapshot) -> bool {
    takes_namespace(admission, owner, namespace, snapshot.namespaces.get(namespace).map(|namespace| &**namespace))
}

fn takes_namespace(admission: &Admission, owner: &Str, namespace: &Str, labels: Option<&Namespace>) -> bool {
    match admission {
        Admission::All => true,
        Admission::Same => owner == namespace,
        Admission::Selector(Some(selector)) => {
            is_sound(selector) && labels.is_some_and(|namespace| selector.matches(&namespace.meta.labels))
        }
        Admission::None | Admission::Selector(None) | Admission::Other(_) => false,
    }
}

/// Whether Kubernetes would accept the selector: no list of values is empty.
fn is_sound(selector: &Selector) -> bool {
    !selector
        .requirements
        .iter()
        .any(|r| matches!(&r.test, Test::In(values) | Test::NotIn(values) if values.is_empty()))
}

/// Whether external-dns pairs the protocol with the kind. It does not look at the TLS mode.
fn carries(protocol: &Protocol, kind: RouteKind) -> bool {
    kinds_of_protocol(protocol, true).contains(&kind)
}

fn takes_kind(listener: &Listener, route: RouteKind) -> bool {
    let kinds = &listener.allowed_routes.kinds;
    let is_gateway_group = |group: &Str| group.is_empty() || **group == *GATEWAY_GROUP;
    kinds.is_empty() || kinds.iter().any(|(group, kind)| is_gateway_group(group) && **kind == *route.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external_dns::fixtures;
    use crate::model::Meta;

    fn applicant<'a>(kind: RouteKind, namespace: &'a Str, labels: Option<&'a Namespace>) -> CandidateRoute<'a> {
        CandidateRoute { kind, namespace, labels }
    }

    #[test]
    fn protocols_carry_kinds_as_the_table_says() {
        let protocols = ["HTTP", "HTTPS", "TLS", "TCP", "UDP", "example.com/QUIC"];
        let table = [
            (RouteKind::Http, [true, true, false, false, false, false]),
            (RouteKind::Grpc, [true, true, false, false, false, false]),
            (RouteKind::Tls, [false, false, true, false, false, false]),
            (RouteKind::Tcp, [false, false, true, true, false, false]),
            (RouteKind::Udp, [false, false, false, false, true, false]),
        ];
        for (kind, expected) in table {
            assert_eq!(protocols.map(|p| carries(&Protocol::parse(p), kind)), expected, "{kind:?}");
        }
    }

    #[test]
    fn objections_come_in_order() {
        let owner: Str = "infra".into();
        let other: Str = "shop".into();
        let mut listener = fixtures::listener("https", None);
        let ask = |listener: &Listener, kind, namespace, port| {
            objection(listener, &owner, applicant(kind, namespace, None), port)
        };
        assert_eq!(ask(&listener, RouteKind::Udp, &owner, None), Some(Objection::Protocol));
        assert_eq!(ask(&listener, RouteKind::Http, &owner, Some(1)), Some(Objection::Port));
        assert_eq!(ask(&listener, RouteKind::Http, &owner, Some(listener.port)), None);
        listener.allowed_routes.namespaces = Admission::Same;
        assert_eq!(ask(&listener, RouteKind::Http, &other, None), Some(Objection::Namespace));
        listener.allowed_routes.namespaces = Admission::All;
        listener.allowed_routes.kinds = vec![(GATEWAY_GROUP.into(), "GRPCRoute".into())];
        assert_eq!(ask(&listener, RouteKind::Http, &other, None), Some(Objection::Kind));
        assert_eq!(ask(&listener, RouteKind::Grpc, &other, None), None);
        listener.allowed_routes.kinds =
            vec![("".into(), "HTTPRoute".into()), ("example.com".into(), "GRPCRoute".into())];
        assert_eq!(ask(&listener, RouteKind::Http, &other, None), None);
        assert_eq!(ask(&listener, RouteKind::Grpc, &other, None), Some(Objection::Kind));
    }

    #[test]
    fn namespaces_are_admitted_by_word_or_label() {
        let (owner, other): (Str, Str) = ("infra".into(), "shop".into());
        let mut shop = Namespace { meta: Meta::named("", "shop") };
        shop.meta.labels.insert("dns".into(), "on".into());
        let selector = |text: &str| Admission::Selector(Some(Selector::parse(text).unwrap()));
        let empty = Selector {
            requirements: vec![crate::selector::Requirement { key: "x".into(), test: Test::NotIn(vec![]) }],
        };
        let table = [
            (Admission::All, None, true),
            (Admission::Same, None, false),
            (Admission::None, None, false),
            (Admission::Other("Most".into()), None, false),
            (Admission::Selector(None), Some(&shop), false),
            (selector(""), Some(&shop), true),
            (selector(""), None, false),
            (selector("dns=on"), Some(&shop), true),
            (selector("dns=off"), Some(&shop), false),
            (selector("dns!=off"), None, false),
            (Admission::Selector(Some(empty)), Some(&shop), false),
        ];
        for (admission, labels, expected) in table {
            assert_eq!(takes_namespace(&admission, &owner, &other, labels), expected, "{admission:?}");
        }
        assert!(takes_namespace(&Admission::Same, &owner, &owner, None));
    }
}
