//! Rules about filters: one set of settings each, no repeats, no redirect beside a rewrite or a backend.

use gatepost_core::diagnostic::FieldPath;
use gatepost_core::model::{Filter, HttpMatch, MatchKind, Matches, PathChange, Rule};

use crate::fields::Fields;
use crate::rules;

/// Checks that `type` goes with the one field that is set. Members are (type, field, whether it is set).
pub(crate) fn union(f: &Fields<'_>, kind: &str, members: &[(&str, &str, bool)]) {
    union_of(f, "type", kind, members);
}

/// Checks that the field `key`, which is `kind`, goes with the one field that is set.
pub(crate) fn union_of(f: &Fields<'_>, key: &str, kind: &str, members: &[(&str, &str, bool)]) {
    let known: Vec<&str> = members.iter().map(|(name, ..)| *name).collect();
    if !known.contains(&kind) && !kind.is_empty() {
        f.unknown_value(key, kind, &known);
        return;
    }
    for (name, field, is_set) in members {
        if *name == kind && !is_set {
            f.invalid(field, format!("is missing; `{key}: {kind}` needs it"));
        }
        if *name != kind && *is_set && !kind.is_empty() {
            f.invalid(field, format!("must be left out where `{key}` is {kind}; it belongs to {name}"));
        }
    }
}

/// Checks one list of filters.
pub(crate) fn check_list(f: &Fields<'_>, filters: &[Filter]) {
    let names: Vec<&str> = filters.iter().map(|filter| single_name(filter).unwrap_or_default()).collect();
    rules::unique(f, "filters", Some("type"), names.iter(), "type");
    let position = |name: &str| names.iter().position(|n| *n == name);
    if let (Some(_), Some(rewrite)) = (position("RequestRedirect"), position("URLRewrite")) {
        let path = f.path().key("filters").field().index(rewrite);
        f.invalid_at(path, "is a rewrite beside a redirect; only one of the two can happen");
    }
}

/// The type of a filter that may stand only once.
fn single_name(filter: &Filter) -> Option<&'static str> {
    match filter {
        Filter::RequestHeaders(_) => Some("RequestHeaderModifier"),
        Filter::ResponseHeaders(_) => Some("ResponseHeaderModifier"),
        Filter::Redirect(_) => Some("RequestRedirect"),
        Filter::Rewrite(_) => Some("URLRewrite"),
        Filter::Cors(_) => Some("CORS"),
        Filter::Mirror(_) | Filter::Extension(_) | Filter::ExternalAuth(_) | Filter::Other(_) => None,
    }
}

/// Checks the filters of an HTTPRoute's rule against its matches and backends.
pub(crate) fn check_rule(f: &Fields<'_>, rule: &Rule) {
    let redirect = rule.filters.iter().position(|filter| matches!(filter, Filter::Redirect(_)));
    if let (Some(i), false) = (redirect, rule.backends.is_empty()) {
        let path = f.path().key("filters").field().index(i);
        f.invalid_at(path, "is a redirect in a rule with backends; remove the filter or the `backendRefs`");
    }
    if has_one_prefix(&rule.matches) {
        return;
    }
    check_prefixes(f, &rule.filters, || f.path().key("filters").field());
    for (i, backend) in rule.backends.iter().enumerate() {
        check_prefixes(f, &backend.filters, || f.path().key("backendRefs").field().index(i).key("filters"));
    }
}

/// Tells about filters that replace a prefix where no single prefix is matched.
fn check_prefixes(f: &Fields<'_>, filters: &[Filter], path: impl Fn() -> FieldPath) {
    for (i, member) in filters.iter().enumerate().filter_map(|(i, filter)| Some((i, replaced_prefix(filter)?))) {
        f.invalid_at(
            path().index(i).key(member).key("path").key("replacePrefixMatch"),
            "needs a rule with exactly one match, of type PathPrefix; else it is unclear which prefix is meant",
        );
    }
}

/// The field of a filter that replaces the prefix that matched.
fn replaced_prefix(filter: &Filter) -> Option<&'static str> {
    let prefix = |path: &Option<PathChange>| matches!(path, Some(PathChange::Prefix(_)));
    match filter {
        Filter::Redirect(redirect) if prefix(&redirect.path) => Some("requestRedirect"),
        Filter::Rewrite(rewrite) if prefix(&rewrite.path) => Some("urlRewrite"),
        _ => None,
    }
}

fn has_one_prefix(matches: &Matches) -> bool {
    let is_prefix = |m: &HttpMatch| m.path.kind == MatchKind::Prefix;
    matches!(matches, Matches::Http(list) if list.len() == 1 && list.iter().all(is_prefix))
}
