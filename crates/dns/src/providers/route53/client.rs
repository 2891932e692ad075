//! Signed questions and answers: bounded in time, size and pace, no redirects, nothing repeated, no key shown.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use jiff::Timestamp;

use super::credentials::{CredentialSource, Credentials};
use super::pace::Pace;
use super::settings::Route53Config;
use super::signing::{self, SignedParts, SigningScope};
use super::wire::{self, ErrorAnswer, Odd};
use crate::provider::http::connections::{AGENT, HttpAnswer, HttpConnections};
use crate::provider::http::{Cause, brief, is_loopback, opening, retry_after};
use crate::provider::{ProviderError, ProviderProblem, Result};

/// The largest answer that is taken: 300 record sets with texts of 4,000 characters have a tenth of it.
const MAX_BODY: usize = 32 << 20;

/// So much of a message is told; a batch that is refused names each record.
const TOLD: usize = 600;

/// Where to read which rights are needed.
const RIGHTS: &str = "the rights that are needed are in docs/providers/route53.md";

/// Errors of a batch for which one change of several may be the cause, beside `InvalidChangeBatch`.
const OF_CHANGES: [&str; 4] = ["InvalidInput", "MalformedInput", "InvalidArgument", "NoSuchHealthCheck"];

/// Errors that pass by themselves: too many questions, or another change of the zone is not done yet.
const BUSY: [&str; 5] =
    ["Throttling", "ThrottlingException", "PriorRequestNotComplete", "ServiceUnavailable", "TooManyRequestsException"];

/// Errors of credentials that are fetched again.
const EXPIRED: [&str; 3] = ["ExpiredToken", "ExpiredTokenException", "RequestExpired"];

/// How a record shows in the message of a batch that is refused that it is not as it was read.
const OF_STATE: [&str; 5] = [
    "do not match the current values",
    "was not found",
    "already exists",
    "not permitted because a conflicting RRSet",
    "conflicts with other records",
];

/// The API, and the right to ask it.
pub(super) struct AwsClient {
    base: String,
    scope: SigningScope,
    credentials: CredentialSource,
    connections: HttpConnections,
    pace: Pace,
}

/// Why a question failed.
pub(super) struct AwsFailure {
    pub(super) error: Box<ProviderError>,
    /// Nothing was done, and one change of several may be the cause.
    pub(super) may_be_one_change: bool,
}

/// A question.
pub(super) struct AwsQuestion<'a> {
    pub(super) path: &'a str,
    pub(super) query: &'a [(&'a str, &'a str)],
    /// What is sent, where something is.
    pub(super) body: Option<String>,
    /// Whether something is changed.
    pub(super) is_write: bool,
}

impl AwsClient {
    /// A client with these settings.
    pub(super) fn new(config: &Route53Config) -> Result<AwsClient> {
        let (url, region) = config.endpoint();
        check_url("--aws-endpoint-url", &url)?;
        Ok(AwsClient {
            base: url.trim_end_matches('/').to_owned(),
            scope: SigningScope { region, service: "route53" },
            credentials: config.credentials(),
            connections: HttpConnections::new(config.timeout)?,
            pace: Pace::new(config.calls_per_second),
        })
    }

    /// Reads something.
    pub(super) async fn get<T>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        read: impl FnOnce(&[u8]) -> std::result::Result<T, Odd>,
    ) -> Result<T> {
        self.ask(AwsQuestion { path, query, body: None, is_write: false }, read).await.map_err(|failure| *failure.error)
    }

    /// Asks, and reads the answer.
    pub(super) async fn ask<T>(
        &self,
        question: AwsQuestion<'_>,
        read: impl FnOnce(&[u8]) -> std::result::Result<T, Odd>,
    ) -> std::result::Result<T, AwsFailure> {
        self.pace.take().await;
        let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH);
        let credentials = self.credentials.get(now).await.map_err(AwsFailure::of)?;
        let request = self.request(&question, &credentials, now).map_err(AwsFailure::of)?;
        let asked = Asked { client: self, credentials: &credentials, question: &question };
        match self.connections.send(request, MAX_BODY).await {
            Ok(answer) if answer.status == StatusCode::OK => {
                read(&answer.body).map_err(|cause| asked.odd(&format!("{cause}; {}", opening(&answer.body))))
            }
            Ok(answer) => Err(self.refused(&asked, &answer).await),
            Err(Cause::NotConnected(cause)) => Err(asked.failure(ProviderProblem::Unreachable(cause))),
            Err(Cause::Broken(cause)) => Err(asked.odd(&cause)),
        }
    }

    fn request(
        &self,
        question: &AwsQuestion<'_>,
        credentials: &Credentials,
        now: Timestamp,
    ) -> Result<Request<Full<hyper::body::Bytes>>> {
        let method = if question.body.is_some() { Method::POST } else { Method::GET };
        let body = question.body.clone().unwrap_or_default();
        let host = self.base.split("://").nth(1).unwrap_or_default();
        let parts = SignedParts {
            method: method.as_str(),
            host,
            path: question.path,
            query: question.query,
            body: body.as_bytes(),
        };
        let mark = if question.query.is_empty() { "" } else { "?" };
        let uri = format!("{}{}{mark}{}", self.base, question.path, signing::query_text(question.query));
        let mut builder = Request::builder().method(&method).uri(uri).header(HOST, host).header(USER_AGENT, AGENT);
        for (name, value) in signing::headers(&parts, &self.scope, credentials, now) {
            builder = builder.header(name, value);
        }
        if method == Method::POST {
            builder = builder.header(CONTENT_TYPE, "application/xml");
        }
        // The error would show the header that is wrong.
        let wrong = |_| ProviderError::settings("AWS credentials with characters that none have").at(self);
        builder.body(Full::new(body.into())).map_err(wrong)
    }

    /// An answer that says no.
    async fn refused(&self, asked: &Asked<'_>, answer: &HttpAnswer) -> AwsFailure {
        let found = ErrorAnswer::read(&answer.body);
        let name = found.as_ref().map(|error| wire::plain_code(&error.code)).unwrap_or_default();
        if EXPIRED.contains(&&*name) {
            self.credentials.forget().await;
        }
        let is_busy = BUSY.contains(&&*name) || answer.status == StatusCode::TOO_MANY_REQUESTS;
        if is_busy {
            self.pace.empty().await;
        }
        let wait = retry_after(&answer.headers).or_else(|| is_busy.then(pause));
        asked.refusal(answer, &name, found, wait)
    }
}

/// A question that was asked, for messages.
struct Asked<'a> {
    client: &'a AwsClient,
    credentials: &'a Credentials,
    question: &'a AwsQuestion<'a>,
}

impl Asked<'_> {
    fn refusal(
        &self,
        answer: &HttpAnswer,
        name: &str,
        found: Option<ErrorAnswer>,
        wait: Option<Duration>,
    ) -> AwsFailure {
        let status = answer.status.as_u16();
        let told = found.map_or_else(|| opening(&answer.body), |error| error.message);
        let told: String = told.chars().filter(|c| !c.is_control()).take(TOLD).collect();
        let code = if name.is_empty() { format!("status {status}") } else { format!("status {status}, {name}") };
        let meaning = format!("{}: {told}", self.title());
        let is_of_state = name == "InvalidChangeBatch" && OF_STATE.iter().any(|part| told.contains(part));
        let problem = match (status, name) {
            (408 | 429 | 500..=599, _) => ProviderProblem::Failed { code, meaning },
            _ if BUSY.contains(&name) || EXPIRED.contains(&name) => ProviderProblem::Failed { code, meaning },
            // What the service has to say about it repeats the request with its token.
            (_, "SignatureDoesNotMatch") => {
                let meaning = format!("{}: the secret access key is not that of its id", self.title());
                ProviderProblem::Refused { code, meaning }
            }
            (401 | 403, _) => ProviderProblem::Refused { code, meaning: format!("{meaning}; {RIGHTS}") },
            _ if is_of_state => ProviderProblem::Stale(format!("{code}: {told}")),
            (_, "InvalidChangeBatch") => ProviderProblem::Unwritable(format!("{code}: {told}")),
            _ if OF_CHANGES.contains(&name) && self.question.is_write => {
                ProviderProblem::Unwritable(format!("{code}: {told}"))
            }
            (400..=499, _) => ProviderProblem::Refused { code, meaning },
            // A change may have been made, whatever an odd status means.
            _ if self.question.is_write => ProviderProblem::Lost(format!("{code}; {meaning}")),
            _ => ProviderProblem::Protocol(format!("{code}; {meaning}")),
        };
        let mut failure = self.failure(problem);
        failure.error.retry_after = wait;
        failure.may_be_one_change =
            status < 500 && self.question.is_write && (name == "InvalidChangeBatch" || OF_CHANGES.contains(&name));
        failure
    }

    /// An answer that cannot be used, or does not come.
    fn odd(&self, cause: &str) -> AwsFailure {
        let cause = format!("{}: {cause}", self.title());
        // A change may have been made, whatever the answer means.
        self.failure(match self.question.is_write {
            true => ProviderProblem::Lost(cause),
            false => ProviderProblem::Incomplete(cause),
        })
    }

    fn failure(&self, problem: ProviderProblem) -> AwsFailure {
        let clean = |text: &str| self.credentials.scrubbed(text);
        let problem = match problem {
            ProviderProblem::Failed { code, meaning } => ProviderProblem::Failed { code, meaning: clean(&meaning) },
            ProviderProblem::Refused { code, meaning } => ProviderProblem::Refused { code, meaning: clean(&meaning) },
            ProviderProblem::Unreachable(text) => ProviderProblem::Unreachable(clean(&text)),
            ProviderProblem::Lost(text) => ProviderProblem::Lost(clean(&text)),
            ProviderProblem::Incomplete(text) => ProviderProblem::Incomplete(clean(&text)),
            ProviderProblem::Protocol(text) => ProviderProblem::Protocol(clean(&text)),
            ProviderProblem::Stale(text) => ProviderProblem::Stale(clean(&text)),
            ProviderProblem::Unwritable(text) => ProviderProblem::Unwritable(clean(&text)),
            other => other,
        };
        AwsFailure::of(ProviderError::new(problem).at(self.client))
    }

    fn title(&self) -> String {
        let method = if self.question.body.is_some() { "POST" } else { "GET" };
        format!("{method} {}", brief(self.question.path))
    }
}

impl AwsFailure {
    fn of(error: ProviderError) -> AwsFailure {
        AwsFailure { error: Box::new(error), may_be_one_change: false }
    }
}

impl fmt::Display for AwsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// From one to three seconds, so that several programs do not come back together.
fn pause() -> Duration {
    Duration::from_millis(1000 + RandomState::new().hash_one(0) % 2000)
}

/// Whether an address of AWS, which this flag or variable has, may be asked.
pub(super) fn check_url(flag: &str, url: &str) -> Result<()> {
    let refuse = |cause: &str| Err(ProviderError::settings(format!("{flag} `{url}`: {cause}")));
    let Ok(uri) = url.parse::<Uri>() else { return refuse("this is not a URL") };
    let host = uri.host().unwrap_or_default();
    let is_base = !host.is_empty() && uri.query().is_none() && matches!(uri.path(), "" | "/");
    match uri.scheme_str() {
        Some("https" | "http") if !is_base || url.contains('@') => refuse("it must be https://HOST, without a path"),
        Some("https") => Ok(()),
        Some("http") if is_loopback(host) => Ok(()),
        Some("http") => refuse("everybody on the way could read the answers; use https"),
        _ => refuse("it must be https://HOST"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["https://route53.amazonaws.com", "http://127.0.0.1:1", "http://[::1]:80/", "http://localhost"] {
            assert!(check_url("--x", good).is_ok(), "{good}");
        }
        for bad in ["http://192.0.2.1", "ftp://x", "x", "", "https://x/?a=b", "https://x/y", "https://a@x", "/x"] {
            let error = check_url("--x", bad).unwrap_err().to_string();
            assert!(error.contains("--x"), "{bad}: {error}");
        }
    }

    #[test]
    fn pauses_differ_and_are_short() {
        let all: Vec<Duration> = (0..50).map(|_| pause()).collect();
        assert!(all.iter().all(|wait| (1000..3000).contains(&wait.as_millis())));
        assert!(all.iter().any(|wait| *wait != all[0]));
    }
}
