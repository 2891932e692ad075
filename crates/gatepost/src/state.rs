//! The state of an instance between runs: its identity, which records are ours, and recent deletes and rewrites.
//!
//! It is stored in a state directory; a run without one remembers nothing, which only makes it more careful. Files are
//! replaced as a whole, and only one run at a time may write. Neither objects nor secrets of a provider are stored
//! here.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gatepost_core::health::ObservedHealth;
use gatepost_core::plan::{Instance, Plan};
use gatepost_core::publication::providers::DEFAULT_PROVIDER;
use ring::rand::{SecureRandom, SystemRandom};

use crate::apply::Outcome;
use crate::error::RunError;
use crate::health::kept;

mod memory;

pub use memory::Memory;

/// The file with the secret that identifies an instance.
const INSTANCE: &str = "instance";
/// The file that a writing run locks.
const LOCK: &str = "lock";
/// The file with what probes found out.
const HEALTH: &str = "health.json";
/// Maximum size of that file, in bytes.
const LARGEST_HEALTH: u64 = 64 << 20;
/// The stored state and its directory.
#[derive(Debug, Default)]
pub struct State {
    directory: Option<PathBuf>,
    instance: Instance,
    memory: Memory,
    /// What probes found out in earlier runs.
    health: ObservedHealth,
    /// The lock, held while this run may write.
    _lock: Option<File>,
}

impl State {
    /// Reads the state in a directory, which is created if it does not exist; empty without a directory. If `writes` is
    /// set, takes the lock.
    pub fn open(directory: Option<&Path>, writes: bool) -> Result<State, RunError> {
        let Some(directory) = directory else { return Ok(State::default()) };
        let failed = |error: io::Error| RunError::usage(format!("--state-dir {}: {error}", directory.display()));
        private_directory(directory).map_err(failed)?;
        let lock = if writes { Some(lock(directory)?) } else { None };
        let instance = Instance::new(secret(&directory.join(INSTANCE)).map_err(failed)?.trim());
        let memory = Memory::load(directory)?;
        let health = kept_health(directory)?;
        Ok(State { directory: Some(directory.to_owned()), instance, memory, health, _lock: lock })
    }

    /// What is remembered of one of several providers. The one of the command line has the directory as it always was,
    /// the others have one each below it; the lock of the directory is for all.
    pub fn of_provider(&self, name: &str) -> Result<State, RunError> {
        let instance = self.instance.clone();
        let Some(directory) = &self.directory else { return Ok(State { instance, ..State::default() }) };
        let directory = match name {
            DEFAULT_PROVIDER => directory.clone(),
            other => directory.join("providers").join(other),
        };
        let failed = |error: io::Error| RunError::usage(format!("--state-dir {}: {error}", directory.display()));
        private_directory(&directory).map_err(failed)?;
        let memory = Memory::load(&directory)?;
        Ok(State { directory: Some(directory), instance, memory, ..State::default() })
    }

    /// What probes found out in earlier runs.
    pub fn health(&self) -> &ObservedHealth {
        &self.health
    }

    /// Keeps what probes found out.
    pub fn keep_health(&mut self, health: &ObservedHealth) -> io::Result<()> {
        if self.health == *health {
            return Ok(());
        }
        self.health.clone_from(health);
        match &self.directory {
            Some(directory) => replace(directory, HEALTH, &kept::write(health).map_err(io::Error::other)?),
            None => Ok(()),
        }
    }

    /// The identity of this instance; all runs without a state directory have the same one.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Replaces the identity, for callers that have another source for it.
    pub fn of_instance(mut self, instance: Instance) -> State {
        self.instance = instance;
        self
    }

    /// The memory of earlier plans.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Records the owned and deleted record sets of a plan, and writes the file.
    pub fn learn(&mut self, plan: &Plan, outcome: &Outcome) -> io::Result<()> {
        let Some(directory) = &self.directory else {
            self.memory.learn(plan, outcome, memory::now());
            return Ok(());
        };
        if self.memory.learn(plan, outcome, memory::now()) { self.memory.save(directory) } else { Ok(()) }
    }
}

/// Locks a directory against other runs while the file is open.
fn lock(directory: &Path) -> Result<File, RunError> {
    let failed =
        |error: &dyn std::fmt::Display| RunError::usage(format!("--state-dir {}: {error}", directory.display()));
    let mut options = private_options();
    let file = options.create(true).truncate(false).write(true).open(directory.join(LOCK));
    let file = file.map_err(|error| failed(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(failed(
            &"another run of gatepost writes there now: wait for it, or give this one a directory of its own",
        )),
        Err(fs::TryLockError::Error(error)) => Err(failed(&error)),
    }
}

/// Replaces a file as a whole.
fn replace(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let (path, fresh) = (directory.join(name), directory.join(format!("{name}.new")));
    let mut file = private_options().create(true).truncate(true).write(true).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, &path)?;
    File::open(directory)?.sync_all()
}

/// Reads what probes found out, from a state directory; nothing if there is no file.
pub fn kept_health(directory: &Path) -> Result<ObservedHealth, RunError> {
    let path = &directory.join(HEALTH);
    let damaged = |error: String| {
        let advice = "remove the file; then addresses count as healthy until they were probed";
        RunError::Unreadable(anyhow::anyhow!("{} cannot be used ({error}): {advice}", path.display()))
    };
    match fs::metadata(path) {
        Ok(found) if found.len() > LARGEST_HEALTH => return Err(damaged("it is larger than 64 MiB".to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ObservedHealth::default()),
        Err(error) => return Err(damaged(error.to_string())),
    }
    let bytes = fs::read(path).map_err(|error| damaged(error.to_string()))?;
    kept::read(&bytes).map_err(damaged)
}

/// The secret of an instance; created if it does not exist.
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
        // Another run created it at the same time.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path),
        Err(error) => Err(error),
    }
}

/// Creates a file that only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    private_options().write(true).create_new(true).open(path)
}

/// Options that create files which only their owner can read.
fn private_options() -> fs::OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a directory that only its owner can open; one that exists keeps its rights.
fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
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

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_what_is_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Scratch::new().unwrap();
        let path = folder.path().join("state");
        let mut state = State::open(Some(&path), true).unwrap();
        state.learn(&deletion("a.example.com"), &written()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        let files: Vec<_> = fs::read_dir(&path).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 3, "instance, lock and memory: {files:?}");
        files.iter().for_each(|file| assert_eq!(mode(file), 0o600, "{}", file.display()));
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
