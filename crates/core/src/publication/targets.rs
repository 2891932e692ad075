//! The targets of names: annotations, target strategies, and the addresses of a Gateway.
//!
//! `target-strategy` of a route chooses between its own targets and those of the Gateway; addresses are used if no
//! annotation has targets. The record type follows from the text of the target. Names are not resolved here.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::RecordType;
use super::settings::PublicationSettings;
use crate::model::{Address, Gateway, Str};

/// The target strategy of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The route's targets, else the Gateway's.
    #[default]
    RoutePreferred,
    /// The route's targets only.
    RouteOnly,
    /// The Gateway's targets only.
    GatewayOnly,
    /// Both.
    Merge,
}

impl Strategy {
    /// The values of `target-strategy`.
    pub const WORDS: &str = "route-preferred, route-only, gateway-only or merge";

    /// Reads the annotation.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "route-preferred" => Some(Strategy::RoutePreferred),
            "route-only" => Some(Strategy::RouteOnly),
            "gateway-only" => Some(Strategy::GatewayOnly),
            "merge" => Some(Strategy::Merge),
            _ => None,
        }
    }

    /// The targets to use; empty means the addresses of the Gateway.
    pub fn choose<'a>(self, route: &'a [Str], gateway: &'a [Str]) -> Cow<'a, [Str]> {
        match self {
            Strategy::RoutePreferred if route.is_empty() => gateway.into(),
            Strategy::RoutePreferred | Strategy::RouteOnly => route.into(),
            Strategy::GatewayOnly => gateway.into(),
            Strategy::Merge if route.is_empty() => gateway.into(),
            Strategy::Merge if gateway.is_empty() => route.into(),
            Strategy::Merge => [route, gateway].concat().into(),
        }
    }
}

/// The items of a comma-separated list: all blanks are removed, empty items are kept.
pub fn comma_list(text: &str) -> Vec<Str> {
    text.replace(' ', "").trim().split(',').map(Str::from).collect()
}

/// The targets of a `target` annotation, each without one trailing dot.
pub fn target_list(text: &str) -> Vec<Str> {
    if text.is_empty() {
        return Vec::new();
    }
    comma_list(text).iter().map(|target| without_dot(target).into()).collect()
}

/// The record type of a target.
pub fn record_type(target: &str) -> RecordType {
    if target.parse::<Ipv4Addr>().is_ok() {
        RecordType::A
    } else if is_ipv6(target) {
        RecordType::Aaaa
    } else {
        RecordType::Cname
    }
}

/// A name without its trailing dot.
pub fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// The fields of a Gateway that contain its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFields {
    /// `status.addresses` alone.
    Status,
    /// `status.addresses`, else the entries of `spec.addresses` that have a value.
    StatusOrSpec,
}

/// The addresses of a Gateway: those of `--gateway-address`, else those of its fields.
pub fn gateway_addresses<'a>(
    gateway: &'a Gateway,
    fields: AddressFields,
    settings: &PublicationSettings,
) -> Cow<'a, [Address]> {
    if let Some(given) = settings.gateway_addresses.get(&gateway.meta.key) {
        return given.iter().map(given_address).collect();
    }
    let status = &gateway.status.addresses;
    if !status.is_empty() || fields == AddressFields::Status {
        return status.into();
    }
    gateway.wished_addresses.iter().filter(|address| !address.value.is_empty()).cloned().collect()
}

fn given_address(value: &Str) -> Address {
    let kind = if record_type(value) == RecordType::Cname { "Hostname" } else { "IPAddress" };
    Address { kind: kind.into(), value: value.clone(), routability: None }
}

/// Whether a text is an IPv6 address, with or without a zone after `%`.
fn is_ipv6(text: &str) -> bool {
    match text.split_once('%') {
        Some((address, zone)) => !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok(),
        None => text.parse::<Ipv6Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Vec<Str> {
        items.iter().map(|item| Str::from(*item)).collect()
    }

    #[test]
    fn the_text_decides_the_type() {
        let table = [
            ("192.0.2.1", RecordType::A),
            ("2001:db8::1", RecordType::Aaaa),
            ("::ffff:192.0.2.1", RecordType::Aaaa),
            ("fe80::1%eth0", RecordType::Aaaa),
            ("fe80::1%", RecordType::Cname),
            ("192.0.2.01", RecordType::Cname),
            ("192.0.2", RecordType::Cname),
            ("192.0.2.1.", RecordType::Cname),
            ("[2001:db8::1]", RecordType::Cname),
            ("lb.example.net", RecordType::Cname),
            ("", RecordType::Cname),
        ];
        for (target, expected) in table {
            assert_eq!(record_type(target), expected, "{target}");
        }
    }

    #[test]
    fn strategies_choose_as_their_table_says() {
        let (none, route, gateway) = (list(&[]), list(&["4.4.4.4"]), list(&["5.5.5.5"]));
        let both = list(&["4.4.4.4", "5.5.5.5"]);
        let table = [
            (Strategy::RoutePreferred, &route, &gateway, &route),
            (Strategy::RoutePreferred, &route, &none, &route),
            (Strategy::RoutePreferred, &none, &gateway, &gateway),
            (Strategy::RoutePreferred, &none, &none, &none),
            (Strategy::RouteOnly, &route, &gateway, &route),
            (Strategy::RouteOnly, &route, &none, &route),
            (Strategy::RouteOnly, &none, &gateway, &none),
            (Strategy::RouteOnly, &none, &none, &none),
            (Strategy::GatewayOnly, &route, &gateway, &gateway),
            (Strategy::GatewayOnly, &route, &none, &none),
            (Strategy::GatewayOnly, &none, &gateway, &gateway),
            (Strategy::GatewayOnly, &none, &none, &none),
            (Strategy::Merge, &route, &gateway, &both),
            (Strategy::Merge, &route, &none, &route),
            (Strategy::Merge, &none, &gateway, &gateway),
            (Strategy::Merge, &none, &none, &none),
        ];
        for (strategy, route, gateway, expected) in table {
            assert_eq!(&*strategy.choose(route, gateway), &**expected, "{strategy:?} {route:?} {gateway:?}");
        }
    }

    #[test]
    fn strategies_are_read_in_any_case() {
        assert_eq!(Strategy::parse("Route-Only "), Some(Strategy::RouteOnly));
        assert_eq!(Strategy::parse("route"), None);
    }

    #[test]
    fn lists_lose_blanks_and_keep_empty_items() {
        assert_eq!(comma_list(" a.example , b. example,"), list(&["a.example", "b.example", ""]));
        assert_eq!(target_list("lb.example.net.,192.0.2.1"), list(&["lb.example.net", "192.0.2.1"]));
        assert_eq!(target_list(""), list(&[]));
        assert_eq!(target_list("a,"), list(&["a", ""]));
    }

    #[test]
    fn addresses_come_from_the_flag_then_status_then_spec() {
        let mut gateway = crate::external_dns::fixtures::gateway("infra", "edge");
        let mut settings = PublicationSettings::default();
        let values = |gateway: &Gateway, fields, settings: &PublicationSettings| -> Vec<Str> {
            gateway_addresses(gateway, fields, settings).iter().map(|a| a.value.clone()).collect()
        };
        gateway.status.addresses.clear();
        assert!(values(&gateway, AddressFields::StatusOrSpec, &settings).is_empty());
        gateway.wished_addresses = vec![given_address(&"192.0.2.7".into()), given_address(&"".into())];
        assert_eq!(values(&gateway, AddressFields::StatusOrSpec, &settings), list(&["192.0.2.7"]));
        assert!(values(&gateway, AddressFields::Status, &settings).is_empty());
        gateway.status.addresses = vec![given_address(&"192.0.2.8".into())];
        assert_eq!(values(&gateway, AddressFields::StatusOrSpec, &settings), list(&["192.0.2.8"]));
        settings.gateway_addresses.insert(gateway.meta.key.clone(), list(&["192.0.2.9", "lb.example.net"]));
        assert_eq!(values(&gateway, AddressFields::Status, &settings), list(&["192.0.2.9", "lb.example.net"]));
    }
}
