//! Where key pairs and what is remembered are kept.
//!
//! Two small traits, so that files and Secrets take one path. A store replaces a pair as a whole or not at all: who reads sees
//! the old one or the new one. It never judges a certificate; that was done before.

use std::fmt;

use gatepost_core::model::Key;

use crate::Call;
use crate::error::Result;

pub mod files;

pub use files::{FileNotebook, FileStore};

/// A chain and its key, as a Secret of type `kubernetes.io/tls` holds them.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The chain in PEM, leaf first.
    pub chain: String,
    /// The private key in PEM.
    pub secret_key: String,
}

/// What is kept for a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The pair as it stands there, unjudged; or why it can be none: it is too large, or no text.
    pub pair: std::result::Result<Pair, String>,
    /// Who else looks after it, and what to do about that; then it is read and never replaced.
    pub keeper: Option<String>,
}

/// Where key pairs are kept, by Secret.
pub trait Store: Send + Sync + fmt::Debug {
    /// What is kept for a Secret; nothing where there is none.
    fn read<'a>(&'a self, secret: &'a Key) -> Call<'a, Result<Option<Kept>>>;

    /// Replaces what is kept for a Secret, unless somebody else looks after it.
    fn write<'a>(&'a self, secret: &'a Key, pair: &'a Pair) -> Call<'a, Result<()>>;
}

/// Where texts are kept that only this program reads. They hold keys.
pub trait Notebook: Send + Sync + fmt::Debug {
    /// The text of a page; nothing where it was never written.
    fn read<'a>(&'a self, page: &'a str) -> Call<'a, Result<Option<String>>>;

    /// Replaces the text of a page.
    fn write<'a>(&'a self, page: &'a str, text: &'a str) -> Call<'a, Result<()>>;
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}
