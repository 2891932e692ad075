//! Who may look: the Host and Origin of a request, and whether the page is served at the listening address at all.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use clap::ValueEnum;
use hyper::HeaderMap;

use crate::api::{ApiReader, ReviewRefusal, Reviews};

/// Where the page and `/api/v1` are served, and to whom. They show the names of all namespaces to whom may see these.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageMode {
    /// Where only this machine gets: at a loopback --http-addr
    #[default]
    Loopback,
    /// At any --http-addr, to people with a token of the cluster: each sees the namespaces in which they may get HTTPRoutes
    Cluster,
    /// At any --http-addr: whoever reaches it sees all names
    Any,
    /// Nowhere
    None,
}

/// Whether the page and `/api/v1` are served, by which names, and to whom.
#[derive(Clone, Debug)]
pub struct PageAccess {
    mode: PageMode,
    address: IpAddr,
    /// Names beside addresses and `localhost`.
    hosts: Arc<[String]>,
    /// The path that a proxy puts in front of every other; empty without one.
    base: Arc<str>,
    reviews: Option<Arc<Reviews>>,
}

impl PageAccess {
    /// The access at a listening address.
    pub fn new(mode: PageMode, address: SocketAddr) -> Self {
        PageAccess { mode, address: address.ip(), hosts: Arc::default(), base: Arc::from(""), reviews: None }
    }

    /// The same by further names and below a path.
    pub fn at(self, hosts: &[String], base: Option<&str>) -> Self {
        PageAccess { hosts: hosts.into(), base: base.unwrap_or_default().into(), ..self }
    }

    /// The same with somebody who says who may see what.
    pub fn reviewed(self, reviews: Reviews) -> Self {
        PageAccess { reviews: Some(Arc::new(reviews)), ..self }
    }

    /// Whether the page is served.
    pub fn is_open(&self) -> bool {
        self.refusal().is_none()
    }

    /// Why the page is not served, if it is not.
    pub fn refusal(&self) -> Option<String> {
        match self.mode {
            PageMode::Any | PageMode::Cluster => None,
            PageMode::Loopback if self.address.is_loopback() => None,
            PageMode::Loopback => Some(format!(
                "the page and /api/v1 show the names of all namespaces, and --http-addr {} is not a loopback address: \
                 give --page cluster to serve them to people with a token of the cluster, --page any to serve them to \
                 whoever reaches it, or listen on 127.0.0.1",
                self.address
            )),
            PageMode::None => Some("the page and /api/v1 are switched off (--page none)".to_owned()),
        }
    }

    /// Who asks, by the token of the request where one is needed.
    pub(super) async fn reader(&self, headers: &HeaderMap) -> Result<ApiReader, ReviewRefusal> {
        match (self.mode, &self.reviews) {
            (PageMode::Cluster, Some(reviews)) => {
                let user = reviews.user(bearer(headers)).await?;
                Ok(ApiReader::Reviewed(reviews.clone(), user))
            }
            (PageMode::Cluster, None) => Err(ReviewRefusal::NotYet("no cluster can be asked".to_owned())),
            _ => Ok(ApiReader::Trusted),
        }
    }

    /// Whether every answer with names in it needs a token.
    pub(super) fn is_reviewed(&self) -> bool {
        self.mode == PageMode::Cluster
    }

    /// Whether a Host header names an address, this machine or a name of ours; another name was made to lead here (DNS
    /// rebinding).
    pub(super) fn is_own_host(&self, host: Option<&str>) -> bool {
        is_local(host) || host.is_some_and(|host| self.hosts.contains(&gatepost_core::names::host_of(host)))
    }

    /// The path as it is without the one that a proxy puts in front; nothing where the slash behind that is missing.
    pub(super) fn path<'p>(&self, path: &'p str) -> Option<&'p str> {
        match path.strip_prefix(&*self.base).filter(|_| !self.base.is_empty()) {
            Some("") => None,
            Some(below) if below.starts_with('/') => Some(below),
            _ => Some(path),
        }
    }

    /// The path of the page.
    pub(super) fn home(&self) -> String {
        format!("{}/", self.base)
    }
}

/// The token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get("authorization")?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether a Host header names an address or this machine; another name was made to lead here (DNS rebinding).
fn is_local(host: Option<&str>) -> bool {
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

    #[test]
    fn a_proxy_has_a_name_and_a_path() {
        let address = "10.0.0.7:1".parse().unwrap();
        let access =
            PageAccess::new(PageMode::Cluster, address).at(&["page.example.org".to_owned()], Some("/gatepost"));
        assert!(access.is_own_host(Some("page.example.org")) && access.is_own_host(Some("Page.example.org:443")));
        assert!(!access.is_own_host(Some("example.org")) && !access.is_own_host(Some("x.page.example.org")));
        for (path, own) in [
            ("/gatepost", None),
            ("/gatepost/", Some("/")),
            ("/gatepost/api/v1/names", Some("/api/v1/names")),
            ("/gatepostal", Some("/gatepostal")),
            ("/healthz", Some("/healthz")),
        ] {
            assert_eq!(access.path(path), own, "{path}");
        }
        assert_eq!(PageAccess::new(PageMode::Any, address).path("/"), Some("/"));
    }

    #[tokio::test]
    async fn nobody_is_trusted_where_a_token_is_needed() {
        let access = PageAccess::new(PageMode::Cluster, "10.0.0.7:1".parse().unwrap());
        assert!(access.is_open() && access.reader(&HeaderMap::new()).await.is_err());
    }
}
