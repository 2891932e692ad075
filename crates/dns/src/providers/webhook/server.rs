//! Any of our providers behind the webhook protocol, so that external-dns can use it.
//!
//! Bodies, headers, connections and time are bounded. A change carries what external-dns read before as its precondition. A
//! record and its TXT of ownership become one step, because they name each other.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gatepost_core::names;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ring::digest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::endpoint::{self, Changes, Endpoint};
use super::{MAX_BODY, MEDIA_TYPE};
use crate::provider::Shared;

mod requests;

/// Where it listens unless told otherwise, as external-dns has it.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:8888";

/// Takes what people should know about.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// A provider behind the protocol.
#[derive(Clone)]
pub struct WebhookService {
    provider: Shared,
    limits: RequestLimits,
    log: Log,
    /// The hash of the token that requests must bear.
    token: Option<digest::Digest>,
}

/// How much is taken from a client.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Bytes of a body.
    pub body: usize,
    /// Connections at once.
    pub connections: usize,
    /// Time for the headers of a request, idle time before them included.
    pub headers: Duration,
    /// Time for the body of a request.
    pub reading: Duration,
}

type Reply = Response<Full<Bytes>>;

impl Default for RequestLimits {
    fn default() -> Self {
        let (headers, reading) = (Duration::from_secs(30), Duration::from_secs(10));
        RequestLimits { body: MAX_BODY, connections: 64, headers, reading }
    }
}

impl WebhookService {
    /// A server for this provider with the usual limits, which tells nobody what it does.
    pub fn new(provider: Shared) -> WebhookService {
        WebhookService { provider, limits: RequestLimits::default(), log: Arc::new(|_| ()), token: None }
    }

    /// The same with other limits.
    pub fn with_limits(self, limits: RequestLimits) -> WebhookService {
        WebhookService { limits, ..self }
    }

    /// The same, telling this function what goes wrong.
    pub fn with_log(self, log: Log) -> WebhookService {
        WebhookService { log, ..self }
    }

    /// The same for those only who bear this token. Without one, only who asks by an address or `localhost` is answered: a
    /// page in a browser reaches this address under a name of its own.
    pub fn with_token(self, token: &str) -> WebhookService {
        WebhookService { token: Some(hash(token)), ..self }
    }

    /// Answers on a socket until it is dropped.
    pub async fn serve(self, listener: TcpListener) {
        self.serve_until(listener, std::future::pending()).await;
    }

    /// Answers on a socket until it is told to stop; then questions that are under way are still answered, for some time.
    pub async fn serve_until(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let (limits, stopping) = (self.limits, watch::Sender::new(false));
        let places = Arc::new(Semaphore::new(limits.connections));
        tokio::select! {
            () = self.accept(listener, &places, &stopping) => {}
            () = stop => {}
        }
        stopping.send_replace(true);
        let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
        // Who takes longer is cut off.
        let _ = timeout(limits.reading, places.acquire_many(all)).await;
    }

    async fn accept(self, listener: TcpListener, places: &Arc<Semaphore>, stopping: &watch::Sender<bool>) {
        loop {
            // The semaphore is never closed.
            let Ok(place) = places.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (server, stopped) = (self.clone(), stopping.subscribe());
                    tokio::spawn(async move {
                        server.converse(stream, stopped).await;
                        drop(place);
                    });
                }
                // Too many open files, most of the time: wait for some to be closed.
                Err(error) => {
                    (self.log)(&format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn converse(self, stream: TcpStream, mut stopped: watch::Receiver<bool>) {
        let (headers, log) = (self.limits.headers, self.log.clone());
        let service = service_fn(move |request| {
            let server = self.clone();
            async move { Ok::<_, Infallible>(server.respond(request).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(headers).max_buf_size(64 << 10);
        let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = until_stopped(&mut stopped) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended
            && !error.is_timeout()
        {
            log(&format!("a connection broke off: {error}"));
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Reply {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        if let Some(refusal) = self.refusal(&request).filter(|_| path != "/healthz") {
            return refusal;
        }
        let reply = match (&method, path.as_str()) {
            (&Method::GET, "/") => self.negotiate().await,
            (&Method::GET, "/healthz") => Ok(text(StatusCode::OK, "ok\n")),
            (&Method::GET, "/records") => self.records().await,
            (&Method::POST, "/records") => self.apply(request).await,
            (&Method::POST, "/adjustendpoints") => self.adjust(request).await,
            (_, "/" | "/healthz") => Ok(not_allowed("GET")),
            (_, "/records") => Ok(not_allowed("GET, POST")),
            (_, "/adjustendpoints") => Ok(not_allowed("POST")),
            _ => Ok(text(StatusCode::NOT_FOUND, "not found\n")),
        };
        reply.unwrap_or_else(|failure| {
            (self.log)(&format!("{method} {path}: {}", failure.message));
            text(failure.status, &format!("{}\n", failure.message))
        })
    }

    /// The answer to who may not ask.
    fn refusal(&self, request: &Request<Incoming>) -> Option<Reply> {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let Some(token) = &self.token else {
            let is_local = header(HOST).is_none_or(is_local);
            let message = "without --webhook-token-file only an address or `localhost` is served as Host\n";
            return (!is_local).then(|| text(StatusCode::FORBIDDEN, message));
        };
        let given = header(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        // Hashes are compared, so that the time of a comparison tells nothing about the token.
        let is_known = given.is_some_and(|given| hash(given).as_ref() == token.as_ref());
        (!is_known).then(|| text(StatusCode::UNAUTHORIZED, "the bearer token of --webhook-token-file is required\n"))
    }

    async fn body(&self, request: Request<Incoming>) -> Result<Bytes, RequestFailure> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if kind.replace(' ', "") != MEDIA_TYPE {
            let message = format!("the content type must be {MEDIA_TYPE}");
            return Err(RequestFailure { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, message });
        }
        let whole = Limited::new(request.into_body(), self.limits.body).collect();
        match timeout(self.limits.reading, whole).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let message = format!("the body is larger than {} bytes", self.limits.body);
                Err(RequestFailure { status: StatusCode::PAYLOAD_TOO_LARGE, message })
            }
            Ok(Err(error)) => Err(RequestFailure::bad(format!("the body broke off: {error}"))),
            Err(_) => {
                Err(RequestFailure { status: StatusCode::REQUEST_TIMEOUT, message: "the body took too long".into() })
            }
        }
    }

    async fn apply(&self, request: Request<Incoming>) -> Result<Reply, RequestFailure> {
        let body = self.body(request).await?;
        let changes: Changes = serde_json::from_slice(&body)
            .map_err(|error| RequestFailure::bad(format!("these are not changes: {error}")))?;
        requests::apply(&*self.provider, &changes).await?;
        Ok(empty())
    }

    async fn adjust(&self, request: Request<Incoming>) -> Result<Reply, RequestFailure> {
        let body = self.body(request).await?;
        let endpoints = endpoint::parse_list(&body).map_err(RequestFailure::bad)?;
        json(&requests::adjust(&*self.provider, endpoints).await?)
    }

    async fn records(&self) -> Result<Reply, RequestFailure> {
        let endpoints: Vec<Endpoint> = requests::records(&*self.provider).await?;
        json(&endpoints)
    }

    async fn negotiate(&self) -> Result<Reply, RequestFailure> {
        json(&requests::filter(&*self.provider).await?)
    }
}

impl fmt::Debug for WebhookService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookService")
            .field("provider", &self.provider)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

fn hash(token: &str) -> digest::Digest {
    digest::digest(&digest::SHA256, token.as_bytes())
}

/// Whether a Host header names an address or this machine.
fn is_local(host: &str) -> bool {
    let name = host.parse::<SocketAddr>().map_or_else(|_| names::host_of(host), |address| address.ip().to_string());
    name == "localhost" || names::is_ip(&name)
}

/// Ends when it is time to stop.
async fn until_stopped(stopped: &mut watch::Receiver<bool>) {
    // The sender outlives every connection that is waited for; without it there is nobody left to stop for.
    let _ = stopped.wait_for(|stopped| *stopped).await.is_ok();
}

/// Why a request was not carried out.
struct RequestFailure {
    status: StatusCode,
    message: String,
}

impl RequestFailure {
    /// The request itself is wrong.
    fn bad(message: impl Into<String>) -> RequestFailure {
        RequestFailure { status: StatusCode::BAD_REQUEST, message: message.into() }
    }
}

/// external-dns takes 500 for something that may pass, and ends itself on anything else.
impl From<crate::provider::ProviderError> for RequestFailure {
    fn from(error: crate::provider::ProviderError) -> RequestFailure {
        RequestFailure { status: StatusCode::INTERNAL_SERVER_ERROR, message: error.to_string() }
    }
}

fn json(value: &impl serde::Serialize) -> Result<Reply, RequestFailure> {
    let failed = |error: serde_json::Error| RequestFailure {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        message: error.to_string(),
    };
    let mut reply = Response::new(Full::new(serde_json::to_vec(value).map_err(failed)?.into()));
    reply.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(MEDIA_TYPE));
    Ok(reply)
}

fn text(status: StatusCode, message: &str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::copy_from_slice(message.as_bytes())));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("text/plain; charset=utf-8"));
    reply
}

fn empty() -> Reply {
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = StatusCode::NO_CONTENT;
    reply
}

fn not_allowed(allowed: &'static str) -> Reply {
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
    reply.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static(allowed));
    reply
}
