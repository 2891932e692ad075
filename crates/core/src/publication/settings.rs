//! Settings of publication, from the command line and the settings file.
//!
//! All values are already parsed and valid. Fields have the names of the flags.

use std::collections::{BTreeMap, BTreeSet};

use super::domains::DomainFilter;
use super::providers::PublishingProviders;
use super::template::Template;
use crate::model::{Key, RouteKind, Str};
use crate::selector::Selector;

/// The prefix of annotations since external-dns v0.22.
pub const GA_PREFIX: &str = "external-dns.kubernetes.io/";

/// The prefix of annotations before that.
pub const ALPHA_PREFIX: &str = "external-dns.alpha.kubernetes.io/";

/// The maximum number of names in a certificate that most issuers accept.
pub const CERTIFICATE_NAMES: usize = 100;

/// The settings of both profiles.
#[derive(Clone, Debug)]
pub struct PublicationSettings {
    /// `--profile`.
    pub profile: Profile,
    /// `--publish`.
    pub publish: Publish,
    /// `--source`: the kinds of routes that are read.
    pub sources: BTreeSet<RouteKind>,
    /// `--namespace`: of the routes.
    pub namespace: Option<Str>,
    /// `--label-filter`: for routes.
    pub label_filter: Option<Selector>,
    /// `--annotation-filter`: for routes and ListenerSets.
    pub annotation_filter: Option<Selector>,
    /// `--gateway-name`: one exact name.
    pub gateway_name: Option<Str>,
    /// `--gateway-namespace`: of the Gateways.
    pub gateway_namespace: Option<Str>,
    /// `--gateway-label-filter`: for Gateways.
    pub gateway_label_filter: Option<Selector>,
    /// `--gateway-class`: names of classes; none means all.
    pub gateway_classes: Vec<Str>,
    /// `--gateway-listener-sets`: whether profile external-dns reads ListenerSets.
    pub gateway_listener_sets: bool,
    /// Prefixes of annotations; the first with a value wins.
    pub annotation_prefixes: Vec<Str>,
    /// `--ignore-hostname-annotation`.
    pub ignore_hostname_annotation: bool,
    /// `--fqdn-template`, all of them joined.
    pub fqdn_template: Option<Template>,
    /// `--combine-fqdn-annotation`: template names are added to the other names.
    pub combine_fqdn_annotation: bool,
    /// `--domain-filter` and `--exclude-domains`.
    pub domains: DomainFilter,
    /// `--gateway-address`: addresses that override those of a Gateway.
    pub gateway_addresses: BTreeMap<Key, Vec<Str>>,
    /// `--allow-inward-targets`: whether annotations may name addresses of the host or network itself.
    pub allow_inward_targets: bool,
    /// `--require-grants`: whether a hostname that no HostnameGrant covers is withheld.
    pub require_grants: bool,
    /// `--status`.
    pub status: StatusMode,
    /// Maximum number of names in a certificate.
    pub certificate_names: usize,
    /// `providers` of the settings file: who publishes which names.
    pub providers: PublishingProviders,
}

impl Default for PublicationSettings {
    fn default() -> Self {
        PublicationSettings {
            profile: Profile::default(),
            publish: Publish::default(),
            sources: RouteKind::ALL.into(),
            namespace: None,
            label_filter: None,
            annotation_filter: None,
            gateway_name: None,
            gateway_namespace: None,
            gateway_label_filter: None,
            gateway_classes: Vec::new(),
            gateway_listener_sets: false,
            annotation_prefixes: vec![GA_PREFIX.into(), ALPHA_PREFIX.into()],
            ignore_hostname_annotation: false,
            fqdn_template: None,
            combine_fqdn_annotation: false,
            domains: DomainFilter::default(),
            gateway_addresses: BTreeMap::new(),
            allow_inward_targets: false,
            require_grants: false,
            status: StatusMode::default(),
            certificate_names: CERTIFICATE_NAMES,
            providers: PublishingProviders::default(),
        }
    }
}

/// The rules that decide what is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The rules of the hostname document.
    #[default]
    Strict,
    /// The rules of external-dns.
    ExternalDns,
}

/// Whether a hostname needs a policy to be published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Publish {
    /// No: every attached hostname is published.
    #[default]
    All,
    /// Yes.
    Governed,
}

/// Which source decides about acceptance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusMode {
    /// The status if a Gateway has conditions, else the specs.
    #[default]
    Auto,
    /// The status that a Gateway implementation wrote.
    Trust,
    /// The specs.
    Compute,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_by_name() {
        for kind in RouteKind::ALL {
            assert_eq!(RouteKind::of_source(kind.source()), Some(kind));
        }
        assert_eq!(RouteKind::of_source("service"), None);
    }

    #[test]
    fn both_prefixes_are_read_unless_one_is_given() {
        let settings = PublicationSettings::default();
        assert_eq!(settings.annotation_prefixes, [GA_PREFIX.into(), ALPHA_PREFIX.into()]);
        assert_eq!(settings.sources.len(), 5);
    }
}
