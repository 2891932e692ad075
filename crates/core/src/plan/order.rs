//! The order of steps in which no name stops resolving: create before delete.
//!
//! Creates come first, wildcards and shallow names before deep ones, because a deep name hides the names above it from a
//! wildcard; then updates; deletes last, wildcards at the very end. Where no order helps (two names that hide each other from
//! a wildcard), the steps form one group, to be written in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, Mask, RecordCounts, at_and_above, reversed};
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
    let mut by_zone: BTreeMap<Str, Vec<usize>> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        by_zone.entry(step.zone.clone()).or_default().push(at);
    }
    let mut next = 0;
    for zone in zones {
        let positions = by_zone.remove(zone.name).unwrap_or_default();
        next = group(&mut steps, positions, zone, next);
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
fn group(steps: &mut [PlanStep], positions: Vec<usize>, zone: &ZoneIndex<'_>, mut next: usize) -> usize {
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
    let mut watch = Watch { nodes, before: &before, after: &after, broken: BTreeMap::new() };
    let mut now = before.clone();
    steps.iter().map(|step| watch.step(step, &mut now)).collect()
}

/// The name at or below which answers may change with a record set: the highest one that does not exist at all times.
fn top<'a>(change: &'a SetChange, always: &Answers<'_, '_>) -> &'a str {
    if let Some(base) = change.name.strip_prefix("*.") {
        return base;
    }
    highest_missing(&change.name, always).unwrap_or(&change.name)
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

/// The names whose resolution is checked while steps are applied. Names that do not exist are answered like any other directly
/// below the same existing name, so one of them is checked for each.
struct Watch<'w, 'b, 'a> {
    nodes: BTreeMap<Vec<&'a str>, &'a str>,
    before: &'w Answers<'b, 'a>,
    after: &'w Answers<'b, 'a>,
    /// Names that do not resolve now; true for a name below it that does not exist.
    broken: BTreeMap<(&'a str, bool), Mask>,
}

impl<'b, 'a> Watch<'_, 'b, 'a> {
    /// Applies a step; returns whether a name does not resolve afterwards.
    fn step(&mut self, step: &'a PlanStep, now: &mut Answers<'b, 'a>) -> bool {
        // A set that only changes its values answers what it answered.
        let changes = step.all_changes().filter(|change| change.verb() != Verb::Update);
        let changes: Vec<_> = changes.map(|change| (change, highest_missing(&change.name, now))).collect();
        changes.iter().for_each(|(change, _)| now.carry_out(change));
        let touched: BTreeSet<_> = changes.iter().map(|(change, missing)| touched(change, *missing, now)).collect();
        for (name, with_below) in touched {
            self.look(name, with_below, now);
        }
        !self.broken.is_empty()
    }

    fn look(&mut self, top: &'a str, with_below: bool, now: &Answers<'_, '_>) {
        let labels = reversed(top);
        let at_and_below = self.nodes.range(labels.clone()..).take_while(|(name, _)| name.starts_with(&labels));
        for (_, name) in at_and_below.take(if with_below { usize::MAX } else { 1 }) {
            let ends = self.before.mask(name) & self.after.mask(name);
            note(&mut self.broken, (name, false), ends & !now.mask(name));
            let ends = self.before.mask_below(name) & self.after.mask_below(name);
            note(&mut self.broken, (name, true), ends & !now.mask_below(name));
        }
    }
}

/// The name whose answers a change alters, and whether also those of names below it.
///
/// Names below are concerned where a name begins or stops to exist, and below the base of a wildcard. A name begins and stops
/// to exist once in a plan, so that all steps together look at each name once for each name above it.
fn touched<'a>(change: &'a SetChange, missing_before: Option<&'a str>, now: &Answers<'_, '_>) -> (&'a str, bool) {
    let missing = highest_missing(&change.name, now);
    let flipped = (missing != missing_before).then(|| [missing, missing_before].into_iter().flatten());
    let wildcard_base = change.name.strip_prefix("*.");
    let tops = flipped.into_iter().flatten().chain(wildcard_base);
    tops.min_by_key(|name| name.len()).map_or((&*change.name, false), |top| (top, true))
}

/// The highest name, at or above this one, that does not exist.
fn highest_missing<'n>(name: &'n str, answers: &Answers<'_, '_>) -> Option<&'n str> {
    at_and_above(name).take_while(|name| !answers.exists(name)).last()
}

fn note<'a>(broken: &mut BTreeMap<(&'a str, bool), Mask>, name: (&'a str, bool), missing: Mask) {
    if missing == 0 {
        broken.remove(&name);
    } else {
        broken.insert(name, missing);
    }
}
