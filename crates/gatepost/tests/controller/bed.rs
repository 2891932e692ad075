//! A cluster, a zone on BIND, and controllers between them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup};
use gatepost_testkit::servers::{DnsServer, KEY_NAME, KEY_SECRET, Kind, Primary};
use gatepost_testkit::{Failed, Trial};
use serde_json::{Value, json};

pub(crate) const ZONE: &str = "example.org";

/// A test that needs a cluster and BIND.
pub(crate) fn trial(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    if Kind::Bind.is_wanted() {
        return gatepost_testkit::servers::kube::trial(name, test);
    }
    Trial::test(format!("{name} (skipped: no named here)"), || Ok(())).with_ignored_flag(true)
}

/// A cluster of a test's own, with our CRDs and a Gateway whose implementation the test plays.
pub(crate) fn cluster(setup: &Setup) -> Result<Cluster, Failed> {
    let cluster = Cluster::start(setup)?;
    cluster.install_text(&gatepost_objects::crds::yaml()?)?;
    cluster.apply(WORLD)?;
    accept_class(&cluster)?;
    accept(&cluster, "edge", &["192.0.2.1"])?;
    Ok(cluster)
}

pub(crate) const WORLD: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: gatepost}
---
apiVersion: v1
kind: Namespace
metadata: {name: infra}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: shop}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: test}
spec: {controllerName: test.example/implementation}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: test
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: '*.example.org', allowedRoutes: {namespaces: {from: All}}}
";

fn condition(kind: &str, status: &str, generation: i64) -> Value {
    json!({
        "type": kind, "status": status, "reason": kind, "message": "", "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

pub(crate) fn accept_class(cluster: &Cluster) -> Result<(), Failed> {
    let patch = json!({"status": {"conditions": [condition("Accepted", "True", 1)]}}).to_string();
    cluster.kubectl(&["patch", "gatewayclass/test", "--subresource=status", "--type=merge", "-p", &patch])?;
    Ok(())
}

/// What an implementation writes on a Gateway that it runs.
pub(crate) fn accept(cluster: &Cluster, gateway: &str, addresses: &[&str]) -> Result<(), Failed> {
    gateway_status(cluster, gateway, "True", addresses)
}

/// The same, programmed or not.
pub(crate) fn gateway_status(
    cluster: &Cluster,
    gateway: &str,
    programmed: &str,
    addresses: &[&str],
) -> Result<(), Failed> {
    let live = cluster.json(&["gateway", gateway, "-n", "infra"])?;
    let generation = live["metadata"]["generation"].as_i64().unwrap_or(1);
    let addresses: Vec<Value> = addresses.iter().map(|value| json!({"type": "IPAddress", "value": value})).collect();
    let listeners: Vec<Value> = live["spec"]["listeners"].as_array().into_iter().flatten().map(|listener| {
        json!({
            "name": listener["name"], "attachedRoutes": 0, "supportedKinds": [],
            "conditions": [condition("Accepted", "True", generation), condition("Programmed", programmed, generation),
                condition("ResolvedRefs", "True", generation)],
        })
    }).collect();
    let status = json!({
        "conditions": [condition("Accepted", "True", generation), condition("Programmed", programmed, generation)],
        "addresses": addresses, "listeners": listeners,
    });
    cluster.set_status(&format!("gateway/{gateway}"), "infra", &status)?;
    Ok(())
}

/// What an implementation writes on a ListenerSet that it takes.
pub(crate) fn accept_set(cluster: &Cluster, set: &str) -> Result<(), Failed> {
    let live = cluster.json(&["listenerset", set, "-n", "shop"])?;
    let generation = live["metadata"]["generation"].as_i64().unwrap_or(1);
    let conditions = ["Accepted", "Programmed", "ResolvedRefs"].map(|kind| condition(kind, "True", generation));
    let listeners = live["spec"]["listeners"].as_array().into_iter().flatten();
    let listeners: Vec<Value> = listeners.map(|listener| {
        json!({"name": listener["name"], "attachedRoutes": 0, "supportedKinds": [], "conditions": conditions})
    }).collect();
    let status = json!({"conditions": conditions[..2], "listeners": listeners});
    cluster.set_status(&format!("listenerset/{set}"), "shop", &status)?;
    Ok(())
}

/// A route of a kind on the Gateway, as an implementation would accept it.
pub(crate) fn route(cluster: &Cluster, name: &str, hostname: &str) -> Result<(), Failed> {
    cluster.apply(&route_text(name, hostname))?;
    accept_route(cluster, "httproute", name)
}

pub(crate) fn route_text(name: &str, hostname: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{namespace: shop, name: {name}}}\n\
         spec: {{hostnames: ['{hostname}'], parentRefs: [{{namespace: infra, name: edge}}]}}\n"
    )
}

/// What an implementation writes on a route that it takes.
pub(crate) fn accept_route(cluster: &Cluster, kind: &str, name: &str) -> Result<(), Failed> {
    route_status(cluster, kind, name, "True")
}

pub(crate) fn route_status(cluster: &Cluster, kind: &str, name: &str, accepted: &str) -> Result<(), Failed> {
    route_status_in(cluster, "shop", kind, name, accepted)
}

/// The same in any namespace.
pub(crate) fn route_status_in(
    cluster: &Cluster,
    namespace: &str,
    kind: &str,
    name: &str,
    accepted: &str,
) -> Result<(), Failed> {
    let live = cluster.json(&[kind, name, "-n", namespace])?;
    let generation = live["metadata"]["generation"].as_i64().unwrap_or(1);
    let parents: Vec<Value> = live["spec"]["parentRefs"].as_array().into_iter().flatten().map(|parent| {
        json!({
            "parentRef": parent, "controllerName": "test.example/implementation",
            "conditions": [condition("Accepted", accepted, generation), condition("ResolvedRefs", "True", generation)],
        })
    }).collect();
    cluster.set_status(&format!("{kind}/{name}"), namespace, &json!({"parents": parents}))?;
    Ok(())
}

/// What an implementation would have written on a route with these hostnames, to be put into the store as it is.
pub(crate) fn stored_route(namespace: &str, name: &str, hostnames: &[String]) -> Value {
    let parent = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "infra", "name": "edge"});
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"hostnames": hostnames, "parentRefs": [parent]},
        "status": {"parents": [{
            "parentRef": parent, "controllerName": "test.example/implementation",
            "conditions": [condition("Accepted", "True", 1), condition("ResolvedRefs", "True", 1)],
        }]},
    })
}

/// Puts routes into the store.
pub(crate) fn store_routes(cluster: &Cluster, routes: impl IntoIterator<Item = Value>) -> Result<(), Failed> {
    Ok(cluster.store("gateway.networking.k8s.io", "httproutes", routes)?)
}

/// BIND with an empty zone.
pub(crate) fn bind() -> Result<DnsServer, Failed> {
    bind_with(&[ZONE.to_owned()])
}

/// BIND with empty zones.
pub(crate) fn bind_with(zones: &[String]) -> Result<DnsServer, Failed> {
    let text = "$TTL 300\n@ SOA ns hostmaster 1 3600 600 86400 30\n@ NS ns\nns A 192.0.2.53\n";
    let zones = zones.iter().map(|zone| (zone.clone(), text.to_owned())).collect();
    Ok(Kind::Bind.start(&Primary { zones, ..Primary::default() })?)
}

/// The addresses of names in the zone, as BIND has them: `name address`, sorted; the zone's own name server left out.
pub(crate) fn addresses(zone: &DnsServer) -> Vec<String> {
    addresses_in(zone, ZONE)
}

/// The same of any zone.
pub(crate) fn addresses_in(server: &DnsServer, zone: &str) -> Vec<String> {
    let lines = server.dump(zone).unwrap_or_default();
    let words = lines.iter().map(|line| line.split(' ').collect::<Vec<_>>());
    let made = words.filter(|words| words.len() > 4 && ["a", "aaaa", "cname"].contains(&words[3]));
    let mut found: Vec<String> = made.map(|words| format!("{} {}", words[0].trim_end_matches('.'), words[4])).collect();
    found.retain(|line| !line.starts_with(&format!("ns.{zone} ")));
    found.sort();
    found
}

/// Waits until the zone has exactly these addresses.
pub(crate) fn zone_comes_to(zone: &DnsServer, expected: &[&str], controllers: &[&Controller]) {
    until(
        &format!("the zone has {expected:?}"),
        || addresses(zone) == expected,
        || {
            let logs: Vec<_> = controllers.iter().map(|c| c.log()).collect();
            format!("{:?}\n{}", addresses(zone), logs.join("\n--\n"))
        },
    );
}

/// Checks that the zone stays as it is until each controller has completed a pass that began after this call.
pub(crate) fn zone_stays(zone: &DnsServer, expected: &[&str], controllers: &[&Controller]) {
    for controller in controllers {
        controller.passes_again(|| assert_eq!(addresses(zone), expected, "{}", controller.log()));
    }
}

/// Checks that the zone stays as it is for some time. Only for tests in which the time itself is the matter.
pub(crate) fn zone_stays_for(zone: &DnsServer, expected: &[&str], time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        assert_eq!(addresses(zone), expected);
        std::thread::sleep(Duration::from_millis(300));
    }
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool, state: impl Fn() -> String) {
    let end = Instant::now() + Duration::from_secs(90);
    while !is_so() {
        assert!(Instant::now() < end, "not within 90 s: {what}; it is {}", state());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A running controller. It ends when it is dropped.
pub(crate) struct Controller {
    process: Mutex<Child>,
    id: u32,
    log: Arc<Mutex<String>>,
    http: SocketAddr,
    pub(crate) dns: Option<SocketAddr>,
}

impl Controller {
    /// A controller that writes to BIND, and to the API server with these credentials.
    pub(crate) fn on_bind_as(kubeconfig: &Path, zone: &DnsServer, words: &[&str]) -> Controller {
        Controller::at(kubeconfig, zone.address, ZONE, words)
    }

    /// A controller that writes a zone on the name server at an address.
    pub(crate) fn at(kubeconfig: &Path, server: SocketAddr, zone: &str, words: &[&str]) -> Controller {
        Controller::start(kubeconfig, &[&provider(server, zone).each_ref().map(|word| &**word), words].concat())
    }

    /// A controller that writes to BIND.
    pub(crate) fn on_bind(cluster: &Cluster, zone: &DnsServer, words: &[&str]) -> Controller {
        Controller::on_bind_as(&cluster.kubeconfig(ADMIN), zone, words)
    }

    /// A controller that writes to BIND, with these variables in its environment.
    pub(crate) fn on_bind_in(
        variables: &[(&str, String)],
        cluster: &Cluster,
        zone: &DnsServer,
        words: &[&str],
    ) -> Controller {
        let provider = provider(zone.address, ZONE);
        let words = [&provider.each_ref().map(|word| &**word), words].concat();
        Controller::start_in(variables, &cluster.kubeconfig(ADMIN), &words)
    }

    pub(crate) fn start(kubeconfig: &Path, words: &[&str]) -> Controller {
        Controller::start_in(&[], kubeconfig, words)
    }

    pub(crate) fn start_in(variables: &[(&str, String)], kubeconfig: &Path, words: &[&str]) -> Controller {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
        command.args(["controller", "--http-addr", "127.0.0.1:0", "--dns-addr", "127.0.0.1:0", "--kubeconfig"]);
        command.arg(kubeconfig).args(words).env_clear().envs(variables.iter().cloned());
        if !words.contains(&"--interval") {
            command.args(["--interval", "5s"]);
        }
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let mut line = String::new();
        let mut before = String::new();
        while !line.starts_with("ready ") {
            before += &line;
            line.clear();
            assert!(errors.read_line(&mut line).unwrap() > 0, "the controller ended before it was ready: {before}");
        }
        let writer = log.clone();
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                let mut log = writer.lock().unwrap_or_else(PoisonError::into_inner);
                log.push_str(&line);
                log.push('\n');
            }
        });
        let address = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse().ok());
        let (http, dns) = (address("http=").unwrap(), address("dns="));
        Controller { id: process.id(), process: Mutex::new(process), log, http, dns }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn says(&self, word: &str) {
        until(&format!("the log says {word}"), || self.log().contains(word), || self.log());
    }

    /// Waits until it has completed a pass that began after this call, and calls `look` again and again meanwhile.
    pub(crate) fn passes_again(&self, look: impl Fn()) {
        let passes = || self.number("gatepost_passes_total").max(0.0);
        // The first pass that ends may have begun before.
        let last = passes() + 1.5;
        let is_over = || {
            let is_over = passes() > last;
            look();
            is_over
        };
        until("two passes have ended", is_over, || self.log());
    }

    pub(crate) fn signal(&self, name: &str) {
        let _ = Command::new("kill").args([&format!("-{name}"), &self.id.to_string()]).status();
    }

    /// Asks it to end, and kills it after the ten seconds that it has; its exit status.
    pub(crate) fn stop(&self) -> Option<i32> {
        let end = Instant::now() + Duration::from_secs(10);
        self.signal("TERM");
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        while Instant::now() < end {
            if let Ok(Some(status)) = process.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = process.kill();
        process.wait().ok().and_then(|status| status.code())
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
    }

    /// Where it answers over HTTP.
    pub(crate) fn http(&self) -> SocketAddr {
        self.http
    }

    /// Head and body of an answer over HTTP.
    pub(crate) fn get(&self, path: &str) -> String {
        self.ask(path, "Host: localhost\r\n")
    }

    /// The same with these headers.
    pub(crate) fn ask(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// Waits until `/readyz` says yes.
    pub(crate) fn is_ready(&self) {
        until("ready", || self.get("/readyz").starts_with("HTTP/1.1 200"), || self.get("/readyz") + &self.log());
    }

    /// Kilobytes of memory that it had at most.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|words| words.split_whitespace().next()?.parse().ok()).unwrap_or(u64::MAX)
    }

    /// How many files and connections it has open.
    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.id)).map_or(0, Iterator::count)
    }

    /// A number from the metrics.
    pub(crate) fn number(&self, name: &str) -> f64 {
        let text = self.get("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(-1.0)
    }
}

/// The words for a zone on a name server.
fn provider(server: SocketAddr, zone: &str) -> [String; 6] {
    [
        "--provider=rfc2136".to_owned(),
        format!("--rfc2136-host={}", server.ip()),
        format!("--rfc2136-port={}", server.port()),
        format!("--rfc2136-zone={zone}"),
        format!("--rfc2136-tsig-keyname={KEY_NAME}"),
        format!("--rfc2136-tsig-secret={KEY_SECRET}"),
    ]
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.kill();
    }
}
