//! Questions and answers over HTTPS: bounded in time and size, no redirects, to one server alone.
//!
//! Every address comes from the server's own answers, so each is held against the directory's: what points to another host is
//! refused, lest somebody be sent signed requests that were not meant for him. A fresh connection each time: one that was
//! kept may be closed just as an order is placed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, USER_AGENT};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::{Error, IssuanceProblem, Result};

/// The most bytes of an answer.
const MAX_BODY: usize = 1 << 20;
/// What is said of a longer one.
const TOO_LONG: &str = "it is longer than 1 MiB";
/// How the program calls itself.
const AGENT: &str = concat!("gatepost/", env!("CARGO_PKG_VERSION"));

/// One server, and how to talk to it.
pub(super) struct AcmeTransport {
    host: String,
    port: u16,
    tls: TlsConnector,
    patience: Duration,
}

/// An answer, read to its end.
pub(super) struct AcmeResponse {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl AcmeTransport {
    /// A way to talk to the server of a directory. `authority` is PEM of whom to trust beside the system's authorities.
    pub(super) fn new(directory: &str, authority: Option<&str>, patience: Duration) -> Result<AcmeTransport> {
        let refuse = |cause: &str| Error::settings(format!("--acme-directory `{directory}`: {cause}"));
        let uri: Uri = directory.parse().map_err(|_| refuse("this is not a URL"))?;
        let (Some("https"), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return Err(refuse("it must begin with https:// and name a host"));
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(AcmeTransport { host, port: uri.port_u16().unwrap_or(443), tls: connector(authority)?, patience })
    }

    /// Asks, and waits for the whole answer.
    pub(super) async fn ask(&self, method: Method, url: &str, body: Option<Vec<u8>>) -> Result<AcmeResponse> {
        let request = self.request(method, url, body)?;
        match timeout(self.patience, self.round_trip(request)).await {
            Ok(Err(cause)) if cause == TOO_LONG => Err(Error::protocol(cause).at(self)),
            Ok(answer) => answer.map_err(|cause| self.unreachable(cause)),
            Err(_) => Err(self.unreachable(format!("no answer within {} s", self.patience.as_secs()))),
        }
    }

    /// Whether an address belongs to this server.
    pub(super) fn is_own(&self, url: &str) -> bool {
        let Ok(uri) = url.parse::<Uri>() else { return false };
        let host = uri.host().map(|host| host.trim_matches(['[', ']']));
        uri.scheme_str() == Some("https")
            && host.is_some_and(|host| host.eq_ignore_ascii_case(&self.host))
            && uri.port_u16().unwrap_or(443) == self.port
    }

    fn request(&self, method: Method, url: &str, body: Option<Vec<u8>>) -> Result<Request<Full<Bytes>>> {
        if !self.is_own(url) {
            return Err(Error::protocol(format!("it points to another host: `{}`", brief(url))).at(self));
        }
        let broken = |error: &dyn fmt::Display| Error::protocol(format!("`{}`: {error}", brief(url))).at(self);
        let uri: Uri = url.parse().map_err(|error| broken(&error))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let authority = uri.authority().map_or(&*self.host, |authority| authority.as_str()).to_owned();
        let mut builder = Request::builder().method(method).uri(path).header(HOST, authority).header(USER_AGENT, AGENT);
        if body.is_some() {
            builder = builder.header(CONTENT_TYPE, "application/jose+json");
        }
        builder.body(Full::new(body.unwrap_or_default().into())).map_err(|error| broken(&error))
    }

    async fn round_trip(&self, request: Request<Full<Bytes>>) -> std::result::Result<AcmeResponse, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(text)?;
        let name = ServerName::try_from(self.host.clone()).map_err(text)?;
        let stream = self.tls.connect(name, stream).await.map_err(of_handshake)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
        let connection = tokio::spawn(connection);
        let answer = async {
            let (head, body) = sender.send_request(request).await.map_err(text)?.into_parts();
            let body = Limited::new(body, MAX_BODY).collect().await.map_err(of_body)?.to_bytes();
            Ok(AcmeResponse { status: head.status.as_u16(), headers: head.headers, body })
        };
        let answer = answer.await;
        connection.abort();
        answer
    }

    fn unreachable(&self, cause: String) -> Error {
        Error::new(IssuanceProblem::Unreachable(cause)).at(self)
    }
}

impl fmt::Display for AcmeTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)
    }
}

impl AcmeResponse {
    /// A header's text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// How long the server asks to be left alone: seconds, or a date.
    pub(super) fn retry_after(&self, now: i64) -> Option<Duration> {
        let text = self.header("retry-after")?.trim();
        let seconds = text.parse::<u64>().ok().or_else(|| {
            let date = httpdate::parse_http_date(text).ok()?;
            let date = date.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
            Some(date.saturating_sub(u64::try_from(now).unwrap_or(0)))
        })?;
        Some(Duration::from_secs(seconds.min(LONGEST_WAIT)))
    }
}

/// Longer waits are not asked for in earnest.
const LONGEST_WAIT: u64 = 7 * 86_400;

/// The beginning of a text that somebody else wrote.
pub(super) fn brief(text: &str) -> String {
    text.chars().take(200).collect()
}

fn of_body(error: Box<dyn std::error::Error + Send + Sync>) -> String {
    if error.is::<LengthLimitError>() { TOO_LONG.to_owned() } else { error.to_string() }
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Why a handshake failed. A server that shows the certificate of an authority as its own is told in plain words.
fn of_handshake(error: impl fmt::Display) -> String {
    let cause = error.to_string();
    match cause.contains("CaUsedAsEndEntity") {
        true => {
            "its own certificate is that of an authority (CA), and a server needs one that an authority has signed; \
                 give the server such a certificate, and the authority's to --acme-ca-file"
                .to_owned()
        }
        false => cause,
    }
}

fn connector(authority: Option<&str>) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(pem) = authority {
        let broken = || Error::settings("--acme-ca-file: there is no certificate in it that can be used");
        let found: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| broken())?;
        if roots.add_parsable_certificates(found).0 == 0 {
            return Err(broken());
        }
    }
    if roots.is_empty() {
        return Err(Error::settings("the system trusts no authority; name one with --acme-ca-file"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::settings(error.to_string()))?;
    Ok(TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_server_is_asked() {
        let root = crate::issuers::acme::tests::root();
        let transport = AcmeTransport::new("https://ca.test:14000/dir", Some(&root), Duration::from_secs(1)).unwrap();
        for (url, own) in [
            ("https://ca.test:14000/order/1", true),
            ("https://CA.test:14000/order/1", true),
            ("https://ca.test/order/1", false),
            ("http://ca.test:14000/order/1", false),
            ("https://evil.test:14000/order/1", false),
            ("https://ca.test:14000@evil.test/", false),
            ("/order/1", false),
            ("", false),
        ] {
            assert_eq!(transport.is_own(url), own, "{url}");
        }
    }

    #[test]
    fn a_directory_must_be_https() {
        for url in ["http://ca.test/dir", "ca.test", "", "https://"] {
            let error = AcmeTransport::new(url, None, Duration::from_secs(1)).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains("--acme-directory")), "{url}");
        }
    }

    #[test]
    fn waits_are_read_and_bounded() {
        let wait = |text: &str| {
            let headers = HeaderMap::from_iter([(hyper::header::RETRY_AFTER, text.parse().unwrap())]);
            let answer = AcmeResponse { status: 429, headers, body: Bytes::new() };
            answer.retry_after(784_111_777 - 60).map(|wait| wait.as_secs())
        };
        assert_eq!(wait("120"), Some(120));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT"), Some(60));
        assert_eq!(wait("99999999999"), Some(LONGEST_WAIT));
        assert_eq!((wait("soon"), wait("-1")), (None, None));
    }
}
