//! Status and Events on their way to the API server: written beside the passes, in turns by namespace.
//!
//! The queue is bounded: where it is full, the oldest entry of the namespace that has most is dropped and counted. What is
//! written about one namespace is written in order. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatepost_core::model::Str;
use gatepost_kube::objects::{self, EventNote, ServedObject};
use gatepost_kube::{Connection, Error};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{is_same, stamp};
use crate::controller::permit::Permit;

/// Entries that wait at most: some megabytes.
pub(super) const MOST_QUEUED: usize = 2000;
/// Namespaces that are written about at a time.
const WORKERS: usize = 4;

/// Something to write on an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReportWrite {
    /// The object, in the version that serves it.
    pub(super) served: ServedObject,
    /// What to write on it.
    pub(super) content: ReportContent,
}

/// What to write on an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReportContent {
    /// The status of a policy, without times.
    Status(Value),
    /// An Event, for the given time.
    Event(EventNote, u64),
}

/// Something that was not written: dropped, no longer permitted, or failed.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) write: ReportWrite,
    /// Why, where the API server refused it.
    pub(super) error: Option<Error>,
}

/// The queue, and the tasks that write. They end when it is dropped.
#[derive(Debug)]
pub(super) struct ReportQueue {
    shared: Arc<SharedQueue>,
    _workers: JoinSet<()>,
}

#[derive(Debug, Default)]
struct SharedQueue {
    state: Mutex<QueueState>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: BTreeMap<Str, VecDeque<ReportWrite>>,
    /// The namespaces that are being written about.
    busy: BTreeSet<Str>,
    /// The namespace that had the last turn.
    last: Str,
    numbers: QueueNumbers,
    unwritten: Vec<Unwritten>,
}

/// Numbers since the start, and how many entries wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::controller) struct QueueNumbers {
    pub(in crate::controller) waiting: usize,
    pub(in crate::controller) dropped: u64,
    /// Entries that were written, or refused.
    pub(in crate::controller) ended: u64,
}

impl ReportQueue {
    /// Starts the tasks that write while permitted. `identity` is our name in Events.
    pub(super) fn start(connection: &Connection, identity: &str, permit: &Permit) -> ReportQueue {
        let shared = Arc::new(SharedQueue::default());
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            let (connection, identity, permit) = (connection.clone(), identity.to_owned(), permit.clone());
            let shared = shared.clone();
            workers.spawn(async move {
                loop {
                    let Some(write) = shared.state().next() else {
                        shared.wake.notified().await;
                        continue;
                    };
                    let result = match permit.refusal() {
                        None => write_one(&connection, &identity, &write).await.map_err(Some),
                        Some(_) => Err(None),
                    };
                    shared.ended(write, result);
                }
            });
        }
        ReportQueue { shared, _workers: workers }
    }

    /// Adds something to write. A status takes the place of one that waits for the same policy.
    pub(super) fn push(&self, write: ReportWrite) {
        self.shared.state().push(write);
        self.shared.wake.notify_one();
    }

    /// What was not written since the last call.
    pub(super) fn take_unwritten(&self) -> Vec<Unwritten> {
        std::mem::take(&mut self.shared.state().unwritten)
    }

    /// Its numbers.
    pub(super) fn numbers(&self) -> QueueNumbers {
        self.shared.state().numbers
    }
}

impl SharedQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, write: ReportWrite, result: Result<(), Option<Error>>) {
        let mut state = self.state();
        state.numbers.ended += 1;
        state.busy.remove(&write.served.object.key.namespace);
        state.unwritten.extend(result.err().map(|error| Unwritten { write, error }));
        drop(state);
        // The namespace may have more, which no other task could take meanwhile.
        self.wake.notify_one();
    }
}

impl QueueState {
    fn push(&mut self, write: ReportWrite) {
        let of_namespace = self.waiting.entry(write.served.object.key.namespace.clone()).or_default();
        let is_status = |write: &ReportWrite| matches!(write.content, ReportContent::Status(_));
        let replaced = of_namespace
            .iter_mut()
            .find(|other| is_status(other) && is_status(&write) && other.served.object == write.served.object);
        match replaced {
            Some(other) => *other = write,
            None => {
                of_namespace.push_back(write);
                self.numbers.waiting += 1;
            }
        }
        while self.numbers.waiting > MOST_QUEUED {
            self.drop_one();
        }
    }

    /// Drops the oldest entry of the namespace that has most.
    fn drop_one(&mut self) {
        let longest = self.waiting.values_mut().max_by_key(|waiting| waiting.len());
        let Some(write) = longest.and_then(VecDeque::pop_front) else { return };
        self.numbers.waiting -= 1;
        self.numbers.dropped += 1;
        self.unwritten.push(Unwritten { write, error: None });
    }

    /// The next entry: of the namespace after the last one that had a turn and that nobody is writing about.
    fn next(&mut self) -> Option<ReportWrite> {
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        let free = || self.waiting.keys().filter(|namespace| !self.busy.contains(*namespace));
        let namespace = free().find(|namespace| **namespace > self.last).or_else(|| free().next())?.clone();
        let write = self.waiting.get_mut(&namespace)?.pop_front()?;
        self.numbers.waiting -= 1;
        self.busy.insert(namespace.clone());
        self.last = namespace;
        Some(write)
    }
}

/// Writes one entry; an object that is gone needs nothing.
async fn write_one(connection: &Connection, identity: &str, write: &ReportWrite) -> Result<(), Error> {
    let written = match &write.content {
        ReportContent::Status(status) => write_status(connection, &write.served, status).await,
        ReportContent::Event(note, times) => objects::tell(connection, &write.served, note, identity, *times).await,
    };
    match written {
        Err(error) if error.is_not_found() => Ok(()),
        written => written,
    }
}

async fn write_status(connection: &Connection, served: &ServedObject, status: &Value) -> Result<(), Error> {
    let live = objects::read(connection, served).await?;
    let stamped = stamp(status, &live["status"]);
    if is_same(&stamped, &live["status"]) { Ok(()) } else { objects::write_status(connection, served, &stamped).await }
}

#[cfg(test)]
mod tests {
    use gatepost_core::model::{Kind, ObjectRef, RouteKind};

    use super::*;

    fn event(namespace: &str, text: &str) -> ReportWrite {
        let object = ObjectRef::new(Kind::Route(RouteKind::Http), namespace, "web");
        let note =
            EventNote { is_warning: false, reason: "Published".into(), action: "Publish", text: text.to_owned() };
        ReportWrite {
            served: ServedObject { object, version: "v1".to_owned() },
            content: ReportContent::Event(note, 1),
        }
    }

    fn namespace(write: &ReportWrite) -> &str {
        &write.served.object.key.namespace
    }

    #[test]
    fn namespaces_take_turns_whoever_asks_for_more() {
        let mut state = QueueState::default();
        (0..60).for_each(|i| state.push(event("loud", &i.to_string())));
        ["blog", "shop"].into_iter().for_each(|quiet| state.push(event(quiet, "x")));
        let mut order = Vec::new();
        while let Some(write) = state.next() {
            order.push(namespace(&write).to_owned());
            state.busy.clear();
        }
        assert_eq!(order.len(), 62);
        assert_eq!(
            order[..3],
            ["blog", "loud", "shop"],
            "who asks for one thing waits for one of each other namespace"
        );
    }

    #[test]
    fn a_namespace_is_written_about_in_order_and_by_one_task() {
        let mut state = QueueState::default();
        ["1", "2"].into_iter().for_each(|text| state.push(event("shop", text)));
        let first = state.next().unwrap();
        assert_eq!((first, state.next()), (event("shop", "1"), None), "the second waits for the first");
        state.busy.clear();
        assert_eq!(state.next(), Some(event("shop", "2")));
    }

    #[test]
    fn a_full_queue_drops_the_oldest_of_who_asks_for_most() {
        let mut state = QueueState::default();
        state.push(event("quiet", "x"));
        (0..MOST_QUEUED + 9).for_each(|i| state.push(event("loud", &i.to_string())));
        assert_eq!((state.numbers.waiting, state.numbers.dropped, state.unwritten.len()), (MOST_QUEUED, 10, 10));
        assert_eq!(state.unwritten[0].write, event("loud", "0"));
        assert_eq!(state.waiting["quiet"].len(), 1);
    }

    #[test]
    fn a_status_takes_the_place_of_one_that_waits() {
        let mut state = QueueState::default();
        let status = |value: u64| ReportWrite { content: ReportContent::Status(value.into()), ..event("shop", "") };
        [status(1), event("shop", "x"), status(2)].into_iter().for_each(|write| state.push(write));
        assert_eq!(state.numbers.waiting, 2);
        assert_eq!(state.next(), Some(status(2)));
    }
}
