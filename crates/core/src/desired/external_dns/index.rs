//! Finds the listeners of one parent that a hostname overlaps with, without looking at all of them.
//!
//! The answer is the same as comparing with each in turn ([`super::hosts::common`]); a test holds it to that.

use std::collections::HashMap;

use super::hosts::wildcard_base;

/// The hostnames of a parent's listeners.
#[derive(Clone, Debug, Default)]
pub(super) struct HostIndex {
    /// Listeners without hostname.
    open: Vec<usize>,
    /// Listeners by precise hostname.
    precise: HashMap<Box<str>, Vec<usize>>,
    /// Listeners by what stands behind `*.` in their hostname.
    wildcards: HashMap<Box<str>, Vec<usize>>,
    /// All hostnames, read backwards and sorted, so that those below a name stand together.
    backwards: Vec<(Box<[u8]>, usize)>,
}

impl HostIndex {
    /// Reads the canonical hostnames of listeners; one without a valid hostname is `None` and never found.
    pub(super) fn new<'a>(hosts: impl Iterator<Item = Option<&'a str>>) -> Self {
        let mut index = HostIndex::default();
        for (listener, host) in hosts.enumerate().filter_map(|(i, host)| host.map(|host| (i, host))) {
            index.add(listener, host);
        }
        index.backwards.sort();
        index
    }

    /// Every listener that overlaps with a canonical hostname, in no particular order, each once.
    pub(super) fn overlapping(&self, host: &str, mut visit: impl FnMut(usize)) {
        self.open.iter().for_each(|listener| visit(*listener));
        if host.is_empty() {
            return self.backwards.iter().for_each(|(_, listener)| visit(*listener));
        }
        let mut each = |found: Option<&Vec<usize>>| found.into_iter().flatten().for_each(|listener| visit(*listener));
        let name = match wildcard_base(host) {
            Some(base) => {
                self.below(base, &mut each);
                base
            }
            None => {
                each(self.precise.get(host));
                host
            }
        };
        if !self.wildcards.is_empty() {
            ancestors(name).for_each(|ancestor| each(self.wildcards.get(ancestor)));
        }
    }

    fn add(&mut self, listener: usize, host: &str) {
        if host.is_empty() {
            return self.open.push(listener);
        }
        let (map, key) = match wildcard_base(host) {
            Some(base) => (&mut self.wildcards, base),
            None => (&mut self.precise, host),
        };
        map.entry(key.into()).or_default().push(listener);
        self.backwards.push((host.bytes().rev().collect(), listener));
    }

    /// Listeners whose hostname ends with a dot and `base`.
    fn below(&self, base: &str, each: &mut impl FnMut(Option<&Vec<usize>>)) {
        let front: Vec<u8> = base.bytes().rev().chain([b'.']).collect();
        let start = self.backwards.partition_point(|(name, _)| **name < *front);
        let found = self.backwards[start..].iter().take_while(|(name, _)| name.starts_with(&front));
        let found: Vec<usize> = found.map(|(_, listener)| *listener).collect();
        each(Some(&found));
    }
}

/// What is left of a name when labels are taken off its front, one at a time.
fn ancestors(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').map(|(dot, _)| &name[dot + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::external_dns::hosts;

    const HOSTS: [&str; 18] = [
        "",
        "a.test",
        "b.test",
        "test",
        "*.test",
        "*.a.test",
        "*.b.a.test",
        "x.a.test",
        "x.b.a.test",
        "*.xa.test",
        "xa.test",
        "a.test.",
        "*.test.",
        "y.a.test.",
        "*.other",
        "other",
        "q.other",
        "*.a.test",
    ];

    #[test]
    fn the_index_answers_as_comparing_with_each_would() {
        let index = HostIndex::new(HOSTS.into_iter().map(Some));
        for host in HOSTS.into_iter().chain(["none", "*.none", "z.y.x.b.a.test", "*.z.a.test"]) {
            let mut found = Vec::new();
            index.overlapping(host, |listener| found.push(listener));
            found.sort();
            let expected: Vec<usize> = (0..HOSTS.len()).filter(|i| hosts::common(HOSTS[*i], host).is_some()).collect();
            assert_eq!(found, expected, "{host}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_index_answers_so_for_any_hosts(hosts in proptest::collection::vec("(\\*\\.)?([ab]\\.){0,3}(a|b|ab)\\.?|", 0..12)) {
            let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            let index = HostIndex::new(hosts.iter().map(|host| Some(*host)));
            for host in &hosts {
                let mut found = Vec::new();
                index.overlapping(host, |listener| found.push(listener));
                found.sort();
                let expected: Vec<usize> = (0..hosts.len()).filter(|i| hosts::common(hosts[*i], host).is_some()).collect();
                proptest::prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn listeners_without_a_valid_hostname_are_never_found() {
        let index = HostIndex::new([None, Some("a.test")].into_iter());
        let mut found = Vec::new();
        index.overlapping("", |listener| found.push(listener));
        assert_eq!(found, [1]);
    }
}
