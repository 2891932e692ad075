//! Names that an attached route serves and does not claim, so that nothing in the desired state is withheld from it. Nothing is
//! decided here: publication has left them out, and this finds the words for it.

use super::index::PublicationIndex;
use super::publication::asks;
use super::*;
use crate::lint::listed;
use crate::publication::Record;
use crate::reason::Reason;

/// Why the attached chains of a name get nothing for it, where no withheld hostname says so.
pub(super) fn names(index: &PublicationIndex<'_>, explanation: &Explanation, records: &[Record]) -> Vec<Withheld> {
    let reached = requests::gateways(index, records);
    let hostname = &explanation.hostname;
    let chains = explanation.chains.iter().filter(|chain| chain.is_attached());
    let chains = chains.filter(|chain| !records.iter().any(|record| record.routes.contains(&chain.route)));
    let unclaimed = chains.filter_map(|chain| {
        let listener = index.context.topology.listener(chain.listener?);
        let key = listener.key();
        let is_at = |w: &&Withheld| w.route == chain.route && w.listener.as_ref().is_none_or(|l| *l == key);
        let is_told = index.withheld(hostname).any(|w| is_at(&w) && asks(w, hostname));
        if is_told || is_passed_over(index, &chain.route, listener) {
            return None;
        }
        let is_reached = listener.gateway.as_ref().is_some_and(|gateway| reached.contains(gateway));
        let (reason, message) = match chain.is_by_name {
            true if records.is_empty() => hidden(index, explanation, chain)?,
            true => return None,
            false => other_names(index, chain, listener, is_reached)?,
        };
        Some(Withheld {
            route: chain.route.clone(),
            hostname: chain.intersected.as_ref()?.text().clone(),
            listener: Some(key),
            reason,
            message,
            object: chain.route.clone(),
            field: FieldPath::of("spec.hostnames"),
        })
    });
    unclaimed.collect()
}

/// Whether the settings leave out the route, or what its listener is part of.
fn is_passed_over(index: &PublicationIndex<'_>, route: &ObjectRef, listener: &ListenerState) -> bool {
    let gateway = listener.gateway.clone().map(|key| ObjectRef { kind: Kind::Gateway, key });
    let objects = [Some(route.clone()), Some(listener.owner.object()), gateway];
    let passed_over = &index.desired.passed_over;
    objects.into_iter().flatten().any(|object| passed_over.binary_search_by(|p| p.object.cmp(&object)).is_ok())
}

/// A route without hostnames asks for other names than the listener's: by its annotation, or by a template (D17).
fn other_names(
    index: &PublicationIndex<'_>,
    chain: &Chain,
    listener: &ListenerState,
    is_reached: bool,
) -> Option<(Reason, String)> {
    let names = index.added.get(&chain.route).map(|names| listed(names.iter().copied()));
    if names.is_none() && is_reached {
        return None;
    }
    let (names, hostname) = (names.unwrap_or_else(|| "other names".to_owned()), &listener.hostname);
    let what = if hostname.is_any() { "every name".to_owned() } else { format!("`{hostname}`") };
    let message = format!(
        "the route has no hostnames and asks for {names} by annotation or template, instead of {what} of the listener"
    );
    Some((reason::NOT_SELECTED, message))
}

/// A wildcard of the route that DNS does not answer with, because other records exist at or below the name (RFC 4592), and that
/// is not published there either.
fn hidden(index: &PublicationIndex<'_>, explanation: &Explanation, chain: &Chain) -> Option<(Reason, String)> {
    let name = &explanation.hostname;
    let contains = |record: &&Record| {
        record.routes.contains(&chain.route)
            && Hostname::parse(&record.name).is_ok_and(|wildcard| wildcard.is_wildcard() && wildcard.contains(name))
    };
    let wildcard = &index.desired.records.iter().find(contains)?.name;
    let why = format!("DNS does not answer for `{name}` with `{wildcard}`, because records exist at or below it");
    Some(match &explanation.grant {
        Some(grant) => {
            let why = format!("{why}, and {} (`{}`) does not give it to this route", grant.grant, grant.pattern);
            (reason::HOSTNAME_NOT_GRANTED, why)
        }
        None => {
            let why = format!("{why}, and `--domain-filter`, `--exclude-domains` or `--require-grants` leaves it out");
            (reason::DOMAIN_NOT_SELECTED, why)
        }
    })
}
