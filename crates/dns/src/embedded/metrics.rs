//! What the server counts. Each worker counts for itself; reading adds up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::wire::rcode;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// What happened since the server started.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Metrics {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        /// The counters of one worker, on cache lines of its own.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        impl Metrics {
            fn add(&mut self, counters: &Counters) {
                $(self.$name = self.$name.wrapping_add(counters.$name.value());)+
            }
        }
    };
}

counters! {
    /// Packets received over UDP.
    udp_queries,
    /// Messages received over TCP.
    tcp_queries,
    /// Bytes received over UDP.
    udp_bytes_in,
    /// Bytes sent over UDP.
    udp_bytes_out,
    /// Replies with code NOERROR.
    noerror,
    /// Replies with code NXDOMAIN.
    nxdomain,
    /// Replies with code REFUSED.
    refused,
    /// Replies with code FORMERR.
    formerr,
    /// Replies with any other code.
    other_codes,
    /// Replies that were cut because they did not fit.
    truncated,
    /// Packets that got no answer: answers themselves, or too short to be anything.
    ignored,
    /// Replies that the rate limit dropped.
    limited_dropped,
    /// Replies that the rate limit cut.
    limited_truncated,
    /// Replies that the system would not send.
    send_failures,
    /// Connections accepted.
    tcp_connections,
    /// Connections closed at once because there were too many.
    tcp_refused,
    /// Idle connections closed to let others in.
    tcp_evicted,
    /// Connections closed because they were idle, slow or old.
    tcp_timeouts,
    /// Zones sent to secondaries, to the end.
    transfers,
    /// Zones sent to secondaries that broke off.
    transfers_failed,
    /// Announcements sent to secondaries.
    notifies,
    /// Announcements that a secondary confirmed.
    notifies_confirmed,
    /// Announcements that no secondary confirmed after all attempts.
    notifies_failed,
    /// Sets of zones that came into service.
    swaps,
    /// Faults of this program that a worker survived.
    faults,
}

/// A number that some count and others read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// One more, whoever else counts.
    pub(crate) fn one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// So many more, counted by the only thread that does.
    pub(crate) fn alone(&self, count: u64) {
        self.0.store(self.value().wrapping_add(count), Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Counts a reply by its code. A worker's replies are counted by its own thread alone.
    pub(crate) fn reply(&self, code: u16, truncated: bool) {
        let counter = match code {
            rcode::NOERROR => &self.noerror,
            rcode::NXDOMAIN => &self.nxdomain,
            rcode::REFUSED => &self.refused,
            rcode::FORMERR => &self.formerr,
            _ => &self.other_codes,
        };
        counter.alone(1);
        if truncated {
            self.truncated.alone(1);
        }
    }
}

/// Adds the counters of all workers.
pub(crate) fn sum(workers: &[Arc<Counters>]) -> Metrics {
    let mut all = Metrics::default();
    workers.iter().for_each(|worker| all.add(worker));
    all
}
