//! Paths as texts: they are compared and joined, and never followed.

use std::collections::BTreeSet;

/// A path without `.` and, as far as possible, without `..`.
pub(super) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let text = parts.join("/");
    if path.starts_with('/') { format!("/{text}") } else { text }
}

/// The directory of a file, without `.` and `..`.
pub fn folder(path: &str) -> String {
    let path = normal(path);
    match path.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => String::new(),
    }
}

/// A relative path seen from a directory; nothing where it is an address of the network or an absolute path.
pub fn joined(folder: &str, path: &str) -> Option<String> {
    let is_remote =
        path.contains("://") || path.contains('?') || path.starts_with("git@") || path.starts_with("github.com/");
    let is_meant = !is_remote && !path.starts_with('/') && !path.is_empty();
    is_meant.then(|| if folder.is_empty() { normal(path) } else { normal(&format!("{folder}/{path}")) })
}

/// The directories that a file lies in, the nearest first.
pub(super) fn ancestors(path: &str) -> Vec<String> {
    let path = if path.ends_with('/') { format!("{}/x", normal(path)) } else { normal(path) };
    let mut folders = Vec::new();
    let mut rest = path.clone();
    while let Some((above, _)) = rest.rsplit_once('/') {
        folders.push(if above.is_empty() { "/".to_owned() } else { above.to_owned() });
        rest = above.to_owned();
    }
    if !path.starts_with('/') {
        folders.push(String::new());
    }
    folders
}

/// The directory that a path means which is seen from the top of a repository, whose place is not known: the outermost
/// directory around `file` below which there is such a one.
pub(super) fn found_below(file: &str, path: &str, folders: &BTreeSet<String>) -> Option<String> {
    let path = normal(path.trim_start_matches('/'));
    let tops = ancestors(file).into_iter().rev();
    tops.filter_map(|top| joined(&top, if path.is_empty() { "." } else { &path })).find(|found| folders.contains(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_without_looking_at_files() {
        assert_eq!(joined("a/b", "../c/./d.yaml").as_deref(), Some("a/c/d.yaml"));
        assert_eq!(joined("a", "../../c").as_deref(), Some("../c"));
        assert_eq!(joined("", "x").as_deref(), Some("x"));
        assert_eq!(joined("/r", "../x").as_deref(), Some("/x"));
        assert_eq!(joined("a", "https://example.org/x"), None);
        assert_eq!(normal("./a//b/"), "a/b");
        assert_eq!(folder("./a/b.yaml"), "a");
        assert_eq!(folder("b.yaml"), "");
        assert_eq!(ancestors("/a/b/c.yaml"), ["/a/b", "/a", "/"]);
        assert_eq!(ancestors("a/c.yaml"), ["a", ""]);
        assert_eq!(ancestors("a/b/"), ["a/b", "a", ""]);
    }

    #[test]
    fn a_path_from_the_top_of_a_repository_is_found() {
        let folders = ["r", "r/apps", "r/apps/shop", "r/clusters"].map(str::to_owned).into();
        assert_eq!(found_below("r/clusters/flux.yaml", "./apps/shop", &folders).as_deref(), Some("r/apps/shop"));
        assert_eq!(found_below("r/clusters/flux.yaml", "./nowhere", &folders), None);
    }
}
