//! Reads files, directories and standard input.
//!
//! Directories are read recursively and in order of names, so that the same directory always gives the same result.
//! Every read is bounded, and a file that cannot be read is an error with its path: a read is complete or fails.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use crate::error::RunError;

/// Maximum size of a file, in bytes.
const LARGEST: u64 = 256 << 20;
/// Maximum depth of directories.
const DEEPEST: usize = 64;
/// Maximum number of files.
const MOST: usize = 200_000;

/// A text and its name.
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
    /// Directories already visited, so that symbolic links cannot form a cycle.
    folders: BTreeSet<PathBuf>,
}

impl Finder {
    fn add(&mut self, path: &Path) -> anyhow::Result<()> {
        if path == Path::new("-") {
            self.found.push(FoundFile { path: path.to_owned(), metadata: None });
            return Ok(());
        }
        let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        if metadata.is_dir() {
            return self.folder(path, 0);
        }
        self.found.push(FoundFile { path: path.to_owned(), metadata: Some(metadata) });
        Ok(())
    }

    fn folder(&mut self, folder: &Path, depth: usize) -> anyhow::Result<()> {
        let real = folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
        if depth > DEEPEST {
            return Err(anyhow!("{} is more than {DEEPEST} folders deep", folder.display()));
        }
        if !self.folders.insert(real) {
            return Ok(());
        }
        let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut paths = entries
            .map(|entry| entry.map(|e| e.path()))
            .collect::<Result<Vec<_>, _>>()
            .with_context(|| format!("cannot read {}", folder.display()))?;
        paths.sort();
        for path in paths.into_iter().filter(|path| !is_hidden(path)) {
            let metadata = fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
            if metadata.is_dir() {
                self.folder(&path, depth + 1)?;
            } else if metadata.is_file() && is_manifest(&path) {
                self.found.push(FoundFile { path, metadata: Some(metadata) });
            }
            if self.found.len() > MOST {
                return Err(anyhow!("more than {MOST} files; name a smaller folder"));
            }
        }
        Ok(())
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e.eq_ignore_ascii_case(known)))
}

pub(super) fn read(path: &Path) -> anyhow::Result<Text> {
    let name = path.display().to_string();
    let bytes = if name == "-" {
        bounded(std::io::stdin().lock(), "standard input")?
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        bounded(file, &name)?
    };
    Ok(Text { name, bytes })
}

fn bounded(source: impl Read, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LARGEST + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err(anyhow!("{name} is larger than {} MiB", LARGEST >> 20));
    }
    Ok(bytes)
}
