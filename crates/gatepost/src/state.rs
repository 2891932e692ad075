//! What runs remember: which instance this is, which records were called ours, and what was deleted or rewritten a short
//! while ago.
//!
//! All of it lives in a state directory; without one a run remembers nothing, which only ever makes it more careful. Files
//! are replaced whole, and only one run at a time may write there. Nothing of the objects, and no secret of a provider, is
//! kept here.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gatepost_core::plan::{Instance, Plan};
use ring::rand::{SecureRandom, SystemRandom};

use crate::apply::Outcome;
use crate::error::RunError;

mod memory;

pub use memory::Memory;

/// The file with the secret that makes an instance.
const INSTANCE: &str = "instance";
/// The file that is locked by who writes.
const LOCK: &str = "lock";
/// What is remembered, and where.
#[derive(Debug, Default)]
pub struct State {
    directory: Option<PathBuf>,
    instance: Instance,
    memory: Memory,
    /// Held for as long as this run may write.
    _lock: Option<File>,
}

impl State {
    /// Reads what is remembered in a directory, which is made where it is not there; nothing without one. Who writes keeps
    /// others from writing.
    pub fn open(directory: Option<&Path>, writes: bool) -> Result<State, RunError> {
        let Some(directory) = directory else { return Ok(State::default()) };
        let failed = |error: io::Error| RunError::usage(format!("--state-dir {}: {error}", directory.display()));
        fs::create_dir_all(directory).map_err(failed)?;
        let lock = if writes { Some(lock(directory)?) } else { None };
        let instance = Instance::new(secret(&directory.join(INSTANCE)).map_err(failed)?.trim());
        let memory = Memory::load(directory)?;
        Ok(State { directory: Some(directory.to_owned()), instance, memory, _lock: lock })
    }

    /// Which instance this is; runs without a state directory are one and the same.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The same as another instance, where something else than the directory says which.
    pub fn of_instance(mut self, instance: Instance) -> State {
        self.instance = instance;
        self
    }

    /// What is remembered.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Learns what a plan called ours and what was deleted, and keeps it.
    pub fn learn(&mut self, plan: &Plan, outcome: &Outcome) -> io::Result<()> {
        let Some(directory) = &self.directory else {
            self.memory.learn(plan, outcome, memory::now());
            return Ok(());
        };
        if self.memory.learn(plan, outcome, memory::now()) { self.memory.save(directory) } else { Ok(()) }
    }
}

/// Keeps other runs from writing into a directory, for as long as the file is open.
fn lock(directory: &Path) -> Result<File, RunError> {
    let failed =
        |error: &dyn std::fmt::Display| RunError::usage(format!("--state-dir {}: {error}", directory.display()));
    let file = File::options().create(true).truncate(false).write(true).open(directory.join(LOCK));
    let file = file.map_err(|error| failed(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(failed(
            &"another run of gatepost writes there now: wait for it, or give this one a directory of its own",
        )),
        Err(fs::TryLockError::Error(error)) => Err(failed(&error)),
    }
}

/// The secret of an instance: read, or made once.
fn secret(path: &Path) -> io::Result<String> {
    if let Ok(text) = fs::read_to_string(path) {
        return Ok(text);
    }
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system has no random numbers"))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match private(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            Ok(text)
        }
        // Another run was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path),
        Err(error) => Err(error),
    }
}

/// A new file that only its owner reads.
fn private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::memory::tests::{deletion, written};
    use super::*;
    use gatepost_testkit::scratch::Scratch;

    #[test]
    fn a_directory_makes_an_instance_that_stays() {
        let folder = Scratch::new().unwrap();
        let path = folder.path().join("state");
        let mut first = State::open(Some(&path), true).unwrap();
        first.learn(&deletion("a.example.com"), &written()).unwrap();
        assert!(matches!(State::open(Some(&path), true), Err(RunError::Usage(_))), "one at a time");
        let second = State::open(Some(&path), false).unwrap();
        assert_eq!(first.instance(), second.instance());
        assert_eq!(first.memory(), second.memory());
        assert_eq!(second.memory().recent_deletes().len(), 1);
        let other = State::open(Some(&folder.path().join("other")), true).unwrap();
        assert_ne!(first.instance(), other.instance());
        assert_ne!(first.instance(), State::default().instance());
    }

    #[test]
    fn damage_is_a_failure_with_a_way_out() {
        let folder = Scratch::new().unwrap();
        for text in ["", "{", "{\"format\":\"x\",\"version\":1,\"ours\":[],\"deletes\":[]}"] {
            folder.file("memory.json", text).unwrap();
            match State::open(Some(folder.path()), false) {
                Err(RunError::Unreadable(error)) => assert!(error.to_string().contains("remove the file"), "{error}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
