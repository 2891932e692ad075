//! What a cluster has told so far: objects, what is odd about them, versions of kinds, and how old each kind is.
//!
//! Changes are gathered, and decided about all at once when a pass asks for it. Nothing is decided here: the engine does.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::incremental::{Delta, Engine};
use gatepost_core::model::{Kind, ObjectRef, Str};
use gatepost_core::snapshot::{Change, Snapshot, Visibility};
use gatepost_kube::objects::ServedObject;
use gatepost_kube::watch::{WatchEvent, blank, not_read_yet};

/// What a cluster has told.
pub struct View {
    engine: Engine,
    /// What was told since the engine was asked last.
    pending: Vec<Change>,
    sights: BTreeMap<Kind, Visibility>,
    kinds: Vec<Kind>,
    problems: BTreeMap<ObjectRef, Vec<Diagnostic>>,
    versions: BTreeMap<Kind, Str>,
    heard: BTreeMap<Kind, Instant>,
    absent: Vec<Kind>,
    /// Kinds that may only be listed, and why.
    unwatched: BTreeMap<Kind, String>,
}

impl View {
    /// Nothing was told yet about any of these kinds.
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

    /// Takes in what was told; says whether it may change what ought to exist.
    pub fn take(&mut self, told: WatchEvent) -> bool {
        match told {
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

    /// Decides about everything that was told so far; says what came of it.
    pub fn settle(&mut self) -> (&mut Engine, Delta) {
        let delta = self.engine.apply(std::mem::take(&mut self.pending));
        (&mut self.engine, delta)
    }

    /// The objects as of the last time.
    pub fn snapshot(&self) -> &Snapshot {
        self.engine.world().snapshot()
    }

    /// Whether every kind was read, or is known to be out of sight.
    pub fn is_read(&self) -> bool {
        self.unread().is_none()
    }

    /// A kind that was not read yet.
    pub fn unread(&self) -> Option<Kind> {
        let unread = not_read_yet();
        self.kinds.iter().find(|kind| self.sights.get(kind) == Some(&unread)).copied()
    }

    /// Kinds that are out of sight, and why.
    pub fn hidden(&self) -> Vec<(Kind, String)> {
        let why = |kind: &Kind| match self.sights.get(kind)? {
            Visibility::Complete => None,
            Visibility::NotVisible(why) => Some((*kind, why.to_string())),
        };
        self.kinds.iter().filter_map(why).collect()
    }

    /// Kinds that may be listed and not watched, and why.
    pub fn unwatched(&self) -> &BTreeMap<Kind, String> {
        &self.unwatched
    }

    /// Kinds that are not installed.
    pub fn absent(&self) -> &[Kind] {
        &self.absent
    }

    /// How long ago each kind was last heard of.
    pub fn ages(&self) -> Vec<(Kind, Duration)> {
        self.heard.iter().map(|(kind, heard)| (*kind, heard.elapsed())).collect()
    }

    /// What is odd about the objects.
    pub fn problems(&self) -> Vec<Diagnostic> {
        self.problems.values().flatten().cloned().collect()
    }

    /// Whether an object is there, as far as is known.
    pub fn knows(&self, object: &ObjectRef) -> bool {
        match object.kind {
            Kind::Gateway => self.snapshot().gateways.contains_key(&object.key),
            Kind::ListenerSet | Kind::XListenerSet => self.snapshot().listener_sets.contains_key(object),
            kind if kind.is_route() => self.snapshot().routes.contains_key(object),
            _ => false,
        }
    }

    /// An object with the version in which it is served.
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
