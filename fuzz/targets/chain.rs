//! Any bytes, read as a certificate chain, a certificate and a key.
#![no_main]

#[path = "../src/chain.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::chain(bytes));
