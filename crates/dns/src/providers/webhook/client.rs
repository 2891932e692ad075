//! Questions and answers over HTTP/1.1: bounded in time and size, no redirects, nothing repeated.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use super::{MAX_BODY, MEDIA_TYPE};
use crate::provider::http::{Cause, retry_after};
use crate::provider::{ProviderError, ProviderProblem, Result};

/// A webhook server to talk to.
pub(super) struct Client {
    base: String,
    pool: Pool<HttpConnector, Full<Bytes>>,
    patience: Duration,
}

/// What goes with a question.
pub(super) enum Body {
    None,
    Json(Vec<u8>),
}

/// An answer, read to its end.
pub(super) struct WebhookResponse {
    question: String,
    server: String,
    status: u16,
    content_type: String,
    retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

impl Client {
    /// A client for this address.
    pub(super) fn new(url: &str, patience: Duration) -> Result<Client> {
        let refuse = |cause: &str| ProviderError::settings(format!("--webhook-provider-url `{url}`: {cause}"));
        let uri: Uri = url.parse().map_err(|_| refuse("this is not a URL"))?;
        match uri.scheme_str() {
            Some("http") if uri.host().is_some() && uri.query().is_none() => {}
            Some("https") => return Err(refuse("the protocol is meant for a sidecar and has no TLS; use http")),
            _ => return Err(refuse("it must be http://HOST:PORT")),
        }
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(patience));
        connector.set_nodelay(true);
        // A fresh connection each time: one that was kept may be closed by the server just as a change is sent.
        let pool = Pool::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Client { base: url.trim_end_matches('/').to_owned(), pool, patience })
    }

    /// Asks, and waits for the whole answer.
    pub(super) async fn ask(&self, method: &str, path: &str, body: Body) -> Result<WebhookResponse> {
        let question = format!("{method} /{path}");
        let is_write = method == "POST" && path == "records";
        let request = self.request(method, path, body)?;
        match timeout(self.patience, self.round_trip(request, &question)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(cause)) => Err(self.failure(&question, is_write, cause)),
            Err(_) => {
                let cause = format!("no answer within {} s", self.patience.as_secs_f32());
                Err(self.failure(&question, is_write, Cause::Broken(cause)))
            }
        }
    }

    /// An answer that cannot be used.
    pub(super) fn wrong(&self, cause: impl Into<String>) -> ProviderError {
        ProviderError::protocol(cause).at(self)
    }

    fn request(&self, method: &str, path: &str, body: Body) -> Result<Request<Full<Bytes>>> {
        let builder = Request::builder().method(method).uri(format!("{}/{path}", self.base));
        let builder = if (method, path) == ("POST", "records") { builder } else { builder.header(ACCEPT, MEDIA_TYPE) };
        let (builder, bytes) = match body {
            Body::None => (builder, Bytes::new()),
            Body::Json(bytes) => (builder.header(CONTENT_TYPE, MEDIA_TYPE), bytes.into()),
        };
        builder.body(Full::new(bytes)).map_err(|error| self.wrong(error.to_string()))
    }

    async fn round_trip(
        &self,
        request: Request<Full<Bytes>>,
        question: &str,
    ) -> std::result::Result<WebhookResponse, Cause> {
        let response = self.pool.request(request).await.map_err(Cause::of_request)?;
        let (head, body) = response.into_parts();
        let body =
            Limited::new(body, MAX_BODY).collect().await.map_err(|error| Cause::of_body(error, MAX_BODY))?.to_bytes();
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Ok(WebhookResponse {
            question: question.to_owned(),
            server: self.to_string(),
            status: head.status.as_u16(),
            content_type: content_type.to_owned(),
            retry_after: retry_after(&head.headers),
            body,
        })
    }

    fn failure(&self, question: &str, is_write: bool, cause: Cause) -> ProviderError {
        let problem = match cause {
            Cause::NotConnected(cause) => ProviderProblem::Unreachable(cause),
            Cause::Broken(cause) if is_write => ProviderProblem::Lost(cause),
            Cause::Broken(cause) => ProviderProblem::Incomplete(format!("{question}: {cause}")),
        };
        ProviderError::new(problem).at(self)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

impl WebhookResponse {
    /// The status must be this one exactly.
    pub(super) fn expect(&self, status: u16) -> Result<()> {
        if self.status == status {
            return Ok(());
        }
        let code = format!("status {}", self.status);
        let meaning =
            format!("{} must be answered with {status}{}", self.question, super::endpoint::opening(&self.body));
        let problem = match self.status {
            408 | 425 | 429 | 500..=599 => ProviderProblem::Failed { code, meaning },
            400..=499 => ProviderProblem::Refused { code, meaning },
            // A change may have been made, whatever an odd status means.
            _ if self.is_write() => ProviderProblem::Lost(format!("{code}; {meaning}")),
            _ => ProviderProblem::Protocol(format!("{code}; {meaning}")),
        };
        Err(ProviderError { retry_after: self.retry_after, ..ProviderError::new(problem).at(&self.server) })
    }

    /// The media type must be the one of the protocol, letter by letter.
    pub(super) fn expect_exact_type(&self) -> Result<()> {
        self.judge_type(self.content_type == MEDIA_TYPE)
    }

    /// The media type must be the one of the protocol or plain JSON.
    pub(super) fn expect_type(&self) -> Result<()> {
        let plain: String = self.content_type.chars().filter(|c| *c != ' ').collect::<String>().to_ascii_lowercase();
        self.judge_type(plain == MEDIA_TYPE || plain.split(';').next() == Some("application/json"))
    }

    /// Whether one change of many may be the cause of the status.
    pub(super) fn may_be_one_change(&self) -> bool {
        matches!(self.status, 400 | 409 | 413 | 422 | 500)
    }

    fn is_write(&self) -> bool {
        self.question == "POST /records"
    }

    fn judge_type(&self, good: bool) -> Result<()> {
        if good {
            return Ok(());
        }
        let (question, found) = (&self.question, &self.content_type);
        let begin = super::endpoint::opening(&self.body);
        let cause = format!("{question}: the content type is `{found}`, and must be `{MEDIA_TYPE}`{begin}");
        Err(ProviderError::new(ProviderProblem::Incomplete(cause)).at(&self.server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["http://localhost:8888", "http://127.0.0.1:8888/", "http://[::1]:8888/base"] {
            assert!(Client::new(good, Duration::from_secs(1)).is_ok(), "{good}");
        }
        for bad in ["https://localhost:8888", "localhost:8888", "/records", "http://", "ftp://x", "http://x/?a=b", ""] {
            let error = Client::new(bad, Duration::from_secs(1)).err().unwrap().to_string();
            assert!(error.contains("--webhook-provider-url"), "{error}");
        }
    }
}
