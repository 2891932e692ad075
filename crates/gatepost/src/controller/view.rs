//! The state of a cluster from its watch events: objects, their problems, served versions, and the age of each kind.
//!
//! Changes are collected, and applied to the engine together when a pass starts. Nothing is decided here; the engine
//! does that.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::incremental::{Delta, Engine, World};
use gatepost_core::model::{Kind, ObjectRef, Str};
use gatepost_core::snapshot::{Change, Snapshot, Visibility};
use gatepost_kube::objects::ServedObject;
use gatepost_kube::watch::{WatchEvent, blank, not_read_yet};

/// The state of a cluster from its watch events.
pub struct View {
    engine: Engine,
    /// Changes since the last application.
    pending: Vec<Change>,
    sights: BTreeMap<Kind, Visibility>,
    kinds: Vec<Kind>,
    problems: BTreeMap<ObjectRef, Vec<Diagnostic>>,
    versions: BTreeMap<Kind, Str>,
    heard: BTreeMap<Kind, Instant>,
    absent: Vec<Kind>,
    /// Kinds that may be listed but not watched, with the reason.
    unwatched: BTreeMap<Kind, String>,
}

impl View {
    /// A view in which none of these kinds has been read.
    pub fn new(kinds: &[Kind], engine: Engine) -> View {
        let blank = blank(kinds);
        View {
            pending: Change::between(engine.world().snapshot(), &blank),
            sights: kinds.iter().map(|kind| (*kind, blank.visibility(*kind).clone())).collect(),
            engine,
            kinds: kinds.to_vec(),
            problems: BTreeMap::new(),
            versions: BTreeMap::new(),
            heard: BTreeMap::new(),
            absent: Vec::new(),
            unwatched: BTreeMap::new(),
        }
    }

    /// Records an event; returns whether it may change the desired state.
    pub fn take(&mut self, event: WatchEvent) -> bool {
        match event {
            WatchEvent::Change(change, problems) => {
                self.note(&change, problems);
                self.pending.push(change);
                true
            }
            WatchEvent::Heard(kind) => {
                self.heard.insert(kind, Instant::now());
                false
            }
            WatchEvent::Installed(kind, Some(version)) => {
                self.absent.retain(|absent| *absent != kind);
                self.versions.insert(kind, version);
                false
            }
            WatchEvent::Installed(kind, None) => {
                self.heard.remove(&kind);
                if !self.absent.contains(&kind) {
                    self.absent.push(kind);
                }
                false
            }
            WatchEvent::Watch(kind, refusal) => {
                self.unwatched.remove(&kind);
                self.unwatched.extend(refusal.map(|error| (kind, error.problem.to_string())));
                false
            }
            WatchEvent::Trouble(..) => false,
        }
    }

    /// Applies all pending changes to the engine, and returns what changed.
    pub fn apply_pending(&mut self) -> (&mut Engine, Delta) {
        let delta = self.engine.apply(std::mem::take(&mut self.pending));
        (&mut self.engine, delta)
    }

    /// The objects and decisions as of the last application.
    pub fn world(&self) -> &World {
        self.engine.world()
    }

    /// The objects as of the last application.
    pub fn snapshot(&self) -> &Snapshot {
        self.engine.world().snapshot()
    }

    /// Whether every kind was read, or is known to be not visible.
    pub fn is_read(&self) -> bool {
        self.unread().is_none()
    }

    /// A kind that was not read yet, if any.
    pub fn unread(&self) -> Option<Kind> {
        let unread = not_read_yet();
        self.kinds.iter().find(|kind| self.sights.get(kind) == Some(&unread)).copied()
    }

    /// Kinds that are not visible, with the reason.
    pub fn hidden(&self) -> Vec<(Kind, String)> {
        let why = |kind: &Kind| match self.sights.get(kind)? {
            Visibility::Complete => None,
            Visibility::NotVisible(why) => Some((*kind, why.to_string())),
        };
        self.kinds.iter().filter_map(why).collect()
    }

    /// Kinds that may be listed but not watched, with the reason.
    pub fn unwatched(&self) -> &BTreeMap<Kind, String> {
        &self.unwatched
    }

    /// Kinds that are not installed.
    pub fn absent(&self) -> &[Kind] {
        &self.absent
    }

    /// The time since the last event of each kind.
    pub fn ages(&self) -> Vec<(Kind, Duration)> {
        self.heard.iter().map(|(kind, heard)| (*kind, heard.elapsed())).collect()
    }

    /// The problems of all objects.
    pub fn problems(&self) -> Vec<Diagnostic> {
        self.problems.values().flatten().cloned().collect()
    }

    /// Whether an object exists, as of the last application.
    pub fn knows(&self, object: &ObjectRef) -> bool {
        match object.kind {
            Kind::Gateway => self.snapshot().gateways.contains_key(&object.key),
            Kind::ListenerSet | Kind::XListenerSet => self.snapshot().listener_sets.contains_key(object),
            Kind::Route(_) => self.snapshot().routes.contains_key(object),
            _ => false,
        }
    }

    /// An object with the API version that serves it.
    pub fn served(&self, object: &ObjectRef) -> Option<ServedObject> {
        let version = self.versions.get(&object.kind)?;
        Some(ServedObject { object: object.clone(), version: version.to_string() })
    }

    fn note(&mut self, change: &Change, problems: Vec<Diagnostic>) {
        let object = match change {
            Change::Upsert(object) => object.object(),
            Change::Delete(object) => object.clone(),
            Change::Sight(kind, sight) => {
                self.sights.insert(*kind, sight.clone());
                return;
            }
        };
        match problems.is_empty() {
            true => _ = self.problems.remove(&object),
            false => _ = self.problems.insert(object, problems),
        }
    }
}
