//! Names with an unknown verdict that a wildcard of ours answers: no step may hide them from it without an answer.
//!
//! They get records of their own where that is possible. Where their marker cannot be written, the step that would hide them
//! is held until their verdict is known.

use super::{DiffContext, DiffFindings, Purpose, StepDraft};
use crate::model::Str;
use crate::names::is_below;
use crate::plan::answers::{Answers, at_and_above};
use crate::plan::ownership::{self, Ownership};
use crate::plan::zone::ZoneIndex;
use crate::plan::{PlanStep, steps};

/// Holds steps that would hide names with an unknown verdict.
pub(super) fn hold(drafts: &mut [StepDraft<'_>], context: &DiffContext<'_>, findings: &mut DiffFindings) {
    if context.intent.holds.is_empty() {
        return;
    }
    while let Some((at, lost)) = culprit(drafts, context) {
        stop(&mut drafts[at], &lost, context, findings);
    }
}

/// Removes the creates from a draft, and the removals that they replace.
fn stop(draft: &mut StepDraft<'_>, lost: &str, context: &DiffContext<'_>, findings: &mut DiffFindings) {
    let is_whole = draft.purpose == Purpose::Replacement;
    let upserts = std::mem::take(&mut draft.upserts);
    let (mut stopped, rest): (Vec<_>, Vec<_>) = upserts.into_iter().partition(|edit| is_whole || edit.found.is_none());
    draft.upserts = rest;
    if is_whole {
        stopped.append(&mut draft.removals);
    }
    // Every name with an unknown verdict has a cause.
    let Some(cause) = context.protection.of(lost, None) else { return };
    let message = format!(
        "`{}` is not made: it would take `{lost}` away from the wildcard that answers for it, and {}",
        draft.name, cause.why
    );
    for edit in stopped {
        let held = edit.held(draft.zone, &draft.name, cause.reason, message.clone());
        findings.held.push(super::Held { cause: cause.cause, object: cause.object.clone().or(held.object), ..held });
    }
}

/// A draft that hides a name with an unknown verdict, and the name.
fn culprit(drafts: &[StepDraft<'_>], context: &DiffContext<'_>) -> Option<(usize, Str)> {
    let mut zones: Vec<&ZoneIndex<'_>> = drafts.iter().map(|draft| draft.zone).collect();
    zones.dedup_by_key(|zone| zone.name);
    zones.into_iter().filter(|zone| zone.has_wildcards()).find_map(|zone| culprit_in(zone, drafts, context))
}

fn culprit_in(zone: &ZoneIndex<'_>, drafts: &[StepDraft<'_>], context: &DiffContext<'_>) -> Option<(usize, Str)> {
    let tree = zone.tree();
    let before = Answers::of(&tree);
    let unknown = context.intent.holds.iter().map(|hold| &hold.hostname).filter(|name| is_below(name, zone.name));
    let unknown: Vec<&Str> = unknown.filter(|name| is_answered_by_ours(name, zone, &before, context)).collect();
    if unknown.is_empty() {
        return None;
    }
    let here = drafts.iter().enumerate().filter(|(_, draft)| draft.zone.name == zone.name);
    let planned: Vec<(usize, PlanStep)> =
        here.filter_map(|(at, draft)| Some((at, steps::build(draft, context.settings)?))).collect();
    let mut after = before.clone();
    planned.iter().flat_map(|(_, step)| step.all_changes()).for_each(|change| after.carry_out(change));
    unknown.into_iter().filter(|name| after.mask(name) == 0).find_map(|lost| {
        let is_hiding = |step: &PlanStep| {
            step.all_changes().any(|change| change.old.is_none() && hides(&change.name, lost, &before))
        };
        let at = planned.iter().find(|(at, step)| is_hiding(step) && makes(&drafts[*at]))?.0;
        Some((at, lost.clone()))
    })
}

/// Whether a created name hides another one from its wildcard: it is that name, or makes it exist.
fn hides(made: &str, lost: &str, before: &Answers<'_, '_>) -> bool {
    at_and_above(made).any(|name| (name == lost || is_below(lost, name)) && !before.exists(name))
}

/// Whether a draft has a create that can be held.
fn makes(draft: &StepDraft<'_>) -> bool {
    draft.purpose == Purpose::Replacement || draft.upserts.iter().any(|edit| edit.found.is_none())
}

/// Whether address queries for a name are answered now, by a wildcard of ours.
fn is_answered_by_ours(name: &str, zone: &ZoneIndex<'_>, before: &Answers<'_, '_>, context: &DiffContext<'_>) -> bool {
    let Some(owner) = before.owner(name).filter(|owner| *owner != name && before.mask(name) != 0) else { return false };
    zone.at(owner).iter().any(|set| matches!(ownership::of(zone, set, context.settings, false), Ownership::Ours(_)))
}
