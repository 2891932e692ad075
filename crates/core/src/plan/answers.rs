//! What a zone answers by RFC 4592: the records of a name, or those of the wildcard at its closest encloser.
//!
//! A name exists when it has record sets or something below it has; only a name that does not exist is answered by a
//! wildcard. Markers and everybody else's records count. Delegations are not looked at: below them nothing is ours.

use std::collections::BTreeMap;

use super::observed::RecordKind;
use crate::desired::RecordType;

/// Which address queries are answered: bit 0 for A, bit 1 for AAAA; a CNAME answers both.
pub(super) type Mask = u8;

/// Record sets of one name, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Here {
    a: u32,
    aaaa: u32,
    cname: u32,
    others: u32,
}

/// The names of a zone and what they answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers<'a> {
    here: BTreeMap<&'a str, Here>,
    /// How many record sets stand at or below a name.
    existing: BTreeMap<&'a str, u32>,
    /// The owners of wildcards by what stands behind `*.`.
    wildcards: BTreeMap<&'a str, &'a str>,
}

impl Here {
    fn count(&mut self, kind: &RecordKind) -> &mut u32 {
        match kind {
            RecordKind::Made(RecordType::A) => &mut self.a,
            RecordKind::Made(RecordType::Aaaa) => &mut self.aaaa,
            RecordKind::Made(RecordType::Cname) => &mut self.cname,
            _ => &mut self.others,
        }
    }

    fn is_empty(&self) -> bool {
        self.a + self.aaaa + self.cname + self.others == 0
    }

    fn mask(&self) -> Mask {
        let bit = |count: u32, bits: Mask| if count > 0 { bits } else { 0 };
        bit(self.a, 1) | bit(self.aaaa, 2) | bit(self.cname, 3)
    }
}

impl<'a> Answers<'a> {
    /// Adds a record set.
    pub(super) fn add(&mut self, name: &'a str, kind: &RecordKind) {
        *self.here.entry(name).or_default().count(kind) += 1;
        for name in at_and_above(name) {
            *self.existing.entry(name).or_default() += 1;
        }
        if let Some(base) = name.strip_prefix("*.") {
            self.wildcards.insert(base, name);
        }
    }

    /// Removes a record set that was added.
    pub(super) fn remove(&mut self, name: &'a str, kind: &RecordKind) {
        let Some(here) = self.here.get_mut(name) else { return };
        let count = here.count(kind);
        *count = count.saturating_sub(1);
        if here.is_empty() {
            self.here.remove(name);
            name.strip_prefix("*.").map(|base| self.wildcards.remove(base));
        }
        for name in at_and_above(name) {
            let count = self.existing.get_mut(name).map_or(0, |count| {
                *count = count.saturating_sub(1);
                *count
            });
            if count == 0 {
                self.existing.remove(name);
            }
        }
    }

    /// Whether a name exists: it or something below it has record sets.
    pub(super) fn exists(&self, name: &str) -> bool {
        self.existing.contains_key(name)
    }

    /// Whether any wildcard has record sets.
    pub(super) fn has_wildcards(&self) -> bool {
        !self.wildcards.is_empty()
    }

    /// The owner whose record sets answer for a name, if any does.
    pub(super) fn owner(&self, name: &str) -> Option<&'a str> {
        if self.exists(name) {
            return self.here.get_key_value(name).map(|(owner, _)| *owner);
        }
        let encloser = at_and_above(name).find(|name| self.exists(name))?;
        self.wildcards.get(encloser).copied()
    }

    /// Which address queries for a name are answered.
    pub(super) fn mask(&self, name: &str) -> Mask {
        self.owner(name).and_then(|owner| self.here.get(owner)).map_or(0, Here::mask)
    }

    /// Which address queries are answered for a name that stands nowhere, directly below this one.
    pub(super) fn mask_below(&self, name: &str) -> Mask {
        let encloser = at_and_above(name).find(|name| self.exists(name));
        let owner = encloser.and_then(|name| self.wildcards.get(name));
        owner.and_then(|owner| self.here.get(owner)).map_or(0, Here::mask)
    }

    /// Every name that exists.
    pub(super) fn existing(&self) -> impl Iterator<Item = &'a str> {
        self.existing.keys().copied()
    }
}

/// A name and the names above it, closest first.
pub(super) fn at_and_above(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_of_the_rfc_answers_as_the_rfc_says() {
        let mut zone = Answers::default();
        let sets = [
            ("example", "NS"),
            ("*.example", "A"),
            ("sub.*.example", "TXT"),
            ("host1.example", "A"),
            ("_ssh._tcp.host1.example", "SRV"),
            ("_ssh._tcp.host2.example", "SRV"),
        ];
        sets.iter().for_each(|(name, kind)| zone.add(name, &(*kind).into()));
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
