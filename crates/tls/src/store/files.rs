//! Files: `DIR/NAMESPACE/SECRET/tls.crt` and `tls.key`, and pages of notes. Only their owner may read them.
//!
//! The two files of a pair are links through `..data`, as the kubelet lays out Secrets: the folder behind that link is exchanged
//! whole, so that nobody ever sees a chain beside the key of another.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use gatepost_core::model::Key;

use super::{StateStore, Store, StoredPair, TlsKeyPair};
use crate::Call;
use crate::chain::MAX_CHAIN;
use crate::error::{Error, IssuanceProblem, Result};
use crate::key::MAX_KEY;

/// The link that is exchanged.
const DATA: &str = "..data";
const CHAIN: &str = "tls.crt";
const KEY: &str = "tls.key";
/// The most bytes of a page of notes.
const MAX_PAGE: usize = 64 << 20;

/// Key pairs below a directory.
#[derive(Clone, Debug)]
pub struct FileStore(PathBuf);

/// Pages of notes in a directory.
#[derive(Clone, Debug)]
pub struct FileStateStore(PathBuf);

impl FileStore {
    /// The store below this directory, which is made when something is written.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        FileStore(directory.into())
    }

    /// Where the pair of a Secret is.
    pub fn folder(&self, secret: &Key) -> Result<PathBuf> {
        let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['/', '\\', '\0']);
        if is_plain(&secret.namespace) && is_plain(&secret.name) {
            return Ok(self.0.join(&*secret.namespace).join(&*secret.name));
        }
        Err(Error::settings(format!("Secret `{secret}` has a name that cannot be a folder")))
    }

    fn load(&self, secret: &Key) -> Result<Option<TlsKeyPair>> {
        let folder = self.folder(secret)?;
        let chain = bounded(&folder.join(CHAIN), MAX_CHAIN)?;
        let key = bounded(&folder.join(KEY), MAX_KEY)?;
        Ok(match (chain, key) {
            (None, None) => None,
            (chain, key) => Some(TlsKeyPair { chain: chain.unwrap_or_default(), secret_key: key.unwrap_or_default() }),
        })
    }

    fn save(&self, secret: &Key, pair: &TlsKeyPair) -> Result<()> {
        let folder = self.folder(secret)?;
        exchange(&folder, pair).map_err(|cause| Error::storage("be written", folder.display(), cause))
    }
}

impl FileStateStore {
    /// The notebook in this directory, which is made when something is written.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        FileStateStore(directory.into())
    }

    fn path(&self, page: &str) -> PathBuf {
        self.0.join(format!("{page}.json"))
    }
}

impl Store for FileStore {
    fn read<'a>(&'a self, secret: &'a Key) -> Call<'a, Result<Option<StoredPair>>> {
        Box::pin(async move {
            match self.load(secret) {
                Ok(pair) => Ok(pair.map(|pair| StoredPair { pair: Ok(pair), keeper: None })),
                Err(Error { problem: IssuanceProblem::Rejected(why), .. }) => {
                    Ok(Some(StoredPair { pair: Err(why), keeper: None }))
                }
                Err(error) => Err(error),
            }
        })
    }

    fn write<'a>(&'a self, secret: &'a Key, pair: &'a TlsKeyPair) -> Call<'a, Result<()>> {
        Box::pin(async move { self.save(secret, pair) })
    }
}

impl StateStore for FileStateStore {
    fn read<'a>(&'a self, page: &'a str) -> Call<'a, Result<Option<String>>> {
        Box::pin(async move { bounded(&self.path(page), MAX_PAGE) })
    }

    fn write<'a>(&'a self, page: &'a str, text: &'a str) -> Call<'a, Result<()>> {
        let path = self.path(page);
        let failed = move |cause: io::Error| Error::storage("be written", path.display(), cause);
        Box::pin(async move { replace(&self.0, &self.path(page), text).map_err(failed) })
    }
}

/// A text of at most so many bytes; nothing where there is no such file.
fn bounded(path: &Path, most: usize) -> Result<Option<String>> {
    let failed = |cause: &dyn std::fmt::Display| Error::storage("be read", path.display(), cause);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    let useless = |why: String| Error::rejected(format!("{} {why}", path.display()));
    if bytes.len() > most {
        return Err(useless(format!("is larger than {} KiB", most >> 10)));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| useless("is not text".to_owned()))
}

/// Writes both files into a fresh folder, then turns the link to it.
fn exchange(folder: &Path, pair: &TlsKeyPair) -> io::Result<()> {
    make(folder)?;
    let old = fs::read_link(folder.join(DATA)).ok();
    let fresh = fresh_folder(folder)?;
    write_new(&folder.join(&fresh).join(CHAIN), &pair.chain)?;
    write_new(&folder.join(&fresh).join(KEY), &pair.secret_key)?;
    sync(&folder.join(&fresh))?;
    turn(folder, DATA, &fresh)?;
    for name in [CHAIN, KEY] {
        let target = Path::new(DATA).join(name);
        if fs::read_link(folder.join(name)).ok().as_deref() != Some(&target) {
            turn(folder, name, &target)?;
        }
    }
    sync(folder)?;
    sweep(folder, &fresh, old.as_deref());
    Ok(())
}

/// A folder that is not there yet.
fn fresh_folder(folder: &Path) -> io::Result<PathBuf> {
    for number in 0..10_000 {
        let name = PathBuf::from(format!("..{number}"));
        match DirBuilder::new().mode(0o700).create(folder.join(&name)) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many folders are left over"))
}

/// Makes a link, or turns the one that is there, in one move.
fn turn(folder: &Path, name: &str, target: &Path) -> io::Result<()> {
    let fresh = folder.join(format!("..{name}.new"));
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(target, &fresh)?;
    fs::rename(&fresh, folder.join(name))
}

/// Removes folders that no link leads to: the one before, and what a crash left.
fn sweep(folder: &Path, fresh: &Path, old: Option<&Path>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for name in entries.map(|entry| PathBuf::from(entry.file_name())) {
        let is_numbered = name.to_string_lossy().strip_prefix("..").is_some_and(|rest| rest.parse::<u32>().is_ok());
        if name != fresh && (is_numbered || Some(&*name) == old) {
            // What cannot be removed now is removed with the next exchange.
            let _ = fs::remove_dir_all(folder.join(&name));
        }
    }
}

fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes beside a file, makes sure that it is on disk, then puts it in its place.
fn replace(directory: &Path, path: &Path, text: &str) -> io::Result<()> {
    make(directory)?;
    let fresh = path.with_extension("json.new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    write_new(&fresh, text)?;
    fs::rename(&fresh, path)?;
    sync(directory)
}

#[cfg(test)]
mod tests;
