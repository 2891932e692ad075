//! A tiny builder: one Gateway `infra/edge`, listeners, routes and Services in the same namespace.

use crate::attachment::{Scope, Topology};
use crate::model::*;
use crate::routing::{GatewayRequest, Router, RoutingAnswer, Scheme};
use crate::snapshot::{Object, Snapshot};

#[derive(Clone, Debug, Default)]
pub(super) struct GatewayFixture {
    pub(super) listeners: Vec<Listener>,
    pub(super) routes: Vec<Route>,
    pub(super) services: Vec<String>,
    pub(super) features: Vec<Str>,
}

impl GatewayFixture {
    pub(super) fn new(listeners: Vec<Listener>) -> Self {
        GatewayFixture {
            listeners,
            routes: Vec::new(),
            services: vec!["a".into(), "b".into(), "c".into()],
            features: Vec::new(),
        }
    }

    pub(super) fn with(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let class = GatewayClass {
            meta: Meta::named("", "edge"),
            controller: "example.com/c".into(),
            features: self.features.clone(),
            conditions: Default::default(),
        };
        let gateway = Gateway {
            meta: Meta::named("infra", "edge"),
            class: "edge".into(),
            listeners: self.listeners.clone(),
            wished_addresses: Vec::new(),
            allowed_listeners: Admission::None,
            parameters: None,
            frontend: FrontendTls::default(),
            status: GatewayStatus::default(),
        };
        let service = |name: &String| Service { meta: Meta::named("infra", name.as_str()), ports: Vec::new() };
        let mut objects = vec![Object::GatewayClass(class), Object::Gateway(gateway)];
        objects.extend(self.routes.iter().cloned().map(Object::Route));
        objects.extend(self.services.iter().map(service).map(Object::Service));
        Snapshot::of(objects)
    }

    pub(super) fn router(&self) -> Router {
        let snapshot = self.snapshot();
        let topology = Topology::build(&snapshot, &Scope::default());
        Router::compile(&snapshot, &topology, &Key::new("infra", "edge")).unwrap()
    }

    pub(super) fn ask(&self, request: &GatewayRequest) -> RoutingAnswer {
        self.router().route(request)
    }

    /// Asks for a URL such as `http://www.x.com/a`.
    pub(super) fn get(&self, url: &str) -> RoutingAnswer {
        self.ask(&get(url))
    }
}

pub(super) fn get(url: &str) -> GatewayRequest {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (host, path) = rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
    let scheme = Scheme::parse(scheme).unwrap();
    GatewayRequest {
        scheme,
        host: host.into(),
        sni: None,
        port: scheme.default_port().unwrap_or(9000),
        method: "GET".into(),
        path,
        headers: Vec::new(),
        grpc: false,
    }
}

pub(super) fn listener(name: &str, protocol: &str, port: u16, hostname: &str) -> Listener {
    let tls = |mode| Some(ListenerTls { mode, certificates: Vec::new(), options: 1 });
    Listener {
        name: name.into(),
        hostname: (!hostname.is_empty()).then(|| WrittenHostname::new(hostname)),
        port,
        protocol: Protocol::parse(protocol),
        tls: match protocol {
            "TLS" => tls(TlsMode::Terminate),
            _ => None,
        },
        allowed_routes: AllowedRoutes::default(),
        has_filters: false,
    }
}

pub(super) fn route(kind: RouteKind, name: &str, hostnames: &[&str], rules: Vec<Rule>) -> Route {
    let target =
        Reference { group: GATEWAY_GROUP.into(), kind: "Gateway".into(), namespace: None, name: "edge".into() };
    Route {
        kind,
        meta: Meta::named("infra", name),
        parents: vec![ParentRef { target, section: None, port: None }].into(),
        hostnames: hostnames.iter().map(|h| WrittenHostname::new(h)).collect(),
        rules: rules.into(),
        status: Default::default(),
    }
}

pub(super) fn http(name: &str, hostnames: &[&str], rules: Vec<Rule>) -> Route {
    route(RouteKind::Http, name, hostnames, rules)
}

pub(super) fn aged(mut route: Route, created: i64) -> Route {
    route.meta.created = Some(created);
    route
}

pub(super) fn at(mut route: Route, section: &str) -> Route {
    crate::model::items(&mut route.parents)[0].section = Some(section.into());
    route
}

/// A rule for a path prefix.
pub(super) fn prefix(path: &str, backend: &str) -> Rule {
    matching(vec![by(MatchKind::Prefix, path)], backend)
}

pub(super) fn matching(matches: Vec<HttpMatch>, backend: &str) -> Rule {
    Rule { matches: Matches::Http(matches.into()), backends: vec![to(backend, 1)].into(), ..Rule::default() }
}

pub(super) fn by(kind: MatchKind, path: &str) -> HttpMatch {
    HttpMatch { path: PathMatch { kind, value: path.into() }, ..HttpMatch::default() }
}

pub(super) fn value(name: &str, value: &str) -> ValueMatch {
    ValueMatch { kind: MatchKind::Exact, name: name.into(), value: value.into() }
}

pub(super) fn call(service: Option<&str>, method: Option<&str>, backend: &str) -> Rule {
    let item = GrpcMatch {
        kind: MatchKind::Exact,
        service: service.map(Str::from),
        method: method.map(Str::from),
        headers: Default::default(),
    };
    Rule { matches: Matches::Grpc(vec![item].into()), backends: vec![to(backend, 1)].into(), ..Rule::default() }
}

/// A rule of a TLS, TCP or UDP route.
pub(super) fn everything(backend: &str) -> Rule {
    Rule { backends: vec![to(backend, 1)].into(), ..Rule::default() }
}

pub(super) fn to(backend: &str, weight: u32) -> BackendRef {
    let target = Reference { group: "".into(), kind: "Service".into(), namespace: None, name: backend.into() };
    BackendRef { target, port: Some(8080), weight, filters: Default::default() }
}

/// The first backend of an answer that forwards, or else its outcome.
pub(super) fn end(answer: &RoutingAnswer) -> &str {
    match answer.backends.first() {
        Some(share) => &share.backend.name,
        None => answer.outcome.as_str(),
    }
}
