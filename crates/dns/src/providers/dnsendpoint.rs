//! The declaration of the provider `dnsendpoint`: records as DNSEndpoint objects of a cluster.
//!
//! Only the kind is declared here. Its server is the API server, which this crate never sees: the controller makes it.

use crate::provider::kind::{ProviderAccess, ProviderKind};

/// The kind, for the registry.
pub const KIND: ProviderKind = ProviderKind {
    // Objects are chosen by our label, so that all records in them are ours.
    is_sole_writer: true,
    ..ProviderKind::new(
        "dnsendpoint",
        "DNSEndpoint objects for external-dns to carry on; only for `controller`",
        ProviderAccess::Cluster,
    )
};
