//! How talking to an API server fails: what was asked, what came back, and whether to try again.

use std::time::Duration;

/// What a call to an API server gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with the request it is about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{request}: {problem}")]
pub struct Error {
    /// What was asked: `GET /api/v1/namespaces`.
    pub request: Box<str>,
    /// What went wrong.
    pub problem: Problem,
    /// How long the server asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Kubeconfig, context or credentials cannot be used.
    #[error("{0}")]
    Settings(String),
    /// No answer came.
    #[error("the API server cannot be reached: {0}")]
    Unreachable(String),
    /// The answer is not what the protocol allows.
    #[error("the answer is not understood: {0}")]
    Protocol(String),
    /// The credentials are not known.
    #[error("not authenticated: {0}")]
    Unauthenticated(String),
    /// A right is missing; the message names verb and resource.
    #[error("{0}")]
    Forbidden(String),
    /// There is no such thing.
    #[error("not found: {0}")]
    NotFound(String),
    /// The version that was asked for is no longer kept.
    #[error("too old: {0}")]
    Gone(String),
    /// Somebody else wrote in between, or holds the field.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The server said no.
    #[error("{code}: {message}")]
    Refused {
        /// The status.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// The server cannot do it now.
    #[error("{code}: {message}")]
    Failed {
        /// The status.
        code: u16,
        /// The server's words.
        message: String,
    },
}

impl Error {
    /// A failure of a request.
    pub fn new(request: impl Into<Box<str>>, problem: Problem) -> Error {
        Error { request: request.into(), problem, retry_after: None }
    }

    /// Kubeconfig, context or credentials cannot be used.
    pub(crate) fn settings(message: impl Into<String>) -> Error {
        Error::new("cluster", Problem::Settings(message.into()))
    }

    /// The failure that a status code and the server's words stand for.
    pub(crate) fn of_status(request: &str, code: u16, message: String) -> Error {
        let problem = match code {
            401 => Problem::Unauthenticated(message),
            403 => Problem::Forbidden(message),
            404 => Problem::NotFound(message),
            409 | 412 => Problem::Conflict(message),
            410 => Problem::Gone(message),
            429 | 500.. => Problem::Failed { code, message },
            _ => Problem::Refused { code, message },
        };
        Error::new(request, problem)
    }

    /// Whether trying again may help.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.problem,
            Problem::Unreachable(_) | Problem::Protocol(_) | Problem::Failed { .. } | Problem::Gone(_)
        )
    }

    /// Whether a right is missing.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.problem, Problem::Forbidden(_) | Problem::Unauthenticated(_))
    }

    /// Whether there is no such thing.
    pub fn is_not_found(&self) -> bool {
        matches!(self.problem, Problem::NotFound(_))
    }

    /// Whether somebody else wrote in between.
    pub fn is_conflict(&self) -> bool {
        matches!(self.problem, Problem::Conflict(_))
    }

    /// Whether the version that was asked for is no longer kept.
    pub fn is_gone(&self) -> bool {
        matches!(self.problem, Problem::Gone(_))
    }
}
