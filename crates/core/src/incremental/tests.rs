//! The incremental engine compared with a full build.

mod compare;
pub(crate) mod making;
mod streams;
