//! Everything but routes: namespaces, Services, the class, Gateways, ListenerSets, policies.

use std::borrow::Cow;

use gatepost_core::model::{Kind, RouteKind};

use crate::layout::{ACCESS_LABEL, GatewayLayout, Holder, INFRA, ListenerLayout, ListenerProtocol, team_name};
use crate::names;
use crate::random::RandomSequence;
use crate::route::{nobody, parent_ref};
use crate::size::{Addresses, Size};
use crate::wire::*;

/// Seconds into the year at which Gateways and ListenerSets begin, and then routes.
const OLDEST_HOLDER: usize = 100_000;
pub(crate) const OLDEST_ROUTE: usize = 300_000;
const CLASS: &str = "standard";
const POLICY_API: &str = "gatepost.dev/v1alpha1";

/// One revision of a Gateway or ListenerSet.
pub(crate) struct HolderRevision<'a> {
    pub(crate) size: &'a Size,
    /// Which Gateway it belongs to.
    pub(crate) gateway: usize,
    /// Which of the holders it is.
    pub(crate) place: usize,
    pub(crate) holder: Cow<'a, Holder>,
    /// How often its listeners were changed.
    pub(crate) edits: usize,
    /// How often its addresses were changed.
    pub(crate) moves: usize,
    /// Why it is refused, if it is.
    pub(crate) refusal: Option<Refusal>,
}

/// What is wrong with a ListenerSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its namespace is not admitted.
    Namespace,
    /// Its Gateway does not exist.
    Gateway,
    /// Its listener is one that an older holder has.
    Conflict,
}

/// The names of all namespaces, those of teams first.
pub(crate) fn namespace_name(size: &Size, number: usize) -> String {
    match number.checked_sub(size.team_namespaces()) {
        None => team_name(number),
        Some(0) => INFRA.to_owned(),
        Some(_) => crate::layout::CLOSED.to_owned(),
    }
}

pub(crate) fn namespaces(size: &Size) -> usize {
    size.team_namespaces() + 2
}

/// A namespace; `is_admitted` says whether its label lets routes in.
pub(crate) fn namespace(size: &Size, number: usize, is_admitted: bool) -> Object<Nothing, Nothing> {
    let name = namespace_name(size, number);
    let access = if is_admitted { "yes" } else { "no" };
    let labels = vec![(ACCESS_LABEL, access.to_owned()), ("kubernetes.io/metadata.name", name.clone())];
    let metadata = Metadata { labels, ..metadata(size, "", name, 2, number, number) };
    Object { api_version: "v1", kind: "Namespace", metadata, spec: None, status: None }
}

/// Whether a namespace is admitted at first.
pub(crate) fn is_admitted(size: &Size, number: usize) -> bool {
    number <= size.team_namespaces()
}

pub(crate) fn service(size: &Size, number: usize) -> Object<ServiceSpec, Nothing> {
    let metadata = metadata(size, &namespace_name(size, number), "app".to_owned(), 3, number, number);
    let ports = vec![
        Port { name: "main", port: 8080, protocol: "TCP" },
        Port { name: "datagrams", port: 8053, protocol: "UDP" },
    ];
    let spec = ServiceSpec { selector: vec![("app", "app".to_owned())], ports };
    Object { api_version: "v1", kind: "Service", metadata, spec: Some(spec), status: None }
}

pub(crate) fn class(size: &Size) -> Object<ClassSpec, Nothing> {
    let metadata = metadata(size, "", CLASS.to_owned(), 4, 0, 0);
    let spec = ClassSpec { controller_name: CONTROLLER };
    Object { api_version: GATEWAY_API, kind: "GatewayClass", metadata, spec: Some(spec), status: None }
}

/// ListenerSets with a mistake: as many as the share of refused objects asks for.
pub(crate) fn refused_sets(size: &Size) -> usize {
    ((size.gateways * size.sets_per_gateway()) as f64 * size.refused).ceil() as usize
}

/// A ListenerSet with a mistake, younger than all others.
pub(crate) fn refused_set<'a>(size: &'a Size, trees: &[GatewayLayout], number: usize) -> HolderRevision<'a> {
    let gateway = number % size.gateways;
    let refusal = match (number % 2, size.selectors) {
        (0, true) => Refusal::Namespace,
        (0, false) => Refusal::Gateway,
        _ => Refusal::Conflict,
    };
    let owner = &trees[gateway].holders[0];
    let web = owner.listeners.iter().find(|door| door.speech == ListenerProtocol::Web);
    let copied = web.map(|door| ListenerLayout { name: "copy".to_owned(), attached: 0, ..door.clone() });
    let namespace = match refusal {
        Refusal::Namespace => crate::layout::CLOSED.to_owned(),
        _ => team_name(number % size.team_namespaces()),
    };
    let name = format!("refused-{number}");
    let listeners = copied.into_iter().collect();
    let holder = Cow::Owned(Holder { is_gateway: false, namespace, name, listeners, zones: Vec::new() });
    let place = size.sets_per_gateway() + 1 + number;
    HolderRevision { size, gateway, place, holder, edits: 0, moves: 0, refusal: Some(refusal) }
}

impl HolderRevision<'_> {
    pub(crate) fn object(&self) -> Object<HolderSpec, HolderStatus> {
        let holder = &*self.holder;
        let at = names::time(self.age());
        let mut metadata =
            metadata(self.size, &holder.namespace, holder.name.clone(), 5 + self.gateway, self.place, self.age());
        metadata.labels = vec![("tree", crate::layout::gateway_name(self.gateway))];
        metadata.generation = 1 + self.edits;
        Object {
            api_version: GATEWAY_API,
            kind: if holder.is_gateway { "Gateway" } else { "ListenerSet" },
            status: self.size.status.then(|| self.status(metadata.generation, &at)),
            metadata,
            spec: Some(self.spec()),
        }
    }

    /// Gateways are older than ListenerSets, and refused ListenerSets are the youngest.
    fn age(&self) -> usize {
        OLDEST_HOLDER + self.place * self.size.gateways + self.gateway
    }

    fn spec(&self) -> HolderSpec {
        let holder = &*self.holder;
        let is_gateway = holder.is_gateway;
        HolderSpec {
            gateway_class_name: is_gateway.then_some(CLASS),
            parent_ref: (!is_gateway).then(|| self.gateway_ref()),
            allowed_listeners: (is_gateway && self.size.sets_per_gateway() > 0).then(|| allowed(self.size)),
            addresses: if is_gateway && !self.size.status { self.addresses() } else { Vec::new() },
            listeners: holder.listeners.iter().map(|door| listener(self.size, door)).collect(),
        }
    }

    fn gateway_ref(&self) -> ParentRef {
        let name = crate::layout::gateway_name(self.gateway);
        match self.refusal {
            Some(Refusal::Gateway) => nobody(),
            _ => ParentRef { name, ..nobody() },
        }
    }

    fn addresses(&self) -> Vec<WireAddress> {
        let number = self.gateway + self.moves * self.size.gateways;
        let v4 = || WireAddress {
            kind: "IPAddress",
            value: format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255),
        };
        let v6 = || WireAddress { kind: "IPAddress", value: format!("2001:db8::{:x}", number & 0xffff) };
        match self.size.addresses {
            Addresses::V4 => vec![v4()],
            Addresses::Dual => vec![v4(), v6()],
            Addresses::Hostname => vec![WireAddress { kind: "Hostname", value: format!("lb-{number}.balancers.test") }],
        }
    }

    fn status(&self, generation: usize, at: &str) -> HolderStatus {
        let holder = &*self.holder;
        let accepted = match self.refusal {
            None => condition("Accepted", true, "Accepted", at, generation),
            Some(Refusal::Namespace) => condition("Accepted", false, "NotAllowed", at, generation),
            Some(Refusal::Gateway) => condition("Accepted", false, "ParentNotAccepted", at, generation),
            Some(Refusal::Conflict) => condition("Accepted", false, "ListenersNotValid", at, generation),
        };
        let programmed = condition("Programmed", self.refusal.is_none(), "Programmed", at, generation);
        let sets = self.size.sets_per_gateway();
        HolderStatus {
            addresses: if holder.is_gateway { self.addresses() } else { Vec::new() },
            attached_listener_sets: (holder.is_gateway && sets > 0).then_some(sets),
            conditions: vec![accepted, programmed],
            listeners: holder.listeners.iter().map(|door| self.door_status(door, generation, at)).collect(),
        }
    }

    fn door_status(&self, door: &ListenerLayout, generation: usize, at: &str) -> ListenerStatus {
        let told = |kind, holds, yes, no| condition(kind, holds, if holds { yes } else { no }, at, generation);
        let fits = self.refusal.is_none();
        // The Secrets are not in the world: what makes them has not run yet.
        let has_secret = !(self.size.https && door.speech == ListenerProtocol::Web);
        let clashes = self.refusal == Some(Refusal::Conflict);
        let kinds = RouteKind::ALL
            .into_iter()
            .filter(|kind| ListenerProtocol::of(*kind) == door.speech)
            .map(|kind| GroupKind { group: GROUP, kind: kind.as_str() });
        ListenerStatus {
            name: door.name.clone(),
            supported_kinds: kinds.collect(),
            attached_routes: door.attached,
            conditions: vec![
                told("Accepted", fits, "Accepted", "HostnameConflict"),
                told("Programmed", fits && has_secret, "Programmed", "Invalid"),
                told("ResolvedRefs", has_secret, "ResolvedRefs", "InvalidCertificateRef"),
                told("Conflicted", clashes, "HostnameConflict", "NoConflicts"),
            ],
        }
    }
}

/// The policy of a kind about a holder, where it has one.
pub(crate) fn policy(
    size: &Size,
    kind: Kind,
    gateway: usize,
    place: usize,
    holder: &Holder,
) -> Option<Object<PolicySpec, Nothing>> {
    let mut random = RandomSequence::of(size.seed, kind.as_str(), place * size.gateways + gateway);
    if !random.happens(size.policies) {
        return None;
    }
    let is_dns = kind == Kind::DnsPolicy;
    let target = parent_ref(holder);
    let spec = PolicySpec {
        target_ref: WireTargetRef { group: target.group, kind: target.kind, name: target.name },
        allow_wildcard_hosts: random.happens(0.5).then(|| random.happens(0.5)),
        ttl: is_dns.then(|| 30 * (1 + random.below(20))),
        issuer_ref: (!is_dns).then(|| WireTargetRef {
            group: "cert-manager.io",
            kind: "ClusterIssuer",
            name: "main".to_owned(),
        }),
    };
    let (prefix, group) = if is_dns { ("dns", 100_000) } else { ("tls", 200_000) };
    let name = format!("{prefix}-{}", holder.name);
    let metadata = metadata(size, &holder.namespace, name, group + gateway, place, OLDEST_HOLDER + place);
    Some(Object { api_version: POLICY_API, kind: kind.as_str(), metadata, spec: Some(spec), status: None })
}

pub(crate) fn uid(size: &Size, group: usize, number: usize) -> String {
    format!("{:08x}-{:04x}-4000-8{:03x}-{number:012x}", size.seed & 0xffff_ffff, group & 0xffff, group >> 16 & 0xfff)
}

fn metadata(size: &Size, namespace: &str, name: String, group: usize, number: usize, age: usize) -> Metadata {
    Metadata {
        name,
        namespace: namespace.to_owned(),
        uid: uid(size, group, number),
        generation: 1,
        creation_timestamp: names::time(age),
        labels: Vec::new(),
        annotations: Vec::new(),
    }
}

fn allowed(size: &Size) -> Allowed {
    let selector = Selector { match_labels: vec![(ACCESS_LABEL, "yes".to_owned())] };
    let namespaces = match size.selectors {
        true => Namespaces { from: "Selector", selector: Some(selector) },
        false => Namespaces { from: "All", selector: None },
    };
    Allowed { namespaces }
}

fn listener(size: &Size, door: &ListenerLayout) -> WireListener {
    let secret = || NameRef { name: format!("{}-tls", door.name) };
    let tls = match door.speech {
        ListenerProtocol::Web if size.https => Some(Tls { mode: "Terminate", certificate_refs: vec![secret()] }),
        ListenerProtocol::Tls => Some(Tls { mode: "Passthrough", certificate_refs: Vec::new() }),
        _ => None,
    };
    let protocol = match door.speech {
        ListenerProtocol::Web if size.https => "HTTPS",
        ListenerProtocol::Web => "HTTP",
        ListenerProtocol::Tls => "TLS",
        ListenerProtocol::Tcp => "TCP",
        ListenerProtocol::Udp => "UDP",
    };
    WireListener {
        name: door.name.clone(),
        port: door.port,
        protocol,
        hostname: door.zone.as_ref().map(|zone| format!("*.{zone}")),
        allowed_routes: allowed(size),
        tls,
    }
}
