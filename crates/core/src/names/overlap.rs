//! Finds the hostnames that another one overlaps with, without looking at all of them.
//!
//! Hostnames are texts here, in lower case: the empty one stands for every name, `*.` in front for one or more labels. The
//! answer is the same as comparing with each in turn; tests hold it to that.

use std::collections::HashMap;
use std::sync::Arc;

use crate::few::Few;

/// Hostnames of listeners, each with its place in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Places without hostname.
    open: Vec<u32>,
    /// Places by precise hostname.
    precise: HashMap<Arc<str>, Few<u32>>,
    /// Places by what stands behind `*.` in their hostname.
    wildcards: HashMap<Box<str>, Few<u32>>,
    /// All hostnames, read backwards and sorted, so that those below a name stand together.
    backwards: Vec<(Box<[u8]>, u32)>,
}

impl Overlap {
    /// Reads hostnames in canonical form; one that is none is `None` and never found.
    pub fn new(hosts: impl Iterator<Item = Option<Arc<str>>>) -> Self {
        let mut index = Overlap::default();
        for (place, host) in hosts.enumerate().filter_map(|(i, host)| host.map(|host| (i as u32, host))) {
            index.add(place, host);
        }
        index.backwards.sort();
        index
    }

    /// Every place whose hostname overlaps with this one, in no particular order, each once.
    pub fn overlapping(&self, host: &str, mut visit: impl FnMut(u32)) {
        self.open.iter().for_each(|place| visit(*place));
        if host.is_empty() || host == "*" {
            return self.backwards.iter().for_each(|(_, place)| visit(*place));
        }
        let mut each = |found: &[u32]| found.iter().for_each(|place| visit(*place));
        let name = match host.strip_prefix("*.") {
            Some(base) => {
                self.below(base, &mut each);
                base
            }
            None => {
                self.precise.get(host).into_iter().for_each(|found| each(found));
                host
            }
        };
        if !self.wildcards.is_empty() {
            let around = above(name).filter_map(|base| self.wildcards.get(base));
            around.for_each(|found| each(found));
        }
    }

    fn add(&mut self, place: u32, host: Arc<str>) {
        if host.is_empty() {
            return self.open.push(place);
        }
        self.backwards.push((host.bytes().rev().collect(), place));
        match host.strip_prefix("*.") {
            Some(base) => self.wildcards.entry(base.into()).or_default().push(place),
            None => self.precise.entry(host).or_default().push(place),
        }
    }

    /// Places whose hostname ends with a dot and `base`.
    fn below(&self, base: &str, each: &mut impl FnMut(&[u32])) {
        let front: Vec<u8> = base.bytes().rev().chain([b'.']).collect();
        let start = self.backwards.partition_point(|(name, _)| **name < *front);
        let found = self.backwards[start..].iter().take_while(|(name, _)| name.starts_with(&front));
        found.for_each(|(_, place)| each(&[*place]));
    }
}

/// What is left of a name when labels are taken off its front, one at a time.
fn above(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').map(|(dot, _)| &name[dot + 1..])
}
