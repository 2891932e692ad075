//! `gatepost man`: generated from the same source as `--help`.

use std::io::Write;

use clap::{Args, CommandFactory};

use super::{Cli, Ending, Failure};

/// Print the manual page, or that of one command
#[derive(Args, Debug)]
pub(super) struct Man {
    /// The command; without one, the page of gatepost itself
    command: Option<String>,
}

impl Man {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let mut root = Cli::command();
        root.build();
        let page = match self.command {
            None => root,
            Some(name) => {
                let found = root.get_subcommands().find(|c| c.get_name() == name).cloned();
                found.ok_or_else(|| Failure::usage(format!("no command `{name}`; see gatepost --help")))?
            }
        };
        clap_mangen::Man::new(page).render(out)?;
        Ok(Ending::Done)
    }
}
