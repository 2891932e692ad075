//! Every example of `docs/diagnostics`, each as a test of its own.

use gatepost_testkit::page;
use gatepost_testkit::program::Program;

fn main() {
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    gatepost_testkit::run(page::trials(&program));
}
