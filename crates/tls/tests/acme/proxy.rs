//! A server between the client and Pebble: it passes everything on, counts it, and lies where it is told to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gatepost_testkit::Failed;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// What is done to an answer.
pub(crate) type Lie = Arc<dyn Fn(Answer) -> Answer + Send + Sync>;

/// An answer on its way.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// What was asked, out of its signature.
    pub(crate) question: Vec<u8>,
}

/// The server. It ends with the runtime of its test.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    pub(crate) root: String,
    state: Arc<State>,
}

struct State {
    pebble: SocketAddr,
    connector: TlsConnector,
    /// By the beginning of a path.
    lies: Mutex<BTreeMap<String, Lie>>,
    asked: AtomicUsize,
    /// The last request for a certificate, in DER.
    request: Mutex<Vec<u8>>,
}

impl Proxy {
    pub(crate) async fn start(pebble: SocketAddr, pebble_root: &str) -> Result<Proxy, Failed> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let connector = connector(pebble_root)?;
        let state =
            State { pebble, connector, lies: Mutex::default(), asked: AtomicUsize::new(0), request: Mutex::default() };
        let state = Arc::new(state);
        let acceptor = acceptor(&certificate.pem(), &key.serialize_pem())?;
        tokio::spawn(accept(listener, acceptor, state.clone()));
        Ok(Proxy { address, root: certificate.pem(), state })
    }

    /// Changes the answers to everything whose path begins so.
    pub(crate) fn lie(&self, path: &str, lie: impl Fn(Answer) -> Answer + Send + Sync + 'static) {
        self.state.lies.lock().unwrap().insert(path.to_owned(), Arc::new(lie));
    }

    /// Tells the truth again.
    pub(crate) fn repent(&self) {
        self.state.lies.lock().unwrap().clear();
    }

    /// Gives the last request for a certificate, in DER.
    pub(crate) fn request(&self) -> impl Fn() -> Vec<u8> + use<> {
        let state = self.state.clone();
        move || state.request.lock().unwrap().clone()
    }

    /// How many questions there were.
    pub(crate) fn asked(&self) -> usize {
        self.state.asked.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, state) = (acceptor.clone(), state.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request| answer(request, state.clone()));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Full<Bytes>>, Infallible> {
    state.asked.fetch_add(1, Ordering::Relaxed);
    let path = request.uri().path().to_owned();
    let mut answer = pass_on(request, &state).await.unwrap_or_else(|error| Answer {
        status: 502,
        headers: Vec::new(),
        body: format!("{error:?}").into_bytes(),
        question: Vec::new(),
    });
    let lies = state.lies.lock().unwrap().clone();
    for (_, lie) in lies.iter().filter(|(start, _)| path.starts_with(start.as_str())) {
        answer = lie(answer);
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers.iter().filter(|(name, _)| name != "content-length") {
        response = response.header(name, value);
    }
    Ok(response.body(Full::new(answer.body.into())).unwrap())
}

async fn pass_on(request: Request<Incoming>, state: &State) -> Result<Answer, Failed> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let question = question(&body);
    if head.uri.path().starts_with("/finalize-order/") {
        *state.request.lock().unwrap() = csr(&question)?;
    }
    let stream = TcpStream::connect(state.pebble).await?;
    let stream = state.connector.connect(ServerName::try_from("127.0.0.1")?, stream).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (head, body) = sender.send_request(Request::from_parts(head, Full::new(body))).await?.into_parts();
    let text = |value: &hyper::header::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    Ok(Answer { status: head.status.as_u16(), headers, body: body.collect().await?.to_bytes().to_vec(), question })
}

/// What a signed request asks; nothing where it is not signed.
fn question(body: &[u8]) -> Vec<u8> {
    let outer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    URL_SAFE_NO_PAD.decode(outer["payload"].as_str().unwrap_or_default()).unwrap_or_default()
}

/// The request for a certificate in a question.
fn csr(question: &[u8]) -> Result<Vec<u8>, Failed> {
    let inner: serde_json::Value = serde_json::from_slice(question)?;
    Ok(URL_SAFE_NO_PAD.decode(inner["csr"].as_str().unwrap_or_default())?)
}

fn connector(root: &str) -> Result<TlsConnector, Failed> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(root.as_bytes())?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
}

fn acceptor(certificate: &str, key: &str) -> Result<TlsAcceptor, Failed> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    Ok(TlsAcceptor::from(Arc::new(config.with_no_client_auth().with_single_cert(chain, key)?)))
}
