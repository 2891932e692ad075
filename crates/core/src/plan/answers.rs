//! What a zone answers by RFC 4592: the records of a name, or those of the wildcard at its closest encloser.
//!
//! A name exists when it or a name below it has record sets; only a name that does not exist is answered by a wildcard.
//! Markers and records of other owners count. Delegations are ignored: no name below them is ours.

use std::collections::BTreeMap;

use super::SetChange;
use super::observed::RecordKind;
use crate::publication::RecordType;

#[cfg(test)]
std::thread_local! {
    /// How often this thread asked whether a name exists.
    pub(super) static LOOKUPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Which address queries are answered: bit 0 for A, bit 1 for AAAA; a CNAME answers both.
pub(super) type Mask = u8;

/// Record sets of one name, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Here {
    a: i32,
    aaaa: i32,
    cname: i32,
    others: i32,
}

/// The number of record sets per name, or the difference to another such count.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordCounts<'a> {
    here: BTreeMap<&'a str, Here>,
    /// Record sets at or below a name.
    existing: BTreeMap<&'a str, i32>,
    /// Wildcards by the part after `*.`.
    wildcards: BTreeMap<&'a str, &'a str>,
}

/// What a zone answers: its record counts, and the changes since.
#[derive(Clone, Debug)]
pub(super) struct Answers<'b, 'a> {
    base: &'b RecordCounts<'a>,
    since: RecordCounts<'a>,
}

impl Here {
    fn count(&mut self, kind: &RecordKind) -> &mut i32 {
        match kind {
            RecordKind::Made(RecordType::A) => &mut self.a,
            RecordKind::Made(RecordType::Aaaa) => &mut self.aaaa,
            RecordKind::Made(RecordType::Cname) => &mut self.cname,
            _ => &mut self.others,
        }
    }

    fn plus(self, other: Here) -> Here {
        Here {
            a: self.a + other.a,
            aaaa: self.aaaa + other.aaaa,
            cname: self.cname + other.cname,
            others: self.others + other.others,
        }
    }

    fn is_empty(self) -> bool {
        self.a + self.aaaa + self.cname + self.others == 0
    }

    fn mask(self) -> Mask {
        let bit = |count: i32, bits: Mask| if count > 0 { bits } else { 0 };
        bit(self.a, 1) | bit(self.aaaa, 2) | bit(self.cname, 3)
    }
}

impl<'a> RecordCounts<'a> {
    /// The tree of these record sets.
    pub(super) fn of<'k>(sets: impl IntoIterator<Item = (&'a str, &'k RecordKind)>) -> Self {
        let mut tree = RecordCounts::default();
        sets.into_iter().for_each(|(name, kind)| tree.count(name, kind, 1));
        tree
    }

    /// Every name in it, and every name above.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.existing.keys().copied()
    }

    fn count(&mut self, name: &'a str, kind: &RecordKind, by: i32) {
        *self.here.entry(name).or_default().count(kind) += by;
        for name in at_and_above(name) {
            *self.existing.entry(name).or_default() += by;
        }
        if let Some(base) = name.strip_prefix("*.") {
            self.wildcards.insert(base, name);
        }
    }

    fn here(&self, name: &str) -> Here {
        self.here.get(name).copied().unwrap_or_default()
    }
}

impl<'b, 'a> Answers<'b, 'a> {
    /// The answers of a zone without changes.
    pub(super) fn of(base: &'b RecordCounts<'a>) -> Self {
        Answers { base, since: RecordCounts::default() }
    }

    /// Adds a record set.
    pub(super) fn add(&mut self, name: &'a str, kind: &RecordKind) {
        self.since.count(name, kind, 1);
    }

    /// Removes a record set.
    pub(super) fn remove(&mut self, name: &'a str, kind: &RecordKind) {
        self.since.count(name, kind, -1);
    }

    /// Applies the change of a record set.
    pub(super) fn carry_out(&mut self, change: &'a SetChange) {
        match (&change.old, &change.new) {
            (None, Some(_)) => self.add(&change.name, &RecordKind::from(change.kind)),
            (Some(_), None) => self.remove(&change.name, &RecordKind::from(change.kind)),
            _ => {}
        }
    }

    /// Whether a name exists: it or something below it has record sets.
    pub(super) fn exists(&self, name: &str) -> bool {
        #[cfg(test)]
        LOOKUPS.set(LOOKUPS.get() + 1);
        let count = |tree: &RecordCounts<'_>| tree.existing.get(name).copied().unwrap_or_default();
        count(self.base) + count(&self.since) > 0
    }

    /// The owner whose record sets answer for a name, if any does.
    pub(super) fn owner(&self, name: &str) -> Option<&'a str> {
        if self.exists(name) {
            let known = [&self.since, self.base].into_iter().find_map(|tree| tree.here.get_key_value(name));
            return known.map(|(owner, _)| *owner).filter(|owner| !self.here(owner).is_empty());
        }
        self.wildcard_above(name)
    }

    /// Which address queries for a name are answered.
    pub(super) fn mask(&self, name: &str) -> Mask {
        self.owner(name).map_or(0, |owner| self.here(owner).mask())
    }

    /// Which address queries are answered for a name that does not exist, directly below this one.
    pub(super) fn mask_below(&self, name: &str) -> Mask {
        self.wildcard_above(name).map_or(0, |owner| self.here(owner).mask())
    }

    /// The wildcard that answers for what does not exist below a name: that of the closest name that exists.
    fn wildcard_above(&self, name: &str) -> Option<&'a str> {
        let encloser = at_and_above(name).find(|name| self.exists(name))?;
        let known = [&self.since, self.base].into_iter().find_map(|tree| tree.wildcards.get(encloser));
        known.copied().filter(|owner| !self.here(owner).is_empty())
    }

    fn here(&self, name: &str) -> Here {
        self.base.here(name).plus(self.since.here(name))
    }
}

/// A name and the names above it, closest first.
pub(super) fn at_and_above(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, rest)| rest))
}

/// The labels of a name from the last to the first: in this order, what is below a name follows it.
pub(super) fn reversed(name: &str) -> Vec<&str> {
    name.rsplit('.').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_of_the_rfc_answers_as_the_rfc_says() {
        let sets = [
            ("example", "NS"),
            ("*.example", "A"),
            ("sub.*.example", "TXT"),
            ("host1.example", "A"),
            ("_ssh._tcp.host1.example", "SRV"),
            ("_ssh._tcp.host2.example", "SRV"),
        ];
        let sets = sets.map(|(name, kind)| (name, RecordKind::from(kind)));
        let tree = RecordCounts::of(sets.iter().map(|(name, kind)| (*name, kind)));
        let mut zone = Answers::of(&tree);
        let table = [
            ("host3.example", Some("*.example"), 1),
            ("foo.bar.example", Some("*.example"), 1),
            ("host1.example", Some("host1.example"), 1),
            ("host2.example", None, 0),
            ("_telnet._tcp.host1.example", None, 0),
            ("ghost.*.example", None, 0),
            ("example", Some("example"), 0),
        ];
        for (name, owner, mask) in table {
            assert_eq!((zone.owner(name), zone.mask(name)), (owner, mask), "{name}");
        }
        assert_eq!((zone.mask_below("example"), zone.mask_below("host1.example")), (1, 0));
        zone.remove("_ssh._tcp.host2.example", &"SRV".into());
        assert_eq!(zone.owner("host2.example"), Some("*.example"));
        zone.remove("*.example", &"A".into());
        assert_eq!(zone.owner("host3.example"), None);
    }
}
