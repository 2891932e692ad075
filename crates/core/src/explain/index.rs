//! Indexes with which many names are explained: each name visits the routes that may ask for it, not all of them.

use std::collections::BTreeMap;

use super::walk::loosely;
use super::*;
use crate::publication::wildcards::DnsTree;
use crate::publication::{NameSource, Record};
use crate::routing::Router;

/// Compiled Gateways, made when first needed.
pub(super) type Routers = BTreeMap<Key, Option<Router>>;

/// Indexes over one topology and one desired state.
pub struct ExplainIndex<'a> {
    routes: RouteIndex<'a>,
    publication: PublicationIndex<'a>,
}

impl<'a> ExplainIndex<'a> {
    /// The indexes of a topology and the desired state that was made from it.
    pub fn new(context: LintContext<'a>, desired: &'a Desired) -> Self {
        ExplainIndex { routes: RouteIndex::new(context), publication: PublicationIndex::new(context, desired) }
    }

    /// The explanation of a name, and what it gets: the same as [`Explanation::of`] and [`Publication::of`].
    pub fn explain(&mut self, hostname: &Hostname) -> (Explanation, Publication) {
        let context = self.publication.context;
        let mut explanation = Explanation::among(context, self.routes.asking(hostname), hostname);
        let publication = Publication::with(&mut self.publication, &mut explanation);
        (explanation, publication)
    }
}

/// Routes by the hostnames that they write.
struct RouteIndex<'a> {
    /// All routes, the most senior first.
    routes: Vec<&'a RouteState>,
    /// Positions of routes by hostname as it is written, in lower case.
    by_name: BTreeMap<String, Vec<usize>>,
    /// Routes without hostnames.
    without_names: Vec<OpenRoute>,
}

/// A route without hostnames: it asks for whatever its listeners have.
struct OpenRoute {
    position: usize,
    /// The hostnames of the listeners that it may attach to; unset where the route has no parents.
    hostnames: Option<Vec<Hostname>>,
}

impl<'a> RouteIndex<'a> {
    fn new(context: LintContext<'a>) -> Self {
        let mut index =
            RouteIndex { routes: by_seniority(context), by_name: BTreeMap::new(), without_names: Vec::new() };
        for (position, state) in index.routes.iter().enumerate() {
            let route = &state.route;
            if !route.kind.has_hostnames() || route.hostnames.is_empty() {
                let hostnames = (!state.parents.is_empty()).then(|| listener_hostnames(context, state));
                index.without_names.push(OpenRoute { position, hostnames });
            }
            for written in &route.hostnames {
                let text = match written.name() {
                    Ok(name) => name.to_string(),
                    Err(_) => loosely(written.text()),
                };
                index.by_name.entry(text).or_default().push(position);
            }
        }
        index
    }

    /// The routes that may ask for a name, the most senior first.
    fn asking(&self, hostname: &Hostname) -> impl Iterator<Item = &'a RouteState> {
        let is_open = |route: &&OpenRoute| match &route.hostnames {
            Some(hostnames) => hostnames.iter().any(|own| own.contains(hostname)),
            None => true,
        };
        let by_listener = self.without_names.iter().filter(is_open).map(|route| route.position);
        let by_name = around(hostname).filter_map(|text| self.by_name.get(&text)).flatten().copied();
        let positions: BTreeSet<usize> = by_name.chain(by_listener).collect();
        positions.into_iter().filter_map(|position| self.routes.get(position).copied())
    }
}

fn added<'a>(context: LintContext<'a>, desired: &'a Desired) -> BTreeMap<&'a ObjectRef, BTreeSet<&'a str>> {
    let mut added: BTreeMap<&ObjectRef, BTreeSet<&str>> = BTreeMap::new();
    let records = desired.records.iter().chain(&desired.covered);
    let is_open = |route: &&ObjectRef| context.snapshot.routes.get(route).is_some_and(|r| r.hostnames.is_empty());
    for record in records.filter(|r| matches!(r.source, NameSource::Annotation | NameSource::Template)) {
        for route in record.routes.iter().filter(is_open) {
            added.entry(route).or_default().insert(&record.name);
        }
    }
    added
}

fn listener_hostnames(context: LintContext<'_>, route: &RouteState) -> Vec<Hostname> {
    let candidates = (0..route.parents.len()).flat_map(|index| context.candidates(route, index));
    let mut hostnames: Vec<Hostname> =
        candidates.map(|candidate| context.topology.listener(candidate.listener).hostname.clone()).collect();
    hostnames.sort();
    hostnames.dedup();
    hostnames
}

/// A name, and every wildcard that may contain it.
fn around(hostname: &Hostname) -> impl Iterator<Item = String> {
    let text = hostname.as_str();
    let above = text.match_indices('.').map(|(dot, _)| format!("*{}", &text[dot..]));
    std::iter::once(text.to_owned()).chain(above)
}

/// Indexes over a desired state.
pub(super) struct PublicationIndex<'a> {
    pub(super) context: LintContext<'a>,
    pub(super) desired: &'a Desired,
    pub(super) listeners: BTreeMap<ListenerKey, ListenerId>,
    pub(super) routers: Routers,
    /// Names that a route without hostnames asks for by annotation or template, instead of the listeners' hostnames.
    pub(super) added: BTreeMap<&'a ObjectRef, BTreeSet<&'a str>>,
    tree: DnsTree<'a>,
    /// Positions of withheld hostnames by their text.
    withheld: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> PublicationIndex<'a> {
    pub(super) fn new(context: LintContext<'a>, desired: &'a Desired) -> Self {
        let mut withheld: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (position, one) in desired.withheld.iter().enumerate() {
            withheld.entry(&one.hostname).or_default().push(position);
        }
        PublicationIndex {
            context,
            desired,
            listeners: context.topology.listener_ids().map(|(id, listener)| (listener.key(), id)).collect(),
            routers: Routers::new(),
            added: added(context, desired),
            tree: DnsTree::of(desired.records.iter().map(|record| &*record.name)),
            withheld,
        }
    }

    /// The records that answer a query for a name (RFC 4592).
    pub(super) fn answer(&self, name: &str) -> &'a [Record] {
        let records = &self.desired.records;
        let Some(owner) = self.tree.owner(name) else { return &[] };
        let first = records.partition_point(|record| &*record.name < owner);
        let count = records[first..].partition_point(|record| &*record.name == owner);
        &records[first..first + count]
    }

    /// The withheld hostnames that may be about a name, in their order.
    pub(super) fn withheld(&self, hostname: &Hostname) -> impl Iterator<Item = &'a Withheld> {
        let texts = around(hostname).chain(["*".to_owned()]);
        let positions: BTreeSet<usize> =
            texts.filter_map(|text| self.withheld.get(&*text)).flatten().copied().collect();
        let withheld = &self.desired.withheld;
        positions.into_iter().filter_map(|position| withheld.get(position))
    }
}
