//! What `serve` answers over HTTP: health, readiness, metrics, and the plan as JSON.
//!
//! Read-only, and only for who asks by an address or `localhost`: another Host header is somebody's rebinding trick.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync;
use tokio::task::AbortHandle;

use crate::metrics;
use crate::run::Pass;
use crate::view::plan::PlanView;

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

/// Replaces the plan by that of a pass. The one before is freed first, because it may be very large.
pub async fn tell(state: &SharedHttpState, pass: Pass) {
    let plan = state.read().unwrap_or_else(std::sync::PoisonError::into_inner).plan.clone();
    let mut plan = plan.write().await;
    *plan = PlanDocument::default();
    *plan = PlanDocument::of(pass);
}

/// Says what is waited for before the first pass.
pub fn wait(state: &SharedHttpState, why: &str) {
    state.write().unwrap_or_else(std::sync::PoisonError::into_inner).unready = Some(why.to_owned());
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
        HttpState { unready, notes: Vec::new(), plan: Arc::default(), metrics: metrics::EMPTY.to_owned() }
    }
}

/// The state, shared with the loop.
pub type SharedHttpState = Arc<RwLock<HttpState>>;

/// Connections at a time. One more takes the place of the oldest one of the source that has most.
const MOST: usize = 64;
/// How long a request may take to arrive.
const SLOWEST: Duration = Duration::from_secs(5);

/// Answers until it is dropped. Who holds connections open keeps nobody else from being answered.
pub async fn serve(listener: TcpListener, state: SharedHttpState) {
    let connections = Arc::new(Mutex::new(OpenConnections::default()));
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (state, ended) = (state.clone(), connections.clone());
        // Locked until it is noted, so that it cannot end before.
        let mut open = connections.lock().unwrap_or_else(PoisonError::into_inner);
        let number = open.make_place();
        let task = tokio::spawn(async move {
            converse(stream, state).await;
            ended.lock().unwrap_or_else(PoisonError::into_inner).by_number.remove(&number);
        });
        open.by_number.insert(number, (peer.ip(), task.abort_handle()));
    }
}

/// The connections that are open, oldest first.
#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    by_number: BTreeMap<u64, (IpAddr, AbortHandle)>,
}

impl OpenConnections {
    /// Closes connections until there is a place for one more; its number.
    fn make_place(&mut self) -> u64 {
        while self.by_number.len() >= MOST {
            let mut by_source: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
            for (number, (source, _)) in &self.by_number {
                by_source.entry(*source).or_insert((0, *number)).0 += 1;
            }
            let Some((_, oldest)) = by_source.into_values().max_by_key(|(count, _)| *count) else { break };
            if let Some((_, task)) = self.by_number.remove(&oldest) {
                task.abort();
            }
        }
        self.next += 1;
        self.next
    }
}

/// Answers the one request of a connection.
async fn converse(stream: TcpStream, state: SharedHttpState) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let state = state.read().unwrap_or_else(PoisonError::into_inner).clone();
        async move { Ok::<_, std::convert::Infallible>(answer(&request, state).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(SLOWEST).keep_alive(false);
    let connection = builder.serve_connection(TokioIo::new(stream), answer);
    let _ = tokio::time::timeout(SLOWEST * 2, connection).await;
}

async fn answer(request: &Request<Incoming>, state: HttpState) -> Response<Full<Bytes>> {
    if !is_local(request.headers().get("host").and_then(|host| host.to_str().ok())) {
        return text(StatusCode::FORBIDDEN, "this Host is not served here\n".to_owned(), "text/plain");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned(), "text/plain");
    }
    let notes: String = state.notes.iter().map(|note| format!("{note}\n")).collect();
    match (request.uri().path(), state.unready) {
        ("/healthz", _) => text(StatusCode::OK, "ok\n".to_owned(), "text/plain"),
        ("/readyz", None) => text(StatusCode::OK, format!("ok\n{notes}"), "text/plain"),
        ("/readyz", Some(why)) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n{notes}"), "text/plain"),
        ("/plan.json", _) => text(StatusCode::OK, state.plan.read().await.json(), "application/json"),
        ("/metrics", _) => text(StatusCode::OK, state.metrics, "application/openmetrics-text; version=1.0.0"),
        _ => text(StatusCode::NOT_FOUND, "/healthz /readyz /plan.json /metrics\n".to_owned(), "text/plain"),
    }
}

/// The plan of a pass as JSON.
fn json(pass: &Pass) -> Bytes {
    let desired = pass.desired.read();
    let view = PlanView::of(&desired, None, Vec::new()).with(Some(&pass.plan), Some(&pass.outcome));
    let view = view.with_issuing(&pass.issuing);
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

/// Whether a Host header names an address or this machine.
fn is_local(host: Option<&str>) -> bool {
    let Some(host) = host else { return true };
    let name = host.parse::<SocketAddr>().map_or_else(|_| gatepost_core::names::host_of(host), |a| a.ip().to_string());
    name == "localhost" || gatepost_core::names::is_ip(&name)
}

fn text(status: StatusCode, body: impl Into<Bytes>, kind: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert("content-type", hyper::header::HeaderValue::from_static(kind));
    headers.insert("x-content-type-options", hyper::header::HeaderValue::from_static("nosniff"));
    headers.insert("cache-control", hyper::header::HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
        tokio::spawn(serve(listener, SharedHttpState::default()));
        let mut silent = Vec::new();
        for _ in 0..MOST + 6 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(answer_to(address, "/healthz").await.ends_with("ok\n"));
        assert!(silent[10..].iter().all(is_open));
        assert!(answer_to(address, "/readyz").await.starts_with("HTTP/1.1 503"));
    }

    #[tokio::test]
    async fn a_source_with_many_connections_makes_the_place_for_others() {
        let mut open = OpenConnections::default();
        let source = |last: u8| IpAddr::from([192, 0, 2, last]);
        for i in 0..MOST * 2 {
            let number = open.make_place();
            let from = if i < 8 { source(2) } else { source(1) };
            open.by_number.insert(number, (from, tokio::spawn(std::future::pending::<()>()).abort_handle()));
        }
        assert_eq!(open.by_number.len(), MOST);
        assert_eq!(open.by_number.values().filter(|(from, _)| *from == source(2)).count(), 8);
    }

    #[test]
    fn only_addresses_and_localhost_are_served() {
        for host in ["127.0.0.1:8053", "localhost", "localhost:8053", "[::1]:8053", "192.0.2.1"] {
            assert!(is_local(Some(host)), "{host}");
        }
        assert!(!is_local(Some("evil.example")) && !is_local(Some("localhost.evil.example:8053")));
    }
}
