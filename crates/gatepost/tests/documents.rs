//! What documents and examples show is what the program says: console blocks, YAML, plans, values of the chart.
//! `GATEPOST_BLESS=1` rewrites what they show.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use gatepost_testkit::Trial;
use gatepost_testkit::program::Program;

#[path = "documents/action.rs"]
mod action;
#[path = "documents/admission.rs"]
mod admission;
#[path = "documents/examples.rs"]
mod examples;
#[path = "documents/pages.rs"]
mod pages;
#[path = "documents/values.rs"]
mod values;

fn main() {
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let parts = [
        examples::trials(&program),
        pages::trials(&program),
        values::trials(),
        action::trials(),
        admission::trials(&program),
    ];
    let trials: Vec<Trial> = parts.into_iter().flatten().collect();
    gatepost_testkit::run(trials);
}
