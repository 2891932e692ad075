//! Which listeners of one Gateway conflict with each other.
//!
//! Listeners are grouped by resource: the Gateway first, then its ListenerSets in order of precedence. Across resources
//! the first listener on a port and hostname wins; within one resource a conflict has no winner. A listener that lost
//! does not block others. Lookups use maps, so that the cost grows with the number of listeners and not of pairs.
//! Nothing here looks at routes.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::*;

/// Records conflicts and overlaps among the listeners of one Gateway, which are given in order of precedence.
pub(super) fn resolve(listeners: &mut [Arc<ListenerState>], resources: &[Range<usize>]) {
    let mut clashes: Vec<Clash> = Vec::new();
    let mut holders = PortHolders::new(listeners);
    for resource in resources {
        holders.take(resource.clone(), &mut clashes);
    }
    let mut conflicts = vec![None; listeners.len()];
    clashes.into_iter().for_each(|(place, conflict)| conflicts[place] = Some(conflict));
    let overlaps = holders.overlaps(&conflicts);
    for ((listener, conflict), overlaps) in listeners.iter_mut().zip(conflicts).zip(overlaps) {
        if conflict.is_some() || overlaps.is_some() {
            let listener = Arc::make_mut(listener);
            (listener.conflict, listener.overlaps) = (conflict, overlaps);
        }
    }
}

/// The number of labels of a wildcard as a bit; the highest bit means that many or more.
fn depth(labels: usize) -> u64 {
    1 << labels.min(63)
}

fn dots(name: &str) -> usize {
    name.bytes().filter(|byte| *byte == b'.').count()
}

/// A hostname without the `*` of a wildcard. Only wildcards then begin with a dot, and an unset hostname is empty.
fn short(hostname: &Hostname) -> &str {
    hostname.as_str().strip_prefix('*').unwrap_or(hostname.as_str())
}

/// Every wildcard that contains a hostname and whose depth is in `depths`. `a.b.c` gives `*.b.c`, `*.c`, `*`, all
/// without their `*`.
fn containers(hostname: &Hostname, depths: u64) -> impl Iterator<Item = &str> {
    let name = hostname.as_str();
    let base = name.strip_prefix("*.").unwrap_or(name);
    let mut labels = dots(base) + 1;
    let wildcards = base.bytes().enumerate().filter(|(_, byte)| *byte == b'.').filter_map(move |(dot, _)| {
        labels -= 1;
        (depths & depth(labels) != 0).then(|| &base[dot..])
    });
    wildcards.chain((!hostname.is_any() && depths & depth(0) != 0).then_some(""))
}

type Clash = (usize, Conflict);

/// The listeners that hold ports and hostnames.
struct PortHolders<'a> {
    listeners: &'a [Arc<ListenerState>],
    /// Holders of earlier resources, by port.
    ports: BTreeMap<u16, ProtocolHolders>,
    /// Holders by port, protocol and hostname without the `*` of a wildcard, in order.
    named: HashMap<(u16, HostnameProtocol, &'a str), ShortVec<usize>>,
}

/// The protocols whose listeners are distinguished by hostname.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum HostnameProtocol {
    Http,
    Https,
    Tls,
}

impl HostnameProtocol {
    fn of(protocol: &Protocol) -> Option<Self> {
        match protocol {
            Protocol::Http => Some(HostnameProtocol::Http),
            Protocol::Https => Some(HostnameProtocol::Https),
            Protocol::Tls => Some(HostnameProtocol::Tls),
            _ => None,
        }
    }
}

impl<'a> PortHolders<'a> {
    fn new(listeners: &'a [Arc<ListenerState>]) -> Self {
        PortHolders { listeners, ports: BTreeMap::new(), named: HashMap::with_capacity(listeners.len()) }
    }

    /// Adds the listeners of one resource. Those that conflict with an earlier resource lose; those that conflict with
    /// each other all lose.
    fn take(&mut self, resource: Range<usize>, clashes: &mut Vec<Clash>) {
        let (listeners, start, first) = (self.listeners, resource.start, clashes.len());
        let mut own: BTreeMap<u16, ProtocolHolders> = BTreeMap::new();
        let (mut unconflicted, mut is_crowded) = (Vec::with_capacity(resource.len()), false);
        for place in resource.filter(|place| listeners[*place].refused.is_none()) {
            match self.against_earlier(place, start, &mut is_crowded) {
                Some(conflict) => clashes.push((place, conflict)),
                None => {
                    let spec = listeners[place].spec();
                    own.entry(spec.port).or_default().add(&spec.protocol, place);
                    unconflicted.push(place);
                }
            }
        }
        for place in unconflicted {
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

    fn key(&self, place: usize) -> Option<(u16, HostnameProtocol, &'a str)> {
        let listener = &self.listeners[place];
        Some((listener.spec().port, HostnameProtocol::of(&listener.spec().protocol)?, short(&listener.hostname)))
    }

    /// The conflict of a listener with earlier resources. Without one the listener becomes a holder, possibly next to
    /// another of its own resource.
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

    /// The conflict of a listener with another one of its own resource.
    fn among_themselves(
        &self,
        own: &BTreeMap<u16, ProtocolHolders>,
        place: usize,
        is_crowded: bool,
    ) -> Option<Conflict> {
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

    /// For each TLS listener, another one on its port whose hostname overlaps.
    fn overlaps(&self, conflicts: &[Option<Conflict>]) -> Vec<Option<ListenerId>> {
        let listeners = self.listeners;
        let is_tls = |place: &usize| {
            let is_accepted = listeners[*place].refused.is_none() && conflicts[*place].is_none();
            is_accepted && matches!(listeners[*place].spec().protocol, Protocol::Https | Protocol::Tls)
        };
        let tls: Vec<usize> = (0..listeners.len()).filter(is_tls).collect();
        let wild = tls.iter().map(|place| &listeners[*place].hostname).filter(|hostname| !hostname.is_precise());
        let depths = wild.fold(0, |depths, hostname| depths | depth(dots(short(hostname))));
        let are_some = |protocol| tls.iter().any(|place| listeners[*place].spec().protocol == protocol);
        let protocols: Vec<HostnameProtocol> =
            [(Protocol::Https, HostnameProtocol::Https), (Protocol::Tls, HostnameProtocol::Tls)]
                .into_iter()
                .filter_map(|(protocol, named)| are_some(protocol).then_some(named))
                .collect();
        let other = |place: &usize| {
            let (port, hostname) = (listeners[*place].spec().port, &listeners[*place].hostname);
            // Two listeners of the same protocol never hold the same hostname, since one of them would have lost.
            let own = (protocols.len() > 1).then(|| short(hostname));
            let around = own.into_iter().chain(containers(hostname, depths));
            around
                .filter_map(|name| self.other_holder(&protocols, port, name, *place))
                .next()
                .map(|other| (*place, other))
        };
        let mut overlaps = vec![None; listeners.len()];
        for (place, other) in tls.iter().filter_map(other) {
            overlaps[place] = Some(listeners[other].id);
            overlaps[other].get_or_insert(listeners[place].id);
        }
        overlaps
    }

    /// The first other TLS listener that holds a hostname on a port.
    fn other_holder(&self, protocols: &[HostnameProtocol], port: u16, name: &str, place: usize) -> Option<usize> {
        let holders = protocols.iter().filter_map(|protocol| self.named.get(&(port, *protocol, name)));
        holders.flatten().copied().filter(|other| *other != place).min()
    }

    fn conflict(&self, reason: Reason, with: usize) -> Conflict {
        Conflict { reason, with: self.listeners[with].id }
    }

    /// Removes listeners that lost from the holders.
    fn forget(&mut self, lost: &[Clash]) {
        for (place, _) in lost {
            let Some(key) = self.key(*place) else { continue };
            if let Some(holders) = self.named.get_mut(&key) {
                *holders = holders.iter().copied().filter(|holder| holder != place).collect();
            }
        }
    }
}

/// The listeners that hold a port, by protocol and in order.
#[derive(Default)]
struct ProtocolHolders {
    http: Option<usize>,
    https: Option<usize>,
    tls: Option<usize>,
    tcp: Vec<usize>,
    udp: Vec<usize>,
}

impl ProtocolHolders {
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

    /// Another listener whose protocol cannot share the port with the given one.
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
