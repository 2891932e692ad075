//! A server that speaks the API of AWS Route 53, written from its public description, and stricter than that: signatures are
//! checked, and what it does not know is refused.
//!
//! It also hands out credentials as the token service, a container and an instance of AWS do. A judge, which the test gives,
//! sees every question first and may change the account or the answer. Nothing here judges what a client does.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

mod account;
mod answers;
mod changes;
mod checks;
mod issuing;
mod signature;

pub use account::{AwsAccount, AwsZone, StoredSet};
pub use answers::AwsAnswer;
pub use issuing::{CONTAINER_TOKEN, ROLE, ROLE_SECRET, WEB_IDENTITY};

/// The id of the key that the server accepts.
pub const KEY_ID: &str = "AKIACANARYOFTHEBED";

/// The secret of that key.
pub const SECRET: &str = "canary/secret+of/the+test/bed";

/// A question, as the judge sees it.
#[derive(Clone, Debug)]
pub struct AwsCall {
    /// Its number, from 0.
    pub number: usize,
    /// `GET`, `POST`.
    pub method: String,
    /// The path, such as `/2013-04-01/hostedzone`.
    pub path: String,
    /// The query as it was sent.
    pub raw_query: String,
    /// The query, by key.
    pub query: Vec<(String, String)>,
    /// Headers with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// What becomes of a question.
#[derive(Clone, Debug)]
pub enum CallFate {
    /// It is answered.
    Pass,
    /// This is answered, and nothing done.
    Answer(AwsAnswer),
    /// It is answered as if it had this query.
    Query(Vec<(String, String)>),
    /// Nothing is done, and the connection ends.
    Drop,
    /// It is carried out, and the connection ends without an answer.
    Lose,
}

/// Decides what becomes of a question; it may change the account first.
type CallJudge = Box<dyn FnMut(&AwsCall, &mut AwsAccount) -> CallFate + Send>;

/// A server that runs until it is dropped.
pub struct Route53Api {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Mutex<AwsShared>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct AwsShared {
    account: AwsAccount,
    judge: CallJudge,
    calls: Vec<AwsCall>,
}

impl AwsCall {
    /// Whether it lists record sets.
    pub fn is_list(&self) -> bool {
        self.method == "GET" && self.path.ends_with("/rrset")
    }

    /// Whether it changes record sets.
    pub fn is_batch(&self) -> bool {
        self.method == "POST" && self.path.trim_end_matches('/').ends_with("/rrset")
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a key of the query.
    pub fn asked(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

impl Route53Api {
    /// Starts it with this account.
    pub fn start(account: AwsAccount) -> io::Result<Route53Api> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let judge: CallJudge = Box::new(|_, _| CallFate::Pass);
        let shared = Arc::new(Mutex::new(AwsShared { account, judge, calls: Vec::new() }));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let known = shared.clone();
        let thread = std::thread::spawn(move || runtime.block_on(serve(listener, known, stopped)));
        Ok(Route53Api { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The base address of the API.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on this decides what becomes of questions.
    pub fn judge(&self, judge: impl FnMut(&AwsCall, &mut AwsAccount) -> CallFate + Send + 'static) {
        self.lock().judge = Box::new(judge);
    }

    /// Looks at the account, or changes it as somebody else would.
    pub fn with<T>(&self, edit: impl FnOnce(&mut AwsAccount) -> T) -> T {
        edit(&mut self.lock().account)
    }

    /// The questions since the last time, whose numbers begin anew.
    pub fn take_calls(&self) -> Vec<AwsCall> {
        std::mem::take(&mut self.lock().calls)
    }

    fn lock(&self) -> MutexGuard<'_, AwsShared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Route53Api {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Mutex<AwsShared>>, mut stopped: oneshot::Receiver<()>) {
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

async fn converse(stream: TcpStream, shared: Arc<Mutex<AwsShared>>) {
    let service = service_fn(move |request| answer(request, shared.clone()));
    // A client that hangs up is none of our business.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// An error ends the connection.
async fn answer(
    request: Request<Incoming>,
    shared: Arc<Mutex<AwsShared>>,
) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let text = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let raw_query = head.uri.query().unwrap_or_default().to_owned();
    let mut guard = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let shared = &mut *guard;
    let call = AwsCall {
        number: shared.calls.len(),
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: pairs(&raw_query),
        raw_query,
        headers: head.headers.iter().map(text).collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    shared.calls.push(call.clone());
    match (shared.judge)(&call, &mut shared.account) {
        CallFate::Drop => Err("dropped".into()),
        CallFate::Answer(answer) => Ok(answer.into_response()),
        CallFate::Pass => Ok(answers::answer(&call, &mut shared.account).into_response()),
        CallFate::Query(query) => {
            let refusal = signature::check(&call, &shared.account).err();
            let other = AwsCall { query, ..call };
            Ok(refusal.unwrap_or_else(|| answers::carry_out(&other, &mut shared.account)).into_response())
        }
        CallFate::Lose => {
            answers::answer(&call, &mut shared.account);
            Err("lost".into())
        }
    }
}

/// The parts of a query or a form, decoded.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(key, value)| (decoded(key), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let byte = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.extend(byte);
        bytes.extend(&piece.as_bytes()[if byte.is_some() { 2 } else { 0 }..]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
