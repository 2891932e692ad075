//! Rules about paths that requests are compared with.

use gatepost_core::model::{MatchKind, PathMatch};

use crate::fields::{Fields, shortened};
use crate::shapes::is_url_path;

/// Checks a path that is compared literally; a regular expression may be anything.
pub(crate) fn check(f: &Fields<'_>, path: &PathMatch) {
    if matches!(path.kind, MatchKind::Exact | MatchKind::Prefix)
        && let Some(complaint) = complaint(&path.value)
    {
        f.invalid("value", format!("is \"{}\"; {complaint}", shortened(&path.value)));
    }
}

fn complaint(path: &str) -> Option<String> {
    if !path.starts_with('/') {
        return Some("a path begins with `/`".to_owned());
    }
    let inside = ["//", "/./", "/../", "%2f", "%2F", "#"];
    let at_end = ["/..", "/."];
    if let Some(part) = inside.into_iter().find(|part| path.contains(part)) {
        return Some(format!("a path must not hold `{part}`"));
    }
    if let Some(part) = at_end.into_iter().find(|part| path.ends_with(part)) {
        return Some(format!("a path must not end with `{part}`"));
    }
    (!is_url_path(path)).then(|| "it holds characters that no URL path has; write them as %XX".to_owned())
}
