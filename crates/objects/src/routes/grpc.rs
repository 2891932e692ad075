//! GRPCRoute.

use gatepost_core::model::{GrpcMatch, MatchKind, Matches, Meta, RouteKind, Rule, SharedList};
use gatepost_core::snapshot::Object;

use super::http::{value_match_kind, value_matches};
use super::parts::{Spec, backends, hostnames, route, rule_name};
use super::{filters, retry};
use crate::fields::Fields;
use crate::rules;
use crate::shapes::Shape;

/// Reads a GRPCRoute.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    route(RouteKind::Grpc, meta, root, |f| {
        let rules = f.mappings("rules", rule);
        rules::at_most(f, "rules", rules.len(), 16);
        rules::unique_names(f, &rules);
        rules::total_matches(f, &rules);
        Spec { hostnames: hostnames(f, 16), rules: f.share_list(rules) }
    })
}

fn rule(f: &Fields<'_>) -> Rule {
    let mut matches = f.mappings("matches", grpc_match);
    rules::at_most(f, "matches", matches.len(), 64);
    if matches.is_empty() && f.is_no_list("matches") {
        matches.push(nothing());
    }
    let filters = filters::grpc(f);
    let backends = backends(f, filters::grpc);
    retry::session_persistence(f);
    Rule { name: rule_name(f), matches: Matches::Grpc(matches.into()), filters, backends }
}

/// A match that was meant to be something and cannot be read: it matches nothing.
fn nothing() -> GrpcMatch {
    GrpcMatch {
        kind: MatchKind::Other("unreadable".into()),
        service: None,
        method: None,
        headers: SharedList::default(),
    }
}

fn grpc_match(f: &Fields<'_>) -> GrpcMatch {
    let wrong_before = f.collector().wrong_types();
    let headers = value_matches(f, "headers", Shape::Text(4096));
    let found = f.mapping("method", method).unwrap_or(GrpcMatch { kind: MatchKind::Exact, ..nothing() });
    if f.is_stand_in() || f.collector().wrong_types() > wrong_before {
        GrpcMatch { headers, ..nothing() }
    } else {
        GrpcMatch { headers, ..found }
    }
}

fn method(f: &Fields<'_>) -> GrpcMatch {
    let kind = value_match_kind(f);
    let exact = kind == MatchKind::Exact;
    let shape = |shape| if exact { shape } else { Shape::Short(1024) };
    let service = f.shaped("service", shape(Shape::GrpcService)).filter(|s| !s.is_empty());
    let method = f.shaped("method", shape(Shape::GrpcMethod)).filter(|m| !m.is_empty());
    if service.is_none() && method.is_none() {
        f.invalid_here("names neither `service` nor `method`; at least one of them must be set");
    }
    GrpcMatch { kind, service, method, headers: SharedList::default() }
}
