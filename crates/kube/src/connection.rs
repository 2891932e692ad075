//! The way to one API server: kubeconfig, context or the pod's own account; requests with a bound on time and size.
//!
//! Every answer is JSON and is read as far as the bound, never further. Retries on 429 and 503, with the pause that the
//! server asks for, are the `kube` crate's; everything else is told to the caller.

use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use futures_util::{AsyncBufRead, AsyncBufReadExt};
use http::{Method, Request};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::time::timeout;

use crate::error::{Error, Problem, Result};

/// Which cluster, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterChoice {
    /// The kubeconfig file; else `KUBECONFIG`, the usual file, or the account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; else its current one.
    pub context: Option<String>,
}

/// The way to one API server.
#[derive(Clone)]
pub struct Connection {
    client: Client,
    server: String,
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer and the longest line of a watch; an object has at most a few MiB.
const LONGEST: usize = 256 << 20;
/// The longest line of a watch.
const LONGEST_LINE: usize = 32 << 20;
/// The longest answer that says why not.
const LONGEST_REFUSAL: usize = 1 << 20;

impl Connection {
    /// Finds the cluster and its credentials; nothing is asked of it yet.
    pub async fn open(place: &ClusterChoice) -> Result<Connection> {
        let mut config = config(place).await?;
        config.connect_timeout = Some(Duration::from_secs(10));
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| Error::settings(error.to_string()))?;
        Ok(Connection { client, server })
    }

    /// The address of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The namespace that the context or the pod names.
    pub fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Reads one thing.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, None).await
    }

    /// Asks whether these credentials have a right.
    pub async fn review(&self, question: &Value) -> Result<Value> {
        self.send(Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", question).await
    }

    /// Creates an object in a collection; one of that name must not be there.
    pub async fn create(&self, folder: &str, body: &Value) -> Result<()> {
        self.send(Method::POST, folder, body).await.map(drop)
    }

    /// Sends a request with a JSON body, and reads the answer.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        self.call(method, path, Some(("application/json", body))).await
    }

    /// Server-side apply as `manager`: the fields in the body become ours, fields of ours that it lacks go.
    pub async fn apply(&self, path: &str, manager: &str, body: &Value) -> Result<Value> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.call(Method::PATCH, &path, Some(("application/apply-patch+yaml", body))).await
    }

    /// The same, unless another manager says something else about one of the fields.
    pub(crate) async fn apply_gently(&self, path: &str, manager: &str, body: &Value) -> Result<Value> {
        let path = format!("{path}?fieldManager={manager}");
        self.call(Method::PATCH, &path, Some(("application/apply-patch+yaml", body))).await
    }

    /// Changes some fields and leaves the others.
    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Result<Value> {
        self.call(Method::PATCH, path, Some(("application/merge-patch+json", body))).await
    }

    /// The lines of a watch, as they come.
    pub(crate) async fn lines(&self, path: &str) -> Result<WatchLines> {
        let words = format!("GET {path}");
        let mut request = request(Method::GET, path, None)?;
        // A compressed watch would come in pieces that are only whole at its end.
        request.headers_mut().insert("accept-encoding", http::HeaderValue::from_static("identity"));
        let answer = self.answer(&words, request).await?;
        let body = answer.into_body().into_data_stream();
        let reader = futures_util::TryStreamExt::into_async_read(futures_util::TryStreamExt::map_err(
            body,
            std::io::Error::other,
        ));
        Ok(WatchLines { reader: Box::pin(reader), words })
    }

    async fn call(&self, method: Method, path: &str, body: Option<(&'static str, &Value)>) -> Result<Value> {
        let words = format!("{method} {path}");
        let request = request(method, path, body)?;
        let read = async {
            let answer = self.answer(&words, request).await?;
            let bytes = bytes(answer.into_body(), LONGEST).await.map_err(|why| unreachable(&words, why))?;
            serde_json::from_slice(&bytes).map_err(|error| Error::new(&*words, Problem::Protocol(error.to_string())))
        };
        timeout(PATIENCE, read).await.unwrap_or_else(|_| Err(unreachable(&words, late())))
    }

    /// The head of an answer that is no refusal.
    async fn answer(&self, words: &str, request: Request<Body>) -> Result<http::Response<Body>> {
        let sent = timeout(PATIENCE, self.client.send(request)).await.map_err(|_| unreachable(words, late()))?;
        let answer = sent.map_err(|error| unreachable(words, chain(&error)))?;
        let status = answer.status().as_u16();
        if status < 400 {
            return Ok(answer);
        }
        let pause = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let body = timeout(PATIENCE, bytes(answer.into_body(), LONGEST_REFUSAL)).await;
        let text = body.ok().and_then(std::result::Result::ok).unwrap_or_default();
        let mut error = Error::of_status(words, status, message(&text));
        error.retry_after = pause.map(Duration::from_secs);
        Err(error)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", self.server)
    }
}

/// The lines of a watch.
pub(crate) struct WatchLines {
    reader: Pin<Box<dyn AsyncBufRead + Send>>,
    words: String,
}

impl WatchLines {
    /// The next whole line; nothing where the server ended the watch.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            let found = self.reader.fill_buf().await;
            // A connection that breaks ends a watch as well as the server does; half a line is no line.
            let Ok(found) = found else { return Ok(None) };
            if found.is_empty() {
                return Ok(None);
            }
            let end = found.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(found.len(), |end| end + 1);
            line.extend_from_slice(&found[..end.unwrap_or(taken)]);
            self.reader.consume_unpin(taken);
            if line.len() > LONGEST_LINE {
                return Err(Error::new(&*self.words, Problem::Protocol("a line of the watch does not end".into())));
            }
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }
}

async fn config(place: &ClusterChoice) -> Result<Config> {
    let options = KubeConfigOptions { context: place.context.clone(), cluster: None, user: None };
    let refuse = |error: String| Error::settings(error);
    match &place.kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|error| refuse(chain(&error)))?;
            Config::from_custom_kubeconfig(file, &options).await.map_err(|error| refuse(chain(&error)))
        }
        None if place.context.is_some() => {
            Config::from_kubeconfig(&options).await.map_err(|error| refuse(chain(&error)))
        }
        None => Config::infer().await.map_err(|error| refuse(chain(&error))),
    }
}

fn request(method: Method, path: &str, body: Option<(&'static str, &Value)>) -> Result<Request<Body>> {
    let words = format!("{method} {path}");
    let mut builder = Request::builder().method(method).uri(path).header("accept", "application/json");
    let bytes = match body {
        Some((kind, value)) => {
            builder = builder.header("content-type", kind);
            value.to_string().into_bytes()
        }
        None => Vec::new(),
    };
    builder.body(Body::from(bytes)).map_err(|error| Error::new(words, Problem::Settings(error.to_string())))
}

async fn bytes(body: Body, most: usize) -> std::result::Result<Vec<u8>, String> {
    let collected = Limited::new(body, most).collect().await.map_err(|error| error.to_string())?;
    Ok(collected.to_bytes().to_vec())
}

/// The server's words, which it puts into a Status.
fn message(body: &[u8]) -> String {
    let status: Option<Value> = serde_json::from_slice(body).ok();
    let words = status.as_ref().and_then(|status| status.get("message")?.as_str());
    words.map_or_else(|| String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned(), str::to_owned)
}

fn unreachable(request: &str, why: impl Into<String>) -> Error {
    Error::new(request, Problem::Unreachable(why.into()))
}

fn late() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let mut words = error.to_string();
    for cause in causes.map(ToString::to_string) {
        if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}
