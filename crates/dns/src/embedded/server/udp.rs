//! Answers UDP: one thread per socket, one packet at a time, no allocation on the usual path.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use arc_swap::Cache;

use super::super::limits::Pass;
use super::super::metrics::Counters;
use super::super::respond::{Act, Arrival, Told, Transport};
use super::super::store::ZoneSet;
use super::{Shared, now};

/// Requests are short; of a longer packet only this much is looked at.
const LONGEST: usize = 4096;

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
        // A fault in our code costs one packet, not the service.
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
        let mut packet = [0; LONGEST];
        let mut reply = Vec::with_capacity(LONGEST);
        while !self.shared.stopping.load(Ordering::Relaxed) {
            match self.socket.recv_from(&mut packet) {
                Ok((length, source)) => self.take(zones.load(), &packet[..length], source, &mut reply),
                Err(error) if is_idle(&error) => {}
                Err(_) => sleep(PAUSE),
            }
        }
    }

    fn take(&self, zones: &ZoneSet, packet: &[u8], source: SocketAddr, reply: &mut Vec<u8>) {
        self.counters.udp_queries.alone(1);
        self.counters.udp_bytes_in.alone(packet.len() as u64);
        let arrival = Arrival { source: source.ip(), transport: Transport::Udp, now: now() };
        let Act::Reply(told) = self.shared.responder.respond(zones, packet, arrival, reply) else {
            return self.counters.ignored.one();
        };
        if self.passes(packet, arrival, told, reply) {
            self.counters.reply(told.code, told.truncated);
            self.send(reply, source);
        }
    }

    /// Whether the rate limit lets the reply go; it may have been cut.
    fn passes(&self, packet: &[u8], arrival: Arrival, told: Told, reply: &mut Vec<u8>) -> bool {
        let Some(limiter) = self.shared.limiter.as_ref().filter(|_| !told.proved) else { return true };
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

    fn send(&self, reply: &[u8], to: SocketAddr) {
        match self.socket.send_to(reply, to) {
            Ok(_) => self.counters.udp_bytes_out.alone(reply.len() as u64),
            Err(_) => self.counters.send_failures.one(),
        }
    }
}

fn is_idle(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
