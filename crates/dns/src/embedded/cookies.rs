//! DNS cookies (RFC 7873) in the form that servers of different makers share (RFC 9018).
//!
//! A client that shows our cookie has proved that it receives at its address. No state is kept.

use std::hash::Hasher;
use std::net::IpAddr;

use super::wire::Cookie;

/// How old a cookie may be, in seconds.
const OLDEST: u32 = 3600;

/// How far in the future a cookie may lie: clocks of servers that share a secret differ.
const NEWEST: u32 = 300;

/// Makes and checks the server's part of cookies.
#[derive(Clone)]
pub(crate) struct Cookies {
    keys: (u64, u64),
}

impl Cookies {
    /// Cookies under a secret, which several servers of one address may share.
    pub(crate) fn new(secret: [u8; 16]) -> Cookies {
        let secret = u128::from_le_bytes(secret);
        Cookies { keys: (secret as u64, (secret >> 64) as u64) }
    }

    /// The server cookie for a client at an address at a time.
    pub(crate) fn make(&self, client: [u8; 8], address: IpAddr, now: u32) -> [u8; 16] {
        let mut cookie = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        cookie[4..8].copy_from_slice(&now.to_be_bytes());
        let hash = self.hash(client, &cookie[..8], address);
        cookie[8..].copy_from_slice(&hash);
        cookie
    }

    /// Whether the client shows a cookie that we made for its address not long ago.
    pub(crate) fn proves(&self, cookie: &Cookie, address: IpAddr, now: u32) -> bool {
        let Some(server) = cookie.server else { return false };
        let [_, _, _, _, t0, t1, t2, t3, ..] = server;
        let age = now.wrapping_sub(u32::from_be_bytes([t0, t1, t2, t3]));
        let fresh = age <= OLDEST || age.wrapping_neg() <= NEWEST;
        fresh && server[..4] == [1, 0, 0, 0] && self.hash(cookie.client, &server[..8], address) == server[8..]
    }

    /// SipHash-2-4, which the standard library has under a name that it no longer advertises.
    #[allow(deprecated)]
    fn hash(&self, client: [u8; 8], head: &[u8], address: IpAddr) -> [u8; 8] {
        let mut hasher = std::hash::SipHasher::new_with_keys(self.keys.0, self.keys.1);
        hasher.write(&client);
        hasher.write(head);
        match address {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
        }
        hasher.finish().to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
    }

    /// RFC 9018, appendix A.1.
    #[test]
    fn the_cookie_of_the_standard() {
        let cookies = Cookies::new(bytes("e5e973e5a6b2a43f48e7dc849e37bfcf"));
        let client = bytes("2464c4abcf10c957");
        let address = "198.51.100.100".parse().unwrap();
        let made = cookies.make(client, address, 1_559_731_985);
        assert_eq!(made, bytes("010000005cf79f111f8130c3eee29480"));
        let shown = Cookie { client, server: Some(made) };
        assert!(cookies.proves(&shown, address, 1_559_731_985 + 3600));
        assert!(cookies.proves(&shown, address, 1_559_731_985 - 300));
        assert!(!cookies.proves(&shown, address, 1_559_731_985 + 3601));
        assert!(!cookies.proves(&shown, address, 1_559_731_985 - 301));
        assert!(!cookies.proves(&shown, "198.51.100.101".parse().unwrap(), 1_559_731_985));
        assert!(!cookies.proves(&Cookie { client, server: None }, address, 1_559_731_985));
    }

    /// RFC 9018, appendix A.4.
    #[test]
    fn the_cookie_of_the_standard_over_ipv6() {
        let cookies = Cookies::new(bytes("445536bcd2513298075a5d379663c962"));
        let made = cookies.make(
            bytes("22681ab97d52c298"),
            "2001:db8:220:1:59de:d0f4:8769:82b8".parse().unwrap(),
            1_559_741_961,
        );
        assert_eq!(made, bytes("010000005cf7c609a6bb79d16625507a"));
    }
}
