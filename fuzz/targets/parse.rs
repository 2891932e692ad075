//! Any bytes, read as objects.
#![no_main]

#[path = "../src/laws.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::parse(bytes));
