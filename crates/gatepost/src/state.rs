//! What runs remember: which instance this is, which records were called ours, and what was deleted a short while ago.
//!
//! All of it lives in a state directory; without one a run remembers nothing, which only ever makes it more careful. Files
//! are replaced whole, and only one run at a time may write there. Nothing of the objects, and no secret of a provider, is
//! kept here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gatepost_core::desired::RecordType;
use gatepost_core::model::Str;
use gatepost_core::plan::{Instance, Plan, RecordKey, RecordKind};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::apply::Outcome;
use crate::cli::Failure;

/// The file with the secret that makes an instance.
const INSTANCE: &str = "instance";
/// The file that is locked by who writes.
const LOCK: &str = "lock";
/// The file with everything else.
const MEMORY: &str = "memory.json";
/// The format of that file.
const FORMAT: &str = "gatepost memory";
/// The largest file that is read.
const LARGEST: u64 = 256 << 20;
/// Seconds for which deletes count as recent.
const RECENT: u64 = 3600;

/// What is remembered, and where.
#[derive(Debug, Default)]
pub struct State {
    directory: Option<PathBuf>,
    instance: Instance,
    memory: Memory,
    /// Held for as long as this run may write.
    _lock: Option<File>,
}

/// What is remembered of earlier plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Record sets that earlier plans called ours.
    pub ours: BTreeSet<RecordKey>,
    deletes: Vec<Deletes>,
}

/// Record sets that were deleted at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Deletes {
    zone: String,
    at: u64,
    count: usize,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    format: String,
    version: u64,
    ours: Vec<KeptKey>,
    deletes: Vec<Deletes>,
}

#[derive(Serialize, Deserialize)]
struct KeptKey {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

impl State {
    /// Reads what is remembered in a directory, which is made where it is not there; nothing without one. Who writes keeps
    /// others from writing.
    pub fn open(directory: Option<&Path>, writes: bool) -> Result<State, Failure> {
        let Some(directory) = directory else { return Ok(State::default()) };
        let failed = |error: io::Error| Failure::usage(format!("--state-dir {}: {error}", directory.display()));
        fs::create_dir_all(directory).map_err(failed)?;
        let lock = if writes { Some(lock(directory)?) } else { None };
        let instance = Instance::new(secret(&directory.join(INSTANCE)).map_err(failed)?.trim());
        let memory = Memory::load(&directory.join(MEMORY))?;
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
        let before = self.memory.clone();
        self.memory.learn(plan, outcome, now());
        match &self.directory {
            Some(directory) if self.memory != before => self.memory.save(directory),
            _ => Ok(()),
        }
    }
}

impl Memory {
    /// How many record sets were deleted a short while ago, by zone.
    pub fn recent_deletes(&self) -> BTreeMap<Str, usize> {
        self.deletes_since(now().saturating_sub(RECENT))
    }

    fn deletes_since(&self, since: u64) -> BTreeMap<Str, usize> {
        let mut zones: BTreeMap<Str, usize> = BTreeMap::new();
        for deletes in self.deletes.iter().filter(|deletes| deletes.at >= since) {
            *zones.entry(deletes.zone.as_str().into()).or_default() += deletes.count;
        }
        zones
    }

    fn learn(&mut self, plan: &Plan, outcome: &Outcome, now: u64) {
        self.ours.extend(plan.ours.iter().cloned());
        self.deletes.retain(|deletes| deletes.at >= now.saturating_sub(RECENT));
        let mut deleted: BTreeMap<&Str, usize> = BTreeMap::new();
        for step in outcome.written.iter().filter_map(|i| plan.steps.get(*i)) {
            let gone = step.changes.iter().filter(|change| change.new.is_none());
            for change in gone {
                *deleted.entry(&step.zone).or_default() += 1;
                let (name, set_identifier) = (change.name.clone(), change.set_identifier.clone());
                self.ours.remove(&RecordKey { name, kind: change.kind, set_identifier });
            }
        }
        let deletes = deleted.into_iter().map(|(zone, count)| Deletes { zone: zone.to_string(), at: now, count });
        self.deletes.extend(deletes);
    }

    fn load(path: &Path) -> Result<Memory, Failure> {
        let damaged = |error: String| {
            let advice = "remove the file to begin anew; then nothing is deleted that this instance did not write";
            Failure::Unreadable(anyhow::anyhow!("{} cannot be used ({error}): {advice}", path.display()))
        };
        let size = match fs::metadata(path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Memory::default()),
            Err(error) => return Err(damaged(error.to_string())),
        };
        if size > LARGEST {
            return Err(damaged("it is larger than 256 MiB".to_owned()));
        }
        let bytes = fs::read(path).map_err(|error| damaged(error.to_string()))?;
        Memory::read(&bytes).map_err(damaged)
    }

    fn read(bytes: &[u8]) -> Result<Memory, String> {
        let kept: Kept = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if (kept.format.as_str(), kept.version) != (FORMAT, 1) {
            return Err(format!("it is `{}` version {}, and this program knows version 1", kept.format, kept.version));
        }
        let ours = kept.ours.into_iter().map(KeptKey::key).collect::<Result<_, _>>()?;
        Ok(Memory { ours, deletes: kept.deletes })
    }

    fn save(&self, directory: &Path) -> io::Result<()> {
        let ours = self.ours.iter().map(KeptKey::of).collect();
        let kept = Kept { format: FORMAT.to_owned(), version: 1, ours, deletes: self.deletes.clone() };
        let bytes = serde_json::to_vec(&kept).map_err(io::Error::other)?;
        let (path, fresh) = (directory.join(MEMORY), directory.join(format!("{MEMORY}.new")));
        let mut file = File::create(&fresh)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&fresh, &path)?;
        File::open(directory)?.sync_all()
    }
}

impl KeptKey {
    fn of(key: &RecordKey) -> Self {
        let id = key.set_identifier.as_ref().map(ToString::to_string);
        KeptKey { name: key.name.to_string(), kind: key.kind.as_str().to_owned(), id }
    }

    fn key(self) -> Result<RecordKey, String> {
        let kind: RecordType = match RecordKind::from(self.kind.as_str()) {
            RecordKind::Made(kind) => kind,
            RecordKind::Other(other) => return Err(format!("`{other}` is no type that is made here")),
        };
        Ok(RecordKey { name: self.name.into(), kind, set_identifier: self.id.map(Into::into) })
    }
}

/// Keeps other runs from writing into a directory, for as long as the file is open.
fn lock(directory: &Path) -> Result<File, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::usage(format!("--state-dir {}: {error}", directory.display()));
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

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_core::plan::{Content, SetChange, Step, Verb};
    use gatepost_testkit::scratch::Scratch;

    fn key(name: &str) -> RecordKey {
        RecordKey { name: name.into(), kind: RecordType::A, set_identifier: None }
    }

    fn deletion(name: &str) -> Plan {
        let old = Some(Content { values: vec!["192.0.2.1".into()], ..Content::default() });
        let change = SetChange { name: name.into(), kind: RecordType::A, set_identifier: None, old, new: None };
        let step = Step {
            zone: "example.com".into(),
            name: name.into(),
            verb: Verb::Delete,
            changes: vec![change],
            markers: Vec::new(),
            guards: Vec::new(),
            because: String::new(),
            routes: Vec::new(),
            group: 0,
            after: Vec::new(),
        };
        Plan { steps: vec![step], ours: [key("b.example.com")].into(), ..Plan::default() }
    }

    fn written() -> Outcome {
        Outcome { written: [0].into(), ..Outcome::default() }
    }

    #[test]
    fn deletes_count_for_an_hour_and_only_if_they_were_made() {
        let mut memory = Memory { ours: [key("a.example.com")].into(), ..Memory::default() };
        memory.learn(&deletion("a.example.com"), &written(), 10_000);
        assert_eq!(memory.ours, [key("b.example.com")].into());
        assert_eq!(memory.deletes_since(10_000), [("example.com".into(), 1)].into());
        memory.learn(&deletion("c.example.com"), &Outcome::default(), 10_000 + RECENT + 1);
        assert!(memory.deletes.is_empty());
    }

    #[test]
    fn a_directory_makes_an_instance_that_stays() {
        let folder = Scratch::new().unwrap();
        let path = folder.path().join("state");
        let mut first = State::open(Some(&path), true).unwrap();
        first.learn(&deletion("a.example.com"), &written()).unwrap();
        assert!(matches!(State::open(Some(&path), true), Err(Failure::Usage(_))), "one at a time");
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
                Err(Failure::Unreadable(error)) => assert!(error.to_string().contains("remove the file"), "{error}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
