//! TLS to a server (RFC 7858, RFC 9103): the authorities that are trusted, and the handshake.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::provider::{ProviderError, Result};

/// The authorities that are trusted for the certificate of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authority {
    /// Whom the system trusts.
    #[default]
    System,
    /// The certificates in a PEM file.
    File(PathBuf),
}

/// Makes TLS connections.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Reads the certificates of authorities.
    pub(super) fn new(authority: &Authority) -> Result<Tls> {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(certificates(authority)?);
        if added == 0 {
            return Err(ProviderError::settings("--rfc2136-use-tls: no certificate of an authority was found"));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| ProviderError::settings(format!("--rfc2136-use-tls: {error}")))?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"dot".to_vec()];
        Ok(Tls(TlsConnector::from(Arc::new(config))))
    }

    /// Shakes hands with the server at this host and port.
    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(std::io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

fn certificates(authority: &Authority) -> Result<Vec<CertificateDer<'static>>> {
    match authority {
        Authority::System => Ok(rustls_native_certs::load_native_certs().certs),
        Authority::File(path) => {
            let broken = |error| ProviderError::settings(format!("{}: {error}", path.display()));
            let found = CertificateDer::pem_file_iter(path).map_err(broken)?;
            found.collect::<std::result::Result<_, _>>().map_err(broken)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused() {
        let missing = Tls::new(&Authority::File("/nowhere/ca.pem".into())).err().unwrap().to_string();
        assert!(missing.contains("/nowhere/ca.pem"), "{missing}");
        let empty = Tls::new(&Authority::File("/dev/null".into())).err().unwrap().to_string();
        assert!(empty.contains("--rfc2136-use-tls"), "{empty}");
    }
}
