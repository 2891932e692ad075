//! Targets that point inwards: to the host that resolves them, its link, or the metadata service of a cloud (D29).
//!
//! A client that resolves such a name connects to itself or to a service that trusts it. Private networks are no such
//! targets: names in them are published on purpose. Nothing here decides who may name a target.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::targets::without_dot;

/// Addresses of metadata services outside the link-local networks: Alibaba Cloud, Azure, Oracle Cloud.
const METADATA: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];

/// The address of the metadata service of AWS.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// The name of the metadata service of Google Cloud.
const METADATA_NAME: &str = "metadata.google.internal";

/// Whether a target points to the host or network itself.
pub fn is_inward(target: &str) -> bool {
    let target = target.trim();
    match target.parse() {
        Ok(IpAddr::V4(address)) => is_inward_v4(address),
        Ok(IpAddr::V6(address)) => is_inward_v6(address),
        Err(_) => {
            let name = without_dot(target).to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost") || name == METADATA_NAME
        }
    }
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
    inside || own || address.is_unicast_link_local() || address == METADATA_V6
}

/// The IPv4 address inside a mapped (`::ffff:0:0/96`), compatible (`::/96`) or translated (`64:ff9b::/96`) address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let is_embedded = match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => true,
        [0, 0, 0, 0, 0, 0] => high != 0,
        _ => false,
    };
    let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
    is_embedded.then(|| Ipv4Addr::new(w, x, y, z))
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
        ];
        for target in outward {
            assert!(!is_inward(target), "{target}");
        }
    }
}
