//! The seed documents row by row, the limits of the field, and the laws of intersection.

mod laws;
mod limits;
mod seed_000;
mod seed_001;

use super::Hostname;

/// A hostname as a document writes it; `*` and `unset` both stand for a field that is not set.
fn name(text: &str) -> Hostname {
    match text {
        "*" | "unset" => Hostname::any(),
        _ => Hostname::parse(text).unwrap_or_else(|e| panic!("`{text}` {e}")),
    }
}

/// What two names have in common, as text; `none` for nothing.
fn common(a: &str, b: &str) -> String {
    name(a).intersect(&name(b)).map_or("none".into(), |n| n.to_string())
}
