//! Routes whose verdict is not known: what was made for them stays, and nothing that others own waits for them (D32).
//!
//! 24 names of three namespaces behind one Gateway whose implementation writes status; each test changes one route and sees
//! that its names are answered all the while.

use std::fmt::Write;
use std::net::SocketAddr;

use gatepost_testkit::query_loop::{QueryLoop, ask};
use gatepost_testkit::scratch::Scratch;

use super::bed::Bed;
use super::running::{Running, comes_true, get};

const GATEWAY: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge, generation: 1}
spec:
  gatewayClassName: standard
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
status:
  addresses: [{type: IPAddress, value: 192.0.2.10}]
  conditions: [{type: Accepted, status: 'True', reason: Accepted, observedGeneration: 1}]
";

const NAMESPACES: [&str; 3] = ["blog", "shop", "team"];

/// A route as it is in the cluster.
#[derive(Clone)]
struct TestRoute {
    namespace: &'static str,
    name: String,
    hostnames: Vec<String>,
    generation: u64,
    /// Generation and word of its `Accepted` condition; nothing where it has no status.
    accepted: Option<(u64, &'static str)>,
}

impl TestRoute {
    fn text(&self) -> String {
        let TestRoute { namespace, name, generation, .. } = self;
        let hostnames = self.hostnames.join(", ");
        let mut text = format!(
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n\
             metadata: {{namespace: {namespace}, name: {name}, generation: {generation}}}\n\
             spec: {{parentRefs: [{{namespace: infra, name: edge}}], hostnames: [{hostnames}]}}\n"
        );
        if let Some((observed, word)) = self.accepted {
            let _ = writeln!(
                text,
                "status: {{parents: [{{parentRef: {{namespace: infra, name: edge}}, controllerName: test.example/it, \
                 conditions: [{{type: Accepted, status: '{word}', reason: Accepted, observedGeneration: {observed}}}]}}]}}"
            );
        }
        text
    }
}

fn hostname(namespace: &str, i: usize) -> String {
    format!("n{i}.{namespace}.example.org")
}

/// Eight routes in each namespace, one hostname each, all accepted.
fn routes() -> Vec<TestRoute> {
    let route = |namespace: &'static str, i: usize| TestRoute {
        namespace,
        name: format!("r{i}"),
        hostnames: vec![hostname(namespace, i)],
        generation: 1,
        accepted: Some((1, "True")),
    };
    NAMESPACES.into_iter().flat_map(|namespace| (0..8).map(move |i| route(namespace, i))).collect()
}

fn world(routes: &[TestRoute]) -> String {
    GATEWAY.to_owned() + &routes.iter().map(TestRoute::text).collect::<String>()
}

fn names(routes: &[TestRoute]) -> Vec<String> {
    routes.iter().flat_map(|route| route.hostnames.clone()).filter(|name| !name.contains('*')).collect()
}

type RouteChange = fn(&mut TestRoute);

/// What may happen to a route while its implementation sleeps.
const CHANGES: [(&str, RouteChange); 4] = [
    ("its hostname changes, and its status is of before", |route| {
        (route.hostnames, route.generation) = (vec!["new.blog.example.org".to_owned()], 2);
    }),
    ("its hostname changes, and its status vanishes", |route| {
        (route.hostnames, route.generation, route.accepted) = (vec!["new.blog.example.org".to_owned()], 2, None);
    }),
    ("its hostname changes, and its status turns Unknown", |route| {
        (route.hostnames, route.generation) = (vec!["new.blog.example.org".to_owned()], 2);
        route.accepted = Some((2, "Unknown"));
    }),
    ("it asks for everything, and is refused", |route| {
        (route.hostnames, route.generation) = (vec!["'*.example.org'".to_owned()], 2);
        route.accepted = Some((2, "False"));
    }),
];

/// The same world after a change of `blog/r3`, a route of `shop` deleted, and the hostname of one of `team` changed.
fn changed(change: RouteChange) -> Vec<TestRoute> {
    let mut after = routes();
    change(&mut after[3]);
    after[20].hostnames = vec!["moved.team.example.org".to_owned()];
    (after[20].generation, after[20].accepted) = (2, Some((2, "True")));
    after.remove(10);
    after
}

/// The names that have to be answered through all of it.
fn lasting() -> Vec<String> {
    let gone = [hostname("shop", 2), hostname("team", 4)];
    names(&routes()).into_iter().filter(|name| !gone.contains(name)).collect()
}

const ANSWERED: Option<(u8, u8)> = Some((0, 1));
const NXDOMAIN: Option<(u8, u8)> = Some((3, 0));

fn is_followed(server: SocketAddr) -> bool {
    let gone = [hostname("shop", 2), hostname("team", 4)];
    gone.iter().all(|name| ask(server, name) == NXDOMAIN) && ask(server, "moved.team.example.org") == ANSWERED
}

/// The route of before the change, and accepted as it is after it: the one name goes, the other one comes.
fn settled() -> Vec<TestRoute> {
    let mut after = changed(CHANGES[0].1);
    after[3].accepted = Some((2, "True"));
    after
}

#[test]
fn scenario_14_what_was_made_for_a_route_stays_on_bind_until_its_verdict_is_known() {
    for (what, change) in CHANGES {
        let Some(bed) = Bed::new() else { return };
        let answer = bed.run("apply", &world(&routes()));
        assert_eq!(answer.exit, 0, "{what}: {}{}", answer.output, answer.errors);
        let asking = QueryLoop::start(bed.server.address, &lasting());
        let answer = bed.run("apply", &world(&changed(change)));
        assert!(asking.failures().is_empty(), "{what}: {:?}\n{}", asking.failures(), answer.output);
        assert!(is_followed(bed.server.address), "{what}: others are not kept waiting\n{}", answer.output);
        assert!(answer.output.contains("n3.blog.example.org"), "{what}: it is told\n{}", answer.output);
        drop(asking);
        assert_eq!(bed.run("apply", &world(&settled())).exit, 0, "{what}");
        assert_eq!(ask(bed.server.address, "new.blog.example.org"), ANSWERED, "{what}");
        assert_eq!(ask(bed.server.address, "n3.blog.example.org"), NXDOMAIN, "{what}");
    }
}

/// The embedded server has no markers: it goes by what earlier passes noted, also across a restart.
#[test]
fn scenario_14_what_was_made_for_a_route_stays_on_the_embedded_server() {
    for (what, change) in CHANGES {
        let (objects, state) = (Scratch::new().unwrap(), Scratch::new().unwrap());
        objects.file("world.yaml", &world(&routes())).unwrap();
        let line = format!(
            "serve --dns-addr 127.0.0.1:0 --http-addr 127.0.0.1:0 --zone example.org -f '{}' --state-dir '{}'",
            objects.path().display(),
            state.path().display()
        );
        let mut served = Running::start(&line);
        let all = names(&routes());
        comes_true("all names are answered", || all.iter().all(|name| ask(served.address("dns"), name) == ANSWERED));
        for _ in 0..2 {
            let server = served.address("dns");
            let asking = QueryLoop::start(server, &lasting());
            objects.file("world.yaml", &world(&changed(change))).unwrap();
            comes_true(&format!("others are followed ({what}): {}", get(served.address("http"), "/plan.json")), || {
                is_followed(server)
            });
            assert!(asking.failures().is_empty(), "{what}: {:?}", asking.failures());
            drop(asking);
            served.stop();
            served = Running::start(&line);
        }
        let server = served.address("dns");
        objects.file("world.yaml", &world(&settled())).unwrap();
        comes_true("the new name is answered", || ask(server, "new.blog.example.org") == ANSWERED);
        comes_true("the old name is gone", || ask(server, "n3.blog.example.org") == NXDOMAIN);
    }
}
