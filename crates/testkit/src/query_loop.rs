//! Address queries for a few names, one after the other for as long as a test runs: no name may stop being answered.
//!
//! It only asks and notes; what an answer has to be is for the test to say.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that asks, until it is dropped.
#[derive(Debug)]
pub struct QueryLoop {
    state: Arc<QueryLoopState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct QueryLoopState {
    rounds: AtomicUsize,
    is_over: AtomicBool,
    failures: Mutex<Vec<String>>,
}

/// Seconds after which an answer counts as lost.
const PATIENCE: Duration = Duration::from_secs(5);

impl QueryLoop {
    /// Asks a server for the A records of these names.
    pub fn start(server: SocketAddr, names: &[String]) -> QueryLoop {
        let (state, names) = (Arc::new(QueryLoopState::default()), names.to_vec());
        let shared = state.clone();
        let thread = std::thread::spawn(move || {
            while !shared.is_over.load(Ordering::Relaxed) {
                for name in &names {
                    let answer = ask(server, name);
                    if !matches!(answer, Some((0, count)) if count > 0) {
                        let line = format!("{name}: {answer:?}");
                        shared.failures.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                    }
                }
                shared.rounds.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        QueryLoop { state, thread: Some(thread) }
    }

    /// Waits until every name was asked for once more, and returns what was not answered with an address so far.
    pub fn failures(&self) -> Vec<String> {
        let until = self.state.rounds.load(Ordering::Relaxed) + 2;
        while self.state.rounds.load(Ordering::Relaxed) < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.state.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for QueryLoop {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Response code and number of answers to a query for the A records of a name; `None` without an answer.
pub fn ask(server: SocketAddr, name: &str) -> Option<(u8, u8)> {
    let mut question = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).ok()?);
        question.extend(label.as_bytes());
    }
    question.extend([0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    socket.send_to(&question, server).ok()?;
    let mut answer = [0; 1500];
    let length = socket.recv(&mut answer).ok()?;
    (length >= 12).then_some((answer[3] & 15, answer[7]))
}
