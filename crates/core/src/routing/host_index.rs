//! Values by hostname, found for one asked name without looking at the others.
//!
//! A lookup walks the labels of the name that is asked for, so that its cost does not grow with the number of hostnames.
//! Nothing is ever iterated: who needs an order keeps the names elsewhere.

use std::collections::HashMap;
use std::sync::Arc;

use crate::names::{Hostname, is_ip};

/// No hostname is longer; whatever is cannot be in an index.
const LONGEST: usize = 253;

/// Values by hostname: precise, wildcard, and the `*` of an unset field.
#[derive(Clone, Debug)]
pub struct HostIndex<T> {
    precise: HashMap<Arc<str>, Slot<T>>,
    /// By what stands behind `*.`.
    wildcards: HashMap<Arc<str>, Slot<T>>,
    any: Option<Slot<T>>,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    hostname: Hostname,
    value: T,
}

impl<T> HostIndex<T> {
    /// An index without entries.
    pub fn new() -> Self {
        HostIndex { precise: HashMap::new(), wildcards: HashMap::new(), any: None }
    }

    /// Adds a value; gives back the one it replaces.
    pub fn insert(&mut self, hostname: Hostname, value: T) -> Option<T> {
        let base = hostname.wildcard_base().map(Arc::from);
        let text = Arc::from(hostname.as_str());
        let is_any = hostname.is_any();
        let slot = Slot { hostname, value };
        let old = match base {
            _ if is_any => self.any.replace(slot),
            Some(base) => self.wildcards.insert(base, slot),
            None => self.precise.insert(text, slot),
        };
        old.map(|slot| slot.value)
    }

    /// The value of exactly this hostname.
    pub fn get(&self, hostname: &Hostname) -> Option<&T> {
        let slot = match hostname.wildcard_base() {
            _ if hostname.is_any() => self.any.as_ref(),
            Some(base) => self.wildcards.get(base),
            None => self.precise.get(hostname.as_str()),
        };
        slot.map(|slot| &slot.value)
    }

    /// The values of all hostnames that match a host, most specific first. The host is taken as [`crate::names::host_of`]
    /// gives it; an empty one and an IP address match only the `*` of an unset field.
    pub fn lookup<'a>(&'a self, host: &'a str) -> impl Iterator<Item = (&'a Hostname, &'a T)> {
        let name = if is_ip(host) { "" } else { host };
        let precise = self.precise.get(name).filter(|_| !name.is_empty());
        let wildcards = bases(name).filter_map(|base| self.wildcards.get(base));
        precise.into_iter().chain(wildcards).chain(self.any.as_ref()).map(|slot| (&slot.hostname, &slot.value))
    }

    /// The value of the most specific hostname that matches.
    pub fn best<'a>(&'a self, host: &'a str) -> Option<(&'a Hostname, &'a T)> {
        self.lookup(host).next()
    }
}

impl<T> Default for HostIndex<T> {
    fn default() -> Self {
        HostIndex::new()
    }
}

impl<T> FromIterator<(Hostname, T)> for HostIndex<T> {
    fn from_iter<I: IntoIterator<Item = (Hostname, T)>>(entries: I) -> Self {
        let mut index = HostIndex::new();
        for (hostname, value) in entries {
            index.insert(hostname, value);
        }
        index
    }
}

/// What a wildcard that matches the name can have behind its `*.`, longest first.
fn bases(name: &str) -> impl Iterator<Item = &str> {
    let from = name.len().saturating_sub(LONGEST + 1);
    let dots = name.as_bytes().iter().enumerate().skip(from.max(1)).filter(|(_, byte)| **byte == b'.');
    dots.filter_map(move |(at, _)| name.get(at + 1..))
}

#[cfg(test)]
mod tests {
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
    fn one_name_has_one_value() {
        let mut index = index(&["*.com"]);
        assert_eq!(index.insert(Hostname::parse("*.com").unwrap(), 7), Some(0));
        assert_eq!(index.get(&Hostname::parse("*.com").unwrap()), Some(&7));
        assert_eq!(index.get(&Hostname::any()), None);
    }
}
