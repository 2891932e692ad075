//! The `gatepost` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    gatepost::cli::main(std::env::args_os())
}
