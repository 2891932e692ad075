//! Who may look: the Host and Origin of a request, and whether the page is served at the listening address at all.

use std::net::{IpAddr, SocketAddr};

use clap::ValueEnum;
use hyper::HeaderMap;

/// Where the page and `/api/v1` are served. They show the names of all namespaces.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageMode {
    /// Where only this machine gets: at a loopback --http-addr
    #[default]
    Loopback,
    /// At any --http-addr: whoever reaches it sees all names
    Any,
    /// Nowhere
    None,
}

/// Whether the page and `/api/v1` are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageAccess {
    mode: PageMode,
    address: IpAddr,
}

impl PageAccess {
    /// The access at a listening address.
    pub fn new(mode: PageMode, address: SocketAddr) -> Self {
        PageAccess { mode, address: address.ip() }
    }

    /// Whether the page is served.
    pub fn is_open(&self) -> bool {
        self.refusal().is_none()
    }

    /// Why the page is not served, if it is not.
    pub fn refusal(&self) -> Option<String> {
        match self.mode {
            PageMode::Any => None,
            PageMode::Loopback if self.address.is_loopback() => None,
            PageMode::Loopback => Some(format!(
                "the page and /api/v1 show the names of all namespaces, and --http-addr {} is not a loopback address: \
                 give --page any to serve them to whoever reaches it, or listen on 127.0.0.1",
                self.address
            )),
            PageMode::None => Some("the page and /api/v1 are switched off (--page none)".to_owned()),
        }
    }
}

/// Whether a Host header names an address or this machine; another name was made to lead here (DNS rebinding).
pub(super) fn is_local(host: Option<&str>) -> bool {
    let Some(host) = host else { return true };
    let name = host.parse::<SocketAddr>().map_or_else(|_| gatepost_core::names::host_of(host), |a| a.ip().to_string());
    name == "localhost" || gatepost_core::names::is_ip(&name)
}

/// Whether a request comes from a page of our own, or from no page: a foreign Origin is refused.
pub(super) fn is_own_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let Some(origin) = text("origin") else { return true };
    let origin = origin.split_once("://").map(|(_, host)| host);
    origin.is_some() && origin == text("host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_served() {
        for host in ["127.0.0.1:8053", "localhost", "localhost:8053", "[::1]:8053", "192.0.2.1"] {
            assert!(is_local(Some(host)), "{host}");
        }
        assert!(!is_local(Some("evil.example")) && !is_local(Some("localhost.evil.example:8053")));
    }

    #[test]
    fn an_origin_is_that_of_the_host() {
        let headers = |origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert("host", hyper::header::HeaderValue::from_static("localhost:8053"));
            headers.extend(origin.map(|o| (hyper::header::ORIGIN, hyper::header::HeaderValue::from_static(o))));
            headers
        };
        assert!(is_own_origin(&headers(None)) && is_own_origin(&headers(Some("http://localhost:8053"))));
        for foreign in ["null", "http://evil.example", "http://localhost:8054", "http://localhost:8053.evil.example"] {
            assert!(!is_own_origin(&headers(Some(foreign))), "{foreign}");
        }
    }

    #[test]
    fn names_of_all_namespaces_are_not_shown_to_a_network_unless_asked_for() {
        let at = |mode, address: &str| PageAccess::new(mode, address.parse().unwrap()).is_open();
        assert!(at(PageMode::Loopback, "127.0.0.1:1") && at(PageMode::Loopback, "[::1]:1"));
        assert!(!at(PageMode::Loopback, "0.0.0.0:1") && !at(PageMode::Loopback, "10.0.0.7:1"));
        assert!(at(PageMode::Any, "0.0.0.0:1") && !at(PageMode::None, "127.0.0.1:1"));
    }
}
