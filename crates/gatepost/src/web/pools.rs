//! Open connections, in two pools: requests, and event streams, so that idle streams keep no request waiting.
//!
//! A full pool closes the oldest connection of the source that has most.

use std::collections::BTreeMap;
use std::net::IpAddr;

use tokio::task::AbortHandle;

/// Requests at a time.
pub(super) const MOST: usize = 64;
/// Event streams at a time.
pub(super) const MOST_STREAMS: usize = 64;

/// All connections.
#[derive(Debug)]
pub(super) struct Pools {
    next: u64,
    requests: Pool,
    streams: Pool,
}

/// The connections of a pool, oldest first.
#[derive(Debug)]
struct Pool {
    most: usize,
    by_number: BTreeMap<u64, (IpAddr, AbortHandle)>,
}

impl Default for Pools {
    fn default() -> Self {
        let pool = |most| Pool { most, by_number: BTreeMap::new() };
        Pools { next: 0, requests: pool(MOST), streams: pool(MOST_STREAMS) }
    }
}

impl Pools {
    /// Closes requests until one more fits; its number.
    pub(super) fn make_place(&mut self) -> u64 {
        self.requests.make_place();
        self.next += 1;
        self.next
    }

    /// Notes a connection under its number.
    pub(super) fn open(&mut self, number: u64, source: IpAddr, task: AbortHandle) {
        self.requests.by_number.insert(number, (source, task));
    }

    /// Moves a connection to the streams.
    pub(super) fn become_stream(&mut self, number: u64) {
        if let Some(connection) = self.requests.by_number.remove(&number) {
            self.streams.make_place();
            self.streams.by_number.insert(number, connection);
        }
    }

    /// Whether a connection is an event stream.
    pub(super) fn is_stream(&self, number: u64) -> bool {
        self.streams.by_number.contains_key(&number)
    }

    /// Forgets a connection that has ended.
    pub(super) fn close(&mut self, number: u64) {
        self.requests.by_number.remove(&number);
        self.streams.by_number.remove(&number);
    }
}

impl Pool {
    fn make_place(&mut self) {
        while self.by_number.len() >= self.most {
            let mut by_source: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
            for (number, (source, _)) in &self.by_number {
                by_source.entry(*source).or_insert((0, *number)).0 += 1;
            }
            let Some((_, oldest)) = by_source.into_values().max_by_key(|(count, _)| *count) else { break };
            if let Some((_, task)) = self.by_number.remove(&oldest) {
                task.abort();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> AbortHandle {
        tokio::spawn(std::future::pending::<()>()).abort_handle()
    }

    fn source(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[tokio::test]
    async fn a_source_with_many_connections_makes_the_place_for_others() {
        let mut pools = Pools::default();
        for i in 0..MOST * 2 {
            let number = pools.make_place();
            pools.open(number, if i < 8 { source(2) } else { source(1) }, task());
        }
        let open = &pools.requests.by_number;
        assert_eq!(open.len(), MOST);
        assert_eq!(open.values().filter(|(from, _)| *from == source(2)).count(), 8);
    }

    #[tokio::test]
    async fn streams_take_no_place_of_requests() {
        let mut pools = Pools::default();
        for _ in 0..MOST_STREAMS + 9 {
            let number = pools.make_place();
            pools.open(number, source(1), task());
            pools.become_stream(number);
        }
        assert_eq!((pools.requests.by_number.len(), pools.streams.by_number.len()), (0, MOST_STREAMS));
        assert!(pools.is_stream(pools.next) && !pools.is_stream(9));
        pools.close(pools.next);
        assert_eq!(pools.streams.by_number.len(), MOST_STREAMS - 1);
    }
}
