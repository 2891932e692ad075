//! Questions and answers over HTTPS: bounded in time and size, no redirects, nothing repeated, the token never shown.
//!
//! When the service says that its limit is reached nothing more is asked until the time that it names: each question before
//! then would only prolong the block.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::settings::CloudflareConfig;
use super::wire::{ApiProblem, Envelope, PageInfo};
use crate::provider::http::connections::{AGENT, HttpAnswer, HttpConnections};
use crate::provider::http::{Cause, LONGEST_WAIT, brief, is_loopback, opening, retry_after};
use crate::provider::settings::SecretText;
use crate::provider::{ProviderError, ProviderProblem, Result};

/// The largest answer that is taken: 5,000 records have less than a tenth of it.
const MAX_BODY: usize = 32 << 20;

/// How long a block lasts where the service does not say.
const BLOCK: Duration = Duration::from_secs(300);

/// What a missing right looks like, and which rights are needed.
const RIGHTS: &str = "the token needs the rights Zone / Zone / Read and Zone / DNS / Edit for the zone, and must not have \
                      expired";

/// Codes that say that a token is missing, malformed, unknown or not allowed to.
const OF_TOKENS: [i64; 7] = [1000, 6003, 6111, 9103, 9106, 9109, 10000];

/// Codes that say that a record is not as it was: one like it exists, one of a conflicting type does, or it is gone.
const OF_STATE: [i64; 5] = [81044, 81053, 81054, 81057, 81058];

/// The API, and the right to ask it.
pub(super) struct ApiClient {
    base: String,
    token: SecretText,
    bearer: HeaderValue,
    connections: HttpConnections,
    blocked_until: Mutex<Option<Instant>>,
}

/// What came back for a question, when it succeeded.
pub(super) struct ApiResult<T> {
    pub(super) result: T,
    pub(super) page: Option<PageInfo>,
}

/// Why a question failed.
pub(super) struct ApiFailure {
    pub(super) error: Box<ProviderError>,
    /// Nothing was done, and one change of several may be the cause.
    pub(super) may_be_one_change: bool,
}

impl ApiClient {
    /// A client with these settings.
    pub(super) fn new(config: &CloudflareConfig) -> Result<ApiClient> {
        check_url(&config.url)?;
        let wrong =
            |_| ProviderError::settings("--cloudflare-api-token-file: the token has characters that no token has");
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", config.token.reveal())).map_err(wrong)?;
        bearer.set_sensitive(true);
        let connections = HttpConnections::new(config.timeout)?;
        let (base, token) = (config.url.trim_end_matches('/').to_owned(), config.token.clone());
        Ok(ApiClient { base, token, bearer, connections, blocked_until: Mutex::default() })
    }

    /// Reads something.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<ApiResult<T>> {
        self.ask(Method::GET, path, Vec::new()).await.map_err(|failure| *failure.error)
    }

    /// Changes something.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Vec<u8>,
    ) -> std::result::Result<ApiResult<T>, ApiFailure> {
        self.ask(Method::POST, path, body).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> std::result::Result<ApiResult<T>, ApiFailure> {
        self.check_block().map_err(ApiFailure::of)?;
        let is_write = method == Method::POST;
        let question = format!("{method} /{}", path.split('?').next().unwrap_or_default());
        let request = self.request(method, path, body).map_err(ApiFailure::of)?;
        let cause = match self.connections.send(request, MAX_BODY).await {
            Ok(answer) => return self.judge(&question, is_write, &answer),
            Err(cause) => cause,
        };
        let problem = match cause {
            Cause::NotConnected(cause) => ProviderProblem::Unreachable(self.scrubbed(&cause)),
            Cause::Broken(cause) if is_write => ProviderProblem::Lost(self.scrubbed(&cause)),
            Cause::Broken(cause) => ProviderProblem::Incomplete(format!("{question}: {}", self.scrubbed(&cause))),
        };
        Err(ApiFailure::of(ProviderError::new(problem).at(self)))
    }

    fn request(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Request<Full<Bytes>>> {
        let mut builder = Request::builder().method(method).uri(format!("{}/{path}", self.base));
        builder = builder.header(AUTHORIZATION, self.bearer.clone()).header(USER_AGENT, AGENT);
        if !body.is_empty() {
            builder = builder.header(CONTENT_TYPE, "application/json");
        }
        builder.body(Full::new(body.into())).map_err(|error| ProviderError::protocol(error.to_string()).at(self))
    }

    /// What an answer says.
    fn judge<T: DeserializeOwned>(
        &self,
        question: &str,
        is_write: bool,
        answer: &HttpAnswer,
    ) -> std::result::Result<ApiResult<T>, ApiFailure> {
        self.note_limit(answer);
        if !answer.status.is_success() {
            return Err(self.refusal(question, is_write, answer));
        }
        let envelope: Envelope<T> =
            serde_json::from_slice(&answer.body).map_err(|error| self.odd(question, is_write, &error.to_string()))?;
        match (envelope.success, envelope.result) {
            (true, Some(result)) => Ok(ApiResult { result, page: envelope.result_info }),
            _ => Err(self.odd(question, is_write, &format!("no success; {}", problems(&envelope.errors)))),
        }
    }

    /// An answer that says yes and cannot be used.
    fn odd(&self, question: &str, is_write: bool, cause: &str) -> ApiFailure {
        let cause = self.scrubbed(&format!("{question}: {cause}"));
        // A change may have been made, whatever the answer means.
        let problem = if is_write { ProviderProblem::Lost(cause) } else { ProviderProblem::Incomplete(cause) };
        ApiFailure::of(ProviderError::new(problem).at(self))
    }

    /// An answer that says no.
    fn refusal(&self, question: &str, is_write: bool, answer: &HttpAnswer) -> ApiFailure {
        let found = serde_json::from_slice::<Envelope<IgnoredAny>>(&answer.body);
        let errors = found.map(|envelope| envelope.errors).unwrap_or_default();
        let codes: Vec<i64> =
            errors.iter().flat_map(|error| [error].into_iter().chain(&error.error_chain)).map(|e| e.code).collect();
        let has = |known: &[i64]| codes.iter().any(|code| known.contains(code));
        let status = answer.status.as_u16();
        let code = match codes.first() {
            Some(first) => format!("status {status}, code {first}"),
            None => format!("status {status}"),
        };
        let told = self.scrubbed(&if errors.is_empty() { opening(&answer.body) } else { problems(&errors) });
        let meaning = format!("{question}: {told}");
        let is_of_token = matches!(status, 401 | 403) || has(&OF_TOKENS);
        let problem = match status {
            408 | 425 | 429 | 500..=599 => ProviderProblem::Failed { code, meaning },
            _ if is_of_token => ProviderProblem::Refused { code, meaning: format!("{meaning}; {RIGHTS}") },
            400..=499 if has(&OF_STATE) => ProviderProblem::Stale(format!("{code}: {told}")),
            400..=499 => ProviderProblem::Refused { code, meaning },
            // A change may have been made, whatever an odd status means.
            _ if is_write => ProviderProblem::Lost(format!("{code}; {meaning}")),
            _ => ProviderProblem::Protocol(format!("{code}; {meaning}")),
        };
        let wait = retry_after(&answer.headers).or_else(|| (status == 429).then(|| self.left()).flatten());
        let error = ProviderError { retry_after: wait, ..ProviderError::new(problem).at(self) };
        let may_be_one_change = matches!(status, 400 | 404 | 409 | 413 | 422) && !is_of_token;
        ApiFailure { error: Box::new(error), may_be_one_change }
    }

    /// Remembers until when the service is not to be asked.
    fn note_limit(&self, answer: &HttpAnswer) {
        let wait = if answer.status == StatusCode::TOO_MANY_REQUESTS {
            Some(retry_after(&answer.headers).or_else(|| used_up(&answer.headers)).unwrap_or(BLOCK))
        } else {
            used_up(&answer.headers)
        };
        if let Some(wait) = wait {
            let until = Instant::now().checked_add(wait.min(LONGEST_WAIT));
            *self.blocked_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }

    /// How long nothing is to be asked.
    fn left(&self) -> Option<Duration> {
        let until = (*self.blocked_until.lock().unwrap_or_else(PoisonError::into_inner))?;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    fn check_block(&self) -> Result<()> {
        let Some(left) = self.left() else { return Ok(()) };
        let meaning = format!("the limit of requests is reached; nothing is asked for {} s", left.as_secs() + 1);
        let problem = ProviderProblem::Failed { code: "rate limit".to_owned(), meaning };
        Err(ProviderError { retry_after: Some(left), ..ProviderError::new(problem).at(self) })
    }

    /// A text of somebody else, without the token.
    fn scrubbed(&self, text: &str) -> String {
        text.replace(self.token.reveal(), "…")
    }
}

impl ApiFailure {
    fn of(error: ProviderError) -> ApiFailure {
        ApiFailure { error: Box::new(error), may_be_one_change: false }
    }
}

impl fmt::Display for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// How long to wait where a `Ratelimit` header says that nothing is left: `"default";r=0;t=30`.
fn used_up(headers: &HeaderMap) -> Option<Duration> {
    let limits =
        headers.get_all("ratelimit").iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    let waits = limits.filter_map(|limit| {
        let number = |key: &str| limit.split(';').find_map(|part| part.trim().strip_prefix(key)?.parse::<u64>().ok());
        (number("r=")? == 0).then(|| Duration::from_secs(number("t=").unwrap_or(BLOCK.as_secs())).min(LONGEST_WAIT))
    });
    waits.max()
}

/// All problems of an answer as one text.
fn problems(errors: &[ApiProblem]) -> String {
    let all = errors.iter().flat_map(|error| [error].into_iter().chain(&error.error_chain));
    let all: Vec<String> = all.take(5).map(|error| format!("{} ({})", brief(&error.message), error.code)).collect();
    if all.is_empty() { "the answer names no error".to_owned() } else { all.join("; ") }
}

fn check_url(url: &str) -> Result<()> {
    let refuse = |cause: &str| Err(ProviderError::settings(format!("--cloudflare-api-url `{url}`: {cause}")));
    let Ok(uri) = url.parse::<Uri>() else { return refuse("this is not a URL") };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = is_loopback(host);
    match uri.scheme_str() {
        _ if host.is_empty() || uri.query().is_some() => refuse("it must be https://HOST/PATH"),
        Some("https") => Ok(()),
        Some("http") if is_here => Ok(()),
        Some("http") => refuse("the token would travel in clear text; use https"),
        _ => refuse("it must be https://HOST/PATH"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in
            ["https://api.cloudflare.com/client/v4", "http://127.0.0.1:1/x/", "http://[::1]:80", "http://localhost"]
        {
            assert!(check_url(good).is_ok(), "{good}");
        }
        for bad in ["http://api.cloudflare.com", "http://192.0.2.1", "ftp://x", "x", "", "https://x/?a=b", "/client"] {
            let error = check_url(bad).unwrap_err().to_string();
            assert!(error.contains("--cloudflare-api-url"), "{error}");
        }
    }

    #[test]
    fn limits_that_are_used_up() {
        let rows = [
            ("\"default\";r=50;t=30", None),
            ("\"default\";r=0;t=30", Some(30)),
            ("\"burst\";r=3;t=1, \"default\";r=0;t=99999", Some(3600)),
            ("\"default\";r=0", Some(300)),
            ("nonsense", None),
        ];
        for (text, expected) in rows {
            let headers = HeaderMap::from_iter([("ratelimit".parse().unwrap(), text.parse().unwrap())]);
            assert_eq!(used_up(&headers).map(|wait| wait.as_secs()), expected, "{text}");
        }
    }

    #[test]
    fn a_token_that_is_none_is_refused_and_not_shown() {
        let error = ApiClient::new(&CloudflareConfig::new("can\nary")).err().unwrap().to_string();
        assert!(error.contains("--cloudflare-api-token-file") && !error.contains("ary"), "{error}");
    }
}
