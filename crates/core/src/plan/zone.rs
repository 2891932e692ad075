//! Index of one zone: record sets by name, and the markers among them.

use std::collections::BTreeMap;

use super::answers::RecordCounts;
use super::observed::{RecordKind, RecordSet, ZoneContent};
use super::ownership::Markers;
use super::settings::PlanSettings;
use crate::model::Str;
use crate::publication::RecordType;

/// A zone that was read to its end.
pub(super) struct ZoneIndex<'a> {
    /// Its name.
    pub(super) name: &'a Str,
    /// What it holds.
    pub(super) content: &'a ZoneContent,
    /// The ownership values in it; none without a registry.
    pub(super) markers: Markers<'a>,
    by_name: BTreeMap<&'a str, &'a [RecordSet]>,
}

impl<'a> ZoneIndex<'a> {
    /// Looks at a zone.
    pub(super) fn new(name: &'a Str, content: &'a ZoneContent, settings: &'a PlanSettings) -> Self {
        let groups = content.sets().chunk_by(|a, b| a.name == b.name);
        let by_name = groups.filter_map(|sets| sets.first().map(|first| (&*first.name, sets))).collect();
        let markers = settings.txt().map_or_else(Markers::default, |registry| Markers::read(content, registry));
        ZoneIndex { name, content, markers, by_name }
    }

    /// The record counts of the zone. Computed on each call.
    pub(super) fn tree(&self) -> RecordCounts<'a> {
        RecordCounts::of(self.content.sets().iter().map(|set| (&*set.name, &set.kind)))
    }

    /// Whether it has a wildcard.
    pub(super) fn has_wildcards(&self) -> bool {
        self.names().any(|name| name.starts_with("*."))
    }

    /// The names that have record sets, with those sets.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&'a str, &'a [RecordSet])> {
        self.by_name.iter().map(|(name, sets)| (*name, *sets))
    }

    /// The names that have record sets.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.by_name.keys().copied()
    }

    /// The record sets of a name.
    pub(super) fn at(&self, name: &str) -> &'a [RecordSet] {
        self.by_name.get(name).copied().unwrap_or_default()
    }

    /// One record set.
    pub(super) fn set(&self, name: &str, kind: RecordType, id: Option<&Str>) -> Option<&'a RecordSet> {
        self.at(name).iter().find(|set| set.made() == Some(kind) && set.set_identifier.as_ref() == id)
    }

    /// Whether a name has a record set of a type, whatever its identifier.
    pub(super) fn has(&self, name: &str, kind: RecordType) -> bool {
        self.at(name).iter().any(|set| set.made() == Some(kind))
    }

    /// The delegation or DNAME at or above a name, if there is one.
    pub(super) fn cut_above(&self, name: &str) -> Option<&'a str> {
        let hands_over = |set: &RecordSet, at: &str| match &set.kind {
            RecordKind::Other(kind) if &**kind == "NS" => at != &**self.name,
            RecordKind::Other(kind) => &**kind == "DNAME" && at != name,
            RecordKind::Made(_) => false,
        };
        let inside = std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, rest)| rest));
        let mut inside = inside.take_while(|at| at.len() >= self.name.len());
        inside.find_map(|at| {
            self.by_name
                .get_key_value(at)
                .filter(|(at, sets)| sets.iter().any(|set| hands_over(set, at)))
                .map(|(at, _)| *at)
        })
    }
}
