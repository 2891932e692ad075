//! Which units travel in one message: as many as fit, none that waits for another one in it.

use std::collections::BTreeSet;

use gatepost_core::model::Str;

use super::message::Prepared;

/// Room for records in a message of 65535 bytes; the rest is for header, zone and signature.
pub(super) const ROOM: usize = 60_000;

/// Cuts units into runs, in order. A server checks all preconditions of a message before it changes anything, so a unit
/// that looks at a name that an earlier one changes goes into the next message.
pub(super) fn batches<'p, 'a>(units: &'p [Prepared<'a>]) -> Vec<&'p [Prepared<'a>]> {
    let mut found = Vec::new();
    let (mut start, mut size) = (0, 0);
    let mut touched: BTreeSet<&Str> = BTreeSet::new();
    for (at, unit) in units.iter().enumerate() {
        let clashes = unit.needed.iter().chain(unit.touched.iter().copied()).any(|name| touched.contains(name));
        if at > start && (clashes || size + unit.size() > ROOM) {
            found.push(&units[start..at]);
            (start, size) = (at, 0);
            touched.clear();
        }
        size += unit.size();
        touched.extend(&unit.touched);
    }
    if start < units.len() {
        found.push(&units[start..]);
    }
    found
}
