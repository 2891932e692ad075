//! Changes of files and folders, several at once told once.

use std::path::PathBuf;
use std::time::Duration;

use notify_debouncer_full::notify::{EventKind, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, DebouncedEvent, new_debouncer};
use tokio::sync::mpsc;

use crate::cli::Failure;

/// How long files must be quiet before they are read again.
const QUIET: Duration = Duration::from_millis(200);

/// Tells of every change at or below these paths until it is dropped.
pub(super) fn start(paths: &[PathBuf], changes: mpsc::UnboundedSender<()>) -> Result<impl Sized + use<>, Failure> {
    // A folder that is watched for the sake of one file tells of its neighbours, too.
    let files: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let watched = files.clone();
    let concerns = move |path: &PathBuf| files.iter().any(|file| path.starts_with(file));
    let tell = move |result: DebounceEventResult| {
        let matters =
            |event: &DebouncedEvent| !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(&concerns);
        if result.map_or(true, |events| events.iter().any(matters)) {
            let _ = changes.send(());
        }
    };
    let mut watcher = new_debouncer(QUIET, None, tell).map_err(|error| Failure::usage(error.to_string()))?;
    for path in watched {
        let (path, mode) = if path.is_dir() {
            (path.as_path(), RecursiveMode::Recursive)
        } else {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(".".as_ref());
            (parent, RecursiveMode::NonRecursive)
        };
        watcher.watch(path, mode).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    }
    Ok(watcher)
}
