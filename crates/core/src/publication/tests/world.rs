//! Objects for tests, and what is desired for them.

use crate::attachment::{Scope, Topology};
use crate::model::*;
use crate::publication::{self, Desired, PublicationSettings};
use crate::snapshot::{Object, Snapshot};

/// `namespace/name` as a key.
pub(crate) fn key(text: &str) -> Key {
    let (namespace, name) = text.split_once('/').expect("namespace/name");
    Key::new(namespace, name)
}

fn meta(text: &str) -> Meta {
    let key = key(text);
    Meta { created: Some(100), ..Meta::named(key.namespace, key.name) }
}

/// A Gateway with the address 192.0.2.1.
pub(crate) fn gateway(name: &str, listeners: Vec<Listener>) -> Gateway {
    Gateway {
        meta: meta(name),
        class: "any".into(),
        listeners,
        wished_addresses: vec![],
        allowed_listeners: Admission::All,
        parameters: None,
        frontend: FrontendTls::default(),
        status: GatewayStatus { addresses: vec![address("192.0.2.1")], ..GatewayStatus::default() },
    }
}

/// The same Gateway at other addresses.
pub(crate) fn at(mut gateway: Gateway, addresses: &[&str]) -> Gateway {
    gateway.status.addresses = addresses.iter().map(|value| address(value)).collect();
    gateway
}

/// An address.
pub(crate) fn address(value: &str) -> Address {
    let kind = if crate::names::is_ip(value) { "IPAddress" } else { "Hostname" };
    Address { kind: kind.into(), value: value.into(), routability: None }
}

/// An HTTP listener that takes routes from everywhere; `*` leaves the hostname out.
pub(crate) fn http(name: &str, hostname: &str) -> Listener {
    Listener {
        name: name.into(),
        hostname: (hostname != "*").then(|| WrittenHostname::new(hostname)),
        port: 80,
        protocol: Protocol::Http,
        tls: None,
        allowed_routes: AllowedRoutes { namespaces: Admission::All, kinds: vec![] },
        has_filters: false,
    }
}

/// An HTTPS listener with its certificate in a Secret of its own namespace.
pub(crate) fn https(name: &str, hostname: &str, secret: &str) -> Listener {
    let certificate = Reference { group: "".into(), kind: "Secret".into(), namespace: None, name: secret.into() };
    let tls = ListenerTls { mode: TlsMode::Terminate, certificates: vec![certificate], options: 0 };
    Listener { port: 443, protocol: Protocol::Https, tls: Some(tls), ..http(name, hostname) }
}

/// A ListenerSet of a Gateway.
pub(crate) fn listener_set(name: &str, gateway: &str, listeners: Vec<Listener>) -> ListenerSet {
    ListenerSet {
        kind: Kind::ListenerSet,
        meta: meta(name),
        parent: reference("Gateway", gateway),
        listeners,
        conditions: Default::default(),
        listener_status: vec![],
    }
}

/// An HTTPRoute of a Gateway.
pub(crate) fn route(name: &str, gateway: &str, hostnames: &[&str]) -> Route {
    let mut route = Route {
        kind: RouteKind::Http,
        meta: meta(name),
        parents: Default::default(),
        hostnames: hostnames.iter().map(|text| WrittenHostname::new(text)).collect(),
        rules: Default::default(),
        status: Default::default(),
    };
    crate::model::push(&mut route.parents, parent("Gateway", gateway));
    route
}

/// A reference to a parent.
pub(crate) fn parent(kind: &str, name: &str) -> ParentRef {
    ParentRef { target: reference(kind, name), section: None, port: None }
}

fn reference(kind: &str, name: &str) -> Reference {
    let key = key(name);
    Reference { group: GATEWAY_GROUP.into(), kind: kind.into(), namespace: Some(key.namespace), name: key.name }
}

/// A DNSPolicy for an object of its namespace.
pub(crate) fn dns(name: &str, kind: &str, target: &str) -> DnsPolicy {
    DnsPolicy {
        meta: meta(name),
        target: target_ref(kind, target),
        allow_wildcards: None,
        ttl: None,
        exclude_addresses: vec![],
        health_check: None,
        provider: None,
    }
}

/// A TLSPolicy for an object of its namespace.
pub(crate) fn tls(name: &str, kind: &str, target: &str) -> TlsPolicy {
    TlsPolicy {
        meta: meta(name),
        target: target_ref(kind, target),
        allow_wildcards: None,
        issuer: None,
        duration: None,
        renew_before: None,
        private_key: vec![],
    }
}

/// A HostnameGrant for namespaces by name.
pub(crate) fn grant(name: &str, hostnames: &[&str], namespaces: &[&str]) -> HostnameGrant {
    HostnameGrant {
        meta: Meta { created: Some(100), ..Meta::named("", name) },
        hostnames: hostnames.iter().map(|text| WrittenHostname::new(text)).collect(),
        namespaces: GrantedNamespaces {
            names: namespaces.iter().map(|name| Str::from(*name)).collect(),
            selector: None,
        },
    }
}

/// The same for namespaces with labels, instead of those by name.
pub(crate) fn selecting(mut grant: HostnameGrant, selector: &str) -> HostnameGrant {
    let selector = crate::selector::Selector::parse(selector).expect("a selector");
    grant.namespaces = GrantedNamespaces { names: Vec::new(), selector: Some(selector) };
    grant
}

/// A Namespace with a label `team`.
pub(crate) fn namespace(name: &str, team: &str) -> Namespace {
    let mut meta = Meta::named("", name);
    meta.labels.insert("team".into(), team.into());
    Namespace { meta }
}

fn target_ref(kind: &str, name: &str) -> PolicyTarget {
    let object = Reference { group: GATEWAY_GROUP.into(), kind: kind.into(), namespace: None, name: name.into() };
    PolicyTarget { object, section: None }
}

/// Adds an annotation of external-dns to a route.
pub(crate) fn annotated(mut route: Route, name: &str, value: &str) -> Route {
    let key = format!("{}{name}", crate::publication::settings::GA_PREFIX);
    route.meta.annotations.insert(key.into(), value.into());
    route
}

/// Objects of several kinds in one list.
#[macro_export]
macro_rules! objects {
    ($($object:expr),* $(,)?) => { vec![$($crate::publication::tests::world::Known::from($object).0),*] };
}

/// An object of any kind.
pub(crate) struct Known(pub(crate) Object);

macro_rules! known {
    ($($kind:ident $variant:ident)*) => { $(impl From<$kind> for Known {
        fn from(object: $kind) -> Self {
            Known(Object::$variant(object))
        }
    })* };
}

known! { Gateway Gateway  ListenerSet ListenerSet  Route Route  DnsPolicy DnsPolicy  TlsPolicy TlsPolicy  GatewayClass GatewayClass
HostnameGrant HostnameGrant  Namespace Namespace }

/// What is desired for objects.
pub(crate) fn desired(objects: Vec<Object>, settings: &PublicationSettings) -> Desired {
    of_snapshot(&Snapshot::of(objects), settings)
}

/// What is desired for a snapshot.
pub(crate) fn of_snapshot(snapshot: &Snapshot, settings: &PublicationSettings) -> Desired {
    let scope = Scope { classes: settings.gateway_classes.clone() };
    publication::build(snapshot, &Topology::build(snapshot, &scope), settings)
}

/// What is desired for objects by the usual settings.
pub(crate) fn plain(objects: Vec<Object>) -> Desired {
    desired(objects, &PublicationSettings::default())
}

/// What is desired for objects where only policies publish.
pub(crate) fn governed(objects: Vec<Object>) -> Desired {
    let publish = crate::publication::settings::Publish::Governed;
    desired(objects, &PublicationSettings { publish, ..PublicationSettings::default() })
}

/// Records in short: `name TYPE target target`.
pub(crate) fn records(desired: &Desired) -> Vec<String> {
    let short = |r: &publication::Record| format!("{} {} {}", r.name, r.kind, r.targets.join(" "));
    desired.records.iter().map(short).collect()
}

/// Certificates in short: `secret name name`.
pub(crate) fn certificates(desired: &Desired) -> Vec<String> {
    let short = |c: &publication::Certificate| format!("{} {}", c.secret, c.dns_names.join(" "));
    desired.certificates.iter().map(short).collect()
}

/// What is withheld in short: `hostname reason`.
pub(crate) fn withheld(desired: &Desired) -> Vec<String> {
    desired.withheld.iter().map(|w| format!("{} {}", w.hostname, w.reason)).collect()
}

/// Diagnostics in short: `object reason`.
pub(crate) fn told(desired: &Desired) -> Vec<String> {
    let object = |d: &crate::diagnostic::Diagnostic| d.object.as_ref().map(ToString::to_string).unwrap_or_default();
    let all = desired.diagnostics.iter();
    all.map(|d| format!("{} {}", object(d), d.reason)).collect()
}

/// One condition of a policy: `status reason message`.
pub(crate) fn condition_of(desired: &Desired, policy: &str, kind: &str) -> String {
    let report = desired.policies.iter().find(|p| p.policy.to_string() == policy).expect(policy);
    let found = condition(&report.conditions, kind);
    found.map(|c| format!("{} {} {}", c.status, c.reason, c.message)).unwrap_or_default()
}
