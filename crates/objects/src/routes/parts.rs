//! What routes of all kinds share: parents, hostnames, backends, rule names, status.

use gatepost_core::model::{
    BackendRef, Filter, Meta, ParentRef, ParentStatus, Route, RouteKind, RouteStatus, Rule, SharedList, ShortVec, Str,
    WrittenHostname,
};
use gatepost_core::snapshot::Object;

use crate::conditions::said;
use crate::fields::Fields;
use crate::hostnames::hostname;
use crate::references;
use crate::rules;
use crate::shapes::Shape;

/// The parts of a route's `spec`.
#[derive(Default)]
pub(super) struct Spec {
    pub(super) hostnames: ShortVec<WrittenHostname>,
    pub(super) rules: SharedList<Rule>,
}

/// Reads a route; `spec` reads what is special about its kind.
pub(super) fn route(kind: RouteKind, meta: Meta, root: &Fields<'_>, spec: impl FnOnce(&Fields<'_>) -> Spec) -> Object {
    root.require("spec");
    let status = root.silent_mapping("status", status).unwrap_or_default();
    let parts = root.mapping("spec", |f| {
        rules::word(f, "useDefaultGateways", &["All", "None"]);
        (parents(f), spec(f))
    });
    let (parents, Spec { hostnames, rules }) = parts.unwrap_or_default();
    Object::Route(Route { kind, meta, parents, hostnames, rules, status })
}

fn parents(f: &Fields<'_>) -> SharedList<ParentRef> {
    let parents = f.mappings("parentRefs", parent);
    rules::at_most(f, "parentRefs", parents.len(), 32);
    rules::parents::check(f, &parents);
    f.share_list(parents)
}

/// A port that cannot be read is 0, which no listener has: an absent one would mean every port.
fn parent(f: &Fields<'_>) -> ParentRef {
    ParentRef {
        target: references::reference(f, references::GATEWAY),
        section: f.shaped("sectionName", Shape::Subdomain),
        port: f.has("port").then(|| f.port("port").unwrap_or(0)),
    }
}

fn status(f: &Fields<'_>) -> RouteStatus {
    let mut times = Vec::new();
    let parents = f.mappings("parents", |f| parent_status(f, &mut times));
    RouteStatus::new(f.share_list(parents), times)
}

fn parent_status(f: &Fields<'_>, times: &mut Vec<Option<Str>>) -> ParentStatus {
    let parent = f.mapping("parentRef", parent).unwrap_or_else(|| ParentRef {
        target: references::nobody(),
        section: None,
        port: None,
    });
    ParentStatus { parent, controller: f.text("controllerName").unwrap_or_default(), conditions: said(f, times) }
}

/// Reads `hostnames`. A value that is no list counts as one name that matches nothing: none would mean every name.
pub(super) fn hostnames(f: &Fields<'_>, most: usize) -> ShortVec<WrittenHostname> {
    let hostnames = f.list("hostnames", |node| Some(hostname(node)));
    rules::at_most(f, "hostnames", hostnames.len(), most);
    if f.is_no_list("hostnames") { [WrittenHostname::new("")].into() } else { hostnames.into_iter().collect() }
}

/// Reads `name` of a rule.
pub(super) fn rule_name(f: &Fields<'_>) -> Option<Str> {
    f.shaped("name", Shape::Subdomain)
}

/// Reads `backendRefs` of a rule; `filters` reads those of one backend.
pub(super) fn backends(f: &Fields<'_>, filters: impl Fn(&Fields<'_>) -> SharedList<Filter>) -> SharedList<BackendRef> {
    let backends = f.mappings("backendRefs", |f| {
        let weight = f.number_in("weight", "a weight", 0, 1_000_000).and_then(|w| u32::try_from(w).ok());
        let filters = filters(f);
        BackendRef { weight: weight.unwrap_or(1), filters, ..backend(f) }
    });
    rules::at_most(f, "backendRefs", backends.len(), 16);
    f.share_list(backends)
}

/// Reads a reference to a backend: object and port.
pub(super) fn backend(f: &Fields<'_>) -> BackendRef {
    let target = references::reference(f, references::SERVICE);
    let port = f.port("port");
    if target.group.is_empty() && &*target.kind == "Service" && !f.has("port") {
        f.invalid("port", "is missing; a reference to a Service needs a port");
    }
    if &*target.group == gatepost_core::model::EXPERIMENTAL_GROUP && &*target.kind == "XBackend" && f.has("port") {
        f.invalid("port", "must be left out; a reference to an XBackend takes no port");
    }
    BackendRef { target, port, weight: 1, filters: SharedList::default() }
}

/// Reads `backendRef` of a filter.
pub(super) fn single_backend(f: &Fields<'_>) -> Option<BackendRef> {
    f.require("backendRef");
    f.mapping("backendRef", backend)
}
