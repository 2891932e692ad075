//! Any TXT value, read as an ownership value.
#![no_main]

#[path = "../src/ownership.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::ownership(bytes));
