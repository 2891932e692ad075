//! The records and certificates of one hostname, what is withheld from it, and what a client meets.

use super::index::PublicationIndex;
use super::*;
use crate::health::AddressReport;
use crate::publication::{Desired, NameSource, PassedOver, Record, Withheld};

/// What one hostname gets.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    /// Records that answer a query for it, by the rules of RFC 4592.
    pub records: Vec<Record>,
    /// Annotations and templates that ask for it.
    pub annotated: Vec<AnnotatedName>,
    /// What it does not get, and why.
    pub withheld: Vec<Withheld>,
    /// Objects of its chains that settings or annotations leave out.
    pub passed_over: Vec<PassedOver>,
    /// The certificate of every terminating listener that serves it.
    pub certificates: Vec<CertificateWalk>,
    /// Terminating listeners that serve it and name no certificate.
    pub unsecured: Vec<(ListenerKey, Diagnostic)>,
    /// What a client meets at each listener that serves it.
    pub requests: Vec<ListenerOutcome>,
    /// Routes that ask for exactly this name and get none of its requests.
    pub losing: Vec<Diagnostic>,
    /// Its addresses that are probed, with the policy that says so.
    pub addresses: Vec<(ObjectRef, AddressReport)>,
    /// Whether the records lead only to Gateways at which no route has the name, such as those of a wildcard of another Gateway.
    leads_elsewhere: bool,
}

/// An object whose annotation, or whose name by a template, publishes the hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotatedName {
    /// The route.
    pub object: ObjectRef,
    /// Annotation or template.
    pub source: NameSource,
}

impl Publication {
    /// What a hostname gets in a desired state. Marks the chains of the explanation that get nothing.
    pub fn of(context: LintContext<'_>, desired: &Desired, explanation: &mut Explanation) -> Publication {
        Publication::with(&mut PublicationIndex::new(context, desired), explanation)
    }

    /// The same with indexes that serve many hostnames.
    pub(super) fn with(index: &mut PublicationIndex<'_>, explanation: &mut Explanation) -> Publication {
        let PublicationIndex { context, desired, .. } = *index;
        let hostname = explanation.hostname.clone();
        let records: Vec<Record> = index.answer(hostname.as_str()).to_vec();
        let withheld: Vec<Withheld> = index.withheld(&hostname).filter(|w| asks(w, &hostname)).cloned().collect();
        let unclaimed = unclaimed::names(index, explanation, &records);
        let withheld: Vec<Withheld> = withheld.into_iter().chain(unclaimed).collect();
        mark(context, explanation, &withheld);
        let routes = closest_routes(explanation);
        let mut withheld: Vec<Withheld> =
            withheld.into_iter().filter(|w| &*w.hostname != "*" || routes.contains(&w.route)).collect();
        // What is about the name itself goes before what is about all names of a listener.
        withheld.sort_by_key(|w| &*w.hostname == "*");
        let annotated = annotated(&records, &hostname);
        let sites = requests::sites(index, explanation, &records, &annotated);
        let listeners: Vec<ListenerId> = sites.iter().map(|site| site.listener).collect();
        let attached = explanation.chains.iter().filter(|chain| chain.works()).filter_map(|chain| chain.listener);
        let listeners: BTreeSet<ListenerId> = attached.chain(listeners).collect();
        let listeners = in_order(context, listeners);
        let (requests, losing) = requests::outcomes(index, &sites, &hostname);
        let is_attached = explanation.chains.iter().any(Chain::is_attached);
        Publication {
            leads_elsewhere: is_attached && sites.is_empty(),
            passed_over: passed_over(desired, explanation),
            addresses: probed(desired, &hostname),
            certificates: certificates::walks(index, &listeners, &hostname),
            unsecured: certificates::unsecured(context, &listeners),
            requests,
            losing,
            records,
            annotated,
            withheld,
        }
    }

    /// Whether the name resolves to a Gateway at which a route has it.
    pub fn is_published(&self) -> bool {
        !self.records.is_empty() && !self.leads_elsewhere
    }

    /// Whether something withheld is about the name itself, not about all names of a listener.
    pub(super) fn is_about(&self, withheld: &Withheld) -> bool {
        &*withheld.hostname != "*"
    }
}

/// The addresses of a hostname that are probed, with the policy that says so.
fn probed(desired: &Desired, hostname: &Hostname) -> Vec<(ObjectRef, AddressReport)> {
    let addresses = desired.policies.iter().flat_map(|report| {
        let of_name = report.addresses.iter().filter(|address| *address.hostname == *hostname.as_str());
        of_name.map(|address| (report.policy.clone(), address.clone()))
    });
    addresses.collect()
}

/// The routes of the chains that write the name; where none does, those that take whatever the listener has.
pub(super) fn closest_routes(explanation: &Explanation) -> BTreeSet<ObjectRef> {
    let is_by_name = explanation.chains.iter().any(|chain| chain.is_by_name);
    let chains = explanation.chains.iter().filter(|chain| chain.is_by_name == is_by_name);
    chains.map(|chain| chain.route.clone()).collect()
}

fn in_order(context: LintContext<'_>, listeners: BTreeSet<ListenerId>) -> Vec<ListenerId> {
    let mut listeners: Vec<ListenerId> = listeners.into_iter().collect();
    listeners.sort_by_cached_key(|id| context.topology.listener(*id).precedence());
    listeners
}

/// Whether a withheld hostname is, or covers, the name.
pub(super) fn asks(withheld: &Withheld, hostname: &Hostname) -> bool {
    &*withheld.hostname == "*" || Hostname::parse(&withheld.hostname).is_ok_and(|name| name.contains(hostname))
}

/// Gives each attached chain that gets nothing its reason, and takes the mark from the link that the reason is about.
fn mark(context: LintContext<'_>, explanation: &mut Explanation, withheld: &[Withheld]) {
    for chain in explanation.chains.iter_mut().filter(|chain| chain.is_attached()) {
        let Some(id) = chain.listener else { continue };
        let key = context.topology.listener(id).key();
        let is_here = |w: &&Withheld| w.route == chain.route && w.listener.as_ref().is_none_or(|l| *l == key);
        chain.withheld = withheld.iter().find(is_here).cloned();
        let Some(withheld) = &chain.withheld else { continue };
        let object = withheld.object.to_string();
        let at_listener = withheld.listener.as_ref().filter(|_| withheld.field.to_string().contains(".listeners["));
        let named = at_listener.map_or(object.clone(), ToString::to_string);
        let is_meant = |link: &&mut Link| link.name == named || link.name == object;
        if let Some(link) = chain.links.iter_mut().rev().find(is_meant) {
            link.holds = false;
        }
    }
    explanation.chains.sort_by_key(Chain::rank);
}

/// The objects whose annotation or template publishes exactly this name.
fn annotated(records: &[Record], hostname: &Hostname) -> Vec<AnnotatedName> {
    let is_added = |record: &&Record| {
        matches!(record.source, NameSource::Annotation | NameSource::Template) && *record.name == *hostname.as_str()
    };
    let mut all: Vec<AnnotatedName> = Vec::new();
    for record in records.iter().filter(is_added) {
        for object in &record.routes {
            if !all.iter().any(|known| known.object == *object) {
                all.push(AnnotatedName { object: object.clone(), source: record.source });
            }
        }
    }
    all
}

/// The objects of attached chains that are left out on purpose.
fn passed_over(desired: &Desired, explanation: &Explanation) -> Vec<PassedOver> {
    let routes = closest_routes(explanation);
    let attached = || explanation.chains.iter().filter(|chain| chain.is_attached() && routes.contains(&chain.route));
    let names: BTreeSet<&str> = attached().flat_map(|chain| &chain.links).map(|link| &*link.name).collect();
    desired.passed_over.iter().filter(|passed| names.contains(&*passed.object.to_string())).cloned().collect()
}
