//! The order of steps in which no name stops resolving: create before delete.
//!
//! Creates come first, wildcards and shallow names before deep ones, because a deep name hides the names above it from a
//! wildcard; then updates; deletes last, wildcards at the very end. Where no order helps (two names that hide each other from
//! a wildcard), the steps form one group, to be written in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, Mask, RecordCounts, at_and_above};
use super::zone::ZoneIndex;
use super::{PlanStep, SetChange, Verb};
use crate::model::Str;

/// Steps in order, with their groups, and with the positions of those they wait for. `after` holds names by zone and step.
pub(super) fn arrange(mut steps: Vec<(PlanStep, Vec<Str>)>, zones: &[ZoneIndex<'_>]) -> Vec<PlanStep> {
    steps.sort_by_cached_key(|(step, _)| rank(step));
    let places: BTreeMap<(Str, Str), usize> =
        steps.iter().enumerate().map(|(at, (step, _))| ((step.zone.clone(), step.name.clone()), at)).collect();
    for (step, names) in &mut steps {
        let positions = names.iter().filter_map(|name| places.get(&(step.zone.clone(), name.clone())));
        step.after = positions.copied().collect();
        step.after.sort_unstable();
    }
    let mut steps: Vec<PlanStep> = steps.into_iter().map(|(step, _)| step).collect();
    let mut next = 0;
    for zone in zones {
        next = group(&mut steps, zone, next);
    }
    steps
}

/// The order of steps: phase, zone, then names in the order in which they come or go.
fn rank(step: &PlanStep) -> (Verb, bool, isize, Str, Str) {
    let is_wildcard = step.name.starts_with("*.");
    let depth = isize::try_from(step.name.split('.').count()).unwrap_or(isize::MAX);
    let (late, depth) = match step.verb {
        Verb::Create => (!is_wildcard, depth),
        Verb::Update => (false, 0),
        Verb::Delete => (is_wildcard, -depth),
    };
    (step.verb, late, depth, step.zone.clone(), step.name.clone())
}

/// Numbers the groups of a zone's steps from `next` on, and gives back the number after the last.
fn group(steps: &mut [PlanStep], zone: &ZoneIndex<'_>, mut next: usize) -> usize {
    let positions: Vec<usize> = (0..steps.len()).filter(|at| steps[*at].zone == *zone.name).collect();
    let here: Vec<&PlanStep> = positions.iter().map(|at| &steps[*at]).collect();
    let breaks = breaks(&here, zone);
    for (at, is_broken) in positions.into_iter().zip(breaks) {
        steps[at].group = next;
        if !is_broken {
            next += 1;
        }
    }
    next
}

/// After which steps a name does not resolve that resolves before the first and after the last.
fn breaks(steps: &[&PlanStep], zone: &ZoneIndex<'_>) -> Vec<bool> {
    let is_wildcard = |step: &&PlanStep| step.name.starts_with("*.");
    if steps.is_empty() || !(zone.has_wildcards() || steps.iter().any(is_wildcard)) {
        return vec![false; steps.len()];
    }
    let tree = zone.tree();
    let before = Answers::of(&tree);
    let (mut after, mut always) = (before.clone(), before.clone());
    for change in steps.iter().flat_map(|step| step.all_changes()) {
        after.carry_out(change);
        if change.new.is_none() {
            always.carry_out(change);
        }
    }
    let tops = steps.iter().flat_map(|step| step.all_changes()).map(|change| top(change, &always)).collect();
    let nodes = nodes(&tree, steps, &tops);
    let mut watch = Watch { nodes, always: &always, before: &before, after: &after, broken: BTreeMap::new() };
    let mut now = before.clone();
    steps.iter().map(|step| watch.step(step, &mut now)).collect()
}

/// The name at or below which answers may change with a record set: the highest one that does not exist at all times.
fn top<'a>(change: &'a SetChange, always: &Answers<'_, '_>) -> &'a str {
    if let Some(base) = change.name.strip_prefix("*.") {
        return base;
    }
    at_and_above(&change.name).take_while(|name| !always.exists(name)).last().unwrap_or(&change.name)
}

/// Every name at or below the tops, by its labels from the last to the first, so that what is below a name follows it.
fn nodes<'a>(
    tree: &RecordCounts<'a>,
    steps: &[&'a PlanStep],
    tops: &BTreeSet<&str>,
) -> BTreeMap<Vec<&'a str>, &'a str> {
    let is_touched = |name: &&str| at_and_above(name).any(|name| tops.contains(name));
    let changed = steps.iter().flat_map(|step| step.all_changes()).flat_map(|change| at_and_above(&change.name));
    tree.names().chain(changed).filter(is_touched).map(|name| (reversed(name), name)).collect()
}

fn reversed(name: &str) -> Vec<&str> {
    name.rsplit('.').collect()
}

/// The names whose resolution is checked while steps are applied. Names that do not exist are answered like any other directly
/// below the same existing name, so one of them is checked for each.
struct Watch<'w, 'b, 'a> {
    nodes: BTreeMap<Vec<&'a str>, &'a str>,
    always: &'w Answers<'b, 'a>,
    before: &'w Answers<'b, 'a>,
    after: &'w Answers<'b, 'a>,
    /// Names that do not resolve now; true for a name below it that does not exist.
    broken: BTreeMap<(&'a str, bool), Mask>,
}

impl<'b, 'a> Watch<'_, 'b, 'a> {
    /// Applies a step; returns whether a name does not resolve afterwards.
    fn step(&mut self, step: &'a PlanStep, now: &mut Answers<'b, 'a>) -> bool {
        step.all_changes().for_each(|change| now.carry_out(change));
        let tops: BTreeSet<&str> = step.all_changes().map(|change| top(change, self.always)).collect();
        tops.iter().for_each(|top| self.look(&reversed(top), now));
        !self.broken.is_empty()
    }

    fn look(&mut self, top: &[&'a str], now: &Answers<'_, '_>) {
        let below = self.nodes.range(top.to_vec()..).take_while(|(labels, _)| labels.starts_with(top));
        for (_, name) in below {
            let ends = self.before.mask(name) & self.after.mask(name);
            note(&mut self.broken, (name, false), ends & !now.mask(name));
            let ends = self.before.mask_below(name) & self.after.mask_below(name);
            note(&mut self.broken, (name, true), ends & !now.mask_below(name));
        }
    }
}

fn note<'a>(broken: &mut BTreeMap<(&'a str, bool), Mask>, name: (&'a str, bool), missing: Mask) {
    if missing == 0 {
        broken.remove(&name);
    } else {
        broken.insert(name, missing);
    }
}
