//! Watches: what a cluster holds, told as changes, for as long as somebody listens.
//!
//! Discovery runs again and again, so that a kind whose CRD appears later is picked up; each kind is followed by a task of its
//! own ([`kind_watcher`]), so that a kind in trouble holds up no other. Every kind begins as not visible and is visible once it was
//! listed to its end. Nothing is told as gone unless it was seen going or is missing in a complete list that is believed.

use std::sync::Arc;
use std::time::Duration;

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::model::{Kind, Str};
use gatepost_core::snapshot::{Change, Origin, Snapshot, Visibility};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::connection::Connection;
use crate::discovery::{ServedKinds, discover};
use crate::error::Error;

mod kind_watcher;
mod known_objects;

use kind_watcher::KindWatcher;

/// What is watched, and how patiently.
#[derive(Clone, Debug)]
pub struct WatchSettings {
    /// The kinds.
    pub kinds: Vec<Kind>,
    /// Only this namespace; cluster-scoped kinds are watched anyway.
    pub namespace: Option<Str>,
    /// How often it is asked which kinds are installed.
    pub rediscover: Duration,
    /// How often a kind is listed that may be listed but not watched, and how long a refusal is let rest.
    pub relist: Duration,
    /// How long nothing may be heard about a kind before its connection is given up; bookmarks come every minute.
    pub idle: Duration,
    /// How long nothing may be heard about a kind before it counts as not visible.
    pub stale: Duration,
    /// How long a list is doubted that is suddenly empty or older than what was seen.
    pub doubt: Duration,
}

impl WatchSettings {
    /// The usual patience for these kinds.
    pub fn new(kinds: &[Kind]) -> WatchSettings {
        WatchSettings {
            kinds: kinds.to_vec(),
            namespace: None,
            rediscover: Duration::from_secs(10),
            relist: Duration::from_secs(30),
            idle: Duration::from_secs(100),
            stale: Duration::from_secs(180),
            doubt: Duration::from_secs(600),
        }
    }
}

/// One thing that a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are changes")]
pub enum WatchEvent {
    /// A fact about objects, and what is odd about the object it brings.
    Change(Change, Vec<Diagnostic>),
    /// The server was heard about a kind: what was told about it holds up to now.
    Heard(Kind),
    /// The kind is installed in this version, or it is not.
    Installed(Kind, Option<Str>),
    /// The kind may be watched, or it may only be listed, and why.
    Watch(Kind, Option<Error>),
    /// Something failed; unset where it concerns every kind. It is tried again.
    Trouble(Option<Kind>, Error),
}

/// Watches that run. They end when it is dropped.
#[derive(Debug)]
pub struct ClusterWatch {
    told: mpsc::Receiver<WatchEvent>,
    _tasks: JoinSet<()>,
}

/// What is known before anything was told: nothing, about any of these kinds.
pub fn blank(kinds: &[Kind]) -> Snapshot {
    let mut snapshot = Snapshot::new();
    snapshot.origin = Origin::Cluster;
    for kind in Kind::ALL {
        let unwatched = || Visibility::NotVisible("it is not watched".into());
        snapshot.set_visibility(kind, if kinds.contains(&kind) { not_read_yet() } else { unwatched() });
    }
    snapshot
}

impl ClusterWatch {
    /// Starts watching. Who listens begins with a [`blank`] snapshot: no kind is visible yet.
    pub fn start(connection: &Connection, settings: WatchSettings) -> ClusterWatch {
        let (tell, told) = mpsc::channel(1024);
        let (publish, served) = watch::channel(None);
        let nudge = Arc::new(Notify::new());
        let settings = Arc::new(settings);
        let mut tasks = JoinSet::new();
        for kind in settings.kinds.clone() {
            let follow = KindWatcher::new(connection.clone(), kind, settings.clone(), tell.clone(), nudge.clone());
            tasks.spawn(follow.run(served.clone()));
        }
        tasks.spawn(rediscover(connection.clone(), settings, publish, tell, nudge));
        ClusterWatch { told, _tasks: tasks }
    }

    /// The next thing told; nothing only after a watch has ended, which it does not by itself.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        self.told.recv().await
    }

    /// What was told already, without waiting.
    pub fn at_once(&mut self) -> Option<WatchEvent> {
        self.told.try_recv().ok()
    }
}

/// Why a kind is not visible before it was read.
pub fn not_read_yet() -> Visibility {
    Visibility::NotVisible("it has not been read yet".into())
}

/// Asks which kinds are installed, for ever.
async fn rediscover(
    connection: Connection,
    settings: Arc<WatchSettings>,
    publish: watch::Sender<Option<ServedKinds>>,
    tell: mpsc::Sender<WatchEvent>,
    nudge: Arc<Notify>,
) {
    let mut pause = Duration::from_millis(200);
    loop {
        match discover(&connection, &settings.kinds).await {
            Ok(found) => {
                publish.send_if_modified(|served| {
                    let is_new = served.as_ref() != Some(&found);
                    if is_new {
                        *served = Some(found);
                    }
                    is_new
                });
                pause = Duration::from_millis(200);
                // Somebody who finds a kind gone asks for a look at once.
                let _ = timeout(settings.rediscover, nudge.notified()).await;
            }
            Err(error) => {
                if tell.send(WatchEvent::Trouble(None, error)).await.is_err() {
                    return;
                }
                sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(10));
            }
        }
    }
}
