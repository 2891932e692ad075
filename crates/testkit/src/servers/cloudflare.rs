//! A server that speaks the API of Cloudflare for DNS, written from its public description, and stricter than that: what it
//! does not know is refused.
//!
//! It serves HTTP on the loopback address from a thread of its own. A judge, which the test gives, sees every question first
//! and may change the zones or the answer. Nothing here judges what a client does.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

mod answers;
mod checks;
mod zones;

pub use answers::ApiAnswer;
pub use zones::{HostedZone, HostedZones, StoredRecord};

/// The token that the server accepts.
pub const TOKEN: &str = "canary-token-of-the-test-bed";

/// A question, as the judge sees it.
#[derive(Clone, Debug)]
pub struct ApiQuestion {
    /// Its number, from 0.
    pub number: usize,
    /// `GET`, `POST`.
    pub method: String,
    /// The path below the base, such as `/zones`.
    pub path: String,
    /// The query, by key.
    pub query: Vec<(String, String)>,
    /// The body, if it is JSON.
    pub body: Value,
}

/// What becomes of a question.
#[derive(Clone, Debug)]
pub enum ApiFate {
    /// It is answered.
    Pass,
    /// This is answered, and nothing done.
    Answer(ApiAnswer),
    /// Another page than the one that was asked for is answered.
    Page(usize),
    /// Nothing is done, and the connection ends.
    Drop,
    /// It is carried out, and the connection ends without an answer.
    Lose,
}

/// Decides what becomes of a question; it may change the zones first.
type ApiJudge = Box<dyn FnMut(&ApiQuestion, &mut HostedZones) -> ApiFate + Send>;

/// A server that runs until it is dropped.
pub struct CloudflareApi {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    zones: HostedZones,
    judge: ApiJudge,
    questions: Vec<ApiQuestion>,
}

impl CloudflareApi {
    /// Starts it with these zones.
    pub fn start(zones: HostedZones) -> io::Result<CloudflareApi> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let judge: ApiJudge = Box::new(|_, _| ApiFate::Pass);
        let shared = Arc::new(Mutex::new(Shared { zones, judge, questions: Vec::new() }));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let known = shared.clone();
        let thread = std::thread::spawn(move || runtime.block_on(serve(listener, known, stopped)));
        Ok(CloudflareApi { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The base address of the API.
    pub fn url(&self) -> String {
        format!("http://{}/client/v4", self.address)
    }

    /// From now on this decides what becomes of questions.
    pub fn judge(&self, judge: impl FnMut(&ApiQuestion, &mut HostedZones) -> ApiFate + Send + 'static) {
        self.lock().judge = Box::new(judge);
    }

    /// Looks at the zones, or changes them as somebody else would.
    pub fn with<T>(&self, edit: impl FnOnce(&mut HostedZones) -> T) -> T {
        edit(&mut self.lock().zones)
    }

    /// The questions since the last time, whose numbers begin anew.
    pub fn take_questions(&self) -> Vec<ApiQuestion> {
        std::mem::take(&mut self.lock().questions)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CloudflareApi {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Mutex<Shared>>, mut stopped: oneshot::Receiver<()>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                tokio::spawn(converse(stream, shared.clone()));
            }
        }
    }
}

async fn converse(stream: TcpStream, shared: Arc<Mutex<Shared>>) {
    let service = service_fn(move |request| answer(request, shared.clone()));
    // A client that hangs up is none of our business.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// An error ends the connection.
async fn answer(
    request: Request<Incoming>,
    shared: Arc<Mutex<Shared>>,
) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let token = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut guard = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let shared = &mut *guard;
    let question = ApiQuestion {
        number: shared.questions.len(),
        method: head.method.to_string(),
        path: head.uri.path().strip_prefix("/client/v4").unwrap_or(head.uri.path()).to_owned(),
        query: query(head.uri.query().unwrap_or_default()),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    shared.questions.push(question.clone());
    match (shared.judge)(&question, &mut shared.zones) {
        ApiFate::Drop => Err("dropped".into()),
        ApiFate::Answer(answer) => Ok(answer.into_response()),
        ApiFate::Pass => Ok(answers::answer(&question, &token, &mut shared.zones).into_response()),
        ApiFate::Page(page) => {
            let mut other = question;
            other.query.retain(|(key, _)| key != "page");
            other.query.push(("page".to_owned(), page.to_string()));
            Ok(answers::answer(&other, &token, &mut shared.zones).into_response())
        }
        ApiFate::Lose => {
            answers::answer(&question, &token, &mut shared.zones);
            Err("lost".into())
        }
    }
}

/// The parts of a query, decoded.
fn query(text: &str) -> Vec<(String, String)> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(key, value)| (decoded(key), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let byte = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.extend(byte);
        bytes.extend(&piece.as_bytes()[if byte.is_some() { 2 } else { 0 }..]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
