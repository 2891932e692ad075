//! How a provider fails: what was asked of whom, what came back, and whether to try again.

use std::fmt;
use std::time::Duration;

/// What a call to a provider gives.
pub type Result<T> = std::result::Result<T, ProviderError>;

/// A failure, with the server, zone and record it is about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ProviderError {
    /// Who was asked.
    pub server: Option<Box<str>>,
    /// The zone it is about.
    pub zone: Option<Box<str>>,
    /// The record it is about: name and type.
    pub record: Option<Box<str>>,
    /// What went wrong.
    pub problem: ProviderProblem,
    /// How long the server asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderProblem {
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// No connection came about; nothing was sent.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// A write was sent, and no answer came: it may have been carried out.
    #[error(
        "the change was sent and no answer came ({0}); it may have been carried out, so the zone must be read again"
    )]
    Lost(String),
    /// A read broke off, so that nothing is known.
    #[error("the zone could not be read to its end: {0}")]
    Incomplete(String),
    /// The answer is not what the protocol allows.
    #[error("the answer is not understood: {0}")]
    Protocol(String),
    /// The server does not know our TSIG key.
    #[error("NOTAUTH/BADKEY: the server does not know the TSIG key `{key}` with {algorithm}")]
    BadKey {
        /// The key's name.
        key: String,
        /// The algorithm's name.
        algorithm: String,
    },
    /// The server cannot verify our signature.
    #[error("NOTAUTH/BADSIG: the secret of the TSIG key `{key}` is not the server's")]
    BadSignature {
        /// The key's name.
        key: String,
    },
    /// The clocks are apart.
    #[error("NOTAUTH/BADTIME: the clocks are {} s apart: ours says {ours}, the server's {theirs} (seconds since 1970)", ours.abs_diff(*theirs))]
    BadTime {
        /// Our time when we signed.
        ours: u64,
        /// The server's time when it answered.
        theirs: u64,
    },
    /// A signed question got an answer without a signature.
    #[error(
        "{rcode} without a signature: the server did not accept the TSIG key `{key}` for this zone (PowerDNS answers so \
         for an unknown key, a wrong secret, a clock that is off, or a key that is not allowed)"
    )]
    Unsigned {
        /// The unsigned answer's code.
        rcode: String,
        /// The key's name.
        key: String,
    },
    /// The signature of an answer is wrong.
    #[error("the signature of the answer is wrong: {0}")]
    Forged(String),
    /// The record is no longer as it was read.
    #[error("it changed since it was read ({0}); nothing was written")]
    Stale(String),
    /// The server said no.
    #[error("{code}: {meaning}")]
    Refused {
        /// Response code or status.
        code: String,
        /// The same in words.
        meaning: String,
    },
    /// The server cannot do it now.
    #[error("{code}: {meaning}")]
    Failed {
        /// Response code or status.
        code: String,
        /// The same in words.
        meaning: String,
    },
    /// It was not tried, because an earlier part failed.
    #[error("not tried: {0}")]
    NotTried(String),
    /// The record cannot be written at all.
    #[error("{0}")]
    Unwritable(String),
}

impl ProviderError {
    /// A failure about nothing in particular yet.
    pub fn new(problem: ProviderProblem) -> ProviderError {
        ProviderError { server: None, zone: None, record: None, problem, retry_after: None }
    }

    /// The settings cannot be used.
    pub fn settings(message: impl Into<String>) -> ProviderError {
        ProviderError::new(ProviderProblem::Settings(message.into()))
    }

    /// The answer is not what the protocol allows.
    pub fn protocol(message: impl Into<String>) -> ProviderError {
        ProviderError::new(ProviderProblem::Protocol(message.into()))
    }

    /// Names the server, unless it is named already.
    pub fn at(mut self, server: impl fmt::Display) -> ProviderError {
        self.server.get_or_insert_with(|| server.to_string().into());
        self
    }

    /// Names the zone, unless it is named already.
    pub fn zone(mut self, zone: impl fmt::Display) -> ProviderError {
        self.zone.get_or_insert_with(|| zone.to_string().into());
        self
    }

    /// Names the record, unless it is named already.
    pub fn record(mut self, record: impl fmt::Display) -> ProviderError {
        self.record.get_or_insert_with(|| record.to_string().into());
        self
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self.problem {
            ProviderProblem::Unreachable(_)
            | ProviderProblem::Lost(_)
            | ProviderProblem::Incomplete(_)
            | ProviderProblem::BadTime { .. }
            | ProviderProblem::Stale(_)
            | ProviderProblem::Failed { .. }
            | ProviderProblem::NotTried(_) => true,
            ProviderProblem::Settings(_)
            | ProviderProblem::Protocol(_)
            | ProviderProblem::BadKey { .. }
            | ProviderProblem::BadSignature { .. }
            | ProviderProblem::Unsigned { .. }
            | ProviderProblem::Forged(_)
            | ProviderProblem::Refused { .. }
            | ProviderProblem::Unwritable(_) => false,
        }
    }

    /// How long to wait at least, where the server said so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the zone must be read again before anything else is written.
    pub fn needs_read(&self) -> bool {
        use ProviderProblem::{Failed, Lost, NotTried, Stale};
        matches!(self.problem, Lost(_) | Stale(_) | Failed { .. } | NotTried(_))
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("", &self.server), ("zone ", &self.zone), ("", &self.record)];
        let named: Vec<_> = parts.iter().filter_map(|(word, part)| Some(format!("{word}{}", part.as_ref()?))).collect();
        if !named.is_empty() {
            write!(f, "{}: ", named.join(", "))?;
        }
        write!(f, "{}", self.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_server_zone_and_record() {
        let error = ProviderError::new(ProviderProblem::BadTime { ours: 1000, theirs: 1600 })
            .at("192.0.2.1:53")
            .zone("example.com");
        let text = error.clone().record("www.example.com A").to_string();
        assert!(text.starts_with("192.0.2.1:53, zone example.com, www.example.com A: NOTAUTH/BADTIME"), "{text}");
        assert!(text.contains("600 s apart"), "{text}");
        assert!(error.is_transient());
        assert_eq!(error.at("other").server.as_deref(), Some("192.0.2.1:53"));
    }

    #[test]
    fn what_needs_a_person_is_not_transient() {
        assert!(!ProviderError::settings("x").is_transient());
        assert!(
            !ProviderError::new(ProviderProblem::Refused { code: "REFUSED".into(), meaning: "no".into() })
                .is_transient()
        );
    }
}
