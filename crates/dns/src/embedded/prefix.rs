//! Address prefixes, as in `192.0.2.0/24`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// A text that is no prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address prefix such as 192.0.2.0/24")]
pub struct PrefixError(pub String);

impl Prefix {
    /// Whether an address lies in the range. An IPv4 address that came over IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.length) == masked(self.address, self.length)
    }
}

impl From<IpAddr> for Prefix {
    fn from(address: IpAddr) -> Prefix {
        let address = address.to_canonical();
        Prefix { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let refuse = || PrefixError(text.to_owned());
        let Some((address, length)) = text.split_once('/') else {
            return text.parse::<IpAddr>().map(Prefix::from).map_err(|_| refuse());
        };
        let address: IpAddr = address.parse().map_err(|_| refuse())?;
        let length: u8 = length.parse().map_err(|_| refuse())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        if length > longest { Err(refuse()) } else { Ok(Prefix { address, length }) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The first bits of an address, the rest zero.
pub(crate) fn masked(address: IpAddr, length: u8) -> u128 {
    let (bits, width) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let dropped = u32::from(width - length.min(width));
    bits.checked_shr(dropped).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let inside = |prefix: &str, address: &str| prefix.parse::<Prefix>().unwrap().contains(address.parse().unwrap());
        assert!(inside("192.0.2.0/24", "192.0.2.77"));
        assert!(!inside("192.0.2.0/24", "192.0.3.77"));
        assert!(inside("192.0.2.7", "::ffff:192.0.2.7"));
        assert!(inside("0.0.0.0/0", "1.2.3.4") && !inside("0.0.0.0/0", "::1"));
        assert!(inside("2001:db8::/32", "2001:db8:1::1") && inside("::/0", "::1"));
        for text in ["", "x", "1.2.3.4/33", "::/129", "1.2.3.4/"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
