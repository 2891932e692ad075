//! Which listeners of one Gateway cannot stand beside each other.
//!
//! Listeners come in resources: the Gateway first, then its ListenerSets in order of precedence. Across resources the first
//! holder of a port and hostname keeps it; inside one resource a conflict has no winner. A listener that lost claims
//! nothing. Claims are kept in maps, so that cost follows the number of listeners and not of pairs.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::*;

/// Marks conflicts and overlaps among the listeners of one Gateway, which come in order of precedence. Those of which nothing
/// else is to be said than before stay as they are.
pub(super) fn resolve(listeners: &mut [Arc<ListenerState>], resources: &[Range<usize>]) {
    let conflicts = conflicts(listeners, resources);
    let overlaps = overlaps(listeners, &conflicts);
    for ((listener, conflict), overlaps) in listeners.iter_mut().zip(conflicts).zip(overlaps) {
        if listener.conflict != conflict || listener.overlaps != overlaps {
            let listener = Arc::make_mut(listener);
            (listener.conflict, listener.overlaps) = (conflict, overlaps);
        }
    }
}

/// With whom each listener conflicts.
fn conflicts(listeners: &[Arc<ListenerState>], resources: &[Range<usize>]) -> Vec<Option<Conflict>> {
    let mut clashes: Vec<Clash> = Vec::new();
    let mut claims = Claims::new(listeners);
    for resource in resources {
        claims.take(resource.clone(), &mut clashes);
    }
    let mut conflicts = vec![None; listeners.len()];
    clashes.into_iter().for_each(|(place, conflict)| conflicts[place] = Some(conflict));
    conflicts
}

/// For each TLS listener, another one on its port whose hostname overlaps.
fn overlaps(listeners: &[Arc<ListenerState>], conflicts: &[Option<Conflict>]) -> Vec<Option<ListenerId>> {
    let is_tls = |place: &usize| {
        let listener = &listeners[*place];
        let is_accepted = listener.refused.is_none() && conflicts[*place].is_none();
        is_accepted && matches!(listener.spec().protocol, Protocol::Https | Protocol::Tls)
    };
    let tls: Vec<usize> = (0..listeners.len()).filter(is_tls).collect();
    let mut named: HashMap<(u16, &str), Few<usize>> = HashMap::with_capacity(tls.len());
    let mut depths = 0;
    for place in &tls {
        let listener = &listeners[*place];
        let name = short(&listener.hostname);
        if !listener.hostname.is_precise() {
            depths |= depth(name);
        }
        named.entry((listener.spec().port, name)).or_default().push(*place);
    }
    let other = |place: &usize| {
        let (port, hostname) = (listeners[*place].spec().port, &listeners[*place].hostname);
        let own = std::iter::once(short(hostname));
        let around = own.chain(containers(hostname).filter(|name| depths & depth(name) != 0));
        let around = around.filter_map(|name| named.get(&(port, name))).flatten();
        around.copied().find(|other| other != place).map(|other| (*place, other))
    };
    let mut overlaps = vec![None; listeners.len()];
    for (place, other) in tls.iter().filter_map(other) {
        overlaps[place] = Some(listeners[other].id);
        overlaps[other].get_or_insert(listeners[place].id);
    }
    overlaps
}

/// How many labels a wildcard has, as a bit; the last one stands for all from there on.
fn depth(short: &str) -> u64 {
    1 << short.bytes().filter(|byte| *byte == b'.').count().min(63)
}

/// A hostname without the `*` of a wildcard, so that it begins with a dot as no other does; that of an unset field is empty.
fn short(hostname: &Hostname) -> &str {
    hostname.as_str().strip_prefix('*').unwrap_or(hostname.as_str())
}

/// Every wider hostname that contains one: `a.b.c` gives `*.b.c`, `*.c`, `*`, all without their `*`.
fn containers(hostname: &Hostname) -> impl Iterator<Item = &str> {
    let name = hostname.as_str();
    let base = name.strip_prefix("*.").unwrap_or(name);
    let wildcards = base.match_indices('.').map(move |(dot, _)| &base[dot..]);
    wildcards.chain((!hostname.is_any()).then_some(""))
}

type Clash = (usize, Conflict);

/// Who holds what.
struct Claims<'a> {
    listeners: &'a [Arc<ListenerState>],
    /// Holders of earlier resources, by port.
    ports: BTreeMap<u16, PortClaims>,
    /// Holders by port, protocol and hostname, in order.
    named: HashMap<(u16, Named, &'a str), Few<usize>>,
}

/// The protocols whose listeners go by hostname.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Named {
    Http,
    Https,
    Tls,
}

impl Named {
    fn of(protocol: &Protocol) -> Option<Self> {
        match protocol {
            Protocol::Http => Some(Named::Http),
            Protocol::Https => Some(Named::Https),
            Protocol::Tls => Some(Named::Tls),
            _ => None,
        }
    }
}

impl<'a> Claims<'a> {
    fn new(listeners: &'a [Arc<ListenerState>]) -> Self {
        Claims { listeners, ports: BTreeMap::new(), named: HashMap::with_capacity(listeners.len()) }
    }

    /// Takes one resource in: those that lose against earlier ones claim nothing, and of those that clash with each other
    /// everybody loses.
    fn take(&mut self, resource: Range<usize>, clashes: &mut Vec<Clash>) {
        let (listeners, start, first) = (self.listeners, resource.start, clashes.len());
        let mut own: BTreeMap<u16, PortClaims> = BTreeMap::new();
        let (mut standing, mut is_crowded) = (Vec::with_capacity(resource.len()), false);
        for place in resource.filter(|place| listeners[*place].refused.is_none()) {
            match self.against_earlier(place, start, &mut is_crowded) {
                Some(conflict) => clashes.push((place, conflict)),
                None => {
                    let spec = listeners[place].spec();
                    own.entry(spec.port).or_default().add(&spec.protocol, place);
                    standing.push(place);
                }
            }
        }
        for place in standing {
            match self.among_themselves(&own, place, is_crowded) {
                Some(conflict) => clashes.push((place, conflict)),
                None => {
                    let spec = listeners[place].spec();
                    self.ports.entry(spec.port).or_default().add(&spec.protocol, place);
                }
            }
        }
        self.forget(&clashes[first..]);
    }

    fn key(&self, place: usize) -> Option<(u16, Named, &'a str)> {
        let listener = &self.listeners[place];
        Some((listener.spec().port, Named::of(&listener.spec().protocol)?, listener.hostname.as_str()))
    }

    /// With whom of earlier resources a listener cannot stand. Where it can it is a holder from now on, perhaps beside another
    /// one of its own resource.
    fn against_earlier(&mut self, place: usize, start: usize, is_crowded: &mut bool) -> Option<Conflict> {
        let spec = self.listeners[place].spec();
        let clash = self.ports.get(&spec.port).and_then(|port| port.clash(&spec.protocol, place));
        if let Some(with) = clash {
            return Some(self.conflict(reason::LISTENER_PROTOCOL_CONFLICT, with));
        }
        let key = self.key(place)?;
        let holders = self.named.entry(key).or_default();
        if let Some(with) = holders.first().copied().filter(|with| *with < start) {
            return Some(self.conflict(reason::LISTENER_HOSTNAME_CONFLICT, with));
        }
        holders.push(place);
        *is_crowded |= holders.len() > 1;
        None
    }

    /// With whom of its own resource a listener cannot stand.
    fn among_themselves(&self, own: &BTreeMap<u16, PortClaims>, place: usize, is_crowded: bool) -> Option<Conflict> {
        let spec = self.listeners[place].spec();
        if let Some(with) = own.get(&spec.port).and_then(|port| port.clash(&spec.protocol, place)) {
            return Some(self.conflict(reason::LISTENER_PROTOCOL_CONFLICT, with));
        }
        if !is_crowded {
            return None;
        }
        let holders = self.named.get(&self.key(place)?)?;
        let with = holders.iter().copied().find(|other| *other != place)?;
        Some(self.conflict(reason::LISTENER_HOSTNAME_CONFLICT, with))
    }

    fn conflict(&self, reason: Reason, with: usize) -> Conflict {
        Conflict { reason, with: self.listeners[with].id }
    }

    /// Takes those that have lost out of the holders.
    fn forget(&mut self, lost: &[Clash]) {
        for (place, _) in lost {
            let Some(key) = self.key(*place) else { continue };
            if let Some(holders) = self.named.get_mut(&key) {
                *holders = holders.iter().copied().filter(|holder| holder != place).collect();
            }
        }
    }
}

/// Who holds a port, by protocol; in order.
#[derive(Default)]
struct PortClaims {
    http: Option<usize>,
    https: Option<usize>,
    tls: Option<usize>,
    tcp: Vec<usize>,
    udp: Vec<usize>,
}

impl PortClaims {
    fn add(&mut self, protocol: &Protocol, place: usize) {
        match protocol {
            Protocol::Http => _ = self.http.get_or_insert(place),
            Protocol::Https => _ = self.https.get_or_insert(place),
            Protocol::Tls => _ = self.tls.get_or_insert(place),
            Protocol::Tcp => self.tcp.push(place),
            Protocol::Udp => self.udp.push(place),
            Protocol::Other(_) => {}
        }
    }

    /// Whose protocol cannot share the port with that of a listener, other than itself.
    fn clash(&self, protocol: &Protocol, place: usize) -> Option<usize> {
        let tcp = self.tcp.iter().copied().find(|other| *other != place);
        match protocol {
            Protocol::Udp => self.udp.iter().copied().find(|other| *other != place),
            Protocol::Tcp => tcp.or(self.http).or(self.https).or(self.tls),
            Protocol::Http => tcp.or(self.https).or(self.tls),
            Protocol::Https | Protocol::Tls => tcp.or(self.http),
            Protocol::Other(_) => None,
        }
    }
}
