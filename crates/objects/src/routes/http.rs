//! HTTPRoute.

use gatepost_core::model::{
    HttpMatch, MatchKind, Matches, Meta, PathMatch, RouteKind, Rule, SharedList, Str, ValueMatch,
};
use gatepost_core::snapshot::Object;

use super::parts::{Spec, backends, hostnames, route, rule_name};
use super::{filters, retry};
use crate::fields::Fields;
use crate::rules;
use crate::shapes::Shape;

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
const VALUE_MATCHES: &[&str] = &["Exact", "RegularExpression"];

/// Reads an HTTPRoute.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    route(RouteKind::Http, meta, root, |f| Spec { hostnames: hostnames(f, 16), rules: http_rules(f) })
}

fn http_rules(f: &Fields<'_>) -> SharedList<Rule> {
    if !f.has("rules") {
        let matches = Matches::Http(f.share_list(vec![HttpMatch::default()]));
        return f.share_list(vec![Rule { matches, ..Rule::default() }]);
    }
    let rules = f.mappings("rules", rule);
    rules::count(f, "rules", rules.len(), 1, 16);
    rules::unique_names(f, &rules);
    rules::total_matches(f, &rules);
    f.share_list(rules)
}

fn rule(f: &Fields<'_>) -> Rule {
    let mut matches = f.mappings("matches", http_match);
    rules::at_most(f, "matches", matches.len(), 64);
    if matches.is_empty() {
        matches.push(if f.is_no_list("matches") { nothing() } else { HttpMatch::default() });
    }
    let filters = filters::http(f);
    let backends = backends(f, filters::http);
    retry::check(f);
    let rule = Rule { name: rule_name(f), matches: Matches::Http(f.share_list(matches)), filters, backends };
    rules::filters::check_rule(f, &rule);
    rule
}

/// A match that was meant to be something and cannot be read: it matches nothing.
fn nothing() -> HttpMatch {
    HttpMatch {
        path: PathMatch { kind: MatchKind::Other("unreadable".into()), value: "".into() },
        ..HttpMatch::default()
    }
}

fn http_match(f: &Fields<'_>) -> HttpMatch {
    let wrong_before = f.collector().wrong_types();
    let mut found = HttpMatch {
        path: f.mapping("path", path).unwrap_or_else(|| HttpMatch::default().path),
        headers: value_matches(f, "headers", Shape::HeaderValue),
        query: value_matches(f, "queryParams", Shape::Text(1024)),
        method: method(f),
    };
    if f.is_stand_in() || f.collector().wrong_types() > wrong_before {
        found.path = nothing().path;
    }
    found
}

fn method(f: &Fields<'_>) -> Option<Str> {
    rules::word(f, "method", METHODS)
}

fn path(f: &Fields<'_>) -> PathMatch {
    let kind = match f.text("type").as_deref() {
        None | Some("PathPrefix") => MatchKind::Prefix,
        Some("Exact") => MatchKind::Exact,
        Some("RegularExpression") => MatchKind::Regex,
        Some(other) => {
            f.unknown_value("type", other, &["Exact", "PathPrefix", "RegularExpression"]);
            MatchKind::Other(other.into())
        }
    };
    let value = f.shaped("value", Shape::Short(1024)).unwrap_or_else(|| f.share("/"));
    let path = PathMatch { kind, value };
    rules::paths::check(f, &path);
    path
}

/// Reads `headers` or `queryParams` of a match.
pub(super) fn value_matches(f: &Fields<'_>, key: &'static str, value: Shape) -> SharedList<ValueMatch> {
    let matches = f.mappings(key, |f| {
        let kind = value_match_kind(f);
        f.require("value");
        let shape = if kind == MatchKind::Exact { value } else { Shape::Text(4096) };
        ValueMatch {
            kind,
            name: f.required("name", Shape::HeaderName),
            value: f.shaped("value", shape).unwrap_or_default(),
        }
    });
    rules::at_most(f, key, matches.len(), 16);
    rules::unique(f, key, Some("name"), matches.iter().map(|m| &m.name), "name");
    matches.into()
}

/// Reads `type` of a header, query parameter or gRPC method.
pub(super) fn value_match_kind(f: &Fields<'_>) -> MatchKind {
    match f.text("type").as_deref() {
        None | Some("Exact") => MatchKind::Exact,
        Some("RegularExpression") => MatchKind::Regex,
        Some(other) => {
            f.unknown_value("type", other, VALUE_MATCHES);
            MatchKind::Other(other.into())
        }
    }
}
