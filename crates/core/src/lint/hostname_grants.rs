//! HostnameGrants and the routes that they are about: names that are not granted or that no grant covers, and patterns without
//! effect.

use std::collections::BTreeSet;

use super::*;
use crate::names::Hostname;
use crate::publication::GrantRules;
use crate::publication::hostname_grants::{Admittance, GrantConflict, GrantedPattern, HostnameGrants};

pub(super) fn findings(context: LintContext<'_>) -> Vec<Diagnostic> {
    let grants = HostnameGrants::of(context.snapshot);
    if grants.is_empty() {
        return Vec::new();
    }
    let rules = GrantRules { snapshot: context.snapshot, grants: &grants, is_required: false };
    let mut used: BTreeSet<(ObjectRef, usize)> = BTreeSet::new();
    let mut all: Vec<Diagnostic> = Vec::new();
    for route in context.topology.routes.values() {
        for (name, written) in attached_names(route) {
            all.extend(of_name(rules, route, name, written));
            let found = grants.covering(name);
            let admitting = found.filter(|p| rules.admits(&p.grant, &route.route.meta.key.namespace) != Admittance::No);
            used.extend(admitting.map(|pattern| (pattern.grant.object(), pattern.index)));
        }
    }
    all.extend(grants.conflicts().iter().map(conflict));
    let is_unused = |pattern: &&GrantedPattern| !used.contains(&(pattern.grant.object(), pattern.index));
    all.extend(grants.patterns().filter(is_unused).map(unused));
    all
}

/// The names under which a route attaches, each once, with the index of the hostname as written.
fn attached_names(route: &RouteState) -> Vec<(&Hostname, Option<u32>)> {
    let mut seen = BTreeSet::new();
    let names = route.attachments().flat_map(|attachment| &attachment.names);
    let names = names.filter(|common| !common.hostname.is_any());
    names.filter(|common| seen.insert(&common.hostname)).map(|common| (&common.hostname, common.written)).collect()
}

fn of_name(rules: GrantRules<'_>, route: &RouteState, name: &Hostname, written: Option<u32>) -> Option<Diagnostic> {
    let field = written.map_or(FieldPath::of("spec.parentRefs"), |i| FieldPath::of("spec.hostnames").index(i as usize));
    let object = route.route.object();
    if let Some(refusal) = rules.refusal(name, object.namespace()) {
        // What is not known was reported where it is wrong.
        let is_certain = !refusal.reason.is_unknown();
        return is_certain.then(|| Diagnostic::new(refusal.reason, &object, field, refusal.message));
    }
    let is_free = rules.grants.covering(name).is_none();
    let message = || format!("no HostnameGrant covers `{name}`");
    is_free.then(|| Diagnostic::new(reason::HOSTNAME_WITHOUT_GRANT, &object, field, message()))
}

fn conflict(conflict: &GrantConflict) -> Diagnostic {
    let GrantConflict { younger, older } = conflict;
    let other = older.grant.object();
    let message = format!("{other} lists `{}`, too, and goes first", younger.text());
    let diagnostic = Diagnostic::new(reason::GRANTS_CONFLICT, &younger.grant.object(), younger.field(), message);
    diagnostic.related(&other, older.field(), "the one that decides")
}

fn unused(pattern: &GrantedPattern) -> Diagnostic {
    let message = format!("no route that may have a name of `{}` asks for one", pattern.text());
    Diagnostic::new(reason::GRANT_UNUSED, &pattern.grant.object(), pattern.field(), message)
}
