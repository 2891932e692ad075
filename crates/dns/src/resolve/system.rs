//! The resolvers that the system uses.

use std::net::{IpAddr, SocketAddr};

/// Where the system names its resolvers.
pub const SYSTEM_FILE: &str = "/etc/resolv.conf";

/// The resolvers that a file of this format names, at most three as the system takes them.
pub fn nameservers(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split(['#', ';']).next()?.split_whitespace();
        (words.next()? == "nameserver").then(|| words.next())?
    });
    let addresses = lines.filter_map(|word| word.parse::<IpAddr>().ok());
    addresses.take(3).map(|ip| SocketAddr::new(ip, 53)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nameservers_count() {
        let text = "# nameserver 192.0.2.9\nsearch example.com\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 # x\n\
                    nameserver fe80::1%eth0\nnameserver x\noptions ndots:5\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n";
        let found: Vec<String> = nameservers(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.2:53"]);
        assert!(nameservers("").is_empty());
    }
}
