//! `gatepost completions`: generated from the same source as `--help`.

use std::io::Write;

use clap::{Args, CommandFactory};

use super::{Cli, Ending, Failure};

/// Print shell completions
#[derive(Args, Debug)]
pub(super) struct Completions {
    /// Which shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "gatepost", &mut text);
        out.write_all(&text)?;
        Ok(Ending::Done)
    }
}
