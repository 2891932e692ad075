//! Compares wanted and existing record sets name by name and produces edits.
//!
//! All record sets of a name are edited together, so that a CNAME can replace addresses in one step and a name never has
//! half of its records. A record set that is not ours is never edited; what it makes impossible is held.

use std::collections::{BTreeMap, BTreeSet};

use super::observed::{Observed, RecordKind, RecordSet};
use super::ownership::{self, Ours, Ownership};
use super::safety::{Cause, Protection};
use super::settings::{PlanSettings, Policy, Registry};
use super::wanted::WantedSet;
use super::zone::ZoneIndex;
use super::{Content, Held, Intent, OwnedSets, RecordKey, Verb, canonical};
use crate::model::{ObjectRef, Str};
use crate::publication::RecordType;
use crate::reason::{self, Reason};

mod markers;

/// The inputs of every comparison.
#[derive(Clone, Copy)]
pub(super) struct DiffContext<'a> {
    /// The wanted state.
    pub(super) intent: &'a Intent<'a>,
    /// What exists.
    pub(super) observed: &'a Observed,
    /// PlanSettings.
    pub(super) settings: &'a PlanSettings,
    /// Names that must not lose values.
    pub(super) protection: &'a Protection<'a>,
}

/// The results of comparisons other than edits.
#[derive(Default)]
pub(super) struct DiffFindings {
    /// Changes that are held.
    pub(super) held: Vec<Held>,
    /// Record sets that are wanted and ours.
    pub(super) ours: OwnedSets,
    /// How many record sets are ours, by zone.
    pub(super) owned: BTreeMap<Str, usize>,
    /// How many record sets are ours, by the kind of object they were made for: `httproute`.
    pub(super) sources: BTreeMap<String, usize>,
    /// The kinds of objects that ask for any records, where the intent is only a part.
    pub(super) kinds: Option<BTreeSet<String>>,
}

/// Counts the record sets of a zone that are ours.
pub(super) fn count(zone: &ZoneIndex<'_>, settings: &PlanSettings, findings: &mut DiffFindings) {
    let nothing = OwnedSets::new();
    let intent = Intent {
        records: &[],
        covered: &[],
        challenges: &[],
        retired: &[],
        holds: &[],
        unseen: &[],
        remembered: &nothing,
    };
    let protection = Protection::new(&intent, &Default::default());
    let observed = Observed::default();
    let context = DiffContext { intent: &intent, observed: &observed, settings, protection: &protection };
    let names = zone.nodes().filter(|(_, sets)| context.is_candidate(zone, sets));
    names.for_each(|(name, _)| NameDiff::new(&context, zone, name, &[], &[]).count(findings));
}

/// The edits of one name.
pub(super) struct StepDraft<'a> {
    /// The zone.
    pub(super) zone: &'a ZoneIndex<'a>,
    /// The name.
    pub(super) name: Str,
    /// What is made or changed.
    pub(super) upserts: Vec<Edit<'a>>,
    /// What goes.
    pub(super) removals: Vec<Edit<'a>>,
    /// The purpose of the edits.
    pub(super) purpose: Purpose,
    /// Names that must have been written before.
    pub(super) after: BTreeSet<Str>,
}

/// The purpose of edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Records of hostnames.
    Records,
    /// The same, where removed record sets are replaced by new ones.
    Replacement,
    /// Challenges, and markers without a record: no hostname depends on them.
    Upkeep,
}

/// The edit of one record set.
#[derive(Clone)]
pub(super) struct Edit<'a> {
    /// Type.
    pub(super) kind: RecordType,
    /// Distinguishes it from other record sets of its name and type.
    pub(super) set_identifier: Option<Str>,
    /// What is there.
    pub(super) found: Option<&'a RecordSet>,
    /// How it is known to be ours.
    pub(super) ours: Ours<'a>,
    /// What is to be there.
    pub(super) new: Option<Content>,
    /// What is wanted.
    pub(super) wanted: Option<&'a WantedSet<'a>>,
    /// Our values in a TXT record set that may hold others.
    pub(super) values: Option<Vec<String>>,
    /// Why.
    pub(super) because: String,
}

/// An existing record set with its owner.
struct ExistingSet<'a> {
    set: &'a RecordSet,
    kind: RecordType,
    ownership: Ownership<'a>,
}

/// The record sets of one name, being compared.
struct NameDiff<'a, 't> {
    context: &'t DiffContext<'a>,
    zone: &'a ZoneIndex<'a>,
    name: Str,
    wanted: &'a [WantedSet<'a>],
    /// Everything wanted in the zone, sorted by name.
    all: &'a [WantedSet<'a>],
    found: Vec<ExistingSet<'a>>,
    upserts: Vec<Edit<'a>>,
    /// Why a record set that is wanted is not made or changed.
    blocked: Option<(Reason, String)>,
}

impl<'a> DiffContext<'a> {
    /// The edits of all names of a zone. `wanted` is sorted by name.
    pub(super) fn zone(
        &self,
        zone: &'a ZoneIndex<'a>,
        wanted: &'a [WantedSet<'a>],
        findings: &mut DiffFindings,
    ) -> Vec<StepDraft<'a>> {
        let names = zone.nodes().filter(|(_, sets)| self.is_candidate(zone, sets)).map(|(name, _)| name);
        let names: BTreeSet<&str> = names.chain(wanted.iter().map(|wanted| &*wanted.name)).collect();
        let mut drafts = Vec::new();
        for name in names {
            let from = wanted.partition_point(|wanted| &*wanted.name < name);
            let to = wanted.partition_point(|wanted| &*wanted.name <= name);
            let node = NameDiff::new(self, zone, name, &wanted[from..to], wanted);
            drafts.extend(node.compare(findings));
        }
        drafts
    }

    /// The wildcards that are wanted and cannot be made or changed.
    pub(super) fn blocked_wildcards(&self, zone: &ZoneIndex<'_>, wanted: &[WantedSet<'_>]) -> BTreeSet<Str> {
        let wildcards = wanted.chunk_by(|a, b| a.name == b.name).filter(|sets| sets[0].name.starts_with("*."));
        let is_blocked = |sets: &&[WantedSet<'_>]| {
            let mut node = NameDiff::new(self, zone, &sets[0].name, sets, wanted);
            let removals = node.removals();
            sets.iter().for_each(|wanted| node.compare_wanted(wanted, &removals, &mut DiffFindings::default()));
            node.blocked.is_some()
        };
        wildcards.filter(is_blocked).map(|sets| sets[0].name.clone()).collect()
    }

    /// Why an existing record set must not lose values, if so.
    pub(super) fn cause_to_keep(&self, name: &Str, edit: &Edit<'_>) -> Option<Cause> {
        let remembered = || self.intent.remembered.get(&edit.key(name))?.clone();
        self.protection.of(name, edit.ours.object().or_else(remembered).as_ref())
    }

    /// The route that a record set is made for, where no marker will tell it.
    fn maker_to_note(&self, wanted: &WantedSet<'_>) -> Option<ObjectRef> {
        wanted.routes.first().filter(|_| self.settings.txt().is_none()).cloned()
    }

    fn is_candidate(&self, zone: &ZoneIndex<'_>, sets: &[RecordSet]) -> bool {
        !matches!(self.settings.registry, Registry::Noop) && sets.iter().any(|set| self.is_managed(zone, set))
    }

    /// Whether a record set is of a managed type and no marker or challenge.
    fn is_managed(&self, zone: &ZoneIndex<'_>, set: &RecordSet) -> bool {
        let Some(kind) = set.made().filter(|kind| self.settings.managed.contains(kind)) else { return false };
        kind != RecordType::Txt || !super::challenges::is_special(zone, set, self.settings)
    }
}

impl<'a, 't> NameDiff<'a, 't> {
    fn new(
        context: &'t DiffContext<'a>,
        zone: &'a ZoneIndex<'a>,
        name: &str,
        wanted: &'a [WantedSet<'a>],
        all: &'a [WantedSet<'a>],
    ) -> Self {
        let mut found = Vec::new();
        for set in zone.at(name).iter().filter(|set| context.is_managed(zone, set)) {
            let Some(kind) = set.made() else { continue };
            let is_wanted = wanted.iter().any(|w| w.kind == kind && w.set_identifier == set.set_identifier);
            found.push(ExistingSet { set, kind, ownership: ownership::of(zone, set, context.settings, is_wanted) });
        }
        // Nearly always it is one or none, and there may be very many names.
        let (name, upserts) = (name.into(), Vec::with_capacity(wanted.len()));
        NameDiff { context, zone, name, wanted, all, found, upserts, blocked: None }
    }

    /// Counts what is ours.
    fn count(&self, findings: &mut DiffFindings) {
        for found in &self.found {
            let Ownership::Ours(ours) = &found.ownership else { continue };
            *findings.owned.entry(self.zone.name.clone()).or_default() += 1;
            if let Some(kind) = ours.source() {
                *findings.sources.entry(kind.to_owned()).or_default() += 1;
            }
        }
    }

    fn compare(mut self, findings: &mut DiffFindings) -> Option<StepDraft<'a>> {
        self.count(findings);
        let removals = self.removals();
        for wanted in self.wanted {
            self.compare_wanted(wanted, &removals, findings);
        }
        let is_replacement = self.is_replacement(&removals);
        if let Some((reason, message)) = self.blocked.clone().filter(|_| is_replacement) {
            let stopped = std::mem::take(&mut self.upserts);
            let held = stopped.iter().map(|edit| edit.held(self.zone, &self.name, reason, message.clone()));
            findings.held.extend(held);
        }
        let mut draft = StepDraft {
            zone: self.zone,
            name: self.name.clone(),
            removals: if self.blocked.is_some() { Vec::new() } else { removals },
            upserts: std::mem::take(&mut self.upserts),
            purpose: if is_replacement { Purpose::Replacement } else { Purpose::Records },
            after: BTreeSet::new(),
        };
        self.obey_policy(&mut draft, findings);
        self.keep_protected(&mut draft, findings);
        (!draft.upserts.is_empty() || !draft.removals.is_empty()).then_some(draft)
    }

    /// Whether removed record sets are replaced by new ones: a CNAME cannot exist beside other types.
    fn is_replacement(&self, removals: &[Edit<'_>]) -> bool {
        let makes = |kind: RecordType| self.upserts.iter().any(|edit| edit.kind == kind && edit.found.is_none());
        let cname_goes = removals.iter().any(|edit| edit.kind == RecordType::Cname);
        !removals.is_empty() && (makes(RecordType::Cname) || (cname_goes && !self.upserts.is_empty()))
    }

    /// What is ours and no longer wanted.
    fn removals(&self) -> Vec<Edit<'a>> {
        let is_wanted = |found: &ExistingSet<'_>| {
            self.wanted.iter().any(|w| w.kind == found.kind && w.set_identifier == found.set.set_identifier)
        };
        let gone = self.found.iter().filter(|found| !is_wanted(found));
        gone.filter_map(|found| match &found.ownership {
            Ownership::Ours(ours) => Some(Edit {
                kind: found.kind,
                set_identifier: found.set.set_identifier.clone(),
                found: Some(found.set),
                ours: ours.clone(),
                new: None,
                wanted: None,
                values: None,
                because: self.why_it_goes(ours),
            }),
            _ => None,
        })
        .collect()
    }

    fn why_it_goes(&self, ours: &Ours<'_>) -> String {
        if let Some(provider) = self.context.settings.moved.get(&self.name) {
            return format!("it moved to the provider `{provider}`");
        }
        match ours.resource() {
            Some(resource) => format!("nothing asks for it any more; it was made for {resource}"),
            None => "nothing asks for it any more".to_owned(),
        }
    }

    /// One record set that is wanted.
    fn compare_wanted(&mut self, wanted: &'a WantedSet<'a>, removals: &[Edit<'a>], findings: &mut DiffFindings) {
        let position =
            self.found.iter().position(|f| f.kind == wanted.kind && f.set.set_identifier == wanted.set_identifier);
        let key =
            RecordKey { name: wanted.name.clone(), kind: wanted.kind, set_identifier: wanted.set_identifier.clone() };
        let Some(found) = position.map(|index| &self.found[index]) else {
            if let Some((reason, message)) = self.obstacle(wanted, removals) {
                self.hold(wanted, Verb::Create, reason, message, findings);
            } else {
                self.create(wanted);
                findings.ours.insert(key, self.context.maker_to_note(wanted));
            }
            return;
        };
        let set = found.set;
        match found.ownership.clone() {
            Ownership::Ours(ours) => {
                findings.ours.insert(key, self.context.maker_to_note(wanted));
                self.update(wanted, set, ours);
            }
            Ownership::Unmanaged if self.is_adopted() => self.adopt(wanted, set, findings),
            foreign => {
                let (reason, message) = foreign_reason(&self.name, wanted.kind, &foreign);
                self.hold(wanted, Verb::Update, reason, message, findings);
            }
        }
    }

    fn is_adopted(&self) -> bool {
        self.context.settings.adopt.contains(&self.name)
    }

    fn create(&mut self, wanted: &'a WantedSet<'a>) {
        let because = match wanted.routes {
            [] => "a wildcard stops answering for it".to_owned(),
            [route] => format!("{route} asks for it"),
            [route, rest @ ..] => format!("{route} and {} more ask for it", rest.len()),
        };
        self.upserts.push(edit(wanted, None, Ours::default(), wanted.content.clone(), because));
    }

    /// Adopts an unmanaged record set, as the settings allow.
    fn adopt(&mut self, wanted: &'a WantedSet<'a>, set: &'a RecordSet, findings: &mut DiffFindings) {
        if let Some((reason, message)) = markers::obstacle(self.context, self.zone, self.all, wanted) {
            return self.hold(wanted, Verb::Update, reason, message, findings);
        }
        let new = merged(wanted, set, self.context.settings);
        let ttl = set.ttl.map(|ttl| format!(" ttl={ttl}")).unwrap_or_default();
        let because = format!("it is adopted; it was {}{ttl}, which nobody claims", set.values.join(" "));
        self.upserts.push(edit(wanted, Some(set), Ours::default(), new, because));
    }

    /// Updates a record set of ours whose content or marker differs from what is wanted.
    fn update(&mut self, wanted: &'a WantedSet<'a>, set: &'a RecordSet, ours: Ours<'a>) {
        let settings = self.context.settings;
        let new = merged(wanted, set, settings);
        let mut because = differences(set, &new, settings);
        because.extend(markers::due(self.context, self.zone, self.all, wanted, &ours));
        if !because.is_empty() {
            self.upserts.push(edit(wanted, Some(set), ours, new, because.join("; ")));
        }
    }

    /// Why a record set cannot be created.
    fn obstacle(&self, wanted: &WantedSet<'_>, removals: &[Edit<'_>]) -> Option<(Reason, String)> {
        let blocks = |found: &&ExistingSet<'_>| {
            found.set.set_identifier == wanted.set_identifier && !matches!(found.ownership, Ownership::Ours(_))
        };
        if let Some(foreign) = self.found.iter().filter(|_| !self.is_adopted()).find(blocks) {
            return Some(foreign_reason(&self.name, foreign.kind, &foreign.ownership));
        }
        let left = self.zone.at(&self.name).iter().filter(|set| !is_cleared(set, removals));
        if wanted.kind == RecordType::Cname {
            if let Some(reason) = self.cname_obstacle(left) {
                return Some(reason);
            }
        } else if left.into_iter().any(|set| set.made() == Some(RecordType::Cname)) {
            return Some((
                reason::TYPE_CLASH,
                format!("`{}` is a CNAME that is left alone, and nothing may stand beside it", self.name),
            ));
        }
        markers::obstacle(self.context, self.zone, self.all, wanted)
    }

    /// Why a CNAME would not be the only record set of its name.
    fn cname_obstacle<'s>(&self, left: impl Iterator<Item = &'s RecordSet>) -> Option<(Reason, String)> {
        if self.context.settings.capabilities.has_aliases {
            return None;
        }
        let beside = left.filter(|set| set.made() != Some(RecordType::Cname)).map(|set| set.kind.to_string());
        let beside: BTreeSet<String> = beside.collect();
        if self.name == *self.zone.name {
            return Some((
                reason::CNAME_NOT_POSSIBLE,
                format!("`{}` is the top of its zone, where no CNAME may stand", self.name),
            ));
        }
        let kinds = beside.iter().cloned().collect::<Vec<_>>().join(", ");
        let message = || format!("`{}` has {kinds} records that are left alone, and a CNAME stands alone", self.name);
        (!beside.is_empty()).then(|| (reason::CNAME_NOT_POSSIBLE, message()))
    }

    fn hold(
        &mut self,
        wanted: &WantedSet<'_>,
        verb: Verb,
        reason: Reason,
        message: String,
        findings: &mut DiffFindings,
    ) {
        self.blocked.get_or_insert((reason, message.clone()));
        let present = self.zone.set(&self.name, wanted.kind, wanted.set_identifier.as_ref());
        findings.held.push(Held {
            kind: Some(wanted.kind),
            verb: Some(verb),
            old: present.map(|set| set.values.clone()).unwrap_or_default(),
            new: wanted.content.values.clone(),
            object: wanted.routes.first().cloned(),
            ..Held::new(Some(self.zone.name), &self.name, reason, message)
        });
    }

    /// Takes out what the policy does not allow. A replacement is an update of its name.
    fn obey_policy(&self, draft: &mut StepDraft<'a>, findings: &mut DiffFindings) {
        let policy = self.context.settings.policy;
        let keeps_removals = match policy {
            Policy::Sync => false,
            Policy::UpsertOnly => draft.purpose != Purpose::Replacement,
            Policy::CreateOnly => true,
        };
        if policy == Policy::CreateOnly {
            let is_replacement = draft.purpose == Purpose::Replacement;
            let (kept, rest): (Vec<_>, Vec<_>) =
                draft.upserts.drain(..).partition(|edit| is_replacement || edit.found.is_some());
            draft.upserts = rest;
            findings.held.extend(kept.iter().map(|edit| self.kept_by_policy(edit)));
        }
        if keeps_removals {
            findings.held.extend(draft.removals.drain(..).map(|edit| self.kept_by_policy(&edit)));
        }
    }

    fn kept_by_policy(&self, edit: &Edit<'_>) -> Held {
        let policy = self.context.settings.policy.as_str();
        let message =
            format!("{} of `{}` stays as it is: the policy is `{policy}` ({})", edit.kind, self.name, edit.because);
        edit.held(self.zone, &self.name, reason::KEPT_BY_POLICY, message)
    }

    /// Keeps all values of record sets with an unknown verdict: addresses are added, none is removed.
    fn keep_protected(&self, draft: &mut StepDraft<'a>, findings: &mut DiffFindings) {
        if draft.purpose == Purpose::Replacement {
            return self.keep_replaced(draft, findings);
        }
        draft.upserts.retain_mut(|edit| {
            let Some(cause) = self.context.cause_to_keep(&self.name, edit).filter(|_| edit.shrinks()) else {
                return true;
            };
            findings.held.push(self.kept_because(edit, &cause));
            edit.widen()
        });
    }

    /// Keeps what would be replaced, all of it or nothing.
    fn keep_replaced(&self, draft: &mut StepDraft<'a>, findings: &mut DiffFindings) {
        let mut edits = draft.upserts.iter().chain(&draft.removals).filter(|edit| edit.found.is_some());
        let Some(cause) = edits.find_map(|edit| self.context.cause_to_keep(&self.name, edit)) else { return };
        let edits = draft.upserts.drain(..).chain(draft.removals.drain(..));
        findings.held.extend(edits.map(|edit| self.kept_because(&edit, &cause)));
    }

    fn kept_because(&self, edit: &Edit<'_>, cause: &Cause) -> Held {
        let held = edit.held(self.zone, &self.name, cause.reason, cause.message(&self.name));
        Held { cause: cause.cause, object: cause.object.clone(), ..held }
    }
}

impl<'a> Edit<'a> {
    /// The record set that it concerns.
    pub(super) fn key(&self, name: &Str) -> RecordKey {
        RecordKey { name: name.clone(), kind: self.kind, set_identifier: self.set_identifier.clone() }
    }

    /// What happens to the record set.
    pub(super) fn verb(&self) -> Verb {
        match (self.found, &self.new) {
            (None, Some(_)) => Verb::Create,
            (Some(_), Some(_)) => Verb::Update,
            (_, None) => Verb::Delete,
        }
    }

    /// This edit, not done.
    pub(super) fn held(&self, zone: &ZoneIndex<'_>, name: &str, reason: Reason, message: String) -> Held {
        Held {
            kind: Some(self.kind),
            verb: Some(self.verb()),
            old: self.found.map(|set| set.values.clone()).unwrap_or_default(),
            new: self.new.as_ref().map(|content| content.values.clone()).unwrap_or_default(),
            object: self.wanted.map_or_else(|| self.ours.object(), |wanted| wanted.routes.first().cloned()),
            ..Held::new(Some(zone.name), name, reason, message)
        }
    }

    /// Whether a value that is there would be gone.
    fn shrinks(&self) -> bool {
        let Some(set) = self.found else { return false };
        let kind = RecordKind::from(self.kind);
        let new = self.new.as_ref().map(|content| canonical::values(&kind, &content.values)).unwrap_or_default();
        !canonical::values(&kind, &set.values).is_subset(&new)
    }

    /// Adds what is there to what is to be there; false where that changes nothing or cannot be.
    fn widen(&mut self) -> bool {
        let (Some(set), Some(new)) = (self.found, self.new.as_mut()) else { return false };
        if self.kind == RecordType::Cname || [&Content::of(set), &*new].iter().any(|side| side.is_alias_of(self.kind)) {
            return false;
        }
        let old = canonical::values(&set.kind, &set.values);
        let all: BTreeSet<Str> = old.iter().cloned().chain(new.values.iter().cloned()).collect();
        new.values = all.iter().cloned().collect();
        all != old
    }
}

fn edit<'a>(
    wanted: &'a WantedSet<'a>,
    found: Option<&'a RecordSet>,
    ours: Ours<'a>,
    new: Content,
    because: String,
) -> Edit<'a> {
    let set_identifier = wanted.set_identifier.clone();
    Edit { kind: wanted.kind, set_identifier, found, ours, new: Some(new), wanted: Some(wanted), values: None, because }
}

/// Whether a record set will be gone when the removals are done: it goes itself, or is the marker of what goes.
fn is_cleared(set: &RecordSet, removals: &[Edit<'_>]) -> bool {
    let goes = |edit: &Edit<'_>| edit.found.is_some_and(|found| found.key() == set.key());
    let markers = removals.iter().flat_map(|edit| &edit.ours.markers).filter(|marker| marker.set.key() == set.key());
    let values: BTreeSet<&Str> = markers.map(|marker| marker.value).collect();
    removals.iter().any(goes) || (!values.is_empty() && values.len() == set.values.len())
}

/// The new content of a record set of ours: as wanted, else as it is.
fn merged(wanted: &WantedSet<'_>, set: &RecordSet, settings: &PlanSettings) -> Content {
    let is_same = canonical::values(&set.kind, &set.values) == wanted.content.values.iter().cloned().collect();
    let properties = if settings.capabilities.has_properties { &wanted.content.properties } else { &set.properties };
    Content {
        ttl: wanted.content.ttl.or(set.ttl),
        values: if is_same { set.values.clone() } else { wanted.content.values.clone() },
        properties: properties.clone(),
    }
}

/// The difference between a record set and its new content, as text.
fn differences(set: &RecordSet, new: &Content, settings: &PlanSettings) -> Vec<String> {
    let mut told = Vec::new();
    if set.values != new.values {
        told.push(format!("{} becomes {}", set.values.join(", "), new.values.join(", ")));
    }
    if set.ttl != new.ttl {
        let seconds = |ttl: Option<u32>| ttl.map_or_else(|| "unset".to_owned(), |ttl| ttl.to_string());
        told.push(format!("TTL {} becomes {}", seconds(set.ttl), seconds(new.ttl)));
    }
    if settings.capabilities.has_properties && set.properties != new.properties {
        told.push("its properties change".to_owned());
    }
    told
}

/// Why a record set that is not ours is not changed.
fn foreign_reason(name: &str, kind: RecordType, ownership: &Ownership<'_>) -> (Reason, String) {
    match ownership {
        Ownership::Other(owner) => (
            reason::RECORD_OWNED_BY_OTHER,
            format!("the {kind} records of `{name}` belong to the owner id `{owner}` and are left alone"),
        ),
        _ => (
            reason::RECORD_UNMANAGED,
            format!(
                "`{name}` has {kind} records without an ownership TXT record of this owner id; they are not changed"
            ),
        ),
    }
}
