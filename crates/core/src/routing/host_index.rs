//! Values by hostname, found for one host without a scan of all hostnames.
//!
//! A lookup takes one step for the precise name and one for every label behind it, so that its cost does not depend on the
//! number of hostnames. The index has no order and is never iterated.

use std::collections::HashMap;

use crate::names::{Hostname, is_ip};

/// The longest hostname of the DNS. A longer suffix of a host is in no index, so that it need not be hashed.
const MAX_LENGTH: usize = 253;

/// A map from hostnames (precise, wildcard, or the `*` of an unset field) to values.
#[derive(Clone, Debug)]
pub struct HostIndex<T> {
    precise: HashMap<Hostname, T>,
    /// By the part after `*.`.
    wildcards: HashMap<Box<str>, (Hostname, T)>,
    any: Option<(Hostname, T)>,
}

impl<T> HostIndex<T> {
    /// An index without entries.
    pub fn new() -> Self {
        HostIndex { precise: HashMap::new(), wildcards: HashMap::new(), any: None }
    }

    /// Sets the value of a hostname and returns the value that it replaces.
    pub fn insert(&mut self, hostname: Hostname, value: T) -> Option<T> {
        let old = match hostname.wildcard_base().map(Box::from) {
            Some(base) => self.wildcards.insert(base, (hostname, value)),
            None if hostname.is_any() => self.any.replace((hostname, value)),
            None => return self.precise.insert(hostname, value),
        };
        old.map(|(_, value)| value)
    }

    /// The value of exactly this hostname.
    pub fn get(&self, hostname: &Hostname) -> Option<&T> {
        let entry = match hostname.wildcard_base() {
            Some(base) => self.wildcards.get(base),
            None if hostname.is_any() => self.any.as_ref(),
            None => return self.precise.get(hostname),
        };
        entry.map(|(_, value)| value)
    }

    /// The entries that match a host in the form of [`crate::names::host_of`], most specific first.
    ///
    /// An empty host and an IP address match only the `*` of an unset field.
    pub fn lookup<'a>(&'a self, host: &'a str) -> impl Iterator<Item = (&'a Hostname, &'a T)> {
        let wildcards = wildcard_bases(host).filter_map(|base| self.wildcards.get(base));
        let wider = wildcards.chain(&self.any).map(|(hostname, value)| (hostname, value));
        self.precise.get_key_value(host).into_iter().chain(wider)
    }

    /// The most specific entry that matches a host.
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
    /// Later values replace earlier values of the same hostname.
    fn from_iter<I: IntoIterator<Item = (Hostname, T)>>(entries: I) -> Self {
        let mut index = HostIndex::new();
        entries.into_iter().for_each(|(hostname, value)| _ = index.insert(hostname, value));
        index
    }
}

/// The bases of all wildcards that match a host, longest first.
fn wildcard_bases(host: &str) -> impl Iterator<Item = &str> {
    let name = if is_address(host) { "" } else { host };
    let behind_first = name.match_indices('.').filter(|(at, _)| *at > 0);
    behind_first.map(|(at, _)| &name[at + 1..]).filter(|base| base.len() <= MAX_LENGTH)
}

/// Whether a host is an IP address that a wildcard would match as text, such as `*.0.2.1`.
fn is_address(host: &str) -> bool {
    host.ends_with(|c: char| c.is_ascii_digit()) && is_ip(host)
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
            inserted in prop::collection::vec(any_name(), 0..200),
            asked in prop::collection::vec(any_name(), 20),
        ) {
            let mut model: BTreeMap<Hostname, usize> = filled.iter().cloned().zip(0..).collect();
            let mut index: HostIndex<usize> = filled.into_iter().zip(0..).collect();
            for (n, name) in inserted.into_iter().enumerate() {
                prop_assert_eq!(index.insert(name.clone(), n), model.insert(name, n));
            }
            for host in asked.iter().map(|name| name.as_str().trim_start_matches("*.")) {
                let mut matching: Vec<_> = model.iter().filter(|(name, _)| name.matches(host)).collect();
                matching.sort_by_key(|(name, _)| std::cmp::Reverse(name.specificity()));
                prop_assert_eq!(index.best(host), matching.first().copied());
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
