//! A cache of files, so that only changed ones are read and parsed again.
//!
//! A file with the same size, times and inode is unchanged, unless it was written a moment before it was read: then its
//! bytes are compared. After a failed read everything stays as it was. Of an object that several files contain, the
//! last one wins, in the order of [`super::file`]. Objects are not kept here; the engine has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::model::ObjectRef;
use gatepost_core::snapshot::{Change, Object};
use gatepost_objects::{Loaded, NamedText, ParseSettings, ParsedText, Pool, read_all, read_with};
use ring::digest::{SHA256, digest};

use super::file::{self, FoundFile, Text};
use super::{Objects, is_unreadable};
use crate::cli::Input;
use crate::error::RunError;

/// Minimum age of the last write for a file's times to be reliable. A younger file may be written again with the same
/// times.
const RELIABLE_AGE: Duration = Duration::from_secs(2);

/// The files of a command line as of the last read.
pub struct FileCache {
    paths: Vec<PathBuf>,
    settings: ParseSettings,
    /// In the order in which they are read; later objects replace earlier ones.
    files: Vec<Arc<CachedFile>>,
}

/// The changes since the last read.
#[derive(Debug, Default)]
pub struct Refreshed {
    /// Objects that were added, changed or removed.
    pub changes: Vec<Change>,
    /// Problems of all objects, changed or not, except for duplicates.
    pub problems: Vec<Diagnostic>,
}

/// The state of one file.
#[derive(Clone)]
struct CachedFile {
    path: PathBuf,
    stamp: Option<Stamp>,
    hash: Vec<u8>,
    objects: BTreeSet<ObjectRef>,
    problems: Vec<Diagnostic>,
}

/// Metadata that detects a changed file without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: SystemTime,
    inode: [i64; 4],
    /// Whether the last write was long enough before the read for the times to be reliable.
    is_reliable: bool,
}

/// The current state of a file, and its objects if it was parsed.
struct Looked {
    file: Arc<CachedFile>,
    parsed: Option<Vec<Object>>,
}

impl FileCache {
    /// Reads all files for the first time.
    pub fn open(input: &Input) -> Result<(FileCache, Objects), RunError> {
        let mut cache = FileCache { paths: input.files.clone(), settings: input.parse_settings(), files: Vec::new() };
        let (mut found, mut texts) = (Vec::new(), Vec::new());
        for file in file::find(&cache.paths)? {
            found.push((file.metadata.as_ref().and_then(Stamp::of), file.path));
            texts.push(file::read(&found[found.len() - 1].1).map_err(RunError::Unreadable)?);
        }
        let named: Vec<NamedText<'_>> = texts.iter().map(|text| (&*text.name, &*text.bytes)).collect();
        let readings = read_all(&named, &cache.settings);
        let mut loaded = Loaded::default();
        for (((stamp, path), text), reading) in found.into_iter().zip(texts).zip(readings) {
            cache.files.push(Arc::new(CachedFile::of(path, stamp, &text, &reading)));
            loaded.take(text.name.into(), text.bytes, reading);
        }
        input.complete(&mut loaded);
        Ok((cache, Objects { loaded }))
    }

    /// Reads changed files; after an error everything stays as it was.
    pub fn refresh(&mut self) -> Result<Refreshed, RunError> {
        let mut known: BTreeMap<&PathBuf, &Arc<CachedFile>> =
            self.files.iter().map(|file| (&file.path, file)).collect();
        let mut pool = Pool::new();
        let mut looked: Vec<Looked> = Vec::with_capacity(known.len());
        for found in file::find(&self.paths)? {
            let before = known.get(&found.path).copied();
            looked.push(look(found, before, &self.settings, &mut pool).map_err(RunError::Unreadable)?);
        }
        looked.iter().for_each(|now| _ = known.remove(&now.file.path));
        let gone = known.into_values().flat_map(|file| file.objects.iter().cloned()).collect();
        let changes = self.changes(gone, &mut looked)?;
        self.files = looked.into_iter().map(|now| now.file).collect();
        let problems = self.files.iter().flat_map(|file| file.problems.iter().cloned()).collect();
        Ok(Refreshed { changes, problems })
    }

    /// The texts of files with parse errors, for showing positions.
    pub fn unreadable(&self) -> Objects {
        let lost = self.files.iter().filter(|file| file.problems.iter().any(is_unreadable));
        let texts = lost.filter_map(|file| file::read(&file.path).ok()).map(|text| (text.name.into(), text.bytes));
        Objects { loaded: gatepost_objects::collect(texts, &self.settings) }
    }

    /// The changes of objects in removed and parsed files. `gone` are the objects of removed files.
    fn changes(&self, gone: BTreeSet<ObjectRef>, looked: &mut [Looked]) -> Result<Vec<Change>, RunError> {
        let mut affected = gone;
        let before: BTreeMap<&PathBuf, &BTreeSet<ObjectRef>> =
            self.files.iter().map(|file| (&file.path, &file.objects)).collect();
        for now in looked.iter().filter(|now| now.parsed.is_some()) {
            affected.extend(now.file.objects.iter().cloned());
            affected.extend(before.get(&now.file.path).into_iter().copied().flatten().cloned());
        }
        if affected.is_empty() {
            return Ok(Vec::new());
        }
        let mut winners: BTreeMap<ObjectRef, usize> = BTreeMap::new();
        for (at, now) in looked.iter().enumerate() {
            winners.extend(now.file.objects.intersection(&affected).map(|object| (object.clone(), at)));
        }
        affected.into_iter().map(|object| self.change(object, &winners, looked)).collect()
    }

    fn change(
        &self,
        object: ObjectRef,
        winners: &BTreeMap<ObjectRef, usize>,
        looked: &mut [Looked],
    ) -> Result<Change, RunError> {
        let Some(now) = winners.get(&object).and_then(|at| looked.get_mut(*at)) else {
            return Ok(Change::Delete(object));
        };
        if now.parsed.is_none() {
            // Another file contained the object as well, and no longer does.
            let text = file::read(&now.file.path).map_err(RunError::Unreadable)?;
            now.parsed = Some(objects_of(parse(&text, &self.settings, &mut Pool::new())));
        }
        let described = now.parsed.iter().flatten().rfind(|described| described.object() == object);
        Ok(described.map_or(Change::Delete(object), |object| Change::Upsert(object.clone())))
    }
}

/// Checks a file: reads it if it may have changed, and parses it if it has.
fn look(
    found: FoundFile,
    before: Option<&Arc<CachedFile>>,
    settings: &ParseSettings,
    pool: &mut Pool,
) -> anyhow::Result<Looked> {
    let stamp = found.metadata.as_ref().and_then(Stamp::of);
    if let Some(before) = before.filter(|before| before.stamp.is_some() && before.stamp == stamp)
        && stamp.as_ref().is_some_and(|stamp| stamp.is_reliable)
    {
        return Ok(Looked { file: before.clone(), parsed: None });
    }
    let text = file::read(&found.path)?;
    if let Some(before) = before.filter(|before| before.hash == hash(&text)) {
        return Ok(Looked { file: Arc::new(CachedFile { stamp, ..(**before).clone() }), parsed: None });
    }
    let reading = parse(&text, settings, pool);
    let file = Arc::new(CachedFile::of(found.path, stamp, &text, &reading));
    Ok(Looked { file, parsed: Some(objects_of(reading)) })
}

fn parse(text: &Text, settings: &ParseSettings, pool: &mut Pool) -> ParsedText {
    read_with(&text.name, &text.bytes, settings, pool)
}

fn objects_of(reading: ParsedText) -> Vec<Object> {
    reading.objects.into_iter().map(|read| read.object).collect()
}

fn hash(text: &Text) -> Vec<u8> {
    digest(&SHA256, &text.bytes).as_ref().to_vec()
}

impl CachedFile {
    fn of(path: PathBuf, stamp: Option<Stamp>, text: &Text, reading: &ParsedText) -> CachedFile {
        let objects = reading.objects.iter().map(|read| read.object.object()).collect();
        CachedFile { path, stamp, hash: hash(text), objects, problems: reading.diagnostics.clone() }
    }
}

impl Stamp {
    /// The stamp of a file that is about to be read; `None` if the system has no times for it.
    fn of(metadata: &Metadata) -> Option<Stamp> {
        let modified = metadata.modified().ok()?;
        let is_reliable = modified.elapsed().is_ok_and(|age| age > RELIABLE_AGE);
        Some(Stamp { length: metadata.len(), modified, inode: inode(metadata), is_reliable })
    }
}

/// Device, inode, and the time of the last metadata change.
#[cfg(unix)]
fn inode(metadata: &Metadata) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt;
    [metadata.dev().cast_signed(), metadata.ino().cast_signed(), metadata.ctime(), metadata.ctime_nsec()]
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> [i64; 4] {
    [0; 4]
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_core::incremental::Engine;
    use gatepost_core::snapshot::Snapshot;
    use gatepost_testkit::scratch::Scratch;

    fn gateway(name: &str, class: &str) -> String {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: a}}\n\
             spec: {{gatewayClassName: {class}, listeners: [{{name: web, port: 80, protocol: HTTP}}]}}\n---\n"
        )
    }

    fn input(folder: &Scratch) -> Input {
        Input {
            files: vec![folder.path().to_owned()],
            as_cluster: false,
            default_namespace: None,
            cluster: Default::default(),
        }
    }

    /// Applies the changes, and compares the result with a full read.
    fn follow(cache: &mut FileCache, engine: &mut Engine, folder: &Scratch) -> usize {
        let refreshed = cache.refresh().unwrap();
        let count = refreshed.changes.len();
        engine.apply(refreshed.changes);
        let objects = Objects::read(&input(folder)).unwrap();
        assert_eq!(engine.world().snapshot(), objects.snapshot());
        let lost = |problems: &[Diagnostic]| problems.iter().filter(|d| is_unreadable(d)).cloned().collect::<Vec<_>>();
        assert_eq!(lost(&refreshed.problems), lost(objects.problems()));
        assert_eq!(lost(cache.unreadable().problems()), lost(objects.problems()));
        count
    }

    #[test]
    fn only_what_changed_is_told_and_it_is_what_reading_everything_gives() {
        let folder = Scratch::new().unwrap();
        folder.file("a.yaml", &(gateway("one", "x") + &gateway("both", "first"))).unwrap();
        folder.file("b.yaml", &(gateway("two", "x") + &gateway("both", "second"))).unwrap();
        let (mut cache, objects) = FileCache::open(&input(&folder)).unwrap();
        let mut engine = Engine::new(Default::default(), Default::default(), Default::default());
        engine.apply(Change::between(&Snapshot::new(), objects.snapshot()));
        assert_eq!(follow(&mut cache, &mut engine, &folder), 0, "nothing changed");
        folder.file("a.yaml", &(gateway("one", "y") + &gateway("both", "third"))).unwrap();
        assert_eq!(follow(&mut cache, &mut engine, &folder), 2, "the later file still wins");
        folder.file("b.yaml", &gateway("two", "x")).unwrap();
        follow(&mut cache, &mut engine, &folder);
        folder.file("c.yaml", &gateway("both", "fourth")).unwrap();
        follow(&mut cache, &mut engine, &folder);
        std::fs::rename(folder.path().join("c.yaml"), folder.path().join("0.yaml")).unwrap();
        follow(&mut cache, &mut engine, &folder);
        folder.file("b.yaml", "kind: [").unwrap();
        follow(&mut cache, &mut engine, &folder);
        folder.file("b.yaml", &gateway("two", "z")).unwrap();
        follow(&mut cache, &mut engine, &folder);
        std::fs::remove_file(folder.path().join("a.yaml")).unwrap();
        follow(&mut cache, &mut engine, &folder);
        assert_eq!(engine.world().snapshot().gateways.len(), 2);
    }

    #[test]
    fn a_failure_changes_nothing() {
        let folder = Scratch::new().unwrap();
        folder.file("in/a.yaml", &gateway("one", "x")).unwrap();
        let (mut cache, _) = FileCache::open(&input(&folder)).unwrap();
        folder.file("in/a.yaml", &gateway("one", "y")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("b.yaml")).unwrap();
        assert!(matches!(cache.refresh(), Err(RunError::Unreadable(_))));
        std::fs::remove_file(folder.path().join("b.yaml")).unwrap();
        assert_eq!(cache.refresh().unwrap().changes.len(), 1, "it is told once it can be read");
    }
}
