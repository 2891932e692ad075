//! `excludeAddresses`: IP addresses, CIDR ranges and hostnames that are not published.

use std::net::IpAddr;

use crate::names::{Hostname, PreciseHostname};

/// One entry of `excludeAddresses`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// Every address of a network; a single address has the full prefix length.
    Network(IpAddr, u8),
    /// One hostname.
    Name(PreciseHostname),
}

impl Exclusion {
    /// Parses an entry; the error is a clause that can follow the field's name.
    pub fn parse(text: &str) -> Result<Exclusion, String> {
        let network = match text.split_once('/') {
            Some((address, length)) => Some(range(address, length).ok_or_else(|| unreadable(text))?),
            None => ip(text).map(|address| Exclusion::Network(address, full_length(address))),
        };
        match network {
            Some(network) => Ok(network),
            None if looks_like_ip(text) => Err(unreadable(text)),
            None => hostname(text).map(Exclusion::Name).ok_or_else(|| unreadable(text)),
        }
    }

    /// Whether a target is excluded.
    pub fn covers(&self, target: &str) -> bool {
        match (self, target.parse::<IpAddr>()) {
            (Exclusion::Network(network, length), Ok(address)) => is_in(address, *network, *length),
            (Exclusion::Name(name), Err(_)) => hostname(target).is_some_and(|target| target == *name),
            _ => false,
        }
    }
}

fn unreadable(text: &str) -> String {
    let shown: String = text.chars().take(60).collect();
    format!("is `{shown}`; an IP address, a range such as 10.0.0.0/8, or a hostname is expected")
}

fn range(address: &str, length: &str) -> Option<Exclusion> {
    let address = ip(address)?;
    let number: u8 = length.parse().ok().filter(|number| *number <= full_length(address))?;
    // Only the canonical form is accepted: neither `+8` nor `08`.
    (number.to_string() == length).then_some(Exclusion::Network(address, number))
}

/// Parses an IP address as Kubernetes does: IPv4-mapped IPv6 addresses are refused.
fn ip(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().filter(|address| address.to_canonical() == *address)
}

fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_in(address: IpAddr, network: IpAddr, length: u8) -> bool {
    let leading = |a: u128, b: u128, bits: u32| (a ^ b).leading_zeros() >= bits;
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => leading(u32::from(a).into(), u32::from(b).into(), 96 + u32::from(length)),
        (IpAddr::V6(a), IpAddr::V6(b)) => leading(a.into(), b.into(), length.into()),
        _ => false,
    }
}

/// Whether a text is a misspelt address rather than a hostname: no top-level domain is a number.
fn looks_like_ip(text: &str) -> bool {
    let last = text.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    text.contains(':') || (!last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
}

fn hostname(text: &str) -> Option<PreciseHostname> {
    Hostname::parse(text.strip_suffix('.').unwrap_or(text)).ok()?.precise()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(entry: &str, target: &str) -> bool {
        Exclusion::parse(entry).expect(entry).covers(target)
    }

    #[test]
    fn addresses_ranges_and_names_exclude_what_they_say() {
        let table = [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.0/24", "192.0.2.200", true),
            ("192.0.2.77/24", "192.0.2.200", true),
            ("192.0.2.0/24", "192.0.3.1", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "203.0.113.9", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("2001:DB8::1", "2001:db8:0::1", true),
            ("LB.example.net.", "lb.example.net", true),
            ("lb.example.net", "x.lb.example.net", false),
            ("lb.example.net", "192.0.2.1", false),
        ];
        for (entry, target, expected) in table {
            assert_eq!(covers(entry, target), expected, "{entry} {target}");
        }
    }

    #[test]
    fn what_is_none_of_the_three_is_refused() {
        let bad = [
            "",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "/8",
            "300.1.2.3",
            "10.0.0",
            "::1/129",
            "a b",
            "*.x",
            "x:y",
        ];
        for entry in bad {
            assert!(Exclusion::parse(entry).is_err(), "{entry}");
        }
    }
}
