//! Reads files, directories and standard input.
//!
//! Directories are read recursively and in order of names, so that the same directory always gives the same result.
//! Every read is bounded, and a file that cannot be read is an error with its path: a read is complete or fails.
//!
//! Who writes the files need not be who runs the command: a pull request is checked in a CI with secrets. So a symbolic
//! link in a directory may lead only to files inside this directory, and nothing but regular files is read.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use crate::error::RunError;

/// Maximum size of a file, in bytes.
const LARGEST: u64 = 256 << 20;
/// Maximum size of all files together, in bytes.
const LARGEST_SUM: u64 = 1 << 30;
/// Maximum depth of directories.
const DEEPEST: usize = 64;
/// Maximum number of files.
const MOST: usize = 200_000;

/// A text and its name.
#[derive(Clone)]
pub struct Text {
    /// Its path as given, or `-`.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A file to read.
pub(super) struct FoundFile {
    /// Its path as given, or `-`.
    pub(super) path: PathBuf,
    /// Its metadata; `None` for standard input.
    pub(super) metadata: Option<Metadata>,
}

/// Reads all files of the given paths.
pub fn texts(paths: &[PathBuf]) -> Result<Vec<Text>, RunError> {
    let found = find(paths)?;
    found.iter().map(|file| read(&file.path)).collect::<anyhow::Result<_>>().map_err(RunError::Unreadable)
}

/// Finds all files of the given paths, in the order in which they are read.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<FoundFile>, RunError> {
    let mut finder = Finder::default();
    for path in paths {
        finder.add(path).map_err(RunError::Unreadable)?;
    }
    Ok(finder.found)
}

#[derive(Default)]
struct Finder {
    found: Vec<FoundFile>,
    /// The size of all files together.
    bytes: u64,
    /// Directories already visited, so that symbolic links cannot form a cycle.
    folders: BTreeSet<PathBuf>,
}

impl Finder {
    fn add(&mut self, path: &Path) -> anyhow::Result<()> {
        if path == Path::new("-") {
            self.found.push(FoundFile { path: path.to_owned(), metadata: None });
            return Ok(());
        }
        let metadata = metadata(path)?;
        if metadata.is_dir() {
            return self.folder(path, &Root::of(path)?, 0);
        }
        if !metadata.is_file() && !is_descriptor(path) {
            return Err(not_regular(path));
        }
        self.file(path.to_owned(), metadata)
    }

    fn folder(&mut self, folder: &Path, root: &Root, depth: usize) -> anyhow::Result<()> {
        let real = real_path(folder)?;
        if depth > DEEPEST {
            return Err(anyhow!("{} is more than {DEEPEST} folders deep", folder.display()));
        }
        if !self.folders.insert(real) {
            return Ok(());
        }
        for path in entries_of(folder)?.into_iter().filter(|path| !is_hidden(path)) {
            self.entry(path, root, depth)?;
        }
        Ok(())
    }

    fn file(&mut self, path: PathBuf, metadata: Metadata) -> anyhow::Result<()> {
        self.bytes = self.bytes.saturating_add(metadata.len());
        if self.bytes > LARGEST_SUM {
            let most = LARGEST_SUM >> 20;
            return Err(anyhow!("the files up to {} have more than {most} MiB; name a smaller folder", path.display()));
        }
        self.found.push(FoundFile { path, metadata: Some(metadata) });
        if self.found.len() > MOST {
            return Err(anyhow!("more than {MOST} files; name a smaller folder"));
        }
        Ok(())
    }

    fn entry(&mut self, path: PathBuf, root: &Root, depth: usize) -> anyhow::Result<()> {
        let metadata = metadata(&path)?;
        if metadata.is_dir() {
            root.check(&path)?;
            return self.folder(&path, root, depth + 1);
        }
        if is_manifest(&path) {
            root.check(&path)?;
            if !metadata.is_file() {
                return Err(not_regular(&path));
            }
            self.file(path, metadata)?;
        }
        Ok(())
    }
}

/// A directory of the command line.
struct Root {
    given: PathBuf,
    /// Its path without symbolic links.
    real: PathBuf,
}

impl Root {
    fn of(path: &Path) -> anyhow::Result<Root> {
        Ok(Root { given: path.to_owned(), real: real_path(path)? })
    }

    /// Refuses a symbolic link that leads out of the directory. Where it leads is not told.
    fn check(&self, path: &Path) -> anyhow::Result<()> {
        if path.is_symlink() && !real_path(path)?.starts_with(&self.real) {
            let (link, root) = (path.display(), self.given.display());
            return Err(anyhow!(
                "{link} is a symbolic link that leads out of {root}, and only links inside a directory are followed; \
                 remove the link, or name the files that it leads to with another -f"
            ));
        }
        Ok(())
    }
}

fn metadata(path: &Path) -> anyhow::Result<Metadata> {
    fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))
}

fn real_path(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("cannot read {}", path.display()))
}

/// The paths in a directory, sorted.
fn entries_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let context = || format!("cannot read {}", folder.display());
    let entries = fs::read_dir(folder).with_context(context)?;
    let mut paths: Vec<_> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>().with_context(context)?;
    paths.sort();
    Ok(paths)
}

fn not_regular(path: &Path) -> anyhow::Error {
    anyhow!("{} is not a regular file; only regular files and standard input (`-`) are read", path.display())
}

/// Whether the path names an open file of this process, as `-f <(command)` of a shell does. It may be a pipe: only who
/// runs the command can open one.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.parent() == Some(Path::new(folder)))
        || path == Path::new("/dev/stdin")
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn is_manifest(path: &Path) -> bool {
    // Kustomize takes a file of this name, too.
    path.file_name().is_some_and(|name| name == "Kustomization")
        || path.extension().is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e.eq_ignore_ascii_case(known)))
}

pub(super) fn read(path: &Path) -> anyhow::Result<Text> {
    let name = path.display().to_string();
    let bytes = if name == "-" {
        bounded(std::io::stdin().lock(), 0, "standard input")?
    } else {
        let (file, size) = open(path)?;
        bounded(file, size, &name)?
    };
    Ok(Text { name, bytes })
}

/// Opens a file, and tells its size. It is looked at once more: another file may have taken its place since it was found.
fn open(path: &Path) -> anyhow::Result<(File, u64)> {
    let context = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(context)?;
    let metadata = file.metadata().with_context(context)?;
    if !metadata.is_file() && !is_descriptor(path) {
        return Err(not_regular(path));
    }
    Ok((file, metadata.len()))
}

/// Reads all bytes of a source, whose size is expected and need not be right.
fn bounded(source: impl Read, expected: u64, name: &str) -> anyhow::Result<Vec<u8>> {
    // One byte more shows the end without growing: to grow a large file's buffer is a quarter of a whole `plan`.
    let mut bytes = Vec::with_capacity(usize::try_from(expected.min(LARGEST) + 1)?);
    source.take(LARGEST + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err(anyhow!("{name} is larger than {} MiB", LARGEST >> 20));
    }
    Ok(bytes)
}
