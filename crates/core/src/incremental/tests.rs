//! The engine against scratch.

mod compare;
mod making;
mod streams;
