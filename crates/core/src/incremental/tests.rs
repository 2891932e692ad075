//! The incremental engine compared with a full build.

mod compare;
mod making;
mod streams;
