//! DNS: the embedded authoritative server, and the providers that publish records elsewhere.
//!
//! This crate does IO: sockets, files, clocks. It never decides what ought to be published: it serves the records that it is
//! given, byte for byte.

pub mod authority;
pub mod embedded;
pub mod provider;
pub mod providers;
mod question;
pub mod resolve;
