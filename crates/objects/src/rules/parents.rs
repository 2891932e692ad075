//! Rules about several parentRefs of one route.

use gatepost_core::model::{ParentRef, Str};
use gatepost_core::reason::PARENT_REPEATED;

use crate::fields::Fields;

/// The most pairs that are compared; a list that long is told to be too long anyway.
const MOST: usize = 128;

/// Checks that references to one object differ in section or port, and that all of them say so.
pub(crate) fn check(spec: &Fields<'_>, parents: &[ParentRef], own: &Str) {
    for (i, parent) in parents.iter().enumerate().take(MOST) {
        let path = || spec.path().key("parentRefs").field().index(i);
        let earlier = parents[..i].iter().enumerate();
        for (j, other) in earlier.filter(|(_, other)| same_object(parent, other, own)) {
            let verbatim = parent.target.namespace == other.target.namespace;
            let same_part = parent.section == other.section && parent.port == other.port;
            if same_part && verbatim {
                spec.invalid_at(
                    path(),
                    format!("repeats entry {j}; give each its own `sectionName` or `port`, or remove one"),
                );
            } else if same_part {
                let message = format!("names the same parent as entry {j}, once with and once without its namespace");
                spec.tell_at(PARENT_REPEATED, path(), message);
            } else if verbatim && (is_whole(parent) || is_whole(other)) {
                let message = format!("names the same parent as entry {j}; then both need a `sectionName` or `port`");
                spec.invalid_at(path(), message);
            } else {
                continue;
            }
            break;
        }
    }
}

fn same_object(a: &ParentRef, b: &ParentRef, own: &Str) -> bool {
    let of = |p: &'_ ParentRef| {
        (p.target.group.clone(), p.target.kind.clone(), p.target.namespace_or(own).clone(), p.target.name.clone())
    };
    of(a) == of(b)
}

fn is_whole(parent: &ParentRef) -> bool {
    parent.section.is_none() && parent.port.is_none()
}
