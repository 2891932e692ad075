//! One kind, followed: listed, watched from there, listed again when the server has forgotten.
//!
//! The states are few: not installed, refused, doubted, followed. Whatever happens on the wire ends in one of them, and each
//! says what is visible. A watch goes on from the last version that was seen, so that nothing between two connections is
//! lost; where the server has forgotten that version (410), a list finds what was missed.

use std::sync::Arc;
use std::time::Duration;

use gatepost_core::model::Kind;
use gatepost_core::snapshot::{Change, Visibility};
use gatepost_objects::Pool;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::known_objects::KnownObjects;
use super::{WatchEvent, WatchSettings, not_read_yet};
use crate::connection::{Connection, WatchLines};
use crate::discovery::{Resource, ServedKinds};
use crate::error::{Error, Problem, Result};
use crate::listing::list;
use crate::wire;

/// Follows one kind.
pub(super) struct KindWatcher {
    connection: Connection,
    kind: Kind,
    settings: Arc<WatchSettings>,
    tell: mpsc::Sender<WatchEvent>,
    nudge: Arc<Notify>,
    known: KnownObjects,
    /// What the objects of the kind have in common.
    pool: Pool,
    /// What was last told.
    sight: Visibility,
    /// When the server was last heard about the kind.
    heard: Instant,
    /// What it last said instead of an answer.
    trouble: Option<String>,
    /// Whether the kind may only be listed.
    is_unwatched: bool,
    pause: Duration,
}

/// Nobody listens any more.
struct ReceiverClosed;

/// How a watch ended.
enum WatchEnd {
    /// Go on from this version.
    At(String),
    /// The server has forgotten; list again.
    Forgotten,
}

/// The first pause after a failure; it doubles.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

type WatcherResult<T> = std::result::Result<T, ReceiverClosed>;

impl KindWatcher {
    pub(super) fn new(
        connection: Connection,
        kind: Kind,
        settings: Arc<WatchSettings>,
        tell: mpsc::Sender<WatchEvent>,
        nudge: Arc<Notify>,
    ) -> KindWatcher {
        let known = KnownObjects::new(kind);
        let heard = Instant::now();
        let pool = Pool::new();
        KindWatcher {
            connection,
            kind,
            settings,
            tell,
            nudge,
            known,
            pool,
            sight: not_read_yet(),
            heard,
            trouble: None,
            is_unwatched: false,
            pause: PAUSE,
        }
    }

    /// Follows the kind as long as somebody listens.
    pub(super) async fn run(mut self, mut served: watch::Receiver<Option<ServedKinds>>) {
        let _ = self.follow(&mut served).await;
    }

    async fn follow(&mut self, served: &mut watch::Receiver<Option<ServedKinds>>) -> WatcherResult<()> {
        let mut was_installed = false;
        loop {
            let now = served.borrow_and_update().clone();
            let Some(now) = now else {
                self.wait_for(served).await?;
                continue;
            };
            let Some(resource) = now.get(&self.kind).cloned() else {
                self.absent(was_installed).await?;
                self.wait_for(served).await?;
                continue;
            };
            was_installed = true;
            self.say(WatchEvent::Installed(self.kind, Some(resource.version.clone()))).await?;
            self.present(&resource, served).await?;
        }
    }

    /// The kind is not installed. Where it was, its objects went with it or it went by mistake: both are held.
    async fn absent(&mut self, was_installed: bool) -> WatcherResult<()> {
        self.say(WatchEvent::Installed(self.kind, None)).await?;
        let sight = if was_installed {
            Visibility::NotVisible("it is no longer installed; what is published is kept until a restart".into())
        } else {
            Visibility::Complete
        };
        self.show(sight).await
    }

    /// Until the cluster serves other kinds or versions.
    async fn wait_for(&self, served: &mut watch::Receiver<Option<ServedKinds>>) -> WatcherResult<()> {
        served.changed().await.map_err(|_| ReceiverClosed)
    }

    /// Lists and watches until the kind is served otherwise.
    async fn present(
        &mut self,
        resource: &Resource,
        served: &mut watch::Receiver<Option<ServedKinds>>,
    ) -> WatcherResult<()> {
        loop {
            let version = tokio::select! {
                changed = served.changed() => {
                    changed.map_err(|_| ReceiverClosed)?;
                    if serves_otherwise(served, resource) { return Ok(()) }
                    continue;
                }
                version = self.listed(resource) => version?,
            };
            tokio::select! {
                ended = self.watched(resource, version) => ended?,
                changed = until_otherwise(served, resource) => return changed,
            }
        }
    }

    /// The version of a list that is believed; tries until there is one.
    async fn listed(&mut self, resource: &Resource) -> WatcherResult<String> {
        loop {
            let listed = list(&self.connection, resource, self.settings.namespace.as_deref(), &mut self.pool);
            match listed.await {
                Ok(listing) => {
                    match self.known.doubt(&listing, Instant::now(), self.settings.doubt) {
                        Some(why) => {
                            self.show(Visibility::NotVisible(why.into())).await?;
                            self.rest().await;
                            continue;
                        }
                        None => self.pause = PAUSE,
                    }
                    let version = listing.version.clone();
                    for told in self.known.take(listing) {
                        self.say(told).await?;
                    }
                    self.hear().await?;
                    return Ok(version);
                }
                Err(error) => self.refused(error).await?,
            }
        }
    }

    /// A list that failed.
    async fn refused(&mut self, error: Error) -> WatcherResult<()> {
        let why = error.problem.to_string();
        let rest = if error.is_forbidden() { Some(self.settings.relist) } else { error.retry_after };
        if error.is_forbidden() {
            self.show(Visibility::NotVisible(why.into())).await?;
        } else if error.is_not_found() {
            self.nudge.notify_one();
        }
        self.complain(error).await?;
        match rest {
            Some(rest) => sleep(rest).await,
            None => self.rest().await,
        }
        self.age().await
    }

    /// Watches from a version until the server has forgotten where we are. A kind that may be listed and not watched is
    /// listed again after a while.
    async fn watched(&mut self, resource: &Resource, mut version: String) -> WatcherResult<()> {
        if !resource.is_watchable {
            sleep(self.settings.relist).await;
            return Ok(());
        }
        let mut is_first = true;
        loop {
            let started = Instant::now();
            let ended = match self.went_back(resource, is_first).await {
                Ok(true) => Ok(WatchEnd::Forgotten),
                Ok(false) => self.watch(resource, &version).await?,
                Err(error) => Err(error),
            };
            is_first = false;
            match ended {
                Ok(WatchEnd::At(next)) => {
                    // A server that ends watches at once is left some time.
                    if started.elapsed() < Duration::from_secs(1) {
                        self.rest().await;
                    } else {
                        self.pause = PAUSE;
                    }
                    version = next;
                }
                Ok(WatchEnd::Forgotten) => return Ok(()),
                Err(error) if error.is_gone() => return Ok(()),
                Err(error) if error.is_forbidden() => {
                    self.may_watch(Some(error.clone())).await?;
                    self.complain(error).await?;
                    sleep(self.settings.relist).await;
                    return Ok(());
                }
                Err(error) => {
                    if error.is_not_found() {
                        self.nudge.notify_one();
                    }
                    let is_odd = matches!(error.problem, Problem::Protocol(_));
                    self.complain(error).await?;
                    self.rest().await;
                    self.age().await?;
                    // What was not understood would come again; a list goes around it.
                    if is_odd {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn watch(&mut self, resource: &Resource, version: &str) -> WatcherResult<Result<WatchEnd>> {
        let path = resource.path(self.settings.namespace.as_deref());
        // Servers end watches after a while; other kinds do so at other times.
        let position = Kind::ALL.iter().take_while(|kind| **kind != self.kind).count();
        let seconds = 240 + position * 5;
        let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={version}");
        let mut lines = match self.connection.lines(&format!("{path}?{query}")).await {
            Ok(lines) => lines,
            Err(error) => return Ok(Err(error)),
        };
        self.may_watch(None).await?;
        self.hear().await?;
        let mut version = version.to_owned();
        loop {
            match self.line(&mut lines).await {
                Ok(Some(line)) => match self.event(&line, resource, &mut version).await? {
                    Ok(true) => {}
                    Ok(false) => return Ok(Ok(WatchEnd::Forgotten)),
                    Err(error) => return Ok(Err(error)),
                },
                Ok(None) => return Ok(Ok(WatchEnd::At(version))),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Whether the server that answers now is behind what was seen: a watch from there would wait in silence until the
    /// server has caught up, and tell nothing of what is different.
    async fn went_back(&self, resource: &Resource, is_just_listed: bool) -> Result<bool> {
        if is_just_listed {
            return Ok(false);
        }
        let path = format!("{}?limit=1", resource.path(self.settings.namespace.as_deref()));
        let page = self.connection.get(&path).await?;
        let version = page.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        Ok(version.is_some_and(|version| self.known.is_older(version)))
    }

    /// The next line; a connection on which nothing is heard for too long counts as ended.
    async fn line(&self, lines: &mut WatchLines) -> Result<Option<Vec<u8>>> {
        timeout(self.settings.idle, lines.next()).await.unwrap_or(Ok(None))
    }

    /// Takes one event in; says whether the watch goes on.
    async fn event(&mut self, line: &[u8], resource: &Resource, version: &mut String) -> WatcherResult<Result<bool>> {
        let odd = |why: &str| Ok(Err(Error::new(resource.path(None), Problem::Protocol(why.to_owned()))));
        let Ok(mut event) = serde_json::from_slice::<Value>(line) else { return odd("an event is no JSON") };
        let object = event.get_mut("object").map(Value::take).unwrap_or_default();
        let word = event["type"].as_str().unwrap_or_default();
        match word {
            "BOOKMARK" => {
                if let Some(seen) = object.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
                    if self.known.is_older(seen) {
                        return Ok(Ok(false));
                    }
                    self.known.see(seen);
                    seen.clone_into(version);
                }
            }
            "ERROR" => {
                let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
                let message = object["message"].as_str().unwrap_or("an error without a message").to_owned();
                let error = Error::of_status(&resource.path(None), code, message);
                return if error.is_gone() { Ok(Ok(false)) } else { Ok(Err(error)) };
            }
            "ADDED" | "MODIFIED" | "DELETED" => {
                let Some(sent) = wire::read(object, resource, &mut self.pool) else {
                    return odd("an event without a named object");
                };
                sent.version.clone_into(version);
                let told = if word == "DELETED" { Some(self.known.remove(sent)) } else { self.known.upsert(sent) };
                if let Some(told) = told {
                    self.say(told).await?;
                }
            }
            _ => return odd("an event of an unknown type"),
        }
        self.hear().await?;
        Ok(Ok(true))
    }

    /// The server was heard: what was told holds.
    async fn hear(&mut self) -> WatcherResult<()> {
        self.heard = Instant::now();
        self.trouble = None;
        self.show(Visibility::Complete).await?;
        self.say(WatchEvent::Heard(self.kind)).await
    }

    /// Tells whether the kind may be watched, where that is new.
    async fn may_watch(&mut self, refusal: Option<Error>) -> WatcherResult<()> {
        let is_refused = refusal.is_some();
        if std::mem::replace(&mut self.is_unwatched, is_refused) != is_refused {
            self.say(WatchEvent::Watch(self.kind, refusal)).await?;
        }
        Ok(())
    }

    /// Tells of a failure, and keeps its words.
    async fn complain(&mut self, error: Error) -> WatcherResult<()> {
        self.trouble = Some(error.problem.to_string());
        self.say(WatchEvent::Trouble(Some(self.kind), error)).await
    }

    /// Hides the kind where it was not heard of for too long.
    async fn age(&mut self) -> WatcherResult<()> {
        let age = self.heard.elapsed();
        if age > self.settings.stale && self.sight == Visibility::Complete {
            let mut why = format!("the API server was not heard for more than {} s", self.settings.stale.as_secs());
            if let Some(trouble) = &self.trouble {
                why += &format!("; the last try ended with: {trouble}");
            }
            self.show(Visibility::NotVisible(why.into())).await?;
        }
        Ok(())
    }

    /// Tells what is visible, where that is new.
    async fn show(&mut self, sight: Visibility) -> WatcherResult<()> {
        if self.sight != sight {
            self.sight = sight.clone();
            self.say(WatchEvent::Change(Change::Sight(self.kind, sight), Vec::new())).await?;
        }
        Ok(())
    }

    async fn rest(&mut self) {
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    async fn say(&self, told: WatchEvent) -> WatcherResult<()> {
        self.tell.send(told).await.map_err(|_| ReceiverClosed)
    }
}

fn serves_otherwise(served: &watch::Receiver<Option<ServedKinds>>, resource: &Resource) -> bool {
    served.borrow().as_ref().is_some_and(|served| served.get(&resource.kind) != Some(resource))
}

/// Until the cluster serves the kind otherwise.
async fn until_otherwise(served: &mut watch::Receiver<Option<ServedKinds>>, resource: &Resource) -> WatcherResult<()> {
    loop {
        served.changed().await.map_err(|_| ReceiverClosed)?;
        if serves_otherwise(served, resource) {
            return Ok(());
        }
    }
}
