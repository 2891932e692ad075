//! The flags that `plan`, `explain`, `serve` and `controller` share: what is published.
//!
//! Names and meaning as in external-dns wherever it has them. Values are read here, once: a bad one ends the program with
//! exit status 2 and names its flag, before any object is looked at.

use std::net::{IpAddr, SocketAddr};

use clap::{Args, ValueEnum};
use gatepost_core::attachment::Scope;
use gatepost_core::model::{Key, Kind, RouteKind, Str};
use gatepost_core::names::PreciseHostname;
use gatepost_core::publication::domains::DomainFilter;
use gatepost_core::publication::settings::{Profile, PublicationSettings, Publish, StatusMode};
use gatepost_core::publication::template::Template;
use gatepost_core::selector::Selector;
use gatepost_dns::resolve::{self, Resolver};

use super::Failure;
use providers::FurtherProviders;

pub(super) mod issuer;
pub(super) mod issuing;
pub(super) mod page;
pub(super) mod planning;
pub(super) mod probing;
pub(super) mod provider;
pub(super) mod providers;
mod secret;

/// What is published.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "What is published")]
pub(super) struct Publishing {
    /// Whose rules decide: those of the Gateway API, or exactly what external-dns does
    #[arg(long, value_enum, default_value = "strict", env = "GATEPOST_PROFILE")]
    profile: ProfileFlag,
    /// Whether a hostname needs a DNSPolicy: every attached one is published, or only governed ones
    #[arg(long, value_enum, default_value = "all", env = "GATEPOST_PUBLISH")]
    publish: PublishFlag,
    /// Kinds of routes to read: gateway-httproute, -grpcroute, -tlsroute, -tcproute, -udproute; may be repeated [default: all]
    #[arg(long, value_name = "SOURCE", value_parser = source, env = "GATEPOST_SOURCE", value_delimiter = ',')]
    source: Vec<RouteKind>,
    /// Only routes of this namespace
    #[arg(short = 'n', long, env = "GATEPOST_NAMESPACE")]
    namespace: Option<String>,
    /// Only routes whose labels match: a=b, a!=b, a in (b,c), a notin (b), a, !a
    #[arg(long, value_name = "SELECTOR", value_parser = selector, env = "GATEPOST_LABEL_FILTER")]
    label_filter: Option<Selector>,
    /// Only routes and ListenerSets whose annotations match
    #[arg(long, value_name = "SELECTOR", value_parser = selector, env = "GATEPOST_ANNOTATION_FILTER")]
    annotation_filter: Option<Selector>,
    /// Only the Gateway of this name
    #[arg(long, value_name = "NAME", env = "GATEPOST_GATEWAY_NAME")]
    gateway_name: Option<String>,
    /// Only Gateways of this namespace
    #[arg(long, value_name = "NAMESPACE", env = "GATEPOST_GATEWAY_NAMESPACE")]
    gateway_namespace: Option<String>,
    /// Only Gateways whose labels match
    #[arg(long, value_name = "SELECTOR", value_parser = selector, env = "GATEPOST_GATEWAY_LABEL_FILTER")]
    gateway_label_filter: Option<Selector>,
    /// Only Gateways of this GatewayClass; may be repeated [default: all]
    #[arg(long, value_name = "NAME", env = "GATEPOST_GATEWAY_CLASS", value_delimiter = ',')]
    gateway_class: Vec<String>,
    /// Read ListenerSets in profile external-dns (profile strict always does)
    #[arg(long, env = "GATEPOST_GATEWAY_LISTENER_SETS")]
    gateway_listener_sets: bool,
    /// The one prefix of annotations, ending in `/` [default: external-dns.kubernetes.io/, then external-dns.alpha.kubernetes.io/]
    #[arg(long, value_name = "PREFIX", value_parser = prefix, env = "GATEPOST_ANNOTATION_PREFIX")]
    annotation_prefix: Option<String>,
    /// Ignore the `hostname` annotation
    #[arg(long, env = "GATEPOST_IGNORE_HOSTNAME_ANNOTATION")]
    ignore_hostname_annotation: bool,
    /// Go template for names, used where a route has none; may be repeated
    #[arg(long, value_name = "TEMPLATE", env = "GATEPOST_FQDN_TEMPLATE")]
    fqdn_template: Vec<String>,
    /// Add the names of --fqdn-template to those a route has
    #[arg(long, env = "GATEPOST_COMBINE_FQDN_ANNOTATION")]
    combine_fqdn_annotation: bool,
    /// Only names in this domain; a leading dot means only below it; may be repeated
    #[arg(long, value_name = "DOMAIN", env = "GATEPOST_DOMAIN_FILTER", value_delimiter = ',')]
    domain_filter: Vec<String>,
    /// No names in this domain; may be repeated
    #[arg(long, value_name = "DOMAIN", env = "GATEPOST_EXCLUDE_DOMAINS", value_delimiter = ',')]
    exclude_domains: Vec<String>,
    /// Address of a Gateway that has none in its files, or another than there; may be repeated
    #[arg(long, value_name = "NAMESPACE/NAME=VALUE", value_parser = address, env = "GATEPOST_GATEWAY_ADDRESS", value_delimiter = ',')]
    gateway_address: Vec<(Key, Str)>,
    /// Publish targets of annotations that are loopback, link-local, multicast or metadata addresses
    #[arg(long, env = "GATEPOST_ALLOW_INWARD_TARGETS")]
    allow_inward_targets: bool,
    /// Publish only hostnames that a HostnameGrant covers
    #[arg(long, env = "GATEPOST_REQUIRE_GRANTS")]
    require_grants: bool,
    /// Where no CNAME may stand, publish the addresses behind a hostname address, and follow them
    #[arg(long, env = "GATEPOST_RESOLVE_TARGETS")]
    resolve_targets: bool,
    /// A resolver for --resolve-targets and `verify`, with or without a port; may be repeated [default: those of the system]
    #[arg(long, value_name = "ADDRESS", value_parser = resolver_address, env = "GATEPOST_RESOLVER", value_delimiter = ',')]
    resolver: Vec<SocketAddr>,
    /// Where acceptance comes from: the status that an implementation wrote, our own computation, or the former where there is one
    #[arg(long, value_enum, default_value = "auto", env = "GATEPOST_STATUS")]
    status: StatusFlag,
    /// Accepted because command lines of external-dns have it; both prefixes are read anyway
    #[arg(long, hide = true)]
    enable_legacy_annotation_prefix: bool,
    #[command(flatten)]
    further: FurtherProviders,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum ProfileFlag {
    Strict,
    ExternalDns,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum PublishFlag {
    All,
    Governed,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum StatusFlag {
    Auto,
    Trust,
    Compute,
}

impl Publishing {
    /// The settings they amount to.
    pub(super) fn settings(&self) -> Result<PublicationSettings, Failure> {
        if let (ProfileFlag::ExternalDns, PublishFlag::Governed) = (self.profile, self.publish) {
            let message = "--publish governed: profile external-dns knows no policies, and would publish every name";
            return Err(Failure::usage(message));
        }
        if let (ProfileFlag::ExternalDns, true) = (self.profile, self.require_grants) {
            let message =
                "--require-grants: profile external-dns knows no HostnameGrants, and would publish every name";
            return Err(Failure::usage(message));
        }
        if self.further.are_any() {
            if let ProfileFlag::ExternalDns = self.profile {
                let message =
                    "--profile external-dns knows no policies that name one of several `providers`: leave one out";
                return Err(Failure::usage(message));
            }
            if self.resolve_targets {
                return Err(Failure::usage(
                    "--resolve-targets works with one provider only: leave it or `providers` out",
                ));
            }
        }
        let template = Template::parse(&self.fqdn_template)
            .map_err(|error| Failure::usage(format!("--fqdn-template: {error}")))?;
        let mut settings = PublicationSettings {
            profile: match self.profile {
                ProfileFlag::Strict => Profile::Strict,
                ProfileFlag::ExternalDns => Profile::ExternalDns,
            },
            publish: match self.publish {
                PublishFlag::All => Publish::All,
                PublishFlag::Governed => Publish::Governed,
            },
            namespace: text(&self.namespace),
            label_filter: self.label_filter.clone(),
            annotation_filter: self.annotation_filter.clone(),
            gateway_name: text(&self.gateway_name),
            gateway_namespace: text(&self.gateway_namespace),
            gateway_label_filter: self.gateway_label_filter.clone(),
            gateway_classes: self.gateway_class.iter().map(|name| name.as_str().into()).collect(),
            gateway_listener_sets: self.gateway_listener_sets,
            ignore_hostname_annotation: self.ignore_hostname_annotation,
            fqdn_template: template,
            allow_inward_targets: self.allow_inward_targets,
            require_grants: self.require_grants,
            combine_fqdn_annotation: self.combine_fqdn_annotation,
            domains: DomainFilter::new(&self.domain_filter, &self.exclude_domains),
            providers: self.further.rule(),
            status: match self.status {
                StatusFlag::Auto => StatusMode::Auto,
                StatusFlag::Trust => StatusMode::Trust,
                StatusFlag::Compute => StatusMode::Compute,
            },
            ..PublicationSettings::default()
        };
        if !self.source.is_empty() {
            settings.sources = self.source.iter().copied().collect();
        }
        if let Some(prefix) = &self.annotation_prefix {
            settings.annotation_prefixes = vec![prefix.as_str().into()];
        }
        for (gateway, value) in &self.gateway_address {
            settings.gateway_addresses.entry(gateway.clone()).or_default().push(value.clone());
        }
        Ok(settings)
    }

    /// What finds the addresses behind hostnames, where that is asked for.
    pub(super) fn resolver(&self) -> Result<Option<Resolver>, Failure> {
        if !self.resolve_targets {
            return Ok(None);
        }
        let servers = if self.resolver.is_empty() { system_resolvers()? } else { self.resolver.clone() };
        Ok(Some(Resolver::new(resolve::ResolverConfig { servers, ..resolve::ResolverConfig::default() })))
    }

    /// Refuses a resolver that has nothing to do.
    pub(super) fn refuse_idle_resolver(&self) -> Result<(), Failure> {
        match !self.resolve_targets && !self.resolver.is_empty() {
            true => Err(Failure::usage("--resolver names who resolves targets: add --resolve-targets")),
            false => Ok(()),
        }
    }

    /// The resolvers that are named.
    pub(super) fn resolvers(&self) -> &[SocketAddr] {
        &self.resolver
    }

    /// The providers of the settings file.
    pub(super) fn further(&self) -> &FurtherProviders {
        &self.further
    }

    /// The domains of `--domain-filter`.
    pub(super) fn domains(&self) -> &[String] {
        &self.domain_filter
    }

    /// The only namespace whose routes are published.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|namespace| !namespace.is_empty())
    }

    /// The kinds of routes that are read.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        let all = RouteKind::ALL.to_vec();
        let kinds = if self.source.is_empty() { &all } else { &self.source };
        kinds.iter().copied().map(Kind::Route).collect()
    }

    /// Whose Gateways are looked at.
    pub(super) fn scope(&self) -> Scope {
        Scope { classes: self.gateway_class.iter().map(|name| name.as_str().into()).collect() }
    }
}

/// An empty value means that the flag is not set, as in external-dns.
fn text(value: &Option<String>) -> Option<Str> {
    value.as_deref().filter(|value| !value.is_empty()).map(Str::from)
}

pub(super) fn source(name: &str) -> Result<RouteKind, String> {
    let known: Vec<_> = RouteKind::ALL.into_iter().map(RouteKind::source).collect();
    RouteKind::of_source(name).ok_or_else(|| format!("expected one of {}", known.join(", ")))
}

fn selector(text: &str) -> Result<Selector, String> {
    Selector::parse(text).map_err(|error| error.to_string())
}

pub(super) fn prefix(text: &str) -> Result<String, String> {
    if text.ends_with('/') && text.len() > 1 { Ok(text.to_owned()) } else { Err("a prefix ends in `/`".to_owned()) }
}

fn address(text: &str) -> Result<(Key, Str), String> {
    let parts = text.split_once('=').and_then(|(gateway, value)| Some((gateway.split_once('/')?, value)));
    match parts {
        Some(((namespace, name), value)) if !namespace.is_empty() && !name.is_empty() && is_address(value) => {
            Ok((Key::new(namespace, name), value.into()))
        }
        _ => Err("write NAMESPACE/NAME=VALUE with an IP address or a hostname as value".to_owned()),
    }
}

/// An address with the port of DNS where none is named.
pub(super) fn resolver_address(text: &str) -> Result<SocketAddr, String> {
    let bare = || text.trim_matches(['[', ']']).parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53));
    text.parse().or_else(|_| bare()).map_err(|_| "write an IP address, with or without a port".to_owned())
}

/// The resolvers that the system uses.
pub(super) fn system_resolvers() -> Result<Vec<SocketAddr>, Failure> {
    let text = std::fs::read_to_string(resolve::SYSTEM_FILE).unwrap_or_default();
    match resolve::nameservers(&text) {
        none if none.is_empty() => {
            Err(Failure::usage(format!("{} names no resolver: add --resolver ADDRESS", resolve::SYSTEM_FILE)))
        }
        found => Ok(found),
    }
}

fn is_address(value: &str) -> bool {
    let name = value.strip_suffix('.').unwrap_or(value);
    value.parse::<IpAddr>().is_ok() || PreciseHostname::parse(name).is_ok()
}
