//! The real external-dns, as the program of `benches/peers/external-dns` runs it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Outcome;
use super::cost::output;

/// What it prints for the objects of a folder, one record a line.
pub(super) fn records(folder: &Path) -> Outcome<String> {
    output(command("records", folder)?)
}

/// What so many of its loops cost over filled caches, on one thread.
pub(super) fn time(folder: &Path, runs: usize) -> Outcome<Value> {
    let mut command = command("time", folder)?;
    command.arg("--runs").arg(runs.to_string()).arg("--source").arg("gateway-httproute").env("GOMAXPROCS", "1");
    Ok(serde_json::from_str(&output(command)?)?)
}

fn command(mode: &str, folder: &Path) -> Outcome<Command> {
    let mut command = Command::new(program()?);
    command.arg(mode).arg("-f").arg(folder).arg("--gateway-listener-sets");
    Ok(command)
}

/// Where the program is; it is built where it is not there yet.
fn program() -> Outcome<String> {
    let mut command = Command::new(root().join("scripts/peer"));
    command.arg("external-dns");
    Ok(output(command)?.trim().to_owned())
}

/// The checkout.
pub(super) fn root() -> std::path::PathBuf {
    gatepost_testkit::tree::root()
}
