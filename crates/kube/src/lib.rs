//! Gatepost in a cluster: who to talk to, what is there, what changes, and the few things that are written.
//!
//! The only crate that knows the `kube` crate, and of that only credentials and connections. Objects pass through
//! `gatepost-objects` exactly as those of files do, so that a cluster and a folder with the same objects are the same
//! snapshot. "Not there" and "could not see" stay apart: whatever cannot be read completely is told as not visible and is
//! never told as gone. Nothing here decides what is published.

pub mod connection;
pub mod discovery;
mod error;
pub mod lease;
pub mod listing;
pub mod mirror;
pub mod objects;
pub mod resource;

pub mod watch;
mod wire;

pub use connection::{ClusterChoice, Connection};
pub use error::{Error, Problem, Result};
pub use listing::{ClusterRead, read_once};
