//! What clients of HTTP have in common: why there is no answer, how long to wait, and `null` in JSON.

use std::time::{Duration, SystemTime};

use http_body_util::LengthLimitError;
use hyper::header::{HeaderMap, RETRY_AFTER};
use serde::{Deserialize, Deserializer};

pub(crate) mod connections;

/// Longer waits are not asked for in earnest.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Why there is no answer.
pub(crate) enum Cause {
    /// Nothing was sent.
    NotConnected(String),
    /// Something was sent, and the answer did not come or did not end.
    Broken(String),
}

impl Cause {
    /// The request failed.
    pub(crate) fn of_request(error: hyper_util::client::legacy::Error) -> Cause {
        let text = innermost(&error);
        if error.is_connect() { Cause::NotConnected(text) } else { Cause::Broken(text) }
    }

    /// The answer, which may have so many bytes, could not be read to its end.
    pub(crate) fn of_body(error: Box<dyn std::error::Error + Send + Sync>, limit: usize) -> Cause {
        match error.downcast_ref::<LengthLimitError>() {
            Some(_) => Cause::Broken(format!("the answer is larger than {limit} bytes")),
            None => Cause::Broken(format!("the answer broke off: {}", innermost(&*error))),
        }
    }
}

/// The cause at the bottom of an error, which is the part that says something.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source()).last().map(|error| error.to_string()).unwrap_or_default()
}

/// How long the server asks to be left alone: seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok()?,
    };
    Some(wait.min(LONGEST_WAIT))
}

/// A part of a text of somebody else, as a message may have it.
pub(crate) fn brief(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// How a body begins that is not what was expected.
pub(crate) fn opening(body: &[u8]) -> String {
    let text = brief(&String::from_utf8_lossy(body.get(..200).unwrap_or(body)));
    if text.is_empty() { "the body is empty".to_owned() } else { format!("the answer begins with `{text}`") }
}

/// Whether a host is this machine, so that nobody else reads what goes there.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Reads a value that servers also write as `null`, as Go does with a list or map that was never made.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_and_bounded() {
        let wait = |text: &str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]));
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("99999999"), Some(LONGEST_WAIT));
        assert_eq!(wait("soon"), None);
        let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(60));
        assert!(wait(&later).is_some_and(|wait| wait > Duration::from_secs(50)));
    }
}
