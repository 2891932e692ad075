//! Index of the hostnames that overlap with a given one, without a scan of all of them.
//!
//! Hostnames are lower-case text: the empty text matches every name, a leading `*.` matches one or more labels. A test
//! compares the results with a comparison of each pair.

use std::sync::{Arc, OnceLock};

/// Hostnames of listeners, each with its place in a list.
#[derive(Clone, Debug, Default)]
pub struct Overlap {
    /// Places without hostname.
    open: Vec<u32>,
    /// All others.
    hosts: Vec<Host>,
    /// Numbers of hosts, found by their hashes: from the place that a hash says up to the next free one. A power of two.
    slots: Vec<u32>,
    /// How many labels precise hostnames have, and how many stand behind the `*` of wildcards.
    precise: Depths,
    wild: Depths,
    /// Numbers of hosts by their hostnames read backwards, so that those below a name stand together. Only wildcards are looked
    /// for here, so that the first one that is asked for has it made.
    backwards: OnceLock<Vec<u32>>,
}

impl PartialEq for Overlap {
    fn eq(&self, other: &Self) -> bool {
        // The rest follows from these.
        self.open == other.open && self.hosts == other.hosts
    }
}

impl Eq for Overlap {}

/// Numbers of labels, as bits; the last one stands for all from there on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Depths(u64);

impl Depths {
    fn bit(labels: usize) -> u64 {
        1 << labels.min(63)
    }

    fn add(&mut self, name: &str) {
        self.0 |= Depths::bit(1 + name.bytes().filter(|byte| *byte == b'.').count());
    }

    fn has(self, labels: usize) -> bool {
        self.0 & Depths::bit(labels) != 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    hash: u64,
    place: u32,
    text: Arc<str>,
}

/// A slot that no host has.
const FREE: u32 = u32::MAX;

/// Tells the hash of a wildcard from that of the precise name behind its `*.`.
const WILD: u64 = 0xa5a5_a5a5_a5a5_a5a5;

impl Overlap {
    /// Reads hostnames in canonical form; one that is none is `None` and never found.
    pub fn new(hosts: impl Iterator<Item = Option<Arc<str>>>) -> Self {
        let mut index = Overlap::default();
        for (place, host) in hosts.enumerate().filter_map(|(i, host)| host.map(|host| (i as u32, host))) {
            index.add(place, host);
        }
        index.slots = vec![FREE; (2 * index.hosts.len()).next_power_of_two()];
        for (number, host) in index.hosts.iter().enumerate() {
            let free = course(host.hash, index.slots.len()).find(|slot| index.slots[*slot] == FREE);
            // There are twice as many slots as hosts.
            index.slots[free.expect("a free slot")] = number as u32;
        }
        index
    }

    /// Every place whose hostname overlaps with this one, in no particular order, each once.
    pub fn overlapping(&self, host: &str, visit: impl FnMut(u32)) {
        self.around(host, suffixes(host), visit);
    }

    /// The same, for a name that is asked for at several owners.
    pub(crate) fn overlapping_known(&self, asked: &Suffixes, visit: impl FnMut(u32)) {
        self.around(&asked.name, asked.suffixes.iter().copied(), visit);
    }

    fn around(&self, host: &str, suffixes: impl Iterator<Item = Suffix>, mut visit: impl FnMut(u32)) {
        self.open.iter().for_each(|place| visit(*place));
        if host.is_empty() || host == "*" {
            return self.hosts.iter().for_each(|host| visit(host.place));
        }
        let front = if host.starts_with("*.") { 2 } else { 0 };
        if front > 0 {
            self.below(&host[front..], &mut visit);
        }
        for (Suffix { hash, start }, labels) in suffixes.zip(1..) {
            match start {
                start if start > front && self.wild.has(labels) => {
                    self.find(hash ^ WILD, |text| text.strip_prefix("*.") == Some(&host[start..]), &mut visit);
                }
                0 if self.precise.has(labels) => self.find(hash, |text| text == host, &mut visit),
                _ => {}
            }
        }
    }

    fn add(&mut self, place: u32, text: Arc<str>) {
        if text.is_empty() {
            return self.open.push(place);
        }
        let hash = match text.strip_prefix("*.") {
            Some(base) => {
                self.wild.add(base);
                hash(base) ^ WILD
            }
            None => {
                self.precise.add(&text);
                hash(&text)
            }
        };
        self.hosts.push(Host { hash, place, text });
    }

    /// Places of the hosts with a hash that also have the right text.
    fn find(&self, hash: u64, is_right: impl Fn(&str) -> bool, visit: &mut impl FnMut(u32)) {
        let Some(mask) = self.slots.len().checked_sub(1) else { return };
        let mut slot = first_slot(hash);
        // Some slot is free.
        while let Some(host) = self.hosts.get(self.slots[slot & mask] as usize) {
            slot += 1;
            if host.hash == hash && is_right(&host.text) {
                visit(host.place);
            }
        }
    }

    /// Places whose hostname ends with a dot and `base`.
    fn below(&self, base: &str, visit: &mut impl FnMut(u32)) {
        let all = self.backwards.get_or_init(|| self.by_ends());
        let host = |number: &u32| &self.hosts[*number as usize];
        let end = || base.bytes().rev().chain([b'.']);
        let start = all.partition_point(|number| host(number).text.bytes().rev().lt(end()));
        let is_below = |host: &Host| host.text.bytes().rev().zip(end()).filter(|(a, b)| a == b).count() > base.len();
        let found = all[start..].iter().map(host).take_while(|host| is_below(host));
        found.for_each(|host| visit(host.place));
    }

    /// Numbers of hosts, by their hostnames read backwards.
    fn by_ends(&self) -> Vec<u32> {
        let mut ends: Vec<(u128, u32)> = self.hosts.iter().map(|host| end(&host.text)).zip(0..).collect();
        let text = |number: u32| self.hosts[number as usize].text.bytes().rev();
        ends.sort_unstable_by(|(end, a), (other, b)| end.cmp(other).then_with(|| text(*a).cmp(text(*b))));
        ends.into_iter().map(|(_, number)| number).collect()
    }
}

/// The last bytes of a name as a number: names that differ there are ordered by it when they are read backwards.
fn end(name: &str) -> u128 {
    let bytes = name.as_bytes();
    match bytes.last_chunk() {
        Some(end) => u128::from_le_bytes(*end),
        None => bytes.iter().fold(0, |end, byte| (end >> 8) | u128::from(*byte) << 120),
    }
}

/// The slots in which a hash is looked for, one after the other.
fn course(hash: u64, slots: usize) -> impl Iterator<Item = usize> {
    let mask = slots.saturating_sub(1);
    let first = first_slot(hash);
    (0..slots).map(move |step| (first + step) & mask)
}

fn first_slot(hash: u64) -> usize {
    ((hash ^ (hash >> 32)) & 0xffff_ffff) as usize
}

/// A hostname with the hashes of what is left of it when labels are taken off its front; kept to be asked again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suffixes {
    name: Arc<str>,
    suffixes: Vec<Suffix>,
}

#[derive(Clone, Copy, Debug)]
struct Suffix {
    hash: u64,
    /// Where it begins; 0 is the whole name.
    start: usize,
}

impl Suffixes {
    /// Those of this name, whatever was asked before.
    pub(crate) fn of(&mut self, name: &Arc<str>) -> &Self {
        if !Arc::ptr_eq(&self.name, name) || self.suffixes.is_empty() {
            self.name = name.clone();
            self.suffixes.clear();
            self.suffixes.extend(suffixes(name));
        }
        self
    }
}

/// What is left of a name when labels are taken off its front, shortest first; the whole name is the last.
fn suffixes(name: &str) -> impl Iterator<Item = Suffix> {
    let mut hash = START;
    let mut left = Some(name.as_bytes());
    std::iter::from_fn(move || {
        let rest = left?;
        let dot = rest.iter().rposition(|byte| *byte == b'.');
        let start = dot.map_or(0, |dot| dot + 1);
        hash = stirred(hash, &rest[start..]);
        left = dot.map(|dot| &rest[..dot]);
        Some(Suffix { hash, start })
    })
}

/// What the hash of nothing is. Labels are taken from the end of a name, so that the hashes of its suffixes come by the way;
/// an owner has few listeners, so that it is no use to make them collide.
const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash with one more label.
fn stirred(hash: u64, label: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let (words, rest) = label.as_chunks::<8>();
    let hash = words.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let last = match (label.last_chunk::<8>(), rest.first_chunk::<4>().zip(rest.last_chunk::<4>())) {
        // The last bytes, some of them once more.
        (Some(last), _) => u64::from_le_bytes(*last),
        (None, Some((front, back))) => {
            u64::from(u32::from_le_bytes(*front)) << 32 | u64::from(u32::from_le_bytes(*back))
        }
        (None, None) => rest.iter().fold(0, |last, byte| last << 8 | u64::from(*byte)),
    };
    mix(hash ^ label.len() as u64, last)
}

fn hash(text: &str) -> u64 {
    suffixes(text).last().map_or(START, |whole| whole.hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::names::Hostname;

    /// A name of one to four labels, a wildcard, or none.
    fn any_host() -> impl Strategy<Value = String> {
        let labels = prop::collection::vec(prop::sample::select(&["a", "b", "c-d", "label-of-some-length"][..]), 1..4);
        (labels, 0..3).prop_map(|(labels, shape)| match shape {
            0 => format!("*.{}", labels.join(".")),
            1 if labels.len() == 3 => String::new(),
            _ => labels.join("."),
        })
    }

    fn read(text: &str) -> Hostname {
        if text.is_empty() { Hostname::any() } else { Hostname::parse(text).unwrap() }
    }

    proptest! {
        #[test]
        fn it_finds_what_a_look_at_each_finds(
            hosts in prop::collection::vec(prop::option::of(any_host()), 0..40),
            asked in prop::collection::vec(any_host(), 1..8),
        ) {
            let index = Overlap::new(hosts.iter().map(|host| host.as_deref().map(Arc::from)));
            let mut suffixes = Suffixes::default();
            for name in asked {
                let mut found = Vec::new();
                index.overlapping_known(suffixes.of(&Arc::from(&*name)), |place| found.push(place as usize));
                let mut again = Vec::new();
                index.overlapping(&name, |place| again.push(place as usize));
                prop_assert_eq!(&found, &again);
                found.sort_unstable();
                let overlaps = |host: &Option<String>| host.as_ref().is_some_and(|host| read(host).overlaps(&read(&name)));
                let expected: Vec<usize> = (0..hosts.len()).filter(|place| overlaps(&hosts[*place])).collect();
                prop_assert_eq!(found, expected, "{}", name);
            }
        }
    }
}
