//! How issuing fails: who was asked, what came back, which names are to blame, and whether to try again.

use std::fmt;
use std::time::Duration;

use gatepost_core::model::Str;
use gatepost_core::reason::{self, Reason};

/// What a call gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// Who was asked: the host of a directory, or a path.
    pub place: Option<Box<str>>,
    /// What went wrong.
    pub problem: IssuanceProblem,
    /// How long the issuer asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuanceProblem {
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// No answer came.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The answer is not what the protocol allows.
    #[error("the answer is not understood: {0}")]
    Protocol(String),
    /// The issuer asks for fewer orders.
    #[error("asks to wait: {0}")]
    RateLimited(String),
    /// The issuer is there and cannot do its work now.
    #[error("cannot answer now: {0}")]
    Busy(String),
    /// The issuer failed over this request, and does not say that it would fail over others.
    #[error("failed over it: {0}")]
    Broken(String),
    /// The issuer says no.
    #[error("refuses ({kind}): {detail}")]
    Refused {
        /// The last part of the problem's type: `unauthorized`.
        kind: String,
        /// The same in words.
        detail: String,
        /// The names that are to blame, each with what is wrong with it.
        names: Vec<(Str, String)>,
    },
    /// The order is gone on the issuer's side, so that a new one is needed.
    #[error("the order is gone: {0}")]
    Gone(String),
    /// Values that prove names are not answered by all servers of their zones.
    #[error("{0}")]
    Unanswered(String),
    /// What was issued is not what was ordered.
    #[error("the certificate is not taken: {0}")]
    Rejected(String),
    /// A file or Secret could not be read or written.
    #[error("cannot {verb}: {cause}")]
    Storage {
        /// What was to be done.
        verb: &'static str,
        /// Why it was not.
        cause: String,
    },
}

impl Error {
    /// A failure at nobody's place.
    pub fn new(problem: IssuanceProblem) -> Self {
        Error { place: None, problem, retry_after: None }
    }

    /// Settings that cannot be used.
    pub fn settings(why: impl Into<String>) -> Self {
        Error::new(IssuanceProblem::Settings(why.into()))
    }

    /// An answer that makes no sense.
    pub fn protocol(why: impl Into<String>) -> Self {
        Error::new(IssuanceProblem::Protocol(why.into()))
    }

    /// A certificate that is not what was ordered.
    pub fn rejected(why: impl Into<String>) -> Self {
        Error::new(IssuanceProblem::Rejected(why.into()))
    }

    /// A file or Secret that could not be read or written.
    pub fn storage(verb: &'static str, place: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Error::new(IssuanceProblem::Storage { verb, cause: cause.to_string() }).at(place)
    }

    /// The same, with who was asked.
    pub fn at(self, place: impl fmt::Display) -> Self {
        Error { place: Some(place.to_string().into()), ..self }
    }

    /// Whether the same may go well later, without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match &self.problem {
            IssuanceProblem::Unreachable(_)
            | IssuanceProblem::RateLimited(_)
            | IssuanceProblem::Busy(_)
            | IssuanceProblem::Gone(_) => true,
            IssuanceProblem::Storage { .. }
            | IssuanceProblem::Protocol(_)
            | IssuanceProblem::Unanswered(_)
            | IssuanceProblem::Broken(_) => true,
            IssuanceProblem::Settings(_) | IssuanceProblem::Refused { .. } | IssuanceProblem::Rejected(_) => false,
        }
    }

    /// The row of the catalog that it is told under.
    pub fn reason(&self) -> Reason {
        match &self.problem {
            IssuanceProblem::Settings(_) => reason::ISSUER_UNUSABLE,
            IssuanceProblem::Unreachable(_) | IssuanceProblem::Busy(_) | IssuanceProblem::Broken(_) => {
                reason::ISSUER_UNREACHABLE
            }
            IssuanceProblem::RateLimited(_) => reason::ISSUER_RATE_LIMITED,
            IssuanceProblem::Refused { .. } | IssuanceProblem::Gone(_) | IssuanceProblem::Protocol(_) => {
                reason::CERTIFICATE_ORDER_FAILED
            }
            IssuanceProblem::Rejected(_) => reason::CERTIFICATE_REJECTED,
            IssuanceProblem::Unanswered(_) => reason::CHALLENGE_NOT_ANSWERED,
            IssuanceProblem::Storage { .. } => reason::CERTIFICATE_NOT_STORED,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place} ")?;
        }
        write!(f, "{}", self.problem)?;
        match self.retry_after {
            Some(wait) => write!(f, " (again in {} s)", wait.as_secs()),
            None => Ok(()),
        }
    }
}
