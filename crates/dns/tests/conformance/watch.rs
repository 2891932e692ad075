//! A loop of questions beside the changes: whoever is served before and after a change is answered all the while.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, MessageBuilder};
use gatepost_dns::provider::data;
use tokio::net::UdpSocket;

use crate::beds::Bed;
use crate::states::State;

pub(crate) struct Watch {
    is_stopping: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    names: usize,
    task: tokio::task::JoinHandle<Vec<String>>,
}

impl Watch {
    /// Watches the names that both states serve, by themselves or by a wildcard.
    pub(crate) fn start(bed: &Bed, before: &State, after: &State) -> Watch {
        let labels = before.labels().chain(after.labels());
        let both: BTreeSet<String> = labels.filter(|label| before.serves(label) && after.serves(label)).collect();
        let names: Vec<String> = both.iter().map(|label| format!("{label}.{}", bed.zone)).collect();
        let (is_stopping, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let count = names.len();
        let (stop, counter) = (is_stopping.clone(), asked.clone());
        let zone = bed.zone.clone();
        let task = match (bed.api(), bed.aws()) {
            (Some(api), _) => {
                let answers =
                    move |name: &String| api.with(|zones| zones.zone(&zone).is_some_and(|zone| zone.answers(name)));
                tokio::spawn(look_on(answers, names, stop, counter))
            }
            (None, Some(api)) => {
                let answers =
                    move |name: &String| api.with(|all| all.zone(&zone).is_some_and(|zone| zone.answers(name)));
                tokio::spawn(look_on(answers, names, stop, counter))
            }
            (None, None) => tokio::spawn(ask_on(bed.address, names, stop, counter)),
        };
        Watch { is_stopping, asked, names: count, task }
    }

    /// Ends, and fails if a single answer was wrong.
    pub(crate) async fn stop(self, title: &str) {
        self.is_stopping.store(true, Ordering::Relaxed);
        let failures = self.task.await.unwrap();
        let asked = self.asked.load(Ordering::Relaxed);
        assert!(failures.is_empty(), "{title}, {asked} asked: {failures:?}");
        assert!(asked > 0 || self.names == 0, "{title} was not watched");
    }
}

/// Asks for all names again and again, at least once; gives back every answer that was not one.
async fn ask_on(
    server: SocketAddr,
    names: Vec<String>,
    is_stopping: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
) -> Vec<String> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server).await.unwrap();
    let mut failures = Vec::new();
    while !names.is_empty() {
        for name in &names {
            let count = asked.fetch_add(1, Ordering::Relaxed);
            match ask(&socket, name, count as u16).await {
                // A packet that is lost is no answer, not a wrong one.
                None => {}
                Some((Rcode::NOERROR, answers)) if answers > 0 => {}
                Some((code, answers)) => failures.push(format!("{name}: {code}, {answers} answers")),
            }
        }
        if is_stopping.load(Ordering::Relaxed) {
            break;
        }
    }
    failures
}

/// Looks at what an API has, after every change of it: no change is quicker than a look.
async fn look_on(
    answers: impl Fn(&String) -> bool + Send,
    names: Vec<String>,
    is_stopping: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
) -> Vec<String> {
    let mut failures = Vec::new();
    while !names.is_empty() {
        asked.fetch_add(1, Ordering::Relaxed);
        failures.extend(names.iter().filter(|name| !answers(name)).cloned());
        if is_stopping.load(Ordering::Relaxed) {
            break;
        }
        tokio::task::yield_now().await;
    }
    failures
}

/// The response code to a question for A, and the number of answers; nothing where the packet is lost.
async fn ask(socket: &UdpSocket, name: &str, id: u16) -> Option<(Rcode, u16)> {
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    let mut builder = builder.question();
    builder.push((data::name(name).unwrap(), Rtype::A)).unwrap();
    socket.send(&builder.finish()).await.ok()?;
    let mut buffer = [0; 4096];
    let waiting = async {
        loop {
            let length = socket.recv(&mut buffer).await.ok()?;
            let message = Message::from_octets(&buffer[..length]).ok()?;
            if message.header().id() == id {
                return Some((message.header().rcode(), message.header_counts().ancount()));
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(2), waiting).await.ok().flatten()
}
