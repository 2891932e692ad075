//! The scripts of `page/tests`, which drive Debian's Chromium from Node.js. `scripts/page-tools` installs what they need.
//! Installs and starts nothing itself.

use std::path::Path;
use std::process::Command;

use crate::tree;

/// Whether the tools of the page are installed.
pub fn has_tools() -> bool {
    tree::root().join("page/node_modules/playwright-core").is_dir()
}

/// Whether tests in a browser run: where everything is there, and with `CI` set, where they fail without it.
pub fn is_wanted() -> bool {
    has_tools() && Path::new("/usr/bin/chromium").is_file() || std::env::var_os("CI").is_some()
}

/// The command that runs a script with its task.
pub fn script(name: &str, task: &serde_json::Value) -> Command {
    let mut command = Command::new("node");
    command.arg(tree::root().join("page/tests").join(name)).arg(task.to_string());
    command
}
