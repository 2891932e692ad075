//! Rules about labels and annotations in `spec.infrastructure` of a Gateway.

use crate::fields::Fields;
use crate::rules;
use crate::shapes::{is_label_value, is_qualified_name};

/// Checks labels and annotations.
pub(crate) fn check(f: &Fields<'_>) {
    let labels = f.entries("labels", |key, node| {
        let value = node.text()?;
        if !is_qualified_name(key) {
            node.invalid(KEY);
        }
        if value.len() > 63 || !is_label_value(value) {
            node.invalid("is not a valid label value: at most 63 letters, digits, `-`, `_` and `.`, with letters or digits at both ends");
        }
        Some(())
    });
    rules::at_most(f, "labels", labels.len(), 8);
    let annotations = f.entries("annotations", |key, node| {
        let value = node.text()?;
        if !is_qualified_name(key) {
            node.invalid(KEY);
        }
        if value.chars().count() > 4096 {
            node.invalid("is too long; at most 4096 characters are allowed here");
        }
        Some(())
    });
    rules::at_most(f, "annotations", annotations.len(), 16);
}

const KEY: &str =
    "has a key that is none: an optional DNS prefix and `/`, then at most 63 letters, digits, `-`, `_` and `.`";
