//! CNAME records that lead back to themselves, directly or through other desired records (D34).
//!
//! A target is answered by the records of its own name, else by those of the closest wildcard above it. Records of other
//! owners are not known here.

use std::collections::{BTreeMap, BTreeSet};

use super::records::NameDecision;
use super::wildcards::above;
use crate::model::Str;

/// The successors of each name in the graph of CNAME records.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The names whose CNAME leads back to themselves. `targets` are those of all CNAME records; `decision` returns the
/// decision about a name.
///
/// Without these names a wildcard may answer for one of them and close another loop, so the search repeats.
pub(crate) fn find<'a, 't>(
    targets: impl Iterator<Item = &'t Str> + Clone,
    decision: impl Fn(&str) -> Option<&'a NameDecision>,
) -> BTreeSet<String> {
    let mut refused = BTreeSet::new();
    loop {
        let found = on_cycles(&graph(targets.clone(), &decision, &refused));
        if found.is_empty() {
            return refused;
        }
        refused.extend(found);
    }
}

/// The names that answer for a target and are CNAME records themselves, each with those that answer for its targets.
fn graph<'a, 't>(
    targets: impl Iterator<Item = &'t Str>,
    decision: impl Fn(&str) -> Option<&'a NameDecision>,
    refused: &BTreeSet<String>,
) -> Graph {
    let known = |name: &str| decision(name).filter(|decision| decision.has_records() && !refused.contains(name));
    let owner = |target: &str| {
        let wildcards = above(target).map(|base| format!("*.{base}"));
        std::iter::once(target.to_owned()).chain(wildcards).find(|name| known(name).is_some())
    };
    let mut graph = Graph::new();
    for name in targets.filter_map(|target| owner(target)) {
        let next = known(&name).into_iter().flat_map(NameDecision::cname_targets).filter_map(|target| owner(target));
        let next: BTreeSet<String> = next.collect();
        graph.entry(name).or_insert(next);
    }
    graph
}

/// The names that lie on a cycle: what is left after names that lead nowhere, or that nothing leads to, are removed.
fn on_cycles(graph: &Graph) -> BTreeSet<String> {
    let leading_on = trimmed(graph);
    let mut reversed = Graph::new();
    for (name, next) in graph.iter().filter(|(name, _)| leading_on.contains(*name)) {
        reversed.entry(name.clone()).or_default();
        for next in next.iter().filter(|next| leading_on.contains(*next)) {
            reversed.entry(next.clone()).or_default().insert(name.clone());
        }
    }
    trimmed(&reversed)
}

/// The names that are left after those without a successor are removed again and again.
fn trimmed(graph: &Graph) -> BTreeSet<String> {
    let mut before: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, next) in graph {
        let next = next.iter().filter(|next| graph.contains_key(*next));
        *count.entry(name).or_default() = next.clone().count();
        next.for_each(|next| before.entry(next).or_default().push(name));
    }
    let mut ends: Vec<&str> = count.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    while let Some(end) = ends.pop() {
        for name in before.remove(end).unwrap_or_default() {
            let left = count.entry(name).or_default();
            *left -= 1;
            if *left == 0 {
                ends.push(name);
            }
        }
    }
    count.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(edges: &[(&str, &str)]) -> Vec<String> {
        let mut graph = Graph::new();
        for (name, next) in edges {
            graph.entry((*name).to_owned()).or_default().insert((*next).to_owned());
        }
        on_cycles(&graph).into_iter().collect()
    }

    #[test]
    fn only_names_on_a_cycle_are_found() {
        assert!(cycles(&[("a", "b"), ("b", "c")]).is_empty());
        assert_eq!(cycles(&[("a", "a")]), ["a"]);
        assert_eq!(cycles(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "a")]), ["b", "c"]);
        assert_eq!(cycles(&[("a", "b"), ("b", "a"), ("c", "d"), ("d", "d"), ("e", "f")]), ["a", "b", "d"]);
    }
}
