//! Where a redirect points, and how a path is changed.

use crate::model::{PathChange, Redirect};
use crate::names::host_of;
use crate::routing::matching::below_prefix;

use super::{FilterContext, target};

/// The `Location` of a redirect, as a complete URL. The query is kept, because it is not part of the path.
pub(super) fn location(redirect: &Redirect, path: &str, context: &FilterContext<'_>) -> String {
    let scheme = redirect.scheme.as_deref().unwrap_or(context.scheme);
    let host = redirect.hostname.as_deref().map_or_else(|| host_of(&context.asked.request.host), str::to_owned);
    let port = redirect.port.or(redirect.scheme.as_deref().and_then(well_known)).unwrap_or(context.port);
    let port = if well_known(scheme) == Some(port) { String::new() } else { format!(":{port}") };
    let path = redirect.path.as_ref().map_or_else(|| path.to_owned(), |change| changed(change, path, context.prefix));
    format!("{scheme}://{host}{port}{}", target(&path, context.asked.query))
}

/// The path after a change; unchanged if the change does not fit the match.
pub(super) fn changed(change: &PathChange, path: &str, prefix: Option<&str>) -> String {
    let changed = match change {
        PathChange::Full(full) => full.to_string(),
        PathChange::Prefix(replacement) => match prefix.and_then(|prefix| below_prefix(path, prefix)) {
            Some(rest) => format!("{}{rest}", replacement.trim_end_matches('/')),
            None => path.to_owned(),
        },
        PathChange::Other(_) => path.to_owned(),
    };
    if changed.starts_with('/') { changed } else { format!("/{changed}") }
}

fn well_known(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_replaced_as_the_table_says() {
        let rows = [
            ("/foo/bar", "/foo", "/xyz", "/xyz/bar"),
            ("/foo/bar", "/foo", "/xyz/", "/xyz/bar"),
            ("/foo", "/foo", "/xyz", "/xyz"),
            ("/foo/", "/foo", "/xyz", "/xyz/"),
            ("/foo/bar", "/foo", "", "/bar"),
            ("/foo/", "/foo", "", "/"),
            ("/foo", "/foo", "", "/"),
            ("/foo/", "/foo", "/", "/"),
            ("/foo", "/foo", "/", "/"),
            ("/bar", "", "/xyz", "/xyz/bar"),
            ("/foobar", "/foo", "/xyz", "/foobar"),
        ];
        for (path, prefix, replacement, expected) in rows {
            let change = PathChange::Prefix(replacement.into());
            assert_eq!(changed(&change, path, Some(prefix)), expected, "{path} {prefix} {replacement}");
        }
    }

    #[test]
    fn a_path_always_begins_with_a_slash() {
        assert_eq!(changed(&PathChange::Full("".into()), "/a", None), "/");
        assert_eq!(changed(&PathChange::Full("b".into()), "/a", None), "/b");
        assert_eq!(changed(&PathChange::Prefix("/x".into()), "/a", None), "/a");
    }
}
