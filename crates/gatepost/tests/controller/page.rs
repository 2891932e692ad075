//! The page in a cluster: who looks is what the cluster says, and each sees their own namespaces and no other.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use gatepost_testkit::program::Program;
use gatepost_testkit::servers::kube::{Cluster, Setup};
use gatepost_testkit::{Failed, Trial, browser};
use serde_json::{Value, json};

use super::bed::{Controller, WORLD, accept, accept_class, route_status_in, until};

pub(crate) fn trials() -> Vec<Trial> {
    let without = if browser::is_wanted() { "" } else { " (not in a browser: scripts/setup tests was not run)" };
    let name = format!("the page: a tenant's token shows the tenant's namespaces alone{without}");
    vec![gatepost_testkit::servers::kube::trial(&name, tenants)]
}

/// Every name and object of the other tenant has this word in it.
const WORD: &str = "zebra";

fn route(namespace: &str, name: &str, hostnames: &str, parent: &str) -> String {
    format!(
        "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{namespace: {namespace}, name: {name}}}\n\
         spec:\n  hostnames: {hostnames}\n  parentRefs: [{{namespace: infra, name: {parent}}}]\n  \
         rules: [{{backendRefs: [{{name: {name}-backend, port: 8080}}]}}]\n"
    )
}

/// Two tenants on one Gateway, who also ask for one name both, and somebody who may read everything.
fn objects() -> String {
    let namespace = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n\
             ---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: viewer, namespace: {name}}}\n"
        )
    };
    let role = |kind: &str, place: &str| {
        format!(
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: route-viewer{place}}}\n\
             rules: [{{apiGroups: [gateway.networking.k8s.io], resources: [httproutes], verbs: [get]}}]\n"
        )
    };
    let binding = |kind: &str, namespace: &str, place: &str| {
        format!(
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata: {{name: route-viewer{place}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: route-viewer}}\n\
             subjects: [{{kind: ServiceAccount, name: viewer, namespace: {namespace}}}]\n"
        )
    };
    let own = |name: &str| {
        let place = format!(", namespace: {name}");
        [namespace(name), role("Role", &place), binding("Role", name, &place)].concat()
    };
    [
        own("apple"),
        own("pear"),
        namespace("boss"),
        "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: guest, namespace: apple}\n".to_owned(),
        role("ClusterRole", ""),
        binding("ClusterRole", "boss", ""),
        route("apple", "shop", "[shop.example.org, both.example.org, '*.apple.example.org']", "edge"),
        route("apple", "lost", "[lost.example.org]", "nowhere"),
        route("pear", "zebra-web", "[zebra.example.org, both.example.org, '*.zebra.example.org']", "edge"),
        route("pear", "zebra-lost", "[zebra-lost.example.org]", "zebra-gateway"),
        route("pear", "zebra-apple", "[x.apple.example.org]", "edge"),
        SHARED.to_owned(),
    ]
    .concat()
}

/// A ListenerSet of apple's with a Secret of apple's, which serves names of pear's with it as well.
const SHARED: &str = "\
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {namespace: apple, name: shared}
spec:
  parentRef: {namespace: infra, name: edge}
  listeners:
  - name: https
    port: 443
    protocol: HTTPS
    hostname: '*.example.org'
    tls: {certificateRefs: [{name: shared-tls}]}
    allowedRoutes: {namespaces: {from: All}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: apple, name: tls-shop}
spec:
  hostnames: [shop.example.org]
  parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: shared}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: pear, name: zebra-tls}
spec:
  hostnames: [zebra.example.org]
  parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, namespace: apple, name: shared}]
";

/// The paths of `/api/v1` with what may be asked there.
const PATHS: [&str; 21] = [
    "overview",
    "names",
    "names?q=zebra",
    "names.csv",
    "names/shop.example.org",
    "names/both.example.org",
    "names/lost.example.org",
    "names/a.apple.example.org",
    "names/x.apple.example.org",
    "names/other.example.org",
    "names/zebr.example.org",
    "objects?limit=500",
    "objects/HTTPRoute/apple/shop",
    "flow",
    "plan?limit=500",
    "certificates",
    "health",
    "zones",
    "activity",
    "route?url=http%3A%2F%2Fboth.example.org%2F",
    "route?url=http%3A%2F%2Fshop.example.org%2F",
];

struct TenantReader<'a> {
    controller: &'a Controller,
    token: String,
}

impl TenantReader<'_> {
    fn ask(&self, path: &str) -> String {
        let headers = format!("Host: localhost\r\nAuthorization: Bearer {}\r\n", self.token);
        self.controller.ask(&format!("/api/v1/{path}"), &headers)
    }

    fn json(&self, path: &str) -> Value {
        let answer = self.ask(path);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        serde_json::from_str(body).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let names = self.json("names?sort=name")["items"].as_array().unwrap().clone();
        names.iter().map(|name| name["hostname"].as_str().unwrap().to_owned()).collect()
    }
}

fn tenants() -> Result<(), Failed> {
    let cluster = Cluster::start(&Setup { users: vec!["limited"], ..Setup::default() })?;
    cluster.install_text(&gatepost_objects::crds::yaml()?)?;
    cluster.apply(WORLD)?;
    accept_class(&cluster)?;
    accept(&cluster, "edge", &["192.0.2.1"])?;
    cluster.apply(&objects())?;
    for (namespace, name) in [("apple", "shop"), ("pear", "zebra-web"), ("pear", "zebra-apple")] {
        route_status_in(&cluster, namespace, "httproute", name, "True")?;
    }
    rights_of(&cluster)?;
    let words = ["--provider", "embedded", "--zone", "example.org", "--policy", "sync", "--page", "cluster"];
    let more = ["--page-host", "page.example.org", "--page-base", "/gatepost"];
    let controller = Controller::start(&cluster.kubeconfig("limited"), &[&words[..], &more].concat());
    controller.is_ready();
    let reader = |namespace: &str| -> Result<TenantReader<'_>, Failed> {
        let token = cluster.kubectl(&["create", "token", "viewer", "-n", namespace])?;
        Ok(TenantReader { controller: &controller, token: token.trim().to_owned() })
    };
    let (apple, pear, boss) = (reader("apple")?, reader("pear")?, reader("boss")?);
    let is_written = || boss.ask("activity").contains("zebra.example.org");
    until("all names are there", || boss.ask("names").contains("zebra-lost") && is_written(), || boss.ask("names"));
    strangers(&controller, &apple);
    everything(&boss);
    own_alone(&apple);
    assert!(!pear.names().iter().any(|name| name.contains("shop")) && pear.names().len() == 5, "{:?}", pear.names());
    let guest = cluster.kubectl(&["create", "token", "guest", "-n", "apple"])?;
    let guest = TenantReader { controller: &controller, token: guest.trim().to_owned() };
    assert!(guest.names().is_empty() && guest.json("overview")["names"] == 0, "{:?}", guest.names());
    if browser::is_wanted() {
        in_a_browser(&cluster, &apple)?;
    }
    streams(&controller, &apple);
    Ok(())
}

/// The same in a browser, where apple types the token; a route that apple adds shows without a reload.
fn in_a_browser(cluster: &Cluster, apple: &TenantReader<'_>) -> Result<(), Failed> {
    let task = json!({
        "home": format!("http://{}/gatepost/", apple.controller.http()), "token": apple.token, "own": apple.names(),
        "held": "zebra.example.org", "holder": "pear", "hidden": WORD, "fresh": "fresh.example.org",
    });
    let mut command = browser::script("cluster.mjs", &task);
    let mut browser = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut told = BufReader::new(browser.stdout.take().unwrap()).lines().map_while(Result::ok);
    if told.any(|line| line == "waiting") {
        cluster.apply(&route("apple", "fresh", "[fresh.example.org]", "edge"))?;
        route_status_in(cluster, "apple", "httproute", "fresh", "True")?;
    }
    let done = browser.wait_with_output()?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned().into()) }
}

/// The controller has the rights that `gatepost rbac` prints, and no others.
fn rights_of(cluster: &Cluster) -> Result<(), Failed> {
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let words = ["rbac", "--page", "cluster"].map(str::to_owned);
    cluster.apply(&program.run(&words, "")?.output)?;
    let binding = |kind: &str, place: &str| {
        format!(
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata: {{name: limited{place}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: gatepost}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: limited}}]\n"
        )
    };
    cluster.apply(&(binding("ClusterRole", "") + &binding("Role", ", namespace: gatepost")))?;
    Ok(())
}

/// Without a token of the cluster, and by another name, nothing is shown; health needs no token.
fn strangers(controller: &Controller, apple: &TenantReader<'_>) {
    for path in PATHS.iter().chain(&["events", "reasons/GP0204"]) {
        for token in ["", "Authorization: Bearer x.y.z\r\n", "Authorization: Basic YTpi\r\n"] {
            let answer = controller.ask(&format!("/api/v1/{path}"), &format!("Host: localhost\r\n{token}"));
            assert!(
                answer.starts_with("HTTP/1.1 401") && answer.contains("www-authenticate: Bearer"),
                "{path}: {answer}"
            );
            assert!(!answer.contains(WORD) && !answer.contains("shop"), "{path}: {answer}");
        }
    }
    let own = format!("Authorization: Bearer {}\r\n", apple.token);
    for refused in [
        "Host: evil.example\r\n",
        "Host: page.example.org.evil.example\r\n",
        "Host: localhost\r\nOrigin: https://evil.example\r\n",
    ] {
        let answer = controller.ask("/api/v1/names", &format!("{refused}{own}"));
        assert!(answer.starts_with("HTTP/1.1 403"), "{refused}: {answer}");
    }
    let proxied = format!("Host: page.example.org\r\nOrigin: https://page.example.org\r\n{own}");
    assert!(controller.ask("/gatepost/api/v1/names", &proxied).starts_with("HTTP/1.1 200"));
    assert!(controller.ask("/gatepost/", "Host: page.example.org\r\n").contains("<!doctype html>"));
    assert!(controller.ask("/gatepost", "Host: page.example.org\r\n").contains("location: /gatepost/"));
    assert!(controller.get("/healthz").starts_with("HTTP/1.1 200"));
    assert!(controller.get("/plan.json").starts_with("HTTP/1.1 403"));
}

fn everything(boss: &TenantReader<'_>) {
    let names = boss.names();
    assert!(
        names.contains(&"shop.example.org".to_owned()) && names.contains(&"zebra.example.org".to_owned()),
        "{names:?}"
    );
    assert_eq!(boss.json("objects/HTTPRoute/pear/zebra-web")["names"].as_array().unwrap().len(), 3);
}

/// What apple sees has no word of pear's, but that something of the namespace `pear` is there.
fn own_alone(apple: &TenantReader<'_>) {
    let names = apple.names();
    // Both ask for `x.apple`: apple by its wildcard, which does not reach below it without a record of its own.
    let own = ["*.apple", "*.x.apple", "both", "lost", "shop", "x.apple"].map(|name| format!("{name}.example.org"));
    assert_eq!(names, own);
    assert_eq!(apple.json("overview")["names"], own.len());
    for path in PATHS {
        let answer = apple.ask(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        assert!(!answer.contains(WORD), "{path}: {answer}");
    }
    let activity = apple.json("activity");
    let told: Vec<_> =
        activity["items"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert!(!told.is_empty() && told.iter().all(|name| names.contains(&(*name).to_owned())), "{told:?}");
    assert!(apple.ask("names/shop.example.org/chain.svg").contains("<svg "));
    assert!(apple.ask("names/zebra.example.org/chain.mmd").starts_with("HTTP/1.1 403"));
    assert!(apple.ask("names.csv").contains("shop.example.org,"));
    let secret = apple.json("certificates")["items"][0].clone();
    assert_eq!(secret["served"], json!([{"hostname": "shop.example.org"}]), "{secret:#}");
    assert_eq!(secret["servedCount"], 1);
    let shop = apple.json("names/shop.example.org");
    assert_eq!(shop["chains"][0]["links"][1]["name"], "Gateway/infra/edge");
    assert_eq!(shop["recordSets"][0]["wanted"][0], "192.0.2.1");
    let both = apple.json("names/both.example.org");
    assert_eq!(both["otherNamespaces"], serde_json::json!(["pear"]));
    for other in ["zebra.example.org", "a.zebra.example.org", "zebra-lost.example.org"] {
        let held = apple.json(&format!("names/{other}"));
        assert_eq!(held["heldBy"], serde_json::json!(["pear"]), "{held:#}");
        assert!(held["chains"].is_null() && held["recordSets"].is_null() && held["cause"].is_null(), "{held:#}");
    }
    let refused = ["objects/HTTPRoute/pear/zebra-web", "objects/HTTPRoute/pear/none", "objects/Gateway/infra/edge"];
    for path in refused {
        let answer = apple.ask(path);
        assert!(answer.starts_with("HTTP/1.1 403") && !answer.contains("zebra.example.org"), "{path}: {answer}");
    }
    let other = apple.ask("route?url=http%3A%2F%2Fx%2F&gateway=pear%2Fzebra-gateway");
    assert!(other.starts_with("HTTP/1.1 403"), "{other}");
    let served = apple.json("route?url=http%3A%2F%2Fzebra.example.org%2F");
    assert!(
        served["route"].is_null() && served["because"][0].as_str().unwrap().contains("namespace pear"),
        "{served:#}"
    );
}

/// A thousand streams without a word leave health and other readers alone.
fn streams(controller: &Controller, apple: &TenantReader<'_>) {
    let open = || {
        let mut stream = TcpStream::connect(controller.http()).unwrap();
        let token = &apple.token;
        write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n")
            .unwrap();
        stream
    };
    let idle: Vec<TcpStream> = (0..1000).map(|_| open()).collect();
    assert!(controller.get("/healthz").starts_with("HTTP/1.1 200"));
    assert!(apple.ask("overview").starts_with("HTTP/1.1 200"));
    let last = open();
    last.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let line = BufReader::new(last).lines().map_while(Result::ok).find(|line| line.starts_with("event:"));
    assert_eq!(line.as_deref(), Some("event: changed"));
    drop(idle);
}
