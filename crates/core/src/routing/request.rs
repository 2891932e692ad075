//! A request to a Gateway, as sent by the client and as compared by rules.

use std::borrow::Cow;

use crate::model::Protocol;
use crate::names::{host_of, is_ip};

/// The protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Clear-text HTTP.
    Http,
    /// HTTP in TLS.
    Https,
    /// TLS around anything.
    Tls,
    /// Bytes.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Scheme {
    /// Every scheme.
    pub const ALL: [Scheme; 5] = [Scheme::Http, Scheme::Https, Scheme::Tls, Scheme::Tcp, Scheme::Udp];

    /// The scheme of a URL, in any case. `grpc` and `grpcs` are what they are carried by.
    pub fn parse(text: &str) -> Option<Scheme> {
        match text.to_ascii_lowercase().as_str() {
            "grpc" => Some(Scheme::Http),
            "grpcs" => Some(Scheme::Https),
            text => Scheme::ALL.into_iter().find(|scheme| scheme.as_str() == text),
        }
    }

    /// What the clients of a listener speak; nothing for protocols of somebody else.
    pub fn of(protocol: &Protocol) -> Option<Scheme> {
        match protocol {
            Protocol::Http => Some(Scheme::Http),
            Protocol::Https => Some(Scheme::Https),
            Protocol::Tls => Some(Scheme::Tls),
            Protocol::Tcp => Some(Scheme::Tcp),
            Protocol::Udp => Some(Scheme::Udp),
            Protocol::Other(_) => None,
        }
    }

    /// As in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Tls => "tls",
            Scheme::Tcp => "tcp",
            Scheme::Udp => "udp",
        }
    }

    /// The port that a URL without one means.
    pub fn default_port(self) -> Option<u16> {
        match self {
            Scheme::Http => Some(80),
            Scheme::Https | Scheme::Tls => Some(443),
            Scheme::Tcp | Scheme::Udp => None,
        }
    }
}

/// A request to a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayRequest {
    /// The protocol of the client.
    pub scheme: Scheme,
    /// The `Host` header with its port, if it has one.
    pub host: String,
    /// The server name of the TLS handshake; unset means the host.
    pub sni: Option<String>,
    /// The port of the listener, independent of the port in the host.
    pub port: u16,
    /// The HTTP method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Headers without `Host`, in order.
    pub headers: Vec<(String, String)>,
    /// Whether it is a gRPC call; a `content-type` of gRPC makes it one, too.
    pub grpc: bool,
}

/// A request parsed once for many comparisons.
pub(super) struct ParsedRequest<'a> {
    pub(super) request: &'a GatewayRequest,
    /// As hostnames are compared.
    pub(super) host: String,
    /// As hostnames are compared; empty without one.
    pub(super) sni: String,
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    parameters: Vec<(String, String)>,
    pub(super) grpc: bool,
}

impl<'a> ParsedRequest<'a> {
    pub(super) fn new(request: &'a GatewayRequest) -> Self {
        let (path, query) = match request.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (request.path.as_str(), None),
        };
        let host = host_of(&request.host);
        let sni = request.sni.as_deref().map_or_else(|| host.clone(), host_of);
        ParsedRequest {
            request,
            host,
            sni: if is_ip(&sni) { String::new() } else { sni },
            path: if path.is_empty() { "/" } else { path },
            query,
            parameters: query.map(parameters).unwrap_or_default(),
            grpc: request.grpc || speaks_grpc(request),
        }
    }

    /// The value of a header: repeated ones are joined as RFC 9110 says.
    pub(super) fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        if name.eq_ignore_ascii_case("host") {
            return Some(Cow::Borrowed(&self.request.host));
        }
        let mut values =
            self.request.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim());
        let first = values.next()?;
        let rest: Vec<&str> = values.collect();
        if rest.is_empty() {
            return Some(Cow::Borrowed(first));
        }
        Some(Cow::Owned(format!("{first},{}", rest.join(","))))
    }

    /// The first value of a query parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Service and method of a gRPC call.
    pub(super) fn call(&self) -> Option<(&'a str, &'a str)> {
        let (service, method) = self.path.strip_prefix('/')?.split_once('/')?;
        (!service.is_empty() && !method.is_empty() && !method.contains('/')).then_some((service, method))
    }
}

fn speaks_grpc(request: &GatewayRequest) -> bool {
    let is_grpc = |value: &str| value.trim().to_ascii_lowercase().starts_with("application/grpc");
    request.headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("content-type") && is_grpc(value))
}

fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(n, v)| (decoded(n), decoded(v))).collect()
}

/// Decodes percent-encoding; invalid sequences are kept.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte, encoded(tail)) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encoded(tail: &[u8]) -> Option<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let (high, low) = (digit(*tail.first()?)?, digit(*tail.get(1)?)?);
    u8::try_from(high * 16 + low).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, headers: &[(&str, &str)]) -> GatewayRequest {
        GatewayRequest {
            scheme: Scheme::Http,
            host: "WWW.Example.com:8080".into(),
            sni: None,
            port: 80,
            method: "GET".into(),
            path: path.into(),
            headers: headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
            grpc: false,
        }
    }

    #[test]
    fn the_first_value_of_a_parameter_counts_and_is_decoded() {
        let request = request("/a%20b?x=1%2F2&x=3&=&y&%zz=%4", &[]);
        let asked = ParsedRequest::new(&request);
        assert_eq!(asked.path, "/a%20b");
        assert_eq!(asked.parameter("x"), Some("1/2"));
        assert_eq!(asked.parameter("y"), Some(""));
        assert_eq!(asked.parameter("%zz"), Some("%4"));
        assert_eq!(asked.parameter("X"), None);
    }

    #[test]
    fn headers_are_joined_and_named_in_any_case() {
        let request = request("", &[("X-A", "1"), ("x-b", "2"), ("x-a", " 3 ")]);
        let asked = ParsedRequest::new(&request);
        assert_eq!(asked.header("x-A").as_deref(), Some("1,3"));
        assert_eq!(asked.header("X-B").as_deref(), Some("2"));
        assert_eq!(asked.header("x-c"), None);
        assert_eq!((asked.path, asked.query, asked.host.as_str()), ("/", None, "www.example.com"));
    }

    #[test]
    fn a_content_type_makes_a_call() {
        assert!(ParsedRequest::new(&request("/s/m", &[("Content-Type", "application/grpc+proto")])).grpc);
        let request = request("/s/m", &[("content-type", "application/json")]);
        let asked = ParsedRequest::new(&request);
        assert!(!asked.grpc);
        assert_eq!(asked.call(), Some(("s", "m")));
    }
}
