//! Where things stand in the repository, and which files there are.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Every file below a directory, sorted by path. A directory that is not there has none.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in entries(directory) {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else {
            found.push(entry);
        }
    }
    found
}

/// What is generated or foreign; `.git` is a directory, or a file where the tree is a worktree beside another one.
const NOT_OURS: [&str; 5] = ["target", ".git", "fuzz/target", "fuzz/corpus", "page/node_modules"];

/// Every file of the repository, as a path from its root; none that was generated or comes from elsewhere.
pub fn ours() -> Vec<String> {
    let (root, mut found) = (root(), Vec::new());
    collect_ours(&root, &root, &mut found);
    found
}

fn collect_ours(root: &Path, directory: &Path, found: &mut Vec<String>) {
    for entry in entries(directory) {
        let name = below(root, &entry);
        match entry.is_dir() {
            _ if NOT_OURS.contains(&&*name) => {}
            true => collect_ours(root, &entry, found),
            false => found.push(name),
        }
    }
}

/// What stands directly in a directory, sorted.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The text of a file, or why there is none.
pub fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The path as seen from a directory above it, with `/` between its parts.
pub fn below(directory: &Path, path: &Path) -> String {
    let rest = path.strip_prefix(directory).unwrap_or(path);
    rest.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn files_of_git_and_builds_are_not_ours() {
        let scratch = Scratch::new().unwrap();
        for name in [".git", ".gitignore", "docs/page.md", "fuzz/target/built", "target/built"] {
            scratch.file(name, "").unwrap();
        }
        let mut found = Vec::new();
        collect_ours(scratch.path(), scratch.path(), &mut found);
        assert_eq!(found, [".gitignore", "docs/page.md"]);
    }
}
