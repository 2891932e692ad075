//! What a controller may do in a cluster: one row per right, with the feature that needs it and what is lost without it.
//!
//! Roles, the chart's rules and the questions of `check --pre` are renderings of this table, so that none of them can know
//! a right that the others do not. Nothing here asks a cluster, and no row has a wildcard.

use gatepost_core::model::{Kind, RouteKind};

/// Where a right holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleScope {
    /// In all namespaces.
    Everywhere,
    /// In the namespaces that certificates are written to. They have to be named.
    Certificates,
    /// In the controller's own namespace.
    Own,
}

/// What a right is for; a feature that is off asks for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// The tree above the routes; always on.
    Tree,
    /// Routes of one kind.
    Routes(RouteKind),
    /// DNSPolicy, TLSPolicy and HostnameGrant, and the status of policies.
    Policies,
    /// Events on routes and Gateways.
    Events,
    /// One writer among several replicas.
    LeaderElection,
    /// `--admission`: what the policies of `gatepost admission` read.
    Admission,
    /// `--provider dnsendpoint`.
    DnsEndpoints,
    /// `--issuer embedded` or `acme`: certificates in Secrets.
    Secrets,
    /// `--issuer cert-manager`, and policies that name an issuer of its.
    CertManager,
    /// `--page cluster`: who looks, and what they may see.
    Page,
}

impl Feature {
    /// Every feature, in the order of the table.
    pub fn all() -> Vec<Feature> {
        let routes = RouteKind::ALL.into_iter().map(Feature::Routes);
        let rest = [
            Feature::Policies,
            Feature::Events,
            Feature::LeaderElection,
            Feature::Admission,
            Feature::DnsEndpoints,
            Feature::Secrets,
            Feature::CertManager,
            Feature::Page,
        ];
        [Feature::Tree].into_iter().chain(routes).chain(rest).collect()
    }

    /// The rights that it needs.
    pub fn rights(self) -> Vec<Right> {
        match self {
            Feature::Tree => tree(),
            Feature::Routes(kind) => vec![reading(Kind::Route(kind), "their hostnames are not published")],
            Feature::Policies => policies(),
            Feature::Events => vec![EVENTS],
            Feature::LeaderElection => vec![LEASES],
            Feature::Admission => vec![PARAMETERS],
            Feature::DnsEndpoints => vec![DNS_ENDPOINTS],
            Feature::Secrets => vec![SECRETS, NOTES],
            Feature::CertManager => vec![CERTIFICATES, REQUESTS, HELD],
            Feature::Page => vec![TOKEN_REVIEWS, ACCESS_REVIEWS],
        }
    }
}

/// One right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Resource, with its subresource.
    pub resource: &'static str,
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// Where.
    pub place: RoleScope,
    /// What is lost without it.
    pub cost: &'static str,
}

const READ: &[&str] = &["get", "list", "watch"];
const OWNED: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

const EVENTS: Right = Right {
    group: "events.k8s.io",
    resource: "events",
    verbs: &["create", "patch"],
    place: RoleScope::Everywhere,
    cost: "nobody is told on the route or the Gateway what was published or withheld",
};
const LEASES: Right = Right {
    group: "coordination.k8s.io",
    resource: "leases",
    verbs: &["get", "create", "update", "patch"],
    place: RoleScope::Own,
    cost: "no replica can become the leader, so nothing is written",
};
const PARAMETERS: Right = Right {
    group: "",
    resource: "configmaps",
    verbs: &["get", "create", "patch"],
    place: RoleScope::Own,
    cost: "the policies of `gatepost admission` do not follow the HostnameGrants",
};
const DNS_ENDPOINTS: Right = Right {
    group: "externaldns.k8s.io",
    resource: "dnsendpoints",
    verbs: OWNED,
    place: RoleScope::Own,
    cost: "no record is published",
};

// They are read by name, never listed or watched, and none is ever deleted.
const SECRETS: Right = Right {
    group: "",
    resource: "secrets",
    verbs: &["get", "create", "patch"],
    place: RoleScope::Certificates,
    cost: "no certificate can be stored",
};
const NOTES: Right = Right {
    place: RoleScope::Own,
    cost: "no certificate is ordered: orders, the account and the authority could not be remembered",
    ..SECRETS
};

const CERTIFICATES: Right = Right {
    group: "cert-manager.io",
    resource: "certificates",
    verbs: OWNED,
    place: RoleScope::Everywhere,
    cost: "no certificate is asked of cert-manager",
};
const REQUESTS: Right = Right {
    resource: "certificaterequests",
    verbs: &["get"],
    cost: "why cert-manager's issuer does not issue is not told",
    ..CERTIFICATES
};
const HELD: Right = Right {
    verbs: &["get"],
    cost: "no certificate is asked of cert-manager: what its Secret holds is not known",
    ..SECRETS
};

const TOKEN_REVIEWS: Right = Right {
    group: "authentication.k8s.io",
    resource: "tokenreviews",
    verbs: &["create"],
    place: RoleScope::Everywhere,
    cost: "nobody can look at the page: who they are is not known",
};
const ACCESS_REVIEWS: Right = Right {
    group: "authorization.k8s.io",
    resource: "subjectaccessreviews",
    cost: "nobody can look at the page: what they may see is not known",
    ..TOKEN_REVIEWS
};

fn reading(kind: Kind, cost: &'static str) -> Right {
    Right { group: kind.group(), resource: kind.resource(), verbs: READ, place: RoleScope::Everywhere, cost }
}

fn tree() -> Vec<Right> {
    vec![
        reading(Kind::GatewayClass, "every Gateway is held: what its class says is not known"),
        reading(Kind::Gateway, "nothing is published"),
        reading(
            Kind::ListenerSet,
            "hostnames on ListenerSets are held: nothing new is published there, nothing deleted",
        ),
        reading(
            Kind::XListenerSet,
            "hostnames on XListenerSets are held: nothing new is published there, nothing deleted",
        ),
        reading(Kind::ReferenceGrant, "references into other namespaces are held"),
        reading(Kind::Namespace, "listeners and HostnameGrants that select namespaces by label are held"),
    ]
}

fn policies() -> Vec<Right> {
    let status = |kind: Kind, resource| Right {
        resource,
        verbs: &["get", "patch"],
        ..reading(kind, "its status does not say what became of it")
    };
    vec![
        reading(Kind::HostnameGrant, "every hostname is held: a grant could give it to another namespace"),
        reading(Kind::DnsPolicy, "every hostname is held: a policy could forbid it"),
        status(Kind::DnsPolicy, "dnspolicies/status"),
        reading(Kind::TlsPolicy, "every certificate is held: a policy could forbid it"),
        status(Kind::TlsPolicy, "tlspolicies/status"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Right> {
        Feature::all().into_iter().flat_map(Feature::rights).collect()
    }

    #[test]
    fn no_right_is_a_wildcard_or_without_a_cost() {
        for right in all() {
            assert!(
                !right.verbs.contains(&"*") && !right.resource.contains('*') && !right.cost.is_empty(),
                "{right:?}"
            );
        }
    }

    #[test]
    fn every_kind_that_decides_over_hostnames_can_be_read() {
        for kind in Kind::ALL {
            let optional = matches!(kind, Kind::Service | Kind::Secret | Kind::ConfigMap);
            let read = all()
                .iter()
                .any(|r| (r.group, r.resource) == (kind.group(), kind.resource()) && r.verbs.starts_with(READ));
            assert!(read || optional, "{kind}");
        }
    }

    #[test]
    fn secrets_belong_to_certificates_alone_and_are_never_listed() {
        let features =
            Feature::all().into_iter().filter(|f| f.rights().iter().any(|right| right.resource == "secrets"));
        assert_eq!(features.collect::<Vec<_>>(), [Feature::Secrets, Feature::CertManager]);
        assert_eq!(HELD.verbs, ["get"]);
        assert!(Feature::Secrets.rights().iter().all(|right| right.verbs == ["get", "create", "patch"]));
    }
}
