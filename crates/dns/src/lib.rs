//! DNS: the embedded authoritative server.
//!
//! This crate does IO: sockets, files, clocks. It never decides what ought to be published: it serves the records that it is
//! given, byte for byte.

pub mod embedded;
