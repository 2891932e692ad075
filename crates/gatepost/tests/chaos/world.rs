//! What runs: a cluster, BIND, two replicas of one controller before it, and a controller with the embedded server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gatepost_testkit::Failed;
use gatepost_testkit::clock::MovedClock;
use gatepost_testkit::query_loop::ask;
use gatepost_testkit::servers::kube::proxy::Proxy;
use gatepost_testkit::servers::kube::{Cluster, Setup};
use gatepost_testkit::servers::relay::{Fate, Relay};
use gatepost_testkit::servers::{DnsServer, KEY_NAME, KEY_SECRET};
use serde_json::Value;

use crate::bed::{self, Controller, ZONE, addresses, bind, cluster, until};

/// The Gateways and their addresses.
pub(crate) const GATEWAYS: [(&str, &str); 2] = [("edge", "192.0.2.1"), ("back", "192.0.2.2")];
/// How many routes are edited; the others must be answered all the time.
pub(crate) const LIVELY: usize = 24;
/// Replicas over BIND; the last controller has the embedded server.
pub(crate) const REPLICAS: usize = 2;
pub(crate) const CONTROLLERS: usize = REPLICAS + 1;

/// Names and the address of each.
pub(crate) type Addresses = BTreeMap<String, String>;

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) zone: DnsServer,
    /// Names whose routes nobody touches, one Gateway after the other.
    pub(crate) steady: Addresses,
    /// Whether BIND is meant to answer at this moment.
    pub(crate) answers: AtomicBool,
    controllers: Vec<Place>,
    clock: MovedClock,
}

/// A route as an implementation has accepted it.
fn stored(route: &str, label: &str, gateway: &str) -> Value {
    let mut object = bed::stored_route("shop", route, &[format!("{label}.{ZONE}")]);
    for parent in ["/spec/parentRefs/0/name", "/status/parents/0/parentRef/name"] {
        *object.pointer_mut(parent).unwrap() = gateway.into();
    }
    object
}

/// Where a controller runs, with its own ways to the API server and to BIND.
struct Place {
    api: Proxy,
    dns: Line,
    state: PathBuf,
    running: Mutex<Option<Controller>>,
    /// What the logs of those that were killed have said.
    said: Mutex<String>,
    peak: Mutex<u64>,
}

/// A way to BIND that can be cut.
struct Line {
    relay: Relay,
    cut: Arc<AtomicBool>,
}

impl Line {
    fn start(server: SocketAddr) -> Result<Line, Failed> {
        let (cut, passed) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
        let is_cut = cut.clone();
        let relay = Relay::start(server, move |_, message| {
            let number = passed.fetch_add(1, Ordering::Relaxed);
            // Somewhere within the message, another place each time.
            if is_cut.load(Ordering::Relaxed) { Fate::Cut(number * 7 % message.len().max(1)) } else { Fate::Pass }
        })?;
        Ok(Line { relay, cut })
    }
}

impl World {
    pub(crate) fn start(routes: usize) -> Result<World, Failed> {
        let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
        cluster.apply(&bed::WORLD.rsplit("---\n").next().unwrap_or_default().replace("name: edge", "name: back"))?;
        bed::accept(&cluster, "back", &[GATEWAYS[1].1])?;
        let steady = (0..routes).map(|i| (format!("s{i}.{ZONE}"), GATEWAYS[i % 2].1.to_owned())).collect();
        let quiet = (0..routes).map(|i| stored(&format!("s{i}"), &format!("s{i}"), GATEWAYS[i % 2].0));
        let lively = (0..LIVELY).map(|i| stored(&format!("v{i}"), &format!("v{i}-0"), GATEWAYS[0].0));
        bed::store_routes(&cluster, quiet.chain(lively))?;
        let controllers = (0..CONTROLLERS).map(|i| Place::new(&cluster, &zone, i)).collect::<Result<_, _>>()?;
        let answers = AtomicBool::new(true);
        let world = World { cluster, zone, steady, answers, controllers, clock: MovedClock::build()? };
        (0..CONTROLLERS).for_each(|i| world.run(i, 0));
        let lively = (0..LIVELY).map(|i| (format!("v{i}-0.{ZONE}"), GATEWAYS[0].1.to_owned()));
        world.comes_to(&world.steady.clone().into_iter().chain(lively).collect());
        Ok(world)
    }

    /// Starts a controller whose clock is so many seconds ahead.
    pub(crate) fn run(&self, i: usize, ahead: i64) {
        let place = &self.controllers[i];
        let identity = format!("replica-{i}");
        let state = place.state.display().to_string();
        let (host, port) = (place.dns.relay.address.ip(), place.dns.relay.address.port());
        let mut words: Vec<String> =
            ["--policy=sync", "--lease-duration=4s", "--max-staleness=15s"].map(str::to_owned).into();
        words.extend([format!("--identity={identity}"), format!("--state-dir={state}")]);
        if i < REPLICAS {
            words.extend([
                "--provider=rfc2136".to_owned(),
                format!("--rfc2136-host={host}"),
                format!("--rfc2136-port={port}"),
                format!("--rfc2136-zone={ZONE}"),
                format!("--rfc2136-tsig-keyname={KEY_NAME}"),
                format!("--rfc2136-tsig-secret={KEY_SECRET}"),
            ]);
        } else {
            words.extend(["--provider=embedded".to_owned(), format!("--zone={ZONE}"), "--lease=embedded".to_owned()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let clock = if ahead == 0 { Vec::new() } else { self.clock.ahead(ahead).to_vec() };
        let controller = Controller::start_in(&clock, &place.api.kubeconfig(), &words);
        *place.running() = Some(controller);
    }

    /// Ends a controller as a crash would.
    pub(crate) fn kill(&self, i: usize) {
        let place = &self.controllers[i];
        place.note();
        if let Some(controller) = place.running().take() {
            controller.kill();
            place.said.lock().unwrap_or_else(PoisonError::into_inner).push_str(&controller.log());
        }
    }

    pub(crate) fn signal(&self, i: usize, name: &str) {
        if let Some(controller) = &*self.controllers[i].running() {
            controller.signal(name);
        }
    }

    /// The way of a controller to the API server.
    pub(crate) fn api(&self, i: usize) -> &Proxy {
        &self.controllers[i].api
    }

    /// Cuts or mends the way of a replica to BIND.
    pub(crate) fn cut_dns(&self, i: usize, is_cut: bool) {
        self.controllers[i].dns.cut.store(is_cut, Ordering::Relaxed);
    }

    /// Where the embedded server answers, while it runs.
    pub(crate) fn embedded(&self) -> Option<SocketAddr> {
        self.controllers[REPLICAS].running().as_ref().and_then(|controller| controller.dns)
    }

    /// Waits until both servers have these names with these addresses, and no others of routes.
    pub(crate) fn comes_to(&self, wanted: &Addresses) {
        let mut lines: Vec<String> = wanted.iter().map(|(name, address)| format!("{name} {address}")).collect();
        lines.sort();
        let ours = || {
            let mut found = addresses(&self.zone);
            found.retain(|line| !line.starts_with("foreign"));
            found
        };
        let differences = || {
            let found: BTreeSet<String> = ours().into_iter().collect();
            let wanted: BTreeSet<String> = lines.iter().cloned().collect();
            let missing: Vec<_> = wanted.difference(&found).take(9).collect();
            let extra: Vec<_> = found.difference(&wanted).take(9).collect();
            format!("missing {missing:?}, too many {extra:?}\n{}", self.logs())
        };
        until("BIND has what is wanted", || ours() == lines, differences);
        let lost = || wanted.keys().filter(|name| self.embedded().and_then(|s| ask(s, name)) != Some((0, 1))).count();
        until(
            "the embedded server has what is wanted",
            || lost() == 0,
            || format!("{} names are missing\n{}", lost(), self.logs()),
        );
    }

    /// The last lines of every log.
    pub(crate) fn logs(&self) -> String {
        let tail = |log: String| {
            log.lines()
                .rev()
                .filter(|line| !line.contains("asks for it"))
                .take(25)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect::<Vec<_>>()
                .join("\n")
        };
        let log =
            |place: &Place| place.running().as_ref().map_or_else(|| "it does not run".to_owned(), |c| tail(c.log()));
        self.controllers.iter().map(log).collect::<Vec<_>>().join("\n--\n")
    }

    /// What holds in the end: nobody has work left, and no log has a secret.
    pub(crate) fn is_sound(&self) {
        for place in &self.controllers {
            let running = place.running();
            let controller = running.as_ref().unwrap();
            controller.is_ready();
            let log = place.said.lock().unwrap_or_else(PoisonError::into_inner).clone() + &controller.log();
            assert!(!log.contains(KEY_SECRET), "a secret stands in a log");
            assert!(!log.contains("panicked"), "{log}");
        }
    }

    /// The largest resident memory of each controller so far, and the files that it has open.
    pub(crate) fn figures(&self) -> String {
        let figure = |place: &Place| {
            place.note();
            let files = place.running().as_ref().map_or(0, Controller::open_files);
            format!("{} MiB, {files} files", *place.peak.lock().unwrap_or_else(PoisonError::into_inner) / 1024)
        };
        let figures: Vec<String> = self.controllers.iter().map(figure).collect();
        format!("at most {}", figures.join("; "))
    }
}

impl Place {
    fn new(cluster: &Cluster, zone: &DnsServer, i: usize) -> Result<Place, Failed> {
        let state = cluster.folder().join(format!("state-{i}"));
        let (api, dns) = (Proxy::start(cluster)?, Line::start(zone.address)?);
        Ok(Place { api, dns, state, running: Mutex::default(), said: Mutex::default(), peak: Mutex::default() })
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Controller>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the largest memory.
    fn note(&self) {
        let now = self.running().as_ref().map(Controller::peak_memory).filter(|peak| *peak < u64::MAX);
        let mut peak = self.peak.lock().unwrap_or_else(PoisonError::into_inner);
        *peak = (*peak).max(now.unwrap_or_default());
    }
}
