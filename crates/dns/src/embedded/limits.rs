//! Response rate limiting: nobody can aim this server's answers at somebody else.
//!
//! Two budgets per source prefix and second. Of what answers have beyond three times the size of their questions only so
//! many bytes are sent; then such answers come back empty and truncated, so that a real client asks again over TCP and a
//! forged one gains nothing. No answer is too small to count. All answers together are many, then dropped, but for every
//! few, which come back truncated. Clients that proved their address are never limited.
//! Memory is fixed: two prefixes that meet in one slot displace each other.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::prefix::{Prefix, masked};

/// How many slots there are.
const SLOTS: usize = 1 << 16;

/// An answer more than this many times as large as its question amplifies.
const AMPLIFIES: usize = 3;

/// What a source prefix gets per second over UDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// Bytes beyond three times the size of the questions; answers that need more are cut to their header.
    pub amplifying: u32,
    /// All answers; beyond, they are dropped.
    pub all: u32,
    /// Of the answers beyond the second limit every so many is sent, cut to its header; 0 sends none.
    pub slip: u32,
    /// Sources to which the second limit does not apply.
    pub exempt: Vec<Prefix>,
}

impl Default for RateLimit {
    fn default() -> RateLimit {
        let loopback = ["127.0.0.0/8", "::1"].iter().filter_map(|text| text.parse().ok()).collect();
        // 8 KiB: 250 times "no such name" to a short question, or 70 answers with ten addresses, or 7 of the largest.
        RateLimit { amplifying: 8 << 10, all: 2000, slip: 2, exempt: loopback }
    }
}

/// What becomes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    Send,
    Truncate,
    Drop,
}

/// Counts answers by source.
pub(crate) struct Limiter {
    limit: RateLimit,
    slots: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Limiter {
    pub(crate) fn new(limit: RateLimit) -> Limiter {
        let slots = std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect();
        Limiter { limit, slots, hasher: RandomState::new() }
    }

    /// Decides about an answer of so many bytes to a question of so many, in a second.
    pub(crate) fn check(&self, source: IpAddr, question: usize, answer: usize, second: u64) -> Pass {
        let excess = u32::try_from(answer.saturating_sub(AMPLIFIES * question)).unwrap_or(u32::MAX);
        if excess > 0 && self.count(source, true, excess, second) > self.limit.amplifying {
            return Pass::Truncate;
        }
        if self.limit.exempt.iter().any(|prefix| prefix.contains(source)) {
            return Pass::Send;
        }
        let over = self.count(source, false, 1, second).saturating_sub(self.limit.all);
        match over {
            0 => Pass::Send,
            _ if self.limit.slip > 0 && over.is_multiple_of(self.limit.slip) => Pass::Truncate,
            _ => Pass::Drop,
        }
    }

    /// Adds to what this source got in this second, and returns the sum.
    fn count(&self, source: IpAddr, amplifying: bool, more: u32, second: u64) -> u32 {
        let source = source.to_canonical();
        let prefix = masked(source, if source.is_ipv4() { 24 } else { 56 });
        let hash = self.hasher.hash_one((prefix, source.is_ipv4(), amplifying));
        let slot = &self.slots[hash as usize % SLOTS];
        let tag = (second & 0xff_ffff) << 40 | (hash >> 48) << 24;
        let next = |held: u64| {
            let before = if held & !COUNT == tag { held & COUNT } else { 0 };
            tag | (before + u64::from(more)).min(COUNT)
        };
        let held = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| Some(next(held)));
        (next(held.unwrap_or_default()) & COUNT) as u32
    }
}

/// The low bits of a slot hold the count, the others second and source.
const COUNT: u64 = 0xff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(amplifying: u32, all: u32, slip: u32) -> Limiter {
        Limiter::new(RateLimit { amplifying, all, slip, exempt: vec!["127.0.0.0/8".parse().unwrap()] })
    }

    #[test]
    fn large_answers_are_few() {
        let limiter = limiter(2160, 100, 2);
        let source = "127.0.0.1".parse().unwrap();
        let seen: Vec<_> = (0..4).map(|_| limiter.check(source, 40, 1200, 7)).collect();
        assert_eq!(seen, [Pass::Send, Pass::Send, Pass::Truncate, Pass::Truncate]);
        assert_eq!(limiter.check(source, 40, 120, 7), Pass::Send, "a small one");
        assert_eq!(limiter.check(source, 40, 1200, 8), Pass::Send, "a second later");
    }

    #[test]
    fn no_answer_is_too_small_to_count() {
        let limiter = limiter(60, 100, 2);
        let source = "127.0.0.1".parse().unwrap();
        let seen: Vec<_> = (0..3).map(|_| limiter.check(source, 30, 120, 7)).collect();
        assert_eq!(seen, [Pass::Send, Pass::Send, Pass::Truncate], "30 bytes beyond the ratio each");
        assert_eq!(limiter.check(source, 30, 90, 7), Pass::Send, "within the ratio");
    }

    #[test]
    fn a_flood_is_dropped_but_for_every_few() {
        let limiter = limiter(2, 3, 2);
        let source = "192.0.2.1".parse().unwrap();
        let seen: Vec<_> = (0..7).map(|_| limiter.check(source, 40, 40, 7)).collect();
        use Pass::{Drop, Send, Truncate};
        assert_eq!(seen, [Send, Send, Send, Drop, Truncate, Drop, Truncate]);
        assert_eq!(limiter.check("192.0.2.200".parse().unwrap(), 40, 40, 7), Drop, "a neighbour shares the budget");
        assert_eq!(limiter.check("192.0.3.1".parse().unwrap(), 40, 40, 7), Send, "another network does not");
        assert_eq!(limiter.check("127.0.0.1".parse().unwrap(), 40, 40, 7), Send);
    }
}
