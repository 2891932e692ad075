//! All zones that are served, as one value that never changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::error::ZoneError;
use super::name::{LabelPath, Name};
use super::record::kind;
use super::zone::Zone;

/// The zones of a server, swapped whole.
#[derive(Debug, Clone, Default)]
pub struct ZoneSet {
    zones: Vec<Arc<Zone>>,
    index: HashMap<Name, usize>,
    deepest: usize,
}

impl ZoneSet {
    /// Puts zones together; two of one name are refused.
    pub fn new(zones: impl IntoIterator<Item = Zone>) -> Result<ZoneSet, ZoneError> {
        let mut sorted = BTreeMap::new();
        for zone in zones {
            if let Some(other) = sorted.insert(zone.name().clone(), Arc::new(zone)) {
                return Err(ZoneError::Twice { zone: other.name().clone() });
            }
        }
        Ok(ZoneSet::of(sorted.into_values().collect()))
    }

    /// The zones, sorted by name.
    pub fn zones(&self) -> &[Arc<Zone>] {
        &self.zones
    }

    /// The zone with this apex.
    pub fn zone(&self, name: &Name) -> Option<&Arc<Zone>> {
        self.index.get(name).map(|at| &self.zones[*at])
    }

    /// Whether a name lies in one of the zones.
    pub fn covers(&self, name: &Name) -> bool {
        LabelPath::read(name.as_wire()).is_some_and(|path| self.find(&path, kind::A).is_some())
    }

    /// The zone that answers for a name: the nearest one. What is asked of the parent's side goes to the parent.
    pub(crate) fn find(&self, path: &LabelPath, kind: u16) -> Option<&Zone> {
        let start = path.labels().saturating_sub(self.deepest);
        let mut nearest = None;
        for taken in start..=path.labels() {
            let Some(at) = self.index.get(path.without(taken)) else { continue };
            let zone = &*self.zones[*at];
            if kind != kind::DS || taken > 0 {
                return Some(zone);
            }
            nearest = Some(zone);
        }
        nearest
    }

    /// These zones after those: what did not change stays as it was, and what changed gets a later serial.
    pub(crate) fn after(&self, previous: &ZoneSet) -> ZoneSet {
        let next = |zone: &Arc<Zone>| match previous.zone(zone.name()) {
            Some(old) if old.same_content(zone) && !is_later(zone.soa().serial, old.soa().serial) => old.clone(),
            Some(old) if !is_later(zone.soa().serial, old.soa().serial) => {
                Arc::new(zone.with_serial(next_serial(old.soa().serial)))
            }
            _ => zone.clone(),
        };
        ZoneSet::of(self.zones.iter().map(next).collect())
    }

    /// The zones that are new here or have another serial than before.
    pub(crate) fn changed_since(&self, previous: &ZoneSet) -> Vec<Arc<Zone>> {
        let same = |zone: &Zone| previous.zone(zone.name()).is_some_and(|old| old.soa().serial == zone.soa().serial);
        self.zones.iter().filter(|zone| !same(zone)).cloned().collect()
    }

    fn of(zones: Vec<Arc<Zone>>) -> ZoneSet {
        let index = zones.iter().enumerate().map(|(at, zone)| (zone.name().clone(), at)).collect();
        let deepest = zones.iter().map(|zone| zone.name().labels()).max().unwrap_or_default();
        ZoneSet { zones, index, deepest }
    }
}

/// Whether a serial comes after another one (RFC 1982).
pub(crate) fn is_later(serial: u32, than: u32) -> bool {
    serial != than && serial.wrapping_sub(than) < 1 << 31
}

/// The serial after this one; zero is skipped, because some take it for "unknown".
fn next_serial(serial: u32) -> u32 {
    serial.wrapping_add(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::record::{Data, Record, Soa};
    use crate::embedded::zone::ZoneSpec;

    fn zone(apex: &str, serial: u32, last: u8) -> Zone {
        let name = |text: &str| Name::parse(text).unwrap();
        let record = Record::new(&format!("a.{apex}"), 60, Data::A([192, 0, 2, last].into())).unwrap();
        let soa = Soa::new(name("ns.test"), name("root.test"), serial);
        let servers = vec![name("ns.test")];
        Zone::build(&ZoneSpec { name: name(apex), soa, servers, servers_ttl: 60, records: vec![record] }).unwrap()
    }

    fn set(zones: impl IntoIterator<Item = Zone>) -> ZoneSet {
        ZoneSet::new(zones).unwrap()
    }

    fn found(set: &ZoneSet, name: &str, kind: u16) -> Option<String> {
        let path = LabelPath::read(Name::parse(name).unwrap().as_wire()).unwrap();
        set.find(&path, kind).map(|zone| zone.name().to_string())
    }

    #[test]
    fn the_nearest_zone_answers() {
        let set = set([zone("example", 1, 1), zone("sub.example", 1, 1)]);
        assert_eq!(found(&set, "x.y.example", 1).as_deref(), Some("example."));
        assert_eq!(found(&set, "x.sub.example", 1).as_deref(), Some("sub.example."));
        assert_eq!(found(&set, "sub.example", 1).as_deref(), Some("sub.example."));
        assert_eq!(found(&set, "sub.example", kind::DS).as_deref(), Some("example."));
        assert_eq!(found(&set, "example", kind::DS).as_deref(), Some("example."));
        assert_eq!(found(&set, "test", 1), None);
    }

    #[test]
    fn serials_only_grow() {
        let serial = |set: &ZoneSet| set.zones()[0].soa().serial;
        let first = set([zone("example", 7, 1)]);
        assert_eq!(serial(&set([zone("example", 7, 2)]).after(&first)), 8, "changed");
        assert_eq!(serial(&set([zone("example", 1, 1)]).after(&first)), 7, "unchanged");
        assert_eq!(serial(&set([zone("example", 1, 2)]).after(&first)), 8, "changed, older serial given");
        assert_eq!(serial(&set([zone("example", 20, 2)]).after(&first)), 20, "a later serial is taken");
        assert!(is_later(1, u32::MAX) && !is_later(u32::MAX, 1) && !is_later(3, 3));
        assert_eq!(next_serial(u32::MAX), 1);
    }

    #[test]
    fn only_changes_are_announced() {
        let before = set([zone("a", 1, 1), zone("b", 1, 1)]);
        let after = set([zone("a", 1, 1), zone("b", 1, 2), zone("c", 1, 1)]).after(&before);
        let names: Vec<_> = after.changed_since(&before).iter().map(|zone| zone.name().to_string()).collect();
        assert_eq!(names, ["b.", "c."]);
    }

    #[test]
    fn twins_are_refused() {
        assert!(ZoneSet::new([zone("a", 1, 1), zone("A", 2, 2)]).is_err());
    }
}
