//! A copy of all objects of one resource that is no kind of the Gateway API, as they are on the wire.
//!
//! Listed whole and then watched, again and again. A resource that is not installed is asked for again, so that it is picked up
//! when its CRD appears. The copy may be old: whoever writes because of it names the version that was read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gatepost_core::model::Key;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::connection::Connection;
use crate::error::{Error, Problem, Result};
use crate::objects::StoredObject;
use crate::resource::{GroupVersionResource, list};

/// How patiently a resource is followed.
#[derive(Clone, Copy, Debug)]
pub struct MirrorTimeouts {
    /// How long nothing may be heard before a connection is given up; bookmarks come every minute.
    pub idle: Duration,
    /// How long nothing may be heard before the copy counts as hidden.
    pub stale: Duration,
    /// How long a refusal, or that it is not installed, is let rest.
    pub relist: Duration,
}

impl Default for MirrorTimeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        MirrorTimeouts { idle: seconds(100), stale: seconds(180), relist: seconds(10) }
    }
}

/// How much a copy is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MirrorVisibility {
    /// Nothing was read yet.
    #[default]
    Unread,
    /// The resource is not installed.
    Absent,
    /// It could not be read for some time; why.
    Hidden(String),
    /// It was read to its end, and is followed.
    Complete,
}

/// The objects of one moment.
#[derive(Clone, Debug, Default)]
pub struct MirrorSnapshot {
    /// How much they are worth.
    pub sight: MirrorVisibility,
    /// The objects, by namespace and name.
    pub objects: Arc<BTreeMap<Key, StoredObject>>,
}

/// A copy that follows its resource for as long as it is held.
#[derive(Debug)]
pub struct Mirror {
    copied: watch::Receiver<MirrorSnapshot>,
    _task: JoinSet<()>,
}

/// Takes from an object what nobody will look at; what is left decides whether it changed.
pub type Trim = fn(Value) -> Value;

/// The first pause after a failure; it doubles.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

impl Mirror {
    /// Begins to follow a resource in all namespaces.
    pub fn start(
        connection: &Connection,
        folder: GroupVersionResource,
        trim: Trim,
        patience: MirrorTimeouts,
    ) -> Mirror {
        let (tell, copied) = watch::channel(MirrorSnapshot::default());
        let mut task = JoinSet::new();
        let mirror_task =
            MirrorTask { connection: connection.clone(), folder, trim, patience, tell, heard: Instant::now() };
        task.spawn(mirror_task.run());
        Mirror { copied, _task: task }
    }

    /// The copy of this moment.
    pub fn now(&self) -> MirrorSnapshot {
        self.copied.borrow().clone()
    }

    /// Waits until the copy is another than when this was last awaited.
    pub async fn changed(&mut self) {
        if self.copied.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the resource was read, or is known to be absent or out of sight.
    pub async fn read(&mut self) {
        let _ = self.copied.wait_for(|copied| copied.sight != MirrorVisibility::Unread).await;
    }
}

struct MirrorTask {
    connection: Connection,
    folder: GroupVersionResource,
    trim: Trim,
    patience: MirrorTimeouts,
    tell: watch::Sender<MirrorSnapshot>,
    heard: Instant,
}

impl MirrorTask {
    async fn run(mut self) {
        let mut pause = PAUSE;
        while !self.tell.is_closed() {
            let followed = match self.listed().await {
                Ok(version) => {
                    pause = PAUSE;
                    self.watched(&version).await
                }
                Err(error) => Err(error),
            };
            let Err(error) = followed else { continue };
            sleep(self.troubled(&error, pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Takes note of a failure; says how long to rest.
    fn troubled(&mut self, error: &Error, pause: Duration) -> Duration {
        if error.is_not_found() {
            self.show(MirrorVisibility::Absent);
            return self.patience.relist;
        }
        let words = error.to_string();
        if error.is_forbidden() {
            self.show(MirrorVisibility::Hidden(words));
            return self.patience.relist;
        }
        let is_unread = self.tell.borrow().sight == MirrorVisibility::Unread;
        if is_unread || self.heard.elapsed() > self.patience.stale {
            self.show(MirrorVisibility::Hidden(words));
        }
        error.retry_after.unwrap_or(pause).min(self.patience.stale)
    }

    fn show(&self, sight: MirrorVisibility) {
        self.tell.send_if_modified(|copied| {
            let is_new = copied.sight != sight;
            if is_new && sight == MirrorVisibility::Absent {
                copied.objects = Arc::default();
            }
            copied.sight = sight;
            is_new
        });
    }

    /// Lists everything; gives back the version to watch from.
    async fn listed(&mut self) -> Result<String> {
        let (values, version) = list(&self.connection, &self.folder.path("")).await?;
        let stored = values.into_iter().filter_map(|value| self.folder.stored((self.trim)(value)));
        let objects: BTreeMap<Key, StoredObject> = stored.collect();
        self.heard = Instant::now();
        self.tell.send_if_modified(|copied| {
            let is_new = copied.sight != MirrorVisibility::Complete || *copied.objects != objects;
            *copied = MirrorSnapshot { sight: MirrorVisibility::Complete, objects: Arc::new(objects) };
            is_new
        });
        Ok(version)
    }

    /// Watches from a version until the server ends that, breaks off or has forgotten where we are. What follows is a list: a
    /// server that comes back may have been set back, and would be silent about it.
    async fn watched(&mut self, version: &str) -> Result<()> {
        let started = Instant::now();
        let path = self.folder.path("");
        let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion={version}");
        let mut lines = self.connection.lines(&format!("{path}?{query}")).await?;
        self.heard = Instant::now();
        while let Some(line) = timeout(self.patience.idle, lines.next()).await.unwrap_or(Ok(None))? {
            if !self.event(&line)? {
                return Ok(());
            }
            self.heard = Instant::now();
        }
        // A server that ends watches at once is left some time.
        if started.elapsed() < Duration::from_secs(1) {
            sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    /// Takes one event in; says whether the watch goes on.
    fn event(&self, line: &[u8]) -> Result<bool> {
        let odd = |why: &str| Error::new(self.folder.path(""), Problem::Protocol(why.to_owned()));
        let mut event: Value = serde_json::from_slice(line).map_err(|_| odd("an event is no JSON"))?;
        let object = event.get_mut("object").map(Value::take).unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "BOOKMARK" => {}
            "ADDED" | "MODIFIED" => self.keep(object, false).ok_or_else(|| odd("an event without a named object"))?,
            "DELETED" => self.keep(object, true).ok_or_else(|| odd("an event without a named object"))?,
            "ERROR" => {
                let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
                let message = object["message"].as_str().unwrap_or("an error without a message").to_owned();
                let error = Error::of_status(&self.folder.path(""), code, message);
                return if error.is_gone() { Ok(false) } else { Err(error) };
            }
            _ => return Err(odd("an event of an unknown type")),
        }
        Ok(true)
    }

    /// Takes an object into the copy, or out of it. What was trimmed changes nothing for whoever waits for changes.
    fn keep(&self, object: Value, is_gone: bool) -> Option<()> {
        let (key, stored) = self.folder.stored((self.trim)(object))?;
        self.tell.send_if_modified(|copied| {
            let is_new = match copied.objects.get(&key) {
                Some(known) => is_gone || known.differs(&stored),
                None => !is_gone,
            };
            let objects = Arc::make_mut(&mut copied.objects);
            match is_gone {
                true => _ = objects.remove(&key),
                false => _ = objects.insert(key, stored),
            }
            is_new
        });
        Some(())
    }
}
