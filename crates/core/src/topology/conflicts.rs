//! Which listeners of one Gateway cannot stand beside each other.
//!
//! Listeners come in resources: the Gateway first, then its ListenerSets in order of precedence. Across resources the first
//! holder of a port and hostname keeps it; inside one resource a conflict has no winner. A listener that lost claims
//! nothing. Claims are kept in maps, so that cost follows the number of listeners and not of pairs.

use std::collections::BTreeMap;

use super::*;

/// Marks conflicts among the listeners of one Gateway.
pub(super) fn resolve(listeners: &mut [ListenerState], resources: &[Vec<ListenerId>]) {
    let mut claims: BTreeMap<u16, PortClaims> = BTreeMap::new();
    for resource in resources {
        let valid = resource.iter().copied().filter(|id| listeners[id.0 as usize].refused.is_none());
        let (standing, lost) = against_earlier(listeners, &claims, valid.collect());
        let clashing = among_themselves(listeners, &standing);
        for (id, conflict) in lost.into_iter().chain(clashing) {
            listeners[id.0 as usize].conflict = Some(conflict);
        }
        for id in standing.into_iter().filter(|id| listeners[id.0 as usize].conflict.is_none()) {
            let listener = &listeners[id.0 as usize];
            claims.entry(listener.spec().port).or_default().add(listener, id);
        }
    }
}

/// Finds, for each TLS listener, another one on its port whose hostname overlaps.
pub(super) fn find_overlaps(listeners: &mut [ListenerState], ids: &[ListenerId]) {
    let mut named: BTreeMap<(u16, String), Vec<ListenerId>> = BTreeMap::new();
    let tls = |id: &ListenerId| {
        let listener = &listeners[id.0 as usize];
        listener.is_accepted() && matches!(listener.spec().protocol, Protocol::Https | Protocol::Tls)
    };
    let tls: Vec<_> = ids.iter().copied().filter(tls).collect();
    for id in &tls {
        let listener = &listeners[id.0 as usize];
        named.entry((listener.spec().port, listener.hostname.to_string())).or_default().push(*id);
    }
    for id in tls {
        let listener = &listeners[id.0 as usize];
        let port = listener.spec().port;
        let around = containers(listener.hostname.as_str());
        let other = around.filter_map(|name| named.get(&(port, name))).flatten().copied().find(|other| *other != id);
        if let Some(other) = other {
            listeners[id.0 as usize].overlaps = Some(other);
            listeners[other.0 as usize].overlaps.get_or_insert(id);
        }
    }
}

/// Every hostname that contains `name`, itself first: `a.b.c` gives `a.b.c`, `*.b.c`, `*.c`, `*`.
fn containers(name: &str) -> impl Iterator<Item = String> + '_ {
    let base = name.strip_prefix("*.").unwrap_or(name);
    let suffixes = base.match_indices('.').map(move |(i, _)| format!("*{}", &base[i..]));
    let star = (name != "*").then(|| "*".to_owned());
    std::iter::once(name.to_owned()).chain(suffixes).chain(star)
}

type Clash = (ListenerId, Conflict);

fn against_earlier(
    listeners: &[ListenerState],
    claims: &BTreeMap<u16, PortClaims>,
    ids: Vec<ListenerId>,
) -> (Vec<ListenerId>, Vec<Clash>) {
    let mut standing = Vec::new();
    let mut lost = Vec::new();
    for id in ids {
        let listener = &listeners[id.0 as usize];
        match claims.get(&listener.spec().port).and_then(|port| port.clash(listener, id)) {
            Some(conflict) => lost.push((id, conflict)),
            None => standing.push(id),
        }
    }
    (standing, lost)
}

/// Conflicts inside one resource: everybody involved loses.
fn among_themselves(listeners: &[ListenerState], ids: &[ListenerId]) -> Vec<Clash> {
    let mut ports: BTreeMap<u16, PortClaims> = BTreeMap::new();
    for id in ids {
        let listener = &listeners[id.0 as usize];
        ports.entry(listener.spec().port).or_default().add(listener, *id);
    }
    let clash = |id: &ListenerId| {
        let listener = &listeners[id.0 as usize];
        Some((*id, ports.get(&listener.spec().port)?.clash(listener, *id)?))
    };
    ids.iter().filter_map(clash).collect()
}

/// Who holds what on one port. Each list has the holders in order.
#[derive(Default)]
struct PortClaims {
    http: BTreeMap<Hostname, Vec<ListenerId>>,
    https: BTreeMap<Hostname, Vec<ListenerId>>,
    tls: BTreeMap<Hostname, Vec<ListenerId>>,
    tcp: Vec<ListenerId>,
    udp: Vec<ListenerId>,
}

impl PortClaims {
    fn add(&mut self, listener: &ListenerState, id: ListenerId) {
        let named = match listener.spec().protocol {
            Protocol::Http => &mut self.http,
            Protocol::Https => &mut self.https,
            Protocol::Tls => &mut self.tls,
            Protocol::Tcp => return self.tcp.push(id),
            Protocol::Udp => return self.udp.push(id),
            Protocol::Other(_) => return,
        };
        named.entry(listener.hostname.clone()).or_default().push(id);
    }

    /// With whom a listener cannot share the port, other than itself.
    fn clash(&self, listener: &ListenerState, id: ListenerId) -> Option<Conflict> {
        let protocol = self.protocol_clash(&listener.spec().protocol, id);
        if let Some(with) = protocol {
            return Some(Conflict { reason: reason::LISTENER_PROTOCOL_CONFLICT, with });
        }
        let same = self.same_protocol(&listener.spec().protocol)?.get(&listener.hostname)?;
        let with = same.iter().copied().find(|other| *other != id)?;
        Some(Conflict { reason: reason::LISTENER_HOSTNAME_CONFLICT, with })
    }

    fn same_protocol(&self, protocol: &Protocol) -> Option<&BTreeMap<Hostname, Vec<ListenerId>>> {
        match protocol {
            Protocol::Http => Some(&self.http),
            Protocol::Https => Some(&self.https),
            Protocol::Tls => Some(&self.tls),
            _ => None,
        }
    }

    fn protocol_clash(&self, protocol: &Protocol, id: ListenerId) -> Option<ListenerId> {
        let first = |named: &BTreeMap<Hostname, Vec<ListenerId>>| named.values().flatten().min().copied();
        let (tcp, http) = (self.tcp.iter().copied().find(|other| *other != id), first(&self.http));
        match protocol {
            Protocol::Udp => self.udp.iter().copied().find(|other| *other != id),
            Protocol::Tcp => tcp.or(http).or(first(&self.https)).or(first(&self.tls)),
            Protocol::Http => tcp.or(first(&self.https)).or(first(&self.tls)),
            Protocol::Https | Protocol::Tls => tcp.or(http),
            Protocol::Other(_) => None,
        }
    }
}
