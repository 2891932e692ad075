//! Any packet, given to the embedded DNS server.
#![no_main]

#[path = "../src/query.rs"]
mod query;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| query::query(bytes));
