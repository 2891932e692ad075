//! Which listeners of one Gateway cannot stand beside each other.
//!
//! Listeners come in resources: the Gateway first, then its ListenerSets in order of precedence. Across resources the first
//! holder of a port and hostname keeps it; inside one resource a conflict has no winner. A listener that lost claims
//! nothing. Claims are kept in maps, so that cost follows the number of listeners and not of pairs.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::*;

/// Marks conflicts among the listeners of one Gateway, which come in order of precedence.
pub(super) fn resolve(listeners: &mut [ListenerState], resources: &[Range<usize>]) {
    let mut claims: BTreeMap<u16, PortClaims> = BTreeMap::new();
    for resource in resources {
        let valid = resource.clone().filter(|place| listeners[*place].refused.is_none());
        let (standing, lost) = against_earlier(listeners, &claims, valid);
        let clashing = among_themselves(listeners, &standing);
        for (place, conflict) in lost.into_iter().chain(clashing) {
            listeners[place].conflict = Some(conflict);
        }
        for place in standing.into_iter().filter(|place| listeners[*place].conflict.is_none()) {
            let listener = &listeners[place];
            claims.entry(listener.spec().port).or_default().add(listener, place);
        }
    }
}

/// Finds, for each TLS listener, another one on its port whose hostname overlaps.
pub(super) fn find_overlaps(listeners: &mut [ListenerState]) {
    let is_tls = |listener: &ListenerState| {
        listener.is_accepted() && matches!(listener.spec().protocol, Protocol::Https | Protocol::Tls)
    };
    let tls: Vec<usize> = (0..listeners.len()).filter(|place| is_tls(&listeners[*place])).collect();
    let mut named: HashMap<(u16, &str), Few<usize>> = HashMap::with_capacity(tls.len());
    for place in &tls {
        let listener = &listeners[*place];
        named.entry((listener.spec().port, short(&listener.hostname))).or_default().push(*place);
    }
    let other = |place: &usize| {
        let (port, hostname) = (listeners[*place].spec().port, &listeners[*place].hostname);
        let around = containers(hostname).filter_map(|name| named.get(&(port, name))).flatten();
        around.copied().find(|other| other != place).map(|other| (*place, other))
    };
    let pairs: Vec<(usize, usize)> = tls.iter().filter_map(other).collect();
    for (place, other) in pairs {
        let (id, other_id) = (listeners[place].id, listeners[other].id);
        listeners[place].overlaps = Some(other_id);
        listeners[other].overlaps.get_or_insert(id);
    }
}

/// A hostname without the `*` of a wildcard, so that it begins with a dot as no other does; that of an unset field is empty.
fn short(hostname: &Hostname) -> &str {
    hostname.as_str().strip_prefix('*').unwrap_or(hostname.as_str())
}

/// Every hostname that contains one, itself first: `a.b.c` gives `a.b.c`, `*.b.c`, `*.c`, `*`, all without their `*`.
fn containers(hostname: &Hostname) -> impl Iterator<Item = &str> {
    let name = hostname.as_str();
    let base = name.strip_prefix("*.").unwrap_or(name);
    let wildcards = base.match_indices('.').map(move |(dot, _)| &base[dot..]);
    std::iter::once(short(hostname)).chain(wildcards).chain((!hostname.is_any()).then_some(""))
}

type Clash = (usize, Conflict);

fn against_earlier(
    listeners: &[ListenerState],
    claims: &BTreeMap<u16, PortClaims>,
    places: impl Iterator<Item = usize>,
) -> (Vec<usize>, Vec<Clash>) {
    let mut standing = Vec::new();
    let mut lost = Vec::new();
    for place in places {
        let port = claims.get(&listeners[place].spec().port);
        match port.and_then(|port| port.clash(listeners, place)) {
            Some(conflict) => lost.push((place, conflict)),
            None => standing.push(place),
        }
    }
    (standing, lost)
}

/// Conflicts inside one resource: everybody involved loses.
fn among_themselves(listeners: &[ListenerState], places: &[usize]) -> Vec<Clash> {
    let mut ports: BTreeMap<u16, PortClaims> = BTreeMap::new();
    for place in places {
        let listener = &listeners[*place];
        ports.entry(listener.spec().port).or_default().add(listener, *place);
    }
    let clash = |place: &usize| {
        let port = ports.get(&listeners[*place].spec().port)?;
        Some((*place, port.clash(listeners, *place)?))
    };
    places.iter().filter_map(clash).collect()
}

/// Who holds what on one port. Holders are added in order.
#[derive(Default)]
struct PortClaims {
    http: Named,
    https: Named,
    tls: Named,
    tcp: Vec<usize>,
    udp: Vec<usize>,
}

/// Holders of one protocol, by hostname.
#[derive(Default)]
struct Named {
    first: Option<usize>,
    holders: HashMap<Hostname, Few<usize>>,
}

impl PortClaims {
    fn add(&mut self, listener: &ListenerState, place: usize) {
        let named = match listener.spec().protocol {
            Protocol::Http => &mut self.http,
            Protocol::Https => &mut self.https,
            Protocol::Tls => &mut self.tls,
            Protocol::Tcp => return self.tcp.push(place),
            Protocol::Udp => return self.udp.push(place),
            Protocol::Other(_) => return,
        };
        named.first.get_or_insert(place);
        named.holders.entry(listener.hostname.clone()).or_default().push(place);
    }

    /// With whom a listener cannot share the port, other than itself.
    fn clash(&self, listeners: &[ListenerState], place: usize) -> Option<Conflict> {
        let listener = &listeners[place];
        let protocol = &listener.spec().protocol;
        if let Some(with) = self.protocol_clash(protocol, place) {
            return Some(Conflict { reason: reason::LISTENER_PROTOCOL_CONFLICT, with: listeners[with].id });
        }
        let same = self.same_protocol(protocol)?.holders.get(&listener.hostname)?;
        let with = same.iter().copied().find(|other| *other != place)?;
        Some(Conflict { reason: reason::LISTENER_HOSTNAME_CONFLICT, with: listeners[with].id })
    }

    fn same_protocol(&self, protocol: &Protocol) -> Option<&Named> {
        match protocol {
            Protocol::Http => Some(&self.http),
            Protocol::Https => Some(&self.https),
            Protocol::Tls => Some(&self.tls),
            _ => None,
        }
    }

    fn protocol_clash(&self, protocol: &Protocol, place: usize) -> Option<usize> {
        let tcp = self.tcp.iter().copied().find(|other| *other != place);
        match protocol {
            Protocol::Udp => self.udp.iter().copied().find(|other| *other != place),
            Protocol::Tcp => tcp.or(self.http.first).or(self.https.first).or(self.tls.first),
            Protocol::Http => tcp.or(self.https.first).or(self.tls.first),
            Protocol::Https | Protocol::Tls => tcp.or(self.http.first),
            Protocol::Other(_) => None,
        }
    }
}
