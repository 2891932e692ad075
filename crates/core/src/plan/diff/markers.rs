//! Whether the marker of a record can be written, and whether it must be.
//!
//! A record without its marker would have no owner, so a record is not created when its marker cannot be written.

use super::DiffContext;
use crate::plan::canonical;
use crate::plan::observed::RecordSet;
use crate::plan::ownership::{self, Marker, Ours};
use crate::plan::settings::TxtRegistry;
use crate::plan::stamp::Stamp;
use crate::plan::wanted::WantedSet;
use crate::plan::zone::ZoneIndex;
use crate::publication::RecordType;
use crate::reason::{self, Reason};

/// What keeps the marker of a record from being written. `all` is everything wanted in the zone, sorted by name.
pub(super) fn obstacle(
    context: &DiffContext<'_>,
    zone: &ZoneIndex<'_>,
    all: &[WantedSet<'_>],
    wanted: &WantedSet<'_>,
) -> Option<(Reason, String)> {
    let registry = context.settings.txt()?;
    let place = registry.layout.marker_of(&wanted.name, wanted.kind.as_str());
    let message = misplaced(context, zone, &place).or_else(|| {
        let has_cname = zone.has(&place, RecordType::Cname) || wants(all, &place, RecordType::Cname);
        has_cname.then(|| "is a CNAME, and nothing may stand beside it; set `--txt-prefix`".to_owned())
    });
    let message = message.or_else(|| shared(zone, all, wanted, registry));
    if let Some(message) = message {
        let name = &wanted.name;
        return Some((
            reason::MARKER_NOT_POSSIBLE,
            format!("the marker of `{name}` would be `{place}`, which {message}"),
        ));
    }
    let set = zone.set(&place, RecordType::Txt, wanted.set_identifier.as_ref())?;
    taken(zone, set, wanted, registry)
}

/// Why a marker must be written although its record does not change; `None` if the existing marker is correct or cannot be
/// replaced.
pub(super) fn due(
    context: &DiffContext<'_>,
    zone: &ZoneIndex<'_>,
    all: &[WantedSet<'_>],
    wanted: &WantedSet<'_>,
    ours: &Ours<'_>,
) -> Option<String> {
    let registry = context.settings.txt()?;
    let place = registry.layout.marker_of(&wanted.name, wanted.kind.as_str());
    let Some(marker) = ours.markers.iter().find(|marker| *marker.set.name == *place) else {
        let is_possible = obstacle(context, zone, all, wanted).is_none();
        return is_possible.then(|| format!("its marker belongs to `{place}`"));
    };
    let owner = marker.labels.owner();
    if owner != &*registry.owner {
        return Some(format!("owner id `{owner}` becomes `{}`", registry.owner));
    }
    match ownership::stamp_of(marker, &wanted.name, wanted.kind, registry) {
        Some(Stamp::OtherInstance(fingerprint)) => Some(format!("it is taken over from instance `{fingerprint}`")),
        _ => None,
    }
}

/// Why no marker of this zone can have this name.
fn misplaced(context: &DiffContext<'_>, zone: &ZoneIndex<'_>, place: &str) -> Option<String> {
    if let Some(label) = place.split('.').find(|label| label.len() > 63) {
        return Some(format!(
            "has a label of {} characters, at most 63 are possible; set `--txt-prefix` to a short label of its own, such as `%{{record_type}}-owner.`",
            label.len()
        ));
    }
    if !canonical::is_name(place) {
        return Some("is not a possible name; change `--txt-prefix`".to_owned());
    }
    let is_outside = context.observed.zone_of(place) != Some(zone.name) || zone.cut_above(place).is_some();
    let advice = "set `--txt-prefix` to one that names the type and ends with a dot, such as `%{record_type}-owner.`";
    is_outside.then(|| format!("is outside zone `{}`; {advice}", zone.name))
}

/// Why a marker would be shared by a wildcard and the name that replaces its star.
fn shared(
    zone: &ZoneIndex<'_>,
    all: &[WantedSet<'_>],
    wanted: &WantedSet<'_>,
    registry: &TxtRegistry,
) -> Option<String> {
    let sibling = ownership::sibling(&wanted.name, registry)?;
    let is_second = !wanted.name.starts_with('*') && wants(all, &sibling, wanted.kind);
    (is_second || zone.has(&sibling, wanted.kind))
        .then(|| format!("is the marker of `{sibling}` too; change `--txt-wildcard-replacement`"))
}

fn wants(all: &[WantedSet<'_>], name: &str, kind: RecordType) -> bool {
    let from = all.partition_point(|wanted| &*wanted.name < name);
    all[from..].iter().take_while(|wanted| &*wanted.name == name).any(|wanted| wanted.kind == kind)
}

/// Whether the name of the marker is taken by something other than our marker for this record.
fn taken(
    zone: &ZoneIndex<'_>,
    set: &RecordSet,
    wanted: &WantedSet<'_>,
    registry: &TxtRegistry,
) -> Option<(Reason, String)> {
    let markers: Vec<&Marker<'_>> = zone.markers.at(&set.name).filter(|marker| marker.set.key() == set.key()).collect();
    let foreign = markers.iter().find(|marker| !ownership::is_our_owner(marker.labels.owner(), registry));
    if let Some(foreign) = foreign {
        let owner = foreign.labels.owner();
        let message = format!("`{}` says that `{}` belongs to the owner id `{owner}`", set.name, wanted.name);
        return Some((reason::RECORD_OWNED_BY_OTHER, message));
    }
    let is_elsewhere = |marker: &&Marker<'_>| {
        ownership::stamp_of(marker, &wanted.name, wanted.kind, registry) == Some(Stamp::Elsewhere)
    };
    if markers.len() == 1 && set.values.len() == 1 && !markers.iter().any(is_elsewhere) {
        return None;
    }
    let message =
        format!("the marker of `{}` would be `{}`, which has TXT records that are left alone", wanted.name, set.name);
    Some((reason::MARKER_NOT_POSSIBLE, format!("{message}; set `--txt-prefix`")))
}
