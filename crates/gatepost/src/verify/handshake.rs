//! TLS handshakes: which certificate an address shows for a name, and whether it is good for it.
//!
//! A handshake takes any certificate, because it is there to be looked at; nothing is sent over the connection, and who
//! shows a certificate must have its key. Time is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatepost_core::attachment::{ListenerKey, Topology};
use gatepost_core::model::{Protocol, Str};
use gatepost_core::publication::RecordType;
use gatepost_tls::chain::Leaf;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::answers::Limits;
use super::{Check, canonical};

/// What one address shows for a name.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// Where.
    pub address: SocketAddr,
    /// The certificate, or why there is none.
    pub leaf: Result<Leaf, String>,
    /// What is wrong with the certificate for this name; nothing where it is good.
    pub problem: Option<String>,
}

/// Who vouches for certificates; nobody has to where there is none.
#[derive(Clone, Debug, Default)]
pub struct Trust(Option<Arc<WebPkiServerVerifier>>);

impl Trust {
    /// The certificates of a PEM file.
    pub fn file(path: &Path) -> Result<Trust, String> {
        let broken = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let found = CertificateDer::pem_file_iter(path).map_err(|error| broken(&error))?;
        let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| broken(&error))?;
        let mut roots = RootCertStore::empty();
        if roots.add_parsable_certificates(found).0 == 0 {
            return Err(broken(&"there is no certificate of an authority in it"));
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()));
        verifier.build().map(|verifier| Trust(Some(verifier))).map_err(|error| broken(&error))
    }
}

impl Handshake {
    /// Whether the certificate is good for the name.
    pub fn is_right(&self) -> bool {
        self.leaf.is_ok() && self.problem.is_none()
    }
}

/// Shakes hands for every name that a TLS listener serves, at all addresses of the name.
pub async fn shake_all(checks: &mut [Check], topology: &Topology, trust: &Trust, limits: Limits) {
    let ports = tls_ports(topology);
    let places = Arc::new(Semaphore::new(limits.at_once));
    let mut open: JoinSet<(usize, Handshake)> = JoinSet::new();
    for (i, check) in checks.iter().enumerate() {
        for address in addresses(check, &ports).await {
            let (name, trust, places) = (check.asked.clone(), trust.clone(), places.clone());
            open.spawn(async move {
                let _place = places.acquire().await;
                (i, shake(address, &name, &trust, limits.patience).await)
            });
        }
    }
    for (i, handshake) in open.join_all().await {
        checks[i].tls.push(handshake);
    }
    checks.iter_mut().for_each(|check| check.tls.sort_by_key(|handshake| handshake.address));
}

/// The ports of listeners that speak TLS.
fn tls_ports(topology: &Topology) -> BTreeMap<ListenerKey, u16> {
    let is_tls = |protocol: &Protocol| matches!(protocol, Protocol::Https | Protocol::Tls);
    let listeners = topology.listener_ids().filter(|(_, listener)| is_tls(&listener.spec().protocol));
    listeners.map(|(_, listener)| (listener.key(), listener.spec().port)).collect()
}

/// Every address of a name with every port at which it is served over TLS: a client may come to any of them.
async fn addresses(check: &Check, ports: &BTreeMap<ListenerKey, u16>) -> BTreeSet<SocketAddr> {
    let ports: BTreeSet<u16> = check.listeners.iter().filter_map(|listener| ports.get(listener).copied()).collect();
    let mut found = BTreeSet::new();
    for one in &check.types {
        for value in canonical(one.kind, &one.wanted) {
            for port in &ports {
                match value.parse::<IpAddr>() {
                    Ok(ip) => _ = found.insert(SocketAddr::new(ip, *port)),
                    Err(_) if one.kind == RecordType::Cname => {
                        let resolved = tokio::net::lookup_host((value.as_str(), *port)).await;
                        found.extend(resolved.into_iter().flatten());
                    }
                    Err(_) => {}
                }
            }
        }
    }
    found
}

async fn shake(address: SocketAddr, name: &Str, trust: &Trust, patience: Duration) -> Handshake {
    let late = |_| io::Error::other(format!("no handshake within {} s", patience.as_secs_f32()));
    let seen = timeout(patience, connect(address, name, trust)).await.map_err(late).and_then(|seen| seen);
    match seen {
        Ok((leaf, distrust)) => {
            let problem = flaw(&leaf, name, now()).or(distrust);
            Handshake { address, leaf: Ok(leaf), problem }
        }
        Err(error) => Handshake { address, leaf: Err(error.to_string()), problem: None },
    }
}

/// What is wrong with a certificate for a name at a time.
fn flaw(leaf: &Leaf, name: &str, now: i64) -> Option<String> {
    if !leaf.covers(name) {
        let names = if leaf.names.is_empty() { "no name".to_owned() } else { leaf.names.join(", ") };
        return Some(format!("it is for {names}, and not for {name}"));
    }
    if leaf.not_after <= now {
        return Some("it has expired".to_owned());
    }
    (leaf.not_before > now).then(|| "it is not valid yet; is the clock of this machine right?".to_owned())
}

/// The certificate that is shown, and why it is not trusted where that was asked.
async fn connect(address: SocketAddr, name: &Str, trust: &Trust) -> io::Result<(Leaf, Option<String>)> {
    let provider = Arc::new(ring::default_provider());
    let witness = Arc::new(Witness { provider: provider.clone(), trust: trust.clone(), seen: Mutex::default() });
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(io::Error::other)?.dangerous();
    let config = builder.with_custom_certificate_verifier(witness.clone()).with_no_client_auth();
    let server = ServerName::try_from(name.to_string()).map_err(io::Error::other)?;
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(server, stream).await?;
    let seen = witness.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (der, distrust) = seen.ok_or_else(|| io::Error::other("no certificate was shown"))?;
    Ok((Leaf::read(&der).map_err(io::Error::other)?, distrust))
}

/// Takes any certificate, and remembers the leaf and why it would not be trusted.
#[derive(Debug)]
struct Witness {
    provider: Arc<CryptoProvider>,
    trust: Trust,
    seen: Mutex<Option<(Vec<u8>, Option<String>)>>,
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verdict = self.trust.0.as_ref().map(|trust| trust.verify_server_cert(leaf, others, name, stapled, now));
        let distrust = verdict.and_then(Result::err).map(|error| format!("it is not trusted: {error}"));
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some((leaf.to_vec(), distrust));
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|time| i64::try_from(time.as_secs()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_judged_by_name_and_time() {
        let leaf = Leaf { names: vec!["*.example.org".into()], not_before: 100, not_after: 200, ..Leaf::default() };
        let rows = [
            ("www.example.org", 150, None),
            ("a.b.example.org", 150, Some("not for a.b.example.org")),
            ("www.example.org", 200, Some("expired")),
            ("www.example.org", 99, Some("not valid yet")),
        ];
        for (name, now, problem) in rows {
            let found = flaw(&leaf, name, now);
            assert_eq!(found.is_some(), problem.is_some(), "{name} {now}: {found:?}");
            assert!(problem.is_none_or(|part| found.is_some_and(|found| found.contains(part))), "{name} {now}");
        }
    }
}
