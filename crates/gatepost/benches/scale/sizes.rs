//! The worlds of the benchmark, and their files.

use std::fs;
use std::path::PathBuf;

use gatepost_worlds::{Size, Style, World, files};

use super::Outcome;

/// A world by its name: routes, listeners, and whether each route has one parent or all.
pub(super) fn size(name: &str) -> Outcome<Size> {
    let (routes, listeners, parents) = match name {
        "10k-1" => (10_000, 1, 1),
        "100k-1" => (100_000, 1, 1),
        "10k-64" => (10_000, 64, 1),
        "10k-1000-one" => (10_000, 1000, 1),
        "10k-1000-all" => (10_000, 1000, 16),
        "1k-1" => (1_000, 1, 1),
        "1m-1" => (1_000_000, 1, 1),
        _ => return Err(format!("no world is named {name}").into()),
    };
    Ok(Size { routes, listeners, parents, https: true, ..Size::default() })
}

pub(super) fn world(name: &str) -> Outcome<World> {
    Ok(World::new(size(name)?)?)
}

/// A world on disk, gone when dropped.
pub(super) struct Folder {
    path: PathBuf,
    /// How many bytes its files have.
    pub(super) bytes: usize,
}

impl Folder {
    pub(super) fn write(name: &str, size: Size, style: Style) -> Outcome<Folder> {
        let path = std::env::temp_dir().join(format!("gatepost-bench-{}-{name}", std::process::id()));
        fs::create_dir_all(&path)?;
        let mut folder = Folder { path, bytes: 0 };
        for file in files(&World::new(size)?, style) {
            folder.bytes += file.text.len();
            fs::write(folder.path.join(file.name), file.text)?;
        }
        Ok(folder)
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
