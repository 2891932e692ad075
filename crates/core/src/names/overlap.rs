//! An index of hostnames that finds those another hostname overlaps with, without a comparison with each.
//!
//! Hostnames are texts in lower case here: the empty one stands for every name, `*.` in front for one or more labels. This
//! module never parses or validates them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::ShortVec;

/// Hostnames of listeners, each with its place in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverlapIndex {
    /// Places of all hostnames.
    all: Vec<u32>,
    /// Places without a hostname, which overlap with everything.
    open: Vec<u32>,
    precise: HashMap<Arc<str>, ShortVec<u32>>,
    /// Wildcards by what stands behind `*.`.
    wildcards: HashMap<Box<str>, ShortVec<u32>>,
    /// Precise and wildcard hostnames by every name above them: `a.b.c` under `b.c` and `c`.
    below: HashMap<Box<str>, ShortVec<u32>>,
}

impl OverlapIndex {
    /// Reads hostnames in canonical form; an invalid one is `None` and never found.
    pub fn new(hosts: impl Iterator<Item = Option<Arc<str>>>) -> Self {
        let mut index = OverlapIndex::default();
        for (place, host) in (0..).zip(hosts) {
            if let Some(host) = host {
                index.add(place, host);
            }
        }
        index
    }

    /// Visits every place whose hostname overlaps with this one, in no particular order, each once.
    pub fn overlapping(&self, host: &str, visit: impl FnMut(u32)) {
        let found: Box<dyn Iterator<Item = &u32>> = match host.strip_prefix("*.") {
            _ if host.is_empty() || host == "*" => Box::new(self.all.iter()),
            Some(base) => Box::new(self.open.iter().chain(found(&self.below, base)).chain(self.wildcards_above(base))),
            None => {
                let precise = self.precise.get(host).into_iter().flatten();
                Box::new(self.open.iter().chain(precise).chain(self.wildcards_above(host)))
            }
        };
        found.copied().for_each(visit);
    }

    fn add(&mut self, place: u32, text: Arc<str>) {
        self.all.push(place);
        if text.is_empty() {
            return self.open.push(place);
        }
        for above in names_above(&text) {
            self.below.entry(above.into()).or_default().push(place);
        }
        match text.strip_prefix("*.") {
            Some(base) => self.wildcards.entry(base.into()).or_default().push(place),
            None => self.precise.entry(text).or_default().push(place),
        }
    }

    /// Wildcards that stand for a name: those of every name above it.
    fn wildcards_above<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a u32> {
        names_above(name).flat_map(|above| found(&self.wildcards, above))
    }
}

fn found<'a>(map: &'a HashMap<Box<str>, ShortVec<u32>>, name: &str) -> impl Iterator<Item = &'a u32> + use<'a> {
    map.get(name).into_iter().flatten()
}

/// The names above a name: `b.c` and `c` for `a.b.c`.
fn names_above(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').map(|(dot, _)| &name[dot + 1..])
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
            let index = OverlapIndex::new(hosts.iter().map(|host| host.as_deref().map(Arc::from)));
            for name in asked {
                let mut found = Vec::new();
                index.overlapping(&name, |place| found.push(place as usize));
                found.sort_unstable();
                let overlaps = |host: &Option<String>| host.as_ref().is_some_and(|host| read(host).overlaps(&read(&name)));
                let expected: Vec<usize> = (0..hosts.len()).filter(|place| overlaps(&hosts[*place])).collect();
                prop_assert_eq!(found, expected, "{}", name);
            }
        }
    }
}
