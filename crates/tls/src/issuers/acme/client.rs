//! Talking to one ACME server on behalf of one account: nonces, signed requests, problems.
//!
//! A request whose nonce is refused is signed again with a fresh one; nothing else is repeated here.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gatepost_core::model::Str;
use hyper::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::http::{AcmeResponse, AcmeTransport, brief};
use super::jws::AccountKey;
use super::wire::{Directory, ProblemShape};
use crate::error::{Error, IssuanceProblem, Result};

/// How often a request is signed again because its nonce was refused.
const NONCES: usize = 12;

/// A server and its directory.
pub(super) struct Client {
    pub(super) transport: AcmeTransport,
    pub(super) directory: Directory,
    nonce: Mutex<Option<String>>,
}

/// Who asks.
pub(super) struct Signer<'a> {
    pub(super) key: &'a AccountKey,
    pub(super) account: Option<&'a str>,
}

impl Client {
    /// Reads the directory.
    pub(super) async fn open(transport: AcmeTransport, url: &str, now: i64) -> Result<Client> {
        let answer = transport.ask(Method::GET, url, None).await?;
        if answer.status != 200 {
            return Err(problem(&answer, now).at(&transport));
        }
        let directory: Directory = parse(&answer).map_err(|error| error.at(&transport))?;
        for place in [&directory.new_nonce, &directory.new_account, &directory.new_order] {
            if !transport.is_own(place) {
                let cause = format!("its directory points to another host: `{}`", brief(place));
                return Err(Error::protocol(cause).at(&transport));
            }
        }
        Ok(Client { transport, directory, nonce: Mutex::default() })
    }

    /// A signed request; without a payload only to read.
    pub(super) async fn post(
        &self,
        signer: &Signer<'_>,
        url: &str,
        payload: Option<&Value>,
        now: i64,
    ) -> Result<AcmeResponse> {
        let payload = payload.map(Value::to_string).unwrap_or_default();
        let mut last = Error::new(IssuanceProblem::Busy("no request was made".to_owned()));
        for _ in 0..NONCES {
            let nonce = self.take_nonce().await?;
            let body = signer.key.sign(signer.account, &nonce, url, &payload)?;
            let answer = self.transport.ask(Method::POST, url, Some(body)).await?;
            self.keep_nonce(&answer);
            if (200..300).contains(&answer.status) {
                return Ok(answer);
            }
            last = problem(&answer, now).at(&self.transport);
            if !is_bad_nonce(&answer) {
                break;
            }
        }
        Err(last)
    }

    /// Reads something that only the account may read.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        signer: &Signer<'_>,
        url: &str,
        now: i64,
    ) -> Result<(T, AcmeResponse)> {
        let answer = self.post(signer, url, None, now).await?;
        Ok((self.parse(&answer)?, answer))
    }

    /// What an answer says.
    pub(super) fn parse<T: DeserializeOwned>(&self, answer: &AcmeResponse) -> Result<T> {
        parse(answer).map_err(|error| error.at(&self.transport))
    }

    async fn take_nonce(&self) -> Result<String> {
        let kept = self.nonce.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(nonce) = kept {
            return Ok(nonce);
        }
        let answer = self.transport.ask(Method::HEAD, &self.directory.new_nonce, None).await?;
        let nonce = answer.header("replay-nonce").filter(|_| (200..300).contains(&answer.status));
        let missing = || match answer.status {
            400.. => problem(&answer, 0).at(&self.transport),
            _ => Error::protocol("it gave no nonce").at(&self.transport),
        };
        nonce.map(str::to_owned).ok_or_else(missing)
    }

    fn keep_nonce(&self, answer: &AcmeResponse) {
        let nonce = answer.header("replay-nonce").map(str::to_owned);
        *self.nonce.lock().unwrap_or_else(PoisonError::into_inner) = nonce;
    }
}

fn parse<T: DeserializeOwned>(answer: &AcmeResponse) -> Result<T> {
    serde_json::from_slice(&answer.body).map_err(|error| Error::protocol(brief(&error.to_string())))
}

fn shape(answer: &AcmeResponse) -> ProblemShape {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

fn is_bad_nonce(answer: &AcmeResponse) -> bool {
    answer.status == 400 && shape(answer).word() == "badNonce"
}

/// What an answer that is no success means.
pub(super) fn problem(answer: &AcmeResponse, now: i64) -> Error {
    let shape = shape(answer);
    let detail = match brief(&shape.detail) {
        detail if detail.is_empty() => format!("status {}", answer.status),
        detail => detail,
    };
    let problem = match (answer.status, shape.word()) {
        (_, "rateLimited") | (429, _) => IssuanceProblem::RateLimited(detail),
        (500, "serverInternal") => IssuanceProblem::Broken(detail),
        (500.., _) | (408 | 425, _) | (_, "serverInternal" | "badNonce") => IssuanceProblem::Busy(detail),
        (300..400, _) => IssuanceProblem::Protocol(format!("status {}, and redirects are not followed", answer.status)),
        (status, word) => {
            let kind = if word.is_empty() { format!("status {status}") } else { brief(word) };
            IssuanceProblem::Refused { kind, detail, names: blamed(&shape) }
        }
    };
    let is_limit = matches!(problem, IssuanceProblem::RateLimited(_));
    let retry_after = answer.retry_after(now).or(is_limit.then_some(USUAL_REST));
    Error { retry_after, ..Error::new(problem) }
}

/// How long a server is left alone that asks for fewer orders and does not say how long.
const USUAL_REST: Duration = Duration::from_secs(3600);

/// The names that a problem blames.
pub(super) fn blamed(shape: &ProblemShape) -> Vec<(Str, String)> {
    let named = shape.subproblems.iter().take(100).filter_map(|sub| {
        let name = sub.identifier.as_ref()?.value.to_ascii_lowercase();
        Some((Str::from(brief(&name)), brief(&sub.detail)))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use hyper::body::Bytes;
    use hyper::header::HeaderMap;

    use super::*;

    fn answer(status: u16, body: &str) -> AcmeResponse {
        AcmeResponse { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    #[test]
    fn problems_are_told_apart() {
        let urn = |word: &str| format!(r#"{{"type": "urn:ietf:params:acme:error:{word}", "detail": "so"}}"#);
        let table = [
            (429, urn("rateLimited"), "asks to wait: so (again in 3600 s)", true),
            (429, String::new(), "asks to wait: status 429 (again in 3600 s)", true),
            (503, "<html>".to_owned(), "cannot answer now: status 503", true),
            (500, urn("serverInternal"), "failed over it: so", true),
            (503, urn("serverInternal"), "cannot answer now: so", true),
            (400, urn("rejectedIdentifier"), "refuses (rejectedIdentifier): so", false),
            (404, "{}".to_owned(), "refuses (status 404): status 404", false),
            (302, String::new(), "the answer is not understood: status 302, and redirects are not followed", true),
        ];
        for (status, body, text, transient) in table {
            let error = problem(&answer(status, &body), 0);
            assert_eq!((error.to_string().as_str(), error.is_transient()), (text, transient));
        }
    }

    #[test]
    fn culprits_are_named_and_long_texts_cut() {
        let body = r#"{"type": "urn:ietf:params:acme:error:malformed", "detail": "D", "subproblems": [
            {"detail": "one", "identifier": {"type": "dns", "value": "A.test"}}, {"detail": "nobody"}]}"#;
        let IssuanceProblem::Refused { names, .. } = problem(&answer(400, body), 0).problem else {
            panic!("it is a refusal")
        };
        assert_eq!(names, [(Str::from("a.test"), "one".to_owned())]);
        let long = format!(r#"{{"detail": "{}"}}"#, "x".repeat(100_000));
        assert!(problem(&answer(400, &long), 0).to_string().len() < 300);
    }
}
