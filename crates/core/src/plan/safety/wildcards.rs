//! Names that are answered by records to be deleted: these records stay until their replacement is written (D10).
//!
//! Mostly a wildcard and the names below it; also a name whose records are deleted because a new wildcard answers it.

use std::collections::{BTreeMap, BTreeSet};

use super::{DiffContext, DiffFindings, Held, Purpose, StepDraft, WantedSet};
use crate::model::Str;
use crate::names::is_below;
use crate::plan::answers::Answers;
use crate::plan::zone::ZoneIndex;
use crate::plan::{PlanStep, steps};
use crate::reason;

/// Holds records that names still need, and notes which steps must precede a delete.
pub(super) fn guard(
    drafts: &mut [StepDraft<'_>],
    context: &DiffContext<'_>,
    chosen: &[Vec<WantedSet<'_>>],
    findings: &mut DiffFindings,
) {
    let zones: BTreeSet<Str> = drafts.iter().filter(|d| goes(d)).map(|draft| draft.zone.name.clone()).collect();
    let has_wildcards = |zone: &Str| {
        let mut here = drafts.iter().filter(|draft| draft.zone.name == zone).peekable();
        let is_wildcard = |name: &str| name.starts_with("*.");
        here.peek().is_some_and(|draft| draft.zone.has_wildcards()) || here.any(|draft| is_wildcard(&draft.name))
    };
    let zones: Vec<Str> = zones.into_iter().filter(has_wildcards).collect();
    for zone in zones {
        let names: BTreeSet<&str> = attached(&zone, context, chosen);
        let verdicts = verdicts(drafts, &zone, &names, context);
        for draft in drafts.iter_mut().filter(|draft| *draft.zone.name == zone && goes(draft)) {
            let Some(verdict) = verdicts.get(&draft.name) else { continue };
            apply(draft, verdict, context, findings);
        }
    }
}

/// The effect of a draft that only deletes.
#[derive(Default)]
struct RemovalEffect {
    /// A name that would no longer resolve.
    loses: Option<Str>,
    /// Names that this plan creates and that answer instead.
    after: BTreeSet<Str>,
}

fn goes(draft: &StepDraft<'_>) -> bool {
    draft.purpose == Purpose::Records && draft.upserts.is_empty() && !draft.removals.is_empty()
}

/// The names that routes are attached under, in the zone.
fn attached<'a>(zone: &str, context: &DiffContext<'a>, chosen: &'a [Vec<WantedSet<'_>>]) -> BTreeSet<&'a str> {
    let wanted = chosen.iter().flatten().map(|wanted| &*wanted.name);
    let others = context.intent.records.iter().chain(context.intent.covered).map(|record| &*record.name);
    wanted.chain(others).filter(|name| context.observed.zone_of(name).is_some_and(|home| &**home == zone)).collect()
}

fn verdicts(
    drafts: &[StepDraft<'_>],
    zone: &Str,
    names: &BTreeSet<&str>,
    context: &DiffContext<'_>,
) -> BTreeMap<Str, RemovalEffect> {
    let here: Vec<&StepDraft<'_>> = drafts.iter().filter(|draft| draft.zone.name == zone).collect();
    let Some(first) = here.first() else { return BTreeMap::new() };
    let tree = first.zone.tree();
    let before = Answers::of(&tree);
    let planned: Vec<_> = here.iter().filter_map(|draft| steps::build(draft, context.settings)).collect();
    let mut after = before.clone();
    planned.iter().flat_map(PlanStep::all_changes).for_each(|change| after.carry_out(change));
    let made: BTreeSet<&Str> = here.iter().filter(|draft| !draft.upserts.is_empty()).map(|draft| &draft.name).collect();
    let judge = |draft: &&StepDraft<'_>| (draft.name.clone(), verdict(draft, names, &before, &after, &made));
    here.iter().filter(|draft| goes(draft)).map(judge).collect()
}

fn verdict(
    draft: &StepDraft<'_>,
    names: &BTreeSet<&str>,
    before: &Answers<'_, '_>,
    after: &Answers<'_, '_>,
    made: &BTreeSet<&Str>,
) -> RemovalEffect {
    let mut verdict = RemovalEffect::default();
    let mut look = |name: &str| {
        let owner = after.owner(name).filter(|_| after.mask(name) != 0);
        if let Some(owner) = owner {
            verdict.after.extend(made.get(&Str::from(owner)).map(|name| (*name).clone()));
        } else if verdict.loses.is_none() && names.contains(name) {
            verdict.loses = Some(name.into());
        }
    };
    match draft.name.strip_prefix("*.") {
        None => look(&draft.name),
        Some(base) => {
            let answered = names.iter().filter(|name| is_below(name, base) && before.owner(name) == Some(&*draft.name));
            answered.for_each(|name| look(name));
            verdict.after.extend(overlapping(base, made));
        }
    }
    verdict
}

/// The wildcards that are made and answer for names of one that goes.
fn overlapping(base: &str, made: &BTreeSet<&Str>) -> Vec<Str> {
    let is_overlapping = |name: &Str| {
        let other = name.strip_prefix("*.");
        other.is_some_and(|other| is_below(other, base) || is_below(base, other))
    };
    made.iter().filter(|name| is_overlapping(name)).map(|name| (**name).clone()).collect()
}

fn apply(draft: &mut StepDraft<'_>, verdict: &RemovalEffect, context: &DiffContext<'_>, findings: &mut DiffFindings) {
    let name = draft.name.clone();
    let is_wildcard = name.starts_with("*.");
    let (reason, message) = if verdict.loses.is_some() && !is_wildcard {
        (
            reason::REPLACEMENT_PENDING,
            format!("`{name}` is kept: it is still wanted, and nothing else answers for it yet"),
        )
    } else if let Some(lost) = &verdict.loses {
        if context.settings.confirm_deletes {
            return;
        }
        (reason::WILDCARD_GUARDED, format!("`{name}` is kept: `{lost}` is still wanted and would have nothing else"))
    } else if !context.settings.capabilities.is_atomic && !verdict.after.is_empty() {
        let awaited: Vec<&str> = verdict.after.iter().map(|name| &**name).collect();
        (reason::REPLACEMENT_PENDING, format!("`{name}` is kept until `{}` is seen in the zone", awaited.join("`, `")))
    } else {
        draft.after = verdict.after.clone();
        return;
    };
    let zone: &ZoneIndex<'_> = draft.zone;
    let held = |edit: super::Edit<'_>| -> Held { edit.held(zone, &name, reason, message.clone()) };
    findings.held.extend(draft.removals.drain(..).map(held));
}
