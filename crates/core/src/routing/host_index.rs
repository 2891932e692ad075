//! Values by hostname, found for one asked name without looking at the others.
//!
//! A lookup asks for the name itself and for those wildcards above it of whose depth there is any at all, so that its cost does
//! not grow with the number of hostnames. A copy shares what it has in common with the index it was made of, and a change
//! costs the same however many names there are. Nothing is ever iterated: who needs an order keeps the names elsewhere.

use crate::names::{Hostname, is_ip};

mod arrange;
mod buckets;
mod hash;
mod shelves;
mod words;

use buckets::{Buckets, Slot};
pub use buckets::{Dense, Lined};

/// No hostname is longer; whatever is cannot be in an index.
pub(super) const LONGEST: usize = 253;

/// Values by hostname: precise, wildcard, and the `*` of an unset field. They lie in memory as `L` says, [`Lined`] or [`Dense`].
#[derive(Debug)]
pub struct HostIndex<T, L = Lined> {
    /// Precise names as they are, wildcards from their dot on.
    names: Buckets<T, L>,
    /// How many wildcards there are, by the number of labels behind their `*.`.
    depths: Vec<u32>,
    any: Option<Slot<T>>,
}

impl<T, L> HostIndex<T, L> {
    /// An index without entries.
    pub fn new() -> Self {
        HostIndex { names: Buckets::new(), depths: Vec::new(), any: None }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.any.is_none()
    }

    /// The value of exactly this hostname.
    pub fn get(&self, hostname: &Hostname) -> Option<&T> {
        let slot = match hostname.is_any() {
            true => self.any.as_ref(),
            false => self.names.exact(hostname),
        };
        slot.map(|slot| &slot.value)
    }

    /// The values of all hostnames that match a host, most specific first. The host is taken as [`crate::names::host_of`]
    /// gives it; an empty one and an IP address match only the `*` of an unset field.
    pub fn lookup<'a>(&'a self, host: &str) -> impl Iterator<Item = (&'a Hostname, &'a T)> {
        self.names.precise(host).into_iter().chain(self.wider(host)).map(Slot::entry)
    }

    /// The value of the most specific hostname that matches.
    #[inline]
    pub fn best(&self, host: &str) -> Option<(&Hostname, &T)> {
        self.names.precise(host).or_else(|| self.less_precise(host)).map(Slot::entry)
    }

    /// The most specific slot that is not that of a precise name.
    #[inline(never)]
    fn less_precise(&self, host: &str) -> Option<&Slot<T>> {
        self.wider(host).next()
    }

    /// The wildcards that match a host and the `*` of an unset field.
    fn wider<'a>(&'a self, host: &str) -> impl Iterator<Item = &'a Slot<T>> {
        let name = if is_address(host) { "" } else { host };
        let wildcards = self.suffixes(name).filter_map(|suffix| self.names.wildcard(suffix));
        wildcards.chain(self.any.as_ref())
    }

    /// What wildcards that match the name have behind their `*`, longest first, where any is of that depth.
    fn suffixes<'n>(&self, name: &'n str) -> impl Iterator<Item = &'n str> {
        let name = if self.depths.is_empty() { "" } else { name };
        let from = name.len().saturating_sub(LONGEST + 1).max(1);
        let tail = name.as_bytes().get(from..).unwrap_or_default();
        let mut depth = tail.iter().filter(|byte| **byte == b'.').count() + 1;
        let dots = tail.iter().enumerate().filter(|(_, byte)| **byte == b'.');
        dots.filter_map(move |(at, _)| {
            depth -= 1;
            let is_any = self.depths.get(depth).is_some_and(|count| *count > 0);
            name.get(from + at..).filter(|_| is_any)
        })
    }
}

impl<T: Clone, L: Clone> HostIndex<T, L> {
    /// Adds a value; gives back the one it replaces.
    pub fn insert(&mut self, hostname: Hostname, value: T) -> Option<T> {
        if hostname.is_any() {
            return self.any.replace(Slot { hostname, value }).map(|slot| slot.value);
        }
        let old = self.names.insert(Slot { hostname: hostname.clone(), value });
        if old.is_none() {
            self.count(&hostname, 1);
        }
        old
    }

    /// Takes a hostname out; gives back its value.
    pub fn remove(&mut self, hostname: &Hostname) -> Option<T> {
        if hostname.is_any() {
            return self.any.take().map(|slot| slot.value);
        }
        let old = self.names.remove(hostname)?;
        self.count(hostname, -1);
        Some(old)
    }

    /// Counts a wildcard by its depth.
    fn count(&mut self, hostname: &Hostname, step: i32) {
        if !hostname.is_wildcard() {
            return;
        }
        let depth = hostname.specific_labels();
        self.depths.resize(self.depths.len().max(depth + 1), 0);
        self.depths[depth] = self.depths[depth].saturating_add_signed(step);
    }
}

impl<T: Clone, L> Clone for HostIndex<T, L> {
    fn clone(&self) -> Self {
        HostIndex { names: self.names.clone(), depths: self.depths.clone(), any: self.any.clone() }
    }
}

impl<T, L> Default for HostIndex<T, L> {
    fn default() -> Self {
        HostIndex::new()
    }
}

impl<T: Clone, L: Clone> FromIterator<(Hostname, T)> for HostIndex<T, L> {
    /// Later values replace earlier ones of the same hostname.
    fn from_iter<I: IntoIterator<Item = (Hostname, T)>>(entries: I) -> Self {
        let mut slots: Vec<Slot<T>> = entries.into_iter().map(|(hostname, value)| Slot { hostname, value }).collect();
        if !slots.is_sorted_by(|a, b| a.hostname < b.hostname) {
            slots.sort_by(|a, b| a.hostname.cmp(&b.hostname));
            slots.reverse();
            slots.dedup_by(|a, b| a.hostname == b.hostname);
        }
        let mut index = HostIndex::new();
        let any = slots.iter().position(|slot| slot.hostname.is_any());
        index.any = any.map(|at| slots.swap_remove(at));
        slots.iter().for_each(|slot| index.count(&slot.hostname, 1));
        index.names = Buckets::of(slots);
        index
    }
}

/// What a hostname is kept under: a wildcard without its `*`, which no precise name looks like.
pub(super) fn key(hostname: &Hostname) -> &str {
    let text = hostname.as_str();
    text.strip_prefix('*').unwrap_or(text)
}

/// Whether a host is an IP address that a wildcard could be taken to match. No precise name is one.
pub(super) fn is_address(host: &str) -> bool {
    host.as_bytes().last().is_some_and(u8::is_ascii_digit) && is_ip(host)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn index(names: &[&str]) -> HostIndex<usize> {
        let name = |text: &str| if text == "*" { Hostname::any() } else { Hostname::parse(text).unwrap() };
        names.iter().enumerate().map(|(i, text)| (name(text), i)).collect()
    }

    fn found(index: &HostIndex<usize>, host: &str) -> Vec<usize> {
        index.lookup(host).map(|(_, value)| *value).collect()
    }

    #[test]
    fn the_most_specific_name_comes_first() {
        let index = index(&["*", "*.com", "*.x.com", "a.x.com", "*.a.x.com", "x.com"]);
        assert_eq!(found(&index, "a.x.com"), [3, 2, 1, 0]);
        assert_eq!(found(&index, "b.a.x.com"), [4, 2, 1, 0]);
        assert_eq!(found(&index, "x.com"), [5, 1, 0]);
        assert_eq!(found(&index, "com"), [0]);
    }

    #[test]
    fn addresses_and_nothing_match_only_unset_names() {
        let index = index(&["*", "*.2.1", "*.com"]);
        assert_eq!(found(&index, "192.0.2.1"), [0]);
        assert_eq!(found(&index, "[2001:db8::1]"), [0]);
        assert_eq!(found(&index, ""), [0]);
    }

    #[test]
    fn odd_hosts_are_looked_up_like_any_other() {
        let index = index(&["*.com", "*.x.com"]);
        assert_eq!(found(&index, ".x.com"), [0]);
        assert_eq!(found(&index, "a..x.com"), [1, 0]);
        assert_eq!(found(&index, &format!("{}x.com", "a.".repeat(100_000))), [1, 0]);
        assert!(found(&index, "...").is_empty());
    }

    #[test]
    fn a_copy_stays_as_it_was() {
        let mut index: HostIndex<usize> = (0..500).map(|n| (numbered(n), n)).collect();
        let before = index.clone();
        (0..500).filter(|n| n % 3 > 0).for_each(|n| assert_eq!(index.remove(&numbered(n)), Some(n)));
        (500..900).for_each(|n| assert_eq!(index.insert(numbered(n), n), None));
        for n in 0..900 {
            assert_eq!(before.get(&numbered(n)), (n < 500).then_some(&n));
            assert_eq!(index.get(&numbered(n)), (n >= 500 || n % 3 == 0).then_some(&n));
        }
    }

    fn numbered(n: usize) -> Hostname {
        let wild = if n.is_multiple_of(7) { "*." } else { "" };
        Hostname::parse(&format!("{wild}app-{n}.team-{}.example.com", n % 11)).unwrap()
    }

    const LABELS: [&str; 4] = ["a", "b", "x", "long-label-of-its-own"];

    /// A name of one to five labels; every other one is a wildcard.
    fn any_name() -> impl Strategy<Value = Hostname> {
        let labels = prop::collection::vec(prop::sample::select(&LABELS[..]), 1..5);
        (labels, any::<bool>()).prop_map(|(labels, is_wild)| {
            let name = labels.join(".");
            Hostname::parse(&if is_wild { format!("*.{name}") } else { format!("{name}.z") }).unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
        #[test]
        fn it_finds_what_a_look_at_every_name_finds(
            filled in prop::collection::vec(any_name(), 0..60),
            changes in prop::collection::vec((any_name(), any::<bool>()), 0..200),
            asked in prop::collection::vec(any_name(), 20),
        ) {
            let mut model: BTreeMap<Hostname, usize> = filled.iter().cloned().zip(0..).collect();
            let mut index: HostIndex<usize> = filled.into_iter().zip(0..).collect();
            for (n, (name, is_there)) in changes.into_iter().enumerate() {
                match is_there {
                    true => prop_assert_eq!(index.insert(name.clone(), n), model.insert(name, n)),
                    false => prop_assert_eq!(index.remove(&name), model.remove(&name)),
                }
            }
            for host in asked.iter().map(|name| name.as_str().trim_start_matches("*.")) {
                let mut matching: Vec<_> = model.iter().filter(|(name, _)| name.matches(host)).collect();
                matching.sort_by_key(|(name, _)| std::cmp::Reverse(name.specificity()));
                prop_assert_eq!(index.lookup(host).collect::<Vec<_>>(), matching);
            }
        }
    }

    #[test]
    fn one_name_has_one_value() {
        let mut index = index(&["*.com"]);
        assert_eq!(index.insert(Hostname::parse("*.com").unwrap(), 7), Some(0));
        assert_eq!(index.get(&Hostname::parse("*.com").unwrap()), Some(&7));
        assert_eq!(index.get(&Hostname::any()), None);
    }
}
