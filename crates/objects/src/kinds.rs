//! The kinds that are read, the versions they were ever served in, and who reads them.

use gatepost_core::model::{EXPERIMENTAL_GROUP, GATEWAY_GROUP, Kind, Meta, RouteKind};
use gatepost_core::snapshot::Object;

use crate::fields::{Fields, Strictness, closest};
use crate::{gateway, gateway_class, listener_set, policies, reference_grant, routes, support};

/// Reads an object whose metadata are known.
type Reader = fn(Meta, &Fields<'_>, &str) -> Object;

/// One kind.
pub(crate) struct KindEntry {
    /// Which.
    pub(crate) kind: Kind,
    /// Versions, newest first.
    pub(crate) versions: &'static [&'static str],
    /// How strictly it is looked at.
    pub(crate) strictness: Strictness,
    /// Who reads it.
    pub(crate) read: Reader,
}

/// One row per kind, in the order of [`Kind::ALL`].
static ROWS: &[KindEntry] = &[
    api(Kind::GatewayClass, &["v1", "v1beta1", "v1alpha2"], gateway_class::read),
    api(Kind::Gateway, &["v1", "v1beta1", "v1alpha2"], gateway::read),
    api(Kind::ListenerSet, &["v1"], listener_set::read),
    api(Kind::XListenerSet, &["v1alpha1"], listener_set::read),
    api(Kind::Route(RouteKind::Http), &["v1", "v1beta1", "v1alpha2"], routes::http),
    api(Kind::Route(RouteKind::Grpc), &["v1", "v1alpha2"], routes::grpc),
    api(Kind::Route(RouteKind::Tls), &["v1", "v1alpha3", "v1alpha2"], routes::tls),
    api(Kind::Route(RouteKind::Tcp), &["v1", "v1alpha2"], routes::tcp),
    api(Kind::Route(RouteKind::Udp), &["v1", "v1alpha2"], routes::udp),
    api(Kind::ReferenceGrant, &["v1", "v1beta1", "v1alpha2"], reference_grant::read),
    core(Kind::Namespace, support::namespace),
    core(Kind::Service, support::service),
    core(Kind::Secret, support::secret),
    core(Kind::ConfigMap, support::config_map),
    api(Kind::DnsPolicy, &["v1alpha1"], policies::dns),
    api(Kind::TlsPolicy, &["v1alpha1"], policies::tls),
    api(Kind::HostnameGrant, &["v1alpha1"], policies::grant),
];

/// Kinds of the same groups that are no business of ours.
const PASSED_OVER: &[&str] =
    &["BackendTLSPolicy", "BackendLBPolicy", "XBackend", "XBackendTrafficPolicy", "XMesh", "XTelemetryPolicy"];

const fn api(kind: Kind, versions: &'static [&'static str], read: Reader) -> KindEntry {
    KindEntry { kind, versions, strictness: Strictness::Full, read }
}

const fn core(kind: Kind, read: Reader) -> KindEntry {
    KindEntry { kind, versions: &["v1"], strictness: Strictness::Types, read }
}

/// What an `apiVersion` and `kind` turn out to be.
pub(crate) enum KindLookup {
    /// A kind that is read.
    Known(&'static KindEntry),
    /// A `ListenerSet` in the group of the experiments, as a draft had it.
    DraftListenerSet(&'static KindEntry),
    /// A misspelt kind of one of our groups; holds the right spelling.
    Misspelt(&'static str),
    /// Somebody else's.
    Foreign,
}

/// The versions in which a kind is read, newest first.
pub fn versions(kind: Kind) -> &'static [&'static str] {
    row(kind).map_or(&[], |row| row.versions)
}

/// Looks up a group and a kind.
pub(crate) fn find(group: &str, kind: &str) -> KindLookup {
    if let Some(row) = Kind::of(group, kind).and_then(row) {
        return KindLookup::Known(row);
    }
    if group == EXPERIMENTAL_GROUP && kind == "ListenerSet" {
        return row(Kind::XListenerSet).map_or(KindLookup::Foreign, KindLookup::DraftListenerSet);
    }
    let ours = [GATEWAY_GROUP, EXPERIMENTAL_GROUP, Kind::DnsPolicy.group()].contains(&group);
    if !ours || PASSED_OVER.contains(&kind) {
        return KindLookup::Foreign;
    }
    let names = Kind::ALL.into_iter().filter(|k| k.group() == group).map(Kind::as_str);
    closest(kind, names).map_or(KindLookup::Foreign, KindLookup::Misspelt)
}

/// Whether a kind of this name is read in any group.
pub(crate) fn is_known_name(kind: &str) -> bool {
    let core = ["Namespace", "Service", "Secret", "ConfigMap"];
    Kind::ALL.into_iter().any(|k| k.as_str() == kind && !core.contains(&kind))
}

fn row(kind: Kind) -> Option<&'static KindEntry> {
    ROWS.iter().find(|row| row.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_row_in_order() {
        assert_eq!(ROWS.iter().map(|row| row.kind).collect::<Vec<_>>(), Kind::ALL);
    }

    #[test]
    fn kinds_are_found_by_group_and_name() {
        assert!(
            matches!(find(GATEWAY_GROUP, "HTTPRoute"), KindLookup::Known(row) if row.kind == Kind::Route(RouteKind::Http))
        );
        assert!(matches!(find(GATEWAY_GROUP, "HttpRoute"), KindLookup::Misspelt("HTTPRoute")));
        assert!(matches!(find(EXPERIMENTAL_GROUP, "ListenerSet"), KindLookup::DraftListenerSet(_)));
        assert!(matches!(find(GATEWAY_GROUP, "BackendTLSPolicy"), KindLookup::Foreign));
        assert!(matches!(find("networking.istio.io", "Gateway"), KindLookup::Foreign));
    }
}
