//! Probes of real servers that answer well and badly.

use std::net::{Ipv4Addr, TcpListener};

use gatepost_testkit::servers::backend::{Backend, BackendAnswer, BlackHole};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};

use super::*;

const NAME: &str = "www.example.org";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn settings(protocol: ProbeProtocol, port: u16) -> ProbeSettings {
    ProbeSettings {
        protocol,
        port,
        path: "/healthz?full".to_owned(),
        timeout: Duration::from_secs(30),
        statuses: Vec::new(),
        skips_verification: false,
        headers: vec![(HeaderName::from_static("x-probe"), HeaderValue::from_static("yes"))],
    }
}

/// The error of a probe; empty if it succeeds.
async fn failure(client: &ProbeClient, settings: &ProbeSettings) -> String {
    match client.probe(NAME, "127.0.0.1", settings).await {
        Ok(()) => String::new(),
        Err(ProbeFailure::Failed(error)) => error,
        Err(ProbeFailure::NotMade(why)) => format!("not made: {why}"),
    }
}

#[tokio::test]
async fn an_answer_is_judged_by_its_status_and_read_to_its_end() {
    let client = ProbeClient::new(true);
    let backend = Backend::start(HERE, 0, BackendAnswer::Status(200)).unwrap();
    let usual = settings(ProbeProtocol::Http, backend.address.port());
    let rows = [
        (BackendAnswer::Status(200), ""),
        (BackendAnswer::Status(204), ""),
        (BackendAnswer::Redirect("http://192.0.2.1/".into()), ""),
        (BackendAnswer::Endless, ""),
        (BackendAnswer::Status(404), "status 404, expected 200-399"),
        (BackendAnswer::Status(500), "status 500, expected 200-399"),
        (BackendAnswer::HalfBody, "the answer is incomplete"),
        (BackendAnswer::HalfHeaders, "connection closed before message completed"),
        (BackendAnswer::EndlessHeaders, "message head is too large"),
        (BackendAnswer::Garbage, "invalid HTTP version"),
        (BackendAnswer::Closed, "connection closed before message completed"),
    ];
    for (answer, expected) in rows {
        backend.answer(answer.clone());
        let found = failure(&client, &usual).await;
        let is_right = if expected.is_empty() { found.is_empty() } else { found.contains(expected) };
        assert!(is_right, "{answer:?}: {found:?}");
    }
    let only = ProbeSettings { statuses: vec![(404, 404), (500, 503)], ..usual.clone() };
    backend.answer(BackendAnswer::Status(503));
    assert_eq!(failure(&client, &only).await, "");
    backend.answer(BackendAnswer::Status(200));
    assert!(failure(&client, &only).await.ends_with("status 200, expected 404 or 500-503"));
}

#[tokio::test]
async fn one_connection_asks_once_with_the_name_as_host() {
    let client = ProbeClient::new(true);
    let backend = Backend::start(HERE, 0, BackendAnswer::Redirect("/elsewhere".into())).unwrap();
    assert_eq!(failure(&client, &settings(ProbeProtocol::Http, backend.address.port())).await, "");
    let requests = backend.requests();
    assert_eq!((backend.connections().0, requests.len()), (1, 1), "a redirect is not followed: {requests:?}");
    let head = requests[0].to_ascii_lowercase();
    assert!(head.starts_with("get /healthz?full http/1.1\r\n"), "{head}");
    for line in ["\r\nhost: www.example.org\r\n", "\r\nx-probe: yes\r\n", "\r\nconnection: close\r\n"] {
        assert!(head.contains(line), "{head}");
    }
    let tcp = settings(ProbeProtocol::Tcp, backend.address.port());
    assert_eq!(failure(&client, &tcp).await, "");
    assert_eq!(backend.requests().len(), 1, "with TCP a connection is enough");
}

#[tokio::test]
async fn one_limit_holds_for_the_whole_probe() {
    let client = ProbeClient::new(true);
    let backend = Backend::start(HERE, 0, BackendAnswer::Hung).unwrap();
    let hole = BlackHole::start().unwrap();
    let brief = |protocol, port| ProbeSettings { timeout: Duration::from_millis(300), ..settings(protocol, port) };
    let late = "no complete answer within 0.3 s";
    assert_eq!(failure(&client, &brief(ProbeProtocol::Http, backend.address.port())).await, late);
    backend.answer(BackendAnswer::Slow);
    assert_eq!(failure(&client, &brief(ProbeProtocol::Http, backend.address.port())).await, late);
    assert_eq!(failure(&client, &brief(ProbeProtocol::Https, backend.address.port())).await, late, "no handshake");
    assert_eq!(failure(&client, &brief(ProbeProtocol::Tcp, hole.address.port())).await, late);
}

#[tokio::test]
async fn a_refused_connection_and_a_name_without_address_fail() {
    let client = ProbeClient::new(true);
    // Nobody can listen at a port that is taken and does not listen.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let usual = settings(ProbeProtocol::Http, taken.local_addr().unwrap().port());
    let found = failure(&client, &usual).await;
    assert!(found.ends_with(": Connection refused"), "{found}");
    let result = client.probe(NAME, "gatepost.invalid", &usual).await;
    assert!(matches!(&result, Err(ProbeFailure::Failed(error)) if error.contains("gatepost.invalid")), "{result:?}");
}

#[tokio::test]
async fn a_hostname_is_healthy_if_one_of_its_addresses_is() {
    let backend = Backend::start(HERE, 0, BackendAnswer::Status(200)).unwrap();
    let usual = settings(ProbeProtocol::Http, backend.address.port());
    assert_eq!(ProbeClient::new(true).probe(NAME, "localhost", &usual).await, Ok(()));
}

#[tokio::test]
async fn inward_addresses_are_not_connected_to() {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let client = ProbeClient::new(false);
    let port = listener.local_addr().unwrap().port();
    for target in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost", "169.254.169.254", "0.0.0.0"] {
        let result = client.probe(NAME, target, &settings(ProbeProtocol::Tcp, port)).await;
        let is_refused = matches!(&result, Err(ProbeFailure::NotMade(why)) if why.contains("--allow-inward-targets"));
        assert!(is_refused, "{target}: {result:?}");
    }
    assert!(listener.accept().is_err(), "somebody connected");
}

/// Certificates of an authority of their own: chain and key in PEM.
struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

impl TestAuthority {
    fn new() -> TestAuthority {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = parameters.self_signed(&key).unwrap().der().clone();
        TestAuthority { issuer: Issuer::new(parameters, key), root }
    }

    fn issue(&self, name: &str, last_year: i32) -> (String, String) {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (parameters.not_before, parameters.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(last_year, 1, 1));
        let key = KeyPair::generate().unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// A client that trusts only this authority.
    fn client(&self) -> ProbeClient {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let config = builder().unwrap().with_root_certificates(roots).with_no_client_auth();
        let client = ProbeClient::new(true);
        client.tls.verifying.set(Ok(single(config))).unwrap();
        client
    }
}

#[tokio::test]
async fn a_certificate_must_be_valid_for_the_name() {
    let (ours, theirs) = (TestAuthority::new(), TestAuthority::new());
    let rows = [
        (ours.issue(NAME, 2100), ""),
        (ours.issue("*.example.org", 2100), ""),
        (ours.issue("www.example.com", 2100), "TLS: invalid peer certificate"),
        (ours.issue(NAME, 2021), "TLS: invalid peer certificate: certificate expired"),
        (theirs.issue(NAME, 2100), "TLS: invalid peer certificate"),
    ];
    let client = ours.client();
    for ((chain, key), expected) in rows {
        let backend = Backend::start_tls(HERE, 0, BackendAnswer::Status(200), &chain, &key).unwrap();
        let usual = settings(ProbeProtocol::Https, backend.address.port());
        for round in 0..2 {
            let found = failure(&client, &usual).await;
            let is_right = if expected.is_empty() { found.is_empty() } else { found.contains(expected) };
            assert!(is_right, "round {round}, expected {expected:?}: {found:?}");
        }
        let any = ProbeSettings { skips_verification: true, ..usual };
        assert_eq!(failure(&client, &any).await, "", "any certificate is taken");
    }
}
