//! Every golden case of `tests/cases`, each as a test of its own.

use gatepost_testkit::case;
use gatepost_testkit::program::Program;

fn main() {
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    gatepost_testkit::run(case::trials(&program));
}
