//! Targets that point inwards: to the host that resolves them, its link, or the metadata service of a cloud (D29).
//!
//! A client that resolves such a name connects to itself or to a service that trusts it. Private networks are no such
//! targets: names in them are published on purpose. Nothing here decides who may name a target.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::targets::without_dot;

/// Addresses of metadata services outside the link-local networks: Alibaba Cloud, Azure, Oracle Cloud.
const METADATA: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];

/// The addresses of the metadata services of AWS and Google Cloud.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// Names that hosts have for themselves in their own tables, and those of metadata services.
const NAMES: [&str; 12] = [
    "instance-data",
    "instance-data.ec2.internal",
    "ip6-localhost",
    "ip6-loopback",
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost6",
    "localhost6.localdomain6",
    "metadata",
    "metadata.azure.internal",
    "metadata.google.internal",
];

/// Whether a target points to the host or network itself.
pub fn is_inward(target: &str) -> bool {
    let target = target.trim();
    match target.parse() {
        Ok(IpAddr::V4(address)) => is_inward_v4(address),
        Ok(IpAddr::V6(address)) => is_inward_v6(address),
        Err(_) => {
            let name = without_dot(target).to_ascii_lowercase();
            let is_local = NAMES.contains(&&*name) || name.ends_with(".localhost");
            is_local || short_v4(&name).is_some_and(is_inward_v4)
        }
    }
}

/// The address that many clients take a name such as `127.1`, `0x7f.1` or `2130706433` for: at most four numbers, decimal,
/// octal or hexadecimal, of which the last fills what the others leave.
fn short_v4(name: &str) -> Option<Ipv4Addr> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some("") => Some(0),
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    };
    let numbers: Vec<u32> = name.split('.').take(5).map(number).collect::<Option<_>>()?;
    let (last, first) = numbers.split_last().filter(|(_, first)| first.len() < 4)?;
    let high = first.iter().zip([24, 16, 8]).try_fold(0, |address, (part, shift)| {
        u8::try_from(*part).ok().map(|part| address | u32::from(part) << shift)
    })?;
    let room = u64::from(*last) >> (32 - 8 * first.len()) == 0;
    room.then(|| Ipv4Addr::from(high | last))
}

fn is_inward_v4(address: Ipv4Addr) -> bool {
    address.octets()[0] == 0
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || METADATA.contains(&address)
}

fn is_inward_v6(address: Ipv6Addr) -> bool {
    let inside = embedded_v4(address).is_some_and(is_inward_v4);
    let own = address.is_loopback() || address.is_unspecified() || address.is_multicast();
    inside || own || address.is_unicast_link_local() || METADATA_V6.contains(&address)
}

/// The IPv4 address inside a mapped (`::ffff:0:0/96`), compatible (`::/96`), translated (`64:ff9b::/96`, `64:ff9b:1::/96`,
/// `::ffff:0:0:0/96`) or 6to4 address (`2002::/16`).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let (high, low) = match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0, 0, 0, 0, 0xffff, 0] => (high, low),
        [0x64, 0xff9b, 0 | 1, 0, 0, 0] => (high, low),
        [0x2002, high, low, ..] => (high, low),
        [0, 0, 0, 0, 0, 0] if high != 0 => (high, low),
        _ => return None,
    };
    let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(w, x, y, z))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_points_inwards() {
        let inward = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "::127.0.0.1",
            "localhost",
            "LocalHost.",
            "a.localhost",
            "metadata.google.internal.",
            " 127.0.0.1 ",
            "\t127.0.0.1",
            "fd20:ce::254",
            "::ffff:0:127.0.0.1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "64:ff9b:1::7f00:1",
            "localhost.localdomain",
            "ip6-loopback.",
            "metadata",
            "Metadata.Azure.Internal",
            "instance-data.ec2.internal",
            "127.1",
            "127.0.1",
            "0177.0.0.1",
            "0x7f.1",
            "2130706433",
            "0x7f000001",
            "0",
        ];
        for target in inward {
            assert!(is_inward(target), "{target}");
        }
        let outward = [
            "192.0.2.1",
            "10.0.0.1",
            "192.168.1.1",
            "100.100.100.201",
            "2001:db8::1",
            "fd00::1",
            "::ffff:192.0.2.1",
            "64:ff9b::c000:201",
            "lb.example.net",
            "localhost.example.net",
            "notlocalhost",
            "2002:c000:201::1",
            "::ffff:0:192.0.2.1",
            "fd20:ce::255",
            "203.0.113",
            "3405803777",
            "256.1",
            "1.2.3.4.5",
            "127.1.example.org",
            "4294967296",
            "",
            ".",
            "metadata.example.org",
        ];
        for target in outward {
            assert!(!is_inward(target), "{target}");
        }
    }
}
