//! The settings file: every flag as a key, as if it stood on the command line.
//!
//! The command line wins over the environment, the environment over the file. A key that no command knows, or a value that a
//! flag does not take, ends the program with exit status 2 and names the key. `providers` is the one key with entries of its
//! own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Command;
use serde_json::Value;

use super::Failure;
use super::flags::providers;

/// The largest settings file.
const LARGEST: u64 = 1 << 20;

/// The settings file that is named on a command line or in the environment.
pub(super) fn named(arguments: &[OsString]) -> Option<PathBuf> {
    let texts: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
    let inline = texts.iter().find_map(|a| a.strip_prefix("--settings=").map(PathBuf::from));
    let apart = || texts.iter().position(|a| a == "--settings").and_then(|i| arguments.get(i + 1)).map(PathBuf::from);
    inline.or_else(apart).or_else(|| std::env::var_os("GATEPOST_SETTINGS").map(PathBuf::from))
}

/// The command with the file's values as defaults.
pub(super) fn applied(mut root: Command, path: &Path) -> Result<Command, Failure> {
    let entries = entries(path)?;
    for (key, value) in &entries {
        let id = key.replace('-', "_");
        let values = match &value {
            // `severity: {unknown-field: warning}` is `--severity unknown-field=warning`.
            Value::Object(entries) if key == "severity" => pairs(entries),
            value if key == "providers" => {
                let list = providers::as_flag(value, &entries);
                let list = list.map_err(|why| bad(path, key, &why))?;
                list.into_string().ok().map(|text| vec![text])
            }
            value => texts(value),
        };
        let values =
            values.ok_or_else(|| bad(path, key, "takes a text, a number, true or false, or a list of these"))?;
        let knows = |c: &Command| c.get_arguments().any(|a| a.get_id() == id.as_str() && a.get_long().is_some());
        let commands: Vec<_> = root.get_subcommands().filter(|c| knows(c)).map(|c| c.get_name().to_owned()).collect();
        if commands.is_empty() {
            return Err(bad(path, key, "is not a flag of any command"));
        }
        for command in commands {
            let (id, values) = (id.clone(), values.clone());
            root = root.mut_subcommand(command, |c| c.mut_arg(id, |a| a.default_values(values)));
        }
    }
    Ok(root)
}

fn entries(path: &Path) -> Result<serde_json::Map<String, Value>, Failure> {
    let unreadable = |error: String| Failure::usage(format!("settings file {}: {error}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
    if size > LARGEST {
        return Err(unreadable("is larger than 1 MiB".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    gatepost_objects::mapping(&text).map_err(unreadable)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Number(number) => Some(vec![number.to_string()]),
        Value::Bool(flag) => Some(vec![flag.to_string()]),
        Value::Array(items) => items.iter().map(texts).collect::<Option<Vec<_>>>().map(|all| all.concat()),
        Value::Null | Value::Object(_) => None,
    }
}

fn pairs(entries: &serde_json::Map<String, Value>) -> Option<Vec<String>> {
    entries.iter().map(|(key, value)| Some(format!("{key}={}", texts(value)?.concat()))).collect()
}

fn bad(path: &Path, key: &str, why: &str) -> Failure {
    Failure::usage(format!("settings file {}: `{key}` {why}", path.display()))
}
