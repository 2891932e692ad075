//! A cache of files, so that only changed ones are read and parsed again.
//!
//! A file with the same size, times and inode is unchanged, unless it was written a moment before it was read: then its
//! bytes are compared. After a failed read everything stays as it was. Of an object that several files contain, the
//! last one wins, in the order of [`super::file`]. What other programs render comes after the files, and is rendered at every
//! read. If directories say something else about their files than before, all files are parsed again. Objects are not kept
//! here; the engine has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gatepost_core::diagnostic::{Diagnostic, FieldPath};
use gatepost_core::model::{Key, Kind, ObjectRef};
use gatepost_core::snapshot::{Change, Object};
use gatepost_objects::layout::{Layout, TextFacts};
use gatepost_objects::{Loaded, NamedText, ParseSettings, ParsedText, Pool, read_all, read_with};
use ring::digest::{SHA256, digest};

use super::file::{self, FoundFile, Text};
use super::{Objects, is_unreadable, rendered};
use crate::cli::Input;
use crate::error::RunError;
use crate::health::{SecretHeaders, headers};

/// Minimum age of the last write for a file's times to be reliable. A younger file may be written again with the same
/// times.
const RELIABLE_AGE: Duration = Duration::from_secs(2);

/// The files of a command line as of the last read.
pub struct FileCache {
    input: Input,
    settings: ParseSettings,
    /// What other programs rendered for the last read.
    rendered: Vec<Text>,
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
    /// The files that changed, in order.
    pub files: Vec<ChangedFile>,
}

/// A file that is not as it was at the last read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path, or the name of a text that was rendered.
    pub path: PathBuf,
    /// What became of it, as words behind the path.
    pub change: &'static str,
}

/// The state of one file.
#[derive(Clone)]
struct CachedFile {
    path: PathBuf,
    stamp: Option<Stamp>,
    hash: Vec<u8>,
    objects: BTreeSet<ObjectRef>,
    problems: Vec<Diagnostic>,
    facts: TextFacts,
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
        let mut stamps = Vec::new();
        let mut texts = Vec::new();
        for file in file::find(&input.files)? {
            stamps.push(file.metadata.as_ref().and_then(Stamp::of));
            texts.push(file::read(&file.path).map_err(RunError::Unreadable)?);
        }
        let layout = Arc::new(rendered::read(input, &mut texts)?);
        let rendered = texts[stamps.len()..].to_vec();
        stamps.resize(texts.len(), None);
        let settings = ParseSettings { layout, ..input.parse_settings() };
        let named: Vec<NamedText<'_>> = texts.iter().map(|text| (&*text.name, &*text.bytes)).collect();
        let readings = read_all(&named, &settings);
        let (mut loaded, mut files) = (Loaded::default(), Vec::new());
        for ((stamp, text), reading) in stamps.into_iter().zip(texts).zip(readings) {
            files.push(Arc::new(CachedFile::of(PathBuf::from(&text.name), stamp, &text, &reading)));
            loaded.take(text.name.into(), text.bytes, reading, &settings.layout);
        }
        input.complete(&mut loaded);
        Ok((FileCache { input: input.clone(), settings, rendered, files }, Objects { loaded }))
    }

    /// Reads changed files; after an error everything stays as it was.
    pub fn refresh(&mut self) -> Result<Refreshed, RunError> {
        let rendered = rendered::texts(&self.input)?;
        let found = file::find(&self.input.files)?;
        let mut looked = self.look_at_all(&found, &rendered, &self.settings, true)?;
        let layout = Arc::new(layout_of(&looked, &rendered));
        let mut settings = self.settings.clone();
        if layout != settings.layout {
            settings.layout = layout;
            looked = self.look_at_all(&found, &rendered, &settings, false)?;
        }
        let files = self.changed_files(&looked);
        let mut known: BTreeMap<&PathBuf, &Arc<CachedFile>> =
            self.files.iter().map(|file| (&file.path, file)).collect();
        looked.iter().for_each(|now| _ = known.remove(&now.file.path));
        let gone = known.into_values().flat_map(|file| file.objects.iter().cloned()).collect();
        let changes = self.changes(gone, &mut looked, &settings, &rendered)?;
        self.files = looked.into_iter().map(|now| now.file).collect();
        (self.settings, self.rendered) = (settings, rendered);
        let problems = self.files.iter().flat_map(|file| file.problems.iter().cloned()).collect();
        Ok(Refreshed { changes, problems, files })
    }

    /// What became of each file since the last read, where anything did.
    fn changed_files(&self, looked: &[Looked]) -> Vec<ChangedFile> {
        let known: BTreeMap<&PathBuf, &Arc<CachedFile>> = self.files.iter().map(|file| (&file.path, file)).collect();
        let now: BTreeSet<&PathBuf> = looked.iter().map(|now| &now.file.path).collect();
        let lost = |file: &CachedFile| file.problems.iter().any(is_unreadable);
        let changed = looked.iter().filter_map(|now| {
            let before = known.get(&now.file.path).map(|file| (lost(file), file.hash == now.file.hash));
            let change = match (before, lost(&now.file)) {
                (Some((_, true)), _) => return None,
                (None, true) => "is new and cannot be read",
                (None, false) => "is new",
                (Some(_), true) => "changed and cannot be read",
                (Some((true, _)), false) => "changed and is readable again",
                (Some((false, _)), false) => "changed",
            };
            Some(ChangedFile { path: now.file.path.clone(), change })
        });
        let gone = known.keys().filter(|path| !now.contains(**path));
        let gone = gone.map(|path| ChangedFile { path: (*path).clone(), change: "was removed" });
        changed.chain(gone).collect()
    }

    /// Every file and rendered text; those that did not change are not parsed, if what was parsed before may be used.
    fn look_at_all(
        &self,
        found: &[FoundFile],
        rendered: &[Text],
        settings: &ParseSettings,
        may_keep: bool,
    ) -> Result<Vec<Looked>, RunError> {
        let known: BTreeMap<&PathBuf, &Arc<CachedFile>> = self.files.iter().map(|file| (&file.path, file)).collect();
        let before = |path: &PathBuf| known.get(path).copied().filter(|_| may_keep);
        let mut pool = Pool::new();
        let mut looked: Vec<Looked> = Vec::with_capacity(known.len());
        for found in found {
            let now = look(found, before(&found.path), settings, &mut pool).map_err(RunError::Unreadable)?;
            looked.push(now);
        }
        for text in rendered {
            let path = PathBuf::from(&text.name);
            looked.push(look_at_text(path.clone(), None, text, before(&path), settings, &mut pool));
        }
        Ok(looked)
    }

    /// The texts of files with parse errors, for showing positions.
    pub fn unreadable(&self) -> Objects {
        let lost = self.files.iter().filter(|file| file.problems.iter().any(is_unreadable));
        let texts = lost.filter_map(|file| text_at(&file.path, &self.rendered).ok());
        let texts = texts.map(|text| (text.name.into(), text.bytes));
        Objects { loaded: gatepost_objects::collect(texts, &self.settings) }
    }

    /// The headers in a Secret of the files, read anew: nothing of it is kept here.
    pub fn secret_headers(&self, secret: &Key) -> SecretHeaders {
        let object = ObjectRef { kind: Kind::Secret, key: secret.clone() };
        let missing = || format!("Secret {secret} is not among the files");
        let file = self.files.iter().rfind(|file| file.objects.contains(&object)).ok_or_else(missing)?;
        let text = file::read(&file.path).map_err(|error| error.to_string())?;
        let parsed = read_with(&text.name, &text.bytes, &self.settings, &mut Pool::new());
        let read = parsed.objects.into_iter().rfind(|read| read.object.object() == object).ok_or_else(missing)?;
        if read.origin.prefix != FieldPath::default() {
            return Err(format!("Secret {secret} stands in a List; write it as a document of its own"));
        }
        let document = text.bytes.get(read.origin.bytes).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let values = gatepost_objects::mapping(document.ok_or_else(missing)?)?;
        headers::of_secret(&values.into()).map_err(|error| format!("Secret {secret}: {error}"))
    }

    /// The changes of objects in removed and parsed files. `gone` are the objects of removed files.
    fn changes(
        &self,
        gone: BTreeSet<ObjectRef>,
        looked: &mut [Looked],
        settings: &ParseSettings,
        rendered: &[Text],
    ) -> Result<Vec<Change>, RunError> {
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
        affected.into_iter().map(|object| change(object, &winners, looked, settings, rendered)).collect()
    }
}

/// The change of one object, whose last file wins.
fn change(
    object: ObjectRef,
    winners: &BTreeMap<ObjectRef, usize>,
    looked: &mut [Looked],
    settings: &ParseSettings,
    rendered: &[Text],
) -> Result<Change, RunError> {
    let Some(now) = winners.get(&object).and_then(|at| looked.get_mut(*at)) else {
        return Ok(Change::Delete(object));
    };
    if now.parsed.is_none() {
        // Another file contained the object as well, and no longer does.
        let text = text_at(&now.file.path, rendered).map_err(RunError::Unreadable)?;
        now.parsed = Some(objects_of(parse(&text, settings, &mut Pool::new())));
    }
    let described = now.parsed.iter().flatten().rfind(|described| described.object() == object);
    Ok(described.map_or(Change::Delete(object), |object| Change::Upsert(object.clone())))
}

/// A text that was rendered, or of a file.
fn text_at(path: &Path, rendered: &[Text]) -> anyhow::Result<Text> {
    match rendered.iter().find(|text| Path::new(&text.name) == path) {
        Some(text) => Ok(text.clone()),
        None => file::read(path),
    }
}

/// What directories say about the files in them.
fn layout_of(looked: &[Looked], rendered: &[Text]) -> Layout {
    let names: Vec<String> = looked.iter().map(|now| now.file.path.display().to_string()).collect();
    let named = names.iter().zip(looked).map(|(name, now)| (name.as_str(), &now.file.facts));
    let mut layout = Layout::of(named, |name| file::read(Path::new(name)).ok().map(|text| text.bytes));
    rendered.iter().for_each(|text| layout.add_rendered(text.name.as_str().into()));
    layout
}

/// Checks a file: reads it if it may have changed, and parses it if it has.
fn look(
    found: &FoundFile,
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
    Ok(look_at_text(found.path.clone(), stamp, &text, before, settings, pool))
}

/// Parses a text if it changed.
fn look_at_text(
    path: PathBuf,
    stamp: Option<Stamp>,
    text: &Text,
    before: Option<&Arc<CachedFile>>,
    settings: &ParseSettings,
    pool: &mut Pool,
) -> Looked {
    if let Some(before) = before.filter(|before| before.hash == hash(text)) {
        return Looked { file: Arc::new(CachedFile { stamp, ..(**before).clone() }), parsed: None };
    }
    let reading = parse(text, settings, pool);
    let file = Arc::new(CachedFile::of(path, stamp, text, &reading));
    Looked { file, parsed: Some(objects_of(reading)) }
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
        let facts = TextFacts::of(&text.name, &text.bytes);
        CachedFile { path, stamp, hash: hash(text), objects, problems: reading.diagnostics.clone(), facts }
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
            kustomize: Vec::new(),
            helm: Vec::new(),
            values: Vec::new(),
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
    fn a_kustomization_that_changes_moves_the_objects_below() {
        let folder = Scratch::new().unwrap();
        let without = gateway("one", "x").replace(", namespace: a", "");
        folder.file("shop/a.yaml", &without).unwrap();
        folder.file("shop/kustomization.yaml", "namespace: shop\nresources: [a.yaml]\n").unwrap();
        let (mut cache, objects) = FileCache::open(&input(&folder)).unwrap();
        let mut engine = Engine::new(Default::default(), Default::default(), Default::default());
        engine.apply(Change::between(&Snapshot::new(), objects.snapshot()));
        let namespaces = |engine: &Engine| {
            engine.world().snapshot().gateways.keys().map(|key| key.namespace.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(namespaces(&engine), ["shop"]);
        folder.file("shop/kustomization.yaml", "namespace: store\nresources: [a.yaml]\n").unwrap();
        engine.apply(cache.refresh().unwrap().changes);
        assert_eq!(namespaces(&engine), ["store"]);
    }

    #[test]
    fn what_became_of_each_file_is_told() {
        let folder = Scratch::new().unwrap();
        folder.file("a.yaml", &gateway("one", "x")).unwrap();
        folder.file("b.yaml", &gateway("two", "x")).unwrap();
        let (mut cache, _) = FileCache::open(&input(&folder)).unwrap();
        let mut told = || -> Vec<String> {
            let files = cache.refresh().unwrap().files.into_iter();
            files.map(|file| format!("{} {}", file.path.file_name().unwrap().display(), file.change)).collect()
        };
        assert_eq!(told(), [""; 0]);
        folder.file("a.yaml", &gateway("one", "y")).unwrap();
        std::fs::remove_file(folder.path().join("b.yaml")).unwrap();
        folder.file("c.yaml", &gateway("two", "x")).unwrap();
        folder.file("d.yaml", "kind: [").unwrap();
        let expected = ["a.yaml changed", "c.yaml is new", "d.yaml is new and cannot be read", "b.yaml was removed"];
        assert_eq!(told(), expected);
        folder.file("a.yaml", "kind: [").unwrap();
        folder.file("d.yaml", &gateway("three", "x")).unwrap();
        assert_eq!(told(), ["a.yaml changed and cannot be read", "d.yaml changed and is readable again"]);
        assert_eq!(told(), [""; 0]);
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
