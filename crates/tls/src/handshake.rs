//! A TLS handshake with one address: which certificate is presented for a name.
//!
//! Nothing is judged by the handshake itself: whoever presents a wrong or expired certificate is to be shown with it. Nothing is
//! sent behind the handshake.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::chain::Leaf;

/// What a server presented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    /// The certificate itself.
    pub leaf: Leaf,
    /// How many certificates came with it.
    pub others: usize,
}

/// Shakes hands with an address under a name, and says what was presented; otherwise why nothing was.
pub async fn shake(address: SocketAddr, name: &str, patience: Duration) -> Result<Presented, String> {
    match timeout(patience, try_shake(address, name)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no handshake within {} s", patience.as_secs_f32())),
    }
}

async fn try_shake(address: SocketAddr, name: &str) -> Result<Presented, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let server = ServerName::try_from(name.to_owned()).map_err(|error| text(&error))?;
    let stream = TcpStream::connect(address).await.map_err(|error| text(&error))?;
    let stream = connector()?.connect(server, stream).await.map_err(|error| text(&error))?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let first = chain.first().ok_or("no certificate was presented")?;
    Ok(Presented { leaf: Leaf::read(first)?, others: chain.len() - 1 })
}

fn connector() -> Result<TlsConnector, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?.dangerous();
    let config = builder.with_custom_certificate_verifier(Arc::new(Onlooker(provider))).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Takes any certificate, but checks that the server has its key.
#[derive(Debug)]
struct Onlooker(Arc<CryptoProvider>);

impl ServerCertVerifier for Onlooker {
    fn verify_server_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
