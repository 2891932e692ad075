//! One probe: a connection to one address of a name, and for HTTP one request over it.
//!
//! A probe has one time limit for everything, reads a bounded part of the answer, follows no redirect and leaves no
//! connection behind. It counts nothing and decides nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use gatepost_core::publication::inward::is_inward;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// What is spoken to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeProtocol {
    /// A connection is enough.
    Tcp,
    /// A request without TLS.
    Http,
    /// A request with TLS.
    Https,
}

/// How the addresses of a policy are probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSettings {
    /// What is spoken.
    pub protocol: ProbeProtocol,
    /// The port.
    pub port: u16,
    /// The path that is asked for.
    pub path: String,
    /// The limit for the whole probe.
    pub timeout: Duration,
    /// The statuses that count as success; empty means 200 to 399.
    pub statuses: Vec<(u16, u16)>,
    /// Whether any certificate is taken.
    pub skips_verification: bool,
    /// Further headers of the request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Why a probe did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeFailure {
    /// It was made and failed.
    Failed(String),
    /// It was not made, and says nothing about the address.
    NotMade(String),
}

/// What all probes share.
#[derive(Clone, Debug)]
pub struct ProbeClient {
    tls: Arc<TlsConfigs>,
    /// Whether loopback, link-local and metadata addresses are probed.
    allows_inward: bool,
}

/// The TLS settings of probes; made when they are first needed, because they hold all authorities of the system.
#[derive(Debug, Default)]
struct TlsConfigs {
    verifying: OnceLock<Result<Arc<ClientConfig>, String>>,
    trusting: OnceLock<Result<Arc<ClientConfig>, String>>,
}

/// More of an answer is not read.
const MOST_BODY: usize = 64 << 10;
/// Longer headers of an answer are an error.
const MOST_HEADERS: usize = 32 << 10;
/// More addresses behind a hostname are not probed.
const MOST_ADDRESSES: usize = 8;

impl ProbeClient {
    /// A client; without the permission it connects to no address that points to this host or its network.
    pub fn new(allows_inward: bool) -> ProbeClient {
        ProbeClient { tls: Arc::default(), allows_inward }
    }

    /// Probes an address of a name, or all addresses behind a hostname: one that answers is enough.
    pub async fn probe(&self, name: &str, target: &str, settings: &ProbeSettings) -> Result<(), ProbeFailure> {
        match timeout(settings.timeout, self.probe_all(name, target, settings)).await {
            Ok(result) => result,
            Err(_) => {
                Err(ProbeFailure::Failed(format!("no complete answer within {} s", settings.timeout.as_secs_f32())))
            }
        }
    }

    async fn probe_all(&self, name: &str, target: &str, settings: &ProbeSettings) -> Result<(), ProbeFailure> {
        let addresses = self.addresses(target, settings.port).await?;
        let probes = addresses.into_iter().map(|address| self.converse(name, address, settings));
        let mut probes: FuturesUnordered<_> = probes.collect();
        let mut failure = String::new();
        while let Some(result) = probes.next().await {
            match result {
                Ok(()) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        Err(ProbeFailure::Failed(failure))
    }

    /// The addresses that are probed for a target.
    async fn addresses(&self, target: &str, port: u16) -> Result<Vec<SocketAddr>, ProbeFailure> {
        let found: Vec<SocketAddr> = match target.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => match tokio::net::lookup_host((target, port)).await {
                Ok(found) => found.take(MOST_ADDRESSES).collect(),
                Err(error) => return Err(ProbeFailure::Failed(format!("{target} is not resolved: {error}"))),
            },
        };
        if found.is_empty() {
            return Err(ProbeFailure::Failed(format!("{target} has no address")));
        }
        let is_refused = |address: &SocketAddr| !self.allows_inward && is_inward(&address.ip().to_string());
        let left: Vec<SocketAddr> = found.into_iter().filter(|address| !is_refused(address)).collect();
        match left.is_empty() {
            true => Err(ProbeFailure::NotMade(format!(
                "{target} points to the host or network itself, which is probed only with --allow-inward-targets"
            ))),
            false => Ok(left),
        }
    }

    async fn converse(&self, name: &str, address: SocketAddr, settings: &ProbeSettings) -> Result<(), String> {
        let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {}", plain(&error)))?;
        let result = match settings.protocol {
            ProbeProtocol::Tcp => Ok(()),
            ProbeProtocol::Http => ask(stream, name, settings).await,
            ProbeProtocol::Https => match self.handshake(stream, name, settings.skips_verification).await {
                Ok(stream) => ask(stream, name, settings).await,
                Err(error) => Err(error),
            },
        };
        result.map_err(|error| format!("{address}: {error}"))
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        name: &str,
        skips_verification: bool,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
        let config = match skips_verification {
            true => self.tls.trusting.get_or_init(trusting).clone()?,
            false => self.tls.verifying.get_or_init(verifying).clone()?,
        };
        let server = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
        let shaken = TlsConnector::from(config).connect(server, stream).await;
        shaken.map_err(|error| format!("TLS: {}", plain(&error)))
    }
}

/// Sends one request and reads the answer to its end, or as much of it as is ever read.
async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    name: &str,
    settings: &ProbeSettings,
) -> Result<(), String> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MOST_HEADERS);
    let shaken = builder.handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| whole(&error))?;
    let request = request(name, settings)?;
    let talk = async {
        let answer = sender.send_request(request).await.map_err(|error| whole(&error))?;
        judge(answer.status(), &settings.statuses)?;
        read(answer.into_body()).await
    };
    let mut connection = std::pin::pin!(connection);
    let mut talk = std::pin::pin!(talk);
    tokio::select! {
        result = &mut talk => result,
        // A connection that ends first has nothing more to say; the answer may be complete all the same.
        _ = &mut connection => talk.await,
    }
}

fn request(name: &str, settings: &ProbeSettings) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = Request::get(&*settings.path)
        .header("host", name)
        .header("user-agent", concat!("gatepost/", env!("CARGO_PKG_VERSION")))
        .header("accept", "*/*")
        .header("connection", "close")
        .body(Empty::new())
        .map_err(|error| format!("the request cannot be written: {error}"))?;
    for (header, value) in &settings.headers {
        request.headers_mut().insert(header, value.clone());
    }
    Ok(request)
}

fn judge(status: StatusCode, expected: &[(u16, u16)]) -> Result<(), String> {
    let expected = if expected.is_empty() { &[(200, 399)] } else { expected };
    let status = status.as_u16();
    if expected.iter().any(|(first, last)| (*first..=*last).contains(&status)) {
        return Ok(());
    }
    let ranges = expected.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    Err(format!("status {status}, expected {}", ranges.collect::<Vec<_>>().join(" or ")))
}

/// Reads an answer. One that ends before it is complete is a failure; what is beyond the bound is not read.
async fn read(mut body: hyper::body::Incoming) -> Result<(), String> {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("the answer is incomplete: {}", whole(&error)))?;
        length += frame.data_ref().map_or(0, Bytes::len);
        if length > MOST_BODY {
            break;
        }
    }
    Ok(())
}

/// An error of the system without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// An error with its cause.
fn whole(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())
}

/// Settings of one connection per probe: nothing is resumed, so that each probe sees the certificate.
fn single(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

fn verifying() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Ok(single(builder()?.with_root_certificates(roots).with_no_client_auth()))
}

fn trusting() -> Result<Arc<ClientConfig>, String> {
    let verifier = Arc::new(AnyCertificate(Arc::new(ring::default_provider())));
    let builder = builder()?.dangerous().with_custom_certificate_verifier(verifier);
    Ok(single(builder.with_no_client_auth()))
}

/// Takes any certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _stapled: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
