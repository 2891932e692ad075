//! What `serve` and `controller` answer over HTTP: health, readiness, metrics, the plan as JSON, `/api/v1` and the page.
//!
//! Read-only, and only for who asks by an address or `localhost`: another Host header is somebody's rebinding trick.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::incremental::World;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{self, watch};

use crate::api::{self, ApiAnswer, ApiReader, ApiState, ProgramFacts, ReviewRefusal, ServerFacts};
use crate::metrics;
use crate::run::Pass;
use crate::view::plan::{PlanView, ProviderView};

mod access;
mod page;
mod pools;

pub use access::{PageAccess, PageMode};
pub use page::built_file;
use pools::Pools;

/// What the HTTP server answers with; the loop replaces it after every pass.
#[derive(Clone, Debug)]
pub struct HttpState {
    /// Whether names are answered as the objects ask; says why not.
    pub unready: Option<String>,
    /// What is to be known though names are answered.
    pub notes: Vec<String>,
    /// The plan; who asks for it waits while another one is written out.
    plan: Arc<sync::RwLock<PlanDocument>>,
    /// Metrics in OpenMetrics text.
    pub metrics: String,
    /// The same of health checks, which go on between passes.
    pub probe_metrics: String,
    /// When the objects were last known to be current, in seconds since 1970; unset where files are watched.
    pub seen_at: Option<i64>,
    /// What `/api/v1` is answered from.
    pub api: Arc<ApiState>,
}

/// A plan, as it is answered in JSON.
#[derive(Debug)]
enum PlanDocument {
    /// It is written out for who asks: nearly nobody does.
    Pass(Box<Pass>),
    /// It was written out, because that takes less room.
    Text(Bytes),
}

/// A pass of more steps is not kept.
const MOST_STEPS: usize = 1000;

/// Hands over what a pass came to. The plan before is freed first, because it may be very large.
pub async fn tell(state: &SharedHttpState, pass: Pass, problems: &[Diagnostic], world: &World) {
    api_of(state).record(&pass, problems, world);
    let plan = state.read().unwrap_or_else(std::sync::PoisonError::into_inner).plan.clone();
    let mut plan = plan.write().await;
    *plan = PlanDocument::default();
    *plan = PlanDocument::of(pass);
}

/// What `/api/v1` is answered from.
pub fn api_of(state: &SharedHttpState) -> Arc<ApiState> {
    state.read().unwrap_or_else(std::sync::PoisonError::into_inner).api.clone()
}

/// The state of a program before its first pass.
pub fn state(facts: ProgramFacts) -> SharedHttpState {
    Arc::new(RwLock::new(HttpState { api: Arc::new(ApiState::new(facts)), ..HttpState::default() }))
}

/// Says what is waited for before the first pass.
pub fn wait(state: &SharedHttpState, why: &str) {
    state.write().unwrap_or_else(std::sync::PoisonError::into_inner).unready = Some(why.to_owned());
}

/// Says what is to be known though names are answered.
pub fn note(state: &SharedHttpState, notes: Vec<String>) {
    state.write().unwrap_or_else(std::sync::PoisonError::into_inner).notes = notes;
}

impl Default for PlanDocument {
    /// Nothing is known yet.
    fn default() -> Self {
        PlanDocument::Text(Bytes::from_static(b"{}\n"))
    }
}

impl PlanDocument {
    fn of(mut pass: Pass) -> PlanDocument {
        match (pass.plan.steps.len() > MOST_STEPS, pass.outcome.is_complete()) {
            (false, _) => PlanDocument::Pass(Box::new(pass)),
            // Nothing is left to do, and the log has what was done.
            (true, true) => {
                (pass.plan.steps, pass.outcome) = Default::default();
                PlanDocument::Pass(Box::new(pass))
            }
            (true, false) => PlanDocument::Text(json(&pass)),
        }
    }

    fn json(&self) -> Bytes {
        match self {
            PlanDocument::Pass(pass) => json(pass),
            PlanDocument::Text(text) => text.clone(),
        }
    }
}

impl Default for HttpState {
    /// What is told before anything is known: nobody is ready who has not looked yet.
    fn default() -> Self {
        let unready = Some("the first pass has not ended yet".to_owned());
        HttpState {
            unready,
            notes: Vec::new(),
            plan: Arc::default(),
            metrics: metrics::EMPTY.to_owned(),
            probe_metrics: metrics::EMPTY.to_owned(),
            seen_at: None,
            api: Arc::default(),
        }
    }
}

/// The state, shared with the loop.
pub type SharedHttpState = Arc<RwLock<HttpState>>;

/// How long a request may take to arrive.
const SLOWEST: Duration = Duration::from_secs(5);
/// How long an answer about a very large world may take beyond that.
const LONGEST_ANSWER: Duration = Duration::from_secs(60);
/// How often an event stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The body of an answer.
type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Answers until it is dropped. Who holds connections open keeps nobody else from being answered.
pub async fn serve(listener: TcpListener, state: SharedHttpState, access: PageAccess) {
    let pools = Arc::new(Mutex::new(Pools::default()));
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Locked until it is noted, so that it cannot end before.
        let mut open = locked(&pools);
        let number = open.make_place();
        let is_answering = AtomicBool::new(false);
        let (pools, state, access) = (pools.clone(), state.clone(), access.clone());
        let connection = Connection { number, pools, state, access, is_answering };
        let task = tokio::spawn(async move {
            connection.converse(stream).await;
            locked(&connection.pools).close(number);
        });
        open.open(number, peer.ip(), task.abort_handle());
    }
}

fn locked(pools: &Mutex<Pools>) -> std::sync::MutexGuard<'_, Pools> {
    pools.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection, with the one request that it answers.
struct Connection {
    number: u64,
    pools: Arc<Mutex<Pools>>,
    state: SharedHttpState,
    access: PageAccess,
    /// Whether the request has arrived and its answer is being made.
    is_answering: AtomicBool,
}

impl Connection {
    async fn converse(&self, stream: TcpStream) {
        let answer = service_fn(async |request: Request<Incoming>| {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner).clone();
            Ok::<_, Infallible>(self.answer(&request, state).await)
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(SLOWEST).keep_alive(false);
        let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), answer));
        if tokio::time::timeout(SLOWEST * 2, connection.as_mut()).await.is_ok() {
            return;
        }
        if locked(&self.pools).is_stream(self.number) {
            let _ = connection.await;
        } else if self.is_answering.load(Ordering::Relaxed) {
            let _ = tokio::time::timeout(LONGEST_ANSWER, connection).await;
        }
    }

    async fn answer(&self, request: &Request<Incoming>, state: HttpState) -> Response<Body> {
        if !self.access.is_own_host(request.headers().get("host").and_then(|host| host.to_str().ok())) {
            return text(StatusCode::FORBIDDEN, "this Host is not served here\n".to_owned(), "text/plain");
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned(), "text/plain");
            refusal.headers_mut().insert("allow", hyper::header::HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        let Some(path) = self.access.path(request.uri().path()) else { return redirect(&self.access.home()) };
        let notes: String = state.notes.iter().map(|note| format!("{note}\n")).collect();
        match (path, &state.unready) {
            ("/healthz", _) => text(StatusCode::OK, "ok\n".to_owned(), "text/plain"),
            ("/readyz", None) => text(StatusCode::OK, format!("ok\n{notes}"), "text/plain"),
            ("/readyz", Some(why)) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n{notes}"), "text/plain"),
            ("/plan.json", _) if self.access.is_reviewed() => {
                let message = "/plan.json shows all namespaces; with --page cluster there is /api/v1/plan";
                json_answer(request, ApiAnswer::error(StatusCode::FORBIDDEN, message))
            }
            ("/plan.json", _) => text(StatusCode::OK, state.plan.read().await.json(), "application/json"),
            ("/metrics", _) => {
                let numbers = metrics::joined(&state.metrics, &state.probe_metrics);
                text(StatusCode::OK, numbers, "application/openmetrics-text; version=1.0.0")
            }
            (path, _) if path.starts_with("/api/") => self.answer_api(request, path, state).await,
            (path, _) => self.answer_page(path),
        }
    }

    async fn answer_api(&self, request: &Request<Incoming>, path: &str, state: HttpState) -> Response<Body> {
        if let Some(why) = self.access.refusal() {
            return json_answer(request, ApiAnswer::error(StatusCode::FORBIDDEN, why));
        }
        if !access::is_own_origin(request.headers()) {
            let message = "a page of another origin may not read this";
            return json_answer(request, ApiAnswer::error(StatusCode::FORBIDDEN, message));
        }
        let reader = match self.access.reader(request.headers()).await {
            Ok(reader) => reader,
            Err(refusal) => return json_answer(request, refused(refusal)),
        };
        if path == "/api/v1/events" {
            locked(&self.pools).become_stream(self.number);
            let token = access::bearer(request.headers()).map(str::to_owned);
            return event_stream(state.api.changes(), StreamReader { reader, token });
        }
        self.is_answering.store(true, Ordering::Relaxed);
        let server = ServerFacts { unready: state.unready, notes: state.notes, seen_at: state.seen_at };
        let answer = api::answer(&state.api, server, &reader, path, request.uri().query()).await;
        json_answer(request, answer)
    }

    fn answer_page(&self, path: &str) -> Response<Body> {
        match (self.access.refusal(), page::answer(path)) {
            (Some(why), Some(_)) => text(StatusCode::FORBIDDEN, format!("{why}\n"), "text/plain"),
            (None, Some(file)) => file,
            (_, None) => {
                let known = "/ /healthz /readyz /plan.json /metrics /api/v1/overview\n";
                text(StatusCode::NOT_FOUND, known.to_owned(), "text/plain")
            }
        }
    }
}

/// An answer in JSON with its ETag; only the status where the reader has it already.
fn json_answer(request: &Request<Incoming>, answer: ApiAnswer) -> Response<Body> {
    let hash = ring::digest::digest(&ring::digest::SHA256, &answer.body);
    let tag: String = hash.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    let known = request.headers().get("if-none-match").and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    let is_known = answer.status == StatusCode::OK && known.split(',').any(|one| one.trim() == tag);
    let mut response = match is_known {
        true => text(StatusCode::NOT_MODIFIED, Bytes::new(), answer.kind),
        false => text(answer.status, answer.body, answer.kind),
    };
    if answer.status == StatusCode::UNAUTHORIZED {
        let scheme = hyper::header::HeaderValue::from_static("Bearer realm=\"gatepost\"");
        response.headers_mut().insert("www-authenticate", scheme);
    }
    let vary = hyper::header::HeaderValue::from_static("authorization");
    response.headers_mut().insert("vary", vary);
    if let Ok(value) = hyper::header::HeaderValue::from_str(&tag) {
        response.headers_mut().insert("etag", value);
    }
    let cache = hyper::header::HeaderValue::from_static("private, no-cache");
    response.headers_mut().insert("cache-control", cache);
    response
}

/// Why somebody gets no answer.
fn refused(refusal: ReviewRefusal) -> ApiAnswer {
    match refusal {
        ReviewRefusal::Unknown(why) => ApiAnswer::error(StatusCode::UNAUTHORIZED, why),
        ReviewRefusal::NotYet(why) => ApiAnswer::error(StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

/// Where the page is, for somebody who left the slash out.
fn redirect(home: &str) -> Response<Body> {
    let mut response = text(StatusCode::PERMANENT_REDIRECT, Bytes::new(), "text/plain");
    if let Ok(value) = hyper::header::HeaderValue::from_str(home) {
        response.headers_mut().insert("location", value);
    }
    response
}

/// Who reads an event stream, to be asked again and again: a token ends while a stream goes on.
struct StreamReader {
    reader: ApiReader,
    token: Option<String>,
}

impl StreamReader {
    async fn may_read(&self) -> bool {
        match &self.reader {
            ApiReader::Trusted => true,
            ApiReader::Reviewed(reviews, _) => reviews.user(self.token.as_deref()).await.is_ok(),
        }
    }
}

/// Server-sent events: `changed` with the number of the pass at once and after every change, `alive` in between.
fn event_stream(changes: watch::Receiver<u64>, reader: StreamReader) -> Response<Body> {
    let events = futures_util::stream::unfold((changes, reader, true), async |(mut changes, reader, is_first)| {
        let event = match is_first {
            true => "retry: 2000\nevent: changed",
            false => match tokio::time::timeout(HEARTBEAT, changes.changed()).await {
                Ok(Ok(())) => "event: changed",
                Ok(Err(_)) => return None,
                Err(_) => "event: alive",
            },
        };
        if !reader.may_read().await {
            return None;
        }
        let text = format!("{event}\ndata: {}\n\n", *changes.borrow_and_update());
        Some((Ok(Frame::data(Bytes::from(text))), (changes, reader, false)))
    });
    let mut response = text(StatusCode::OK, Bytes::new(), "text/event-stream");
    *response.body_mut() = StreamBody::new(events).boxed_unsync();
    response
}

/// The plan of a pass as JSON.
fn json(pass: &Pass) -> Bytes {
    let desired = pass.desired.read();
    let view = PlanView::of(&desired, None, Vec::new()).with(Some(&pass.plan), Some(&pass.outcome));
    let view = view.with_issuing(&pass.issuing).with_providers(pass.providers.iter().map(ProviderView::reported));
    // It may be very long: it is written twice, so that there is never more room than it takes.
    let mut length = Length(0);
    let mut text = match serde_json::to_writer_pretty(&mut length, &view) {
        Ok(()) => Vec::with_capacity(length.0),
        Err(_) => return Bytes::new(),
    };
    let written = serde_json::to_writer_pretty(&mut text, &view);
    written.map(|()| text.into()).unwrap_or_default()
}

/// How many bytes were written.
struct Length(usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>, kind: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert("content-type", hyper::header::HeaderValue::from_static(kind));
    headers.insert("x-content-type-options", hyper::header::HeaderValue::from_static("nosniff"));
    headers.insert("cache-control", hyper::header::HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::pools::MOST;
    use super::*;

    async fn answer_to(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    /// Whether the server still waits for a request.
    fn is_open(stream: &TcpStream) -> bool {
        stream.try_read(&mut [0; 1]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// The newer ones of the silent connections are still open when it is answered, so that no timeout made the place.
    #[tokio::test]
    async fn silent_connections_keep_nobody_from_being_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let access = PageAccess::new(PageMode::Loopback, address);
        tokio::spawn(serve(listener, SharedHttpState::default(), access));
        let mut silent = Vec::new();
        for _ in 0..MOST + 6 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(answer_to(address, "/healthz").await.ends_with("ok\n"));
        assert!(silent[10..].iter().all(is_open));
        assert!(answer_to(address, "/readyz").await.starts_with("HTTP/1.1 503"));
    }
}
