//! Answers UDP: one thread per socket, a handful of packets at a time.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use arc_swap::Cache;

use super::super::limits::Pass;
use super::super::metrics::Counters;
use super::super::respond::{Act, Arrival, ReplySummary, Transport};
use super::super::store::ZoneSet;
use super::batch::Batch;
use super::{Shared, now};

/// How long to wait after an error that is not about a packet.
const PAUSE: Duration = Duration::from_millis(10);

/// Starts a worker.
pub(super) fn spawn(
    worker: usize,
    socket: UdpSocket,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name(format!("dns-udp-{worker}")).spawn(move || {
        let worker = Worker { socket, shared, counters };
        // A fault in our code costs a handful of packets, not the service.
        while catch_unwind(AssertUnwindSafe(|| worker.run())).is_err() {
            worker.counters.faults.one();
        }
    })
}

struct Worker {
    socket: UdpSocket,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
}

impl Worker {
    fn run(&self) {
        let mut zones = Cache::new(&self.shared.zones);
        let mut batch = Batch::new();
        while !self.shared.stopping.load(Ordering::Relaxed) {
            match batch.receive(&self.socket) {
                Ok(()) => self.take(zones.load(), &mut batch),
                Err(error) if is_idle(&error) => {}
                Err(_) => sleep(PAUSE),
            }
        }
    }

    /// Answers the packets of a batch.
    fn take(&self, zones: &ZoneSet, batch: &mut Batch) {
        let now = now();
        batch.answer(|packet, source, reply| {
            self.respond(zones, packet, Arrival { source: source.ip(), transport: Transport::Udp, now }, reply)
        });
        let sent = batch.send(&self.socket);
        self.counters.udp_bytes_out.alone(sent.bytes as u64);
        self.counters.send_failures.alone(sent.failures as u64);
    }

    /// Writes the reply to a packet; says whether it is to be sent.
    fn respond(&self, zones: &ZoneSet, packet: &[u8], arrival: Arrival, reply: &mut Vec<u8>) -> bool {
        self.counters.udp_queries.alone(1);
        self.counters.udp_bytes_in.alone(packet.len() as u64);
        let Act::Reply(summary) = self.shared.responder.respond(zones, packet, arrival, reply) else {
            self.counters.ignored.one();
            return false;
        };
        let passes = self.passes(packet, arrival, summary, reply);
        if passes {
            self.counters.reply(summary.code, summary.truncated);
        }
        passes
    }

    /// Whether the rate limit lets the reply go; it may have been cut.
    fn passes(&self, packet: &[u8], arrival: Arrival, summary: ReplySummary, reply: &mut Vec<u8>) -> bool {
        let Some(limiter) = self.shared.limiter.as_ref().filter(|_| !summary.proved) else { return true };
        match limiter.check(arrival.source, packet.len(), reply.len(), arrival.now) {
            Pass::Send => true,
            Pass::Truncate => {
                self.counters.limited_truncated.one();
                self.shared.responder.cut(packet, arrival, reply);
                true
            }
            Pass::Drop => {
                self.counters.limited_dropped.one();
                false
            }
        }
    }
}

fn is_idle(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
