//! Every repository of `tests/repositories`, and every mistake in one of them, each as a test of its own.

use gatepost_testkit::program::Program;
use gatepost_testkit::repository;

fn main() {
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    gatepost_testkit::run(repository::trials(&program));
}
