//! Rules about several parentRefs of one route. Whether two of them mean the same object in different words is not asked
//! here: a cluster accepts that.

use gatepost_core::model::ParentRef;

use crate::fields::Fields;

/// The most entries that are compared; a list that long is told to be too long anyway.
const MOST: usize = 128;

/// Checks that references to one object differ in section or port, and that all of them say so in the same way.
pub(crate) fn check(spec: &Fields<'_>, parents: &[ParentRef]) {
    for (i, parent) in parents.iter().enumerate().take(MOST) {
        let mut earlier = parents[..i].iter().enumerate().filter(|(_, other)| other.target == parent.target);
        if let Some(message) = earlier.find_map(|(j, other)| complaint(parent, other, j)) {
            spec.invalid_at(spec.path().key("parentRefs").field().index(i), message);
        }
    }
}

fn complaint(parent: &ParentRef, other: &ParentRef, j: usize) -> Option<String> {
    if parent == other {
        return Some(format!("repeats entry {j}; give each its own `sectionName` or `port`, or remove one"));
    }
    let parts = |p: &ParentRef| (p.section.is_some(), p.port.is_some());
    (parts(parent) != parts(other))
        .then(|| format!("names the same parent as entry {j}; then both need a `sectionName`, or both a `port`"))
}
