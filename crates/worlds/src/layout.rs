//! Who holds which listeners, and which names belong below them.
//!
//! A tree is one Gateway with its ListenerSets. Its names are zones: domains first, then departments of domains where listeners
//! outnumber them. A listener has the hostname `*.ZONE`; one without hostname takes the zones that have no listener of their
//! own. Everything that is said about attachment here holds by construction and is never computed from rules.

use gatepost_core::model::RouteKind;

use crate::names;
use crate::size::{HOLDER_LIMIT, Size};

/// The label by which namespaces are admitted.
pub(crate) const ACCESS_LABEL: &str = "gateway-access";
/// The namespace of Gateways.
pub(crate) const INFRA: &str = "infra";
/// A namespace that nobody admits by label.
pub(crate) const CLOSED: &str = "closed";

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerProtocol {
    Web,
    Tls,
    Tcp,
    Udp,
}

impl ListenerProtocol {
    pub(crate) fn of(kind: RouteKind) -> ListenerProtocol {
        match kind {
            RouteKind::Http | RouteKind::Grpc => ListenerProtocol::Web,
            RouteKind::Tls => ListenerProtocol::Tls,
            RouteKind::Tcp => ListenerProtocol::Tcp,
            RouteKind::Udp => ListenerProtocol::Udp,
        }
    }
}

/// A listener of a generated Gateway or ListenerSet.
#[derive(Clone, Debug)]
pub(crate) struct ListenerLayout {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) speech: ListenerProtocol,
    /// What its hostname is below; unset means no hostname.
    pub(crate) zone: Option<String>,
    /// How many routes are attached.
    pub(crate) attached: usize,
}

/// A Gateway or ListenerSet.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) is_gateway: bool,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) listeners: Vec<ListenerLayout>,
    /// Zones of the tree that routes of this holder take their names from.
    pub(crate) zones: Vec<usize>,
}

/// A zone and the listeners that take its names.
#[derive(Clone, Debug)]
pub(crate) struct ZoneLayout {
    pub(crate) name: String,
    /// Holder and door of its own listener.
    pub(crate) door: Option<(usize, usize)>,
    /// The zone that it is a department of.
    pub(crate) above: Option<usize>,
}

/// A Gateway, its ListenerSets, and its zones.
#[derive(Clone, Debug)]
pub(crate) struct GatewayLayout {
    /// The Gateway comes first.
    pub(crate) holders: Vec<Holder>,
    pub(crate) zones: Vec<ZoneLayout>,
}

/// Listeners that a Gateway needs for kinds of routes other than those of the web.
pub(crate) fn own_doors(size: &Size) -> Vec<ListenerProtocol> {
    let wanted = |speech: &ListenerProtocol| {
        size.kinds.iter().any(|(kind, weight)| *weight > 0 && ListenerProtocol::of(*kind) == *speech)
    };
    [ListenerProtocol::Tls, ListenerProtocol::Tcp, ListenerProtocol::Udp].into_iter().filter(wanted).collect()
}

impl GatewayLayout {
    /// The tree of one Gateway. The size has been checked.
    pub(crate) fn new(size: &Size, gateway: usize) -> GatewayLayout {
        let domains = (gateway..size.domains).step_by(size.gateways).map(names::domain).collect();
        let mut tree = GatewayLayout { holders: holders(size, gateway), zones: domain_zones(domains) };
        let web = size.listeners - tree.holders[0].listeners.len();
        let closed = web - open_doors(size, web, tree.zones.len());
        tree.add_departments(closed);
        tree.open(size, web, closed);
        tree.settle();
        tree
    }

    /// The listeners of a holder that a route with names in a zone is attached to.
    pub(crate) fn hits(&self, holder: usize, speech: ListenerProtocol, zone: usize) -> Vec<usize> {
        let listeners = &self.holders[holder].listeners;
        let takes_all = |door: &ListenerLayout| door.speech == speech && door.zone.is_none();
        let mut hits: Vec<usize> = (0..listeners.len()).filter(|at| takes_all(&listeners[*at])).collect();
        if speech == ListenerProtocol::Web {
            let own = [Some(zone), self.zones[zone].above];
            let own = own.into_iter().flatten().filter_map(|zone| self.zones[zone].door);
            hits.extend(own.filter(|(at, _)| *at == holder).map(|(_, door)| door));
        }
        hits
    }

    /// Whether a holder has a listener for the web that takes every name.
    pub(crate) fn is_open(&self, holder: usize) -> bool {
        self.holders[holder].listeners.iter().any(|door| door.speech == ListenerProtocol::Web && door.zone.is_none())
    }

    /// Departments of domains, until so many zones have a listener of their own.
    fn add_departments(&mut self, wanted: usize) {
        let domains = self.zones.len();
        for number in 0..wanted.saturating_sub(domains) {
            let above = number % domains;
            let name = format!("{}.{}", names::word(number / domains + 7), self.zones[above].name);
            self.zones.push(ZoneLayout { name, door: None, above: Some(above) });
        }
    }

    /// Gives the holders their listeners for the web, as evenly as their limit allows; `closed` of them have a zone.
    fn open(&mut self, size: &Size, web: usize, closed: usize) {
        let all_open = size.parents > 1;
        let mut left = web;
        let mut zone = 0;
        let count = self.holders.len();
        for at in 0..count {
            let share = left.div_ceil(count - at).min(HOLDER_LIMIT - self.holders[at].listeners.len());
            left -= share;
            for number in 0..share {
                let opens = number == 0 && (all_open || at == 0 && closed < web);
                let port = if all_open && opens { 10_000 + at as u16 } else { web_port(size) };
                let name = if opens { None } else { self.zones.get(zone).map(|zone| zone.name.clone()) };
                if !opens {
                    self.zones[zone].door = Some((at, self.holders[at].listeners.len()));
                    zone += 1;
                }
                self.holders[at].add(ListenerProtocol::Web, port, name);
            }
        }
    }

    /// Tells every holder its zones; those without a listener of their own belong to the Gateway.
    fn settle(&mut self) {
        for (number, zone) in self.zones.iter().enumerate() {
            self.holders[zone.door.map_or(0, |(holder, _)| holder)].zones.push(number);
        }
    }
}

impl Holder {
    fn add(&mut self, speech: ListenerProtocol, port: u16, zone: Option<String>) {
        let name = match speech {
            ListenerProtocol::Web => format!("web-{}", self.listeners.len()),
            ListenerProtocol::Tls => "tls".to_owned(),
            ListenerProtocol::Tcp => "tcp".to_owned(),
            ListenerProtocol::Udp => "udp".to_owned(),
        };
        self.listeners.push(ListenerLayout { name, port, speech, zone, attached: 0 });
    }
}

pub(crate) fn web_port(size: &Size) -> u16 {
    if size.https { 443 } else { 80 }
}

/// How many listeners for the web have no hostname.
fn open_doors(size: &Size, web: usize, domains: usize) -> usize {
    match size.parents {
        1 => usize::from(domains > web),
        _ => 1 + size.sets_per_gateway(),
    }
}

fn domain_zones(domains: Vec<String>) -> Vec<ZoneLayout> {
    domains.into_iter().map(|name| ZoneLayout { name, door: None, above: None }).collect()
}

fn holders(size: &Size, gateway: usize) -> Vec<Holder> {
    let empty = |is_gateway, namespace: String, name: String| Holder {
        is_gateway,
        namespace,
        name,
        listeners: Vec::new(),
        zones: Vec::new(),
    };
    let mut first = empty(true, INFRA.to_owned(), gateway_name(gateway));
    for speech in own_doors(size) {
        let port = match speech {
            ListenerProtocol::Tls => 8443,
            ListenerProtocol::Tcp => 9000,
            ListenerProtocol::Udp | ListenerProtocol::Web => 5300,
        };
        first.add(speech, port, None);
    }
    let sets = size.sets_per_gateway();
    let set = |number: usize| {
        let team = (gateway * sets + number) % size.team_namespaces();
        empty(false, team_name(team), format!("edge-{gateway}-{number}"))
    };
    std::iter::once(first).chain((0..sets).map(set)).collect()
}

pub(crate) fn gateway_name(number: usize) -> String {
    format!("edge-{number}")
}

pub(crate) fn team_name(number: usize) -> String {
    format!("team-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(size: Size) -> GatewayLayout {
        size.check().unwrap();
        GatewayLayout::new(&size, 0)
    }

    #[test]
    fn listeners_are_spread_and_all_there() {
        let tree = tree(Size { listeners: 1000, ..Size::default() });
        let counts: Vec<usize> = tree.holders.iter().map(|holder| holder.listeners.len()).collect();
        assert_eq!((counts.len(), counts.iter().sum::<usize>()), (16, 1000));
        assert!(counts.iter().all(|count| *count <= HOLDER_LIMIT));
        assert_eq!(tree.zones.len(), 1000);
        assert!(tree.zones.iter().all(|zone| zone.door.is_some()));
        assert!((0..16).all(|holder| !tree.is_open(holder)));
    }

    #[test]
    fn few_listeners_leave_the_rest_to_an_open_one() {
        let tree = tree(Size { listeners: 64, ..Size::default() });
        assert_eq!(tree.zones.iter().filter(|zone| zone.door.is_some()).count(), 63);
        assert!(tree.is_open(0));
        assert_eq!(tree.hits(0, ListenerProtocol::Web, 0), [0, 1]);
        assert_eq!(tree.hits(0, ListenerProtocol::Web, 200), [0]);
    }

    #[test]
    fn many_parents_have_an_open_door_each() {
        let tree = tree(Size { listeners: 1000, parents: 16, ..Size::default() });
        assert!((0..16).all(|holder| tree.is_open(holder)));
        assert_eq!(tree.zones.iter().filter(|zone| zone.door.is_some()).count(), 984);
    }

    #[test]
    fn other_protocols_have_doors_of_their_own() {
        let kinds = vec![(RouteKind::Http, 1), (RouteKind::Tls, 1), (RouteKind::Udp, 0)];
        let tree = tree(Size { listeners: 2, kinds, ..Size::default() });
        let speeches: Vec<ListenerProtocol> = tree.holders[0].listeners.iter().map(|door| door.speech).collect();
        assert_eq!(speeches, [ListenerProtocol::Tls, ListenerProtocol::Web]);
        assert_eq!(tree.hits(0, ListenerProtocol::Tls, 5), [0]);
    }
}
