//! Safety rules: deletes that are held, either always or until they are confirmed.
//!
//! A delete needs a computed "no" over everything that was visible. What is unknown is kept and cannot be released; what is
//! known but looks like a mistake (more than 30 % of a zone, an empty source, an apex, a wildcard that names depend on, a record
//! that this instance never wrote, addresses that all turn inwards) is kept until it is confirmed. No rule adds an edit.

use std::collections::{BTreeMap, BTreeSet};

use super::diff::{DiffContext, DiffFindings, Edit, Purpose, StepDraft};
use super::ownership;
use super::settings::PlanSettings;
use super::wanted::WantedSet;
use super::zone::ZoneIndex;
use super::{Held, Intent, RecordKey};
use crate::model::Str;
use crate::publication::inward::is_inward;
use crate::reason;

mod protection;
mod shadows;
mod wildcards;

pub(super) use protection::{Cause, Protection};

/// A plan that deletes more than this many of a hundred record sets of ours is held.
const PERCENT: usize = 30;

/// Fewer deletes than this are never too many.
const FEWEST: usize = 10;

/// A kind of object with fewer records than this is never an emptied source.
const FEWEST_OF_KIND: usize = 2;

/// The held entry if another instance uses our owner id: then no record is provably ours.
pub(super) fn owner_conflict(zones: &[ZoneIndex<'_>], settings: &PlanSettings) -> Option<Held> {
    let registry = settings.txt()?;
    let (zone, (fingerprint, marker)) =
        zones.iter().find_map(|zone| ownership::owner_conflict(zone, registry).map(|found| (zone, found)))?;
    let (owner, ours) = (&registry.owner, registry.instance.fingerprint());
    let message = format!(
        "`{marker}` was written by instance `{fingerprint}` under the owner id `{owner}`, and this is instance `{ours}`; nothing is written"
    );
    Some(Held::new(Some(zone.name), "", reason::OWNER_CONFLICT, message))
}

/// Removes deletes that must not happen from the drafts.
pub(super) fn judge<'a>(
    mut drafts: Vec<StepDraft<'a>>,
    context: &DiffContext<'a>,
    chosen: &[Vec<WantedSet<'_>>],
    findings: &mut DiffFindings,
) -> Vec<StepDraft<'a>> {
    hold_where(&mut drafts, findings, |draft, edit| not_known(draft, edit, context));
    if !context.settings.confirm_deletes {
        hold_where(&mut drafts, findings, |draft, edit| unproven(draft, edit, context));
        let empty = emptied(&drafts, context.intent, findings);
        let is_explained = |draft: &StepDraft<'_>| context.settings.explained.contains(&draft.name);
        hold_where(&mut drafts, findings, |draft, edit| {
            in_emptied(draft, edit, &empty).filter(|_| !is_explained(draft))
        });
        hold_where(&mut drafts, findings, at_apex);
        let crowded = crowded(&drafts, context.settings, findings);
        hold_where(&mut drafts, findings, |draft, edit| too_many(draft, edit, &crowded));
        hold_changes_where(&mut drafts, findings, turned_inward);
    }
    shadows::hold(&mut drafts, context, findings);
    wildcards::guard(&mut drafts, context, chosen, findings);
    drafts.retain(|draft| !draft.upserts.is_empty() || !draft.removals.is_empty());
    drafts
}

/// Holds the removals for which a rule returns a reason.
fn hold_where(
    drafts: &mut [StepDraft<'_>],
    findings: &mut DiffFindings,
    rule: impl Fn(&StepDraft<'_>, &Edit<'_>) -> Option<Held>,
) {
    for draft in drafts.iter_mut().filter(|draft| draft.purpose == Purpose::Records) {
        let removals = std::mem::take(&mut draft.removals);
        for edit in removals {
            match rule(draft, &edit) {
                Some(held) => findings.held.push(held),
                None => draft.removals.push(edit),
            }
        }
    }
}

/// Holds the changes of existing record sets for which a rule returns a reason.
fn hold_changes_where(
    drafts: &mut [StepDraft<'_>],
    findings: &mut DiffFindings,
    rule: impl Fn(&StepDraft<'_>, &Edit<'_>) -> Option<Held>,
) {
    for draft in drafts.iter_mut().filter(|draft| draft.purpose == Purpose::Records) {
        let upserts = std::mem::take(&mut draft.upserts);
        for edit in upserts {
            match rule(draft, &edit) {
                Some(held) => findings.held.push(held),
                None => draft.upserts.push(edit),
            }
        }
    }
}

/// A name that others can reach is not moved to addresses that lead whoever asks to itself: a Gateway that loses its load
/// balancer may show such an address for a while.
fn turned_inward(draft: &StepDraft<'_>, edit: &Edit<'_>) -> Option<Held> {
    let (old, new) = (&edit.found?.values, &edit.new.as_ref()?.values);
    let turns = new.iter().all(|value| is_inward(value)) && !old.iter().all(|value| is_inward(value));
    let message = || {
        let (name, to, from) = (&draft.name, new.join("`, `"), old.join("`, `"));
        format!("`{name}` would lead whoever asks to itself (`{to}`), so `{from}` is kept until confirmed")
    };
    turns.then(|| edit.held(draft.zone, &draft.name, reason::ADDRESSES_INWARD, message()))
}

/// Records with an unknown verdict are kept, even after a confirmation.
fn not_known(draft: &StepDraft<'_>, edit: &Edit<'_>, context: &DiffContext<'_>) -> Option<Held> {
    if let Some(cause) = context.cause_to_keep(&draft.name, edit) {
        let held = edit.held(draft.zone, &draft.name, cause.reason, cause.message(&draft.name));
        return Some(Held { cause: cause.cause, object: cause.object.or(held.object), ..held });
    }
    if let Some(provider) = context.settings.moving.get(&draft.name) {
        let message = format!("`{}` moves to the provider `{provider}`, and is kept until it is there", draft.name);
        return Some(edit.held(draft.zone, &draft.name, reason::REPLACEMENT_PENDING, message));
    }
    let home = context.observed.zone_of(&draft.name)?;
    if home == draft.zone.name || !context.protection.is_wanted(&draft.name) || is_seen_in(home, &draft.name, context) {
        return None;
    }
    let message =
        format!("`{}` moves to zone `{home}`, and is kept in `{}` until it is seen there", draft.name, draft.zone.name);
    Some(edit.held(draft.zone, &draft.name, reason::REPLACEMENT_PENDING, message))
}

/// Whether a zone was read and has address records of a name.
fn is_seen_in(zone: &Str, name: &str, context: &DiffContext<'_>) -> bool {
    match context.observed.zone(zone) {
        Some(super::ZoneState::Read(content)) => {
            let from = content.sets().partition_point(|set| &*set.name < name);
            content.sets()[from..].iter().take_while(|set| &*set.name == name).any(|set| set.made().is_some())
        }
        _ => false,
    }
}

/// The held entry if only the owner id indicates that a record is ours.
fn unproven(draft: &StepDraft<'_>, edit: &Edit<'_>, context: &DiffContext<'_>) -> Option<Held> {
    let key: RecordKey = edit.key(&draft.name);
    if edit.ours.is_proven || context.settings.trust_unstamped || context.intent.remembered.contains_key(&key) {
        return None;
    }
    let message = format!(
        "the marker of `{}` has our owner id, but this instance did not write it and never wanted the name; it is kept until confirmed",
        draft.name
    );
    Some(edit.held(draft.zone, &draft.name, reason::OWNERSHIP_UNPROVEN, message))
}

/// Sources that no longer ask for records; the key `None` means all of them.
fn emptied(drafts: &[StepDraft<'_>], intent: &Intent<'_>, findings: &DiffFindings) -> BTreeMap<Option<String>, String> {
    let mut empty = BTreeMap::new();
    let is_nothing_wanted = match &findings.kinds {
        Some(kinds) => kinds.is_empty(),
        None => intent.records.is_empty() && intent.covered.is_empty(),
    };
    if is_nothing_wanted {
        let count: usize = findings.owned.values().sum();
        let are = if count == 1 { "is" } else { "are" };
        empty.insert(None, format!("nothing asks for records any more, and {count} {are} ours"));
        return empty;
    }
    let routes = intent.records.iter().chain(intent.covered).flat_map(|record| &record.routes);
    let kinds = || routes.map(|route| route.kind.as_str().to_ascii_lowercase()).collect::<BTreeSet<String>>();
    let kinds = findings.kinds.clone().unwrap_or_else(kinds);
    let removed = drafts.iter().flat_map(|draft| &draft.removals).filter_map(|edit| edit.ours.source());
    for kind in removed.collect::<BTreeSet<_>>() {
        let count = findings.sources.get(kind).copied().unwrap_or_default();
        if count >= FEWEST_OF_KIND && !kinds.contains(kind) {
            empty.insert(
                Some(kind.to_owned()),
                format!("no {kind} asks for records any more, and {count} were made for such"),
            );
        }
    }
    empty
}

fn in_emptied(draft: &StepDraft<'_>, edit: &Edit<'_>, empty: &BTreeMap<Option<String>, String>) -> Option<Held> {
    let why = empty.get(&None).or_else(|| empty.get(&edit.ours.source().map(str::to_owned)))?;
    let message = format!("`{}` is kept until confirmed: {why}", draft.name);
    Some(edit.held(draft.zone, &draft.name, reason::SOURCE_EMPTY, message))
}

fn at_apex(draft: &StepDraft<'_>, edit: &Edit<'_>) -> Option<Held> {
    let message =
        || format!("`{}` is the top of its zone; its {} records are kept until confirmed", draft.name, edit.kind);
    (draft.name == *draft.zone.name).then(|| edit.held(draft.zone, &draft.name, reason::APEX_GUARDED, message()))
}

/// Zones with too many deletes, with the numbers. All zones together are checked as well.
fn crowded(drafts: &[StepDraft<'_>], settings: &PlanSettings, findings: &DiffFindings) -> BTreeMap<Str, String> {
    let mut deletes: BTreeMap<Str, usize> = BTreeMap::new();
    for draft in drafts.iter().filter(|draft| draft.purpose == Purpose::Records) {
        *deletes.entry(draft.zone.name.clone()).or_default() += draft.removals.len();
    }
    let lately = |zone: &Str| settings.recent_deletes.get(zone).copied().unwrap_or_default();
    let owned = |zone: &Str| findings.owned.get(zone).copied().unwrap_or_default();
    let is_crowd = |goes: usize, of: usize| goes >= FEWEST && goes * 100 > of * PERCENT;
    let goes: usize = deletes.iter().map(|(zone, count)| count + lately(zone)).sum();
    let of: usize = deletes.keys().map(|zone| owned(zone) + lately(zone)).sum::<usize>()
        + findings.owned.iter().filter(|(zone, _)| !deletes.contains_key(*zone)).map(|(_, count)| count).sum::<usize>();
    let everywhere = is_crowd(goes, of).then(|| format!("{goes} of our {of} records in all zones would go"));
    let mut crowded = BTreeMap::new();
    for (zone, count) in deletes {
        let (goes, of) = (count + lately(&zone), owned(&zone) + lately(&zone));
        let here = is_crowd(goes, of).then(|| format!("{goes} of our {of} records in `{zone}` would go"));
        crowded.extend(here.or_else(|| everywhere.clone()).map(|why| (zone, why)));
    }
    crowded
}

fn too_many(draft: &StepDraft<'_>, edit: &Edit<'_>, crowded: &BTreeMap<Str, String>) -> Option<Held> {
    let why = crowded.get(draft.zone.name)?;
    let message = format!("`{}` is kept until confirmed: {why}", draft.name);
    Some(edit.held(draft.zone, &draft.name, reason::TOO_MANY_DELETES, message))
}
