//! Make before break: the order of steps in which no name stops resolving on the way.
//!
//! First what comes, wildcards and shallow names before deep ones, because a deep name takes names above it away from a
//! wildcard; then what changes; last what goes, wildcards at the very end. Where no order helps — two names that take each
//! other away from a wildcard — the steps are put into one group, to be written in one transaction.

use std::collections::BTreeMap;

use super::answers::{Answers, Mask, at_and_above};
use super::observed::RecordKind;
use super::zone::Zone;
use super::{SetChange, Step, Verb};
use crate::model::Str;

/// Steps in order, with their groups, and with the positions of those they wait for. `after` holds names by zone and step.
pub(super) fn arrange(mut steps: Vec<(Step, Vec<Str>)>, zones: &[Zone<'_>]) -> Vec<Step> {
    steps.sort_by_cached_key(|(step, _)| rank(step));
    let places: BTreeMap<(Str, Str), usize> =
        steps.iter().enumerate().map(|(at, (step, _))| ((step.zone.clone(), step.name.clone()), at)).collect();
    for (step, names) in &mut steps {
        let positions = names.iter().filter_map(|name| places.get(&(step.zone.clone(), name.clone())));
        step.after = positions.copied().collect();
        step.after.sort_unstable();
    }
    let mut steps: Vec<Step> = steps.into_iter().map(|(step, _)| step).collect();
    let mut next = 0;
    for zone in zones {
        next = group(&mut steps, zone, next);
    }
    steps
}

/// The order of steps: phase, zone, then names in the order in which they come or go.
fn rank(step: &Step) -> (Verb, bool, isize, Str, Str) {
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
fn group(steps: &mut [Step], zone: &Zone<'_>, mut next: usize) -> usize {
    let positions: Vec<usize> = (0..steps.len()).filter(|at| steps[*at].zone == *zone.name).collect();
    let mut before = Answers::default();
    zone.content.sets().iter().for_each(|set| before.add(&set.name, &set.kind));
    let breaks = breaks(&positions.iter().map(|at| &steps[*at]).collect::<Vec<_>>(), &before);
    for (at, is_broken) in positions.into_iter().zip(breaks) {
        steps[at].group = next;
        if !is_broken {
            next += 1;
        }
    }
    next
}

/// After which steps a name does not resolve that resolves before the first and after the last.
fn breaks(steps: &[&Step], before: &Answers<'_>) -> Vec<bool> {
    let mut after = before.clone();
    steps.iter().for_each(|step| changes(step).for_each(|change| carry_out(change, &mut after)));
    if !before.has_wildcards() && !after.has_wildcards() {
        return vec![false; steps.len()];
    }
    let mut watch = Watch { nodes: nodes(before, &after), before, after: &after, broken: BTreeMap::new() };
    let mut now = before.clone();
    steps.iter().map(|step| watch.step(step, &mut now)).collect()
}

fn changes(step: &Step) -> impl Iterator<Item = &SetChange> {
    step.changes.iter().chain(&step.markers)
}

fn carry_out<'a>(change: &'a SetChange, answers: &mut Answers<'a>) {
    let kind = RecordKind::from(change.kind);
    match (&change.old, &change.new) {
        (None, Some(_)) => answers.add(&change.name, &kind),
        (Some(_), None) => answers.remove(&change.name, &kind),
        _ => {}
    }
}

/// Every name that exists at either end, by its labels from the last to the first, so that what is below a name follows it.
fn nodes<'a>(before: &Answers<'a>, after: &Answers<'a>) -> BTreeMap<Vec<&'a str>, &'a str> {
    before.existing().chain(after.existing()).map(|name| (reversed(name), name)).collect()
}

fn reversed(name: &str) -> Vec<&str> {
    name.rsplit('.').collect()
}

/// The names that are watched while steps are carried out. A name that stands nowhere is answered like any other directly
/// below the same existing name, so one of those is watched for each.
struct Watch<'w, 'a> {
    nodes: BTreeMap<Vec<&'a str>, &'a str>,
    before: &'w Answers<'a>,
    after: &'w Answers<'a>,
    /// Names that do not resolve now; true for the one that stands nowhere below the name.
    broken: BTreeMap<(&'a str, bool), Mask>,
}

impl<'a> Watch<'_, 'a> {
    /// Carries a step out, and says whether something does not resolve behind it.
    fn step(&mut self, step: &'a Step, now: &mut Answers<'a>) -> bool {
        let tops: Vec<Vec<&'a str>> = changes(step).map(|change| self.touched(change, now)).collect();
        changes(step).for_each(|change| carry_out(change, now));
        let tops: Vec<Vec<&str>> =
            tops.into_iter().chain(changes(step).map(|change| self.touched(change, now))).collect();
        for top in tops {
            self.look(&top, now);
        }
        !self.broken.is_empty()
    }

    /// The name at or below which answers may change: the highest one above the change that exists because of it alone.
    fn touched(&self, change: &'a SetChange, now: &Answers<'_>) -> Vec<&'a str> {
        if let Some(base) = change.name.strip_prefix("*.") {
            return reversed(base);
        }
        let missing = at_and_above(&change.name).take_while(|name| !now.exists(name)).last();
        reversed(missing.unwrap_or(&change.name))
    }

    fn look(&mut self, top: &[&'a str], now: &Answers<'_>) {
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
