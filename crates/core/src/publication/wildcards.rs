//! Which names a DNS wildcard answers for (RFC 4592), which are fewer than it matches in a Gateway.
//!
//! A wildcard `*.example.com` answers for a name only if nothing exists at that name or between it and `example.com`:
//! an owner of records exists, and so does every name above it. The tree here knows no zones; a zone cut would only
//! hide names that somebody else publishes.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::names::Hostname;

/// The owners of records, and all names that exist because of them. Hash sets are looked up, never iterated.
#[derive(Clone, Debug, Default)]
pub struct DnsTree<'a> {
    owners: HashSet<&'a str>,
    /// Owners and the names above them.
    existing: HashSet<&'a str>,
    /// Wildcard owners by the name after `*.`.
    wildcards: HashMap<&'a str, &'a str>,
}

impl<'a> DnsTree<'a> {
    /// The tree of these owners.
    pub fn of(owners: impl IntoIterator<Item = &'a str>) -> Self {
        let mut tree = DnsTree::default();
        owners.into_iter().for_each(|name| tree.insert(name));
        tree
    }

    /// Adds an owner of records.
    pub fn insert(&mut self, name: &'a str) {
        self.owners.insert(name);
        self.insert_existing(name);
        if let Some(base) = name.strip_prefix("*.") {
            self.wildcards.insert(base, name);
        }
    }

    /// Adds a name that exists without answering, such as the name of a challenge.
    pub fn insert_existing(&mut self, name: &'a str) {
        // Every name above an existing name exists; stops at the first one that is already known.
        std::iter::once(name).chain(above(name)).all(|name| self.existing.insert(name));
    }

    /// The owner whose records answer a query for a name: the name itself, or the wildcard at its closest encloser.
    pub fn owner(&self, name: &str) -> Option<&'a str> {
        if let Some(owner) = self.owners.get(name) {
            return Some(owner);
        }
        if self.existing.contains(name) {
            return None;
        }
        let encloser = above(name).find(|name| self.existing.contains(name))?;
        self.wildcards.get(encloser).copied()
    }
}

/// The names for which no wildcard gives the right answer, and that therefore need their own records.
///
/// `tree` holds the names that are owners in any case. `suits` says whether an owner's records are the right answer for
/// a name. A name that becomes an owner may take others away from a wildcard; owners are never removed again, so that
/// the result does not depend on the order.
pub fn explicit<'a>(
    tree: &mut DnsTree<'a>,
    names: impl IntoIterator<Item = &'a str>,
    suits: impl Fn(&str, &str) -> bool,
) -> BTreeSet<&'a str> {
    let mut covered: Vec<&'a str> = names.into_iter().collect();
    let mut explicit = BTreeSet::new();
    loop {
        let is_answered = |name: &&str| tree.owner(name).is_some_and(|owner| suits(name, owner));
        let (answered, missed): (Vec<_>, Vec<_>) = covered.into_iter().partition(is_answered);
        if missed.is_empty() {
            return explicit;
        }
        missed.iter().for_each(|name| tree.insert(name));
        explicit.extend(missed);
        covered = answered;
    }
}

/// The names at an existing name that a wildcard serves in a Gateway and that DNS does not answer with it: the name
/// itself, and the wildcard directly below it (D35). Returned with the closest wildcard above.
///
/// `wildcard` returns the published wildcard with a base, if there is one. The caller leaves out names that have records.
pub(crate) fn hidden<W>(name: &str, wildcard: impl Fn(&str) -> Option<W>) -> Option<(W, [Hostname; 2])> {
    let wildcard = above(name).find_map(wildcard)?;
    // A name with a label that no hostname has, such as that of a challenge, is not served.
    let own = Hostname::parse(name).ok().filter(Hostname::is_precise)?;
    let below = Hostname::parse(&format!("*.{name}")).ok()?;
    Some((wildcard, [own, below]))
}

/// The names above a name, closest first.
pub(crate) fn above<'n>(name: &'n str) -> impl Iterator<Item = &'n str> {
    let above = |name: &&'n str| name.get(first_dot(name.as_bytes())? + 1..);
    std::iter::successors(above(&name), above)
}

/// The position of the first dot. Labels are short, so a general search would spend more time on its setup.
fn first_dot(name: &[u8]) -> Option<usize> {
    let (words, rest) = name.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        // A dot becomes a zero byte, and the lowest zero byte is the first that borrows in the subtraction.
        let zeroed = u64::from_le_bytes(*word) ^ u64::from_le_bytes([b'.'; 8]);
        let found = zeroed.wrapping_sub(LOWEST) & !zeroed & (LOWEST << 7);
        if found != 0 {
            return Some(8 * at + found.trailing_zeros() as usize / 8);
        }
    }
    let dot = rest.iter().position(|byte| *byte == b'.')?;
    Some(8 * words.len() + dot)
}

/// The lowest bit of each byte.
const LOWEST: u64 = u64::from_le_bytes([1; 8]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_is_found_wherever_it_stands() {
        for length in 0..40 {
            assert_eq!(first_dot(&vec![b'-'; length]), None);
            for dot in 0..length {
                let mut name = vec![[b'/', b'-', 0xae][dot % 3]; length];
                name[dot] = b'.';
                assert_eq!(first_dot(&name), Some(dot), "{length}");
                name[dot..].fill(b'.');
                assert_eq!(first_dot(&name), Some(dot), "{length}");
            }
        }
    }

    fn made_explicit(owners: &[&'static str], names: &[&'static str]) -> Vec<&'static str> {
        let mut tree = DnsTree::of(owners.iter().copied());
        explicit(&mut tree, names.iter().copied(), |_, owner| owner.starts_with('*')).into_iter().collect()
    }

    #[test]
    fn the_zone_of_the_rfc_answers_as_the_rfc_says() {
        let owners = [
            "example",
            "*.example",
            "sub.*.example",
            "host1.example",
            "_ssh._tcp.host1.example",
            "_ssh._tcp.host2.example",
            "subdel.example",
        ];
        let tree = DnsTree::of(owners);
        let table = [
            ("host3.example", Some("*.example")),
            ("foo.bar.example", Some("*.example")),
            ("host1.example", Some("host1.example")),
            ("host2.example", None),
            ("sub.*.example", Some("sub.*.example")),
            ("_telnet._tcp.host1.example", None),
            ("host.subdel.example", None),
            ("ghost.*.example", None),
            ("elsewhere.test", None),
        ];
        for (name, owner) in table {
            assert_eq!(tree.owner(name), owner, "{name}");
        }
    }

    #[test]
    fn names_that_a_wildcard_answers_for_stay_covered() {
        assert!(made_explicit(&["*.a.test"], &["x.a.test", "y.z.a.test", "*.w.a.test"]).is_empty());
    }

    #[test]
    fn what_exists_at_or_below_a_name_makes_it_explicit() {
        assert_eq!(
            made_explicit(&["*.a.test", "x.y.a.test"], &["y.a.test", "z.y.a.test", "b.a.test"]),
            ["y.a.test", "z.y.a.test"]
        );
    }

    #[test]
    fn one_explicit_name_takes_others_away() {
        // `p.q.r` is below nothing that exists, until `z.q.r`, which the deeper owner takes away, exists.
        let owners = ["*.a.test", "o.z.q.r.a.test"];
        assert_eq!(made_explicit(&owners, &["p.q.r.a.test", "r.a.test", "s.a.test"]), ["p.q.r.a.test", "r.a.test"]);
    }

    #[test]
    fn the_closest_wildcard_answers() {
        let tree = DnsTree::of(["*.a.test", "*.b.a.test"]);
        assert_eq!(tree.owner("x.b.a.test"), Some("*.b.a.test"));
        assert_eq!(tree.owner("b.a.test"), None);
        assert_eq!(tree.owner("x.c.a.test"), Some("*.a.test"));
    }

    #[test]
    fn a_challenge_takes_its_name_away_from_the_wildcard() {
        let mut tree = DnsTree::of(["*.a.test"]);
        tree.insert_existing("_acme-challenge.x.a.test");
        assert_eq!(tree.owner("x.a.test"), None);
        assert_eq!(tree.owner("_acme-challenge.x.a.test"), None);
        assert_eq!(tree.owner("y.a.test"), Some("*.a.test"));
    }
}
