//! What must hold at every moment, seen from the outside.
//!
//! Answers, in a thread of their own: a name whose route nobody touches has its address, on both servers, whenever they answer.
//! The zone, as a transfer shows it: those names have exactly their addresses; no record has a value that nobody ever asked for;
//! every record has its marker and every marker its record; what others put there is as they put it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use gatepost_testkit::query_loop::ask;

use super::actions::Told;
use super::world::World;
use crate::bed::ZONE;

pub(crate) struct Observer<'w> {
    world: &'w World,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
    transfers: AtomicUsize,
}

#[derive(Default)]
struct State {
    is_over: AtomicBool,
    asked: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl<'w> Observer<'w> {
    pub(crate) fn start(world: &'w World) -> Observer<'w> {
        let state = Arc::new(State::default());
        let (shared, names, bind) =
            (state.clone(), world.steady.keys().cloned().collect::<Vec<_>>(), world.zone.address);
        // The names of an embedded server that is killed and started again stand on another port: those are looked at between
        // actions, where it is known whether it runs.
        let thread = std::thread::spawn(move || {
            for name in names.iter().cycle() {
                if shared.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let answer = ask(bind, name);
                shared.asked.fetch_add(1, Ordering::Relaxed);
                // No answer at all: the name server is killed at times.
                if answer.is_some_and(|answer| answer != (0, 1)) {
                    let line = format!("{name}: {answer:?}");
                    shared.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Observer { world, state, thread: Some(thread), transfers: AtomicUsize::new(0) }
    }

    /// Fails where something was, or is, not as it must be.
    pub(crate) fn is_content(&self, told: &Told<'_>) {
        let wrong = self.state.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(wrong.is_empty(), "{wrong:?}\n{}", self.world.logs());
        if self.world.answers.load(Ordering::SeqCst) {
            self.zone_is_sound(told);
        }
        let Some(embedded) = self.world.embedded() else { return };
        for name in self.world.steady.keys().step_by(self.world.steady.len() / 20) {
            // It may be paused, and then says nothing; it also limits how fast one address may ask.
            let answer = ask(embedded, name);
            assert!(answer.is_none_or(|answer| answer == (0, 1)), "{name}: {answer:?}\n{}", self.world.logs());
            if answer.is_none() {
                return;
            }
        }
    }

    fn zone_is_sound(&self, told: &Told<'_>) {
        let lines = self.world.zone.dump(ZONE).unwrap();
        self.transfers.fetch_add(1, Ordering::Relaxed);
        let (mut records, mut marked) = (BTreeMap::<&str, Vec<&str>>::new(), BTreeSet::new());
        for line in &lines {
            let words: Vec<&str> = line.split(' ').collect();
            let name = words[0].trim_end_matches('.');
            match words[3] {
                "a" => records.entry(name).or_default().push(words[4]),
                "TXT" if line.contains("heritage=external-dns") => {
                    marked.insert(name.strip_prefix("a-").unwrap_or(name));
                }
                _ => {}
            }
        }
        let why = || self.world.logs();
        for (name, address) in &self.world.steady {
            assert_eq!(records.get(&**name), Some(&vec![&**address]), "{name}\n{}", why());
        }
        for name in told.foreign {
            assert_eq!(records.remove(&**name), Some(vec!["198.51.100.9"]), "{name} is somebody else's\n{}", why());
        }
        records.remove(&*format!("ns.{ZONE}"));
        let lively = records.iter().filter(|(name, _)| name.starts_with('v'));
        for (name, values) in lively {
            let ever = told.ever.get(*name);
            assert!(
                values.iter().all(|value| ever.is_some_and(|ever| ever.iter().any(|e| e == value))),
                "{name} {values:?}\n{}",
                why()
            );
        }
        let names: BTreeSet<&str> = records.keys().copied().collect();
        assert_eq!(names, marked, "records and markers\n{}", why());
    }

    /// Ends it; what it has looked at.
    pub(crate) fn end(mut self) -> String {
        self.state.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let (asked, transfers) = (self.state.asked.load(Ordering::Relaxed), self.transfers.load(Ordering::Relaxed));
        format!("{asked} answers and {transfers} zone transfers were as they must be")
    }
}
