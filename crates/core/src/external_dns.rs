//! What external-dns would publish for the same objects and flags, with a reason for every hostname that it drops.
//!
//! The profile starts at the Gateway, trusts the status written on routes and ListenerSets, and compares hostnames as text
//! ([`hosts`]). Where the result of external-dns depends on hash order, this one does not: older routes come first, then
//! `namespace/name`. Targets and target strategies of routes exist only here. [`crate::attachment`] must not be used: both
//! programs have to agree, also where external-dns is wrong.

use std::sync::Arc;

use crate::model::{Route, RouteKind};
use crate::publication::annotations::{Annotations, RouteAnnotations, annotation_field};
use crate::publication::settings::PublicationSettings;
use crate::publication::{Desired, PassedOver, Withheld, excluded, filters, hostnames, left_out};
use crate::reason;
use crate::snapshot::Snapshot;

mod admission;
mod endpoints;
#[cfg(test)]
pub(crate) mod fixtures;
mod hosts;
mod parents;
mod refusals;
mod resolve;
mod settle;
#[cfg(test)]
mod tests;

pub(crate) use settle::compare_targets;
pub use settle::{Lost, Settled, settle};

use endpoints::{Endpoint, Merger};
use parents::Parents;
use resolve::Resolver;

/// Everything that external-dns would publish.
pub fn publish(snapshot: &Snapshot, settings: &PublicationSettings) -> Desired {
    let mut desired = Desired::default();
    let parents = Parents::of(snapshot, settings, &mut desired);
    let mut records = Merger::default();
    for kind in RouteKind::ALL {
        let routes = selected(snapshot, kind, settings, &mut desired);
        let resolver = Resolver { snapshot, settings, parents: &parents, kind };
        let mut source = Merger::default();
        for route in &routes {
            publish_route(route, &resolver, &mut source, &mut desired);
        }
        records.absorb(source.finish());
    }
    desired.records = records.finish_without_duplicates();
    endpoints::report_clashes(&desired.records, &mut desired.diagnostics);
    desired.records.sort_by(|a, b| a.rank().cmp(&b.rank()));
    desired.sort();
    desired
}

/// The routes of one kind that the filters select, oldest first.
fn selected<'a>(
    snapshot: &'a Snapshot,
    kind: RouteKind,
    settings: &PublicationSettings,
    desired: &mut Desired,
) -> Vec<&'a Arc<Route>> {
    let of_kind = snapshot.routes.values().filter(|route| route.kind == kind);
    let mut routes: Vec<&Arc<Route>> = of_kind.filter(|route| is_selected(route, settings, desired)).collect();
    routes.sort_by(|a, b| a.meta.seniority().cmp(&b.meta.seniority()));
    routes
}

fn is_selected(route: &Route, settings: &PublicationSettings, desired: &mut Desired) -> bool {
    let annotations = Annotations::of(&route.meta, &settings.annotation_prefixes);
    let refusal = filters::route(route, &annotations, settings);
    let is_selected = refusal.is_none();
    let own = filters::controller(&annotations).filter(|own| refusal.as_ref() == Some(own));
    if let Some((because, entry)) = own.zip(annotations.entry("controller")) {
        let field = annotation_field(entry.key);
        desired.withheld.extend(excluded(route, &annotations, settings, (&because, &field)));
    }
    desired.passed_over.extend(refusal.map(|because| PassedOver { object: route.object(), because }));
    is_selected
}

fn publish_route(route: &Route, resolver: &Resolver, source: &mut Merger, desired: &mut Desired) {
    let object = route.object();
    let annotations = Annotations::of(&route.meta, &resolver.settings.annotation_prefixes);
    let asked = RouteAnnotations::read(&annotations, &object, &mut desired.diagnostics);
    let wanted = hostnames::of_route(route, &asked, resolver.settings, &mut desired.diagnostics);
    let left_out = left_out(route, &asked, resolver.settings);
    let resolution = resolver.resolve(route, &asked, &wanted);
    if !wanted.is_empty() || left_out.is_empty() {
        desired.withheld.extend(refusals::withheld(resolver, route, &wanted, &resolution));
    }
    desired.withheld.extend(left_out);
    for host in resolution.hosts {
        if !resolver.settings.domains.admits(&host.name) {
            desired.withheld.push(outside_domains(route, host));
            continue;
        }
        source.add(Endpoint { host, route: &object, asked: &asked });
    }
}

fn outside_domains(route: &Route, host: resolve::Host) -> Withheld {
    Withheld {
        message: format!("`--domain-filter` or `--exclude-domains` leaves `{}` out", host.name),
        route: route.object(),
        hostname: host.name,
        listener: host.listeners.first().cloned(),
        reason: reason::DOMAIN_NOT_SELECTED,
        object: route.object(),
        field: Default::default(),
    }
}
