//! A TLS handshake between a server that has a key pair and a client that trusts an authority, without a network between them.

use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, RootCertStore, ServerConfig, ServerConnection, SideData,
};

/// What a server presents, in PEM.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// The certificate, and those behind it.
    pub chain: &'a str,
    /// Its key.
    pub key: &'a str,
}

/// Whether a client that trusts `root`, in PEM, takes what a server with the pair presents for a name. Whatever else is wrong with
/// it is an error.
pub fn is_taken(pair: Pair<'_>, root: &str, name: &str) -> io::Result<bool> {
    let (mut client, mut server) = (client(root, name)?, server(pair)?);
    while client.is_handshaking() || server.is_handshaking() {
        pass(&mut client, &mut server)?.map_err(io::Error::other)?;
        match pass(&mut server, &mut client)? {
            Ok(()) => {}
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => return Ok(false),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    Ok(true)
}

/// Hands over what one side has to say; gives what the other makes of it.
fn pass<A: SideData, B: SideData>(
    from: &mut rustls::ConnectionCommon<A>,
    to: &mut rustls::ConnectionCommon<B>,
) -> io::Result<Result<(), Error>> {
    let mut said = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut said)?;
    }
    let mut rest = &said[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest)?;
        if let Err(error) = to.process_new_packets() {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

fn client(root: &str, name: &str) -> io::Result<ClientConnection> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(root.as_bytes()).map_err(io::Error::other)?).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)
}

fn server(pair: Pair<'_>) -> io::Result<ServerConnection> {
    let chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes()).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?.with_no_client_auth();
    let config = config.with_single_cert(chain.map_err(io::Error::other)?, key).map_err(io::Error::other)?;
    ServerConnection::new(Arc::new(config)).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    use super::*;

    #[test]
    fn a_client_takes_its_name_and_no_other_and_trusts_nobody_else() {
        let authority = || {
            let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
            parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            (parameters.self_signed(&key).unwrap().pem(), key)
        };
        let (root, key) = authority();
        let issuer = Issuer::from_ca_cert_pem(&root, key).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["*.a.test".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let (chain, key) = (leaf.pem(), key.serialize_pem());
        let pair = Pair { chain: &chain, key: &key };
        assert!(is_taken(pair, &root, "x.a.test").unwrap());
        assert!(!is_taken(pair, &root, "x.y.a.test").unwrap(), "a wildcard stands for one label");
        assert!(is_taken(pair, &authority().0, "x.a.test").is_err(), "an authority of the same name with another key");
    }
}
