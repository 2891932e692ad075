//! Which certificate every address presents for a name.
//!
//! What is to be asked is decided first: each address of a name, at the port of each listener that is reached by TLS. What an answer
//! comes to is decided from the answer alone.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use gatepost_core::desired::Desired;
use gatepost_core::model::{Protocol, Str};
use gatepost_core::topology::Topology;
use gatepost_tls::handshake::{Presented, shake};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Check;

/// One handshake.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// The name as it is wanted.
    pub name: Str,
    /// The name that is asked for.
    pub asked: Str,
    /// Where.
    pub address: SocketAddr,
    /// What was presented, or why nothing was.
    pub answer: Result<Presented, String>,
}

/// What a handshake comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A certificate that covers the name and is valid.
    Right,
    /// A certificate that does not cover the name.
    Uncovered,
    /// A certificate that has ended, or has not begun.
    OutOfDate,
    /// Nothing.
    Unanswered,
}

/// Handshakes at a time.
const AT_ONCE: usize = 16;
/// More handshakes are not made.
const MOST: usize = 1000;

impl Shown {
    /// As shown to people and machines.
    pub fn as_str(self) -> &'static str {
        match self {
            Shown::Right => "right",
            Shown::Uncovered => "uncovered",
            Shown::OutOfDate => "out-of-date",
            Shown::Unanswered => "unanswered",
        }
    }
}

impl Handshake {
    /// What it comes to.
    pub fn shown(&self, now: i64) -> Shown {
        match &self.answer {
            Err(_) => Shown::Unanswered,
            Ok(presented) if !presented.leaf.covers(&self.asked) => Shown::Uncovered,
            Ok(presented) if presented.leaf.not_after <= now || presented.leaf.not_before > now => Shown::OutOfDate,
            Ok(_) => Shown::Right,
        }
    }
}

/// Shakes hands with every address of every name that is reached by TLS.
pub async fn shake_all(checks: &[Check], desired: &Desired, topology: &Topology, patience: Duration) -> Vec<Handshake> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for (name, asked, address) in places(checks, desired, topology).into_iter().take(MOST) {
        let room = room.clone();
        tasks.spawn(async move {
            let _place = room.acquire().await;
            let answer = shake(address, &asked, patience).await;
            Handshake { name, asked, address, answer }
        });
    }
    let mut all = tasks.join_all().await;
    all.sort_by(|a, b| (&a.name, a.address).cmp(&(&b.name, b.address)));
    all
}

/// Names, and where they are asked for, sorted.
fn places(checks: &[Check], desired: &Desired, topology: &Topology) -> BTreeSet<(Str, Str, SocketAddr)> {
    let mut places = BTreeSet::new();
    for check in checks {
        for record in desired.answer(&check.asked) {
            let ports: BTreeSet<u16> = ports(record, topology);
            let addresses = record.targets.iter().filter_map(|target| target.parse::<IpAddr>().ok());
            for address in addresses {
                let here = ports.iter().map(|port| SocketAddr::new(address, *port));
                places.extend(here.map(|place| (check.name.clone(), check.asked.clone(), place)));
            }
        }
    }
    places
}

fn ports(record: &gatepost_core::desired::Record, topology: &Topology) -> BTreeSet<u16> {
    let listeners = topology.listener_ids().map(|(_, listener)| listener);
    let serving = listeners.filter(|listener| record.listeners.contains(&listener.key()));
    let by_tls = serving.filter(|listener| matches!(listener.spec().protocol, Protocol::Https | Protocol::Tls));
    by_tls.map(|listener| listener.spec().port).collect()
}
