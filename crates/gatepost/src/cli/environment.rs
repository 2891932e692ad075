//! Variables of the environment that were probably meant as flags. Nothing is read from them here.

use std::collections::BTreeSet;
use std::io::Write;

use clap::Command;
use gatepost_core::lint::closest;

use crate::render::inert_line;

/// What the variables of flags begin with.
const PREFIX: &str = "GATEPOST_";

/// Says on standard error which variables look like misspelt ones.
pub(super) fn warn_misspelt(command: &Command) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for (name, meant) in misspelt(command, names) {
        let name = inert_line(&name);
        let _ = writeln!(std::io::stderr(), "warning: the variable {name} is not known: did you mean {meant}?");
    }
}

/// Unknown variables that are near to a known one. Others are none of ours: Kubernetes sets `GATEPOST_SERVICE_HOST` and the
/// like in pods where a Service is called `gatepost`.
fn misspelt(command: &Command, names: impl Iterator<Item = String>) -> Vec<(String, String)> {
    let mut known = BTreeSet::new();
    gather(command, &mut known);
    let is_of_kubernetes = |name: &str| name.starts_with("GATEPOST_SERVICE_") || name.starts_with("GATEPOST_PORT");
    let unknown = names.filter(|name| name.starts_with(PREFIX) && !known.contains(name) && !is_of_kubernetes(name));
    let near = |name: &str| {
        let end = closest(name.strip_prefix(PREFIX)?, known.iter().filter_map(|known| known.strip_prefix(PREFIX)))?;
        Some(format!("{PREFIX}{end}"))
    };
    let mut found: Vec<(String, String)> = unknown.filter_map(|name| near(&name).map(|meant| (name, meant))).collect();
    found.sort();
    found
}

fn gather(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
    known.extend(variables.map(str::to_owned));
    command.get_subcommands().for_each(|command| gather(command, known));
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::misspelt;
    use crate::cli::Cli;

    #[test]
    fn only_what_is_near_to_a_known_variable_is_told() {
        let names = [
            "GATEPOST_PROVIDR",
            "GATEPOST_PROVIDER",
            "GATEPOST_SERVICE_HOST",
            "GATEPOST_PORT_8053_TCP_ADDR",
            "GATEPOST_SOMETHING_ALTOGETHER_ELSE",
            "PROVIDR",
        ];
        let found = misspelt(&Cli::command(), names.into_iter().map(str::to_owned));
        assert_eq!(found, [("GATEPOST_PROVIDR".to_owned(), "GATEPOST_PROVIDER".to_owned())]);
    }
}
