//! The help of commands: `--help` has the common flags on one screen, `--help-all` all of them.

use clap::{Arg, ArgAction, Command};

/// The flags that most people need, by id.
const COMMON: [&str; 24] = [
    "files",
    "kustomize",
    "helm",
    "namespace",
    "output",
    "out",
    "strict",
    "severity",
    "baseline",
    "write_baseline",
    "provider",
    "policy",
    "txt_owner_id",
    "gateway_address",
    "dry_run",
    "plan",
    "diff",
    "expect_no_changes",
    "tls",
    "dns_addr",
    "http_addr",
    "gateway",
    "platform_namespace",
    "port",
];

/// Gives every command its two kinds of help.
pub(super) fn arranged(root: Command) -> Command {
    let names: Vec<String> = root.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let root = root.mut_arg("settings", |arg| arg.hide_short_help(true));
    names.into_iter().fold(root, |root, name| root.mut_subcommand(name, command))
}

/// The same without variables, which `--help-all` names.
pub(super) fn without_variables(root: Command) -> Command {
    let names: Vec<String> = root.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let hidden = |command: Command| command.mut_args(|arg| arg.hide_env(true));
    names.into_iter().fold(root, |root, name| root.mut_subcommand(name, hidden))
}

fn command(command: Command) -> Command {
    // What a controller is to do concerns `check` only with --pre.
    let is_check = command.get_name() == "check";
    let is_rare = move |arg: &Arg| {
        let id = arg.get_id().as_str();
        !arg.is_positional() && (!COMMON.contains(&id) || (is_check && id == "provider"))
    };
    let has_rare = command.get_arguments().any(is_rare);
    let about = if has_rare { "Print the common flags" } else { "Print help" };
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help(about);
    let all =
        Arg::new("help-all").long("help-all").action(ArgAction::HelpLong).help("Print all flags, with more about each");
    command
        .mut_args(|arg| if is_rare(&arg) { arg.hide_short_help(true) } else { arg })
        .disable_help_flag(true)
        .arg(help.display_order(1000).help_heading(None::<&str>))
        .arg(all.display_order(1001).help_heading(None::<&str>))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn the_help_of_a_command_fits_a_screen() {
        let mut root = without_variables(arranged(Cli::command()));
        root.build();
        for command in root.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set()) {
            let help = command.clone().render_help().to_string();
            let lines = help.lines().count();
            assert!(lines <= 48, "{} has {lines} lines:\n{help}", command.get_name());
            let longest = help.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
            assert!(longest.chars().count() <= 80, "{}: {longest}", command.get_name());
        }
    }

    #[test]
    fn all_flags_are_in_the_whole_help() {
        let mut root = arranged(Cli::command());
        root.build();
        let plan = root.find_subcommand("plan").cloned().unwrap();
        let (short, long) = (plan.clone().render_help().to_string(), plan.clone().render_long_help().to_string());
        assert!(!short.contains("--label-filter") && long.contains("--label-filter"), "{short}");
        assert!(short.contains("--provider") && short.contains("--help-all"), "{short}");
    }
}
