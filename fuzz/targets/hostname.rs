//! Any text, read as hostnames.
#![no_main]

#[path = "../src/laws.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::hostname(bytes));
