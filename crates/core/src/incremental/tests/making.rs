//! Random objects and changes from small sets of names, so that they often affect each other.

use crate::attachment::Scope;
use crate::health::{AddressHealth, HealthState, ObservedHealth};
use crate::model::*;
use crate::publication::PublicationSettings;
use crate::publication::domains::DomainFilter;
use crate::publication::holders::{ObservedNames, RecordOrigin};
use crate::publication::providers::{ProviderZones, PublishingProviders};
use crate::publication::settings::{Profile, Publish, StatusMode};
use crate::routing::{GatewayRequest, Scheme};
use crate::selector::Selector;
use crate::snapshot::{Change, Object, Origin, Visibility};

/// A reproducible random generator: splitmix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 33) as usize % limit.max(1)
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn list<T>(&mut self, most: usize, mut make: impl FnMut(&mut Chance) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }
}

const NAMESPACES: [&str; 3] = ["a", "b", "c"];
const PARENTS: [&str; 3] = ["edge", "west", "own"];
const ROUTES: [&str; 4] = ["r1", "r2", "r3", "r4"];
const PROBED_NAMES: [&str; 7] = ["x.test", "a.x.test", "b.x.test", "b.a.x.test", "c.a.x.test", "y.test", "z.y.test"];
const PROBED: [&str; 5] = ["192.0.2.1", "192.0.2.2", "192.0.2.9", "2001:db8::1", "lb.example.org"];
const SECRETS: [&str; 2] = ["tls", "more"];
const HOSTS: [&str; 12] = [
    "x.test",
    "*.x.test",
    "a.x.test",
    "b.a.x.test",
    "*.a.x.test",
    "*.test",
    "y.test",
    "*.y.test",
    "c.b.a.x.test",
    "z.y.test",
    "-bad",
    "q.z.y.test",
];

/// PublicationSettings of any kind.
pub(super) fn settings(chance: &mut Chance) -> PublicationSettings {
    let domains = match chance.below(6) {
        0 => DomainFilter::new(&["x.test"], &[]),
        1 => DomainFilter::new(&[], &["a.x.test"]),
        _ => DomainFilter::default(),
    };
    PublicationSettings {
        profile: if chance.one_in(12) { Profile::ExternalDns } else { Profile::Strict },
        publish: if chance.one_in(4) { Publish::Governed } else { Publish::All },
        status: *chance.pick(&[StatusMode::Auto, StatusMode::Auto, StatusMode::Compute, StatusMode::Trust]),
        gateway_name: chance.one_in(10).then(|| "edge".into()),
        gateway_listener_sets: chance.one_in(2),
        require_grants: chance.one_in(8),
        certificate_names: *chance.pick(&[1, 2, 100]),
        domains,
        providers: if chance.one_in(3) { two_providers() } else { PublishingProviders::default() },
        ..PublicationSettings::default()
    }
}

/// The provider that a policy names, which exists or not.
fn provider_name(chance: &mut Chance) -> Option<Str> {
    match chance.below(8) {
        0 => Some("public".into()),
        1 => Some("private".into()),
        2 => Some("default".into()),
        _ => None,
    }
}

/// Two providers, one of which serves fewer zones.
fn two_providers() -> PublishingProviders {
    let provider = |name: &str, zones: &[&str]| ProviderZones {
        name: name.into(),
        zones: zones.iter().map(|zone| Str::from(*zone)).collect(),
    };
    PublishingProviders::new(vec![provider("public", &["a.x.test", "y.test"]), provider("private", &["test"])])
}

pub(super) fn scope(chance: &mut Chance) -> Scope {
    Scope { classes: if chance.one_in(6) { vec!["one".into()] } else { Vec::new() } }
}

pub(super) fn origin(chance: &mut Chance) -> Origin {
    if chance.one_in(3) { Origin::Cluster } else { Origin::Files }
}

/// A change of anything.
pub(super) fn change(chance: &mut Chance) -> Change {
    if chance.one_in(40) {
        let http = Kind::Route(RouteKind::Http);
        let own = [Kind::DnsPolicy, Kind::TlsPolicy, Kind::HostnameGrant];
        let kinds = [own.as_slice(), &[Kind::Gateway, Kind::Namespace, Kind::ListenerSet, http]].concat();
        let sights = [Visibility::Complete, Visibility::NotVisible("forbidden".into())];
        return Change::Sight(*chance.pick(&kinds), chance.pick(&sights).clone());
    }
    let object = object(chance);
    if chance.one_in(4) { Change::Delete(object.object()) } else { Change::Upsert(object) }
}

/// Names that exist beside those of routes: challenges for some of their names, and anything else.
pub(super) fn existing_names(chance: &mut Chance) -> Vec<Str> {
    let name = |chance: &mut Chance| {
        let host = chance.pick(&HOSTS).trim_start_matches("*.");
        match chance.below(4) {
            0 => host.into(),
            1 => format!("deep.er.{host}").into(),
            _ => format!("_acme-challenge.{host}").into(),
        }
    };
    chance.list(3, name)
}

/// What existing records may have been made for.
pub(super) fn observed(chance: &mut Chance) -> ObservedNames {
    let origins = chance.list(4, |chance| {
        let name: Str = (*chance.pick(&HOSTS)).into();
        let kind = *chance.pick(&[None, Some(Kind::Route(RouteKind::Http)), Some(Kind::Route(RouteKind::Tls))]);
        (name, vec![RecordOrigin { namespace: (*chance.pick(&NAMESPACES)).into(), kind }])
    });
    ObservedNames::new(origins.into_iter().collect(), chance.one_in(4))
}

/// What probes found out about any addresses, mostly under one policy.
pub(super) fn health(chance: &mut Chance) -> ObservedHealth {
    let mut observed = ObservedHealth::default();
    for name in PROBED_NAMES {
        for address in PROBED {
            let policy = match chance.one_in(2) {
                true => Key::new("a", "p1"),
                false => Key::new(*chance.pick(&NAMESPACES), *chance.pick(&["p1", "p2"])),
            };
            let state = *chance.pick(&[HealthState::Unhealthy, HealthState::Healthy]);
            let since = *chance.pick(&[1, 2]);
            if chance.one_in(2) {
                let health = AddressHealth { state, since, error: "status 500".into() };
                observed.set(&name.into(), &policy, &address.into(), health);
            }
        }
    }
    observed
}

/// A request for anything.
pub(super) fn request(chance: &mut Chance) -> GatewayRequest {
    let host = |chance: &mut Chance| chance.pick(&HOSTS).trim_start_matches("*.").to_owned();
    GatewayRequest {
        scheme: *chance.pick(&Scheme::ALL),
        host: host(chance),
        sni: chance.one_in(4).then(|| host(chance)),
        port: *chance.pick(&[80, 443, 443, 8080]),
        method: "GET".to_owned(),
        path: chance.pick(&["/", "/a/b"]).to_string(),
        headers: Vec::new(),
        grpc: chance.one_in(4),
    }
}

/// An object of any kind.
pub(super) fn object(chance: &mut Chance) -> Object {
    match chance.below(34) {
        0 => Object::GatewayClass(class(chance)),
        1..=5 => Object::Gateway(gateway(chance)),
        6..=9 => Object::ListenerSet(set(chance)),
        10..=19 => Object::Route(route(chance)),
        20..=21 => Object::ReferenceGrant(grant(chance)),
        22..=23 => Object::Namespace(namespace(chance)),
        24 => Object::Service(Service { meta: meta(chance, &["app"]), ports: Vec::new() }),
        25 => Object::Secret(secret(chance)),
        26 => Object::ConfigMap(ConfigMap { meta: meta(chance, &["ca"]), ca: material(chance) }),
        27..=29 => Object::DnsPolicy(DnsPolicy { provider: provider_name(chance), ..dns_policy(chance) }),
        30..=31 => Object::TlsPolicy(tls_policy(chance)),
        _ => Object::HostnameGrant(hostname_grant(chance)),
    }
}

/// A Gateway and a ListenerSet whose listeners and routes share one Secret.
pub(super) fn shared_secret_world() -> Vec<Object> {
    use crate::publication::tests::world;
    let edge = world::gateway("a/edge", vec![world::https("l1", "*.x.test", "s"), world::https("l2", "*.y.test", "s")]);
    let set = world::listener_set("a/more", "a/edge", vec![world::https("l3", "*.z.test", "s")]);
    let route = |name, host| Object::Route(world::route(name, "a/edge", &[host]));
    let routes = [("a/one", "one.x.test"), ("a/two", "two.x.test"), ("a/three", "three.y.test")];
    let routes = routes.map(|(name, host)| route(name, host));
    [Object::Gateway(world::at(edge, &["192.0.2.1"])), Object::ListenerSet(set)].into_iter().chain(routes).collect()
}

/// A change of one of two TLSPolicies over them, its deletion, or a route that is added or deleted.
pub(super) fn policy_change(chance: &mut Chance) -> Change {
    use crate::publication::tests::world;
    if chance.one_in(5) {
        let route = Object::Route(world::route("a/four", "a/edge", &["four.x.test"]));
        return if chance.one_in(2) { Change::Delete(route.object()) } else { Change::Upsert(route) };
    }
    let (name, kind, target) = *chance.pick(&[("a/p1", "Gateway", "edge"), ("a/p2", "ListenerSet", "more")]);
    let mut policy = world::tls(name, kind, target);
    policy.allow_wildcards = *chance.pick(&[None, Some(true), Some(false)]);
    policy.issuer = chance.one_in(2).then(|| reference(chance, "Issuer", "ca"));
    if let Some(issuer) = &mut policy.issuer {
        issuer.name = (*chance.pick(&["ca", "other"])).into();
    }
    let policy = Object::TlsPolicy(policy);
    if chance.one_in(8) { Change::Delete(policy.object()) } else { Change::Upsert(policy) }
}

/// A Gateway whose wildcards may answer for names, and one name whose Gateway has no policy.
pub(super) fn wildcard_world() -> Vec<Object> {
    use crate::publication::tests::world;
    let wide = world::gateway("a/edge", vec![world::http("l1", "*.x.test"), world::http("l2", "*.a.x.test")]);
    let plain = world::at(world::gateway("a/west", vec![world::http("l1", "*")]), &["192.0.2.7"]);
    let mut policy = dns_policy(&mut Chance(1));
    policy.meta = Meta::named("a", "p1");
    policy.target.object =
        Reference { group: GATEWAY_GROUP.into(), kind: "Gateway".into(), namespace: None, name: "edge".into() };
    (policy.target.section, policy.ttl, policy.exclude_addresses) = (None, None, Vec::new());
    policy.allow_wildcards = Some(true);
    vec![Object::Gateway(wide), Object::Gateway(plain), Object::DnsPolicy(policy)]
}

/// The same with several addresses, and a health check on the policy.
pub(super) fn probed_world() -> Vec<Object> {
    use crate::publication::tests::world;
    let mut objects = wildcard_world();
    for object in &mut objects {
        match object {
            Object::Gateway(gateway) => {
                let addresses = ["192.0.2.1", "192.0.2.2", "2001:db8::1"].map(world::address);
                gateway.status.addresses = addresses.to_vec();
            }
            Object::DnsPolicy(policy) => (policy.allow_wildcards, policy.health_check) = (Some(false), Some(check())),
            _ => {}
        }
    }
    objects
}

/// The policy of [`probed_world`] with or without its check, or a change of a route.
pub(super) fn probed_change(chance: &mut Chance) -> Change {
    let policy = probed_world().into_iter().find(|object| matches!(object, Object::DnsPolicy(_)));
    match policy {
        Some(Object::DnsPolicy(mut policy)) if chance.one_in(4) => {
            policy.health_check = chance.one_in(2).then(check);
            policy.allow_wildcards = *chance.pick(&[Some(true), Some(false)]);
            Change::Upsert(Object::DnsPolicy(policy))
        }
        _ => route_change(chance),
    }
}

/// A route to one of the Gateways of [`wildcard_world`] is added, changed or deleted.
pub(super) fn route_change(chance: &mut Chance) -> Change {
    const DEEP: [&str; 10] = [
        "x.test",
        "b.x.test",
        "a.x.test",
        "c.a.x.test",
        "d.c.a.x.test",
        "e.d.c.a.x.test",
        "*.c.a.x.test",
        "*.b.x.test",
        "f.b.x.test",
        "*.a.x.test",
    ];
    let mut route = route(chance);
    route.kind = RouteKind::Http;
    let name = *chance.pick(&["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"]);
    route.meta = Meta::named(*chance.pick(&["a", "a", "b"]), name);
    if chance.one_in(6) {
        annotate(chance, &mut route.meta);
    }
    let gateway = *chance.pick(&["edge", "edge", "edge", "west"]);
    let (group, namespace) = (GATEWAY_GROUP.into(), Some("a".into()));
    let target = Reference { group, kind: "Gateway".into(), namespace, name: gateway.into() };
    route.parents = vec![ParentRef { target, section: None, port: None }].into();
    route.status = Vec::new().into();
    route.hostnames = vec![WrittenHostname::new(chance.pick::<&str>(&DEEP))].into();
    if chance.one_in(4) { Change::Delete(route.object()) } else { Change::Upsert(Object::Route(route)) }
}

/// Gateways of two namespaces with wildcards, under policies that allow them, and routes of both for the same names.
pub(super) fn granted_world() -> Vec<Object> {
    use crate::publication::tests::world;
    let mut objects = Vec::new();
    for (namespace, address) in [("a", "192.0.2.1"), ("b", "192.0.2.2")] {
        let own = format!("{namespace}/own");
        let listeners = vec![world::https("l1", "*.x.test", "wild"), world::https("l2", "*", "any")];
        objects.push(Object::Gateway(world::at(world::gateway(&own, listeners), &[address])));
        let mut dns = world::dns(&format!("{namespace}/dns"), "Gateway", "own");
        (dns.allow_wildcards, dns.target.section) = (Some(true), Some("l1".into()));
        objects.push(Object::DnsPolicy(dns));
        let tls =
            TlsPolicy { allow_wildcards: Some(true), ..world::tls(&format!("{namespace}/tls"), "Gateway", "own") };
        objects.push(Object::TlsPolicy(tls));
        for (name, host) in [("r1", "a.x.test"), ("r2", "*.y.test"), ("r3", "b.a.x.test"), ("r4", "z.y.test")] {
            objects.push(Object::Route(world::route(&format!("{namespace}/{name}"), &own, &[host])));
        }
    }
    objects
}

/// A HostnameGrant, the labels of a Namespace, or whether these are visible changes.
pub(super) fn grant_change(chance: &mut Chance) -> Change {
    if chance.one_in(12) {
        let sights = [Visibility::Complete, Visibility::Complete, Visibility::NotVisible("forbidden".into())];
        return Change::Sight(*chance.pick(&[Kind::HostnameGrant, Kind::Namespace]), chance.pick(&sights).clone());
    }
    let object = match chance.below(4) {
        0 => Object::Namespace(namespace(chance)),
        _ => Object::HostnameGrant(HostnameGrant {
            meta: Meta::named("", *chance.pick(&["g1", "g2", "g3"])),
            ..hostname_grant(chance)
        }),
    };
    if chance.one_in(4) { Change::Delete(object.object()) } else { Change::Upsert(object) }
}

pub(super) fn hostname_grant(chance: &mut Chance) -> HostnameGrant {
    let mut meta = meta(chance, &["g1", "g2", "g3"]);
    meta.key.namespace = "".into();
    let text: &str = chance.pick::<&str>(&["team=red", "team!=red", ""]);
    let selector = chance.one_in(3).then(|| Selector::parse(text).unwrap());
    HostnameGrant {
        meta,
        hostnames: chance.list(3, |chance| WrittenHostname::new(chance.pick::<&str>(&HOSTS))),
        namespaces: GrantedNamespaces { names: chance.list(2, |chance| (*chance.pick(&NAMESPACES)).into()), selector },
    }
}

fn meta(chance: &mut Chance, names: &[&str]) -> Meta {
    let mut meta = Meta::named(*chance.pick(&NAMESPACES), *chance.pick(names));
    meta.created = chance.one_in(3).then(|| chance.below(3) as i64);
    meta.generation = chance.one_in(3).then_some(2);
    if chance.one_in(20) {
        let field = crate::diagnostic::FieldPath::of("spec.field");
        meta.invalid = Some(Box::new(InvalidField {
            reason: crate::reason::INVALID_FIELD,
            field,
            message: "is not valid".to_owned(),
        }));
    }
    if chance.one_in(8) {
        meta.labels.insert("team".into(), (*chance.pick(&["red", "blue"])).into());
    }
    meta
}

fn annotate(chance: &mut Chance, meta: &mut Meta) {
    const NOTES: [(&str, &str); 13] = [
        ("hostname", "outside.test"),
        ("target", "a.x.test"),
        ("target", "y.test"),
        ("target", "q.a.x.test"),
        ("hostname", "n.x.test"),
        ("hostname", "a.x.test,m.y.test"),
        ("target", "192.0.2.9"),
        ("target", "lb.example.net"),
        ("target", "bad target,192.0.2.8"),
        ("ttl", "60"),
        ("set-identifier", "blue"),
        ("target-strategy", "merge"),
        ("controller", "other"),
    ];
    for _ in 0..chance.below(3) {
        let (name, value) = *chance.pick(&NOTES);
        meta.annotations.insert(format!("external-dns.kubernetes.io/{name}").into(), value.into());
    }
}

fn class(chance: &mut Chance) -> GatewayClass {
    let name = *chance.pick(&["one", "two"]);
    let controller = (*chance.pick(&["example.test/controller", "gatepost.dev/gateway"])).into();
    GatewayClass {
        meta: Meta::named("", name),
        controller,
        features: Vec::new(),
        conditions: if chance.one_in(3) { conditions(chance) } else { Vec::new().into() },
    }
}

fn gateway(chance: &mut Chance) -> Gateway {
    let mut meta = meta(chance, &["edge", "west"]);
    if chance.one_in(6) {
        annotate(chance, &mut meta);
    }
    let validation = |chance: &mut Chance| ClientValidation {
        ca_certificates: vec![reference(chance, "ConfigMap", "ca")],
        mode: "AllowValidOnly".into(),
    };
    Gateway {
        class: (*chance.pick(&["one", "one", "two"])).into(),
        listeners: chance.list(4, listener),
        wished_addresses: chance.list(1, address),
        allowed_listeners: admission(chance),
        parameters: chance.one_in(15).then(|| reference(chance, "ConfigMap", "parameters")),
        frontend: FrontendTls { default: chance.one_in(10).then(|| validation(chance)), per_port: Vec::new() },
        status: GatewayStatus {
            conditions: if chance.one_in(4) { conditions(chance) } else { Vec::new().into() },
            addresses: chance.list(2, address),
            listeners: if chance.one_in(6) { chance.list(2, told) } else { Vec::new() },
        },
        meta,
    }
}

fn told(chance: &mut Chance) -> ListenerStatus {
    ListenerStatus { name: section(chance), conditions: conditions(chance) }
}

fn address(chance: &mut Chance) -> Address {
    const VALUES: [&str; 7] =
        ["192.0.2.1", "192.0.2.2", "2001:db8::1", "lb.example.org", "not an address", "a.x.test", "z.y.test"];
    let value = *chance.pick(&VALUES);
    let kind = if chance.one_in(8) { "NamedAddress" } else { "IPAddress" };
    Address { kind: kind.into(), value: value.into(), routability: chance.one_in(8).then(|| "Cluster".into()) }
}

fn conditions(chance: &mut Chance) -> Conditions {
    let mut condition = Condition::new("Accepted", !chance.one_in(4), "Why", "because");
    condition.observed_generation = chance.one_in(2).then(|| 1 + chance.below(2) as i64);
    let conflicted = chance.one_in(8).then(|| Condition::new("Conflicted", true, "HostnameConflict", "because"));
    [condition].into_iter().chain(conflicted).collect::<Vec<_>>().into()
}

fn section(chance: &mut Chance) -> Str {
    (*chance.pick(&["l1", "l2", "l3", "l4"])).into()
}

fn listener(chance: &mut Chance) -> Listener {
    let protocol = *chance.pick(&["HTTP", "HTTP", "HTTPS", "HTTPS", "TLS", "TCP", "QUIC"]);
    let mode = *chance.pick(&["Terminate", "Terminate", "Passthrough"]);
    let mode = if mode == "Terminate" { TlsMode::Terminate } else { TlsMode::Passthrough };
    let tls = matches!(protocol, "HTTPS" | "TLS").then(|| ListenerTls {
        mode,
        certificates: chance.list(2, |chance| {
            let name = *chance.pick(&SECRETS);
            reference(chance, "Secret", name)
        }),
        options: 0,
    });
    Listener {
        name: section(chance),
        hostname: chance.one_in(4).then_some(()).map_or_else(|| Some(host(chance)), |()| None),
        port: *chance.pick(&[80, 443]),
        protocol: Protocol::parse(protocol),
        tls,
        allowed_routes: AllowedRoutes {
            namespaces: if chance.one_in(2) { Admission::All } else { admission(chance) },
            kinds: if chance.one_in(8) { vec![(GATEWAY_GROUP.into(), "HTTPRoute".into())] } else { Vec::new() },
        },
        has_filters: false,
    }
}

fn host(chance: &mut Chance) -> WrittenHostname {
    let text: &str = chance.pick::<&str>(&HOSTS);
    WrittenHostname::new(text)
}

fn admission(chance: &mut Chance) -> Admission {
    match chance.below(6) {
        0 => Admission::Same,
        1 | 2 => Admission::Selector(Selector::parse("team=red").ok()),
        3 => Admission::None,
        _ => Admission::All,
    }
}

fn reference(chance: &mut Chance, kind: &str, name: &str) -> Reference {
    let namespace = chance.one_in(4).then(|| Str::from(*chance.pick(&NAMESPACES)));
    Reference { group: "".into(), kind: kind.into(), namespace, name: name.into() }
}

fn parent_reference(chance: &mut Chance) -> Reference {
    let kind = *chance.pick(&[Kind::Gateway, Kind::Gateway, Kind::ListenerSet, Kind::XListenerSet, Kind::Service]);
    Reference {
        group: kind.group().into(),
        kind: kind.as_str().into(),
        namespace: (!chance.one_in(4)).then(|| Str::from(*chance.pick(&NAMESPACES[..2]))),
        name: (*chance.pick(&PARENTS)).into(),
    }
}

fn set(chance: &mut Chance) -> ListenerSet {
    let kind = if chance.one_in(6) { Kind::XListenerSet } else { Kind::ListenerSet };
    let mut meta = meta(chance, &["own", "edge"]);
    if chance.one_in(6) {
        annotate(chance, &mut meta);
    }
    let namespace = (!chance.one_in(4)).then(|| Str::from(*chance.pick(&NAMESPACES[..2])));
    let name = (*chance.pick(&["edge", "west"])).into();
    ListenerSet {
        kind,
        meta,
        parent: Reference { group: GATEWAY_GROUP.into(), kind: "Gateway".into(), namespace, name },
        listeners: chance.list(3, listener),
        conditions: if chance.one_in(4) { conditions(chance) } else { Vec::new().into() },
        listener_status: if chance.one_in(8) { chance.list(2, told) } else { Vec::new() },
    }
}

fn route(chance: &mut Chance) -> Route {
    let mut meta = meta(chance, &ROUTES);
    if chance.one_in(3) {
        annotate(chance, &mut meta);
    }
    let kinds = [RouteKind::Http, RouteKind::Http, RouteKind::Http, RouteKind::Grpc, RouteKind::Tls, RouteKind::Tcp];
    let kind = *chance.pick(&kinds);
    let parents = chance.list(3, |chance| ParentRef {
        target: parent_reference(chance),
        section: chance.one_in(5).then(|| section(chance)),
        port: chance.one_in(8).then_some(443),
    });
    let status = |chance: &mut Chance, parent: &ParentRef| ParentStatus {
        parent: parent.clone(),
        controller: "example.test/controller".into(),
        conditions: conditions(chance).iter().cloned().collect(),
    };
    let backend = |chance: &mut Chance| BackendRef {
        target: reference(chance, "Service", "app"),
        port: Some(80),
        weight: 1,
        filters: Vec::new().into(),
    };
    let told: Vec<&ParentRef> = parents.iter().filter(|_| chance.one_in(3)).collect();
    let status: Vec<ParentStatus> = told.into_iter().map(|parent| status(chance, parent)).collect();
    Route {
        kind,
        meta,
        hostnames: if kind.has_hostnames() { chance.list(3, host).into() } else { Vec::new().into() },
        rules: vec![Rule { backends: chance.list(1, backend).into(), ..Rule::default() }].into(),
        parents: parents.into(),
        status: status.into(),
    }
}

fn grant(chance: &mut Chance) -> ReferenceGrant {
    let from = |chance: &mut Chance| GrantFrom {
        group: GATEWAY_GROUP.into(),
        kind: (*chance.pick(&["Gateway", "ListenerSet", "HTTPRoute"])).into(),
        namespace: (*chance.pick(&NAMESPACES)).into(),
    };
    let to = |chance: &mut Chance| GrantTo {
        group: "".into(),
        kind: (*chance.pick(&["Secret", "Service", "ConfigMap"])).into(),
        name: None,
    };
    ReferenceGrant { meta: meta(chance, &["g1", "g2"]), from: chance.list(2, from), to: chance.list(2, to) }
}

fn namespace(chance: &mut Chance) -> Namespace {
    let mut namespace = Namespace { meta: Meta::named("", *chance.pick(&NAMESPACES)) };
    if chance.one_in(2) {
        namespace.meta.labels.insert("team".into(), "red".into());
    }
    namespace
}

fn material(chance: &mut Chance) -> Material {
    match chance.below(3) {
        0 => Material::Missing,
        1 => Material::Malformed("torn".into()),
        _ => Material::Present(Certificate::default()),
    }
}

fn secret(chance: &mut Chance) -> Secret {
    Secret { meta: meta(chance, &SECRETS), kind: "kubernetes.io/tls".into(), certificate: material(chance) }
}

fn target(chance: &mut Chance) -> PolicyTarget {
    let mut object = parent_reference(chance);
    object.namespace = None;
    PolicyTarget { object, section: chance.one_in(3).then(|| section(chance)) }
}

fn dns_policy(chance: &mut Chance) -> DnsPolicy {
    DnsPolicy {
        meta: meta(chance, &["p1", "p2"]),
        target: target(chance),
        allow_wildcards: *chance.pick(&[None, Some(true), Some(false)]),
        ttl: *chance.pick(&[None, None, Some(60), Some(0)]),
        exclude_addresses: match chance.below(10) {
            0 | 1 => vec!["192.0.2.1".into()],
            2 => vec!["10.0.0.0/99".into()],
            _ => Vec::new(),
        },
        health_check: chance.one_in(4).then(check),
        provider: None,
    }
}

fn check() -> HealthCheck {
    HealthCheck {
        protocol: "HTTP".into(),
        port: 80,
        path: "/".into(),
        interval: 60,
        timeout: 5,
        failure_threshold: 3,
        success_threshold: 1,
        expected_statuses: vec![],
        skips_verification: false,
        headers: None,
    }
}

fn tls_policy(chance: &mut Chance) -> TlsPolicy {
    TlsPolicy {
        meta: meta(chance, &["p1", "p2"]),
        target: target(chance),
        allow_wildcards: *chance.pick(&[None, Some(true), Some(false)]),
        issuer: chance.one_in(2).then(|| reference(chance, "Issuer", "ca")),
        duration: chance.one_in(6).then_some(10),
        renew_before: chance.one_in(6).then_some(20),
        private_key: Vec::new(),
    }
}
