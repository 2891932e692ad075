//! Every seeded fault of `tests/cases/faults`, each as a test of its own.

use gatepost_testkit::fault;
use gatepost_testkit::program::Program;

fn main() {
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    gatepost_testkit::run(fault::trials(&program));
}
