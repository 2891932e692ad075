//! Response rate limiting: nobody can aim this server's answers at somebody else.
//!
//! Two budgets per source prefix and second. Answers much larger than their question are few, then come back empty and
//! truncated, so that a real client asks again over TCP and a forged one gains nothing. All answers together are many, then
//! dropped, but for every few, which come back truncated. Clients that proved their address are never limited.
//! Memory is fixed: two prefixes that meet in one slot displace each other.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::prefix::{Prefix, masked};

/// How many slots there are.
const SLOTS: usize = 1 << 16;

/// An answer more than this many times as large as its question amplifies.
const AMPLIFIES: usize = 3;

/// Answers up to this size do not: "there is no such name" to a short question is one of them.
const SMALL: usize = 200;

/// How many answers a source prefix gets per second over UDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// Answers of more than 200 bytes and more than three times as large as their questions; beyond, they are cut to their header.
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
        RateLimit { amplifying: 20, all: 2000, slip: 2, exempt: loopback }
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
        if answer > SMALL.max(AMPLIFIES * question) && self.count(source, true, second) > self.limit.amplifying {
            return Pass::Truncate;
        }
        if self.limit.exempt.iter().any(|prefix| prefix.contains(source)) {
            return Pass::Send;
        }
        let over = self.count(source, false, second).saturating_sub(self.limit.all);
        match over {
            0 => Pass::Send,
            _ if self.limit.slip > 0 && over.is_multiple_of(self.limit.slip) => Pass::Truncate,
            _ => Pass::Drop,
        }
    }

    /// One more answer for this source in this second: how many are there now?
    fn count(&self, source: IpAddr, amplifying: bool, second: u64) -> u32 {
        let source = source.to_canonical();
        let prefix = masked(source, if source.is_ipv4() { 24 } else { 56 });
        let hash = self.hasher.hash_one((prefix, source.is_ipv4(), amplifying));
        let slot = &self.slots[hash as usize % SLOTS];
        let tag = (second & 0xff_ffff) << 40 | (hash >> 48) << 24;
        let next = |held: u64| if held & !COUNT == tag { held + u64::from(held & COUNT < COUNT) } else { tag | 1 };
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
        let limiter = limiter(2, 100, 2);
        let source = "127.0.0.1".parse().unwrap();
        let seen: Vec<_> = (0..4).map(|_| limiter.check(source, 40, 1200, 7)).collect();
        assert_eq!(seen, [Pass::Send, Pass::Send, Pass::Truncate, Pass::Truncate]);
        assert_eq!(limiter.check(source, 40, 120, 7), Pass::Send, "a small one");
        assert_eq!(limiter.check(source, 40, 1200, 8), Pass::Send, "a second later");
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
