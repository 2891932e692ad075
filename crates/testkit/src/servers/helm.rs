//! Helm, with which tests render and install the chart. `scripts/servers-helm` builds it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use super::{Scratch, kube, other, output};
use crate::tree;

/// The program, with a home of its own.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
    home: Scratch,
}

impl Helm {
    /// Finds the program that was built.
    pub fn find() -> io::Result<Helm> {
        let program = place()?;
        if !program.is_file() {
            return Err(other(format!("{} is not there; run scripts/servers-helm", program.display())));
        }
        Ok(Helm { program, home: Scratch::new("helm")? })
    }

    /// Where it is.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs it; a failure has what it said. Nothing of the user's own settings is read.
    pub fn run(&self, words: &[&str]) -> io::Result<String> {
        let home = self.home.path();
        let mut command = Command::new(&self.program);
        command.args(words).env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        output(command.current_dir(home))
    }

    /// Writes a file of values, and says where it is.
    pub fn values(&self, name: &str, text: &str) -> io::Result<String> {
        let path = self.home.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    }
}

/// The chart of this project.
pub fn chart() -> String {
    tree::root().join("charts/gatepost").display().to_string()
}

/// A test that needs Helm and a cluster. Where it was not built it is skipped, under a name that says so, and counted.
pub fn trial(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    let is_built = place().is_ok_and(|program| program.is_file());
    if is_built || std::env::var_os("CI").is_some() {
        return kube::trial(name, test);
    }
    Trial::test(format!("{name} (skipped: scripts/servers-helm was not run)"), || Ok(())).with_ignored_flag(true)
}

/// The directory of the program.
pub fn programs() -> io::Result<PathBuf> {
    Ok(place()?.parent().map(Path::to_path_buf).unwrap_or_default())
}

/// A test that needs only the program.
pub fn program_trial(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    let is_built = place().is_ok_and(|program| program.is_file());
    if is_built || std::env::var_os("CI").is_some() {
        return Trial::test(name, test);
    }
    Trial::test(format!("{name} (skipped: scripts/servers-helm was not run)"), || Ok(())).with_ignored_flag(true)
}

fn place() -> io::Result<PathBuf> {
    let said = output(Command::new(tree::root().join("scripts/servers-helm")).arg("where"))?;
    Ok(Path::new(said.trim()).join("helm"))
}
