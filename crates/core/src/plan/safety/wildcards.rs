//! Names that are answered by records to be deleted: these records stay until their replacement is written (D10).
//!
//! Mostly a wildcard and the names below it; also a name whose records are deleted because a new wildcard answers it.

use std::collections::{BTreeMap, BTreeSet};

use super::{DiffContext, DiffFindings, Held, Purpose, StepDraft, WantedSet};
use crate::model::Str;
use crate::plan::answers::{Answers, reversed};
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
    let mut names = attached(context, chosen);
    for drafts in drafts.chunk_by_mut(|a, b| a.zone.name == b.zone.name) {
        let is_wildcard = |draft: &StepDraft<'_>| draft.name.starts_with("*.");
        let zone = drafts[0].zone;
        if !drafts.iter().any(goes) || !(zone.has_wildcards() || drafts.iter().any(is_wildcard)) {
            continue;
        }
        let verdicts = verdicts(drafts, zone, &names.remove(&**zone.name).unwrap_or_default(), context);
        for draft in drafts.iter_mut().filter(|draft| goes(draft)) {
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

/// The names that routes are attached under, by zone.
fn attached<'a>(context: &DiffContext<'a>, chosen: &'a [Vec<WantedSet<'_>>]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let wanted = chosen.iter().flatten().map(|wanted| &*wanted.name);
    let others = context.intent.records.iter().chain(context.intent.covered).map(|record| &*record.name);
    let mut by_zone: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in wanted.chain(others) {
        if let Some(zone) = context.observed.zone_of(name) {
            by_zone.entry(zone).or_default().insert(name);
        }
    }
    by_zone
}

fn verdicts(
    drafts: &[StepDraft<'_>],
    zone: &ZoneIndex<'_>,
    names: &BTreeSet<&str>,
    context: &DiffContext<'_>,
) -> BTreeMap<Str, RemovalEffect> {
    let tree = zone.tree();
    let before = Answers::of(&tree);
    let planned: Vec<_> = drafts.iter().filter_map(|draft| steps::build(draft, context.settings)).collect();
    let mut after = before.clone();
    planned.iter().flat_map(PlanStep::all_changes).for_each(|change| after.carry_out(change));
    let made = drafts.iter().filter(|draft| !draft.upserts.is_empty()).map(|draft| &draft.name);
    let replacements = Replacements { names, answered: by_owner(names, &before), after, made: Made::new(made) };
    let judge = |draft: &StepDraft<'_>| (draft.name.clone(), replacements.verdict(draft));
    drafts.iter().filter(|draft| goes(draft)).map(judge).collect()
}

/// The names by the name whose records answer for them.
fn by_owner<'n>(names: &BTreeSet<&'n str>, before: &Answers<'_, '_>) -> BTreeMap<String, Vec<&'n str>> {
    let mut answered: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names {
        if let Some(owner) = before.owner(name).filter(|owner| owner.starts_with("*.")) {
            answered.entry(owner.to_owned()).or_default().push(name);
        }
    }
    answered
}

/// What answers for names when records of a zone are deleted.
struct Replacements<'w, 'b, 'a> {
    /// The names that routes are attached under.
    names: &'w BTreeSet<&'w str>,
    /// The same by the wildcard that answers for them before.
    answered: BTreeMap<String, Vec<&'w str>>,
    after: Answers<'b, 'a>,
    made: Made<'w>,
}

/// The names that a plan creates or changes.
struct Made<'w> {
    all: BTreeSet<&'w Str>,
    /// The wildcards among them by the labels of their base from the last to the first, so that what is below follows.
    wildcards: BTreeMap<Vec<&'w str>, &'w Str>,
}

impl Replacements<'_, '_, '_> {
    fn verdict(&self, draft: &StepDraft<'_>) -> RemovalEffect {
        let mut verdict = RemovalEffect::default();
        let mut look = |name: &str| {
            let owner = self.after.owner(name).filter(|_| self.after.mask(name) != 0);
            if let Some(owner) = owner {
                verdict.after.extend(self.made.all.get(&Str::from(owner)).map(|name| (*name).clone()));
            } else if verdict.loses.is_none() && self.names.contains(name) {
                verdict.loses = Some(name.into());
            }
        };
        match draft.name.strip_prefix("*.") {
            None => look(&draft.name),
            Some(base) => {
                self.answered.get(&*draft.name).into_iter().flatten().for_each(|name| look(name));
                verdict.after.extend(self.made.overlapping(base).cloned());
            }
        }
        verdict
    }
}

impl<'w> Made<'w> {
    fn new(names: impl Iterator<Item = &'w Str>) -> Self {
        let all: BTreeSet<&Str> = names.collect();
        let wildcards = all.iter().filter_map(|name| Some((reversed(name.strip_prefix("*.")?), *name))).collect();
        Made { all, wildcards }
    }

    /// The wildcards that answer for names of another one, below its base or above.
    fn overlapping(&self, base: &str) -> impl Iterator<Item = &'w Str> {
        let labels = reversed(base);
        let above = (1..labels.len()).filter_map(|count| self.wildcards.get(&labels[..count])).copied();
        let above: Vec<&Str> = above.collect();
        let from = self.wildcards.range(labels.clone()..);
        let below = from.take_while(|(other, _)| other.starts_with(&labels)).filter(|(other, _)| **other != labels);
        let below: Vec<&Str> = below.map(|(_, name)| *name).collect();
        above.into_iter().chain(below)
    }
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
