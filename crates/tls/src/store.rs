//! Where key pairs and what is remembered are kept.
//!
//! Two small traits, so that files and Secrets take one path. A store replaces a pair as a whole or not at all: who reads sees
//! the old one or the new one. It never judges a certificate; that was done before.

use std::fmt;

use gatepost_core::model::Key;

use crate::Call;
use crate::error::Result;

pub mod files;

pub use files::{FileStateStore, FileStore};

/// A chain and its key, as a Secret of type `kubernetes.io/tls` holds them.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsKeyPair {
    /// The chain in PEM, leaf first.
    pub chain: String,
    /// The private key in PEM.
    pub secret_key: String,
}

/// The pair that a Secret holds, and who else maintains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPair {
    /// The pair as it stands there, unjudged; or why it can be none: it is too large, or no text.
    pub pair: std::result::Result<TlsKeyPair, String>,
    /// Who else looks after it, and what to do about that; then it is read and never replaced.
    pub keeper: Option<String>,
}

/// Where key pairs are kept, by Secret.
pub trait Store: Send + Sync + fmt::Debug {
    /// What is kept for a Secret; nothing where there is none.
    fn read<'a>(&'a self, secret: &'a Key) -> Call<'a, Result<Option<StoredPair>>>;

    /// Replaces what is kept for a Secret, unless somebody else looks after it.
    fn write<'a>(&'a self, secret: &'a Key, pair: &'a TlsKeyPair) -> Call<'a, Result<()>>;
}

/// Stores named documents that only this program reads. They contain private keys.
pub trait StateStore: Send + Sync + fmt::Debug {
    /// The text of a page; nothing where it was never written.
    fn read<'a>(&'a self, page: &'a str) -> Call<'a, Result<Option<String>>>;

    /// Replaces the text of a page.
    fn write<'a>(&'a self, page: &'a str, text: &'a str) -> Call<'a, Result<()>>;
}

impl fmt::Debug for TlsKeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsKeyPair").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}
