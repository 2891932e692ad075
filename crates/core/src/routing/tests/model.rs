//! Routing against a model of plain loops: every listener, every route, every rule, compared by what the specification
//! lists. The model shares only the attachment verdicts with the code under test.

use std::cmp::Reverse;

use proptest::prelude::*;

use super::world::*;
use crate::attachment::{ListenerId, ListenerState, RouteState, Scope, Topology};
use crate::model::*;
use crate::names::{Hostname, host_of, is_ip};
use crate::routing::{GatewayRequest, HostIndex, RoutingOutcome, Scheme};

const NAMES: [&str; 9] =
    ["*.com", "*.x.com", "x.com", "a.x.com", "*.a.x.com", "b.a.x.com", "*.y.org", "y.org", "w.y.org"];
const HOSTS: [&str; 10] =
    ["x.com", "a.x.com", "A.x.com:80", "b.a.x.com", "c.b.a.x.com", "z.x.com", "y.org", "w.y.org:1", "192.0.2.1", ""];
const PATHS: [&str; 7] = ["/", "/a", "/a/", "/a/b", "/ab", "/a/b/c", "/s.S/M"];

/// What the model says: outcome, listener, route, rule.
type Said = (RoutingOutcome, Option<ListenerId>, Option<ObjectRef>, Option<usize>);

/// How a rule compares with others; the greatest wins.
type Merit = (bool, usize, usize, Vec<usize>, Reverse<(i64, String, usize, usize)>);

struct Model<'a> {
    topology: &'a Topology,
    request: &'a GatewayRequest,
    host: String,
    sni: String,
}

impl Model<'_> {
    fn say(&self) -> Said {
        match self.request.scheme {
            Scheme::Http => match (self.on_port(&["HTTP"]).is_empty(), self.listener(&["HTTP"], &self.host)) {
                (true, _) => (RoutingOutcome::Rejected, None, None, None),
                (_, None) => (RoutingOutcome::NotFound, None, None, None),
                (_, Some(id)) => self.rule(id, RoutingOutcome::NotFound),
            },
            Scheme::Https => self.https(),
            Scheme::Tls => match self.listener(&["TLS", "HTTPS"], &self.sni) {
                None => (RoutingOutcome::Rejected, None, None, None),
                Some(id) if self.protocol(id) == "HTTPS" => (RoutingOutcome::Rejected, Some(id), None, None),
                Some(id) => self.rule(id, RoutingOutcome::Rejected),
            },
            Scheme::Tcp | Scheme::Udp => {
                let protocol = self.request.scheme.as_str().to_uppercase();
                match self.listener(&[&protocol], "") {
                    None => (RoutingOutcome::Rejected, None, None, None),
                    Some(id) => self.rule(id, RoutingOutcome::Rejected),
                }
            }
        }
    }

    fn https(&self) -> Said {
        let Some(id) = self.listener(&["HTTPS", "TLS"], &self.sni) else {
            return (RoutingOutcome::Rejected, None, None, None);
        };
        if self.protocol(id) == "TLS" {
            return self.rule(id, RoutingOutcome::Rejected);
        }
        match self.listener(&["HTTPS"], &self.host) {
            None => (RoutingOutcome::NotFound, Some(id), None, None),
            Some(other) if other != id => (RoutingOutcome::Misdirected, Some(id), None, None),
            Some(_) => self.rule(id, RoutingOutcome::NotFound),
        }
    }

    fn protocol(&self, id: ListenerId) -> &str {
        self.topology.listener(id).spec().protocol.as_str()
    }

    fn on_port(&self, protocols: &[&str]) -> Vec<(ListenerId, &ListenerState)> {
        let meant = |l: &ListenerState| {
            l.is_serving() && l.spec().port == self.request.port && protocols.contains(&l.spec().protocol.as_str())
        };
        self.topology.listener_ids().filter(|(_, l)| meant(l)).collect()
    }

    /// The most specific listener; among protocols with equal names the first that is listed.
    fn listener(&self, protocols: &[&str], name: &str) -> Option<ListenerId> {
        let mut best: Option<(usize, usize, usize, ListenerId)> = None;
        for (id, state) in self.on_port(protocols) {
            if !fits(&state.hostname, name) {
                continue;
            }
            let (precise, length) = lengths(&state.hostname);
            let place = protocols.iter().position(|p| *p == state.spec().protocol.as_str()).unwrap();
            let merit = (precise, length, usize::MAX - place, id);
            if best.is_none_or(|b| (b.0, b.1, b.2) < (merit.0, merit.1, merit.2)) {
                best = Some(merit);
            }
        }
        best.map(|b| b.3)
    }

    fn rule(&self, id: ListenerId, otherwise: RoutingOutcome) -> Said {
        let mut best: Option<(Merit, &RouteState, usize)> = None;
        for state in self.topology.routes.values() {
            let attached = state.is_attached_to(id);
            for (rule, spec) in state.route.rules.iter().enumerate().filter(|_| attached) {
                for merit in self.merits(id, &state.route, rule, spec) {
                    if best.as_ref().is_none_or(|(b, ..)| *b < merit) {
                        best = Some((merit, state, rule));
                    }
                }
            }
        }
        let Some((_, state, rule)) = best else { return (otherwise, Some(id), None, None) };
        let usable = |name: &str| name != "missing";
        let served = state.route.rules[rule].backends.iter().any(|b| b.weight > 0 && usable(&b.target.name));
        let outcome = match (served, otherwise) {
            (true, _) => RoutingOutcome::Forward,
            (false, RoutingOutcome::NotFound) => RoutingOutcome::BackendError,
            (false, other) => other,
        };
        (outcome, Some(id), Some(state.route.object()), Some(rule))
    }

    /// The merits of a rule for the request, one per hostname and match that fit.
    fn merits(&self, id: ListenerId, route: &Route, rule: usize, spec: &Rule) -> Vec<Merit> {
        let listener = self.topology.listener(id);
        let name = if listener.spec().protocol == Protocol::Tls { &self.sni } else { &self.host };
        let unnamed = route.hostnames.is_empty();
        let written = route.hostnames.iter().map(|w| w.name().unwrap().clone());
        let names = written.chain(unnamed.then(Hostname::any)).filter(|h| fits(h, name));
        let mut merits = Vec::new();
        for hostname in names {
            for (item, scores) in self.scores(spec) {
                let (precise, length) = lengths(&hostname);
                // A TLSRoute goes before any TCPRoute, a GRPCRoute before an HTTPRoute of the same hostname.
                let first = match route.kind {
                    RouteKind::Tls => true,
                    RouteKind::Tcp | RouteKind::Udp => false,
                    _ => true,
                };
                let mut scores = scores;
                scores.insert(0, usize::from(route.kind == RouteKind::Grpc));
                let age = route.meta.created.unwrap_or(i64::MAX);
                merits.push((first, precise, length, scores, Reverse((age, route.meta.key.to_string(), rule, item))));
            }
        }
        merits
    }

    fn scores(&self, rule: &Rule) -> Vec<(usize, Vec<usize>)> {
        match &rule.matches {
            Matches::Everything => vec![(0, vec![0; 5])],
            Matches::Http(items) => {
                items.iter().enumerate().filter_map(|(i, m)| Some((i, self.http_score(m)?))).collect()
            }
            Matches::Grpc(_) if !self.request.grpc => Vec::new(),
            Matches::Grpc(items) if items.is_empty() => vec![(0, vec![0; 5])],
            Matches::Grpc(items) => {
                items.iter().enumerate().filter_map(|(i, m)| Some((i, self.grpc_score(m)?))).collect()
            }
        }
    }

    fn http_score(&self, item: &HttpMatch) -> Option<Vec<usize>> {
        let (path, query) = self.request.path.split_once('?').unwrap_or((&self.request.path, ""));
        let segments =
            |text: &str| -> Vec<String> { text.trim_end_matches('/').split('/').skip(1).map(str::to_owned).collect() };
        let value = &*item.path.value;
        let (exact, length) = match item.path.kind {
            MatchKind::Exact => (path == value).then_some((1, 0)),
            _ => segments(path).starts_with(&segments(value)).then_some((0, value.trim_end_matches('/').len())),
        }?;
        let method = item.method.as_deref().is_none_or(|m| m == self.request.method);
        let sent = |m: &ValueMatch| {
            self.request.headers.iter().any(|(n, v)| n.to_lowercase() == m.name.to_lowercase() && **v == *m.value)
        };
        let asked = |m: &ValueMatch| {
            query.split('&').find(|pair| pair.starts_with(&format!("{}=", m.name)))
                == Some(&format!("{}={}", m.name, m.value))
        };
        let fits = method && item.headers.iter().all(sent) && item.query.iter().all(asked);
        fits.then(|| vec![exact, length, usize::from(item.method.is_some()), item.headers.len(), item.query.len()])
    }

    fn grpc_score(&self, item: &GrpcMatch) -> Option<Vec<usize>> {
        let path = self.request.path.split('?').next().unwrap_or_default();
        let (service, method) = (item.service.as_deref().unwrap_or("s.S"), item.method.as_deref().unwrap_or("M"));
        // The only path that is a call of this service; others are calls of none that a match names.
        let fits = path == format!("/{service}/{method}") || (item.service.is_none() && item.method.is_none());
        let length = |text: &Option<Str>| text.as_ref().map_or(0, |t| t.len());
        fits.then(|| vec![length(&item.service), length(&item.method), 0, 0, 0])
    }
}

fn fits(hostname: &Hostname, name: &str) -> bool {
    hostname.is_any() || (!is_ip(name) && hostname.matches(name))
}

fn lengths(hostname: &Hostname) -> (usize, usize) {
    let length = if hostname.is_any() { 0 } else { hostname.as_str().len() };
    (if hostname.is_precise() { length } else { 0 }, length)
}

fn listeners() -> impl Strategy<Value = Vec<Listener>> {
    let protocol = prop::sample::select(vec!["HTTP", "HTTP", "HTTPS", "HTTPS", "TLS", "PASS", "TCP", "UDP"]);
    let one = (protocol, 1u16..4, prop::option::weighted(0.7, prop::sample::select(&NAMES[..])));
    prop::collection::vec(one, 1..7).prop_map(|all| {
        let build = |(i, (protocol, port, hostname)): (usize, (&str, u16, Option<&str>))| {
            let mut built = listener(
                &format!("l{i}"),
                if protocol == "PASS" { "TLS" } else { protocol },
                port,
                hostname.unwrap_or(""),
            );
            if protocol == "PASS" {
                built.tls = Some(ListenerTls { mode: TlsMode::Passthrough, certificates: Vec::new(), options: 0 });
            }
            built
        };
        all.into_iter().enumerate().map(build).collect()
    })
}

fn http_match() -> impl Strategy<Value = HttpMatch> {
    let path = (prop::bool::ANY, prop::sample::select(&PATHS[..6]));
    let header = prop::option::weighted(0.3, Just(value("x-a", "1")));
    let query = prop::option::weighted(0.3, Just(value("q", "1")));
    let method = prop::option::weighted(0.2, prop::sample::select(vec!["GET", "PUT"]));
    (path, header, query, method).prop_map(|((exact, path), header, query, method)| HttpMatch {
        path: PathMatch { kind: if exact { MatchKind::Exact } else { MatchKind::Prefix }, value: path.into() },
        headers: header.into_iter().collect(),
        query: query.into_iter().collect(),
        method: method.map(Str::from),
    })
}

fn grpc_match() -> impl Strategy<Value = GrpcMatch> {
    (prop::option::of(Just("s.S")), prop::option::of(prop::sample::select(vec!["M", "N"]))).prop_map(
        |(service, method)| GrpcMatch {
            kind: MatchKind::Exact,
            service: service.map(Str::from),
            method: method.map(Str::from),
            headers: Default::default(),
        },
    )
}

fn rule(kind: RouteKind) -> impl Strategy<Value = Rule> {
    let matches = match kind {
        RouteKind::Http => {
            prop::collection::vec(http_match(), 1..3).prop_map(|items| Matches::Http(items.into())).boxed()
        }
        RouteKind::Grpc => {
            prop::collection::vec(grpc_match(), 0..3).prop_map(|items| Matches::Grpc(items.into())).boxed()
        }
        _ => Just(Matches::Everything).boxed(),
    };
    let backend =
        (prop::sample::select(vec!["a", "b", "c", "missing"]), 0u32..3).prop_map(|(name, weight)| to(name, weight));
    (matches, prop::collection::vec(backend, 0..3)).prop_map(|(matches, backends)| Rule {
        matches,
        backends: backends.into(),
        ..Rule::default()
    })
}

fn some_route() -> impl Strategy<Value = Route> {
    prop::sample::select(&RouteKind::ALL[..]).prop_flat_map(|kind| {
        let most = if kind.has_hostnames() { 3 } else { 1 };
        let names = prop::collection::vec(prop::sample::select(&NAMES[..]), 0..most);
        let section = prop::option::weighted(0.3, 0usize..6);
        let rules = prop::collection::vec(rule(kind), 0..3);
        (names, section, rules, prop::option::of(0i64..3)).prop_map(move |(names, section, rules, created)| {
            let mut built = route(kind, "r", &names, rules);
            built.meta.created = created;
            std::sync::Arc::make_mut(&mut built.parents)[0].section = section.map(|i| format!("l{i}").into());
            built
        })
    })
}

fn world() -> impl Strategy<Value = GatewayFixture> {
    (listeners(), prop::collection::vec(some_route(), 0..8)).prop_map(|(listeners, routes)| {
        let mut world = GatewayFixture::new(listeners);
        for (i, mut route) in routes.into_iter().enumerate() {
            route.meta.key = Key::new("infra", format!("r{i}"));
            world.routes.push(route);
        }
        world
    })
}

fn some_request() -> impl Strategy<Value = GatewayRequest> {
    let scheme = prop::sample::select(&Scheme::ALL[..]);
    let path = (prop::sample::select(&PATHS[..]), prop::sample::select(vec!["", "?q=1", "?q=2&q=1", "?x=1&q=1"]));
    let headers = prop::option::of(prop::sample::select(vec![("X-A", "1"), ("x-a", "2")]));
    let names = (prop::sample::select(&HOSTS[..]), prop::option::of(prop::sample::select(&HOSTS[..])));
    (scheme, names, 1u16..4, prop::sample::select(vec!["GET", "PUT"]), path, headers, prop::bool::ANY).prop_map(
        |(scheme, (host, sni), port, method, (path, query), headers, grpc)| GatewayRequest {
            scheme,
            host: host.into(),
            sni: sni.map(str::to_owned),
            port,
            method: method.into(),
            path: format!("{path}{query}"),
            headers: headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
            grpc,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn routing_agrees_with_plain_loops(world in world(), requests in prop::collection::vec(some_request(), 1..12)) {
        let snapshot = world.snapshot();
        let topology = Topology::build(&snapshot, &Scope::default());
        let router = world.router();
        for request in &requests {
            let host = host_of(&request.host);
            let sni = request.sni.as_deref().map_or(host.clone(), host_of);
            let sni = if is_ip(&sni) { String::new() } else { sni };
            let (outcome, listener, route, rule) = Model { topology: &topology, request, host, sni }.say();
            let answer = router.route(request);
            let key = listener.map(|id| topology.listener(id).key());
            prop_assert_eq!(
                (answer.outcome, &answer.listener, &answer.route, answer.rule),
                (outcome, &key, &route, rule),
                "{:?}\n{:#?}", request, answer.because
            );
            prop_assert!(!answer.because.is_empty());
        }
    }

    #[test]
    fn the_index_finds_what_a_scan_finds(
        names in prop::collection::btree_set("(\\*\\.)?[ab]{1,2}(\\.[ab]{1,2}){0,4}", 0..20),
        any in prop::bool::ANY,
        host in "[ab.]{0,3}|[ab]{1,2}(\\.[ab]{1,2}){0,5}",
    ) {
        let mut names: Vec<_> = names.iter().map(|n| Hostname::parse(n).unwrap()).collect();
        names.extend(any.then(Hostname::any));
        let index: HostIndex<usize> = names.iter().cloned().enumerate().map(|(i, n)| (n, i)).collect();
        let mut scanned: Vec<_> = names.iter().filter(|n| n.matches(&host)).collect();
        scanned.sort_by_key(|n| Reverse(n.specificity()));
        let found: Vec<_> = index.lookup(&host).map(|(n, _)| n).collect();
        prop_assert_eq!(found, scanned);
    }

    #[test]
    fn no_request_is_too_odd(host in ".{0,40}", sni in prop::option::of(".{0,20}"), path in ".{0,40}", world in world()) {
        let router = world.router();
        for scheme in Scheme::ALL {
            for port in 0..4 {
                let (host, sni, path) = (host.clone(), sni.clone(), path.clone());
                let request = GatewayRequest { scheme, host, sni, port, method: String::new(), path, headers: Vec::new(), grpc: true };
                prop_assert!(!router.route(&request).because.is_empty());
            }
        }
    }
}
